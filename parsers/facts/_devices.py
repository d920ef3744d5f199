"""Memory slots, disks, NICs, PCIe links and GPUs of a host, each from the source that knows it best."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.facts import Dimm, Disk, Gpu, Nic, PcieLink
from parsers.facts import lsblk, lspci, npu_smi, nvidia_smi, rocm_smi
from parsers.facts._common import integer, leading, text_or_none
from parsers.facts._raw import Raw

_CONTAINERS = ("docker", "podman", "lxc", "lxc-libvirt", "container-other", "openvz", "systemd-nspawn", "rkt")
_RDMA = re.compile(r"/sys/class/infiniband/([A-Za-z0-9][A-Za-z0-9_.-]{0,63})/node_type")


def dimms(raw: Raw, slots: list[dict[str, Any]]) -> tuple[Dimm, ...]:
    """dmidecode's memory slots; two with one name get their bank added."""
    named = Counter(slot.get("slot") for slot in slots)
    result = []
    for n, slot in enumerate(slots):
        name = slot.get("slot") or f"slot {n}"
        if named[slot.get("slot")] > 1 and slot.get("bank"):
            name = f"{slot['bank']} {name}"
        fields = ("size", "type", "rated_mts", "configured_mts", "manufacturer", "part")
        result.append(
            raw.fact(Dimm, f"The memory slot {name}", {"slot": name, **{key: slot.get(key) for key in fields}})
        )
    return tuple(dimm for dimm in result if dimm)


def disks(raw: Raw, virtualisation: str | None) -> tuple[Disk, ...]:
    """Whole disks, and everything that any source knows to use them; a disk of unknown state counts as in use."""
    parsed = raw.parsed("lsblk", lsblk.parse)
    if parsed is None:
        return ()
    # Without udev lsblk cannot see file systems; in a container it sees the host's disks, and not their mounts.
    blind = ""
    if virtualisation in _CONTAINERS:
        blind = "contents unknown: seen from a container"
    elif not parsed["signatures"]:
        blind = "contents unknown: gather facts as root (--become) to see"
    result = []
    mounted, swaps = _mounts(raw), _swaps(raw)
    for disk in parsed["disks"]:
        uses = [*disk["in_use"], *_other_uses(raw, disk["devices"], mounted, swaps)]
        uses += _probe(raw, disk["name"], blind if not uses else "")
        fields = ("model", "size", "rotational", "transport", "scheduler")
        values = {"name": disk["name"], "in_use": tuple(dict.fromkeys(uses)), **{key: disk.get(key) for key in fields}}
        result.append(raw.fact(Disk, f"The disk {disk['name']}", values))
    return tuple(disk for disk in result if disk)


def _probe(raw: Raw, name: str, blind: str) -> list[str]:
    """Signs of use from opening the disk: the kernel's claim, blkid's answer; ``blind`` where neither was tried."""
    claim, probe = raw.table("claimed").get(name), raw.table("probed", name)
    if claim == "EBUSY":
        return [f"claimed ({name}): the kernel refuses an exclusive open"]
    if probe.get("rc") == 0:
        return [f"holds {kind} ({name})" for kind in re.findall(r'TYPE="([^"]+)"', str(probe.get("out")))]
    if probe.get("rc") == 2:
        return []
    if probe or claim not in (None, "free"):
        return [f"contents unknown: opening {name} gave {claim if claim != 'free' else probe.get('err')}"]
    return [blind] if blind else []


def _mounts(raw: Raw) -> dict[str, list[str]]:
    """Device number to where it is mounted."""
    mounted: dict[str, list[str]] = {}
    for line in (raw.file("/proc/self/mountinfo") or "").splitlines():
        fields = line.split()
        if len(fields) > 4:
            mounted.setdefault(fields[2], []).append(_unescaped(fields[4]))
    return mounted


def _swaps(raw: Raw) -> set[str]:
    return {line.split()[0] for line in (raw.file("/proc/swaps") or "").splitlines()[1:] if line.split()}


def _other_uses(
    raw: Raw, devices: tuple[tuple[str, str], ...], mounted: dict[str, list[str]], swaps: set[str]
) -> list[str]:
    """Uses that lsblk may have missed: mounts by device number, swap, sysfs holders."""
    numbers = {number: name for name, number in devices if number}
    uses = [f"mounted at {point} ({name})" for number, name in numbers.items() for point in mounted.get(number, ())]
    for name, _ in devices:
        if f"/dev/{name}" in swaps:
            uses.append(f"swap ({name})")
        held = raw.table("holders").get(name)
        uses += [f"held by {holder} ({name})" for holder in held] if isinstance(held, list) else []
    return uses


def _unescaped(point: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)


def nics(raw: Raw) -> tuple[Nic, ...]:
    """Network interfaces other than loopback, in the kernel's order of names."""
    addresses: dict[str, list[str]] = {}
    if raw.error("ip") is not None:
        raw.parsed("ip", lambda _: {})  # for its note
    for line in (raw.out("ip") or "").splitlines():
        if match := re.match(r"\d+: ([^\s@]+)(?:@\S+)?\s+inet6? (\S+)", line):
            addresses.setdefault(match[1], []).append(match[2])
    result = (_nic(raw, name, tuple(addresses.get(name, ()))) for name in raw.doc.get("nics", ()) if name != "lo")
    return tuple(nic for nic in result if nic)


