"""Parse lscpu: CPUs, topology and caches, from its text, its JSON (flat or nested) and its cache table (-C).

Tested with util-linux 2.23 to 2.41. Up to 2.33, a cache line has the size of one cache without the number of caches.
From 2.34, it has the sum, and from 2.37 also ``(N instances)``. Mixed processors (big.LITTLE) repeat the block that
starts at ``Model name``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import document, id_list, integer, leading, size, text_or_none
from fleetmark.parsers.kit.text import decode, objects

# Sections of nested output: section -> the text around the short name in flat output.
_SECTIONS = {"Caches": ("", " cache"), "Vulnerabilities": ("Vulnerability ", "")}
_LONGEST_CACHE = 60  # maximum characters of text such as "24 MiB (112 instances)"
_TYPES = {"d": "data", "i": "instruction", "": "unified"}
# For each block, the fact's name and lscpu's name. "-" means absent.
_BLOCK = {
    "threads_per_core": "Thread(s) per core",
    "cores_per_socket": "Core(s) per socket",
    "cores_per_cluster": "Core(s) per cluster",
    "clusters": "Cluster(s)",
    "sockets": "Socket(s)",
    "sockets_per_book": "Socket(s) per book",
    "books_per_drawer": "Book(s) per drawer",
    "drawers": "Drawer(s)",
}


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``cpus`` (known), ``online`` (their numbers), ``model``, ``cores``, ``sockets``, ``caches`` and more.

    ``cores`` counts those of the whole host. A cache is ``{"name", "level", "type", "size" (bytes of one), "instances",
    "total"}``. The last two are None if lscpu does not count caches. Output of ``lscpu -C`` gives only ``caches``.
    Raise ParseError on failure.
    """
    text = decode(raw)
    if "{" in text and ('"lscpu"' in text or '"caches"' in text):
        output = document("lscpu", text)
        if "caches" in output:
            return {"caches": _table(objects(output["caches"]))}
        fields = list(_json_fields(output))
    elif re.match(r"\s*NAME\s.*ONE-SIZE", text):
        return {"caches": _table(_columns(text))}
    else:
        fields = list(_text_fields(text))
    if not any(key in ("CPU(s)", "Architecture") for key, _ in fields):
        raise ParseError("lscpu", "a field such as 'Architecture:' or 'CPU(s):'", got=text.strip()[:120])
    return _facts(fields)


def _json_fields(output: dict[str, Any]) -> Iterator[tuple[str, str]]:
    waiting = [("", row) for row in reversed(objects(output.get("lscpu")))]
    while waiting:
        section, row = waiting.pop()
        if not isinstance(row.get("field"), str):
            continue
        key = row["field"].strip().removesuffix(":")
        children = objects(row.get("children"))
        if isinstance(row.get("data"), str) or not children:  # null is, for example, an empty list of CPUs
            yield _full(section, key), str(row.get("data") or "").strip()
        waiting += [(key, child) for child in reversed(children)]


def _text_fields(text: str) -> Iterator[tuple[str, str]]:
    section, key, value = "", "", ""
    for line in text.splitlines():
        match = re.match(r"(\s*)([^:]{1,60}):(?:\s+(.*))?$", line)
        if match:
            if key:
                yield key, value.strip()
            if not match[1]:
                section = match[2] if not match[3] else ""
            key, value = _full(section, match[2].strip()), match[3] or ""
        elif key and line[:8].isspace():  # a long value, wrapped for a terminal
            value += " " + line.strip()
    if key:
        yield key, value.strip()


def _full(section: str, key: str) -> str:
    before, after = _SECTIONS.get(section.partition(" (")[0], ("", ""))
    return f"{before}{key}{after}"


