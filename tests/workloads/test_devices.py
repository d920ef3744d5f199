"""Workloads of programs that users build: what is refused or skipped, and the commands that they become."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Gpu
from fleetmark.campaign.schedule import settings_of
from fleetmark.workloads import Choice, Suite
from tests.workloads.scheduling import reason, scheduled


@pytest.mark.parametrize(
    ("workload", "settings", "words"),
    [
        ("babelstream", {}, "babelstream.path: the absolute path of a program"),
        ("osu", {}, "osu.path: the folder on the hosts that holds osu_latency"),
        ("osu", {"path": "/opt/osu", "collectives": ["--help"]}, "as names of tests without osu_"),
        ("rocm_bandwidth_test", {"path": "rbt"}, "rocm_bandwidth_test.path to be an absolute path"),
    ],
)
def test_mistakes_are_refused_before_any_host_is_touched(workload: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        settings_of(Suite(name="s", description="x", workloads={workload: Choice(set=settings)}), {})


def test_what_a_host_lacks_is_one_sentence() -> None:
    assert "AMD GPUs: rocm-smi shows none" in reason(
        "rocm_bandwidth_test", gpus=(Gpu(index=0, vendor="nvidia", name="x"),)
    )
    assert "Open MPI's mpirun" in reason("osu", {"path": "/opt/osu"}, software={"mpi": "Intel MPI 2021"})
    assert "set babelstream.target=cpu" in reason("babelstream", {"path": "/opt/b", "target": "gpu"})


def test_babelstream_on_processors() -> None:
    (step, *_) = scheduled("babelstream", 1, path="/opt/b/omp-stream", times=5, array_elements=1 << 20)["h1"]
    assert step.case == "cpu"
    assert list(step.argv) == ["/opt/b/omp-stream", "--csv", "--device", "0", "-s", "1048576", "-n", "5"]


def test_osu_between_two_hosts_and_within_each() -> None:
    mpi = {"software": {"mpi": "Open MPI 4.1.4"}}
    steps = scheduled("osu", 2, [mpi, mpi], path="/opt/osu", ranks=4)
    within, between = ({s.case: list(s.argv) for s in steps[host] if s.argv} for host in ("h2", "h1"))
    tests = {"latency", "bw", "allreduce", "alltoall", "mbw_mr"}
    assert set(within) == tests and set(between) == tests | {f"{t}-2n" for t in tests}

    def processes(argv: list[str]) -> tuple[str, str, str]:
        return argv[argv.index("-np") + 1], argv[argv.index("--map-by") + 1], argv[argv.index("--host") + 1]

    hosts = "10.0.0.1:8,10.0.0.2:8"
    assert processes(between["latency-2n"]) == ("2", "node", hosts)  # one on each
    assert processes(between["mbw_mr-2n"]) == ("8", "ppr:4:node", hosts)  # the first four are on the first host
    assert processes(within["latency"]) == ("2", "node", "localhost:8")
