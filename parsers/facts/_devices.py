"""Read memory slots, disks, PCIe links and GPUs of a host, each from its most reliable source."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.facts import Dimm, Disk, Gpu, PcieLink
from fleetmark.parsers.facts import lsblk, lspci, npu_smi, nvidia_smi, rocm_smi
from fleetmark.parsers.facts._common import leading
from fleetmark.parsers.facts._raw import Raw

_UNNEEDED = "not needed"  # facts.py's message about lspci if no function has a link or is an accelerator
CONTAINERS = ("docker", "podman", "lxc", "lxc-libvirt", "container-other", "openvz", "systemd-nspawn", "rkt")


def dimms(raw: Raw, slots: list[dict[str, Any]]) -> tuple[Dimm, ...]:
    """Return dmidecode's memory slots; add the bank to duplicate names."""
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
    """Return whole disks with all uses reported by any source. A disk of unknown state counts as in use."""
    parsed = raw.parsed("lsblk", lsblk.parse)
    if parsed is None:
        return ()
    # Without udev, lsblk cannot see file systems. In a container, it sees the host's disks but not their mounts.
    blind = ""
    if virtualisation in CONTAINERS:
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
    """Return signs of use found by opening the disk: the kernel's claim and blkid's answer.

    The result is ``blind`` if neither was tried.
    """
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
    """Return the mount point of each device number."""
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
    """Return uses that lsblk may have missed: mounts by device number, swap, and holders in sysfs."""
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


def pcie(raw: Raw) -> tuple[tuple[PcieLink, ...], tuple[str, ...], list[dict[str, Any]]]:
    """Return the links that are up, the bridges whose access control redirects peer-to-peer traffic, and functions."""
    functions: list[dict[str, Any]] = []
    denied = False
    is_queried = raw.error("lspci") != _UNNEEDED
    # an empty list means that the host has no PCI
    if is_queried and (raw.out("lspci") or raw.error("lspci") is not None):
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
    """Return the GPUs that a driver reports. Add a note if the bus (``functions``) has a GPU without a driver."""
    result: list[Gpu] = []
    fields = {*Gpu.model_fields} - {"index", "name", "vendor", "driver"}
    for vendor, maker, command, parse in (
        ("nvidia", "NVIDIA", "nvidia_smi", nvidia_smi.parse),
        ("amd", "Advanced Micro Devices", "rocm_smi", rocm_smi.parse),
        ("huawei", "Huawei", "npu_smi", npu_smi.parse),
    ):
        tool = command.replace("_", "-")
        onboard = [f for f in functions if maker in f["name"] and _accelerates(f, vendor)]
        if raw.error(command) == "not found":  # documents of earlier versions lack this value
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
        links = _nvlinks(raw) if vendor == "nvidia" else {}
        for gpu in parsed["gpus"]:
            values = {key: gpu[key] for key in fields if key in gpu}
            values |= {"index": gpu["index"], "name": gpu.get("name") or f"{maker} GPU"}
            values |= {"vendor": vendor, "driver": parsed.get("driver"), **links.get(gpu["index"], {})}
            if fact := raw.fact(Gpu, f"GPU {gpu['index']}", values, must=("index",)):
                result.append(fact)
    return tuple(result)


def _nvlinks(raw: Raw) -> dict[int, dict[str, int]]:
    """Return the active NVLinks and their errors by GPU index, if nvidia-smi reports them."""
    result: dict[int, dict[str, int]] = {}
    for command, name, tally in (
        ("nvlink", "nvlinks", nvidia_smi.active_links),
        ("nvlink_errors", "nvlink_errors", nvidia_smi.link_errors),
    ):
        for index, number in tally(raw.out(command) or "").items():
            result.setdefault(index, {})[name] = number
    return result


def _accelerates(function: dict[str, Any], vendor: str) -> bool:
    """Return whether a PCI function is a compute device.

    AMD's VGA functions do not count: they are mostly integrated graphics, and never Instinct.
    """
    kinds = ("3D controller", "VGA compatible controller") if vendor == "nvidia" else ("Processing accelerators",)
    return str(function["class"]).startswith(kinds)
