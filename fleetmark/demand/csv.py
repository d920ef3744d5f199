"""Read and write the planner's input as a folder of CSV sheets, with line and column of every cell.

The sheets are ``settings.csv`` (key, value), ``demand.csv``, ``skus.csv``, ``sites.csv``, ``worth.csv``, and the
optional ``fleet.csv`` and ``supply.csv``. Nested keys are columns with a dot (``power.idle``). An empty cell means that
the key is absent.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, get_args

from pydantic import BaseModel

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.inert import inert, restored
from fleetmark.demand.document import Cohort, Document, Site, Supply
from fleetmark.demand.keys.part import QUANTILE
from fleetmark.demand.keys.sku import Sku
from fleetmark.demand.keys.workload import Workload
from fleetmark.demand.keys.worth import Worth
from fleetmark.demand.places import Input, Path, Where
from fleetmark.demand.tables import SERIES

SHEETS = ("settings.csv", "demand.csv", "skus.csv", "sites.csv", "worth.csv", "fleet.csv", "supply.csv")
HISTORY = "history"  # the value in demand.csv that marks sheets of past use
LARGEST_BYTES = 32 << 20  # maximum size of a sheet
MOST_ROWS = 400_000  # maximum number of rows per sheet, including empty rows: four years in steps of 5 minutes
MOST_COLUMNS = 500
MOST_CELLS = 3_000_000  # maximum number of non-empty cells per sheet
_LONGEST_LINE = 1 << 20  # in characters


# Mappings that are written into a single cell.
_ENTRIES = ("price_breaks", "slips", "currencies", "domain_power", "correlation", "needs", "has")


def _columns(model: type[BaseModel], *without: str) -> list[str]:
    """Return the keys of a part of the document as column heads."""
    heads = []
    for name, field in model.model_fields.items():
        if name in without:
            continue
        inner = next((t for t in (field.annotation, *get_args(field.annotation)) if _is_part(t)), None)
        head = field.alias or name
        parts = _columns(inner, "quantiles", "names") if inner and head not in _ENTRIES else []
        heads += [f"{head}.{part}" for part in parts] or [head]
    return heads


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


_SETTINGS = _columns(Document, "workloads", "skus", "sites", "fleet", "supply")
_WORKLOAD = _columns(Workload, "demand")
_PAST = ("history.file", "history.column", "history.season")
_DEMAND = ("workload", "quantile", "start", "growth", *_PAST, *_WORKLOAD)
_SKUS = ("sku", *_columns(Sku, "worth"))
_SITES = ("site", *_columns(Site))
_WORTH = ("sku", "workload", *_columns(Worth))
_FLEET = tuple(_columns(Cohort))
_SUPPLY = tuple(_columns(Supply))
_RENAMED = {"supply.csv": Supply.RENAMED, "fleet.csv": getattr(Cohort, "RENAMED", {})}  # former column heads


@dataclass(frozen=True, slots=True)
class Row:
    line: int
    cells: Mapping[str, str]  # only non-empty cells


def _lines(name: str, text: str) -> Iterator[str]:
    """Yield the lines of a sheet with their line ends. Raise FleetmarkError if a line is too long."""
    for n, line in enumerate(io.StringIO(text, newline=""), 1):
        if len(line) > _LONGEST_LINE:
            raise FleetmarkError(f"{name} line {n}: longer than {_LONGEST_LINE:,} characters; is the file CSV?")
        yield line


class Folder:
    """Read the sheets of a folder into one document."""

    def __init__(self, folder: File) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.places: dict[Path, Where] = {}
        self.input = Input(doc={}, places=self.places, files=self.files, folder=folder)

    def rows(self, name: str, columns: Sequence[str], needed: Sequence[str]) -> tuple[list[str], list[Row]]:
        """Return the heads and rows of one sheet. ``columns`` is used in messages; the caller checks the heads."""
        file = self.folder / name
        try:
            raw = read_bytes(file, LARGEST_BYTES, "check that it is a planner sheet")
            text = raw.decode("utf-8-sig")
        except OSError as error:
            raise FleetmarkError(f"{file}: {error.strerror}; the sheets are {', '.join(SHEETS)}") from error
        except UnicodeDecodeError as error:
            raise FleetmarkError(f"{file}: not UTF-8 text: save the sheet as CSV UTF-8") from error
        except ValueError as error:  # a NUL byte or an incomplete character
            raise FleetmarkError(f"{ascii(name)[:80]} cannot be a file name: choose another name") from error
        self.files[name] = hashlib.sha256(raw).hexdigest()
        head = text.partition("\n")[0]
        if text.count("\n") + text.count("\r") > 2 * MOST_ROWS:
            raise FleetmarkError(f"{name}: more than {MOST_ROWS:,} rows; use longer periods")
        if head.count(",") + head.count(";") > MOST_COLUMNS:
            raise FleetmarkError(f"{name}: more than {MOST_COLUMNS} columns; remove some")
        reader = csv.reader(_lines(name, text), delimiter=";" if ";" in head and "," not in head else ",")
        rows: list[Row] = []
        number = 0
        try:
            heads = [cell.strip() for cell in next(reader, [])]
            present = [_RENAMED.get(name, {}).get(head, head) for head in heads]
            for cells in reader:
                filled = {h: restored(c.strip()) for h, c in zip(present, cells, strict=False) if c.strip()}
                if any(c.strip() for c in cells[len(heads) :]):
                    self.fault(Where(name, reader.line_num), f"has {len(cells)} cells under {len(heads)} heads")
                if filled:
                    rows.append(Row(reader.line_num, filled))
                    number += len(filled)
                if number > MOST_CELLS or len(rows) > MOST_ROWS:
                    raise FleetmarkError(
                        f"{name}: more than {MOST_ROWS:,} rows or {MOST_CELLS:,} cells; split the sheet"
                    )
        except csv.Error as error:
            raise FleetmarkError(f"{name} line {reader.line_num}: not CSV: {error}") from error
        for twice in sorted({h for h in heads if heads.count(h) > 1}):
            self.fault(Where(name, 1, twice), "is a repeated column head")
        for lacking in [n for n in needed if n not in present]:
            self.fault(Where(name, 1), f"has no column {lacking}; its columns are {', '.join(columns)}")
        return heads, rows

    def fault(self, place: Where, sentence: str) -> None:
        self.input.faults.append((place, sentence))

    def check_heads(self, name: str, heads: Sequence[str], columns: Sequence[str]) -> None:
        for head in heads:
            if head not in columns and not _latency(head):
                now = _RENAMED.get(name, {}).get(head)
                wrong = f"there is no such column{suggest(head, list(columns))}; {', '.join(columns)}"
                self.fault(Where(name, 1, head), f"this column is now called {now}; rename it" if now else wrong)

    def put(self, doc: dict[str, Any], path: Path, place: Where, value: str) -> None:
        """Set ``value`` at ``path`` of the document, and record its place."""
        node: Any = doc
        for n, part in enumerate(path[:-1]):
            self.places.setdefault(path[: n + 1], Where(place.file, place.line))
            node = node.setdefault(part, {}) if isinstance(node, dict) else node[part]
        node[path[-1]] = value
        self.places[path] = place

    def table(self, doc: dict[str, Any], name: str, top: str, key: str, columns: Sequence[str]) -> None:
        """Read a sheet with one row per entry, named in its column ``key``."""
        heads, rows = self.rows(name, columns, [key])
        self.check_heads(name, heads, columns)
        doc[top] = {}
        for row in rows:
            here = Where(name, row.line)
            if key not in row.cells:
                self.fault(here, f"{key} is empty")
                continue
            path: Path = (top, row.cells[key])
            if path in self.places:
                self.fault(here, f"{key} {row.cells[key]} is already at line {self.places[path].line}")
                continue
            self.places[path] = here
            doc[top][row.cells[key]] = {}
            for head, value in row.cells.items():
                if head != key and head in columns:
                    self.put(doc, (*path, *head.split(".")), Where(name, row.line, head), value)

    def worth(self, doc: dict[str, Any]) -> None:
        name = "worth.csv"
        heads, rows = self.rows(name, _WORTH, ["sku", "workload"])
        self.check_heads(name, heads, _WORTH)
        for sku in doc["skus"].values():
            sku["worth"] = {}
        for row in rows:
            here, lacking = Where(name, row.line), [k for k in ("sku", "workload") if k not in row.cells]
            sku, workload = row.cells.get("sku", ""), row.cells.get("workload", "")
            path: Path = ("skus", sku, "worth", workload)
            if lacking:
                self.fault(here, f"{' and '.join(lacking)} is empty")
            elif sku not in doc["skus"]:
                skus = list(doc["skus"])
                self.fault(
                    Where(name, row.line, "sku"), f"no SKU {sku!r}{suggest(sku, skus)} in skus.csv: {', '.join(skus)}"
                )
            elif path in self.places:
                self.fault(here, f"{sku} for {workload} is already at line {self.places[path].line}")
            else:
                self.places[path] = here
                doc["skus"][sku]["worth"][workload] = {}
                for head, value in row.cells.items():
                    if head in _WORTH[2:]:
                        self.put(doc, (*path, *head.split(".")), Where(name, row.line, head), value)

    def entries(self, doc: dict[str, Any], top: str, columns: Sequence[str], needed: Sequence[str]) -> None:
        """Read a sheet with one row per entry of a list; the sheet may be absent."""
        name = f"{top}.csv"
        doc[top] = []
        if not (self.folder / name).exists():
            return
        heads, rows = self.rows(name, columns, needed)
        self.check_heads(name, heads, columns)
        for n, row in enumerate(rows):
            self.places[top, n] = Where(name, row.line)
            doc[top].append({})
            for head, value in row.cells.items():
                if head in columns:
                    self.put(doc, (top, n, head), Where(name, row.line, head), value)

    def settings(self, doc: dict[str, Any]) -> None:
        name = "settings.csv"
        _, rows = self.rows(name, ("key", "value"), ["key", "value"])
        for row in rows:
            key, value = row.cells.get("key", ""), row.cells.get("value")
            path: Path = tuple(key.split(".", 1))
            if key not in _SETTINGS and path[0] != "budget":
                sentence = f"there is no setting {key!r}{suggest(key, _SETTINGS)}; there are {', '.join(_SETTINGS)}"
                self.fault(Where(name, row.line, "key"), sentence)
            elif path in self.places:
                self.fault(Where(name, row.line), f"{key} is already at line {self.places[path].line}")
            elif value is not None:
                if path[0] == "budget" and isinstance(doc.get("budget"), str):
                    self.fault(Where(name, row.line), "the budget for all periods is already set")
                else:
                    self.put(doc, path, Where(name, row.line, "value"), value)

    def demand(self, doc: dict[str, Any]) -> None:
        """Read the demand: one row per workload, or one row per quantile of its demand; the columns are periods."""
        name = "demand.csv"
        heads, rows = self.rows(name, (*_DEMAND, "the periods"), ["workload", "unit"])
        periods = [h for h in heads if h and h not in _DEMAND and not _latency(h)]
        if "periods" not in doc and periods:
            doc["periods"] = periods
            self.places["periods",] = Where(name, 1)
            self.places.update({("periods", n): Where(name, 1, p) for n, p in enumerate(periods)})
        doc["workloads"] = {}
        for row in rows:
            here, workload = Where(name, row.line), row.cells.get("workload")
            if workload is None:
                self.fault(here, "workload is empty")
                continue
            path: Path = ("workloads", workload)
            self.places.setdefault(path, here)
            entry = doc["workloads"].setdefault(workload, {"demand": {}})
            self.places.setdefault((*path, "demand"), here)
            rank = row.cells.get("quantile")
            if rank is not None and not QUANTILE.fullmatch(rank):
                self.fault(Where(name, row.line, "quantile"), f"{rank!r} is not a quantile: write p50 or p90")
                continue
            for head, value in row.cells.items():
                place = Where(name, row.line, head)
                if head in periods:
                    target = (*path, "demand", *([rank] if rank else []), head)
                elif head == "history" or head.startswith("history."):
                    target = (*path, "demand", *head.split("."))
                elif head in ("start", "growth"):
                    target = (*path, "demand", head, *([rank] if rank else []))
                elif head in _WORKLOAD or _latency(head):
                    target = (*path, *head.split("."))
                else:
                    continue
                if target in self.places and target != path:
                    self.fault(place, f"is already at line {self.places[target].line}")
                    continue
                self.put(doc, target, place, value)
            entry.setdefault("demand", {})


def _latency(head: str) -> bool:
    return head.startswith("slo.") and QUANTILE.fullmatch(head.removeprefix("slo.")) is not None


def read(folder: File) -> Input:
    """Return the document in the sheets of ``folder``, with the errors of the sheets themselves.

    Raise FleetmarkError for a sheet that is missing, unknown or not CSV.
    """
    odd = sorted(p.name for p in folder.glob("*.csv") if p.name not in SHEETS and not p.name.startswith(HISTORY))
    if odd:
        raise FleetmarkError(f"{folder / odd[0]}: not a sheet of the planner; the sheets are {', '.join(SHEETS)}")
    reader, doc = Folder(folder), dict[str, Any]()
    reader.settings(doc)
    reader.demand(doc)
    reader.table(doc, "skus.csv", "skus", "sku", _SKUS)
    reader.table(doc, "sites.csv", "sites", "site", _SITES)
    reader.worth(doc)
    reader.entries(doc, "fleet", _FLEET, ["sku", "site", "count"])
    reader.entries(doc, "supply", _SUPPLY, ["item", "maximum"])
    reader.input.doc.update(doc)
    return reader.input


def sheets(doc: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return a valid document (in the form of ``Input.doc``) as the texts of its sheets.

    ``names`` are the names of its periods.
    """
    tops = {k: v for k, v in doc.items() if k not in ("workloads", "skus", "sites", "fleet", "supply")}
    if isinstance(tops.get("periods"), list):
        tops.pop("periods")  # the column heads of demand.csv are the names of the periods
    if isinstance(tops.get("budget"), list):
        tops["budget"] = dict(zip(names, tops["budget"], strict=True))
    settings = [{"key": key, "value": value} for key, value in _flat(_series(tops, names))]
    skus = [
        {"sku": k, **dict(_flat(_series({n: v for n, v in s.items() if n != "worth"}, names)))}
        for k, s in doc["skus"].items()
    ]
    sites = [{"site": k, **dict(_flat(_series(s or {}, names)))} for k, s in doc["sites"].items()]
    worths = [
        {"sku": sku, "workload": workload, **(dict(_flat(w)) if isinstance(w, Mapping) else {"value": w})}
        for sku, s in doc["skus"].items()
        for workload, w in s["worth"].items()
    ]
    texts = {
        "settings.csv": _written(("key", "value"), settings),
        "demand.csv": _written((*_DEMAND, *names), list(_demand(doc["workloads"], names))),
        "skus.csv": _written(_SKUS, skus),
        "sites.csv": _written(_SITES, sites),
        "worth.csv": _written(_WORTH, worths),
    }
    lists = {"fleet": _FLEET, "supply": _SUPPLY}
    return texts | {f"{top}.csv": _written(columns, doc[top]) for top, columns in lists.items() if doc.get(top)}


