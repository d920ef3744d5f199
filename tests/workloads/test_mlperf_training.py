"""MLPerf Training's manifest and the program that it puts on hosts: cases, refusals, and which logs are a run's own."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.schedule import settings_of
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.parsers.mlperf_training import parse
from fleetmark.record.steps import HostSchedule, Step
from fleetmark.workloads import load, load_suite
from fleetmark.workloads.manifest import HERE
from tests.schedules import schedule, suite

ROLE = PLAYBOOKS / "roles" / "mlperf_training"
PROGRAM = ROLE / "files" / "training.py"
STANDIN = Path(__file__).parents[1] / "standins" / "mlperf_training" / "train.py"
TRAIN = f"exec {sys.executable} {STANDIN}"


def planned(tmp_path: Path, settings: Mapping[str, Any], **facts: Any) -> HostSchedule:
    text = suite(tmp_path, "  mlperf_training:\n")
    return schedule(text, {"mlperf_training": settings}, repeats=3, **{"hostname": "gpu7", **facts}).hosts["h1"]


def steps(tmp_path: Path, **settings: Any) -> list[Step]:
    planned_host = planned(tmp_path, {"command": "./run_and_time.sh", **settings})
    assert not planned_host.skipped, planned_host.skipped
    return planned_host.steps


def test_the_manifest_names_the_program_that_it_deploys() -> None:
    """What hosts keep from an older Fleetmark must not be taken for this one's: put the digest below into the manifest."""
    digest = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()[:8]
    named = re.search(r"mlperf_training-\{\{ digest\('([0-9a-f]{8})'", (HERE / "mlperf_training.yml").read_text())
    assert named
    assert named[1] == digest


def test_without_a_command_a_host_is_skipped_and_told_what_to_type(tmp_path: Path) -> None:
    planned_host = planned(tmp_path, {})
    assert not planned_host.steps
    assert not planned_host.deploy
    reason = planned_host.skipped["mlperf_training"]
    assert reason.startswith("needs mlperf_training.command: the shell command on the host that runs one training")
    assert "--set 'mlperf_training.command=cd /srv/retinanet && ./run_and_time.sh'" in reason


def test_a_folder_of_logs_that_is_no_whole_path_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match=r"needs mlperf_training\.logs, the absolute path"):
        settings_of(load_suite(suite(tmp_path, "  mlperf_training:\n")), {"mlperf_training": {"logs": "results"}})


def test_every_benchmark_is_a_case_and_every_repeat_knows_its_number(tmp_path: Path) -> None:
    trainings = steps(tmp_path, benchmark="retinanet,bert,bert", logs="/srv/$FLEETMARK_CASE/logs")
    assert [(s.case, s.env["FLEETMARK_REPEAT"]) for s in trainings if s.case == "bert"] == [
        ("bert", "0"),
        ("bert", "1"),
        ("bert", "2"),
    ]
    assert len(trainings) == 6
    assert {s.env["FLEETMARK_CASE"] for s in trainings if s.case == "retinanet"} == {"retinanet"}
    step = trainings[0]
    assert step.argv[0] == "/usr/bin/python3"
    assert step.argv[1].startswith("/var/tmp/fleetmark-0/tools/mlperf_training-")
    assert step.argv[2:] == ("--command=./run_and_time.sh", "--logs=/srv/$FLEETMARK_CASE/logs")
    assert (step.output, step.timeout_s, step.headline) == ("mllog.txt.gz", 86400, ("time_to_train",))
    assert step.env["FLEETMARK_HOST"] == "gpu7"


def test_without_a_folder_the_output_is_the_log(tmp_path: Path) -> None:
    step = steps(tmp_path, timeout="90m")[0]
    assert (step.case, step.output, step.files, step.timeout_s) == ("training", "stdout", (), 5400)
    assert len(step.argv) == 3


def test_seeds_and_environment_reach_the_program(tmp_path: Path) -> None:
    step = steps(tmp_path, seeds=[11, 12, 13], env=["DGXNGPU=8", "NOTE=a b, c"])[0]
    assert step.argv[3:] == ("--env=DGXNGPU=8\nNOTE=a b, c", "--seeds=11,12,13")


def test_metrics_are_those_of_the_parser_and_the_score_is_of_the_headline() -> None:
    manifest = load("mlperf_training")
    for m in parse(STANDIN.with_name("retinanet.txt").read_bytes()).measurements:
        metric = manifest.metrics[m.metric.removesuffix("_at")]
        assert (metric.unit, metric.better) == (m.unit, m.better), m.metric
    score = manifest.scores["olympic_mean"]
    assert (score.metric, score.mean) == ("time_to_train", "olympic")
    assert manifest.metrics[score.metric].headline


