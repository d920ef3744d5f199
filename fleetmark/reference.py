"""Pinned reference machines: figures and weights kept by name and version, so that scores never drift.

``references/NAME.VERSION.json`` under the results root. A new version never touches an old one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark import __version__
from fleetmark.archive import utc, write_atomic
from fleetmark.model import FleetmarkError
from fleetmark.selection import Machine
from planner.comparison import Side
from planner.equivalence import pinned_weights
from workloads.manifest import suggest

SCHEMA = 1
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,60}", re.ASCII)
_FILE = re.compile(r"(.+)\.(\d+)\.json")
_SIZES = ["smallest", "largest"]  # which an older file lacks, as it lacks traits
_ABOUT = ["workload", "case", "metric", "unit", "better", "class", "standing"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A pinned machine: ``side`` has one row, ``weights`` the share of each benchmark within its class."""

    name: str
    version: int
    created: str
    selector: str
    hosts: int
    side: Side
    weights: Mapping[str, float]


def save(root: Path, name: str, side: Side, records: Sequence[Machine], kinds: pd.DataFrame | None = None) -> Reference:
    """Pin the mean of ``side``'s machines under ``name``, as its next version. Raises FleetmarkError for a bad name.

    ``kinds``: a row per kind of machine on record, for telling which benchmarks are redundant.
    """
    if not _NAME.fullmatch(name):
        raise FleetmarkError(f"reference {name!r}: a name is letters, digits, - and _, such as icelake-2026")
    version = 1 + max((r for n, r in _there(root) if n == name), default=0)
    weights = pinned_weights(side.means, side.benchmarks["class"], kinds)
    rows = [
        {"title": title, "mean": float(side.means[title].mean()), "hosts": int(side.means[title].count())}
        | {key: about[key] for key in _ABOUT}
        | {key: None if math.isnan(about[key]) else about[key] for key in _SIZES}
        | {"weight": weights[str(title)]}
        for title, about in side.benchmarks.to_dict("index").items()
    ]
    doc = {
        "schema": SCHEMA,
        "name": name,
        "version": version,
        "created": utc(),
        "fleetmark": __version__,
        "selector": side.title,
        "records": [{"campaign": m.campaign, "host": m.host} for m in records],
        "hosts": len(side.means),
        "traits": {key: list(values) for key, values in side.traits.items()},
        "benchmarks": rows,
    }
    folder = root / "references"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"{name}.{version}.json", json.dumps(doc, indent=1))
    return _made(doc)


def load(root: Path, name: str) -> Reference:
    """The reference ``name`` (its latest version) or ``name@2``. Raises FleetmarkError where there is none."""
    base, at, wanted = name.partition("@")
    versions = sorted(v for n, v in _there(root) if n == base)
    if not versions or (at and wanted not in map(str, versions)):
        known = sorted({n for n, _ in _there(root)})
        have = f"{base} has versions {', '.join(map(str, versions))}" if versions else f"there are {', '.join(known)}"
        hint = have if known else "there is none yet: fleetmark reference save NAME --from gen=…"
        raise FleetmarkError(f"no reference {name!r}{suggest(base, known) if not versions else ''}; {hint}")
    return _read(root / "references" / f"{base}.{wanted or versions[-1]}.json")


def references(root: Path) -> list[Reference]:
    """Every version of every reference, by name."""
    return [_read(root / "references" / f"{n}.{v}.json") for n, v in sorted(_there(root))]


def _there(root: Path) -> list[tuple[str, int]]:
    found = (_FILE.fullmatch(p.name) for p in (root / "references").glob("*.json"))
    return [(m[1], int(m[2])) for m in found if m]


def _read(path: Path) -> Reference:
    try:
        doc = json.loads(path.read_text())
        if doc["schema"] != SCHEMA:
            raise FleetmarkError(f"{path}: schema {doc['schema']} is not one this version reads ({SCHEMA})")
        return _made(doc)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FleetmarkError(f"{path}: damaged ({error!r}); pin the reference again") from error


def _made(doc: Mapping[str, Any]) -> Reference:
    rows = pd.DataFrame(doc["benchmarks"]).set_index("title")
    sizes = rows.reindex(columns=_SIZES).astype(float)
    title = f"{doc['name']}@{doc['version']}"
    means = pd.DataFrame([rows["mean"].to_dict()], index=[title])
    return Reference(
        doc["name"],
        doc["version"],
        doc["created"],
        doc["selector"],
        doc["hosts"],
        Side(title, means, rows[_ABOUT].join(sizes), traits=doc.get("traits", {})),
        {str(t): float(w) for t, w in rows["weight"].items()},
    )
