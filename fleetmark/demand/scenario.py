"""A scenario: a YAML file with the keys of a question that differ, laid over its document."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import yaml as demand_yaml
from fleetmark.demand.places import Input, Path, Where

_ENTIRE = ("demand",)  # its forms exclude each other, so it is replaced and never mixed
_INSTEAD: Mapping[str, str] = {"slo": "utilisation", "utilisation": "slo"}


def overlaid(source: Input, file: File) -> Input:
    """The document of ``source`` with what ``file`` says instead. Mappings are merged, everything else is replaced.

    Raises FleetmarkError for a file that is not YAML, or changes nothing.
    """
    over = demand_yaml.read(file)
    doc: dict[str, Any] = copy.deepcopy(source.doc)
    places: dict[Path, Where] = dict(source.places)
    _merge(doc, over.doc, (), places, over.places)
    if doc == source.doc:
        raise FleetmarkError(f"{file.name}: the scenario changes nothing: write the keys of the question that differ")
    faults = [*source.faults, *over.faults]
    return Input(doc, places, {**source.files, **over.files}, faults, source.sheets, source.folder)


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
        places.update({p: where for p, where in new.items() if p[: len(here)] == here})
        doc[key] = value
        other = _INSTEAD.get(key) if len(path) == 2 and path[0] == "workloads" else None
        if other and other not in over:  # where the scenario has both, the document refuses them
            doc.pop(other, None)
