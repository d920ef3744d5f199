"""``--suite full`` over two SSH hosts: killed in the middle, resumed, and shown on one page.

Real: STREAM, lmbench, fio, iperf3, OpenSSL, HPC Challenge, nginx, Redis, PostgreSQL, torch with gloo, and LoadGen. Stand-ins
play SPEC CPU, MLC, NCCL-tests, nvbandwidth and an LLM server, which need a licence or GPUs. h1 is a plain server; h2 has
an Intel CPU and two GPUs, according to its lscpu and nvidia-smi.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fleetmark.reports.comparison.titles import class_title
from fleetmark.workloads import load_suite, workload_of
from tests import torches
from tests.fleet import tools
from tests.fleet.command import LONG_S, Command
from tests.fleet.hosts import Fleet, missing
from tests.standins.mlc import tarball
from tests.standins.spec_cpu import medium
from tests.torches import PYTHON, needs_torch

pytestmark = [pytest.mark.fleet, needs_torch]
STANDINS = Path(__file__).parents[1] / "standins"
LLM_SERVER = Path(__file__).parents[1] / "llm" / "server.py"
LSCPU = "#!/bin/sh\n/usr/bin/lscpu \"$@\" | sed 's/AuthenticAMD/GenuineIntel/'\n"
# SPEC CPU's stand-in compiles a single program, which this compiler knows.
GFORTRAN = r"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift ;; esac; shift; done
[ -z "$out" ] || { printf '#!/bin/sh\nsleep "$1"\necho "$2"\nexit ${3:-0}\n' >"$out" && chmod 755 "$out"; }
"""
SEARCH = {"latency_target": [0], "duration": 1, "clients": [2], "pairs": "1"}
SKIPPED = {  # workload to the only reason for which a host of this fleet may skip it
    **dict.fromkeys(("torch_ops", "torch_collectives", "torch_train"), "needs a torch that sees an accelerator: "),
    "mlperf_inference": "could not be deployed: Python packages: pip reaches no package index",
}

