"""Workloads from outside the package: what a record keeps of them, and whether those that it names are at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

import parsers
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from workloads.manifest import files, load, names, path_of


class _Workload(BaseModel):
    version: str = ""


class _Entry(BaseModel):
    """What campaign.json says of one extension."""

    name: str
    version: str = ""
    workloads: dict[str, _Workload]


_ENTRIES = TypeAdapter(list[_Entry])


def recorded(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """Return what a record keeps of the extensions of ``workloads``: names, versions and hashes, and no path."""
    documents: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(entry.partition("@")[0] for entry in workloads):  # a suite's variants are one workload
        extension = extensions.owner(path_of(name))
        if extension is None:
            continue
        document = documents.setdefault(
            str(extension.path),
            {"name": extension.name, "package": extension.package, "version": extension.version, "workloads": {}},
        )
        manifest = load(name)
        parser = parsers.path_of(manifest.tool)
        document["workloads"][name] = {
            "version": manifest.version,
            "manifest_sha256": _digest(files(name)),
            "parser_sha256": _digest(_parts(parser)) if parser else None,
        }
    return list(documents.values())


def require(name: str, campaign: Mapping[str, Any]) -> None:
    """Raise FleetmarkError where a workload of the campaign ``name`` is not at hand.

    ``campaign``: the content of its campaign.json, which names extensions and chooses none.
    """
    try:
        entries = _ENTRIES.validate_python(campaign.get("extensions") or [])
    except ValidationError:
        raise FleetmarkError(f"{name}: campaign.json: extensions is damaged; restore the file") from None
    known = set(names())
    for entry in entries:
        for workload, about in entry.workloads.items():
            if workload not in known:
                version = entry.version or about.version
                source = f"{entry.name}{' ' if version else ''}{version}"
                raise FleetmarkError(
                    f"{name}: its workload {workload} comes from {source}, which is not at hand; "
                    f"name its folder by --workloads DIR or {extensions.VARIABLE}, or install its package"
                )


def _parts(parser: Path) -> list[Path]:
    return sorted(parser.parent.rglob("*.py")) if parser.name == "__init__.py" else [parser]


def _digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()
