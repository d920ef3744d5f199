"""Import published tables and tidy files. Store them beside the campaigns, for the same comparisons.

imports/ID/import.json           source of the rows, what was left out and why, machines and their labels
imports/ID/measurements.parquet  as a campaign's

Selectors use ``imports/ID`` as the campaign. An ID ends in the SHA-256 of the file, so no file is imported twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fleetmark import __version__
from fleetmark.base import schema
from fleetmark.base.bounded import memory, read_bytes
from fleetmark.base.errors import FleetmarkError, suggest, unread_schema
from fleetmark.base.facts import Facts, printable
from fleetmark.base.files import decode_json
from fleetmark.base.inside import read_inside, replace_inside
from fleetmark.base.measurement import Centre, Status
from fleetmark.base.text import Message
from fleetmark.parsers.published import Table, inferencex, mlperf, sparecores, spec, table
from fleetmark.parsers.published.clients import Client
from fleetmark.parsers.published.files import LARGEST_BYTES
from fleetmark.record.archive import Archive, utc
from fleetmark.record.select import Machine

SCHEMA = 1
FOLDER = "imports"
MOST_MEMORY = 512 << 20  # memory limit of a reader, far above the needs of any valid file
_LONGEST = 120  # maximum length of a name or label in characters


class _Credit(Protocol):
    """Type of functions that return a publisher's required notices for machine labels, compared metrics and a date."""

    def __call__(
        self, machines: Sequence[Mapping[str, str]], figures: Sequence[tuple[str, str]], retrieved: str, /
    ) -> Iterator[Message]: ...


class _Importer(Protocol):
    """A kind of table: its reader, and the roles of its machine labels."""

    @property
    def TRAITS(self) -> tuple[str, ...]: ...
    @property
    def MODEL(self) -> tuple[str, ...]: ...
    @property
    def KIND(self) -> tuple[str, ...]: ...
    @property
    def COUNTS(self) -> Mapping[str, str]: ...
    @property
    def UNIFORM(self) -> Mapping[str, str]: ...
    @property
    def PUBLISHER(self) -> str: ...

    def read(self, raw: bytes, name: str, /) -> Table: ...


_KINDS: Mapping[str, _Importer] = {
    "mlperf": mlperf,
    "spec": spec,
    "sparecores": sparecores,
    "table": table,
    "inferencex": inferencex,
    **{
        tool: Client(tool=tool)
        for tool in ("vllm_bench", "sglang_bench", "guidellm", "aiperf", "trtllm_bench", "llama_bench")
    },
    **{
        tool: Client(tool=tool, classes=("gpu-train", "gpu-train-speed"))
        for tool in ("megatron_lm", "deepspeed", "torchtitan", "maxtext")
    },
}
TRAITS: tuple[str, ...] = tuple(dict.fromkeys(label for kind in _KINDS.values() for label in kind.TRAITS))
MODEL = tuple(dict.fromkeys(label for kind in _KINDS.values() for label in kind.MODEL))
KIND: tuple[str, ...] = tuple(dict.fromkeys(label for kind in _KINDS.values() for label in kind.KIND))
COUNTS: dict[str, str] = {label: amount for kind in _KINDS.values() for label, amount in kind.COUNTS.items()}
UNIFORM = {label: trait for kind in _KINDS.values() for label, trait in kind.UNIFORM.items()}
SIZES = {**spec.SIZES, **mlperf.SIZES, **sparecores.SIZES}  # machine label -> the counted part
_CREDITS: Mapping[str, _Credit] = {"mlperf": mlperf.credit, "spec": spec.credit}
BY_TABLE = "publisher"  # each table is one host if tables define publishers differently
PUBLISHERS = tuple(dict.fromkeys(kind.PUBLISHER for kind in _KINDS.values() if kind.PUBLISHER))


@dataclass(frozen=True, slots=True)
class Import:
    """An imported file. ``new``: whether this call imported it; ``metadata``: its import.json."""

    path: Path
    metadata: Mapping[str, Any]
    new: bool

    @property
    def campaign(self) -> str:
        """Return the name by which selectors refer to the import as a campaign."""
        return f"{FOLDER}/{self.path.name}"

    def labels(self) -> dict[str, int]:
        """Return every label of the machines, with the number of its values."""
        values: dict[str, set[str]] = {}
        for labels in self.metadata["machines"].values():
            for name, value in labels.items():
                values.setdefault(name, set()).add(value)
        return {name: len(different) for name, different in values.items()}

    def as_json(self) -> dict[str, Any]:
        """Return import.json with the number of machines instead of the machines."""
        fields = {"campaign": self.campaign, "path": str(self.path), "new": self.new, **self.metadata}
        return fields | {"machines": len(self.metadata["machines"]), "labels": self.labels()}


