"""Apply a scenario: a YAML file with the changed keys of a question, merged into the question's document."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.demand import yaml as demand_yaml
from fleetmark.demand.places import Input, Path, Where

_NEW: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "workloads": ("workload", ("unit", "demand")),
    "skus": ("SKU", ("price", "power")),
    "sites": ("site", ("domain",)),
}
_ENTIRE = ("demand",)  # keys with forms that exclude each other, so they are replaced and never merged
_INSTEAD: Mapping[str, str] = {"slo": "utilisation", "utilisation": "slo"}


def overlaid(source: Input, file: File) -> Input:
    """Return the document of ``source`` with the values of ``file``. Mappings are merged; everything else is replaced.

    Raise FleetmarkError for a file that is not YAML, or that changes nothing.
    """
    over = demand_yaml.read(file)
    doc: dict[str, Any] = copy.deepcopy(source.doc)
    places: dict[Path, Where] = dict(source.places)
    _merge(doc, over.doc, (), places, over.places)
    if doc == source.doc:
        raise FleetmarkError(f"{file.name}: the scenario changes nothing: write the keys of the question that differ")
    _unknown(source, over)
    faults = [*source.faults, *over.faults]
    return Input(
        doc=doc,
        places=places,
        files={**source.files, **over.files},
        faults=faults,
        sheets=source.sheets,
        folder=source.folder,
    )


def _unknown(source: Input, over: Input) -> None:
    """Refuse a new entry whose name resembles an existing one, unless it has everything that a new entry needs.

    Raise FleetmarkError.
    """
    for top, (noun, needed) in _NEW.items():
        before, after = source.doc.get(top), over.doc.get(top)
        if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
            continue
        for name, entry in after.items():
            hint = "" if name in before else suggest(str(name), [str(n) for n in before])
            if hint and not (isinstance(entry, Mapping) and set(needed) <= set(entry)):
                place = over.place_of((top, name))
                raise FleetmarkError(f"{place}: no {noun} {name!r}{hint}; a new one needs {' and '.join(needed)}")


def _merge(
    doc: dict[str, Any], over: Mapping[str, Any], path: Path, places: dict[Path, Where], new: Mapping[Path, Where]
) -> None:
    for key, value in over.items():
        here: Path = (*path, key)
        inner = doc.get(key)
        if isinstance(value, Mapping) and isinstance(inner, dict) and key not in _ENTIRE:
            _merge(inner, value, here, places, new)
            continue
        for old in [p for p in places if p[: len(here)] == here]:
            del places[old]
        places.update({p: place for p, place in new.items() if p[: len(here)] == here})
        doc[key] = value
        other = _INSTEAD.get(key) if len(path) == 2 and path[0] == "workloads" else None
        if other and other not in over:  # the document later refuses a scenario with both keys
            doc.pop(other, None)
