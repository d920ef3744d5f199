"""MLPerf Training over real SSH: a stand-in trains to its target, gives up, dies, hangs, and loses its host."""

from __future__ import annotations

import gzip
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.fleet.command import FLEETMARK, LONG_S, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet

STANDIN = Path(__file__).parents[1] / "standins" / "mlperf_training"
ONE = 14400.5  # seconds that the stand-in's run takes by its time stamps
UNVERIFIED = "Result not verified by MLCommons Association"

# As a submitter's: one run for each call, its log below a folder. What happens goes by the case.
RUN = """#!/bin/sh
set -eu
out=/srv/results/$FLEETMARK_CASE
mkdir -p "$out"
log=$out/result_$FLEETMARK_REPEAT.txt
train() { rm -f "$log"; python3 /srv/train.py "$log" "$@"; }
case $FLEETMARK_CASE in
    retinanet)
        if [ "$(hostname)" = h2 ] && [ "$FLEETMARK_REPEAT" = 1 ]; then train evals=3 then=abort; exit; fi
        set -- 1.00 1.10 0.95 1.40 1.03
        shift "$FLEETMARK_REPEAT"
        train "stretch=$1" ;;
    aborted) train evals=3 then=abort ;;
    killed) train evals=2 then=kill ;;
    hanging) train evals=2 then=hang ;;
    breaks) train evals=1 then=abort; echo 'NCCL error: unhandled system error' >&2; exit 3 ;;
    silent) echo 'sbatch: Submitted batch job 17' ;;
    dead) echo 'ModuleNotFoundError: torch' >&2; exit 1 ;;
    two) train stretch=2; python3 /srv/train.py "$out/second.txt" stretch=3 ;;
    grown) python3 /srv/train.py /srv/results/old.txt stretch=2 ;;
    dies)
        stays=$(hostname)$FLEETMARK_REPEAT
        if [ "$stays" = h21 ] && [ ! -e /srv/power ]; then exec python3 /srv/train.py "$log" evals=2 then=hang; fi
        python3 /srv/train.py "$log" ;;
esac
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Fleet]:
    if reason := missing():
        pytest.skip(reason)
    with Fleet(2) as fleet:
        for host in fleet.names:
            put(fleet, host, "/srv/run_and_time.sh", RUN)
            for name in ("train.py", "retinanet.txt"):
                put(fleet, host, f"/srv/{name}", (STANDIN / name).read_text())
            # an older run's log, which would spoil any figure it got into
            older = "mkdir -p /srv/results && python3 /srv/train.py /srv/results/old.txt stretch=9"
            fleet.exec(host, ["sh", "-c", older])
        yield fleet


def put(fleet: Fleet, host: str, path: str, text: str) -> None:
    fleet.exec(host, ["sh", "-c", f"cat >{shlex.quote(path)}"], input=text)


@pytest.fixture
def command(hosts: Fleet, tmp_path: Path) -> Command:
    return Command(hosts, tmp_path)


def suite(root: Path, repeats: int = 1, **settings: Any) -> list[str]:
    settings = {"command": "sh /srv/run_and_time.sh", "logs": "/srv/results", **settings}
    file = root / "suite.yml"
    file.write_text(
        json.dumps({"description": "x", "repeats": repeats, "workloads": {"mlperf_training": {"set": settings}}})
    )
    return ["--suite", str(file)]


def raw(command: Command, host: str, case: str, repeat: int = 0) -> Path:
    return command.campaign / "raw" / host / "mlperf_training" / case / str(repeat)


def measured(command: Command) -> pd.DataFrame:
    return pd.read_parquet(command.campaign / "measurements.parquet")


def report(command: Command, *more: str) -> str:
    words = [FLEETMARK, "report", "last", *more]
    done = subprocess.run(words, capture_output=True, text=True, env=command.env, cwd=command.root)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_five_runs_make_an_olympic_mean_that_says_it_is_unverified(command: Command) -> None:
    done = command.run(*suite(command.root, 5, benchmark="retinanet", seeds=[11, 12, 13, 14, 15]))
    assert done.returncode == 1, done.stdout + done.stderr  # for the one run of h2 that did not converge
    assert command.count(host="h1") == {"passed": 5}
    assert command.count(host="h2") == {"passed": 4, "invalid": 1}
    frame = measured(command)
    assert set(frame["standing"]) == {"unverified"}
    times = frame.query("metric == 'time_to_train'").set_index(["host", "repeat"])["value"].sort_index()
    assert times["h1"].tolist() == pytest.approx([1.00 * ONE, 1.10 * ONE, 0.95 * ONE, 1.40 * ONE, 1.03 * ONE], abs=0.01)
    assert times["h2"].index.tolist() == [0, 2, 3, 4]
    seeds = frame.query("metric == 'seed'").set_index(["host", "repeat"])["value"].sort_index()
    assert seeds["h1"].tolist() == seeds["h2"].tolist() == [11, 12, 13, 14, 15]
    assert set(frame.query("metric == 'epochs_to_train'")["value"]) == {4}

    document = json.loads(report(command, "--format", "json"))
    means = {m["host"]: m for m in document["measurements"] if m["metric"] == "olympic_mean"}
    assert means["h1"]["value"] == pytest.approx((1.00 + 1.03 + 1.10) / 3 * ONE, abs=0.01)
    # The run that gave up is the slowest of h2's, and dropped.
    assert means["h2"]["value"] == pytest.approx((1.00 + 1.03 + 1.40) / 3 * ONE, abs=0.01)
    assert {(m["case"], m["unit"], m["standing"]) for m in means.values()} == {("retinanet", "s", "unverified")}
    shown = report(command)
    assert "olympic_mean" in shown
    assert UNVERIFIED in " ".join(shown.split())
    assert UNVERIFIED in (command.campaign / "summary.html").read_text()

    files = raw(command, "h1", "retinanet", 3)
    assert {p.name for p in files.glob("*.gz")} == {"mllog.txt.gz", "1-result_3.txt.gz"}
    source = command.fleet.exec("h1", ["cat", "/srv/results/retinanet/result_3.txt"]).stdout
    assert gzip.decompress((files / "1-result_3.txt.gz").read_bytes()).decode() == source


def test_every_way_to_end_is_told_with_its_reason(command: Command) -> None:
    cases = ["aborted", "killed", "hanging", "breaks", "silent", "dead", "two", "grown"]
    done = command.run(*suite(command.root, benchmark=cases, timeout=30), "--limit", "h1")
    assert done.returncode == 1, done.stdout + done.stderr
    ended = {o["case"]: (o["status"], o["reason"]) for o in command.outcomes()}
    assert {case: status for case, (status, _) in ended.items()} == {
        "aborted": "invalid",
        "killed": "failed",
        "hanging": "failed",
        "breaks": "invalid",
        "silent": "failed",
        "dead": "failed",
        "two": "passed",
        "grown": "passed",
    }, ended
    assert "run_stop says aborted: no time to train (best eval_accuracy 0.32625" in ended["aborted"][1]
    assert "exit status 137: " in ended["killed"][1]
    assert "did not end; it came to epoch 2, eval_accuracy 0.30375" in ended["killed"][1]
    assert ended["hanging"][1].startswith("no end after 30 s; ")
    assert "did not end; it came to epoch 2, eval_accuracy 0.30375" in ended["hanging"][1]
    assert "Watchdog caught collective operation timeout" in ended["hanging"][1]
    assert "no new MLPerf log below /srv/results: set mlperf_training.logs" in ended["silent"][1]
    assert ended["dead"][1].startswith("exit status 1: ModuleNotFoundError: torch")
    left = command.fleet.exec("h1", ["pgrep", "-f", "/srv/train.p[y]"], check=False)
    assert left.stdout == ""

    frame = measured(command)
    times = frame.query("metric == 'time_to_train'")[["case", "labels", "value"]].values.tolist()
    assert sorted(times) == [
        ["grown", "{}", pytest.approx(2 * ONE, abs=0.01)],  # the older run in that log took 9 times as long
        ["two", '{"run":"0"}', pytest.approx(2 * ONE, abs=0.01)],
        ["two", '{"run":"1"}', pytest.approx(3 * ONE, abs=0.01)],
    ]
    aborted = frame.query("case == 'aborted'")
    assert set(aborted["status"]) == {"invalid"}
    assert aborted.query("metric == 'eval_accuracy_at'")["value"].tolist() == [0.2525, 0.30375, 0.32625]
    assert "olympic_mean" not in report(command)


def test_without_a_folder_the_output_is_the_log(command: Command) -> None:
    words = "python3 /srv/train.py - stretch=$STRETCH"
    done = command.run(*suite(command.root, command=words, logs="", env=["STRETCH=1.5"]), "--limit", "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    frame = measured(command)
    assert frame.query("metric == 'time_to_train'")["value"].tolist() == [pytest.approx(1.5 * ONE, abs=0.01)]
    assert set(frame["case"]) == {"training"}
    assert set(frame["raw"]) == {"raw/h1/mlperf_training/training/0/stdout"}


def test_a_host_that_dies_keeps_what_it_finished_and_repeats_only_the_rest(command: Command) -> None:
    log = "/srv/results/dies/result_1.txt"
    running = command.begin(*suite(command.root, 3, benchmark="dies", seeds=[21, 22, 23]))
    command.until(lambda: not command.fleet.exec("h2", ["grep", "-q", "Watchdog", log], check=False).returncode)
    command.until(lambda: command.count() == {"passed": 4})
    command.fleet.power_off("h2")
    command.fleet.power_on("h2")
    assert running.wait(LONG_S) == 1
    assert command.count(host="h1") == {"passed": 3}
    assert command.count(host="h2") == {"passed": 1, "lost": 2}
    before = (raw(command, "h2", "dies", 0) / "result.json").read_bytes()

    command.fleet.exec("h2", ["touch", "/srv/power"])
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 6}
    assert (raw(command, "h2", "dies", 0) / "result.json").read_bytes() == before
    frame = measured(command).query("host == 'h2'").set_index("repeat")
    assert frame.query("metric == 'seed'")["value"].sort_index().to_dict() == {0: 21, 1: 22, 2: 23}
    # The repeated run adds to the log that the dead one began, which is not taken for its own.
    assert command.fleet.exec("h2", ["grep", "-c", "run_start", log]).stdout == "2\n"
    assert gzip.decompress((raw(command, "h2", "dies", 1) / "mllog.txt.gz").read_bytes()).count(b"run_start") == 1


def test_a_host_without_a_command_is_skipped_with_the_next_step(command: Command) -> None:
    done = command.run(*suite(command.root, command=""), "--limit", "h1")
    (outcome,) = command.outcomes()
    assert outcome["status"] == "skipped"
    assert "mlperf_training.command=cd /srv/retinanet && ./run_and_time.sh" in outcome["reason"]
    assert "mlperf_training.command" in done.stdout
    tools = command.fleet.exec("h1", ["sh", "-c", "ls -d /var/tmp/fleetmark-0/tools/mlperf_training-*/*"], check=False)
    assert tools.stdout.split()[1:] == []
