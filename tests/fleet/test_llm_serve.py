"""The client of LLM servers over real SSH: a command that serves on one host, its client on the other, nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet.command import Command

pytestmark = pytest.mark.fleet
SERVER = Path(__file__).parents[1] / "llm" / "server.py"


def test_a_server_on_one_host_and_its_client_on_the_other(command: Command) -> None:
    copy = "/var/tmp/fleetmark-tests-server.py"
    for host in ("h1", "h2"):
        command.fleet.exec(host, ["sh", "-c", f"cat > {copy}"], input=SERVER.read_text())
    serve = f"python3 {copy} --address {{address}} --port {{port}}"
    settings = {"command": serve, "concurrency": [2], "ttft": 0, "duration": 1, "warmup": 0.2, "late": 10}
    short = {"prompt": "40", "output": "16", "patience": 60, "ready": 90}
    suite = command.root / "suite.yml"
    suite.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"llm_serve": {"set": {**settings, **short}}}})
    )
    done = command.run("--suite", str(suite), "--limit", "h1,h2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["subject"]) == {"h1>h2", "h2>h1"} and set(frame["case"]) == {"p40-o16-c2"}
    values = frame.groupby("metric")["value"]
    assert (values.min()[["ttft_p50", "e2e_p50"]] >= [0.04, 0.265]).all(), "never less than the server's delays"
    assert values.max()["failures"] == 0 and set(frame.query("metric == 'output_tokens'")["value"]) == {16}
    assert (frame.query("metric == 'output_tokens_per_second'")["value"] > 1).all()
    for host in ("h1", "h2"):
        left = command.fleet.exec(host, ["pgrep", "-f", copy], check=False)
        command.fleet.exec(host, ["rm", copy])
        assert left.stdout == "", "the server ends with its case"
