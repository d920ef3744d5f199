"""``fleetmark import``: published tables and tidy files, kept beside the campaigns and compared like them.

imports/ID/import.json           where the rows came from, what was left out and why, machines and their labels
imports/ID/measurements.parquet  as a campaign's

``imports/ID`` is what stands for the campaign in selectors. An ID ends in the SHA-256 of the file, so that no file is
imported twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType
from rich.text import Text

from fleetmark import __version__
from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.facts import Facts
from fleetmark.base.files import decode_json, write_atomic
from fleetmark.base.measurement import Centre, Status
from fleetmark.record.archive import Archive, utc
from fleetmark.record.select import Machine
from parsers.published import Table, mlperf, spec, table

SCHEMA = 1
FOLDER = "imports"
_LARGEST = 1 << 30  # bytes of one file
_SHOWN_NOTES = 12


class _Importer(Protocol):
    """A kind of table: how it is read, and what the labels of its machines mean."""

    TRAITS: tuple[str, ...]
    MODEL: tuple[str, ...]

    def read(self, raw: bytes, name: str, /) -> Table: ...


_KINDS: Mapping[str, _Importer] = {"mlperf": mlperf, "spec": spec, "table": table}
TRAITS = tuple(dict.fromkeys(label for kind in _KINDS.values() for label in kind.TRAITS))
MODEL = tuple(dict.fromkeys(label for kind in _KINDS.values() for label in kind.MODEL))


@dataclass(frozen=True, slots=True)
class Import:
    """One file that was imported, now (``new``) or before; ``about`` is its import.json."""

    path: Path
    about: Mapping[str, Any]
    new: bool

    @property
    def campaign(self) -> str:
        """What stands for its campaign in selectors."""
        return f"{FOLDER}/{self.path.name}"


def files(root: Path, kind: str, paths: Sequence[Path]) -> tuple[list[Import], list[str]]:
    """Import every file; those imported, and a sentence for each that could not be.

    Raises FleetmarkError for a kind that nobody reads, and for a single file that could not be imported.
    """
    if kind not in _KINDS:
        raise FleetmarkError(f"import {kind}{suggest(kind, list(_KINDS))}: there are {', '.join(_KINDS)}")
    done: list[Import] = []
    failed: list[str] = []
    for path in paths:
        try:
            done.append(_one(root, kind, path))
        except FleetmarkError as error:
            if len(paths) == 1:
                raise
            failed.append(str(error))
    return done, failed


def _one(root: Path, kind: str, path: Path) -> Import:
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise FleetmarkError(f"{path}: {size >> 20} MiB is more than is read at once; import it in parts")
        raw = path.read_bytes()
    except OSError as error:
        raise FleetmarkError(f"{path}: {error.strerror}; give a file to import") from error
    sha256 = hashlib.sha256(raw).hexdigest()
    for there in (root / FOLDER).glob(f"{kind}-*-{sha256[:12]}/import.json"):
        return Import(there.parent, _about(there), new=False)
    try:
        found = _KINDS[kind].read(raw, path.name)
    except FleetmarkError as error:
        raise FleetmarkError(f"{path}: {error}") from error
    folder = root / FOLDER / f"{kind}-{_stem(path.name, kind)}-{sha256[:12]}"
    about: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": kind,
        "source": os.fsencode(path.absolute()).decode(errors="replace"),
        "sha256": sha256,
        "bytes": len(raw),
        "created": utc(),
        "fleetmark": __version__,
        "rows": found.read,
        "figures": len(found.rows),
        "left_out": dict(sorted(found.left_out.items())),
        "notes": list(found.notes),
        "machines": {name: dict(labels) for name, labels in found.machines.items()},
    }
    Archive(folder).write_measurements(_measurements(f"{FOLDER}/{folder.name}", found, about["created"]))
    write_atomic(folder / "import.json", json.dumps(about, indent=1, ensure_ascii=False))
    return Import(folder, about, new=True)


def _stem(name: str, kind: str) -> str:
    """What a file is called, as part of an ID: nothing that a selector would take for more than a letter."""
    stem = name.removesuffix(".gz").rpartition(".")[0] or name
    return re.sub(r"[^A-Za-z0-9_.]+", "-", stem).strip("-").removeprefix(f"{kind}-")[:60] or "file"


def _measurements(campaign: str, found: Table, time: str) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        rest = {
            "campaign": campaign,
            "host": row.machine,
            "repeat": row.repeat,
            "class": row.class_,
            "headline": row.headline,
            "centre": Centre.GEOMEAN.value,
            "bits": False,
            "time": time,
            "tool_version": row.version,
            "raw": row.place,
            "status": (Status.INVALID if row.invalid else Status.PASSED).value,
            "standing": row.standing.value if row.standing else "",
            "members": "",
        }
        yield schema.row(row.measurement, rest)


def tables(root: Path) -> list[Path]:
    """The import.json of every table imported under ``root``."""
    return sorted((root / FOLDER).glob("*/import.json"))


def machines(file: Path) -> list[Machine]:
    """The machines of an imported table, by its import.json. Raises FleetmarkError where that is damaged."""
    name = f"{FOLDER}/{file.parent.name}"
    return [Machine(name, host, labels, _no_facts) for host, labels in _about(file)["machines"].items()]


def _no_facts() -> Facts | None:
    return None


def _about(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = decode_json(file.read_text())
        schema = found["schema"]
        for labels in found["machines"].values():
            labels.items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FleetmarkError(f"{file}: damaged ({error!r}); delete {file.parent} and import again") from error
    if schema != SCHEMA:
        raise FleetmarkError(f"{file}: schema {schema} is not one this version of Fleetmark reads ({SCHEMA})")
    return found


def as_json(done: Sequence[Import]) -> list[dict[str, Any]]:
    """What was imported, as JSON has it: import.json with a count of machines instead of the machines."""
    return [
        {
            "campaign": i.campaign,
            "path": str(i.path),
            "new": i.new,
            **i.about,
            "machines": len(i.about["machines"]),
            "labels": {k: len(v) for k, v in _labels(i).items()},
        }
        for i in done
    ]


def said(done: Sequence[Import]) -> Iterator[RenderableType]:
    """What was imported, for a terminal."""
    for i in done:
        about = i.about
        if not i.new:
            yield Text(
                f"{about['source']} is there already, imported {about['created']} as {i.campaign}; "
                f"delete {i.path} to import it again"
            )
            continue
        rows, count = about["rows"], len(about["machines"])
        yield Text(
            f"{i.campaign}: {_many(about['figures'], 'figure')} of {_many(count, 'machine')} from {_many(rows, 'row')}"
        )
        for why, n in about["left_out"].items():
            yield Text(f"  left out: {n}: {why}")
        notes = about["notes"]
        yield from (Text(f"  note: {note}") for note in notes[:_SHOWN_NOTES])
        if len(notes) > _SHOWN_NOTES:
            yield Text(f"  and {len(notes) - _SHOWN_NOTES} notes more, in {i.path / 'import.json'}")
        labels = ", ".join(f"{name} ({len(values)})" for name, values in _labels(i).items())
        yield Text(f"  select by host{', ' if labels else ''}{labels}")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _labels(done: Import) -> dict[str, Counter[str]]:
    """Every label of its machines, with its values."""
    found: dict[str, Counter[str]] = {}
    for labels in done.about["machines"].values():
        for name, value in labels.items():
            found.setdefault(name, Counter())[value] += 1
    return found
