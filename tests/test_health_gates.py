"""The gate files of docs/how-to/health-checks-as-a-gate.md against a record: healthy nodes pass, each fault fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetmark.base.facts import Cpu, Facts, Gpu, Nic
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import hold, read_rules
from tests.documentation.stage import FILE
from tests.documentation.text import DOCS
from tests.fleets import campaign
from tests.records import TRIAD, Bench
from tests.schedules import facts

PAGE = DOCS / "how-to" / "health-checks-as-a-gate.md"
FILES = dict(FILE.findall(PAGE.read_text("utf-8")))
HOSTS = tuple(f"g{n}" for n in range(9))
GPU = Gpu(
    index=0,
    name="NVIDIA H100 80GB HBM3",
    vendor="nvidia",
    memory=80 << 30,
    driver="550.54.15",
    pcie_width=16,
    persistence=True,
    ecc=True,
    ecc_uncorrected=0,
    remap_pending=False,
    nvlinks=18,
    nvlink_errors=0,
)


def bench(workload: str, case: str, metric: str, unit: str = "B/s", better: str = "higher") -> Bench:
    return Bench(workload, case, metric, unit, better, "gpu", kind="capacity")


H2D = bench("nvbandwidth", "host_to_device_memcpy_ce", "slowest_link")
D2H = bench("nvbandwidth", "device_to_host_memcpy_ce", "slowest_link")
RATE = bench("torch_ops", "bf16-4096t-b1", "memory_rate")
PEAK = bench("torch_ops", "bf16-4096t-b1", "sustained_peak", "FLOP/s")
FAULTS = Bench("stress", "soak", "faults", "1", "lower", "none", kind="guardrail")
NCCL = bench("nccl_tests", "all_reduce", "peak_busbw")
RDMA = bench("perftest", "write-bw-1m", "bandwidth")
SOUND = {H2D: 55e9, D2H: 54e9, RATE: 2.6e12, PEAK: 6e14, FAULTS: 0.0, NCCL: 475e9, RDMA: 49e9, TRIAD: 400e9}


def node(**changed: Any) -> Facts:
    """Return the facts of a healthy node, with changes."""
    port = Nic(name="ens1", speed=12.5e9, state="up", driver="mlx5_core")
    sound: dict[str, Any] = {
        "cpu": Cpu(model="Intel(R) Xeon(R) Platinum 8480C", sockets=2, cores=96),
        "memory": int(1.9e12),
        "swap": 0,
        "nics": (port,),
        "edac_uncorrected": 0,
        "bios": "1.7",
        "work_free": 10**12,
        "load1": 0.5,
        "gpus": tuple(GPU.model_copy(update={"index": n}) for n in range(8)),
        "rdma": tuple(f"mlx5_{n}" for n in range(8)),
        "xids": {},
    }
    return facts(**{**sound, **changed})


def gpus(**changed: Any) -> dict[str, Any]:
    """Return a change of the last of eight GPUs."""
    return {"gpus": (*node().gpus[:7], GPU.model_copy(update={"index": 7, **changed}))}


Fault = tuple[dict[str, Any], dict[Bench, float]]  # changes of the facts, and of the values
FAULTS_OF: dict[str, Fault] = {  # by the rule that they break
    "check_hw_cpuinfo sockets": ({"cpu": Cpu(sockets=1, cores=96)}, {}),
    "check_hw_cpuinfo cores": ({"cpu": Cpu(sockets=2, cores=95)}, {}),
    "check_hw_physmem": ({"memory": int(1.7e12)}, {}),
    "check_hw_swap": ({"swap": 1 << 30}, {}),
    "check_hw_ib": ({"nics": (Nic(name="ens1", speed=3.125e9, state="up"),)}, {}),
    "check_hw_eth": ({"nics": (Nic(name="ens1", speed=12.5e9, state="down"),)}, {}),
    "check_hw_mcelog": ({"edac_uncorrected": 1}, {}),
    "check_dmi_data_match": ({"bios": "1.6"}, {}),
    "check_fs_free": ({"work_free": 10**11}, {}),
    "check_ps_loadavg": ({"load1": 192.0}, {}),
    "software driver": (gpus(driver="535.1"), {}),
    "software persistence mode": (gpus(persistence=False), {}),
    "software row remapping": (gpus(remap_pending=True), {}),
    "software ECC errors": (gpus(ecc_uncorrected=1), {}),
    "software GPUs": ({"gpus": node().gpus[:7]}, {}),
    "pcie width": (gpus(pcie_width=8), {}),
    "pcie bandwidth": ({}, {H2D: 26e9}),
    "memory size": (gpus(memory=40 << 30), {}),
    "memory bandwidth": ({}, {RATE: 2e12}),
    "nvlink": (gpus(nvlinks=17), {}),
    "nvlink errors": (gpus(nvlink_errors=3), {}),
    "diagnostic and targeted stress": ({}, {PEAK: 5e14}),
    "memtest and pulse": ({}, {FAULTS: 1.0}),
    "check_gpu_count": ({"gpus": node().gpus[:7]}, {}),
    "check_gpu_xid": ({"xids": {"13": 4, "79": 1}}, {}),
    "check_gpu_ecc": (gpus(ecc_uncorrected=1), {}),
    "check_nvlink_status": (gpus(nvlinks=17), {}),
    "check_gpu_bw to the GPU": ({}, {H2D: 51e9}),
    "check_gpu_bw to the host": ({}, {D2H: 51e9}),
    "check_nccl_allreduce": ({}, {NCCL: 300e9}),
    "check_ib_bw_gdr": ({}, {RDMA: 40e9}),
    "check_cpu_stream": ({}, {TRIAD: 300e9}),
}
FAULTS_OF_AZURE: dict[str, Fault] = {"check_hw_ib": ({"rdma": ("mlx5_0",)}, {})}  # NHC has a check of that name too


def record(root: Path, faults: Mapping[str, Fault]) -> Archive:
    """Record a node with each fault, by the name of the rule that it breaks, and healthy ones."""
    changes: dict[str, Fault] = dict.fromkeys(HOSTS, ({}, {})) | dict(faults)
    values = {(h, b): [v] * 3 for h, (_, levels) in changes.items() for b, v in (SOUND | levels).items()}
    archive = campaign(root, values)
    for host, (changed, _) in changes.items():
        archive.save_facts(host, node(**changed), {})
    return archive


def refused(root: Path, archive: Archive, name: str) -> set[tuple[str, str]]:
    """Return the host and the rule of each check that does not pass."""
    (root / name).write_text(FILES[name])
    return {
        (r.host, r.rule) for r in hold(archive, read_rules(root / name), name).results if str(r.verdict) != "passed"
    }


@pytest.mark.parametrize("name", FILES)
def test_each_rule_refuses_the_node_with_its_fault_and_no_sound_one(tmp_path: Path, name: str) -> None:
    known = FAULTS_OF | (FAULTS_OF_AZURE if name == "azure.yml" else {})
    names = [rule["name"] for rule in yaml.safe_load(FILES[name])["rules"]]
    faults = {f"sick{number}": known[rule] for number, rule in enumerate(names)}
    broken = refused(tmp_path, record(tmp_path, faults), name)
    assert {host for host, _ in broken} == set(faults)
    assert {(f"sick{number}", rule) for number, rule in enumerate(names)} <= broken


def test_the_page_has_a_file_for_each_peer() -> None:
    assert set(FILES) == {"nhc.yml", "dcgm.yml", "azure.yml"}
