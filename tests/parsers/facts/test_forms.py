"""Forms of output that neither corpus nor test machine shows: variants of real lines, and what they must mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.parsers.facts import parse, tools


def text(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def nested(**fields: str) -> bytes:
    """lscpu's JSON as util-linux nests it: topology below the model, caches and nodes below headings."""
    topology = [{"field": f"{k}:", "data": v} for k, v in fields.items()]
    rows = [
        {"field": "Architecture:", "data": "x86_64"},
        {"field": "CPU(s):", "data": "64", "children": [{"field": "On-line CPU(s) list:", "data": "0-63"}]},
        {"field": "Vendor ID:", "data": "V", "children": [{"field": "Model name:", "data": "M", "children": topology}]},
        {"field": "Caches (sum of all):", "data": None, "children": [{"field": "L3:", "data": "64 MiB (2 instances)"}]},
        {"field": "Vulnerabilities:", "data": None, "children": [{"field": "Mds:", "data": "Not affected"}]},
    ]
    return json.dumps({"lscpu": rows}).encode()


def test_nested_json_of_lscpu() -> None:
    parsed = parse("lscpu", nested(**{"Core(s) per socket": "16", "Socket(s)": "2", "Thread(s) per core": "2"}))
    assert (parsed["model"], parsed["cores"], parsed["sockets"]) == ("M", 32, 2)
    (l3,) = parsed["caches"]
    assert (l3["size"], l3["instances"], l3["total"]) == (32 << 20, 2, 64 << 20)
    assert parsed["vulnerabilities"] == {"Mds": "Not affected"}


def test_mixed_cores_are_summed() -> None:
    parsed = parse(
        "lscpu",
        text(
            *("Architecture: aarch64", "CPU(s): 6", "On-line CPU(s) list: 0-5", "Vendor ID: ARM"),
            *("Model name: Cortex-A53", "Thread(s) per core: 1", "Core(s) per socket: 4", "Socket(s): 1"),
            *("CPU max MHz: 1416.0000", "Model name: Cortex-A72", "Thread(s) per core: 1"),
            *("Core(s) per socket: 2", "Socket(s): 1", "CPU max MHz: 1800.0000"),
        ),
    )
    assert (parsed["model"], parsed["cores"], parsed["sockets"]) == ("Cortex-A53 + Cortex-A72", 6, 1)
    assert parsed["max_hz"] == 1.8e9


def test_arm_guest_with_clusters_and_no_name() -> None:
    parsed = parse(
        "lscpu",
        text(
            *("Architecture: aarch64", "CPU(s): 8", "Vendor ID: 0x41", "Model name: -", "Thread(s) per core: 1"),
            *("Core(s) per cluster: 4", "Socket(s): -", "Cluster(s): 2"),
        ),
    )
    assert parsed["cores"] == 8
    assert "model" not in parsed
    assert "sockets" not in parsed


def test_old_lscpu_gives_one_cache_and_no_count() -> None:
    parsed = parse("lscpu", text("Architecture: x86_64", "CPU(s): 8", "L1d cache: 32K", "L3 cache: 33792K"))
    assert [(c["size"], c["instances"]) for c in parsed["caches"]] == [(32 << 10, None), (33 << 20, None)]


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("Size: No Module Installed", 0),
        ("Size: Not Installed", 0),
        ("Size: 16384 MB", 16 << 30),
        ("Size: 1 TB", 1 << 40),
        ("Size: 524288 kB", 512 << 20),
        ("Size: Unknown", None),
        ("Size: <OUT OF SPEC>", None),
    ],
)
def test_slot_sizes(line: str, size: int | None) -> None:
    head = ("Handle 0x0011, DMI type 17, 40 bytes", "Memory Device", "\tLocator: A1")
    (slot,) = parse("dmidecode", text(*head, f"\t{line}"))["memory"]
    assert slot.get("size") == size
    assert (size is None) == ("size" not in slot)


def test_old_dmidecode_says_mhz_and_clock_speed() -> None:
    lines = ("Memory Device", "\tSize: 8 GB", "\tSpeed: 1600 MHz (0.6 ns)", "\tConfigured Clock Speed: 1333 MHz")
    (slot,) = parse("dmidecode", text("Handle 0x0011, DMI type 17, 34 bytes", *lines))["memory"]
    assert (slot["rated_mts"], slot["configured_mts"]) == (1600, 1333)