def _demand(workloads: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name, workload in workloads.items():
        details = dict(_flat({k: v for k, v in workload.items() if k != "demand"}))
        rows: dict[str, dict[str, Any]] = {}
        demand = workload["demand"]
        parts = demand if isinstance(demand, Mapping) else {"": demand}
        if isinstance(demand, Mapping) and set(demand) <= set(names):
            parts = {"": demand}
        for part, value in parts.items():
            if part == "history":
                past = value if isinstance(value, Mapping) else {"file": value}
                rows.setdefault("", {}).update({f"history.{key}": one for key, one in past.items()})
            elif part in ("start", "growth"):
                for rank, one in (value if isinstance(value, Mapping) else {"": value}).items():
                    rows.setdefault(rank, {})[part] = one
            elif isinstance(value, Mapping):
                rows.setdefault(part, {}).update(value)
            else:
                values = value if isinstance(value, list) else [value] * len(names)
                rows.setdefault(part, {}).update(zip(names, values, strict=True))
        for n, (rank, cells) in enumerate(rows.items()):
            yield {"workload": name, "quantile": rank, **cells, **(details if n == 0 else {})}


def _series(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a part with each series as the text of one cell, such as ``2027-Q1: 100, 2027-Q3: 200``."""

    def cell(value: Any) -> Any:
        given = dict(zip(names, value, strict=True)) if isinstance(value, list) else value
        is_series = isinstance(given, Mapping) and set(given) <= set(names)
        return ", ".join(f"{name}: {one}" for name, one in given.items()) if is_series else value

    return {key: cell(value) if key in SERIES else value for key, value in values.items()}


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and key in _ENTRIES:
            yield key, ", ".join(f"{name}: {inner}" for name, inner in value.items())
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", v) for inner, v in _flat(value))
        else:
            yield key, ", ".join(map(str, value)) if isinstance(value, list) else value


def _written(heads: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sheet with those ``heads`` that have values, followed by the other columns of the rows."""
    used = dict.fromkeys(key for row in rows for key, value in row.items() if value not in ("", None))
    shown = [h for h in heads if h in used] + [h for h in used if h not in heads]
    out = io.StringIO()
    writer = csv.DictWriter(out, shown or list(heads), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None else inert(v) for k, v in row.items()} for row in rows)
    return out.getvalue()
