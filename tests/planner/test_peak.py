"""Test theoretical peaks from facts by hand, and that there are none if facts do not suffice."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, Nic
from fleetmark.planner import peak


def facts(**changes: Any) -> Facts:
    defaults = {"time": 0.0, "hostname": "h", "user": "u", "root": False, "python": "/usr/bin/python3"}
    return Facts(**{**defaults, "python_version": "3.11", "work_dir": "/w", **changes})


def modules(*slots: str, mts: int | None = 4800, kind: str = "DDR5") -> tuple[Dimm, ...]:
    return tuple(Dimm(slot=s, size=64 << 30, type=kind, configured_mts=mts) for s in slots)


def test_channels_that_slots_name() -> None:
    two_each = [f"CPU{s} CH{c} D{d}" for s in (0, 1) for c in range(8) for d in (0, 1)]
    top = peak.memory(facts(dimms=modules(*two_each, mts=4400)))
    assert top is not None and top.rate == pytest.approx(16 * 4400e6 * 8)
    assert top.basis == "16 channels at 4,400 MT/s"
    joined = peak.memory(facts(dimms=modules(*(slot.replace(" ", "_") for slot in two_each), mts=4400)))
    assert joined == top  # CPU0_CH7_D1
    empty = Dimm(slot="P0 CHANNEL C DIMM 0", size=0)
    top = peak.memory(facts(dimms=(*modules("P0 CHANNEL A DIMM 0", "P0 CHANNEL A DIMM 1"), empty)))
    assert top is not None and top.rate == 38.4e9  # one channel of DDR5-4800
    assert top.basis == "1 channel at 4,800 MT/s"


def test_slots_that_do_not_name_channels_are_taken_for_one_each() -> None:
    top = peak.memory(facts(dimms=modules("A1", "A2", "B1", "B2", mts=3200, kind="DDR4")))
    assert top is not None and top.rate == 4 * 3200e6 * 8
    assert top.basis == "4 modules at 3,200 MT/s, if each has a channel of its own"


def test_the_slowest_module_sets_the_speed() -> None:
    top = peak.memory(facts(dimms=modules("CH0") + modules("CH1", mts=4400)))
    assert top is not None and top.rate == 2 * 4400e6 * 8


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dimms": modules("CH0", mts=None)},
        {"dimms": modules("CH0") + modules("CH1", mts=None)},
        {"dimms": modules("CH0", mts=0)},
        {"dimms": modules("CH0", kind="HBM2")},
        {"dimms": modules("CH0", kind="LPDDR5")},
        {"dimms": modules("CH0"), "virtualisation": "kvm"},
        {"dimms": (Dimm(slot="CH0", size=0),)},
    ],
)
def test_what_facts_do_not_tell_is_not_guessed(changes: dict[str, Any]) -> None:
    assert peak.memory(facts(**changes)) is None


def test_only_who_can_do_something_is_told_what() -> None:
    assert "only root may read the modules" in str(peak.why_no_memory(facts()))
    assert peak.why_no_memory(facts(root=True)) is None
    assert peak.why_no_memory(facts(virtualisation="kvm")) is None
    assert peak.why_no_memory(facts(dimms=modules("A1"))) is None


def test_the_link_of_the_slower_end() -> None:
    fast = facts(nics=(Nic(name="a", speed=1.25e9, state="up"), Nic(name="b", speed=12.5e9, state="up")))
    slow = facts(nics=(Nic(name="a", speed=3.125e9, state="up"), Nic(name="b", speed=12.5e9, state="down")))
    top = peak.link(fast, slow)
    assert top is not None and (top.rate, top.basis) == (3.125e9, "a link of 25 Gbit/s")
    assert peak.link(fast, facts(nics=(Nic(name="a", state="up"),))) is None
    assert peak.link() is None


AVX2, AVX512 = ("avx2", "fma"), ("avx2", "fma", "avx512f")


@pytest.mark.parametrize(
    ("vendor", "model", "flags", "a_cycle"),
    [  # operations per core and cycle, from the manufacturers' guides
        ("GenuineIntel", "Intel(R) Xeon(R) CPU E5-2690 v4", AVX2, 16),
        ("GenuineIntel", "Intel(R) Xeon(R) Platinum 8380 CPU", AVX512, 32),
        ("GenuineIntel", "Intel(R) Xeon(R) Gold 5218 CPU", AVX512, 16),
        ("GenuineIntel", "Intel(R) Xeon(R) Gold 5222 CPU", AVX512, 32),
        ("GenuineIntel", "Intel(R) Xeon(R) Gold 5318Y CPU", AVX512, 32),
        ("GenuineIntel", "Intel(R) Xeon(R) Silver 4210 CPU", AVX512, 16),
        ("AuthenticAMD", "AMD EPYC 7551", AVX2, 8),
        ("AuthenticAMD", "AMD EPYC 7763", (*AVX2, "clwb"), 16),
        ("AuthenticAMD", "AMD EPYC 9654", (*AVX512, "clwb"), 16),
        ("AuthenticAMD", "AMD EPYC 9755", (*AVX512, "clwb", "avx_vnni"), 32),
    ],
)
def test_the_cores_by_their_instructions(vendor: str, model: str, flags: tuple[str, ...], a_cycle: int) -> None:
    cpu = Cpu(vendor=vendor, model=model, flags=flags, cores=80, max_hz=3.4e9)
    top = peak.component_peak(facts(cpu=cpu), "compute")
    assert top is not None and top.rate == pytest.approx(80 * 3.4e9 * a_cycle)


def test_what_a_peak_of_the_cores_takes_for_true_is_said() -> None:
    cpu = Cpu(vendor="GenuineIntel", model="Xeon", flags=AVX512, cores=80, max_hz=3.4e9)
    top = peak.component_peak(facts(cpu=cpu), "compute")
    words = "80 cores at 3.4 GHz, the highest clock of one, each with 2 units of 512 bits for a x b + c of doubles"
    assert top is not None and top.basis == words


@pytest.mark.parametrize(
    "changes",
    [
        {"vendor": "GenuineIntel", "model": "Intel(R) Core(TM) i7-1165G7", "flags": AVX512},  # one unit, or two?
        {"vendor": "GenuineIntel", "model": "Xeon", "flags": ("sse2",)},
        {"vendor": "ARM", "model": "Neoverse-V2", "flags": ("sve", "asimd")},  # flags do not give the width of SVE
        {"vendor": "GenuineIntel", "model": "Xeon", "flags": AVX2, "max_hz": None},
        {"vendor": "GenuineIntel", "model": "Xeon", "flags": AVX2, "max_hz": 380e6},  # from a real lscpu
        {"vendor": "GenuineIntel", "model": "Xeon", "flags": AVX2, "cores": None},
    ],
)
def test_cores_that_facts_do_not_tell_are_not_guessed(changes: dict[str, Any]) -> None:
    known: dict[str, Any] = {"cores": 80, "max_hz": 3.4e9}
    assert peak.component_peak(facts(cpu=Cpu(**(known | changes))), "compute") is None


def test_a_guest_has_no_peak_of_its_cores() -> None:
    cpu = Cpu(vendor="GenuineIntel", model="Xeon", flags=AVX2, cores=8, max_hz=3e9)
    assert peak.component_peak(facts(cpu=cpu, virtualisation="kvm"), "compute") is None
    assert peak.component_peak(facts(cpu=cpu, virtualisation="none"), "compute") is not None


def gpus(name: str, **changes: Any) -> tuple[Gpu, ...]:
    link: dict[str, Any] = {"max_pcie_gen": 5, "max_pcie_width": 16}
    return tuple(Gpu(index=n, name=name, vendor="nvidia", **(link | changes)) for n in range(2))


@pytest.mark.parametrize(
    ("gpu", "rate", "basis"),
    [
        (gpus("NVIDIA H100 80GB HBM3", nvlinks=18), 450e9, "18 NVLinks of 25 GB/s"),  # 900 GB/s both ways
        (gpus("NVIDIA A100-SXM4-80GB", nvlinks=11), 300e9, "12 NVLinks of 25 GB/s"),  # one link is down
        (gpus("NVIDIA B200", nvlinks=18), 900e9, "18 NVLinks of 50 GB/s"),
        (gpus("NVIDIA L40S", max_pcie_gen=4), 31.5e9, "a PCIe link of 16 GT/s x16"),  # it has no NVLink
    ],
)
def test_from_one_gpu_to_another(gpu: tuple[Gpu, ...], rate: float, basis: str) -> None:
    top = peak.component_peak(facts(gpus=gpu), "gpu_link")
    assert top is not None and top.rate == pytest.approx(rate, rel=2e-3) and str(top.basis).startswith(basis)


def test_links_of_gpus_that_facts_do_not_tell_are_not_guessed() -> None:
    assert peak.component_peak(facts(gpus=gpus("NVIDIA H100 80GB HBM3")), "gpu_link") is None  # the driver does not say
    assert peak.component_peak(facts(gpus=gpus("NVIDIA H100 PCIe", nvlinks=6)), "gpu_link") is None  # pairs by bridges
    assert (
        peak.component_peak(facts(gpus=gpus("NVIDIA GH200 480GB")), "pcie") is None
    )  # the CPU is reached by NVLink-C2C
    assert peak.component_peak(facts(gpus=gpus("NVIDIA B200")), "ends") is None


@pytest.mark.parametrize(
    ("start", "end", "kind"),
    [
        ("cpu0", "gpu3", "pcie"),
        ("gpu3", "cpu0", "pcie"),
        ("gpu0", "gpu1", "gpu_link"),
        ("gpu1", "gpu1", ""),
        ("gpus", "gpu1", ""),
        ("cpu0", "cpu1", ""),
        ("", "", ""),
    ],
)
def test_the_kind_of_a_link_by_its_ends(start: str, end: str, kind: str) -> None:
    assert peak.between(start, end) == kind