def test_the_page_names_how_often_each_benchmark_has_to_run() -> None:
    """By the same table that the olympic mean goes by."""
    page = (PLAYBOOKS.parent / "docs" / "reference" / "workloads" / "mlperf_training.md").read_text()
    rows = dict(re.findall(r"^\| (\d+) \| (`.*`) \|$", page, re.MULTILINE))
    printed = {name: int(runs) for runs, names in rows.items() for name in re.findall(r"`(\w+)`", names)}
    assert printed == load("mlperf_training").scores["olympic_mean"].runs


def test_the_program_keeps_to_the_python_found_on_hosts() -> None:
    vermin = Path(sys.executable).with_name("vermin")
    words = [str(vermin), "-t=3.6-", "--no-tips", "--eval-annotations", str(PROGRAM)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# ------------------------------------------------------------ the program


class Host:
    """A folder of logs with an older one in it, and a scratch folder in which the program runs."""

    def __init__(self, root: Path) -> None:
        self.logs, self.scratch = root / "logs", root / "scratch"
        for folder in (self.logs, self.scratch):
            folder.mkdir()
        self.old = self.logs / "result_0.txt"
        self.run("", TRAIN + f" {self.old} stretch=9")
        assert self.old.exists()

    def words(self, logs: str, command: str, *more: str) -> list[str]:
        return [sys.executable, str(PROGRAM), f"--command={command}", *([f"--logs={logs}"] if logs else []), *more]

    def run(self, logs: str, command: str, *more: str, repeat: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "FLEETMARK_REPEAT": str(repeat), "FLEETMARK_CASE": "bert", "SEED": "1"}
        words = self.words(logs, command, *more)
        return subprocess.run(
            words, capture_output=True, text=True, errors="replace", cwd=self.scratch, env=env | {"LC_ALL": "C"}
        )

    def collected(self) -> dict[str, bytes]:
        folder = self.scratch / "collected"
        return {p.name: gzip.decompress(p.read_bytes()) for p in folder.iterdir()} if folder.exists() else {}

    def times(self) -> list[float]:
        """Times to train in what was brought together, as multiples of the stand-in's."""
        parsed = parse((self.scratch / "collected" / "mllog.txt.gz").read_bytes())
        return [round(m.value / 14400.5, 3) for m in parsed.measurements if m.metric == "time_to_train"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_new_log_is_brought_and_an_older_one_is_not(host: Host) -> None:
    done = host.run(str(host.logs), f"cd {host.logs}; echo $SEED; {TRAIN} result_1.txt stretch=2")
    assert done.returncode == 0, done.stderr
    assert host.times() == [2]
    assert set(host.collected()) == {"mllog.txt.gz", "1-result_1.txt.gz"}
    lines = host.collected()["mllog.txt.gz"].decode().splitlines()
    assert lines[0] == f"# {host.logs}/result_1.txt"
    assert all(line.startswith(":::MLLOG") for line in lines[1:])
    assert host.collected()["1-result_1.txt.gz"] == (host.logs / "result_1.txt").read_bytes()
    assert done.stdout.splitlines() == ["1", f"1: {host.logs}/result_1.txt"]


@pytest.mark.parametrize(
    ("command", "times"),
    [
        ("OLD2", [2.0]),  # a log that the training adds to
        ("rm -f LOGS/result_0.txt; TRAIN LOGS/result_0.txt stretch=2", [2.0]),
        (": >LOGS/result_0.txt; TRAIN LOGS/result_0.txt stretch=2", [2.0]),
        ("mv LOGS/result_0.txt LOGS/result_0.bak; TRAIN LOGS/result_0.txt stretch=2", [2.0]),
        ("touch LOGS/*; TRAIN LOGS/result_1.txt stretch=2; ln -s result_1.txt LOGS/latest", [2.0]),
        ("TRAIN LOGS/a.txt stretch=2; cp LOGS/a.txt LOGS/slurm-1.out", [2.0]),  # the same run twice
        ("TRAIN LOGS/b.txt stretch=2; mkdir LOGS/run; TRAIN LOGS/run/a.txt stretch=3", [2.0, 3.0]),
        ("TRAIN LOGS/a.txt stretch=2; gzip LOGS/a.txt", [2.0]),
        ("printf 'PK\\0\\0:::MLLOG {' >LOGS/checkpoint.pt; mkfifo LOGS/pipe; TRAIN LOGS/a.txt stretch=2", [2.0]),
    ],
)
def test_only_what_the_command_wrote_counts(host: Host, command: str, times: list[float]) -> None:
    command = command.replace("OLD2", "TRAIN LOGS/result_0.txt stretch=2")
    command = command.replace("TRAIN", TRAIN.removeprefix("exec ")).replace("LOGS", str(host.logs))
    done = host.run(str(host.logs), command)
    assert done.returncode == 0, done.stderr
    assert host.times() == times


def test_the_folder_may_name_case_and_environment(host: Host) -> None:
    command = f"mkdir -p {host.logs}/bert/8; {TRAIN} {host.logs}/bert/$GPUS/log.txt stretch=2"
    done = host.run(f"{host.logs}/$FLEETMARK_CASE/$GPUS", command, "--env=GPUS=8\nNOTE=a b")
    assert done.returncode == 0, done.stderr
    assert host.times() == [2]


def test_a_seed_for_each_repeat(host: Host) -> None:
    assert [host.run("", "echo $SEED", "--seeds=11,12", repeat=n).stdout for n in (0, 1)] == ["11\n", "12\n"]
    more = host.run("", "echo $SEED", "--seeds=11,12", repeat=2)
    assert (more.returncode, more.stdout) == (1, "")
    assert "names 2 seeds, and this is run 3: give as many seeds as there are repeats" in more.stderr


def test_what_is_no_environment_is_told_before_anything_runs(host: Host) -> None:
    done = host.run("", "echo ran", "--env=A=1\nFOO")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "mlperf_training.env: 'FOO' is not NAME=VALUE\n"


def test_without_a_log_it_says_what_to_do(host: Host) -> None:
    nothing = host.run(str(host.logs), "echo 'torch not found' >LOGS/err.txt".replace("LOGS", str(host.logs)))
    assert nothing.returncode == 1
    assert f"but no new MLPerf log below {host.logs}: set mlperf_training.logs" in nothing.stderr
    assert "sbatch --wait" in nothing.stderr
    assert host.collected() == {"1-err.txt.gz": b"torch not found\n"}
    nowhere = host.run("/nowhere", "true")
    assert "but /nowhere is not a folder on this host: set mlperf_training.logs" in nowhere.stderr
    damaged = host.run(str(host.logs), f"head -c 20 /dev/urandom | gzip | head -c 15 >{host.logs}/a.txt.gz")
    assert f"({host.logs}/a.txt.gz: " in damaged.stderr


def test_it_ends_as_the_command_did_and_keeps_the_log_and_its_last_line(host: Host) -> None:
    command = f"{TRAIN.removeprefix('exec ')} {host.logs}/a.txt evals=2 then=kill; echo 'CUDA error' >>{host.logs}/a.txt; exit 7"
    assert host.run(str(host.logs), command).returncode == 7
    assert host.collected()["mllog.txt.gz"].decode().endswith("CUDA error\n")
    assert host.run(str(host.logs), "kill -9 $$").returncode == 128 + 9
    assert host.collected() == {}


def test_a_training_that_is_told_to_end_leaves_its_log(host: Host) -> None:
    """As at the timeout: the process group gets SIGTERM, and SIGKILL 3 seconds later."""
    log = host.logs / "a.txt"
    words = host.words(str(host.logs), f"trap '' TERM; {TRAIN.removeprefix('exec ')} {log} evals=2 then=hang")
    env = {**os.environ, "FLEETMARK_REPEAT": "0"}
    running = subprocess.Popen(words, cwd=host.scratch, env=env, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (log.exists() and "Watchdog" in log.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGTERM)
        assert running.wait(60) == 128 + 9  # it would not listen
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert host.collected()["mllog.txt.gz"].decode().endswith("Watchdog caught collective operation timeout\n")
    assert not list((host.scratch / "collected").glob("*.part"))


def test_many_files_and_large_ones_stay_on_the_host(host: Host) -> None:
    command = (
        f"cd {host.logs}; for n in $(seq 120); do echo x >noise$n.txt; done; head -c 300M /dev/zero | tr '\\0' x >big.txt; "
        f"{TRAIN} zzz.txt stretch=2"
    )
    done = host.run(str(host.logs), command)
    assert done.returncode == 0, done.stderr
    collected = host.collected()
    assert host.times() == [2]
    assert collected["1-zzz.txt.gz"].startswith(b":::MLLOG")  # logs come first
    assert len(collected) == 1 + 99
    assert f"not brought back whole: {host.logs}/big.txt" in done.stdout


def test_odd_names_are_made_plain(host: Host) -> None:
    name = os.fsencode(host.logs) + b"/r\xe9sult ;1.txt"
    Path(os.fsdecode(host.logs / "from")).write_bytes(STANDIN.with_name("retinanet.txt").read_bytes())
    done = host.run(str(host.logs), f"cp {host.logs}/from \"$(printf '{host.logs}/r\\351sult ;1.txt')\"")
    assert done.returncode == 0, done.stderr
    assert Path(os.fsdecode(name)).exists()
    assert set(host.collected()) == {"mllog.txt.gz", "1-r_sult__1.txt.gz"}
