"""Test the tuning rules on facts: each applies where it should, ignores healthy hosts, and states its evidence."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, Dimm, Disk, Nic, PcieLink
from fleetmark.base.yaml import read_yaml
from fleetmark.parsers.nccl.net import gpu_direct
from fleetmark.planner import peak
from fleetmark.planner.diagnosis.tuning.rule import Share, Subject
from fleetmark.planner.diagnosis.tuning.rules import RULES
from fleetmark.planner.peak import table
from fleetmark.record.diagnosis.subjects import _mtus
from tests.commands import run
from tests.drives import save_step
from tests.fleets import campaign, usual
from tests.machines import C6, FULL, GENOA, GPU, NODES, PORT, SXM, changed, sound
from tests.records import TRIAD, Bench


def said_by(subject: Subject) -> dict[int, str]:
    return {rule.number: str(text) for rule in RULES if (text := rule.evidence(subject)) is not None}


SLOW = {"speed": 16.0, "max_speed": 32.0, "width": 8, "max_width": 16}
CASES: list[tuple[int, dict[str, Any], str]] = [
    (2, {"dimms": FULL[:20]}, "20 memory modules for 24 channels"),
    (2, {"dimms": (*FULL[:23], Dimm(slot="x", size=64 << 30))}, "memory modules differ in size (2 sizes)"),
    (2, {"cpu": Cpu(model="unknown", sockets=2), "dimms": FULL[:3]}, "3 memory modules on 2 sockets: unequal"),
    (
        3,
        {"dimms": tuple(d.model_copy(update={"configured_mts": 4000}) for d in FULL)},
        "memory runs at 4000 MT/s, rated for 4800; the processor supports 4800",
    ),
    (4, {"governor": "powersave"}, "CPU frequency governor is powersave"),
    (5, {"boost": False}, "CPU boost is off"),
    (8, {"numa_balancing": True}, "automatic NUMA balancing is on, on a host with GPUs"),
    (9, {"thp": "never"}, "transparent hugepages are off"),
    (10, {"clocksource": "hpet"}, "clocksource is hpet"),
    (11, {"mitigations": {"a": "Mitigation: x", "b": "Not affected"}}, "active mitigations: 1"),
    (14, {"edac_corrected": 7}, "memory errors since boot: 7 corrected, 0 uncorrected"),
    (14, {"edac_corrected": 7, "edac_uncorrected": 1}, "memory errors since boot: 7 corrected, 1 uncorrected"),
    (
        15,
        {"pcie": (PcieLink(address="1", name="ConnectX-7", kind="Ethernet controller", **SLOW),)},
        "PCIe link of ConnectX-7 runs at 16 GT/s x8, at best 32 GT/s x16 (1 such)",
    ),
    (
        15,
        {"nics": (PORT.model_copy(update={"speed": 3.125e9, "max_speed": 12.5e9}),)},
        "port ens1 runs at 25 of 100 Gbit/s",
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
    (7, {"numa": NODES}, "20% of the pages since boot were taken on another node"),
    (
        21,
        {"gpus": (SXM, SXM.model_copy(update={"nvlinks": 16}))},
        "1 GPU with 16 of 18 NVLinks active",
    ),
    (
        21,
        {"gpus": (SXM, SXM.model_copy(update={"nvlink_errors": 7}))},
        "7 NVLink errors since the driver was loaded, on 1 GPU",
    ),
    (
        23,
        {"nics": (PORT.model_copy(update={"missed": 40, "ring": 1024, "ring_max": 8192}),)},
        "ens1 found no free buffer for 40 packets since boot; its ring has 1024 of 8192 entries",
    ),
    (
        23,
        {"nics": (PORT.model_copy(update={"irqs": (31, 32, 33), "irqs_remote": 2}),)},
        "2 of 3 interrupts of ens1 go to CPUs outside its own NUMA node (0)",
    ),
    (
        24,
        {"nics": (PORT.model_copy(update={"pause_storms": 3}),)},
        "ens1 stalled its link by pauses 3 times since boot",
    ),
    (24, {"nics": (PORT.model_copy(update={"ecn": False}),)}, "congestion control by ECN is off on ens1"),
    (
        24,
        {"nics": (PORT.model_copy(update={"congestion_marks": 0}),)},
        "ens1 had 8 pauses since boot and not one ECN mark",
    ),
    (
        25,
        {"disks": (Disk(name="nvme0n1", scheduler="mq-deadline"), Disk(name="sda", scheduler="mq-deadline"))},
        "the I/O scheduler of nvme0n1 is mq-deadline (1 such)",
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
    top = peak.full_memory(sound())
    assert top and top.rate == pytest.approx(2 * 460.8e9) and top.basis == "24 channels at 4,800 MT/s"
    assert 1 not in said_by(Subject(sound(), memory_bandwidth=0.6 * top.rate))  # 80% if stores read the line first
    text = said_by(Subject(sound(), memory_bandwidth=0.5 * top.rate))[1]
    assert text.startswith("memory bandwidth is 50% of the theoretical 921.6 GB/s (24 channels at 4,800 MT/s)")


def test_an_empty_channel_is_missing_from_the_peak_that_a_rule_asks_for_alone() -> None:
    half = sound(dimms=FULL[:12])
    full, populated = peak.full_memory(half), peak.memory(half)
    assert full and populated and full.rate == pytest.approx(2 * populated.rate)
    assert populated.basis == "12 channels at 4,800 MT/s"
    assert said_by(Subject(half, memory_bandwidth=0.6 * populated.rate)).keys() == {1, 2}


@pytest.mark.parametrize(
    ("model", "number"),
    [
        ("AMD EPYC 9654 96-Core Processor", 12),
        ("AMD EPYC 9755 128-Core Processor", 12),
        ("AMD EPYC 8534P 64-Core Processor", 6),
        ("AMD EPYC 7763 64-Core Processor", 8),
        ("AMD EPYC 7742 64-Core Processor", 8),
        ("Intel(R) Xeon(R) Platinum 8480+", 8),
        ("INTEL(R) XEON(R) PLATINUM 8592+", 8),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", 8),
        ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", 6),
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 6),
        ("Intel(R) Xeon(R) 6980P", 12),
        ("Intel(R) Xeon(R) 6521P", 8),
        ("Intel(R) Xeon(R) 6726P-B", None),  # a different die
        ("Intel(R) Xeon(R) 6353P", None),
        ("Intel(R) Xeon(R) CPU Max 9480", None),
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", None),
        ("AMD EPYC 4345P 8-Core Processor", None),
        ("", None),
    ],
)
def test_channels_are_those_of_the_table_or_unknown(model: str, number: int | None) -> None:
    known = table.channels(model)
    assert (known and known.value) == number
    assert known is None or "https://" in known.source


def test_every_row_of_the_table_says_its_source_and_how_it_was_checked() -> None:
    document = read_yaml(Path(table.__file__).with_name("peaks.yml"))
    left_out = document.pop("left_out")
    assert left_out and all(set(row) == {"device", "figures", "reason"} and all(row.values()) for row in left_out)
    assert set(document) == {"processors", "devices", "memory_speeds", "memory_sizes", "power_limits"}
    for row in (row for rows in document.values() for row in rows):
        assert row["model"] and row["source"] and row["checked"], row
        assert re.search(r"https?://", row["source"]) or row["source"] == "the name of the device", row
        assert set(row) <= {
            *("model", "channels", "memory", "nvlinks", "nvlink", "pair_link", "source", "checked"),
            *("dense16", "tf32", "fp8", "fp4", "int8", "fp64", "mts", "watts", "size"),
        }


def test_peaks_of_network_and_accelerators() -> None:
    slow = PORT.model_copy(update={"name": "eth0", "speed": 1.25e8})
    off = PORT.model_copy(update={"name": "ens2", "speed": 1e11, "state": "down"})
    top = peak.component_peak(sound(nics=(slow, PORT, off)), "link")
    assert (
        top and (top.rate, top.basis) == (50e9, "a link of 400 Gbit/s") and peak.component_peak(sound(), "link") is None
    )
    gpu = SXM.model_copy(update={"max_pcie_gen": 5, "max_pcie_width": 16, "bus": "00000000:19:00.0"})
    link = peak.component_peak(sound(gpus=(gpu,)), "pcie")
    assert link and link.basis == "a PCIe link of 32 GT/s x16" and link.rate == pytest.approx(63.015e9, rel=1e-4)
    riser = PcieLink(address="0000:19:00.0", name="H100", speed=2.5, max_speed=16.0, width=8, max_width=8)
    of_riser = peak.component_peak(sound(gpus=(gpu,), pcie=(riser,)), "pcie")
    assert of_riser and of_riser.basis == "a PCIe link of 16 GT/s x8"
    assert peak.component_peak(sound(gpus=(SXM,)), "pcie") is None
    memory = peak.component_peak(sound(gpus=(SXM, SXM)), "device_memory")
    assert memory and memory.rate == 3.35e12 and "https://" in memory.source
    dense = peak.component_peak(sound(gpus=(SXM,)), "device_compute")
    assert dense and dense.rate == 989.5e12
    known = [table.nvlinks(name) for name in ("NVIDIA H200", "NVIDIA L40S", "Tesla T4", "NVIDIA GH200 480GB")]
    assert [e and e.value for e in known] == [18, 0, None, None]
    unknown = SXM.model_copy(update={"name": "Tesla T4"})
    mixed = sound(gpus=(SXM, unknown))
    for component in ("device_memory", "device_compute"):
        assert (
            peak.component_peak(sound(gpus=(unknown,)), component) is None
            and peak.component_peak(mixed, component) is None
        )


def test_what_was_measured_stands_beside_its_peak(tmp_path: Path) -> None:
    link = Bench("nvbandwidth", "host_to_device_memcpy_ce", "link_bandwidth", "B/s", "higher", "collective")
    rate = Bench("torch_ops", "basic-2048t-b1/roof/memory", "memory_rate", "B/s", "higher", "mem-bw")
    flops = Bench("torch_ops", "basic-2048t-b1/roof/bf16", "peak", "FLOP/s", "higher", "gpu-compute")
    net = Bench("iperf3", "tcp-8", "bitrate", "B/s", "higher", "net", subject="a>b")
    values = {
        ("a", link): [50e9],
        ("a", rate): [2.68e12],
        ("a", flops): [690e12],
        ("a", net): [40e9],
        ("b", TRIAD): [3e11],
    }
    archive = campaign(tmp_path, values)
    gpu = SXM.model_copy(update={"max_pcie_gen": 5, "max_pcie_width": 16})
    for host in "ab":
        archive.save_facts(host, sound(gpus=(gpu, gpu) if host == "a" else (), nics=(PORT,)), {})
    roofs = json.loads(run(tmp_path, "tune", "--format", "json"))["roofs"]
    shares = {(r["host"], r["part"]): round(r["best"] / r["peak"], 2) for r in roofs if r["best"] and r["peak"]}
    assert shares == {
        ("a", "network"): 0.8,
        ("b", "network"): 0.8,
        ("b", "memory"): 0.43,  # 4/3 of what was counted
        ("a", "PCIe of a GPU"): 0.79,
        ("a", "memory of a GPU"): 0.8,
        ("a", "computing of a GPU, bf16"): 0.7,
    }
    text = run(tmp_path, "tune")
    assert "690 TFLOP/s" in text and "69.7%" in text


def test_an_odd_mtu_is_one_that_most_hosts_do_not_have() -> None:
    nic = Nic(name="ens1", speed=12.5e9, mtu=1500, state="up")
    mtus = {12.5e9: Counter({9000: 7, 1500: 1})}
    odd = said_by(Subject(sound(nics=(nic,)), mtus=mtus))
    assert odd == {23: "MTU of ens1 is 1500, 9000 on most hosts of its kind"}
    assert said_by(Subject(sound(nics=(nic.model_copy(update={"mtu": 9000}),)), mtus=mtus)) == {}
    assert (
        said_by(Subject(sound(nics=(nic,)), mtus={12.5e9: Counter({9000: 1})})) == {}
    )  # a single host is not a majority


def test_a_host_has_one_vote_on_the_mtu_of_others() -> None:
    nic = Nic(name="ens1", speed=12.5e9, mtu=1500, state="up")
    hosts = {name: sound(nics=(nic,)) for name in "abc"}
    many = [Nic(name=f"e{n}", speed=12.5e9, mtu=9216, state="up") for n in range(1000)]
    hosts["many"] = sound(nics=(*many, nic))
    hosts["huge"] = sound(nics=(nic.model_copy(update={"mtu": 2**31 - 1}), nic.model_copy(update={"mtu": 0})))
    hosts["torn"] = sound(nics=(nic, nic.model_copy(update={"name": "ens2", "mtu": 9000})))
    (votes,) = _mtus(hosts).values()
    assert votes == {12.5e9: Counter({1500: 3, 9216: 1})}


@pytest.mark.parametrize(
    ("log", "direct"),
    [
        ("h:1:2 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/0/GDRDMA\n", True),
        ("h:1:2 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/0\n", False),
        ("h:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n", False),
        ("h:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/CUMEM\n", None),
        ("h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n", None),
        ("# Out of bounds values : 0 OK\n", None),
    ],
)
def test_the_way_between_hosts_by_the_log_of_nccl(log: str, direct: bool | None) -> None:
    assert gpu_direct(log.encode()) is direct


def test_idle_accelerators_and_virtual_machines_are_left_alone() -> None:
    gpu = PcieLink(address="1", name="H100", kind="3D controller", speed=2.5, max_speed=32.0, width=16, max_width=16)
    assert said_by(Subject(sound(pcie=(gpu,)))) == {}
    virtual = {"virtualisation": "kvm", "clocksource": "kvm-clock", "iommu": "DMA", "acs_redirect": ("1",)}
    assert said_by(Subject(sound(**virtual))) == {}


MEASURED: list[tuple[int, dict[str, Any], str]] = [
    (6, {"responsive": True}, "CPUs were in deep idle states for 62% of the time since boot; waking from C6 takes 133 µs"),
    (7, {"remote_bandwidth": 0.4}, "the memory of another node gives 40% of the bandwidth of a node's own"),
    (12, {"trials": {"smt": (changed(1.08, 0.02),)}}, "with one thread a core stream all-cores triad is 1.08 times as good"),
    (18, {"slowed": {"power_cap": 0.25, "hw_thermal": 0.01}}, "GPUs were throttled while they worked; samples of a run: hw_thermal 1%, power_cap 25%"),
    (13, {"stolen": 0.03}, "the hypervisor took 3.0% of the CPU time of a run"),
    (13, {"waited": 0.02}, "something waited for a CPU in 2.0% of the time of a run"),
    (22, {"collective": Share("a all_reduce busbw", 300e9, 360e9, 7)}, "a all_reduce busbw: 83% of the median of 7 hosts of its kind"),
    (22, {"gpu_direct": False}, "collectives send through host memory: their network log shows no GPU-direct RDMA"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "measured", "evidence"), MEASURED)
def test_rules_on_what_was_measured(number: int, measured: dict[str, Any], evidence: str) -> None:
    capped = tuple(GPU.model_copy(update={"name": SXM.name, "power_limit": 500.0}) for _ in range(2))
    assert said_by(Subject(sound(idle_states=(C6,), gpus=capped), **measured)) == {number: evidence}


SAPPHIRE = Cpu(model="Intel(R) Xeon(R) Platinum 8480+", sockets=2, cores=112, threads=224, arch="x86_64")
FAST_MODULES = {"size": 32 << 30, "type": "DDR5", "rated_mts": 5600}
SILENT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "5600 modules on a processor that supports 4800",
        {"cpu": SAPPHIRE, "dimms": tuple(Dimm(slot=str(n), configured_mts=4800, **FAST_MODULES) for n in range(16))},
        {},
    ),
    (
        "two modules in each channel",
        {"cpu": SAPPHIRE, "dimms": tuple(Dimm(slot=str(n), configured_mts=4400, **FAST_MODULES) for n in range(32))},
        {},
    ),
    (
        "a processor that the table lacks",
        {
            "cpu": Cpu(model="x", sockets=2),
            "dimms": tuple(Dimm(slot=str(n), configured_mts=4000, **FAST_MODULES) for n in range(2)),
        },
        {},
    ),
    (
        "a power cap at the maker's limit",
        {"gpus": (SXM.model_copy(update={"power_limit": 700.0}),)},
        {"slowed": {"power_cap": 0.9}},
    ),
    ("a power cap at an unknown limit", {}, {"slowed": {"power_cap": 0.9}}),
    (
        "a management port at 1 of 10 Gbit/s beside a port at full speed, and one without a link",
        {
            "nics": (
                PORT.model_copy(update={"max_speed": 50e9}),
                Nic(name="eno1", speed=1.25e8, max_speed=1.25e9, state="up"),
                Nic(name="ens2", max_speed=50e9, state="down"),
            )
        },
        {},
    ),
    (
        "an interface whose ring is small and drops nothing",
        {"nics": (PORT.model_copy(update={"missed": 0, "ring": 512, "ring_max": 8192}),)},
        {},
    ),
]


@pytest.mark.parametrize(("facts_of_host", "measured"), [case[1:] for case in SILENT], ids=[case[0] for case in SILENT])
def test_no_rule_speaks_of_a_sound_machine(facts_of_host: dict[str, Any], measured: dict[str, Any]) -> None:
    assert said_by(Subject(sound(**facts_of_host), **measured)) == {}


def test_advice_that_could_do_harm_says_so() -> None:
    rules = {rule.name: rule for rule in RULES}
    assert "drain" in str(rules["memory-uncorrected"].suggestion)
    wrong = Subject(sound(edac_corrected=7, edac_uncorrected=1))
    assert rules["memory-uncorrected"].evidence(wrong) and not rules["memory-errors"].evidence(wrong)
    assert "the link may reset" in str(rules["nic-rings"].suggestion)
    assert all(rule.source for rule in RULES)


def test_what_is_within_bounds_is_no_evidence() -> None:
    sleepless = (C6.model_copy(update={"disabled": True}), C6.model_copy(update={"number": 1, "latency_s": 2e-6}))
    assert said_by(Subject(sound(idle_states=(C6,)))) == {}  # no latency was measured
    assert said_by(Subject(sound(idle_states=sleepless), responsive=True)) == {}
    assert said_by(Subject(sound(), slowed={"power_cap": 0.1, "thermal": 0.0})) == {}
    saving = sound(governor="powersave", cpu=GENOA.model_copy(update={"max_hz": 3.7e9}))
    assert said_by(Subject(saving, clock=3.4e9)) == {}
    slow = "CPU frequency governor is powersave; under load the clock was 70% of the highest"
    assert said_by(Subject(saving, clock=2.6e9)) == {4: slow}
    usual = Share("x", 340e9, 360e9, 7)
    assert said_by(Subject(sound(), stolen=0.01, waited=0.01, remote_bandwidth=0.6, collective=usual)) == {}
    assert said_by(Subject(sound(), gpu_direct=True, trials={"smt": (changed(1.04, 0.01), changed(1.2, 0.3))})) == {}
    assert said_by(Subject(sound(gpus=(SXM, SXM), nics=(PORT,), numa=NODES[1:]))) == {}


def test_every_rule_of_the_methodology_speaks_somewhere() -> None:
    assert {rule.number for rule in RULES} == set(range(1, 26))
    assert {number for number, *_ in (*CASES, *MEASURED)} | {1} == set(range(1, 26))
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert [r.name for r in RULES if r.measured] == ["memory-bandwidth", "smt", "busy", "collectives"]
    for rule in RULES:
        assert rule.inputs and rule.suggestion and rule.retest and rule.source


def test_settings_are_those_of_the_host(tmp_path: Path) -> None:
    nic = PORT.model_copy(update={"ring": 1024, "ring_max": 8192, "irqs": (31, 32), "addresses": ("10.0.0.1/24",)})
    host = sound(
        idle_states=(C6,), numa=NODES, nics=(nic, nic.model_copy(update={"name": "a b;c"})),
        disks=(Disk(name="nvme0n1", scheduler="mq-deadline"),), gpus=(SXM,),
    )  # fmt: skip
    usual = {50e9: Counter({9000: 7})}
    shown = {r.name: s.shown for r in RULES if r.setting and (s := r.setting(Subject(host, mtus=usual)))}
    assert shown["governor"] == "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor = performance"
    assert shown["idle-states"] == "/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state3/disable = 1"
    assert shown["gpu-persistence"] == "nvidia-smi -i 0 -pm 1"
    assert shown["mtu"] == "ip link set dev ens1 mtu 9000"
    assert shown["nic-rings"] == "ethtool -G ens1 rx 8192"
    assert shown["nic-interrupts"] == "/proc/irq/31/smp_affinity_list = 0,1; /proc/irq/32/smp_affinity_list = 0,1"
    assert shown["disk-scheduler"] == "/sys/block/nvme0n1/queue/scheduler = none"
    assert not any("a b;c" in text for text in shown.values())  # a name with shell characters is in no path or command


def test_an_mtu_that_would_not_come_back_entirely_is_refused() -> None:
    nic = PORT.model_copy(update={"addresses": ("10.0.0.1/24",)})
    rule = next(r for r in RULES if r.name == "mtu")
    assert rule.setting
    named = rule.setting(Subject(sound(nics=(nic,))))
    assert named and named.with_value("1280").items[0].unless == f"/sys/class/net/{nic.name}/upper_*"
    for value in ("1279", "9k"):
        with pytest.raises(FleetmarkError, match="a value below 1280 cannot be undone; use at least 1280"):
            named.with_value(value)
    usual = rule.setting(Subject(sound(nics=(nic,)), mtus={nic.speed or 0.0: Counter({576: 7})}))
    assert usual and usual.items[0].value == ""


def test_the_command_line(tmp_path: Path) -> None:
    values = usual(("a", "b", "c"))
    values["b", TRIAD] = [300e9] * 5
    archive = campaign(tmp_path, values)
    for host in "abc":
        archive.save_facts(host, sound(boost=host != "a", gpus=()), {})
    document = json.loads(run(tmp_path, "tune", "--format", "json"))
    bandwidth = [a for a in document["advice"] if a["rule"] == 1]
    assert sorted(host for a in bandwidth for host in a["hosts"]) == ["a", "b", "c"]
    assert [(a["rule"], a["hosts"]) for a in document["advice"] if a["rule"] != 1] == [(5, ["a"])]
    memory = [r for r in document["roofs"] if r["part"] == "memory"]
    assert memory[1]["best"] == pytest.approx(300e9 * 1.3333) and memory[1]["peak"] == pytest.approx(921.6e9)
    table = run(tmp_path, "tune")
    assert "CPU boost is off: 1 host (a); fact only: no gain was measured" in " ".join(table.split())
    assert "921.6 GB/s" in table
    assert "### 5 boost" in run(tmp_path, "tune", "--format", "md")
    assert "建议" in run(tmp_path, "tune", "--lang", "zh-CN")


def test_what_runs_showed_of_clocks_and_of_what_held_devices_back(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual(("a", "b")))
    for host, busy, power in (("a", 0.97, 0.3), ("b", 0.4, 0.05)):
        ends = {"cpu_busy": busy, "clock_hz_mean": 2.6e9, "cpu_steal": 0.03}
        summary = {name: {"min": v, "mean": v, "max": v} for name, v in ends.items()}
        devices = [{"index": 0, "name": SXM.name, "slowed": {"power_cap": power}}]
        telemetry = {"samples": {}, "summary": summary, "gpus": {"source": "nvml", "devices": devices}}
        step = {"workload": "stream", "case": "all-cores", "repeat": 0, "subject": "host"}
        save_step(archive, host, step, {"result.json": json.dumps({"telemetry": telemetry}).encode()})
        limited = (SXM.model_copy(update={"power_limit": 500.0}),)
        fast = GENOA.model_copy(update={"max_hz": 3.7e9})
        archive.save_facts(host, sound(governor="powersave", cpu=fast, gpus=limited), {})
    advice = {
        (a["name"], h): a["evidence"]
        for a in json.loads(run(tmp_path, "tune", "--format", "json"))["advice"]
        for h in a["hosts"]
    }
    assert advice["governor", "a"] == "CPU frequency governor is powersave; under load the clock was 70% of the highest"
    assert advice["governor", "b"] == "CPU frequency governor is powersave"  # it was under no load
    assert advice["gpu-throttle", "a"].endswith(": power_cap 30%") and ("gpu-throttle", "b") not in advice
    assert advice["busy", "a"] == advice["busy", "b"] == "the hypervisor took 3.0% of the CPU time of a run"
