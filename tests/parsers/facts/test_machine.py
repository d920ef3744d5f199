"""The readers of facts against one virtual machine whose hardware is known: data/README.md says how it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.facts import Cpu, Facts, NumaNode
from fleetmark.parsers.facts import normalise, parse

DATA = Path(__file__).parent / "data"
MIB = 1 << 20
ROOT_PORT_16, ROOT_PORT_8 = "0000:00:05.0", "0000:00:06.0"


def raw(name: str) -> bytes:
    return (DATA / name).read_bytes()


def document(name: str) -> dict[str, Any]:
    return dict(json.loads(raw(name)))


def facts(name: str) -> Facts:
    return normalise(document(name), skew=0.5, root=True, work_dir="/srv/fleetmark")


def test_processors_and_offline_cpus() -> None:
    cpu = facts("vm_root.json").cpu
    assert (cpu.sockets, cpu.threads, cpu.arch, cpu.vendor) == (2, 14, "x86_64", "AuthenticAMD")
    assert "EPYC" in (cpu.model or "")
    assert any("2 CPUs are offline" in note for note in facts("vm_root.json").notes)


def test_lscpu_says_the_same_as_text_and_json() -> None:
    text, flat = parse("lscpu", raw("lscpu.txt")), parse("lscpu", raw("lscpu.json"))
    assert text["flags"]
    assert text == flat
    assert (text["cpus"], len(text["online"]), text["offline"]) == (16, 14, (14, 15))
    assert text["numa"][2] == ()


def test_cache_table_says_the_same_as_text_and_json() -> None:
    text, rows = parse("lscpu", raw("lscpu_caches.txt"))["caches"], parse("lscpu", raw("lscpu_caches.json"))["caches"]
    assert [c["name"] for c in text] == ["L1d", "L1i", "L2", "L3"]
    assert text == rows
    lines = parse("lscpu", raw("lscpu.txt"))["caches"]
    assert [(c["size"], c["instances"]) for c in lines] == [(c["size"], c["instances"]) for c in rows]


def test_numa_nodes_one_without_cpus() -> None:
    nodes = facts("vm_root.json").numa
    assert [node.cpus for node in nodes] == [tuple(range(8)), tuple(range(8, 14)), ()]
    assert [node.distances for node in nodes] == [(10, 21, 17), (21, 10, 28), (17, 28, 10)]
    assert [0.8 < (node.memory or 0) / (size * MIB) <= 1 for node, size in zip(nodes, (700, 600, 200), strict=True)]


@pytest.mark.parametrize("name", ["vm_root.json", "vm_nobody.json"])
def test_without_lscpu_and_numactl_sysfs_says_the_same(name: str) -> None:
    doc = document(name)
    for command in ("lscpu", "numactl"):
        doc["commands"][command] = {"argv": [command], "rc": None, "out": "", "err": "not found"}
    with_tools = facts(name)
    each = [(cache, number) for cache in with_tools.cpu.caches for number in range(cache.instances)]
    doc["caches"] = [[str(c.level), c.type.title(), f"{c.size >> 10}K", str(number)] for c, number in each]
    without = normalise(doc, skew=None, root=True, work_dir="/srv/fleetmark")
    keys = set(Cpu.model_fields) - {"flags"}
    assert without.cpu.model_dump(include=keys) == with_tools.cpu.model_dump(include=keys)
    assert set(without.cpu.flags) == set(with_tools.cpu.flags)
    for mine, theirs in zip(without.numa, with_tools.numa, strict=True):
        keys = set(NumaNode.model_fields) - {"memory"}  # numactl rounds down to whole MiB
        assert mine.model_dump(include=keys) == theirs.model_dump(include=keys)
        assert 0 <= (mine.memory or 0) - (theirs.memory or 0) < MIB
    assert any("lscpu is not installed" in note for note in without.notes)


def test_memory_slots() -> None:
    (dimm,) = facts("vm_root.json").dimms
    assert (dimm.size, dimm.rated_mts, dimm.manufacturer, dimm.part) == (1500 * MIB, 3200, "Acme", "AB-1")
    assert dimm.slot.startswith("DIMM_A")
    (slot,) = parse("dmidecode", raw("dmidecode.txt"))["memory"]
    assert (slot["size"], slot["rated_mts"], slot["bank"]) == (1500 * MIB, 3200, "P0")


def test_vendor_and_product() -> None:
    host = facts("vm_nobody.json")
    assert (host.vendor, host.product, host.virtualisation) == ("Acme", "Box", "qemu")
    assert host.dimms == ()
    assert any("dmidecode needs root" in note for note in host.notes)


USES = {
    "sda": {"mounted at /srv (sda1)", "mounted at /tmp/my data (sda1)", "swap (sda2)", "has partition sda1"},
    "sdb": {"part of raid1 md0"},
    "sdc": {"part of raid1 md0"},
    "sdd": {"part of lvm vg0-data"},
    "sde": {"part of crypt secret"},
}
SIGNATURES = {
    "sda": {"holds ext4 (sda1)", "holds swap (sda2)", "holds a gpt partition table (sda)"},
    "sdb": {"holds linux_raid_member (sdb)", "holds ext4 (md0)"},
    "sdc": {"holds linux_raid_member (sdc)", "holds ext4 (md0)"},
    "sdd": {"holds LVM2_member (sdd)"},
    "sde": {"holds crypto_LUKS (sde)"},
    "nvme1n1": {"holds ext4 (nvme1n1)"},
}


def uses(name: str) -> dict[str, set[str]]:
    return {disk.name: set(disk.in_use) for disk in facts(name).disks}


@pytest.mark.parametrize("name", ["vm_root.json", "vm_nobody.json", "vm_udev_nobody.json"])
def test_disks_in_use(name: str) -> None:
    in_use = uses(name)
    assert {disk: in_use[disk] & use for disk, use in USES.items()} == USES
    sizes = {disk.name: disk.size for disk in facts(name).disks}
    assert sizes == {n: (100 if n.startswith("nvme") else 200) * MIB for n in (*USES, "sdf", "nvme0n1", "nvme1n1")}


def test_root_knows_a_blank_disk_from_a_held_one_without_udev() -> None:
    in_use = uses("vm_root.json")
    assert in_use["nvme0n1"] == set()
    assert in_use["nvme1n1"] == {"holds ext4 (nvme1n1)"}
    assert in_use["sdf"] == {"claimed (sdf): the kernel refuses an exclusive open"}


def test_who_cannot_see_calls_no_disk_free() -> None:
    blind = uses("vm_nobody.json")
    for disk in ("sdf", "nvme0n1", "nvme1n1"):
        assert [use for use in blind[disk] if use.startswith("contents unknown")], disk


def test_signatures_as_udev_tells_them() -> None:
    in_use = uses("vm_udev_nobody.json")
    assert {disk: in_use[disk] & use for disk, use in SIGNATURES.items()} == SIGNATURES
    assert in_use["nvme0n1"] == in_use["sdf"] == set()


def test_container_sees_no_free_disk() -> None:
    doc = document("vm_udev_nobody.json")
    doc["commands"]["systemd_detect_virt"]["out"] = "docker\n"
    result = normalise(doc, skew=None, root=True, work_dir="/srv")
    assert result.virtualisation == "docker"
    assert all(disk.in_use for disk in result.disks)


@pytest.mark.parametrize("gone", ["lsblk", "mountinfo"])
def test_mounts_are_seen_from_either_source(gone: str) -> None:
    doc = document("vm_nobody.json")
    if gone == "mountinfo":
        doc["files"]["/proc/self/mountinfo"] = ""
    else:
        doc["commands"]["lsblk"]["out"] = (
            doc["commands"]["lsblk"]["out"].replace("/srv", "").replace("/tmp/my data", "")
        )
    disks = normalise(doc, skew=None, root=True, work_dir="/srv").disks
    assert "mounted at /tmp/my data (sda1)" in next(d.in_use for d in disks if d.name == "sda")


def test_lsblk_pairs_say_the_same_as_json() -> None:
    tree, pairs = (parse("lsblk", raw(name))["disks"] for name in ("lsblk.json", "lsblk_pairs.txt"))
    for mine, theirs in zip(pairs, tree, strict=True):
        # The pairs were asked for without MOUNTPOINTS and PTTYPE, as an old lsblk must be.
        assert set(theirs["in_use"]) - set(mine["in_use"]) <= {"mounted at /srv (sda1)", *SIGNATURES["sda"]}
        assert {**mine, "in_use": ()} == {**theirs, "in_use": ()}


def test_lsblk_pairs_without_parents_are_refused() -> None:
    with pytest.raises(ParseError, match="PKNAME"):
        parse("lsblk", raw("lsblk_pairs_without_parents.txt"))


def test_pcie_links_of_lspci_and_of_sysfs() -> None:
    by_lspci = {link.address: link for link in facts("vm_root.json").pcie}
    assert (by_lspci[ROOT_PORT_16].max_speed, by_lspci[ROOT_PORT_16].max_width) == (16.0, 16)
    assert (by_lspci[ROOT_PORT_8].max_speed, by_lspci[ROOT_PORT_8].max_width) == (8.0, 4)
    behind = [link for link in by_lspci.values() if link.kind == "Non-Volatile memory controller"]
    assert [(link.speed, link.width) for link in behind] == [(2.5, 1), (2.5, 1)]
    assert (by_lspci[ROOT_PORT_16].speed, by_lspci[ROOT_PORT_16].width) == (2.5, 1)
    # Capabilities are not readable: the links come from sysfs and must be the same.
    assert {link.address: link for link in facts("vm_nobody.json").pcie} == by_lspci


def test_lspci_whole_and_cut_on_the_host_say_the_same() -> None:
    cut = document("vm_root.json")["commands"]["lspci"]["out"].encode()
    assert 0 < len(cut) < len(raw("lspci.txt")) / 4
    assert parse("lspci", cut) == parse("lspci", raw("lspci.txt"))
    assert {ROOT_PORT_16, ROOT_PORT_8} <= set(facts("vm_root.json").acs_redirect)


def test_nic() -> None:
    (nic,) = facts("vm_root.json").nics
    assert (nic.name, nic.driver, nic.state, nic.speed) == ("eth0", "e1000e", "up", 1e9 / 8)
    assert nic.addresses == ("192.0.2.7/24",)


@pytest.mark.parametrize("secret", ["SN1234", "AT99", "11111111-2222", "52:54:00", "5054:ff"])
def test_serials_and_addresses_stay_on_the_host(secret: str) -> None:
    printed = raw("vm_root.json") + raw("vm_nobody.json") + raw("vm_udev_nobody.json")
    assert secret.encode() not in printed
    if ":" not in secret:  # the whole output of dmidecode has it: it was there to be dropped
        assert secret.encode() in raw("dmidecode.txt")


def test_a_document_of_another_kind_is_refused() -> None:
    for doc in ({}, {"schema": 2}, {"schema": 1}, document("vm_root.json") | {"hostname": None}):
        with pytest.raises(FleetmarkError, match="gather them again"):
            normalise(doc, skew=None, root=False, work_dir="/tmp")


@pytest.mark.parametrize(
    ("files", "lscpu", "kind"),
    [
        ({}, '{"field": "Hypervisor vendor:",\n "data": "KVM"}', "kvm"),
        ({}, "Hypervisor vendor:    VMware\n", "vmware"),
        ({}, "", "vm-other"),
        ({"/sys/hypervisor/type": "xen"}, "Hypervisor vendor:    KVM\n", "xen"),
        ({"/run/systemd/container": "lxc\n"}, "Hypervisor vendor:    KVM\n", "lxc"),
        ({"/run/systemd/container": "<b>"}, "Hypervisor vendor:    KVM\n", "container-other"),
        ({"/.dockerenv": ""}, "Hypervisor vendor:    KVM\n", "docker"),
        ({"/proc/cpuinfo": "flags\t: fpu vme\n"}, "", "none"),
        ({"/proc/cpuinfo": "Features\t: fp asimd\n"}, "Hypervisor vendor:    KVM\n", None),
    ],
)
def test_files_tell_what_a_host_is_where_systemd_was_not_asked(
    files: dict[str, str], lscpu: str, kind: str | None
) -> None:
    doc = document("vm_root.json")
    doc["commands"]["systemd_detect_virt"] = {"argv": [], "rc": None, "out": "", "err": "not needed"}
    doc["commands"]["lscpu"] = {"argv": ["lscpu"], "rc": 0, "out": "Architecture: x86_64\n" + lscpu, "err": ""}
    doc["files"].update(files)
    assert normalise(doc, skew=None, root=True, work_dir="/srv").virtualisation == kind
