"""The tuning rules on facts: each speaks where it should, is silent on a sound host, and says what it rests on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, Nic, PcieLink
from planner.diagnosis.tuning import peaks
from planner.diagnosis.tuning.rules import RULES, WITHOUT_INPUTS, Subject
from tests.commands import run
from tests.fleets import campaign, usual
from tests.records import TRIAD
from tests.schedules import facts

GENOA = Cpu(model="AMD EPYC 9554 64-Core Processor", sockets=2, cores=128, threads=256, arch="x86_64")
FULL = tuple(Dimm(slot=str(n), size=32 << 30, rated_mts=4800, configured_mts=4800) for n in range(24))
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


def said_by(subject: Subject) -> dict[int, str]:
    return {rule.number: str(text) for rule in RULES if (text := rule.evidence(subject)) is not None}


SLOW = {"speed": 16.0, "max_speed": 32.0, "width": 8, "max_width": 16}
CASES: list[tuple[int, dict[str, Any], str]] = [
    (2, {"dimms": FULL[:20]}, "20 memory modules for 2 x 12 channels"),
    (2, {"dimms": (*FULL[:23], Dimm(slot="x", size=64 << 30))}, "memory modules differ in size (2 sizes)"),
    (2, {"cpu": Cpu(model="unknown", sockets=2), "dimms": FULL[:3]}, "3 memory modules on 2 sockets: unequal"),
    (
        3,
        {"dimms": tuple(d.model_copy(update={"configured_mts": 4000}) for d in FULL)},
        "memory runs at 4000 MT/s, rated for 4800",
    ),
    (4, {"governor": "powersave"}, "CPU frequency governor is powersave"),
    (5, {"boost": False}, "CPU boost is off"),
    (8, {"numa_balancing": True}, "automatic NUMA balancing is on, on a host with GPUs"),
    (9, {"thp": "never"}, "transparent hugepages are off"),
    (10, {"clocksource": "hpet"}, "clocksource is hpet"),
    (11, {"mitigations": {"a": "Mitigation: x", "b": "Not affected"}}, "active mitigations: 1"),
    (14, {"edac_corrected": 7}, "memory errors since boot: 7 corrected, 0 uncorrected"),
    (
        15,
        {"pcie": (PcieLink(address="1", name="ConnectX-7", kind="Ethernet controller", **SLOW),)},
        "PCIe link of ConnectX-7 runs at 16 GT/s x8, at best 32 GT/s x16 (1 such)",
    ),
    (16, {"acs_redirect": ("00:01.0",)}, "PCIe bridges that send peer-to-peer traffic up to the root (ACS): 1"),
    (17, {"iommu": "DMA-FQ (40)"}, "the IOMMU translates DMA (DMA-FQ (40))"),
    (
        18,
        {"gpus": (GPU.model_copy(update={"slowdown": ("hw_thermal_slowdown",)}),)},
        "GPUs are slowed down: hw_thermal_slowdown",
    ),
    (19, {"gpus": (GPU.model_copy(update={"persistence": False}),)}, "persistence mode is off on 1 GPU"),
    (
        20,
        {"gpus": (GPU.model_copy(update={"remap_pending": True}),)},
        "uncorrectable memory errors or a pending row remap on 1 GPU",
    ),
    (
        25,
        {"pcie": (PcieLink(address="1", name="PM9A3", kind="Non-Volatile memory controller", **SLOW),)},
        "PCIe link of PM9A3 runs at 16 GT/s x8, at best 32 GT/s x16 (1 such)",
    ),
]


def test_a_sound_host_has_nothing_to_tune() -> None:
    assert said_by(Subject(sound(), memory_bandwidth=700e9)) == {}


@pytest.mark.parametrize(("number", "change", "evidence"), CASES)
def test_each_rule_speaks_on_its_facts_alone(number: int, change: dict[str, Any], evidence: str) -> None:
    assert said_by(Subject(sound(**change))) == {number: evidence}


def test_memory_bandwidth_is_held_against_its_peak() -> None:
    peak = peaks.memory(sound())
    assert peak and peak.value == pytest.approx(2 * 460.8e9) and peak.worked_out == "2 x 12 x 4800 MT/s x 8 B"
    assert 1 not in said_by(Subject(sound(), memory_bandwidth=0.6 * peak.value))  # 80% where stores read first
    text = said_by(Subject(sound(), memory_bandwidth=0.5 * peak.value))[1]
    assert text.startswith("memory bandwidth is 50% of the theoretical 921.6 GB/s (2 x 12 x 4800 MT/s x 8 B)")


@pytest.mark.parametrize(
    ("model", "number"),
    [
        ("AMD EPYC 9654 96-Core Processor", 12),
        ("AMD EPYC 7763 64-Core Processor", 8),
        ("AMD EPYC 7742 64-Core Processor", 8),
        ("Intel(R) Xeon(R) Platinum 8480+", 8),
        ("AMD EPYC 9755 128-Core Processor", None),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", None),
        ("", None),
    ],
)
def test_channels_are_those_of_the_table_or_unknown(model: str, number: int | None) -> None:
    known = peaks.channels(model)
    assert (known and known[0]) == number
    assert known is None or "https://" in known[1]


def test_an_odd_mtu_is_one_that_most_hosts_do_not_have() -> None:
    nic = Nic(name="ens1", speed=12.5e9, mtu=1500, state="up")
    mtus = {12.5e9: Counter({9000: 7, 1500: 1})}
    odd = said_by(Subject(sound(nics=(nic,)), mtus=mtus))
    assert odd == {23: "MTU of ens1 is 1500, 9000 on most hosts of its kind"}
    assert said_by(Subject(sound(nics=(nic.model_copy(update={"mtu": 9000}),)), mtus=mtus)) == {}


def test_idle_accelerators_and_virtual_machines_are_left_alone() -> None:
    gpu = PcieLink(address="1", name="H100", kind="3D controller", speed=2.5, max_speed=32.0, width=16, max_width=16)
    assert said_by(Subject(sound(pcie=(gpu,)))) == {}
    virtual = {"virtualisation": "kvm", "clocksource": "kvm-clock", "iommu": "DMA", "acs_redirect": ("1",)}
    assert said_by(Subject(sound(**virtual))) == {}


def test_every_rule_of_the_methodology_is_there_or_said_to_be_missing() -> None:
    numbers = [rule.number for rule in RULES]
    assert sorted([*numbers, *WITHOUT_INPUTS]) == list(range(1, 26))
    assert {number for number, *_ in CASES} | {1, 23} == set(numbers)
    assert [r.number for r in RULES if r.measured] == [1]
    for rule in RULES:
        assert rule.inputs and rule.suggestion and rule.retest and rule.source


def test_the_command_line(tmp_path: Path) -> None:
    values = usual(("a", "b", "c"))
    values["b", TRIAD] = [300e9] * 5
    archive = campaign(tmp_path, values)
    for host in "abc":
        archive.save_facts(host, sound(boost=host != "a", gpus=()), {})
    document = json.loads(run(tmp_path, "tuning", "last", "--format", "json"))
    bandwidth = [a for a in document["advice"] if a["rule"] == 1]
    assert sorted(host for a in bandwidth for host in a["hosts"]) == ["a", "b", "c"]
    assert [(a["rule"], a["hosts"]) for a in document["advice"] if a["rule"] != 1] == [(5, ["a"])]
    assert document["memory"][1]["best"] == pytest.approx(300e9)
    table = run(tmp_path, "tuning", "last")
    assert "CPU boost is off: 1 host (a) (fact only: no gain was measured)" in " ".join(table.split())
    assert "921.6 GB/s" in table and "NVLink counters" in " ".join(table.split())
    assert "**5 boost**" in run(tmp_path, "tuning", "last", "--format", "md")
    assert "建议" in run(tmp_path, "tuning", "last", "--lang", "zh-CN")