def test_flash_is_no_memory() -> None:
    parsed = parse(
        "dmidecode",
        text(
            *("Handle 0x0001, DMI type 16, 23 bytes", "Physical Memory Array", "\tUse: Flash Memory", ""),
            *("Handle 0x0002, DMI type 16, 23 bytes", "Physical Memory Array", "\tUse: System Memory", ""),
            *("Handle 0x0003, DMI type 17, 34 bytes", "Memory Device", "\tArray Handle: 0x0001", "\tSize: 16 MB", ""),
            *("Handle 0x0004, DMI type 17, 34 bytes", "Memory Device", "\tArray Handle: 0x0002", "\tSize: 16 GB"),
        ),
    )
    assert [slot["size"] for slot in parsed["memory"]] == [16 << 30]


DISK = {"name": "sda", "kname": "sda", "maj:min": "8:0", "type": "disk", "size": "1000204886016", "rota": "1"}


def in_use(**fields: Any) -> tuple[str, ...]:
    parsed = parse("lsblk", json.dumps({"blockdevices": [DISK | fields]}).encode())
    return tuple(parsed["disks"][0]["in_use"])


def test_a_blank_disk_is_free_with_numbers_as_text() -> None:
    parsed = parse("lsblk", json.dumps({"blockdevices": [DISK]}).encode())
    (disk,) = parsed["disks"]
    assert (disk["in_use"], disk["size"], disk["rotational"]) == ((), 1000204886016, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"fstype": "zfs_member"},
        {"fstype": "ceph_bluestore"},
        {"pttype": "dos"},
        {"mountpoint": "/data"},
        {"mountpoints": [None, "/data"]},
        {"mountpoint": "[SWAP]"},
        {"children": [{"name": "sda1", "type": "part"}]},
        {"children": [{"name": "mpatha", "type": "mpath"}]},
        {"children": [{"name": "bcache0", "type": "disk"}]},
        {"children": [{"name": "x", "type": None}]},
    ],
)
def test_anything_on_a_disk_is_use(fields: dict[str, Any]) -> None:
    assert in_use(**fields)


def test_memory_disks_and_optical_drives_are_no_disks() -> None:
    others = [{"name": "zram0", "type": "disk", "size": 4096}, {"name": "sr0", "type": "rom", "size": 4096}]
    others += [{"name": "loop0", "type": "loop", "size": 4096}, {"name": "nbd3", "type": "disk", "size": 0}]
    assert parse("lsblk", json.dumps({"blockdevices": others}).encode())["disks"] == []


def test_downgraded_link_with_remarks() -> None:
    parsed = parse(
        "lspci",
        text(
            "10000:e1:00.0 Non-Volatile memory controller: Some Company: NVMe SSD (rev 01) (prog-if 02 [NVM Express])",
            "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x4, ASPM L1, Exit Latency L1 <64us",
            "\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x2 (strange)",
        ),
    )
    (ssd,) = parsed["functions"]
    assert (ssd["address"], ssd["name"]) == ("10000:e1:00.0", "Some Company: NVMe SSD")
    assert (ssd["speed"], ssd["max_speed"], ssd["width"], ssd["max_width"]) == (8.0, 32.0, 2, 4)


