"""Convert the document that playbooks/agent/facts/facts.py prints to the typed facts of one host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fleetmark.base.facts import MOST_PORTS, Facts
from fleetmark.parsers.facts import dmidecode
from fleetmark.parsers.facts._common import integer, leading, text_or_none
from fleetmark.parsers.facts._cpu import cpu, numa
from fleetmark.parsers.facts._devices import CONTAINERS, dimms, disks, gpus, pcie
from fleetmark.parsers.facts._document import check, damaged
from fleetmark.parsers.facts._idle import idle_states
from fleetmark.parsers.facts._network import nics, rdma
from fleetmark.parsers.facts._raw import Raw
from fleetmark.parsers.facts._software import software
from fleetmark.parsers.facts._torch import containers, torch
from fleetmark.parsers.kit.text import dig

_MOST_NOTES = 100
_SLURM_NODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?", re.ASCII)  # used in srun commands
_LONGEST_RELEASE = 10_000  # characters of /etc/os-release; about 500 are usual
_FAMILIES = {  # maps an os-release ID or ID_LIKE to its family
    "debian": ("debian", "ubuntu"),
    "rhel": ("rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn", "openeuler", "anolis"),
    "suse": ("suse", "sles", "opensuse", "opensuse-leap", "opensuse-tumbleweed"),
    "alpine": ("alpine",),
    "arch": ("arch",),
}


def normalise(doc: Mapping[str, Any], *, skew: float | None, root: bool, work_dir: str) -> Facts:
    """Return the facts of one host.

    - ``doc``: the document that facts.py printed
    - ``skew``: the host's clock minus the controller's, in seconds
    - ``root``: whether jobs run as root there
    - ``work_dir``: the working directory of jobs

    Values of unreadable sources are None, with a sentence in ``notes``. The same applies to impossible figures, unless
    they decide which cases run (CPUs, NUMA nodes, GPUs, memory). Raise FleetmarkError for those figures, and for a
    document that facts.py did not print.
    """
    check(doc)
    raw = Raw(doc)
    firmware = raw.parsed("dmidecode", dmidecode.parse) or {}
    virtualisation = _virtualisation(raw)
    links, redirecting, functions = pcie(raw)
    nodes = numa(raw)
    release = _release(raw)
    meminfo = _meminfo(raw)
    space = raw.table("statvfs")
    if "bavail_bytes" not in space:
        raw.notes.append(f"Free space at {work_dir} is unknown: {space.get('error', 'not asked')}; check the path.")
    load = (raw.file("/proc/loadavg") or "").split()
    models = [p["model"] for p in firmware.get("processors", []) if p.get("model")]
    values: dict[str, Any] = {
        "time": doc.get("time"),
        "skew": skew,
        "hostname": doc.get("hostname"),
        "slurm_node": _slurm_node(doc.get("slurm_node")),
        "machine_id": text_or_none(raw.file("/etc/machine-id")),
        "user": doc.get("user"),
        "root": root,
        "sudo": doc.get("sudo"),
        "python": doc.get("python"),
        "python_version": doc.get("python_version"),
        "os": release.get("PRETTY_NAME"),
        "os_family": _family(release),
        "kernel": text_or_none(raw.table("uname").get("release")),
        "cmdline": raw.file("/proc/cmdline"),
        "virtualisation": virtualisation,
        "vendor": _dmi(raw, "sys_vendor") or dig(firmware, "system", "vendor"),
        "product": _dmi(raw, "product_name") or dig(firmware, "system", "product"),
        "bios": _bios(raw, firmware),
        "cpu": cpu(raw, models[0] if models else None),
        "numa": nodes,
        "memory": meminfo.get("MemTotal"),
        "memory_available": meminfo.get("MemAvailable"),
        "swap": meminfo.get("SwapTotal"),
        "dimms": dimms(raw, firmware.get("memory", [])),
        "disks": disks(raw, virtualisation),
        "nics": nics(raw, nodes),
        "rdma": rdma(raw),
        "gpus": gpus(raw, functions),
        "pcie": links,
        "governor": _joined(raw.shares("scaling_governor")),
        "epp": _joined(raw.shares("energy_performance_preference")),
        "boost": _boost(raw),
        "smt": _switch(raw.file("/sys/devices/system/cpu/smt/active")),
        "thp": _bracketed(raw.file("/sys/kernel/mm/transparent_hugepage/enabled")),
        "idle_states": idle_states(raw),
        "clocksource": text_or_none(raw.file("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "numa_balancing": _switch(raw.file("/proc/sys/kernel/numa_balancing")),
        "iommu": _joined(raw.shares("iommu_group_type")),
        "acs_redirect": redirecting,
        "edac_corrected": _edac(raw, "ce_count"),
        "edac_uncorrected": _edac(raw, "ue_count"),
        "xids": doc.get("xids"),
        "software": software(raw),
        "compiler": next(iter((raw.out("gcc") or "").splitlines()), None),
        "mitigations": {
            path.rpartition("/")[2]: text.strip()
            for path, text in sorted(raw.files().items())
            if path.startswith("/sys/devices/system/cpu/vulnerabilities/")
        },
        "load1": leading(load[0]) if load else None,
        "running": doc.get("running"),
        "sessions": doc.get("sessions"),
        "ports": tuple(doc.get("ports", ()))[:MOST_PORTS],
        "work_dir": work_dir,
        "work_free": space.get("bavail_bytes"),
        "work_total": space.get("total_bytes"),
        "work_fs": space.get("fstype"),
        "tools": raw.table("which"),
        "torch": torch(raw),
        "containers": containers(raw),
        "cached": doc.get("cached", ()),
        "notes": tuple(dict.fromkeys(raw.notes))[:_MOST_NOTES],
    }
    try:
        return Facts.model_validate(values)
    except ValidationError as error:
        raise damaged(error) from None


def _release(raw: Raw) -> dict[str, str]:
    """Return the fields of /etc/os-release without shell quotes."""
    fields = {}
    for line in (raw.file("/etc/os-release") or "")[:_LONGEST_RELEASE].splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            try:
                fields[key.strip()] = " ".join(shlex.split(value))
            except ValueError:  # an unclosed quote
                fields[key.strip()] = value.strip("\"' ")
    return fields


def _family(release: Mapping[str, str]) -> str | None:
    for name in [release.get("ID", ""), *release.get("ID_LIKE", "").split()]:
        for family, names in _FAMILIES.items():
            if name in names:
                return family
    return None


def _meminfo(raw: Raw) -> dict[str, int]:
    text = raw.file("/proc/meminfo") or ""
    return {name: int(kib) * 1024 for name, kib in re.findall(r"(?m)^(\w+):\s+(\d{1,15}) kB$", text)}


def _virtualisation(raw: Raw) -> str | None:
    """Return the virtualisation as systemd names it (none, kvm, docker, …), or else as files and lscpu show it.

    Return None if the virtualisation is unknown.
    """
    answer = (raw.out("systemd_detect_virt") or "").strip()
    if re.fullmatch(r"[a-z][a-z0-9-]*", answer):
        return answer
    if kind := raw.file("/run/systemd/container"):
        return kind if kind in CONTAINERS else "container-other"
    files = raw.files()
    in_cgroup = re.search(r"kubepods|containerd|docker|lxc", files.get("/proc/1/cgroup", ""))
    for container, shown in (
        ("docker", "/.dockerenv" in files),
        ("podman", "/run/.containerenv" in files),
        ("container-other", in_cgroup),
    ):
        if shown:
            return container
    flags = re.search(r"(?m)^flags\s*:(.*)$", files.get("/proc/cpuinfo", ""))
    if flags is None:  # not an x86 processor, so its CPU flags do not show virtualisation
        return text_or_none(files.get("/sys/hypervisor/type"))
    if "hypervisor" not in flags[1].split():
        return text_or_none(files.get("/sys/hypervisor/type")) or "none"
    vendor = re.search(r"Hypervisor vendor:\W+(?:data\W+)?([A-Za-z]{1,31})\b", raw.out("lscpu") or "")
    return text_or_none(files.get("/sys/hypervisor/type")) or (vendor[1].lower() if vendor else "vm-other")


def _dmi(raw: Raw, name: str) -> str | None:
    return text_or_none(raw.file(f"/sys/class/dmi/id/{name}"))


def _bios(raw: Raw, firmware: Mapping[str, Any]) -> str | None:
    """Return the known parts of the firmware's ``vendor version (date)``."""
    parts = [_dmi(raw, f"bios_{key}") or dig(dict(firmware), "bios", key) for key in ("vendor", "version", "date")]
    text = " ".join(part for part in parts[:2] if part)
    return (f"{text} ({parts[2]})" if parts[2] else text).strip() or None


