"""Locate the planner's input and collect its errors, to report all of them together with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import printable
from fleetmark.base.keys import key_errors

MOST = 10  # maximum number of faults in one error

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input.

    It is a ``file``, and a ``line`` (1-based) and ``column`` in a CSV file, or a ``sheet`` and ``cell`` in a workbook.
    """

    file: str
    line: int = 0
    column: str = ""
    sheet: str = ""
    cell: str = ""

    def __str__(self) -> str:
        if self.sheet:
            return f"{self.file}, sheet {self.sheet}, {self.cell}"
        line = f" line {self.line}" if self.line else ""
        return f"{self.file}{line}{f', column {self.column}' if self.column else ''}"


@dataclass(kw_only=True, slots=True)
class Input:
    """An input before validation: ``doc`` in the types of YAML, and ``places`` by path.

    ``files`` maps its files to their SHA-256. ``sheets`` lists the tabs of a workbook in order. ``folder`` contains the
    files that the input names.
    """

    doc: dict[str, Any]
    places: Mapping[Path, Where]
    files: Mapping[str, str]
    faults: list[tuple[Where, str]] = field(default_factory=list)
    sheets: Sequence[str] = ()
    folder: File = File()

    def place_of(self, path: Path) -> Where:
        """Return the place of ``path``, or of its nearest parent."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path) or Where(next(iter(self.files)))

    def fault(self, path: Path, sentence: str) -> None:
        """Record an error at ``path``."""
        place = self.place_of(path)
        key = "" if (place.column or place.cell) and self.places.get(path) else dotted(path)
        entry = (place, f"{key}: {sentence}" if key else sentence)
        if entry not in self.faults:
            self.faults.append(entry)

    def stop(self) -> None:
        """Raise FleetmarkError with all recorded errors, in the order of the files."""
        if not self.faults:
            return
        order = {name: n for n, name in enumerate((*self.files, *self.sheets))}
        self.faults.sort(key=lambda f: (order.get(f[0].file, 0), order.get(f[0].sheet, 0), f[0].line))
        sentences = [printable(f"{place}: {sentence}") for place, sentence in self.faults[:MOST]]
        if len(self.faults) > MOST:
            sentences.append(f"and {len(self.faults) - MOST} more faults")
        raise FleetmarkError("\n".join(sentences))

    def refused(self, error: ValidationError, model: type[BaseModel], *, missing: bool = True) -> None:
        """Record pydantic's errors as errors of this file, in full sentences.

        If ``missing`` is False, absent keys are not recorded, because their cells have errors of their own.
        """
        for one, unknown in key_errors(error, model):
            loc = one["loc"]
            if one["type"] == "missing":
                if not missing:
                    continue
                self.fault(self._real(loc[:-1]), f"{loc[-1]} is missing")
            else:
                self.fault(self._real(loc), unknown or _sentence(one))

    def _real(self, loc: Sequence[str | int]) -> Path:
        """Return ``loc`` without the parts that are in the model but not in the file."""
        path: list[str | int] = []
        node: Any = self.doc
        for part in loc:
            if _has(node, part):
                node = node[part]
                path.append(part)
        return tuple(path)


def _has(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, Mapping) and part in node


def dotted(path: Path) -> str:
    """Return a path as text: ``skus.genoa.price``, ``fleet[2].age``."""
    text = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in path)
    return text.removeprefix(".")


def _sentence(one: ErrorDetails) -> str:
    kind = one["type"]
    if kind in ("dict_type", "mapping_type", "model_type", "model_attributes_type"):
        return "keys and values are expected here"
    if kind == "list_type":
        return "a list is expected here"
    if kind == "too_short":
        return "needs at least one"
    text = one["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:] if kind != "value_error" else text
