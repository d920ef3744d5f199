"""Each tuning rule on a healthy machine that has what the rule examines: it must say nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fleetmark.base.facts import Disk, Nic, PcieLink
from fleetmark.planner.diagnosis.tuning.rule import Share, Subject
from fleetmark.planner.diagnosis.tuning.rules import RULES, rule_named
from tests.machines import C6, FAST, GENOA, NODES, PORT, SXM, changed, sound

LIMITED = SXM.model_copy(update={"power_limit": 700.0, "ecc": True, "ecc_uncorrected": 0, "remap_pending": False})
BUSY_PORT = PORT.model_copy(update={"max_speed": 50e9, "missed": 0, "ring": 512, "ring_max": 8192, "mtu": 9000})
LOCAL_PORT = PORT.model_copy(update={"irqs": (31, 32), "irqs_remote": 0})
MANAGEMENT = Nic(name="eno1", speed=1.25e8, max_speed=1.25e9, state="up")
SCHEDULED = (Disk(name="nvme0n1", scheduler="none"), Disk(name="sda", scheduler="mq-deadline"))
DRIVE = PcieLink(
    address="2", name="PM9A3", kind="Non-Volatile memory controller", **{**FAST, "width": 4, "max_width": 4}
)
IDLE_GPU = PcieLink(address="3", name="H100", kind="3D controller", **{**FAST, "speed": 2.5})
MITIGATED = {"meltdown": "Not affected"}
# By rule: facts of the host, and what was measured on it.
HEALTHY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "memory-bandwidth": ({}, {"memory_bandwidth": 0.8 * 24 * 4800e6 * 8}),
    "memory-modules": ({}, {}),
    "memory-speed": ({}, {}),
    "governor": ({"governor": "powersave", "cpu": GENOA.model_copy(update={"max_hz": 3.7e9})}, {"clock": 3.5e9}),
    "boost": ({"boost": True}, {}),
    "idle-states": ({"idle_states": (C6.model_copy(update={"share": 0.01}),)}, {"responsive": True}),
    "numa-remote": ({"numa": NODES[1:]}, {"remote_bandwidth": 0.6}),
    "numa-balancing": ({"numa_balancing": True, "gpus": ()}, {}),
    "hugepages": ({"thp": "always"}, {}),
    "clocksource": ({"clocksource": "kvm-clock", "virtualisation": "kvm"}, {}),
    "mitigations": ({"mitigations": MITIGATED}, {}),
    "smt": ({}, {"trials": {"smt": (changed(1.04, 0.01), changed(1.2, 0.3))}}),
    "busy": ({}, {"stolen": 0.01, "waited": 0.01}),
    "memory-errors": ({"edac_corrected": 0, "edac_uncorrected": 0}, {}),
    "memory-uncorrected": ({"edac_corrected": 7, "edac_uncorrected": 0}, {}),
    "pcie-links": ({"pcie": (PcieLink(address="1", name="nic", kind="Ethernet controller", **FAST), IDLE_GPU)}, {}),
    "port-speed": ({"nics": (BUSY_PORT, MANAGEMENT)}, {}),
    "acs": ({"acs_redirect": ("00:01.0",), "virtualisation": "kvm"}, {}),
    "iommu": ({"iommu": "DMA-FQ (40)", "virtualisation": "kvm"}, {}),
    "gpu-throttle": ({"gpus": (LIMITED,)}, {"slowed": {"power_cap": 0.9, "thermal": 0.0}}),
    "gpu-persistence": ({"gpus": (LIMITED, LIMITED)}, {}),
    "gpu-errors": ({"gpus": (LIMITED, LIMITED)}, {}),
    "nvlink": ({"gpus": (SXM, SXM)}, {}),
    "collectives": ({}, {"collective": Share("all_reduce", 340e9, 360e9, 7)}),
    "gpu-direct": ({}, {"gpu_direct": True}),
    "mtu": ({"nics": (BUSY_PORT,)}, {"mtus": {50e9: Counter({9000: 16})}}),
    "nic-rings": ({"nics": (BUSY_PORT,)}, {}),
    "nic-interrupts": ({"nics": (LOCAL_PORT,)}, {}),
    "roce": ({"nics": (PORT,)}, {}),
    "disk-links": ({"pcie": (DRIVE,)}, {}),
    "disk-scheduler": ({"disks": SCHEDULED}, {}),
}


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
def test_a_rule_has_a_source_and_is_silent_on_a_healthy_machine(name: str) -> None:
    rule, (facts, measured) = rule_named(name), HEALTHY[name]
    assert rule.source and rule.evidence(Subject(sound(**facts), **measured)) is None


def test_every_rule_has_a_healthy_machine_and_no_other_does() -> None:
    assert list(HEALTHY) == [rule.name for rule in RULES]