def rdma(raw: Raw) -> tuple[str, ...]:
    """The names of RDMA devices (InfiniBand, RoCE, iWARP), sorted; other words are none, as names go into commands."""
    matches = (_RDMA.fullmatch(path) for path in raw.files())
    return tuple(sorted(match[1] for match in matches if match))


def _nic(raw: Raw, name: str, addresses: tuple[str, ...]) -> Nic | None:
    base = f"/sys/class/net/{name}/"
    megabits, node = integer(raw.file(base + "speed")), integer(raw.file(base + "device/numa_node"))
    values = {
        "name": name,
        "driver": text_or_none(raw.table("links").get(base + "device/driver")),
        # -1, 0 and 2^32-1 are how drivers say that they do not know
        "speed": megabits * 1e6 / 8 if megabits is not None and 0 < megabits < 0xFFFFFFFF else None,
        "mtu": integer(raw.file(base + "mtu")),
        "state": text_or_none(raw.file(base + "operstate")),
        "numa_node": node if node is not None and node >= 0 else None,
        "addresses": addresses,
    }
    return raw.fact(Nic, f"The interface {name}", values)


def pcie(raw: Raw) -> tuple[tuple[PcieLink, ...], tuple[str, ...], list[dict[str, Any]]]:
    """(links that are up, bridges whose access control redirects peer-to-peer traffic, every function lspci lists)."""
    functions: list[dict[str, Any]] = []
    denied = False
    if raw.out("lspci") or raw.error("lspci") is not None:  # an empty list is an answer: the host has no PCI
        parsed = raw.parsed("lspci", lspci.parse) or {"functions": [], "denied": False}
        functions, denied = parsed["functions"], parsed["denied"]
    sysfs = {address: values for address, values in raw.table("pci").items() if isinstance(values, dict)}
    if denied and not sysfs:
        raw.notes.append("PCIe links are unknown: lspci needs root to read them; gather facts as root (--become).")
    named = {f["address"]: f for f in functions}
    for address, values in sysfs.items():
        function = named.setdefault(address, {"address": address, "name": _ids(values)})
        for ours in ("speed", "width"):
            for prefix, theirs in (("", "current"), ("max_", "max")):
                number = leading(values.get(f"{theirs}_link_{ours}"))
                if number is not None:
                    function.setdefault(prefix + ours, number if ours == "speed" else int(number))
    fields = ("address", "name", "speed", "max_speed", "width", "max_width")
    checked = (
        raw.fact(PcieLink, f"The PCIe link {f['address']}", {"kind": f.get("class"), **{k: f.get(k) for k in fields}})
        for f in named.values()
        if f.get("width") and f.get("max_width")
    )
    links = tuple(link for link in checked if link)
    redirecting = tuple(f["address"] for f in functions if "ReqRedir" in f.get("acs", ()))
    return links, redirecting, functions


def _ids(values: dict[str, Any]) -> str:
    return ":".join(str(values.get(key, "?")).removeprefix("0x") for key in ("vendor", "device"))


def gpus(raw: Raw, functions: list[dict[str, Any]]) -> tuple[Gpu, ...]:
    """GPUs that a driver reports; a note where the bus shows one (``functions``) without a driver."""
    result: list[Gpu] = []
    fields = {*Gpu.model_fields} - {"index", "name", "vendor", "driver"}
    for vendor, maker, command, parse in (
        ("nvidia", "NVIDIA", "nvidia_smi", nvidia_smi.parse),
        ("amd", "Advanced Micro Devices", "rocm_smi", rocm_smi.parse),
        ("huawei", "Huawei", "npu_smi", npu_smi.parse),
    ):
        tool = command.replace("_", "-")
        onboard = [f for f in functions if maker in f["name"] and _accelerates(f, vendor)]
        if raw.error(command) == "not found":  # as in documents of an earlier version, which did not ask for it
            if onboard:
                raw.notes.append(
                    f"{onboard[0]['name']} is on the bus, but {tool} is not installed; install the vendor's driver."
                )
            continue
        if (error := raw.error(command)) is not None:
            raw.notes.append(f"GPUs are unknown: {tool} gave {error}; check the driver (dmesg), it may hang.")
            continue
        try:
            parsed = parse((raw.out(command) or "").encode("utf-8", "replace"))
        except ParseError as problem:
            raw.notes.append(f"GPUs are unknown: {problem}; check the driver (dmesg, {tool}).")
            continue
        for gpu in parsed["gpus"]:
            values = {key: gpu[key] for key in fields if key in gpu}
            values |= {"index": gpu["index"], "name": gpu.get("name") or f"{maker} GPU"}
            values |= {"vendor": vendor, "driver": parsed.get("driver")}
            if fact := raw.fact(Gpu, f"GPU {gpu['index']}", values, must=("index",)):
                result.append(fact)
    return tuple(result)


def _accelerates(function: dict[str, Any], vendor: str) -> bool:
    """Whether a function is a device for computing. AMD's VGA functions are mostly a CPU's graphics; no Instinct is."""
    kinds = ("3D controller", "VGA compatible controller") if vendor == "nvidia" else ("Processing accelerators",)
    return str(function["class"]).startswith(kinds)