NO_HARDWARE = {"perftest", "rocm_bandwidth_test", "rccl_tests", "hccl_test"}  # no host has what these measure


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A plain server and a GPU server, for this file alone."""
    if reason := missing():
        pytest.skip(reason)
    for tool in ("mpirun", "mpicc", "make", "g++", "xorriso"):
        if shutil.which(tool) is None:
            pytest.skip(f"this test needs {tool} (openmpi-bin, make, g++, xorriso)")
    with Fleet(2, share=torches.folders()) as hosts:
        furnish(hosts)
        yield hosts


def furnish(fleet: Fleet) -> None:
    """Give the hosts their hardware, a Fortran compiler, and the programs of the stand-ins."""
    put(fleet, "h2", "/usr/local/bin/lscpu", LSCPU)
    for host in fleet.names:
        put(fleet, host, "/usr/local/bin/gfortran", GFORTRAN)
        put(fleet, host, "/opt/llm_server.py", LLM_SERVER.read_text())
    fleet.exec("h2", ["sh", "-s", "nccl", "2.21.5"], input=(STANDINS / "nccl_tests/host.sh").read_text())
    put(fleet, "h2", "/opt/nvbandwidth", (STANDINS / "nvbandwidth/replay.sh").read_text())


def put(fleet: Fleet, host: str, path: str, text: str) -> None:
    fleet.exec(host, ["sh", "-c", f"cat >{path}; chmod 755 {path}"], input=text)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def short(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a user sets to run ``full`` in short, with media and sources made in ``folder``."""
    nccl = folder / "nccl-tests.tar.gz"
    with tarfile.open(nccl, "w:gz") as tar:
        for name in ("Makefile", "perf.c"):
            tar.add(STANDINS / "nccl_tests" / name, f"nccl-tests-2.17.8/{name}")
    media = {2017: medium.make(folder / "cpu2017.iso"), 2026: medium.make(folder / "cpu2026.tar", 2026)}
    mlc = tarball.make(folder / "mlc_v3.11b.tgz")

    def spec(release: int, *benchmarks: str) -> dict[str, Any]:
        small = {"disk": "1MB", "copies": 2, "speed_memory": "1GB", "benchmarks": benchmarks}
        return {"set": {"iso": str(media[release]), "sha256": sha256(media[release]), **small}}

    return {
        "stream": {"set": {"array_elements": 1000000, "ntimes": 3, "threads": 1}},
        "mlc": {"set": {"tarball": str(mlc), "sha256": sha256(mlc), "modes": ["latency_matrix"]}},
        "lmbench": {
            "set": {"path": tools.fetch_lmbench(), "samples": 1},
            "cases": ["lat_syscall-null", "lat_syscall-read"],
        },
        "fio": {"set": {"runtime": 1, "ramp": 0, "size": "16MiB"}, "cases": ["read-*", "randread-*-qd1"]},
        "iperf3": {"set": {"duration": 1, "omit": 0, "pairs": "1"}, "cases": ["tcp-1"]},
        "openssl_speed": {"set": {"algorithms": ["sha256"], "seconds": 1, "processes": 1}},
        "hpcc": {"set": {"path": tools.unpack("hpcc"), "memory_share": 0.00001, "block": 16, "ranks": 1}},
        "nginx_wrk": {"set": {"path": tools.unpack("nginx"), **SEARCH}},
        "redis_benchmark": {"set": {"path": tools.unpack("redis"), "tests": "set", **SEARCH}},
        "pgbench": {
            "set": {"path": tools.unpack("postgresql"), "scale": 1, "shared_buffers": "16MiB", **SEARCH},
            "cases": ["select-only-*"],
        },
        "spec_cpu2017": spec(2017, "502.gcc_r", "503.bwaves_r"),
        "spec_cpu2026": spec(2026, "721.gcc_r", "709.cactus_r"),
        "nvbandwidth": {
            "set": {"path": "/opt/nvbandwidth", "host_tests": ["host_to_device_memcpy_ce"]},
            "cases": ["host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce"],
        },
        "nccl_tests": {
            "set": {"source": str(nccl), "source_sha256": sha256(nccl), "collectives": ["all_reduce"]}
            | {"min_bytes": 1024, "max_bytes": "64MiB", "step_factor": 16}
        },
        "torch_ops": {
            "set": {"python": PYTHON, "grades": ["basic"], "operators": ["mm"], "models": ["llama3-8b-out"]}
            | {"precisions": ["fp32"], "tokens": 16, "budget": 0.01}
        },
        "torch_collectives": {
            "set": {"python": PYTHON, "device": "cpu", "collectives": ["all_reduce"]}
            | {"max_bytes": "8", "budget": 0.05}
        },
        "torch_train": {
            "set": {"python": PYTHON, "device": "cpu", "models": ["gpt-tiny"], "modes": ["single"]}
            | {"batch": 1, "threads": 1, "budget": 0.1}
        },
        "infer_engines": {
            "set": {"python": PYTHON, "engines": ["torch_eager", "onnxruntime"], "networks": ["mlp"]}
            | {"device": "cpu", "batches": [1], "threads": 1, "budget": 0.1}
        },
        "mlperf_inference": {"set": LOADGEN},
        "mlperf_inference@cuda": {"set": LOADGEN | {"provider": "CPUExecutionProvider", "packages": [""]}},
        "llm_serve": {
            "set": {"command": "python3 /opt/llm_server.py --address {address} --port {port}", "pairs": "1"}
            | {"gpus": 0, "concurrency": [2], "ttft": 0, "duration": 4, "warmup": 0.2, "prompt": "40", "output": "16"}
        },
    }


LOADGEN = {"models": ["small"], "threads": 1, "batch": 8, "duration": 1, "scenarios": ["Offline"]}


def write_suite(folder: Path, workloads: Mapping[str, Any]) -> str:
    file = folder / "short.yml"
    file.write_text(
        json.dumps({"description": "full in short", "include": ["full"], "repeats": 1, "workloads": workloads})
    )
    return str(file)