def _joined(shares: Mapping[str, int]) -> str | None:
    """Return ``performance``, or ``performance (64), powersave (2)`` if values differ, the most frequent first."""
    if len(shares) < 2:
        return next(iter(shares), None)
    return ", ".join(f"{value} ({n})" for value, n in sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _slurm_node(name: str | None) -> str | None:
    return name if name and _SLURM_NODE.fullmatch(name) else None


def _switch(text: str | None) -> bool | None:
    number = integer(text)
    return number != 0 if number is not None else None


def _boost(raw: Raw) -> bool | None:
    no_turbo = _switch(raw.file("/sys/devices/system/cpu/intel_pstate/no_turbo"))
    return not no_turbo if no_turbo is not None else _switch(raw.file("/sys/devices/system/cpu/cpufreq/boost"))


def _bracketed(text: str | None) -> str | None:
    """Return the selected choice of a file such as ``always [madvise] never``."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else None


def _edac(raw: Raw, name: str) -> int | None:
    """Return the memory errors of all controllers, or None if none counts them."""
    counts = [
        n
        for path, text in raw.files().items()
        if re.fullmatch(rf"/sys/devices/system/edac/mc/mc\d+/{name}", path) and (n := integer(text)) is not None
    ]
    return sum(counts) if counts else None
