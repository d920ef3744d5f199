"""Parse lsblk: the disks of a host and their uses, from ``-J`` (2.27 and later), ``-P`` or both, with any columns.

The detection of uses protects data from benchmarks that write to raw disks. To be safe, unmounted file systems and
partition tables also count as uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import document, integer, text_or_none
from fleetmark.parsers.kit.text import decode, objects

_MEMORY = re.compile(r"(zram|ram|nbd|fd)\d+$")  # device types that are not storage for benchmarks


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``disks``, without partitions: name, model, size, rotational, transport, scheduler, in_use and devices.

    ``in_use`` is a tuple of phrases such as ``mounted at /srv (sda1)``, ``swap (sda2)``, ``holds ext4 (sdb)``; empty if
    lsblk found no use. ``devices``: the (name, major:minor) of the disk and all devices on it. ``signatures``: whether
    lsblk could see file systems at all, which needs udev. Raise ParseError on failure.
    """
    text = decode(raw)
    if re.search(r'(?m)^[ \t]*(?:K?NAME|MAJ[:_]MIN)="', text):
        tops = _pairs(text)
    else:
        output = document("lsblk", text)
        if not isinstance(output.get("blockdevices"), list):
            raise ParseError("lsblk", "a list named blockdevices", got=text.strip()[:120])
        tops = objects(output["blockdevices"])
    every = [node for top in tops for node in _walk(top)]
    disks = [_disk(top) for top in tops if top.get("type") == "disk" and _real(top)]
    return {"disks": disks, "signatures": any(text_or_none(node.get("fstype")) for node in every)}


def _real(top: dict[str, Any]) -> bool:
    name = top.get("name")
    return isinstance(name, str) and not _MEMORY.match(name) and integer(top.get("size")) != 0


def _pairs(text: str) -> list[dict[str, Any]]:
    """Return the tree that rows such as ``NAME="sda" PKNAME=""`` describe. A device on two disks appears below both."""
    rows = [
        {
            key.lower().replace("_", ":"): re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), value)
            for key, value in fields
        }
        for line in text.splitlines()
        if (fields := re.findall(r'([A-Z:_-]{1,40})="([^"]*)"', line))
    ]
    if not any("pkname" in row for row in rows):  # the partitions could not be assigned to disks
        raise ParseError("lsblk", "the column PKNAME", got=text.strip()[:120])
    tops: list[dict[str, Any]] = []
    by_name: dict[str, dict[str, Any]] = {}
    placed: set[tuple[int, int]] = set()
    for row in rows:
        name = row.get("kname") or row.get("name", "")
        node: dict[str, Any] = by_name.setdefault(name, {**row, "children": []})
        parent = by_name.get(row.get("pkname", ""))
        siblings = tops if parent is None else parent["children"]
        if parent is not node and (id(siblings), id(node)) not in placed:
            placed.add((id(siblings), id(node)))
            siblings.append(node)
    return tops


def _walk(top: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return ``top`` and all devices on it, each once."""
    waiting, seen = [top], set()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += reversed(objects(node.get("children")))


def _disk(top: dict[str, Any]) -> dict[str, Any]:
    nodes = list(_walk(top))
    uses = [phrase for node in nodes for phrase in _uses(node, top)]
    facts = {
        "name": top["name"],
        "model": text_or_none(top.get("model")),
        "size": integer(top.get("size")),
        "rotational": _flag(top.get("rota")),
        "transport": text_or_none(top.get("tran")),
        "scheduler": text_or_none(top.get("sched")) or ("none" if top.get("sched") == "none" else None),
        "removable": _flag(top.get("rm")),
        "readonly": _flag(top.get("ro")),
        "in_use": tuple(dict.fromkeys(uses)),
        "devices": tuple((str(n.get("kname") or n.get("name")), str(n.get("maj:min", "")).strip()) for n in nodes),
    }
    return {key: value for key, value in facts.items() if value is not None}


def _uses(node: dict[str, Any], top: dict[str, Any]) -> Iterator[str]:
    name, kind = node.get("name"), node.get("type")
    points = node.get("mountpoints")
    for point in [*(points if isinstance(points, list) else []), node.get("mountpoint")]:
        for one in point.split("\n") if isinstance(point, str) else []:
            if one.strip():
                yield f"swap ({name})" if one == "[SWAP]" else f"mounted at {one} ({name})"
    if node is not top:
        # Every device built on a disk uses the disk: lvm, crypt, raid1, mpath, dm, and also a partition.
        yield f"has partition {name}" if kind == "part" else f"part of {kind} {name}"
    if signature := text_or_none(node.get("fstype")):
        yield f"holds {signature} ({name})"
    if table := text_or_none(node.get("pttype")) if kind != "part" else None:
        yield f"holds a {table} partition table ({name})"


def _flag(value: Any) -> bool | None:
    return {"1": True, "0": False, "true": True, "false": False}.get(str(value).strip().lower())
