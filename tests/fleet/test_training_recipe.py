"""The user's own training over real SSH: both programs of the recorder arrive, and files of the ranks are read there."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.fleet.command import Command

pytestmark = pytest.mark.fleet
FOLDER = "/var/tmp/fleetmark-tests-ranks"
# Three ranks that take 0.02 s a step by their files, but rank 1 takes 0.08 s.
TRAINING = f"""
import json, os, time
os.makedirs("{FOLDER}", exist_ok=True)
for rank in range(3):
    with open("{FOLDER}/rank%d.jsonl" % rank, "w") as out:
        for step in range(1, 6):
            out.write(json.dumps(dict(step=step, rank=rank, working=0.08 if rank == 1 else 0.02)) + chr(10))
for step in range(1, 6):
    time.sleep(0.1)
    print(json.dumps(dict(step=step, seconds=0.1, tokens=100, loss=1.0)))
"""


def test_the_times_of_the_ranks_are_read_on_the_host(command: Command) -> None:
    command.fleet.exec("h1", ["sh", "-c", "cat > /var/tmp/fleetmark-tests-train.py"], input=TRAINING)
    settings = {"command": "python3 /var/tmp/fleetmark-tests-train.py", "rank_files": f"{FOLDER}/rank*.jsonl"}
    suite = command.root / "suite.yml"
    suite.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"training_recipe": {"set": settings}}})
    )
    done = command.run("--suite", str(suite), "--limit", "h1")
    command.fleet.exec("h1", ["rm", "-r", FOLDER, "/var/tmp/fleetmark-tests-train.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 1}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    (lost,) = frame.query("metric == 'straggler_time'")["value"]
    assert lost == pytest.approx(0.06)
    assert "rank 1 was the slowest in 4 of 4 steps" in str(command.outcomes())