def files(
    root: Path, kind: str, paths: Sequence[Path], machine: str = "", labels: Sequence[str] = ()
) -> tuple[list[Import], list[str]]:
    """Import every file.

    Return the imported files, and a sentence for each failed one. ``machine``: the name for the only machine of each
    file; ``labels``: labels for all machines (``NAME=VALUE``).

    Raise FleetmarkError for an unknown kind or an invalid label, or if only one file is given and its import fails.
    """
    if kind not in _KINDS:
        raise FleetmarkError(f"import {kind}{suggest(kind, list(_KINDS))}: there are {', '.join(_KINDS)}")
    extra_labels = dict(map(_label, labels))
    imported: list[Import] = []
    failed: list[str] = []
    for path in paths:
        try:
            imported.append(_one(root, kind, path, " ".join(printable(machine).split())[:_LONGEST], extra_labels))
        except FleetmarkError as error:
            if len(paths) == 1:
                raise
            failed.append(str(error))
    return imported, failed


def _label(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if (
        not equals
        or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", name)
        or name in ("host", "campaign")
        or not value
    ):
        raise FleetmarkError(
            f"--label {text}: write NAME=VALUE, such as gen=h200; the names host and campaign are reserved"
        )
    return name, printable(value)[:_LONGEST]


def _one(root: Path, kind: str, path: Path, machine: str = "", labels: Mapping[str, str] | None = None) -> Import:
    try:
        raw = read_bytes(path, LARGEST_BYTES, "import it in parts")
    except OSError as error:
        raise FleetmarkError(f"{path}: {error.strerror}; give a file to import") from error
    labels = labels or {}
    description = json.dumps([machine, sorted(labels.items())]).encode() if machine or labels else b""
    sha256, place = hashlib.sha256(raw).hexdigest(), hashlib.sha256(raw + description).hexdigest()[:12]
    for file in (root / FOLDER).glob(f"{kind}-*-{place}/import.json"):
        return Import(file.parent, _about(file), new=False)
    try:
        with memory(MOST_MEMORY, "it"):
            published = _described(_KINDS[kind].read(raw, path.name), machine, labels)
    except FleetmarkError as error:
        raise FleetmarkError(f"{path}: {error}") from error
    folder = root / FOLDER / f"{kind}-{_stem(path.name, kind)}-{place}"
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": kind,
        "source": os.fsencode(path.absolute()).decode(errors="replace"),
        "sha256": sha256,
        "bytes": len(raw),
        "created": utc(),
        "fleetmark": __version__,
        "rows": published.read,
        "figures": len(published.rows),
        "left_out": dict(sorted(published.left_out.items())),
        "notes": list(published.notes),
        "machines": {name: dict(labels) for name, labels in published.machines.items()},
    }
    rows = _measurements(f"{FOLDER}/{folder.name}", published, document["created"])
    Archive(folder, root).write_measurements(rows)
    try:
        replace_inside(folder / "import.json", root, json.dumps(document, indent=1, ensure_ascii=False), private=False)
    except OSError as error:
        raise FleetmarkError(f"cannot write {folder / 'import.json'}: {error.strerror}") from error
    return Import(folder, document, new=True)


def _described(published: Table, machine: str, labels: Mapping[str, str]) -> Table:
    """Return ``published`` with its only machine renamed to ``machine``, and with ``labels`` added to all machines."""
    if machine and len(published.machines) > 1:
        raise FleetmarkError(
            f"it has {len(published.machines)} machines, which cannot all have the name {machine}; remove --name"
        )
    rows = [replace(row, machine=machine) for row in published.rows] if machine else published.rows
    machines = {machine or name: {**traits, **labels} for name, traits in published.machines.items()}
    return replace(published, machines=machines, rows=rows)