Key = tuple[str, str, str, int, str]


def key_of(outcome: Mapping[str, Any]) -> Key:
    return (outcome["host"], outcome["workload"], outcome["case"], outcome["repeat"], outcome["subject"])


def passed(command: Command) -> dict[Key, str]:
    """Return when each step that passed started."""
    return {key_of(o): o["started"] for o in command.outcomes() if o["status"] == "passed"}


@dataclass(frozen=True)
class Campaign:
    """A finished campaign, and what had passed when its controller was killed."""

    command: Command
    before: Mapping[Key, str]

    @cached_property
    def frame(self) -> pd.DataFrame:
        return pd.read_parquet(self.command.campaign / "measurements.parquet")


@pytest.fixture(scope="module")
def campaign(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("full")
    command = Command(fleet, folder)
    controller = command.begin("--suite", write_suite(folder, short(folder)), "--seed", "7")
    command.until(lambda: len(passed(command)) >= 10)
    controller.kill()
    controller.wait()
    before = passed(command)
    resumed = command.run("--resume", "last", timeout=3 * LONG_S)
    assert "not finished" not in resumed.stdout, resumed.stdout + resumed.stderr
    if unexpected(command):  # a second of measuring may be too little on a busy machine
        command.run("--resume", "last", "--retry-failed", timeout=3 * LONG_S)
    return Campaign(command, before)


def unexpected(command: Command) -> list[str]:
    """Return how steps ended that neither passed nor were skipped for a known reason."""
    return [
        f"{o['host']} {o['workload']} {o['case']}: {o['status']}: {o['reason']}"
        for o in command.outcomes()
        if o["status"] != "passed" and not (o["workload"] in SKIPPED and o["reason"].startswith(SKIPPED[o["workload"]]))
    ]


def test_every_workload_passed_or_was_skipped_for_a_known_reason(campaign: Campaign) -> None:
    command = campaign.command
    assert not unexpected(command)
    ended = {o["workload"] for o in command.outcomes()}
    assert ended == {workload_of(entry) for entry in load_suite("full").chosen()} - NO_HARDWARE
    assert set(campaign.frame["workload"]) >= ended - {"mlperf_inference"}
    hosts = {w: {o["host"] for o in command.outcomes() if o["workload"] == w} for w in ended}
    assert hosts["nvbandwidth"] == hosts["nccl_tests"] == {"h2"}
    assert hosts["mlc"] == ({"h1", "h2"} if "GenuineIntel" in Path("/proc/cpuinfo").read_text() else {"h2"})


def test_a_kill_neither_loses_a_step_nor_measures_one_twice(campaign: Campaign) -> None:
    command = campaign.command
    assert len(campaign.before) >= 10
    assert campaign.before.items() <= passed(command).items()
    journal = [json.loads(line) for line in (command.campaign / "journal.jsonl").read_text().splitlines()]
    times = Counter(key_of(e) for e in journal if e["e"] == "outcome" and e["status"] == "passed")
    assert set(times.values()) == {1}
    scheduled = set()
    for host in command.fleet.names:
        job = json.loads((command.campaign / "jobs" / f"{host}.json").read_text())
        scheduled |= {(host, s["workload"], s["case"], s["repeat"]) for s in job["steps"] if not s["serves"]}
    assert scheduled == {key_of(o)[:4] for o in command.outcomes() if o["status"] != "skipped"}


def test_the_first_screen_has_every_class(campaign: Campaign) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or pytest.skip("needs chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto((campaign.command.campaign / "summary.html").as_uri())
        shown = page.locator("#first_headlines-table tbody tr").evaluate_all(
            "rows => rows.filter(r => r.getBoundingClientRect().bottom <= innerHeight).map(r => r.cells[1].innerText)"
        )
        browser.close()
    measured = campaign.frame[campaign.frame["headline"] & (campaign.frame["status"] == "passed")]["class"].unique()
    assert len(measured) >= 12
    assert set(shown) == {str(class_title(name)) for name in measured}