def _facts(fields: list[tuple[str, str]]) -> dict[str, Any]:
    first: dict[str, str] = {}  # the first of repeated fields counts, except in the blocks
    for key, value in fields:
        first.setdefault(key, value)
    blocks = _blocks(fields)
    models = [b["model"] for b in blocks if "model" in b]
    cores = [_cores(b) for b in blocks]
    sockets = [s for s in map(_sockets, blocks) if s is not None]
    online = id_list(first["On-line CPU(s) list"]) if "On-line CPU(s) list" in first else None
    offline = id_list(first["Off-line CPU(s) list"]) if "Off-line CPU(s) list" in first else None
    facts = {
        "arch": text_or_none(first.get("Architecture")),
        "cpus": integer(first.get("CPU(s)")),
        "online": online,
        "offline": offline,
        "vendor": text_or_none(first.get("Vendor ID")),
        "model": " + ".join(dict.fromkeys(models)) or None,
        "bios_model": text_or_none(first.get("BIOS Model name")),
        "stepping": text_or_none(first.get("Stepping")),
        "cores": sum(c for c in cores if c is not None) if cores and None not in cores else None,
        "sockets": max(sockets, default=None),
        **{key: blocks[0].get(key) for key in ("threads_per_core", "cores_per_socket", "clusters") if blocks},
        "max_hz": _hz([value for key, value in fields if key == "CPU max MHz"]),
        "min_hz": _hz([value for key, value in fields if key == "CPU min MHz"]),
        "flags": tuple(first.get("Flags", "").split()),
        "virtualization": text_or_none(first.get("Virtualization")),
        "hypervisor": text_or_none(first.get("Hypervisor vendor")),
        "virtualization_type": text_or_none(first.get("Virtualization type")),
        "caches": [cache for key, value in first.items() if (cache := _cache(key, value))],
        "numa_nodes": integer(first.get("NUMA node(s)")),
        "numa": {
            int(match[1]): cpus
            for key, value in first.items()
            if (match := re.fullmatch(r"NUMA node(\d{1,5}) CPU\(s\)", key)) and (cpus := id_list(value)) is not None
        },
        "vulnerabilities": {
            key.removeprefix("Vulnerability "): value
            for key, value in first.items()
            if key.startswith("Vulnerability ") and value
        },
    }
    return {key: value for key, value in facts.items() if value is not None}


def _blocks(fields: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return one dict per kind of CPU. A new dict starts when a field repeats."""
    names = {theirs: ours for ours, theirs in _BLOCK.items()} | {"Model name": "model"}
    blocks: list[dict[str, Any]] = [{}]
    for key, value in fields:
        name = names.get(key)
        if name is None:
            continue
        if name in blocks[-1]:
            blocks.append({})
        entry = text_or_none(value) if name == "model" else integer(value)
        if entry is not None:
            blocks[-1][name] = entry
    return [b for b in blocks if b]


def _cores(block: dict[str, Any]) -> int | None:
    if "cores_per_cluster" in block and "clusters" in block:
        return int(block["cores_per_cluster"]) * int(block["clusters"])
    sockets = _sockets(block)
    return int(block["cores_per_socket"]) * sockets if "cores_per_socket" in block and sockets is not None else None


def _sockets(block: dict[str, Any]) -> int | None:
    if "sockets_per_book" in block:  # IBM Z groups sockets into books and drawers
        return int(prod(block.get(key, 1) for key in ("sockets_per_book", "books_per_drawer", "drawers")))
    sockets: int | None = block.get("sockets")
    return sockets


def _hz(values: list[str]) -> float | None:
    clocks = [mhz * 1e6 for value in values if (mhz := leading(value)) is not None and mhz > 0]
    return max(clocks, default=None)


def _cache(key: str, value: str) -> dict[str, Any] | None:
    """Parse a line such as ``L2 cache: 24 MiB (112 instances)``."""
    name = re.fullmatch(r"L(\d)([di]?) cache", key)
    if len(value) > _LONGEST_CACHE:
        return None
    match = re.fullmatch(r"([^()]+?)\s*(?:\((\d{1,6}) instances?\))?", value)
    if not name or not match:
        return None
    amount, instances = size(match[1]), int(match[2]) if match[2] else None
    if not amount or instances == 0:
        return None
    return {
        "name": f"L{name[1]}{name[2]}",
        "level": int(name[1]),
        "type": _TYPES[name[2]],
        "size": round(amount / instances) if instances else amount,
        "instances": instances,
        "total": amount if instances else None,
    }


def _columns(text: str) -> list[dict[str, Any]]:
    head, *rows = [line.split() for line in text.splitlines() if line.strip()]
    return [dict(zip(map(str.lower, head), row, strict=False)) for row in rows]


def _table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``lscpu -C``."""
    caches = []
    for row in rows:
        one, every = size(row.get("one-size")), size(row.get("all-size"))
        level, kind = integer(row.get("level")), text_or_none(row.get("type"))
        if not one or not every or level is None or kind is None:
            continue
        instances = max(1, round(every / one))
        entry = {"name": text_or_none(row.get("name")), "level": level, "type": kind.lower(), "size": one}
        caches.append(entry | {"instances": instances, "total": every})
    if not caches:
        raise ParseError("lscpu", "caches with ONE-SIZE, ALL-SIZE, TYPE and LEVEL")
    return caches
