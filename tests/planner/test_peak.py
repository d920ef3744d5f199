"""Test theoretical peaks from facts by hand, and that there are none if facts do not suffice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, Nic
from fleetmark.base.yaml import read_yaml
from fleetmark.planner import peak
from fleetmark.planner.peak import pcie


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
    assert top.basis == "4 modules at 3,200 MT/s, if each has its own channel"


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


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("NVIDIA L40S", "bf16", 362.05),
        ("NVIDIA L40", "tf32", 90.5),
        ("NVIDIA H100 80GB HBM3", "fp8", 1978.9),
        ("NVIDIA H100 80GB HBM3", "fp64", 66.9),
        ("NVIDIA H800", "fp64", 1.0),
        ("NVIDIA H20", "int8", 296),
        ("NVIDIA GB300", "fp4", 15000),
        ("NVIDIA B300 SXM6 AC", "tf32", 1125),
        ("NVIDIA A100-PCIE-40GB", "bf16", 312),
        ("NVIDIA A800-SXM4-80GB", "fp16", 312),
        ("NVIDIA L4", "fp8", 242.5),
        ("AMD Instinct MI250X", "bf16", 191.5),
        ("AMD Instinct MI300X", "fp8", 2614.9),
        ("Intel Gaudi 3", "bf16", 1835),
        ("NVIDIA H100 80GB HBM3", "fp32", None),  # products without tensor cores have no row
        ("NVIDIA A10", "bf16", None),  # no source: left out
        ("Ascend 910B", "bf16", None),
        ("NVIDIA H800 PCIe", "bf16", None),
        ("NVIDIA B300", "fp4", None),  # sources disagree
    ],
)
def test_dense_peaks_by_precision(name: str, precision: str, tera: float | None) -> None:
    top = peak.device(facts(gpus=(Gpu(index=0, name=name, vendor="x"),)), "device_compute", precision)
    assert (top and top.rate) == (tera and pytest.approx(tera * 1e12))


NAMED = {  # products of NVIDIA's, AMD's, Intel's and Huawei's data centres, and a board's name
    "L40S": "", "B300": "", "GB300": "", "GH200": "GH200 480GB", "H20": "", "H800": "", "A800": "A800-SXM4-80GB",
    "A100-PCIE-40GB": "", "L4": "", "L40": "", "A10": "", "MI250X": "", "MI355X": "", "Gaudi 3": "",
    "Ascend 910B": None, "Ascend 910C": None,
}  # fmt: skip


def test_each_device_is_listed_or_said_to_be_left_out() -> None:
    from fleetmark.planner.peak import table

    document = read_yaml(Path(table.__file__).with_name("peaks.yml"))
    left = {name: row for row in document["left_out"] for name in row["device"].split(", ")}
    assert all(row["figures"] and row["reason"] for row in left.values())
    assert all(row["source"] and row["checked"] for row in document["devices"])
    for name, board in NAMED.items():
        if board is None:
            assert left[name]["figures"] == "all"
        else:
            assert table.memory(f"NVIDIA {board or name}"), name


def test_the_page_of_accelerators_has_every_row() -> None:
    from fleetmark.planner.peak import table

    document = read_yaml(Path(table.__file__).with_name("peaks.yml"))
    page = (Path(__file__).parents[2] / "docs/reference/accelerators.md").read_text()
    assert page.count("\n| ") == len(document["devices"]) + len(document["left_out"]) + 2
    for row in document["left_out"]:
        assert f"| {row['device']} | {row['figures']} | {row['reason']} |" in page
    assert "| B200 | 8 | 18 x 50 GB/s | 2,250 | 1,125 | 4,500 | 9,000 | 4,500 | 37 |" in page


def test_a_precision_and_its_half_are_dense() -> None:
    """A figure with sparsity beside one without would be twice what units give."""
    from fleetmark.planner.peak import table

    for _, row in table._rows("devices"):
        if {"tf32", "dense16"} <= row.keys():
            assert 1.9 < float(row["dense16"]) / float(row["tf32"]) < 2.1, row["model"]
        if {"fp8", "dense16"} <= row.keys() and "Gaudi" not in row["model"]:
            assert 1.9 < float(row["fp8"]) / float(row["dense16"]) < 2.1, row["model"]


def test_amd_devices_are_connected_one_by_one() -> None:
    pair = tuple(Gpu(index=n, name="AMD Instinct MI300X", vendor="amd") for n in (0, 1))
    top = peak.device(facts(gpus=pair), "gpu_link")
    assert top and (top.rate, top.basis) == (64e9, "one link of 64 GB/s between each two devices")


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


@pytest.mark.parametrize(
    ("speed", "width", "value"),
    [
        (2.5, 1, 0.25e9),
        (5.0, 16, 8e9),
        (8.0, 16, 15.754e9),
        (16.0, 4, 7.877e9),
        (32.0, 16, 63.015e9),
        (64.0, 16, 121e9),
    ],
)
def test_a_link_of_pcie_by_hand(speed: float, width: int, value: float) -> None:
    assert pcie.rate(speed, width) == pytest.approx(value, rel=1e-4)
    assert pcie.rate(7.0, width) is None