@pytest.mark.parametrize(
    "parsed",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "No devices were found",
        "",
    ],
)
def test_nvidia_smi_in_words(parsed: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse("nvidia_smi", parsed.encode())
    assert refused.value.got == parsed


def test_old_xml_names_of_nvidia_smi() -> None:
    parsed = parse(
        "nvidia_smi",
        b"<?xml version='1.0'?><!DOCTYPE nvidia_smi_log SYSTEM 'nvsmi_device_v11.dtd'><nvidia_smi_log>"
        b"<driver_version>470.57.02</driver_version><gpu id='00000000:3B:00.0'><product_name>Tesla T4</product_name>"
        b"<fb_memory_usage><total>15109 MiB</total></fb_memory_usage><power_readings><power_limit>70.00 W</power_limit>"
        b"</power_readings><clocks_throttle_reasons><clocks_throttle_reason_hw_thermal_slowdown>Active"
        b"</clocks_throttle_reason_hw_thermal_slowdown></clocks_throttle_reasons></gpu></nvidia_smi_log>\nWARNING: x",
    )
    (gpu,) = parsed["gpus"]
    assert (gpu["memory"], gpu["power_limit"], gpu["slowdown"]) == (15109 << 20, 70.0, ("hw_thermal_slowdown",))
    assert "ecc_uncorrected" not in gpu


def test_rocm_smi_whatever_its_capitals() -> None:
    for series in ("Card series", "Card Series"):
        cards = {"card0": {series: "AMD Instinct MI300X", "VRAM Total Memory (B)": "205822885888"}}
        parsed = parse("rocm_smi", json.dumps(cards | {"system": {"Driver version": "6.7.0"}}).encode())
        assert parsed["gpus"] == [{"index": 0, "name": "AMD Instinct MI300X", "memory": 205822885888}]
        assert parsed["driver"] == "6.7.0"


def test_a_tool_nobody_reads() -> None:
    with pytest.raises(FleetmarkError, match="did you mean lscpu"):
        parse("lscpuu", b"")
    assert {"dmidecode", "lsblk", "lscpu", "lspci", "numactl", "nvidia_smi"} <= set(tools())


T4 = (
    "timestamp, name, pci.bus_id, pstate, pcie.link.gen.max, pcie.link.width.current, temperature.memory, "
    "power.limit [W], memory.total [MiB], ecc.mode.current, mig.mode.current, some.new.column [%], fan.speed [%]"
)


def query(*rows: str) -> list[dict[str, Any]]:
    gpus: list[dict[str, Any]] = parse("nvidia_smi", text(T4, *rows))["gpus"]
    return gpus


def test_columns_of_a_card_that_has_few() -> None:
    row = (
        "2024/03/15 13:57:59.791, Tesla T4, 00000000:00:1E.0, P8, 3, 8, [N/A], 70.00 W, 15360 MiB, Enabled, [N/A], 7, "
    )
    (gpu,) = query(row + "[Not Supported]")
    assert gpu == {
        "index": 0,
        "name": "Tesla T4",
        "bus": "00000000:00:1E.0",
        "max_pcie_gen": 3,
        "pcie_width": 8,
        "power_limit": 70.0,
        "memory": 15360 << 20,
        "ecc": True,
    }


@pytest.mark.parametrize(
    "word",
    ["[N/A]", "N/A", "[Not Supported]", "ERR!", "[Unknown Error]", "[GPU is lost]", "[Insufficient Permissions]"],
)
def test_what_a_card_cannot_tell_is_absent(word: str) -> None:
    gpus = query(
        f"now, {word}, 00000000:00:1E.0, P8, {word}, {word}, {word}, {word}, {word}, {word}, {word}, {word}, {word}",
        "now, Tesla T4, 00000000:00:1F.0, P8, 3, 8, 1, 70, 15360, Enabled, Disabled, 1, 1",
    )
    assert gpus[0] == {"index": 0, "bus": "00000000:00:1E.0"}
    assert (gpus[1]["index"], gpus[1]["name"], gpus[1]["mig"]) == (1, "Tesla T4", False)


def test_several_moments_of_cards_without_an_index_are_those_cards() -> None:
    row = "{}, Tesla T4, 00000000:00:{}.0, P8, 3, 8, [N/A], {}, 15360, Enabled, [N/A], 7, [N/A]"
    gpus = query(*(row.format(t, bus, "[N/A]" if t else "70") for t in range(3) for bus in ("1E", "1F")))
    assert [(g["index"], g["bus"][9:], g["power_limit"]) for g in gpus] == [(0, "00:1E.0", 70.0), (1, "00:1F.0", 70.0)]


def test_a_table_of_cards_without_power_or_name() -> None:
    table = text(
        "| NVIDIA-SMI 550.54.15      Driver Version: 550.54.15      CUDA Version: 12.4     |",
        "|   0  Tesla T4                       Off |   00000000:00:1E.0 Off |                    0 |",
        "| N/A   33C    P8              9W /   70W |       0MiB /  15360MiB |      0%      Default |",
        "|   1  ERR!                           Off |   00000000:00:1F.0 Off |                 ERR! |",
        "|ERR!  ERR! ERR!             N/A / ERR!   |       3MiB /  15360MiB |     ERR!      Default |",
    )
    first, second = parse("nvidia_smi", table)["gpus"]
    assert (first["name"], first["power_limit"], first["memory"]) == ("Tesla T4", 70.0, 15360 << 20)
    assert second == {"index": 1, "bus": "00000000:00:1F.0", "memory": 15360 << 20}
