"""Read CPUs, caches and NUMA nodes from lscpu and numactl, or from sysfs and /proc/cpuinfo if they do not answer."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.facts import Cache, Cpu, NumaNode
from fleetmark.parsers.facts import lscpu, numactl
from fleetmark.parsers.facts._common import MAX_ID, id_list, integer, size, text_or_none
from fleetmark.parsers.facts._raw import Raw

_CPU = "/sys/devices/system/cpu/"
_NODE = "/sys/devices/system/node/"


def cpu(raw: Raw, firmware_model: str | None) -> Cpu:
    """Return the host's CPUs. ``firmware_model``: their name in SMBIOS, used if nothing else names them."""
    lscpu_facts = raw.parsed("lscpu", lscpu.parse) or {}
    stanza = _stanza(raw)
    online = id_list(raw.file(_CPU + "online")) or lscpu_facts.get("online")
    cores, packages = raw.shares("thread_siblings_list"), raw.shares("physical_package_id")
    offline = id_list(raw.file(_CPU + "offline")) or lscpu_facts.get("offline") or ()
    _note_limits(raw, len(online or ()), len(offline))
    clocks = [int(khz) * 1e3 for khz in raw.shares("cpuinfo_max_freq") if khz.isdecimal() and len(khz) < 12]
    values = {
        "model": lscpu_facts.get("model")
        or text_or_none(stanza.get("model name"))
        or lscpu_facts.get("bios_model")
        or firmware_model,
        "vendor": lscpu_facts.get("vendor") or text_or_none(stanza.get("vendor_id")),
        "arch": lscpu_facts.get("arch") or text_or_none(raw.table("uname").get("machine")),
        "sockets": lscpu_facts.get("sockets") or (len(packages) if packages and "-1" not in packages else None),
        # sysfs lists each core's threads, which is exact for mixed cores; lscpu multiplies averages
        "cores": len(cores) or lscpu_facts.get("cores"),
        "threads": len(online) if online else lscpu_facts.get("cpus"),
        "max_hz": lscpu_facts.get("max_hz") or max(clocks, default=None),
        "microcode": text_or_none(stanza.get("microcode")),
        "flags": lscpu_facts.get("flags") or tuple(stanza.get("flags", stanza.get("Features", "")).split()),
        "caches": _caches(raw, lscpu_facts),
    }
    return raw.fact(Cpu, "cpu", values, must=("sockets", "cores", "threads")) or Cpu()


def _stanza(raw: Raw) -> dict[str, str]:
    """Return the first processor's entry in /proc/cpuinfo."""
    lines = (raw.file("/proc/cpuinfo") or "").splitlines()
    return {key.strip(): value.strip() for key, colon, value in (line.partition(":") for line in lines) if colon}


def _note_limits(raw: Raw, online: int, offline: int) -> None:
    if offline:
        raw.notes.append(
            f"{offline} CPUs are offline and not counted; see {_CPU}offline, and put them online to use them."
        )
    allowed = integer(raw.doc.get("affinity"))
    if allowed is not None and 0 < allowed < online:
        raw.notes.append(
            f"Only {allowed} of {online} CPUs may be used here (cpuset or container); run outside it to use all CPUs."
        )
    quota, period = _quota(raw)
    if quota and period and quota < period * (online or 1):
        raw.notes.append(
            f"A cgroup limits this host to {quota / period:g} CPUs of time; run outside the cgroup to use all CPUs."
        )


def _quota(raw: Raw) -> tuple[int | None, int | None]:
    """Return the CPU quota and its period in µs from cgroup v2 or v1; None if unlimited."""
    fields = (raw.file("/sys/fs/cgroup/cpu.max") or "").split()
    if len(fields) == 2:
        return integer(fields[0]), integer(fields[1])
    quota = integer(raw.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
    return (quota if quota and quota > 0 else None), integer(raw.file("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))


def _caches(raw: Raw, lscpu_facts: dict[str, Any]) -> tuple[Cache, ...]:
    rows = _from_sysfs(raw.doc.get("caches")) or lscpu_facts.get("caches", [])
    counted = [row for row in rows if row.get("instances")]
    if not counted:
        raw.notes.append(
            "Cache sizes are unknown: neither lscpu nor sysfs reports how many there are; set them by hand."
        )
    fields = ("level", "type", "size", "instances")
    caches = (raw.fact(Cache, "A cache", {key: row[key] for key in fields}) for row in counted)
    return tuple(cache for cache in caches if cache)


def _from_sysfs(rows: Any) -> list[dict[str, Any]]:
    """Return the caches from rows of [level, type, size, CPUs that share it], one row per cache."""
    kinds: Counter[tuple[int, str, int]] = Counter()
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 4:
            level, kind, amount = integer(row[0]), text_or_none(row[1]), size(row[2])
            if level is not None and kind and amount:
                kinds[level, kind.lower(), amount] += 1
    return [
        {"level": level, "type": kind, "size": amount, "instances": n}
        for (level, kind, amount), n in sorted(kinds.items())
    ]


def numa(raw: Raw) -> tuple[NumaNode, ...]:
    """Return the NUMA nodes by number; empty if the host reports none."""
    try:
        nodes = numactl.parse((raw.out("numactl") or "").encode("utf-8", "replace"))["numa"]
    except ParseError:  # numactl is absent or built without NUMA; use sysfs
        nodes = _nodes_from_sysfs(raw)
    fields = ("id", "cpus", "memory", "distances", "local_pages", "remote_pages")
    nodes = [{**n, **_pages(raw, n["id"])} for n in nodes]
    checked = (
        raw.fact(NumaNode, f"numa.{n['id']}", {key: n[key] for key in fields if key in n}, must=("id", "cpus"))
        for n in nodes
    )
    return tuple(node for node in checked if node)


def _pages(raw: Raw, node: Any) -> dict[str, int]:
    """Return the page counters of a node since boot (numastat)."""
    lines = dict(re.findall(r"(?m)^(\w+) (\d{1,18})$", raw.file(f"{_NODE}node{node}/numastat") or ""))
    if not {"local_node", "other_node"} <= lines.keys():
        return {}
    return {"local_pages": int(lines["local_node"]), "remote_pages": int(lines["other_node"])}


def _nodes_from_sysfs(raw: Raw) -> list[dict[str, Any]]:
    nodes: dict[int, dict[str, Any]] = {}
    cpus = 0
    for path, text in raw.files().items():
        if not (match := re.fullmatch(_NODE + r"node(\d{1,5})/(cpulist|distance|meminfo)", path)):
            continue
        node = nodes.setdefault(int(match[1]), {"id": int(match[1])})
        if match[2] == "distance":
            node["distances"] = tuple(int(n) for n in re.findall(r"[0-9]{1,6}", text))
            continue
        numbers = id_list(text) if cpus <= MAX_ID else None
        cpus += len(numbers or ())
        if match[2] == "meminfo" and (total := re.search(r"MemTotal:\s+(\d{1,15}) kB", text)):
            node["memory"] = int(total[1]) * 1024
        elif match[2] != "meminfo" and numbers is not None:
            node["cpus"] = numbers
    return [nodes[i] for i in sorted(nodes)]
