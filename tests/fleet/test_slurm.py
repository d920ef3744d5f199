"""Campaigns on nodes that a real Slurm lends: eight namespace hosts, one job, no SSH; nodes and jobs end in mid-run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet.command import FLEETMARK, LONG_S
from tests.fleet.hosts import Fleet
from tests.fleet.hosts import missing as no_fleet
from tests.fleet.slurm import Cluster, Lent, missing

pytestmark = pytest.mark.fleet

FOLDER = f".slurm-{os.geteuid()}"
STANDIN = Path(__file__).parents[1] / "standins/nccl_tests"
BUILD = Path(__file__).parents[2] / "playbooks/roles/nccl_tests/files/build.sh"
SLOW = "description: slow\nrepeats: 1\nworkloads:\n  selftest: {set: {commands: 8, seconds: 0.5}}\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A folder that all hosts share; hosts have their own of what lies in /tmp and /var/tmp."""
    if reason := no_fleet() or missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="fleetmark-shared-", dir="/var/lib"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Fleet(8, share=[shared]) as fleet, Cluster(fleet, tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture
def lent(cluster: Cluster, shared: Path) -> Iterator[Lent]:
    root = shared / "results"
    root.mkdir()
    yield Lent(cluster, root)
    # Slurm waits for a minute for what a node that failed had to say of its step.
    cluster.until(lambda: set(cluster.jobs()) <= {"COMPLETING"})
    shutil.rmtree(root)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    (tmp_path / "slow.yml").write_text(SLOW)
    return str(tmp_path / "slow.yml")


def test_a_job_out_of_time_leaves_what_it_finished_and_only_the_rest_is_submitted(lent: Lent, tmp_path: Path) -> None:
    (tmp_path / "long.yml").write_text(SLOW.replace("commands: 8", "commands: 80"))
    running = lent.begin("--nodes", "2", "--suite", str(tmp_path / "long.yml"))
    lent.until(lambda: lent.count()["passed"] >= 2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    seen, job = lent.count()["passed"], lent.job()
    lent.cluster.tell("scontrol", "update", f"job={job}", "EndTime=now")  # Slurm looks for such jobs every 30 s
    lent.cluster.until(lambda: not lent.cluster.jobs())

    lent.cluster.tell("scontrol", "update", "partition=all", "State=INACTIVE")
    done = lent.run("--resume", "last")
    lent.cluster.tell("scontrol", "update", "partition=all", "State=UP")
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("fleetmark: Slurm refuses: ")
    assert [path.name for path in (lent.root / FOLDER / lent.campaign.name).iterdir()] == ["1"]
    before = lent.count()
    assert seen + 4 <= before["passed"] < 160, "what the nodes finished alone was in the shared folder"
    assert f"Slurm job {job} ended: TIMEOUT" in (lent.campaign / "journal.jsonl").read_text()

    resumed = lent.begin("--resume", "last")
    lent.until(lambda: lent.count()["passed"] >= before["passed"] + 2)
    os.killpg(resumed.pid, signal.SIGINT)
    assert resumed.wait(LONG_S) in (0, 3), lent.output()  # 0: a busy machine was late with the order
    assert lent.job() != job
    owed = next(e["owed"] for e in lent.events() if e["e"] == "resumed")
    assert sum(owed.values()) == 160 - before["passed"]


def test_a_controller_that_was_killed_goes_on_with_the_job_that_runs(lent: Lent, slow: str) -> None:
    running = lent.begin("--nodes", "2", "--suite", slow)
    lent.until(lambda: lent.count()["passed"] >= 2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    job = lent.job()
    done = lent.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lent.count() == {"passed": 16}
    assert lent.job() == job


def test_a_job_that_slurm_requeues_goes_on_where_it_has_the_same_nodes(lent: Lent, slow: str) -> None:
    cluster = lent.cluster
    running = lent.begin("--nodes", "2", "--suite", slow)
    lent.until(lambda: min(lent.count(host=h)["passed"] for h in ("h1", "h2")) >= 2)
    cluster.tell("scontrol", "update", "node=h2,h[4-8]", "State=DRAIN", "Reason=test")
    cluster.tell("scontrol", "requeue", lent.job())
    cluster.until(lambda: cluster.jobs() == ["PENDING"])
    cluster.tell("scontrol", "update", f"job={lent.job()}", "StartTime=now")  # else it waits for two minutes
    assert running.wait(LONG_S) == 1, lent.output()
    cluster.tell("scontrol", "update", "node=h2,h[4-8]", "State=RESUME")
    assert lent.count(host="h1") == {"passed": 8}, lent.output()
    assert lent.count(host="h2")["lost"] >= 1
    assert f"Slurm job {lent.job()} restarted on other nodes" in lent.output()
    done = lent.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lent.count() == {"passed": 16}


def test_tools_are_built_and_pairs_measured_without_ssh(lent: Lent, tmp_path: Path) -> None:
    text = "description: x\nrepeats: 1\nworkloads:\n  stream: {set: {array_elements: 1000000, ntimes: 2, threads: 1}}\n"
    text += "  iperf3: {set: {duration: 1, omit: 0, streams: 2, udp_rate: ''}}\n"
    (tmp_path / "suite.yml").write_text(text)
    for host in lent.fleet.names:
        lent.fleet.exec(host, ["pkill", "-x", "sshd"], check=False)
    done = lent.run("--nodelist", "h1,h[3-3]", "--constraint", "gen:old", "--suite", str(tmp_path / "suite.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is submitted: 2 nodes of partition all" in done.stdout
    frame = pd.read_parquet(lent.campaign / "measurements.parquet")
    assert set(frame.query("metric == 'triad'")["host"]) == {"h1", "h3"}
    assert {"h1>h3", "h3>h1"} <= set(frame["subject"])


def test_repeats_end_when_the_interval_is_narrow(lent: Lent, tmp_path: Path) -> None:
    """The order to drop what is not needed reaches the nodes through the shared folder."""
    # The uptime of a host hardly changes between repeats, whatever else the machine does.
    text = "description: x\nworkloads:\n  selftest: {set: {commands: 2}}\n"
    (tmp_path / "suite.yml").write_text(text)
    wide = ("--until-ci", "90%", "--repeats", "6", "--max-repeats", "14")
    done = lent.run("--nodes", "2", "--constraint", "gen:old", "--suite", str(tmp_path / "suite.yml"), *wide)
    assert done.returncode == 0, done.stdout + done.stderr
    enough = [e for e in lent.events() if e["e"] == "enough"]
    assert {e["host"] for e in enough} == {"h1", "h3"}
    for e in enough:
        ran = sum(lent.count(host=e["host"], case=e["case"]).values())
        assert 6 <= ran < 14 and len(e["steps"]) == 14 - e["repeats"]
    assert lent.events()[-1]["owed"] == 0
    assert not list((lent.root / FOLDER).iterdir())


def test_groups_start_by_srun_inside_the_job(lent: Lent, shared: Path, tmp_path: Path) -> None:
    """Ranks of an MPI program on two nodes, if no host lets another in."""
    if absent := [tool for tool in ("mpirun", "mpicc", "make", "gcc") if shutil.which(tool) is None]:
        pytest.skip(f"hosts that run MPI need {', '.join(absent)} (openmpi-bin, make, gcc)")
    for host in ("h1", "h2"):
        lent.fleet.exec(host, ["sh", "-s", "nccl", "2.21.5"], input=(STANDIN / "host.sh").read_text())
        lent.fleet.exec(host, ["pkill", "-x", "sshd"], check=False)
    programs = shared / "nccl-tests"
    programs.mkdir()
    with tarfile.open(programs / "source.tar", "w") as tar:
        for name in ("Makefile", "perf.c"):
            tar.add(STANDIN / name, f"nccl-tests-2.17.8/{name}")
    build = ["sh", "-s", str(programs), "nccl", "", "", "", "mpi", ""]
    lent.fleet.exec("h1", build, input=BUILD.read_text())
    settings = {"path": str(programs), "collectives": "all_reduce", "nodes": "2"}
    settings |= {"min_bytes": 1024, "max_bytes": "64MiB", "step_factor": 16}
    (tmp_path / "suite.yml").write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {"nccl_tests": {"set": settings}}})
    )
    done = lent.run("--nodelist", "h1,h2", "--suite", str(tmp_path / "suite.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    frame = pd.read_parquet(lent.campaign / "measurements.parquet")
    assert set(frame.query("metric == 'ranks'")["value"]) == {4}
    (step,) = json.loads((lent.campaign / "jobs" / "h1.json").read_text())["steps"]
    assert step["argv"][0].endswith("/srun") and "--nodelist=h1,h2" in step["argv"]


def test_ctrl_c_cancels_the_job(lent: Lent, slow: str) -> None:
    running = lent.begin("--nodes", "2", "--suite", slow)
    lent.until(lambda: lent.count()["passed"] >= 1)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(LONG_S) == 3, lent.output()
    lent.cluster.until(lambda: not lent.cluster.jobs())
    assert lent.count()["passed"] >= 1


def test_nodes_are_listed_without_running_on_them(lent: Lent) -> None:
    words = [FLEETMARK, "hosts", "--slurm", "--partition", "all", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, env=lent.env, cwd=lent.root)
    listed = json.loads(done.stdout)
    assert [node["name"] for node in listed] == lent.fleet.names
    assert listed[1]["labels"] == {"partition": "all", "gen": "new", "ib": "true"}
    assert listed[1]["memory_b"] == 512 << 20
    table = subprocess.run(words[:-2], capture_output=True, text=True, env=lent.env, cwd=lent.root).stdout
    assert "gen=new" in table


def test_what_cannot_be_is_refused_before_a_job_is_submitted(lent: Lent, slow: str, tmp_path: Path) -> None:
    sentence = lent.refused("--partition", "gpu")
    assert sentence == "fleetmark: --partition gpu: no such partition; use one of all, short"
    assert lent.refused("--nodes", "9") == "fleetmark: --nodes 9: partition all has 8 nodes"
    long = ("--set", "selftest.seconds=60", "--suite", "selftest")
    sentence = lent.refused("--time", "5", *long)
    assert sentence.startswith(
        "fleetmark: --time 5 is 5 min, and suite selftest takes about 6 min there; request more with"
    )
    sentence = lent.refused("--partition", "short", *long)
    assert sentence.startswith(
        "fleetmark: the time limit of partition short is 60 s, and suite selftest takes about 6 min"
    )
    assert lent.refused("--time", "soon").startswith("fleetmark: --time soon: write it as Slurm does")
    sentence = lent.refused("--partition", "short", "--time", "5")
    assert sentence == "fleetmark: --time 5: partition short allows at most 1:00 per job; request less"
    sentence = lent.refused("--nodes", "1", "--constraint", "gen:none", "--suite", slow)
    none = "fleetmark: --constraint gen:none: none of the 8 nodes of partition all fit; the available features are gen:new, gen:old, ib"
    assert sentence == none
    sentence = lent.refused("--nodelist", "h[1-2],h77", "--suite", slow)
    assert sentence == "fleetmark: --nodelist h[1-2],h77: partition all has no node h77"
    sentence = lent.refused("--nodes", "1", "--sbatch=--licenses=none", "--suite", slow)
    assert sentence.startswith("fleetmark: Slurm refuses: ") and "license" in sentence
    assert not (lent.root / FOLDER).exists(), "what is refused leaves nothing"
    sentence = lent.refused("--account", "x", "-i", "h1,")
    assert sentence.startswith("fleetmark: -i with --slurm: its nodes are chosen by --partition")
    private = tmp_path / "private"
    done = lent.run("--nodes", "1", "--suite", slow, "--shared", str(private))
    assert done.returncode == 2
    assert done.stderr.startswith(f"fleetmark: {private} is not shared: h")
    lent.env["SLURM_CONF"] = str(lent.cluster.unreachable())
    sentence = lent.refused("--nodes", "1")
    assert sentence.startswith("fleetmark: Slurm does not answer: ")
    assert sentence.endswith("is slurmctld up, and is this a machine of the cluster?")


def test_a_node_that_fails_costs_what_it_had_not_finished_and_resumes(lent: Lent, slow: str) -> None:
    running = lent.begin("--partition", "all", "--nodes", "8", "--suite", slow)
    lent.until(lambda: lent.count(host="h3")["passed"] >= 2)
    lent.fleet.power_off("h3")
    try:
        assert running.wait(LONG_S) == 1, lent.output()
    finally:
        lent.fleet.power_on("h3")
        lent.cluster.join("h3")
    assert lent.count(host="h3")["passed"] + lent.count(host="h3")["lost"] == 8
    assert lent.count(host="h3")["lost"] >= 1
    assert lent.count()["passed"] == 56 + lent.count(host="h3")["passed"]
    assert "Slurm reports the node as" in lent.output() or "Slurm removed the node" in lent.output()
    labels = {h["name"]: h["labels"] for h in json.loads((lent.campaign / "campaign.json").read_text())["hosts"]}
    assert labels["h2"] == {"partition": "all", "gen": "new", "ib": "true"}

    lent.cluster.until(lambda: lent.cluster.ask("sinfo", "-h", "-n", "h3", "-o", "%T", "-p", "all").split() == ["idle"])
    done = lent.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lent.count() == {"passed": 64}
    assert not list((lent.root / FOLDER).iterdir()), "nothing is owed: what nodes wrote is removed"
