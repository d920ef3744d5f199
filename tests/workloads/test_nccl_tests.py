"""nccl-tests and rccl-tests before any host is touched: what is refused, what is skipped, which commands are scheduled."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Gpu
from fleetmark.campaign.schedule import make_schedule, settings_of
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import HostSchedule, Schedule
from fleetmark.workloads import Suite, load_suite
from tests.schedules import facts

SOFTWARE = {"cuda": "12.8", "nccl": "2.21.5", "mpi": "Open MPI 4.1.4"}
TOOLS = {"make": "/usr/bin/make", "g++": "/usr/bin/g++", "srun": None}


def gpus(count: int, name: str = "NVIDIA H100", vendor: str = "nvidia") -> tuple[Gpu, ...]:
    return tuple(Gpu(index=n, name=name, vendor=vendor, driver="570.86") for n in range(count))


def chosen(folder: Path, workload: str, settings: dict[str, Any]) -> Suite:
    file = folder / "mine.yml"
    quoted = ", ".join(f"{k}: {v!r}" for k, v in settings.items())
    file.write_text(f"description: x\nrepeats: 1\nworkloads:\n  {workload}: {{set: {{{quoted}}}}}\n")
    return load_suite(str(file))


def planned(folder: Path, *hosts: dict[str, Any], workload: str = "nccl_tests", **settings: Any) -> Schedule:
    """A plan for hosts with two GPUs each and all that is needed, but for what ``hosts`` say otherwise."""
    named = []
    for n, more in enumerate(hosts, 1):
        usual = {"hostname": f"h{n}.lab", "gpus": gpus(2), "software": SOFTWARE, "tools": TOOLS}
        named.append((Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), facts(**{**usual, **more})))
    small = {"collectives": ["all_reduce"], **settings}
    return make_schedule(named, chosen(folder, workload, small), {}, campaign="c1", seed=1, repeats=None)


def one(
    folder: Path, workload: str = "nccl_tests", facts: dict[str, Any] | None = None, **settings: Any
) -> HostSchedule:
    return planned(folder, facts or {}, workload=workload, **settings).hosts["h1"]


def command(plan: HostSchedule, case: str) -> str:
    """The planned command as a line, its program without the folder and what follows it."""
    (step,) = [s for s in plan.steps if s.case == case]
    line = shlex.join(step.argv)
    return line[: line.index("_perf") + 5].replace("/var/tmp/fleetmark-0/tools/", "")


def test_one_process_drives_all_gpus_of_a_host(tmp_path: Path) -> None:
    (step,) = one(tmp_path, nodes=["1"]).steps
    assert step.case == "all_reduce"
    assert shlex.join(step.argv[1:]) == "-g 2 -b 8 -e 8589934592 -f 2 -n 20 -w 5 -d float -o sum -c 1"
    assert step.argv[0].endswith("/all_reduce_perf")
    assert step.timeout_s == 1800
    (step,) = one(tmp_path, nodes=["1"], one_node="threads", args="-G 1").steps
    assert step.argv[1:3] == ("-t", "2")
    assert step.argv[-2:] == ("-G", "1")


def test_a_process_for_each_gpu_goes_by_the_hosts_own_launcher(tmp_path: Path) -> None:
    line = command(one(tmp_path, nodes=["1"], one_node="processes"), "all_reduce")
    assert line.startswith("mpirun --host localhost:2 -np 2 --map-by ppr:2:node --allow-run-as-root --bind-to none")
    assert "-g" not in one(tmp_path, nodes=["1"], one_node="processes").steps[0].argv


def test_open_mpi_starts_a_process_for_each_gpu_of_all_hosts_over_plain_ssh(tmp_path: Path) -> None:
    plan = planned(tmp_path, {}, {}, {}, {}, nodes=["1", "2", "all"], mpi_args="--mca oob_tcp_if_include eth0")
    lead = plan.hosts["h1"]
    assert {s.case for s in lead.steps} == {"all_reduce", "all_reduce-2n", "all_reduce-4n"}
    line = command(lead, "all_reduce-4n")
    assert line.startswith(
        "mpirun --host 10.0.0.1:2,10.0.0.2:2,10.0.0.3:2,10.0.0.4:2 -np 8 --map-by ppr:2:node --allow-run-as-root --bind-to none "
        "--mca plm_rsh_no_tree_spawn 1 --mca plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=30' "
        "--mca oob_tcp_if_include eth0 env FLEETMARK_CAMPAIGN=c1 nccl_tests-"
    )
    (step,) = [s for s in lead.steps if s.case == "all_reduce-4n"]
    assert step.members == ("h1", "h2", "h3", "h4")
    assert "-g" not in step.argv


def test_an_ordinary_user_and_another_binding(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"root": False}, {"root": False}, nodes="all", mpi_args="--bind-to numa")
    line = command(plan.hosts["h1"], "all_reduce-2n")
    assert "--allow-run-as-root" not in line
    assert line.count("--bind-to") == 1


@pytest.mark.parametrize("mpi", ["Intel MPI 2021.13", "Hydra 4.0.2"])
def test_hydra_is_known_by_its_version(tmp_path: Path, mpi: str) -> None:
    host = {"software": SOFTWARE | {"mpi": mpi}}
    line = command(planned(tmp_path, host, host, nodes="all", mpi_home="/opt/mpi").hosts["h1"], "all_reduce-2n")
    assert line.startswith(
        "/opt/mpi/bin/mpirun -hosts 10.0.0.1,10.0.0.2 -n 4 -ppn 2 -wdir /tmp -genv I_MPI_PIN off env FLEETMARK_CAMPAIGN=c1 "
    )


def test_srun_where_there_is_no_mpirun(tmp_path: Path) -> None:
    host = {"software": {"cuda": "12.8", "nccl": "2.21.5"}, "tools": TOOLS | {"srun": "/usr/bin/srun"}}
    line = command(planned(tmp_path, host, host).hosts["h1"], "all_reduce-2n")
    assert line.startswith(
        "/usr/bin/srun --nodelist=h1,h2 -N 2 -n 4 --ntasks-per-node 2 --chdir /tmp --cpu-bind none --kill-on-bad-exit --mpi=pmix env "
    )
    plan = planned(tmp_path, host, host, nodes="all", mpi_args="--mpi=pmi2 --gpus-per-node=2")
    assert "--mpi=pmix" not in command(plan.hosts["h1"], "all_reduce-2n")


def test_nodes_of_a_slurm_job_start_by_srun_under_their_names_in_slurm(tmp_path: Path) -> None:
    hosts = [{"tools": TOOLS | {"srun": "/opt/slurm/bin/srun"}, "slurm_node": f"gpu-{n}"} for n in (1, 2)]
    line = command(planned(tmp_path, *hosts).hosts["h1"], "all_reduce-2n")
    assert line.startswith("/opt/slurm/bin/srun --nodelist=gpu-1,gpu-2 -N 2 ")
    line = command(planned(tmp_path, *hosts, launcher="openmpi").hosts["h1"], "all_reduce-2n")
    assert line.startswith("mpirun --host 10.0.0.1:2,10.0.0.2:2 ")


def test_variables_reach_all_ranks_with_their_commas(tmp_path: Path) -> None:
    plan = planned(tmp_path, {}, {}, nodes=["1", "all"], env="NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_DEBUG=WARN")
    many = command(plan.hosts["h1"], "all_reduce-2n")
    assert "env FLEETMARK_CAMPAIGN=c1 NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_DEBUG=WARN nccl_tests-" in many
    assert command(plan.hosts["h1"], "all_reduce").startswith(
        "env NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_DEBUG=WARN nccl_tests-"
    )


def test_a_sweep_is_a_case_for_each_alternative(tmp_path: Path) -> None:
    plan = one(tmp_path, nodes=["1"], sweep=["none", "NCCL_ALGO=Ring NCCL_PROTO=Simple", "NCCL_ALGO=Tree"])
    assert {s.case for s in plan.steps} == {
        "all_reduce",
        "all_reduce@NCCL_ALGO=Ring;NCCL_PROTO=Simple",
        "all_reduce@NCCL_ALGO=Tree",
    }
    line = command(plan, "all_reduce@NCCL_ALGO=Ring;NCCL_PROTO=Simple")
    assert line.startswith("env NCCL_ALGO=Ring NCCL_PROTO=Simple nccl_tests-")


def test_a_count_that_is_all_of_them_runs_once(tmp_path: Path) -> None:
    plan = planned(tmp_path, {}, {}, nodes=["2", "all"])
    assert [s.case for s in plan.hosts["h1"].steps] == ["all_reduce-2n"]
    alone = planned(tmp_path, {}, nodes=["1", "all"])
    assert [s.case for s in alone.hosts["h1"].steps] == ["all_reduce"]


def test_hosts_of_one_gpu_meet_over_the_network(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"gpus": gpus(1)}, {"gpus": gpus(1)})
    assert [s.case for s in plan.hosts["h1"].steps] == ["all_reduce-2n"]
    assert "second GPU" in planned(tmp_path, {"gpus": gpus(1)}, nodes="1").hosts["h1"].skipped["nccl_tests"]


def test_what_changes_the_programs_changes_their_folder(tmp_path: Path) -> None:
    def folder(host: dict[str, Any] | None = None, **settings: Any) -> str:
        (deployment,) = one(tmp_path, facts=host, **{"nodes": ["1"], **settings}).deploy
        return deployment.provides

    usual = folder()
    assert folder() == usual
    others = [
        folder(commit="b" * 40, commit_sha256="c" * 64),
        folder(nodes=["2"]),
        folder(library_home="/opt/nccl"),
        folder(make_args="DEBUG=1"),
        folder({"software": SOFTWARE | {"nccl": "2.22.3"}}),
        folder({"gpus": gpus(2, "NVIDIA A100")}),
    ]
    assert len({usual, *others}) == len(others) + 1
    assert folder(iterations=5) == usual
    assert folder(one_node="processes") == folder(nodes=["2"]), "with MPI both"


def test_programs_that_are_there_are_not_built(tmp_path: Path) -> None:
    host: dict[str, Any] = {"software": {}, "tools": {}}
    plan = one(tmp_path, facts=host, path="/opt/nccl-tests/build")
    assert not plan.deploy
    assert plan.steps[0].argv[0] == "/opt/nccl-tests/build/all_reduce_perf"


def test_building_needs_root_only_where_tools_are_missing(tmp_path: Path) -> None:
    lacking = {"root": False, "tools": {"make": None, "g++": "/usr/bin/g++"}}
    assert one(tmp_path, facts=lacking).skipped["nccl_tests"] == (
        "needs make g++: sudo apt-get install make g++, or let Fleetmark do it as root (--become)"
    )
    assert one(tmp_path, facts={"root": False}).deploy


@pytest.mark.parametrize(
    ("host", "settings", "words"),
    [
        ({"gpus": ()}, {}, "needs NVIDIA GPUs: nvidia-smi shows none; install the driver"),
        ({"gpus": gpus(2, "MI300X", "amd")}, {}, "needs NVIDIA GPUs"),
        ({}, {"gpus": 8}, "needs 8 GPUs: this host has 2"),
        ({"software": {"nccl": "2.21.5"}}, {}, "needs nvcc (install the CUDA toolkit on this host), or toolkit_home"),
        ({"software": {"cuda": "12.8"}}, {}, "needs NCCL (install libnccl2 and libnccl-dev, or libnccl-devel, on this host)"),
        ({"software": {"cuda": "12.8", "nccl": "2.21.5"}}, {"nodes": ["1", "all"]}, "needs mpirun to start processes on several hosts"),
        ({"software": {"cuda": "12.8", "nccl": "2.21.5"}}, {"one_node": "processes"}, "needs mpirun to start processes for each GPU"),
        ({}, {"launcher": "srun"}, "needs srun to start processes on several hosts (install slurm-client"),
    ],
)  # fmt: skip
def test_a_host_that_lacks_something_is_told_the_next_step(
    tmp_path: Path, host: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    assert one(tmp_path, facts=host, **settings).skipped["nccl_tests"].startswith(words)


def test_without_a_launcher_hosts_measure_by_themselves(tmp_path: Path) -> None:
    host = {"software": {"cuda": "12.8", "nccl": "2.21.5"}}
    assert [s.case for s in planned(tmp_path, host, host).hosts["h2"].steps] == ["all_reduce"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"software": SOFTWARE | {"nccl": "2.19.3"}}, "NCCL or RCCL differs among the nodes: 2.19.3 on h2; 2.21.5 on h1"),
        ({"software": SOFTWARE | {"mpi": "Open MPI 5.0.3"}}, "MPI differs among the nodes: Open MPI 4.1.4 on h1; Open MPI 5.0.3 on h2"),
        ({"gpus": gpus(4)}, "the set of GPUs differs among the nodes: 2 x NVIDIA H100 on h1; 4 x NVIDIA H100 on h2"),
        ({"work_dir": "/scratch/fleetmark-0"}, "the programs' place differs among the nodes"),
    ],
)  # fmt: skip
def test_unlike_hosts_are_refused_together_and_measure_by_themselves(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    plan = planned(tmp_path, {}, other)
    (refused,) = plan.hosts["h1"].refused
    assert (refused.case, words in refused.reason) == ("all_reduce-2n", True), refused
    assert [s.case for s in plan.hosts["h2"].steps] == ["all_reduce"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"commit": "v2.19.6"}, "needs sources or programs: commit as a full hash of 40 digits"),
        ({"commit": "z" * 40}, "commit as a full hash"),
        ({"commit": "b" * 40}, f"nccl_tests.commit: {'b' * 40} needs a checksum; also set nccl_tests.commit_sha256"),
        ({"commit": "b" * 40, "commit_sha256": "c" * 63}, "commit as a full hash of 40 digits and commit_sha256"),
        ({"git": "", "commit": ""}, "needs sources or programs"),
        ({"path": "nccl-tests/build"}, "path as an absolute path"),
        ({"min_bytes": "1MiB", "max_bytes": "1k"}, r"min_bytes \(1048576\) to be no more than max_bytes \(1024\)"),
        ({"nodes": ["1", "0"]}, "nodes to be numbers or all: it is 1, 0"),
        ({"nodes": ["every"]}, "nodes to be numbers or all: it is every"),
        ({"env": "NCCL_DEBUG"}, "env and sweep to be words NAME=VALUE: NCCL_DEBUG is none"),
        ({"sweep": "NCCL_IB_HCA=mlx5_0,mlx5_1"}, "NAME=VALUE: mlx5_1 is none; a list on the command line splits at commas"),
        ({"collectives": ["all_reduce", "barrier"]}, "'barrier' is not one of all_reduce"),
        ({"source": "https://example.org/nccl-tests.tar.gz"}, "source_sha256 to be the checksum of source: it is not given"),
    ],
)  # fmt: skip
def test_what_the_user_got_wrong_is_said_before_any_host_is_touched(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(FleetmarkError, match=words):
        settings_of(chosen(tmp_path, "nccl_tests", {}), {"nccl_tests": settings})


def test_a_source_with_another_checksum_is_refused_with_both(tmp_path: Path) -> None:
    source = tmp_path / "src.tar"
    source.write_bytes(b"sources")
    right, wrong = hashlib.sha256(b"sources").hexdigest(), "0" * 64
    with pytest.raises(FleetmarkError, match=f"it is {wrong}, and {source} has {right}"):
        settings_of(chosen(tmp_path, "nccl_tests", {"source": str(source), "source_sha256": wrong}), {})
    assert one(tmp_path, source=str(source), source_sha256=right.upper()).deploy


def test_rccl_is_the_same_with_what_amd_calls_it(tmp_path: Path) -> None:
    host = {
        "gpus": gpus(8, "MI300X", "amd"),
        "software": {"rocm": "6.2.0", "rccl": "1.0.60200"},
        "tools": {"make": "/usr/bin/make"},
    }
    plan = one(tmp_path, "rccl_tests", facts=host | {"root": False})
    (deployment,) = plan.deploy
    assert deployment.provides.startswith("rccl_tests-")
    assert deployment.params["library"] == "rccl"
    assert plan.steps[0].argv[1:3] == ("-g", "8")
    lacking = one(tmp_path, "rccl_tests", facts=host | {"software": {"rccl": "1.0"}})
    assert lacking.skipped["rccl_tests"].startswith("needs hipcc (install ROCm on this host)")
    assert one(tmp_path, "rccl_tests").skipped["rccl_tests"].startswith("needs AMD GPUs: rocm-smi shows none")
