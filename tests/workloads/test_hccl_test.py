"""hccl_test before any host is touched, and its build from what a CANN toolkit brings."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Gpu
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Schedule
from fleetmark.workloads import load_suite
from tests.schedules import facts

BUILD = PLAYBOOKS / "roles" / "hccl_test" / "files" / "build.sh"
TOOLS = {"make": "/usr/bin/make", "g++": "/usr/bin/g++"}


def scheduled(folder: Path, *hosts: dict[str, Any], settings: str = "") -> Schedule:
    file = folder / "mine.yml"
    file.write_text(
        f"description: x\nrepeats: 1\nworkloads:\n  hccl_test: {{set: {{collectives: [all_reduce]{settings}}}}}\n"
    )
    npus = tuple(Gpu(index=n, name="Ascend 910B2C", vendor="huawei", driver="25.0") for n in range(8))
    software = {"cann": "8.0.RC2", "mpi": "Hydra 4.1.3"}
    usual = {"gpus": npus, "software": software, "tools": TOOLS, "root": True}
    named = [
        (Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), facts(hostname=f"h{n}", **{**usual, **more}))
        for n, more in enumerate(hosts, 1)
    ]
    return make_schedule(named, load_suite(str(file)), {}, campaign="c1", seed=1, repeats=None)


def test_a_process_for_each_npu_on_one_host_and_on_all(tmp_path: Path) -> None:
    steps = {s.case: shlex.join(s.argv) for s in scheduled(tmp_path, {}, {}).hosts["h1"].steps}
    assert set(steps) == {"all_reduce", "all_reduce-2n"}
    assert steps["all_reduce"].startswith("mpirun -hosts localhost -n 8 -ppn 8 -wdir /tmp env FLEETMARK_CAMPAIGN=c1 ")
    assert steps["all_reduce-2n"].startswith("mpirun -hosts 10.0.0.1,10.0.0.2 -n 16 -ppn 8 ")
    assert steps["all_reduce"].endswith(
        "/all_reduce_test -p 8 -b 8192 -e 1073741824 -f 2 -n 20 -w 10 -d fp32 -c 1 -o sum"
    )
    assert "/usr/local/Ascend/ascend-toolkit/latest/lib64" in steps["all_reduce"]


def test_open_mpi_takes_other_words(tmp_path: Path) -> None:
    host = {"software": {"cann": "8.0", "mpi": "Open MPI 4.1.4"}}
    (step,) = scheduled(tmp_path, host, settings=", path: /opt/hccl_test/bin").hosts["h1"].steps
    line = shlex.join(step.argv)
    assert line.startswith("mpirun --host localhost:8 -np 8 --map-by ppr:8:node --bind-to none --allow-run-as-root")
    assert " /opt/hccl_test/bin/all_reduce_test -p 8 " in line


def test_in_a_slurm_job_srun_starts_the_processes_without_ssh(tmp_path: Path) -> None:
    lent = [{"slurm_node": f"n{n}", "tools": {**TOOLS, "srun": "/usr/bin/srun"}} for n in (1, 2)]
    steps = {s.case: shlex.join(s.argv) for s in scheduled(tmp_path, *lent).hosts["h1"].steps}
    assert steps["all_reduce"].startswith("/usr/bin/srun --nodelist=n1 -N 1 -n 8 --ntasks-per-node 8 --chdir /tmp ")
    together = steps["all_reduce-2n"]
    assert together.startswith("/usr/bin/srun --nodelist=n1,n2 -N 2 -n 16 --ntasks-per-node 8 --chdir /tmp ")
    assert " --mpi=pmi2 env FLEETMARK_CAMPAIGN=c1 " in together, "as MPICH has it"
    assert "ssh" not in together
    lent = [{**host, "software": {"cann": "8.0", "mpi": "Open MPI 4.1.4"}} for host in lent]
    (step,) = scheduled(tmp_path, lent[0], settings=", mpi_args: --mpi=pmi1").hosts["h1"].steps
    assert "--mpi=pmi1" in step.argv and "--mpi=pmix" not in step.argv
    (step,) = scheduled(tmp_path, lent[0]).hosts["h1"].steps
    assert "--mpi=pmix" in step.argv


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ({"gpus": ()}, "needs Ascend NPUs: npu-smi shows none"),
        ({"software": {"mpi": "Hydra 4"}}, "needs CANN's toolkit in /usr/local/Ascend"),
        ({"software": {"cann": "8.0"}}, "needs mpirun, which starts a process for each NPU"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, host: dict[str, Any], words: str) -> None:
    assert scheduled(tmp_path, host).hosts["h1"].skipped["hccl_test"].startswith(words)


def test_hosts_that_differ_are_refused(tmp_path: Path) -> None:
    other = {"software": {"cann": "8.2", "mpi": "Hydra 4.1.3"}}
    refused = scheduled(tmp_path, {}, other, settings=", path: /opt/x").hosts["h1"].refused
    assert [r.reason for r in refused] == ["refused: CANN differs among the nodes: 8.0.RC2 on h1; 8.2 on h2"]


def build(dest: Path, toolkit: Path, mpi: Path) -> subprocess.CompletedProcess[str]:
    words = ["sh", "-s", str(dest), str(toolkit), str(mpi)]
    return subprocess.run(words, input=BUILD.read_text(), capture_output=True, text=True, check=False)


def test_the_build_takes_the_toolkit_s_sources_and_names_what_lacks(tmp_path: Path) -> None:
    toolkit, mpi, dest = tmp_path / "cann", tmp_path / "mpi", tmp_path / "dest"
    (mpi / "bin").mkdir(parents=True)
    assert build(dest, toolkit, mpi).stderr.startswith(f"there is no CANN toolkit in {toolkit}")
    sources = toolkit / "tools" / "hccl_test"
    sources.mkdir(parents=True)
    assert "install the whole toolkit of CANN" in build(dest, toolkit, mpi).stderr
    makefile = (
        "all:\n\tmkdir -p bin; for f in all_reduce all_gather; do cp $(MPI_HOME)/bin/mpirun bin/$${f}_test; done\n"
    )
    (sources / "Makefile").write_text(makefile)
    assert "holds no bin/mpirun" in build(dest, toolkit, mpi).stderr
    (mpi / "bin" / "mpirun").write_text("#!/bin/sh\n")
    (mpi / "bin" / "mpirun").chmod(0o755)
    assert build(dest, toolkit, mpi).stdout == f"built with {toolkit} and {mpi}\n"
    assert sorted(p.name for p in dest.iterdir()) == ["all_gather_test", "all_reduce_test"]
    assert build(dest, toolkit, mpi).stdout == "present\n"
    (dest / "all_reduce_test").unlink()
    (sources / "Makefile").write_text("all:\n\tgcc: error: hccl.h: No such file or directory\n")
    assert build(dest, toolkit, mpi).stderr.splitlines()[-1].startswith("make could not build hccl_test: ")