def _stem(name: str, kind: str) -> str:
    """Return a file's name as part of an ID, without characters that have a meaning in selectors."""
    stem = name.removesuffix(".gz").rpartition(".")[0] or name
    return re.sub(r"[^A-Za-z0-9_.]+", "-", stem).strip("-").removeprefix(f"{kind}-")[:60] or "file"


def _measurements(campaign: str, published: Table, time: str) -> Iterator[dict[str, Any]]:
    for row in published.rows:
        rest = {
            "campaign": campaign,
            "host": row.machine,
            "repeat": row.repeat,
            "class": row.class_,
            "kind": row.kind.value if row.kind else "",  # not declared; readers infer the kind and add a note
            "headline": row.headline,
            "centre": Centre.GEOMEAN.value,
            "bits": False,
            "percent": False,
            "time": time,
            "tool_version": row.version,
            "raw": row.place,
            "status": (Status.INVALID if row.invalid else Status.PASSED).value,
            "standing": row.standing.value if row.standing else "",
            "members": "",
        }
        yield schema.row(row.measurement, rest)


def tables(root: Path) -> list[Path]:
    """Return the import.json of every table imported under ``root``."""
    return sorted((root / FOLDER).glob("*/import.json"))


def machines(file: Path) -> list[Machine]:
    """Return the machines of an imported table, from its import.json. Raise FleetmarkError if that is damaged."""
    name = f"{FOLDER}/{file.parent.name}"
    return [Machine(name, host, labels, _no_facts) for host, labels in _about(file)["machines"].items()]


def is_imported(machine: Machine) -> bool:
    """Return whether a machine comes from an imported table, not from a campaign."""
    return machine.campaign.startswith(f"{FOLDER}/")


def publisher(chosen: Sequence[Machine]) -> str | None:
    """Return the label that names the publisher of these machines' results; None if no table names one.

    Results that one publisher tuned and measured are not independent. Each table decides for its own machines: return
    BY_TABLE if only some machines have a publisher, or if tables use different labels.
    """
    labels = {published_by(machine) for machine in chosen}
    if labels == {None}:
        return None
    return labels.pop() if len(labels) == 1 else BY_TABLE


def published_by(machine: Machine) -> str | None:
    """Return the label that names the publisher of a machine; None for a campaign's host, or if the table names no
    publisher.
    """
    if not is_imported(machine):
        return None
    kind = machine.campaign.removeprefix(f"{FOLDER}/").partition("-")[0]
    label = _KINDS[kind].PUBLISHER if kind in _KINDS else ""
    return label if label and label in machine.labels else None


def micro(class_cases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the names of classes that contain only one micro-benchmark. ``class_cases``: the cases by class."""
    names = {class_: {sparecores.MICRO.get(case, "") for case in cases} for class_, cases in class_cases.items()}
    return {class_: labels.pop() for class_, labels in names.items() if len(labels) == 1 and "" not in labels}


def credits(root: Path, chosen: Sequence[Machine], figures: Sequence[tuple[str, str]]) -> list[Message]:
    """Return the notices that publishers of imported tables require beside results of the ``chosen`` machines.

    ``figures``: case and metric of each compared benchmark. The date is the label ``retrieved`` (``import --label
    retrieved=2026-11-01``), or the date of the import if there is no label.
    """
    of_kind: dict[str, list[Machine]] = {}
    for machine in filter(is_imported, chosen):
        kind = machine.campaign.removeprefix(f"{FOLDER}/").partition("-")[0]
        if kind in _CREDITS:
            of_kind.setdefault(kind, []).append(machine)
    sentences: list[Message] = []
    for kind, machines in of_kind.items():
        dates = {m.labels.get("retrieved", "") for m in machines}
        if "" in dates:
            imported = {m.campaign for m in machines if not m.labels.get("retrieved")}
            dates |= {str(_about(root / name / "import.json").get("created", ""))[:10] for name in imported}
        retrieved = ", ".join(sorted(filter(None, dates)))
        sentences += _CREDITS[kind]([m.labels for m in machines], figures, retrieved)
    return sentences


def _no_facts() -> Facts | None:
    return None


def _about(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = decode_json(read_inside(file, file.parent.parent.parent))
        version = document["schema"]
        for labels in document["machines"].values():
            labels.items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FleetmarkError(f"{file}: damaged ({error!r}); delete {file.parent} and import again") from error
    if version != SCHEMA:
        raise unread_schema(file, version, SCHEMA)
    return document
