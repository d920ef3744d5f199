"""nccl-tests over real SSH, MPI and Slurm: built on hosts that pass for GPU servers, run by one and by many, broken in the ways
that collectives break."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.fleet.command import LONG_S, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
STANDIN = Path(__file__).parents[1] / "standins" / "nccl_tests"
ROLE = Path(__file__).parents[2] / "playbooks/roles/nccl_tests/files"
ARCHIVE = ROLE.parents[1] / "source/files/archive.sh"
OURS = "all_reduce_perf|orted|mpirun|srun"
HANGS_S = 15  # what hangs is ended then, and what does not has ended long before, even on a busy machine


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three GPU servers, for this file alone: their software changes from test to test."""
    if reason := missing():
        pytest.skip(reason)
    for tool in ("mpirun", "mpicc", "make", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"hosts that run MPI need {tool} (openmpi-bin, make, gcc)")
    with Fleet(3) as hosts:
        for host in hosts.names:
            gpu_server(hosts, host)
        yield hosts


def gpu_server(fleet: Fleet, host: str, library: str = "nccl", version: str = "2.21.5") -> None:
    fleet.exec(host, ["sh", "-s", library, version], input=(STANDIN / "host.sh").read_text())


def sh(fleet: Fleet, host: str, script: str) -> str:
    return fleet.exec(host, ["sh", "-c", script], check=False).stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What plays the sources of nccl-tests, as a tar file with its checksum."""
    file = tmp_path_factory.mktemp("source") / "nccl-tests.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        for name in ("Makefile", "perf.c"):
            tar.add(STANDIN / name, f"nccl-tests-2.17.8/{name}")
    return {"source": str(file), "source_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


@pytest.fixture
def command(fleet: Fleet, tmp_path: Path) -> Command:
    return Command(fleet, tmp_path)


@pytest.fixture
def suite(tmp_path: Path, source: dict[str, Any]) -> Callable[..., str]:
    """A suite file of one small all_reduce; JSON, which is YAML too."""

    def write(*, workload: str = "nccl_tests", others: dict[str, Any] | None = None, **settings: Any) -> str:
        usual = {"collectives": "all_reduce", "min_bytes": 1024, "max_bytes": "64MiB", "step_factor": 16, "timeout": 60}
        file = tmp_path / "suite.yml"
        chosen = {workload: {"set": {**source, **usual, **settings}}, **(others or {})}
        file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
        return str(file)

    return write


def steps(command: Command, host: str) -> dict[str, dict[str, Any]]:
    job = json.loads((command.campaign / "jobs" / f"{host}.json").read_text())
    return {step["case"]: step for step in job["steps"] if not step["serves"]}


def idle(fleet: Fleet, *hosts: str) -> bool:
    """Whether nothing of ours is left there."""
    left = {host: sh(fleet, host, f"pgrep -fa '[/]({OURS})|^({OURS})'") for host in hosts}
    assert not any(left.values()), left
    return True


def test_one_host_two_and_three_by_mpirun(command: Command, suite: Callable[..., str]) -> None:
    done = command.run(
        "--suite",
        suite(nodes=["1", "2", "all"], env="NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_DEBUG=WARN", sweep="NCCL_ALGO=Tree"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 3 + 2 + 1}  # each host, two pairs of hosts, all of them

    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert all("2.17.8" in version for version in frame["tool_version"])
    ranks = frame.query("metric == 'ranks'").set_index(["host", "case"])["value"]
    assert ranks["h3", "all_reduce@NCCL_ALGO=Tree"] == 2
    assert ranks["h2", "all_reduce-2n@NCCL_ALGO=Tree"] == 4
    assert ranks["h1", "all_reduce-3n@NCCL_ALGO=Tree"] == 6
    assert set(frame.query("metric == 'nodes' and subject == '3 nodes'")["value"]) == {3}
    peak = frame.query("metric == 'peak_busbw' and labels == '{}'").set_index(["host", "case"])["value"]
    # The stand-in's tree moves 50 GB/s; an all_reduce among 6 ranks counts as 2 * 5/6 of it. So the variable came to all.
    assert peak["h1", "all_reduce-3n@NCCL_ALGO=Tree"] == pytest.approx(2 * 5 / 6 * 50e9, rel=0.02)
    assert peak["h3", "all_reduce@NCCL_ALGO=Tree"] == pytest.approx(50e9, rel=0.02)

    lead = steps(command, "h1")["all_reduce-3n@NCCL_ALGO=Tree"]
    assert lead["members"] == ["h1", "h2", "h3"]
    environment = lead["argv"][lead["argv"].index("env") + 2 :][:3]
    assert environment == ["NCCL_IB_HCA=mlx5_0,mlx5_1", "NCCL_DEBUG=WARN", "NCCL_ALGO=Tree"]
    topology = json.loads((command.campaign / "facts" / "h1.json").read_text())["raw"]["commands"]["nvidia_topo"]
    assert "NV18" in topology["out"]
    compiled = sh(command.fleet, "h1", "cat /var/tmp/compiler.log")
    assert "-gencode=arch=compute_90,code=sm_90" in compiled, "for the GPUs of the host alone"
    assert "-DMPI_SUPPORT" in compiled
    assert idle(command.fleet, *command.fleet.names)


def test_hangs_wrong_data_and_a_rank_that_dies(command: Command, suite: Callable[..., str]) -> None:
    text = suite(nodes="2", timeout=HANGS_S, sweep=["STANDIN_HANG=1", "STANDIN_WRONG=1", "STANDIN_DIE=h2"])
    done = command.run("--suite", text, "--limit", "h1,h2")
    assert done.returncode == 1
    results = {o["case"].partition("@")[2]: (o["status"], o["reason"]) for o in command.outcomes()}
    assert results["STANDIN_HANG=1"][0] == "failed"
    assert results["STANDIN_HANG=1"][1].startswith(f"no end after {HANGS_S} s; nccl_tests")
    assert results["STANDIN_WRONG=1"][0] == "invalid"
    assert "wrong data" in results["STANDIN_WRONG=1"][1]
    assert results["STANDIN_DIE=h2"][0] == "failed"
    assert "h2: Test NCCL failure" in results["STANDIN_DIE=h2"][1]
    assert idle(command.fleet, "h1", "h2")


def test_a_node_that_loses_power_costs_its_case_alone_and_resume_completes(
    command: Command, suite: Callable[..., str]
) -> None:
    text = suite(nodes="all", others={"selftest": {"set": {"commands": 4, "seconds": 0.1}}})
    for host in ("h1", "h2", "h3"):
        sh(command.fleet, host, "echo 90 > /run/standin-slow")
    running = command.begin("--suite", text, "--patience", "4")
    command.until(lambda: sh(command.fleet, "h3", "pgrep -f '[/]all_reduce_perf -b'"))  # at work, not being built
    command.fleet.power_off("h3")
    try:
        assert running.wait(LONG_S) == 1, command.output()
        (lost,) = [o for o in command.outcomes() if o["workload"] == "nccl_tests"]
        assert lost["host"] == "h1"
        assert lost["status"] == "lost"
        assert "its node h3 was lost" in lost["reason"]
        assert command.count(workload="selftest", status="passed", host="h1") == {"passed": 4}
        assert command.count(workload="selftest", host="h2") == {"passed": 4}
        assert idle(command.fleet, "h1", "h2")
    finally:
        command.fleet.power_on("h3")
        for host in ("h1", "h2"):
            sh(command.fleet, host, "rm /run/standin-slow")
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 1 + 3 * 4}


def test_unlike_hosts_are_refused_and_one_without_a_launcher_is_skipped(
    command: Command, suite: Callable[..., str]
) -> None:
    hide = "for f in mpirun srun; do [ ! -e /usr/bin/$f{} ] || mv /usr/bin/$f{} /usr/bin/$f{}; done"
    gpu_server(command.fleet, "h3", version="2.19.3")
    sh(command.fleet, "h1", hide.format("", "", ".hidden"))
    try:
        done = command.run("--suite", suite(nodes="all"))
    finally:
        gpu_server(command.fleet, "h3")
        sh(command.fleet, "h1", hide.format(".hidden", ".hidden", ""))
    assert done.returncode == 1
    results = {o["host"]: (o["status"], o["reason"]) for o in command.outcomes()}
    assert results["h1"][0] == "skipped"
    assert results["h1"][1].startswith("needs mpirun to start processes on several hosts (install Open MPI")
    mixed = "refused: NCCL or RCCL differs among the nodes: 2.19.3 on h3; 2.21.5 on h2"
    assert results["h2"] == ("failed", mixed)


def test_rccl_from_git_whose_build_fails_half_way_and_is_done_again(
    command: Command, suite: Callable[..., str], tmp_path: Path
) -> None:
    """From a repository, by its commit; the programs appear on the host only when all are built."""
    fleet = command.fleet
    fleet.exec("h3", ["mv", "/usr/local/bin/nvidia-smi", "/usr/local/bin/nvidia-smi.hidden"])
    gpu_server(fleet, "h3", "rccl", "1.0.60200")
    repository, commit, sha256 = git_repository(tmp_path)
    command.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    sources = {"source": "", "git": str(repository), "commit": commit, "commit_sha256": sha256}
    text = suite(workload="rccl_tests", **sources, nodes="1", one_node="processes")
    folder = "cd /var/tmp/fleetmark-0/tools/rccl_tests-* && ls -A"
    try:
        sh(fleet, "h3", "touch /etc/standin-broken")
        assert command.run("--suite", text, "--limit", "h3").returncode == 1
        (failed,) = command.outcomes()
        assert failed["status"] == "failed"
        assert failed["reason"] == (
            "could not be deployed: Build rccl-tests: make could not build rccl-tests: "
            'alltoall.cu(33): error: identifier "ncclSend" is undefined'
        )
        assert sh(fleet, "h3", folder).split() == ["source.tar"]

        sh(fleet, "h3", "rm /etc/standin-broken")
        done = command.run("--suite", text, "--limit", "h3")
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(sh(fleet, "h3", folder).split()) == 9
    finally:
        fleet.exec("h3", ["mv", "/usr/local/bin/nvidia-smi.hidden", "/usr/local/bin/nvidia-smi"])
        fleet.exec("h3", ["rm", "-rf", "/opt/rocm"])
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["workload"]) == {"rccl_tests"}
    assert set(frame.query("metric == 'ranks'")["value"]) == {2}
    assert (frame.query("metric == 'peak_busbw'")["value"] > 50e9).all()


def git_repository(folder: Path) -> tuple[Path, str, str]:
    """Return a repository, its commit, and the SHA-256 of the commit's archive."""
    repository = folder / "repository"
    shutil.copytree(STANDIN, repository)
    me = ["-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], [*me, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True).strip()
    archive = subprocess.check_output(["git", "-c", "tar.umask=0002", "archive", commit], cwd=repository)
    return repository, commit, hashlib.sha256(archive).hexdigest()


def test_a_commit_is_archived_once(tmp_path: Path) -> None:
    repository, commit, sha256 = git_repository(tmp_path)

    def archive(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(["sh", str(ARCHIVE), *words], capture_output=True, text=True, env=env)

    wrong = archive(str(repository), commit, "a" * 64)
    assert wrong.returncode == 1
    assert wrong.stderr.splitlines()[-1].startswith(
        f"commit {commit} has sha256 {sha256}, not {'a' * 64}: correct the parameter commit_sha256, or do not use {repository}"
    )
    (path,) = archive(str(repository), commit, sha256).stdout.split()
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == sha256
    with tarfile.open(path) as tar:
        assert "perf.c" in tar.getnames()
    shutil.rmtree(repository)
    assert archive(str(repository), commit, sha256).stdout.split() == [path], "from the cache"
    absent = archive(str(repository), "b" * 40, sha256)
    assert absent.returncode == 1
    assert absent.stderr.startswith(f"could not fetch {repository}: fatal: ")
    assert "give the sources as a tar file" in absent.stderr.splitlines()[-1]
    repository, *_ = git_repository(tmp_path)
    unknown = archive(str(repository), "b" * 40, sha256)
    assert unknown.stderr.splitlines() == [f"{repository} has no commit {'b' * 40}: correct the parameter commit"]
    assert [p.name for p in (tmp_path / "cache/fleetmark").iterdir()] == [f"{sha256}-{commit}.tar"], (
        "nothing half done is left"
    )


@pytest.mark.parametrize(
    ("spoil", "arguments", "words"),
    [
        ("mv /usr/include/nccl.h /usr/include/nccl.hidden", {}, "no nccl.h in the usual places of this host: install nccl's headers (libnccl-dev"),
        ("", {"library_home": "/opt/none"}, "no nccl.h in /opt/none: install"),
        ("rm /usr/lib/*/libnccl.so*", {}, "no libnccl.so in the usual places of this host"),
        ("mv /usr/local/cuda/bin/nvcc /usr/local/cuda/nvcc", {}, "no nvcc on this host: install CUDA's compiler here, or set toolkit_home"),
        ("", {"toolkit_home": "/opt/cuda"}, "toolkit_home /opt/cuda holds no bin/nvcc"),
        ("rm $(mpicc --showme:incdirs | cut -d ' ' -f 1)/mpi.h", {}, "MPI's headers are not on this host: install them (libopenmpi-dev"),
        ("echo no tar > /var/tmp/b/source.tar", {}, "the sources of nccl-tests are no tar archive that can be unpacked here: "),
        ("cd /var/tmp/b; echo > x; tar cf source.tar x; rm x", {}, "the sources of nccl-tests hold no Makefile"),
        ("", {"make_args": "LINK=-lnothing"}, "make could not build nccl-tests: /usr/bin/ld: cannot find -lnothing"),
        ("", {"make_args": "BUILDDIR=/var/tmp/elsewhere"}, "make built no all_reduce_perf"),
    ],
)  # fmt: skip
def test_what_keeps_a_build_from_succeeding_is_named(
    fleet: Fleet, source: dict[str, Any], spoil: str, arguments: dict[str, str], words: str
) -> None:
    """The role's own script on a host, without Ansible around it."""
    sent = base64.b64encode(Path(source["source"]).read_bytes()).decode()
    prepare = f"rm -rf /var/tmp/b; mkdir /var/tmp/b; echo {sent} | base64 -d > /var/tmp/b/source.tar; {spoil}"
    fleet.exec("h3", ["sh", "-c", prepare])
    homes = [arguments.get(name, "") for name in ("toolkit_home", "library_home", "mpi_home")]
    try:
        done = fleet.exec(
            "h3",
            ["sh", "-s", "/var/tmp/b", "nccl", *homes, "mpi", arguments.get("make_args", "")],
            input=(ROLE / "build.sh").read_text(),
            check=False,
        )
    finally:
        gpu_server(fleet, "h3")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(words), done.stderr
    assert sh(fleet, "h3", "ls -A /var/tmp/b").split() == ["source.tar"]


def test_two_hosts_by_srun(command: Command, suite: Callable[..., str]) -> None:
    if any(
        shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None for tool in ("srun", "slurmctld", "munged")
    ):
        pytest.skip("Slurm is not installed here (slurm-wlm)")
    for host in ("h1", "h2"):
        command.fleet.exec(host, ["sh", "-s", "h1", "h[1-2]"], input=(STANDIN / "slurm.sh").read_text())
    text = suite(nodes="2", launcher="srun", timeout=HANGS_S, sweep=["NCCL_ALGO=Tree", "STANDIN_HANG=1"])
    done = command.run("--suite", text, "--limit", "h1,h2")
    assert done.returncode == 1
    results = {o["case"].partition("@")[2]: (o["status"], o["reason"]) for o in command.outcomes()}
    assert results["NCCL_ALGO=Tree"] == ("passed", "")
    assert results["STANDIN_HANG=1"][1].startswith(f"no end after {HANGS_S} s")
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame.query("metric == 'ranks'")["value"]) == {4}
    assert idle(command.fleet, "h1", "h2")
