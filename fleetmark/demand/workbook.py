"""Read the planner's input from an edited workbook of ``reports.plan.workbook``, and locate every value by its cell."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import message
from fleetmark.demand import equipment, periods, tables
from fleetmark.demand.cells import LARGEST_BYTES, Area, Cells, Value, text
from fleetmark.demand.columns import NO, YES, Column, Rule
from fleetmark.demand.places import Input, Path, Where
from fleetmark.demand.question import question
from fleetmark.demand.scenario import overlaid
from fleetmark.planner.capacity.question import Question
from fleetmark.planner.capacity.sku import Sku, Worth, declared_fields

_SETTINGS: Mapping[str, Path] = {
    "carbon_price": ("carbon", "price"),
    "grid": ("carbon", "grid"),
    "carbon_limit": ("carbon", "limit"),
    "carbon_by_year": ("carbon", "yearly_limit"),
} | {f"shock_{key}": ("shock", key) for key in ("chance", "demand")}
_SKU: Mapping[str, Path] = {field.column: tuple(field.key.split(".")) for field in declared_fields(Sku)}
_SITE: Mapping[str, Path] = {"power_w": ("power",), "rack_w": ("rack_power",)}
_WORTH: Mapping[str, Path] = {"se": ("error",)}
_INTEGERS = 2**53  # spreadsheets store integers exactly up to this number


def read(path: File, root: File = File(), scenario: File | None = None) -> Question:
    """Return the question in the inputs of a workbook for ``fleetmark plan --from``, with the changes in ``scenario``.

    Named ranges locate the inputs. SKUs, sites, existing servers, equivalences, workloads and periods may be added and
    removed. The question's ``source`` is that of the original question, plus the workbook and its SHA-256. Spreadsheets
    keep 16 significant digits. Raise FleetmarkError with the sheet and cell of up to ten errors.
    """
    try:
        raw = read_bytes(path, LARGEST_BYTES, "delete tabs that fleetmark plan --xlsx did not write")
    except OSError as error:
        raise FleetmarkError(f"{path}: cannot be read: {error.strerror}") from None
    cells = Cells(path, raw)
    try:
        reader = _Reader(cells, hashlib.sha256(raw).hexdigest())
        source = reader.document()
        return reader.as_planned(question(source if scenario is None else overlaid(source, scenario), root))
    finally:
        cells.close()


class _Reader:
    """Read the tabs of a workbook into one document."""

    def __init__(self, cells: Cells, digest: str) -> None:
        self.cells = cells
        self.doc: dict[str, Any] = {}
        self.places: dict[Path, Where] = {}
        self.files = {cells.path.name: digest}
        self.planned = _Planned({}, frozenset())

    def document(self) -> Input:
        """Return the document; its errors include only those of the cells themselves."""
        self._settings()
        names = self._periods()
        self.planned = _planned(self.cells)
        for name in ("workloads", "skus", "sites"):
            self.doc[name] = {}
        self._named(equipment.skus(), "skus", "SKU", _SKU)
        self._named(equipment.sites(), "sites", "site", _SITE)
        self._named(tables.workloads(), "workloads", "workload", {})
        for sku in self.doc["skus"].values():
            sku.setdefault("worth", {})
        self._worths()
        self._resources()
        self._series(names)
        self._entries("fleet", tables.fleet())
        self._entries("supply", tables.supply())
        for name in {s for s, w in self.planned.worths if w not in self.doc["workloads"]}:  # rows of removed workloads
            if not self.doc["skus"].get(name, {"worth": 1})["worth"] and name not in {
                c["sku"] for c in self.doc["fleet"]
            }:
                del self.doc["skus"][name]
        self._runs()
        mix = self._mix()
        for column, key in ((tables.MEDIAN, "p50"), (tables.SIGMA, "sigma")):
            self._demand(column, key, names, mix if key == "p50" else {})
        return Input(
            doc=self.doc,
            places=self.places,
            files=self.files,
            faults=self.cells.faults,
            sheets=self.cells.sheets,
            folder=self.cells.path.parent,
        )

    def _put(self, path: Path, area: Area, row: int, col: int, value: Value | None) -> None:
        """Set a value at a path of the document, and record its cell."""
        node: Any = self.doc
        for n, part in enumerate(path[:-1]):
            self.places.setdefault(path[: n + 1], self.cells.place_of(area, row, col))
            node = node.setdefault(part, {})
        node[path[-1]] = int(value) if isinstance(value, float) and _integer(value) else value
        self.places[path] = self.cells.place_of(area, row, col)

    @property
    def _faulty(self) -> set[Where]:
        return {place for place, _ in self.cells.faults}

    def _settings(self) -> None:
        currency = Column("question_currency", message("currency"), Rule(message("a name"), text=True))
        for column in (currency, *tables.settings()):
            area = self.cells.area(column.name, str(column.title))
            if area is not None:
                value = self.cells.value(area, area.row, area.col)
                if value is None and column.rule.optional:
                    continue
                self._put(_SETTINGS.get(column.field, (column.field,)), area, area.row, area.col, value)

    def _periods(self) -> list[str]:
        """Return the names of periods: those in the table, and those added below it up to an empty cell."""
        cells, (column,) = self.cells, tables.periods()
        area, money = cells.area("period_name", "the table of periods"), cells.area(column.name, str(column.title))
        years = cells.area("question_years", "the length of a period")
        if area is None or money is None or years is None:
            return []
        names: list[str] = []
        self.doc["periods"] = {"names": names}
        self.places["periods",] = self.places["periods", "names"] = cells.place_of(area, area.row)
        for row in range(area.row, area.row + periods.MOST):
            if cells.empty(area, row, area.col):
                break
            names.append(text(cells.value(area, row, area.col)))
            self.places["periods", "names", len(names) - 1] = cells.place_of(area, row)
            budget = cells.value(money, row, money.col)
            if budget is not None:
                self._put(("budget", names[-1]), money, row, money.col, budget)
        length = cells.value(years, years.row, years.col)
        named = [n for n, y in periods.LENGTHS.items() if isinstance(length, float | int) and math.isclose(y, length)]
        if named:
            self._put(("periods", "length"), years, years.row, years.col, named[0])
        elif not any(place.sheet == years.sheet and place.cell == years.cell(years.row) for place in self._faulty):
            cells.fault(years, years.row, years.col, f"{length} is not the length of a month, quarter, half or year")
        return names

    def _named(self, columns: Sequence[Column], top: str, noun: str, keys: Mapping[str, Path]) -> None:
        """Read a table with one row per entry, named in its first column."""
        for row, areas, values in self.cells.table(columns):
            name, area = text(values["name"]), areas["name"]
            if not name:
                self.cells.fault(area, row, area.col, f"is empty: the name of the {noun} is needed")
                continue
            path: Path = (top, name)
            if path in self.places:
                first = self.places[path].line
                self.cells.fault(area, row, area.col, f"{noun} {name!r} is already in row {first}")
                continue
            self.doc[top][name] = {}
            self.places[path] = self.cells.place_of(area, row)
            for column in columns[1:]:
                self._cell((*path, *keys.get(column.field, (column.field,))), column, areas, row, values)
            if top == "skus":
                self.doc[top][name].setdefault("price", "not sold")

    def _cell(
        self, path: Path, column: Column, areas: Mapping[str, Area], row: int, values: Mapping[str, Value | None]
    ) -> None:
        """Read one cell of a row; an empty optional cell means that the key is absent."""
        area, value = areas[column.field], values[column.field]
        if value is None and (column.rule.optional or self.cells.place_of(area, row, area.col) in self._faulty):
            return
        self._put(path, area, row, area.col, value)

    def _of(self, area: Area, row: int, name: str, noun: str, top: str) -> bool:
        """Return whether a name is in a table. Record an error if it is not, unless the name was removed."""
        among = list(self.doc[top])
        if name in among:
            return True
        if name in self.planned.workloads and top == "workloads":
            return False
        choices = f"there are {', '.join(among)}" if among else "there are none"
        self.cells.fault(area, row, area.col, f"no {noun} {name!r}{suggest(name, among)}; {choices}")
        return False

    def _worths(self) -> None:
        columns = tables.worths()
        for row, areas, values in self.cells.table(columns):
            sku, workload = text(values["sku"]), text(values["workload"])
            good = self._of(areas["sku"], row, sku, "SKU", "skus")
            if not (self._of(areas["workload"], row, workload, "workload", "workloads") and good):
                continue
            path: Path = ("skus", sku, "worth", workload)
            if path in self.places:
                sentence = f"{sku} has an equivalence for {workload} already, further up"
                self.cells.fault(areas["sku"], row, areas["sku"].col, sentence)
                continue
            self.doc["skus"][sku]["worth"][workload] = {}
            self.places[path] = self.cells.place_of(areas["value"], row)
            for column in columns[2:]:
                self._cell((*path, *_WORTH.get(column.field, (column.field,))), column, areas, row, values)

    def _entries(self, top: str, columns: Sequence[Column]) -> None:
        """Read a table with one row per entry of a list."""
        entries: list[dict[str, Any]] = []
        self.doc[top] = entries
        for row, areas, values in self.cells.table(columns):
            n = len(entries)
            entries.append({})
            self.places[top, n] = self.cells.place_of(areas[columns[0].field], row)
            for column in columns:
                area, value = areas[column.field], values[column.field]
                if value is None and column.rule.optional:
                    continue
                entries[n][column.field] = text(value) or None if column.rule.text else value
                self.places[top, n, column.field] = self.cells.place_of(area, row, area.col)

    def _resources(self) -> None:
        """Read the amounts of resources that workloads need and SKUs have."""
        for row, areas, values in self.cells.table(tables.resources()):
            key, name, resource = (text(values[field]) for field in ("kind", "owner", "name"))
            noun, top = ("workload", "workloads") if key == tables.NEEDS else ("SKU", "skus")
            path: Path = (top, name, key, resource)
            if key not in (tables.NEEDS, tables.HAS):
                sentence = f"{key!r} is neither {tables.NEEDS} (a unit of demand) nor {tables.HAS} (a server)"
                self.cells.fault(areas["kind"], row, areas["kind"].col, sentence)
            elif not self._of(areas["owner"], row, name, noun, top):
                continue
            elif path in self.places:
                sentence = f"{name} {key} {resource} already, in row {self.places[path].line}"
                self.cells.fault(areas["name"], row, areas["name"].col, sentence)
            elif not resource:
                self.cells.fault(areas["name"], row, areas["name"].col, "is empty: name the resource")
            else:
                self._put(path, areas["amount"], row, areas["amount"].col, values["amount"])

    def _series(self, names: Sequence[str]) -> None:
        """Read the figures that change over time; they replace the constants of other tables."""
        area = self.cells.area(tables.SERIES_VALUE, "the figures by period")
        for row, areas, values in self.cells.table(tables.series()):
            key, name = text(values["key"]), text(values["name"])
            if area is None:
                return
            if key not in tables.SERIES:
                sentence = f"{key!r} is no figure that can change{suggest(key, list(tables.SERIES))}; there are "
                self.cells.fault(areas["key"], row, areas["key"].col, sentence + ", ".join(tables.SERIES))
                continue
            noun, top = ("SKU", "skus") if key == "price" else ("site", "sites")
            general = key == "energy_price" and not name
            if not general and not self._of(areas["name"], row, name, noun, top):
                continue
            path: Path = (key,) if general else (top, name, key)
            figures = [self.cells.value(area, row, area.col + n) for n in range(len(names))]
            node = self.doc if general else self.doc[top][name]
            node[key] = figures
            self.places[path] = self.cells.place_of(areas["key"], row)
            for n in range(len(names)):
                self.places[(*path, n)] = self.cells.place_of(area, row, area.col + n)

    def _runs(self) -> None:
        """Read the sites of each workload.

        A workload may run at all sites if its column is missing, or if the cells of its column are empty.
        """
        cells, area = self.cells, self.cells.area("site_runs", "where workloads may run")
        rows = {name: self.places["sites", name].line for name in self.doc["sites"]}
        if area is None:
            return
        for col in range(area.col, area.last_col + 1):
            head = Area(area.sheet, area.row - 1, col, area.row - 1, col)
            workload = cells.column(head, head.row).split("\n")[0]
            if not workload or not self._of(head, head.row, workload, "workload", "workloads"):
                continue
            words = {name: cells.value(area, row, col) for name, row in rows.items()}
            for name, word in words.items():
                if word is not None and _word(word) not in (YES, NO):
                    cells.fault(area, rows[name], col, f"{word!r} is neither yes nor no")
            allowed = [name for name, word in words.items() if _word(word) == YES]
            if any(word is not None for word in words.values()) and not allowed:
                sentence = f"{workload} may run nowhere: write {YES} at one site, or empty the column for anywhere"
                cells.fault(area, area.row, col, sentence)
            if allowed:
                self.doc["workloads"][workload]["sites"] = allowed
                self.places["workloads", workload, "sites"] = cells.place_of(area, area.row, col)

    def _mix(self) -> dict[str, float]:
        """Return the factors on the demands of workloads; workloads without a factor keep their demand."""
        column = tables.MIX
        area, named = (self.cells.area(name, str(column.title)) for name in (column.name, f"{column.name}_of"))
        if area is None or named is None:
            return {}
        factors: dict[str, float] = {}
        for row in range(area.row, area.last_row + 1):
            value, name = self.cells.value(area, row, area.col), text(self.cells.value(named, row, named.col))
            if isinstance(value, float | int) and 0 <= value <= column.rule.maximum:
                factors[name] = float(value)
            elif value is not None:
                self.cells.fault(area, row, area.col, f"{value!r} is not a factor: write 0 to {column.rule.maximum:g}")
        return factors

    def _demand(self, column: Column, key: str, names: Sequence[str], mix: Mapping[str, float]) -> None:
        """Read one row of figures per workload; figures of added periods are to the right of the table.

        ``mix`` has the factors on the figures of workloads.
        """
        cells = self.cells
        area, workload_area = (
            cells.area(column.name, str(column.title)),
            cells.area(f"{column.name}_of", str(column.title)),
        )
        if area is None or workload_area is None:
            return
        for row in range(area.row, area.last_row + 1):
            name = text(cells.value(workload_area, row, workload_area.col))
            if not name or not self._of(workload_area, row, name, "workload", "workloads"):
                continue
            if key == "sigma" and "demand" not in self.doc["workloads"][name]:
                continue  # this row already has a fault
            path: Path = ("workloads", name, "demand", key)
            self.doc["workloads"][name].setdefault("demand", {})
            self.places.setdefault(path[:3], cells.place_of(workload_area, row))
            self.places[path] = cells.place_of(workload_area, row)
            faults = len(cells.faults)
            figures = [cells.value(area, row, area.col + n) for n in range(len(names))]
            figures = [v * mix.get(name, 1.0) if isinstance(v, float | int) else v for v in figures]
            for n in range(len(names)):
                self.places[(*path, n)] = cells.place_of(area, row, area.col + n)
            self.doc["workloads"][name]["demand"][key] = figures if len(cells.faults) == faults else 0
        for name in self.doc["workloads"]:
            if ("workloads", name, "demand", key) not in self.places:
                sentence = f"{column.title}: there is no row for {name}; write one in an empty row"
                cells.fault(workload_area, workload_area.row, workload_area.col, sentence)

    def as_planned(self, q: Question) -> Question:
        """Return the question with the original sources of unchanged values, and its provenance."""
        given = f"given in {self.cells.path.name}"

        def source(sku: str, workload: str, worth: Worth) -> Worth:
            before = self.planned.worths.get((sku, workload))
            is_unchanged = before is not None and (worth.value, worth.se, worth.df) == before[:3]
            used = "" if worth.utilisation is None else given
            if before and worth.utilisation == before[4]:
                used = before[5]
            return replace(worth, source=before[3] if before and is_unchanged else given, reason=used)

        skus = {
            s: replace(sku, worth={w: source(s, w, worth) for w, worth in sku.worth.items()})
            for s, sku in q.skus.items()
        }
        whys = _whys(self.cells)
        workloads = {w: replace(work, reason=whys.get((w, work.utilisation), given)) for w, work in q.workloads.items()}
        return replace(q, skus=skus, workloads=workloads, source={**_source(self.cells), **self.files})


def _integer(value: float) -> bool:
    return value.is_integer() and abs(value) < _INTEGERS


def _word(value: Value | None) -> str:
    return {True: YES, False: NO}.get(value, "") if isinstance(value, bool) else str(value or "").lower()


@dataclass(frozen=True, slots=True)
class _Planned:
    """The values from which the workbook was made.

    For each (SKU, workload), these are the worth's value, error, degrees of freedom, source, utilisation, and the
    reason for the utilisation. The workloads are included, too.
    """

    worths: Mapping[tuple[str, str], tuple[float | None, float | None, float, str, float | None, str]]
    workloads: frozenset[str]


def _planned(cells: Cells) -> _Planned:
    names = ("sku", "workload", "value", "se", "df", "source", "utilisation", "why")
    ranges = {n: cells.area(f"planned_{n}", f"the column {n} of the worths as planned") for n in names}
    areas = {n: a for n, a in ranges.items() if a is not None}
    if len(areas) < len(names):
        return _Planned({}, frozenset())
    worths = {}
    for row in range(areas["sku"].row, areas["sku"].last_row + 1):
        sku, workload = (text(cells.column(areas[n], row)) for n in ("sku", "workload"))
        df = cells.number(areas["df"], row)
        worths[sku, workload] = (
            cells.number(areas["value"], row),
            cells.number(areas["se"], row),
            math.inf if df is None else df,
            cells.column(areas["source"], row),
            cells.number(areas["utilisation"], row),
            cells.column(areas["why"], row),
        )
    return _Planned(worths, frozenset(w for _, w in worths))


def _whys(cells: Cells) -> dict[tuple[str, float], str]:
    """Return the reason for each (workload, planned utilisation)."""
    names = ("workload_name", "workload_planned", "workload_why")
    name, used, source = (cells.area(n, f"the column {n}") for n in names)
    if name is None or used is None or source is None:
        return {}
    shares = {row: cells.number(used, row) for row in range(name.row, name.last_row + 1)}
    return {
        (text(cells.column(name, row)), share): cells.column(source, row)
        for row, share in shares.items()
        if share is not None
    }


def _source(cells: Cells) -> dict[str, str]:
    """Return the provenance of the question from which the workbook was made."""
    area = cells.area("question_source", "the source of the question")
    if area is None:
        return {}
    right_column = Area(area.sheet, area.row, area.col + 1, area.last_row, area.col + 1)
    rows = {cells.column(area, row): cells.column(right_column, row) for row in range(area.row, area.last_row + 1)}
    return {name: origin for name, origin in rows.items() if name and origin}
