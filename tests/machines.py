"""Facts of a healthy machine, and of its parts, for tests of the tuning rules."""

from __future__ import annotations

from typing import Any

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, IdleState, Nic, NumaNode, PcieLink
from fleetmark.planner.diagnosis.trial import TrialChange
from fleetmark.planner.estimate import Estimate
from tests.schedules import facts

GENOA = Cpu(model="AMD EPYC 9554 64-Core Processor", sockets=2, cores=128, threads=256, arch="x86_64")
FULL = tuple(Dimm(slot=str(n), size=32 << 30, type="DDR5", rated_mts=4800, configured_mts=4800) for n in range(24))
GPU = Gpu(index=0, name="H100", vendor="nvidia", persistence=True)
FAST = {"speed": 32.0, "max_speed": 32.0, "width": 16, "max_width": 16}


def sound(**more: Any) -> Facts:
    usual_facts = {
        "cpu": GENOA,
        "dimms": FULL,
        "governor": "performance",
        "boost": True,
        "numa_balancing": False,
        "thp": "madvise",
        "clocksource": "tsc",
        "iommu": "identity (40)",
        "gpus": (GPU, GPU),
        "virtualisation": "none",
        "pcie": (PcieLink(address="1", name="nic", kind="Ethernet controller", **FAST),),
        "edac_corrected": 0,
    }
    return facts(**{**usual_facts, **more})


C6 = IdleState(number=3, name="C6", latency_s=133e-6, share=0.62)
NODES = (
    NumaNode(id=0, cpus=(0, 1), local_pages=700, remote_pages=200),
    NumaNode(id=1, cpus=(2, 3), local_pages=100, remote_pages=0),
)
PORT = Nic(name="ens1", speed=50e9, state="up", numa_node=0, roce=True, ecn=True, congestion_marks=12, pauses=8)
SXM = Gpu(index=0, name="NVIDIA H100 80GB HBM3", vendor="nvidia", persistence=True, nvlinks=18, nvlink_errors=0)


def changed(value: float, half: float) -> TrialChange:
    return TrialChange("stream all-cores triad", Estimate(value, value - half, value + half, df=5), 6)
