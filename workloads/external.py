"""Record workloads from extensions, and check that the extensions of a record are installed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from fleetmark import parsers
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.workloads.manifest import files, load, names, path_of


class _Workload(BaseModel):
    version: str = ""


class _Entry(BaseModel):
    """The entry of one extension in campaign.json."""

    name: str
    version: str = ""
    workloads: dict[str, _Workload]


_ENTRIES = TypeAdapter(list[_Entry])


def recorded(workloads: Iterable[str]) -> list[dict[str, Any]]:
    """Return the record of the extensions that provide ``workloads``: names, versions and hashes, but no paths."""
    documents: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(entry.partition("@")[0] for entry in workloads):  # variants of a workload count once
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
    """Raise FleetmarkError if a workload of the campaign ``name`` is not available.

    ``campaign`` is the content of campaign.json. It only names extensions; it never selects the ones to load.
    """
    try:
        entries = _ENTRIES.validate_python(campaign.get("extensions") or [])
    except ValidationError:
        raise FleetmarkError(f"{name}: campaign.json: extensions is invalid; restore the file") from None
    known = set(names())
    for entry in entries:
        for workload, workload_entry in entry.workloads.items():
            if workload not in known:
                version = entry.version or workload_entry.version
                source = f"{entry.name}{' ' if version else ''}{version}"
                raise FleetmarkError(
                    f"{name}: workload {workload} comes from {source}, which is not installed; "
                    f"pass its folder with --workloads DIR or {extensions.VARIABLE}, or install its package"
                )


def _parts(parser: Path) -> list[Path]:
    return sorted(parser.parent.rglob("*.py")) if parser.name == "__init__.py" else [parser]


def _digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the concatenated files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()
