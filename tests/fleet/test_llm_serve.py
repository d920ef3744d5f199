"""The client of LLM servers over real SSH: a command that serves on one host, its client on the other, nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet.command import Command

pytestmark = pytest.mark.fleet
PROGRAMS = [Path(__file__).parents[1] / "llm" / name for name in ("model.py", "server.py")]


def test_a_server_on_one_host_and_its_client_on_the_other(command: Command) -> None:
    folder = "/var/tmp/fleetmark-tests-llm"
    copy = f"{folder}/server.py"
    for host in ("h1", "h2"):
        for file in PROGRAMS:
            words = ["sh", "-c", f"mkdir -p {folder} && cat > {folder}/{file.name}"]
            command.fleet.exec(host, words, input=file.read_text())
    serve = f"python3 {copy} --address {{address}} --port {{port}}"
    settings = {"command": serve, "concurrency": [2], "ttft": 0, "duration": 1, "warmup": 0.2, "late": 10}
    short = {"model": "bytes", "prompt": "40", "output": "16", "patience": 60, "ready": 90}
    suite = command.root / "suite.yml"
    suite.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"llm_serve": {"set": {**settings, **short}}}})
    )
    done = command.run("--suite", str(suite), "--limit", "h1,h2")
    first = command.campaign
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["subject"]) == {"h1>h2", "h2>h1"} and set(frame["case"]) == {"p40-o16-c2"}
    values = frame.groupby("metric")["value"]
    assert (values.min()[["ttft_p50", "e2e_p50"]] >= [0.04, 0.265]).all(), "never less than the server's delays"
    assert values.max()["failures"] == 0 and set(frame.query("metric == 'output_tokens'")["value"]) == {16}
    assert (frame.query("metric == 'output_tokens_per_second'")["value"] > 1).all()

    stored = next(first.rglob("logprobs.json"))
    done = command.run("--suite", str(suite), "--limit", "h1", "--set", f"llm_serve.reference={stored}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.campaign != first
    figures = pd.read_parquet(command.campaign / "measurements.parquet").groupby("metric")["value"].max()
    assert (figures["logprob_difference"], figures["top1_agreement"]) == (0, 1), "the same weights as in the first run"
    for host in ("h1", "h2"):
        left = command.fleet.exec(host, ["pgrep", "-f", copy], check=False)
        command.fleet.exec(host, ["rm", "-r", folder])
        assert left.stdout == "", "the server ends with its case"
