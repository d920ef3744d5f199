"""The planner's question from an edited workbook of ``reports.plan.xlsx.book``: the inputs, each checked."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import message
from fleetmark.demand import periods, tables
from fleetmark.demand.amounts import currency
from fleetmark.demand.cells import Area, Cells, Value
from fleetmark.demand.tables import YES, Column, Rule
from planner.capacity.question import Cohort, Question, Site, Sku, Workload, Worth

T = TypeVar("T")
_NAME = Rule(message("a name"), text=True)


def read(path: Path) -> Question:
    """The question in the inputs of a workbook, for ``fleetmark plan --from``.

    Named ranges locate the inputs; new rows of SKUs, sites, servers in place and equivalences count. ``source`` is that
    of the original question, plus the workbook and its SHA-256. A spreadsheet keeps 16 significant digits.
    Raises FleetmarkError with sheet and cell of up to ten faults.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FleetmarkError(f"{path}: cannot be read: {error.strerror}") from None
    cells = Cells(path, raw)
    try:
        result = _question(cells, hashlib.sha256(raw).hexdigest())
    finally:
        cells.close()
    cells.stop()
    assert result is not None
    return result


def _question(cells: Cells, digest: str) -> Question | None:
    """The question; None if the cells have faults."""
    settings = {c.field: cells.single(c) for c in tables.settings()}
    money = cells.single(Column("question_currency", message("currency"), _NAME))
    years = cells.single(Column("question_years", message("length of a period"), Rule(message("years"), above=True)))
    _date(cells, settings["date"])
    _currency(cells, money)
    names, budget = _periods(cells, years)
    cells.stop()

    skus = _named(cells, tables.skus(), "SKU", lambda v: v)
    sites = _named(cells, tables.sites(), "site", lambda v: Site(**{**v, "domain": v["domain"] or ""}))
    work = _named(cells, tables.workloads(), "workload", lambda v: v)
    for name, (row, area, v) in skus.items():
        if v["idle_w"] > v["peak_w"]:
            cells.fault(area.sheet, area.cell(row), f"{name} draws more idle than at its peak; one of them is wrong")
    worths = _worths(cells, list(skus), list(work))
    fleet = _fleet(cells, list(skus), list(sites))
    runs = _runs(cells, sites, list(work))
    demand = {c.name: _matrix(cells, c, list(work), names) for c in (tables.MEDIAN, tables.SIGMA)}
    why = _why(cells)
    source = _source(cells)
    if not cells.faults:
        _somebody_runs_it(cells, work, skus, worths, fleet, runs)
        _survivable(cells, settings["survive"] == YES, sites, runs)
    if cells.faults:
        return None

    plain = {k: v for k, v in settings.items() if k != "survive"}
    return Question(
        currency=str(money),
        periods=tuple(names),
        years=_float(years),
        workloads={
            name: Workload(
                name,
                v["unit"],
                demand[tables.MEDIAN.name][name],
                demand[tables.SIGMA.name][name],
                v["utilisation"],
                why.get((name, v["utilisation"]), f"given in {cells.path.name}"),
                runs.get(name, frozenset()),
                v["dedicated"] == YES,
            )
            for name, (_, _, v) in work.items()
        },
        skus={name: Sku(worth=worths.get(name, {}), **v) for name, (_, _, v) in skus.items()},
        sites={name: site for name, (_, _, site) in sites.items()},
        fleet=fleet,
        survive=settings["survive"] == YES,
        budget=tuple(budget) if any(b is not None for b in budget) else (),
        source={**source, cells.path.name: digest},
        **_settings(plain),
    )


def _settings(values: Mapping[str, Value | None]) -> dict[str, Any]:
    names = {f.name for f in fields(Question)}
    assert set(values) <= names
    return dict(values)


def _float(value: Value | None) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _date(cells: Cells, value: Value | None) -> None:
    area = cells.area("question_date", "the date")
    if value is None or area is None:
        return
    try:
        datetime.date.fromisoformat(str(value))
    except ValueError:
        cells.fault(area.sheet, area.cell(area.row), f"{value!r} is not a date: write 2027-01-31")


def _currency(cells: Cells, value: Value | None) -> None:
    area = cells.area("question_currency", "the currency")
    if value is None or area is None:
        return
    try:
        currency(value)
    except ValueError as error:
        cells.fault(area.sheet, area.cell(area.row), str(error))


def _periods(cells: Cells, years: Value | None) -> tuple[list[str], list[float | None]]:
    area = cells.area("period_name", "the table of periods")
    (column,) = tables.periods()
    money = cells.area(column.name, f"the column {column.title}")
    if area is None or money is None:
        return [], []
    names = [cells.value(area, row, area.col, Column("period_name", message("period"), _NAME)) for row in _rows(area)]
    budget = [cells.value(money, row, money.col, column) for row in _rows(money)]
    if None not in names:
        _in_order(cells, area, [str(n) for n in names], years)
    return [str(n) for n in names], [None if b is None else _float(b) for b in budget]


def _in_order(cells: Cells, area: Area, names: Sequence[str], years: Value | None) -> None:
    """Record a fault for periods out of order, or with another length than the setting; other names are allowed."""
    dated = all(map(periods.place, names))
    try:
        length = periods.in_order(names, None if dated else "year")  # any length: these names do not tell theirs
    except ValueError as error:
        cells.fault(area.sheet, area.cell(area.row), str(error))
        return
    if dated and years is not None and not math.isclose(length, _float(years)):
        sentence = f"{names[0]} is {length:g} years long, but the length of a period is {years:g}"
        cells.fault(area.sheet, area.cell(area.row), sentence)


def _rows(area: Area) -> range:
    return range(area.row, area.last_row + 1)


def _named(
    cells: Cells, columns: Sequence[Column], what: str, make: Callable[[dict[str, Any]], T]
) -> dict[str, tuple[int, Area, T]]:
    """Name to row, area and the object of the row."""
    rows: dict[str, tuple[int, Area, T]] = {}
    for row, area, values in cells.table(columns):
        name = str(values["name"])
        if name in rows:
            cells.fault(area.sheet, area.cell(row), f"{what} {name!r} is already in row {rows[name][0]}")
            continue
        rows[name] = (row, area, make(dict(values)))
    return rows


def _exists(cells: Cells, area: Area, row: int, name: str, what: str, among: Sequence[str], offset: int = 0) -> bool:
    """Whether the name is defined; a fault if it is not."""
    if name in among:
        return True
    if name in cells.suspect:
        return False
    choices = f"there are {', '.join(among)}" if among else "there are none"
    cells.fault(
        area.sheet, area.cell(row, area.col + offset), f"no {what} {name!r}{suggest(name, list(among))}; {choices}"
    )
    return False


def _worths(cells: Cells, skus: Sequence[str], workloads: Sequence[str]) -> dict[str, dict[str, Worth]]:
    planned = _planned(cells)
    worths: dict[str, dict[str, Worth]] = {name: {} for name in skus}
    for row, area, v in cells.table(tables.worths()):
        sku, workload = str(v["sku"]), str(v["workload"])
        good = _exists(cells, area, row, sku, "SKU", skus)
        if not (_exists(cells, area, row, workload, "workload", workloads, 1) and good):
            continue
        if workload in worths[sku]:
            cells.fault(area.sheet, area.cell(row), f"{sku} has an equivalence for {workload} already, further up")
            continue
        value, se = _float(v["value"]), _float(v["se"])
        df = math.inf if v["df"] is None else _float(v["df"])
        before = planned.get((sku, workload))
        same = before is not None and (value, se, df) == before[:3]
        worths[sku][workload] = Worth(value, se, df, before[3] if before and same else f"given in {cells.path.name}")
    return worths


def _somebody_runs_it(
    cells: Cells,
    work: Mapping[str, tuple[int, Area, dict[str, Any]]],
    skus: Mapping[str, tuple[int, Area, dict[str, Any]]],
    worths: Mapping[str, Mapping[str, Worth]],
    fleet: Sequence[Cohort],
    runs: Mapping[str, frozenset[str]],
) -> None:
    """Record a fault for every workload without a server that can run it and is sold or in place where it may run."""
    worth = cells.area("worth_value", "the equivalences")
    for name, (row, area, _) in work.items():
        able = [sku for sku, by_workload in worths.items() if name in by_workload]
        bound = runs.get(name, frozenset())
        in_place = {c.sku for c in fleet if c.count and (not bound or c.site in bound)}
        if not able:
            sheet = worth.sheet if worth else "Equivalence"
            cells.fault(area.sheet, area.cell(row), f"{name} runs on no SKU: give it an equivalence in sheet {sheet}")
        elif all(skus[sku][2]["price"] is None and sku not in in_place for sku in able):
            where = f" at {', '.join(sorted(bound))}, where it may run" if bound else ""
            sentence = f"{name} runs on {', '.join(able)} only, which is neither sold nor in place{where}"
            cells.fault(area.sheet, area.cell(row), sentence)


def _survivable(
    cells: Cells, survive: bool, sites: Mapping[str, tuple[int, Area, Site]], runs: Mapping[str, frozenset[str]]
) -> None:
    """Record a fault if one failure domain holds all sites, or all sites that a workload may run at."""
    area = cells.area("site_domain", "the failure domains")
    if not survive or area is None:
        return
    for who, names in {"": frozenset(sites), **{w: bound for w, bound in runs.items() if bound}}.items():
        domains = {sites[n][2].domain or n for n in names}
        if len(domains) == 1:
            of = f"the sites that {who} may run at" if who else "the sites"
            sentence = f"all {of} are in one failure domain ({domains.pop()}), but its loss must be survived"
            cells.fault(area.sheet, area.cell(sites[min(names)][0]), sentence)
            return


def _planned(cells: Cells) -> dict[tuple[str, str], tuple[float | None, float | None, float, str]]:
    """The worths and their sources at the time of the plan."""
    names = ("sku", "workload", "value", "se", "df", "source")
    ranges = {n: cells.area(f"planned_{n}", f"the column {n} of the worths as planned") for n in names}
    areas = {n: a for n, a in ranges.items() if a is not None}
    if len(areas) < len(names):
        return {}
    worths = {}
    for row in _rows(areas["sku"]):
        sku, workload = (cells.column(areas[n], row) for n in ("sku", "workload"))
        df = cells.number(areas["df"], row)
        worths[sku, workload] = (
            cells.number(areas["value"], row),
            cells.number(areas["se"], row),
            math.inf if df is None else df,
            cells.column(areas["source"], row),
        )
    return worths


def _why(cells: Cells) -> dict[tuple[str, float], str]:
    """(workload, utilisation as planned) to the reason for it."""
    names = ("workload_name", "workload_planned", "workload_why")
    areas = [cells.area(n, f"the column {n}") for n in names]
    name, used, why = areas
    if name is None or used is None or why is None:
        return {}
    reasons = {}
    for row in _rows(name):
        share = cells.number(used, row)
        if share is not None:
            reasons[cells.column(name, row), share] = cells.column(why, row)
    return reasons


def _fleet(cells: Cells, skus: Sequence[str], sites: Sequence[str]) -> tuple[Cohort, ...]:
    cohorts = []
    for row, area, v in cells.table(tables.fleet()):
        good = _exists(cells, area, row, str(v["sku"]), "SKU", skus)
        if _exists(cells, area, row, str(v["site"]), "site", sites, 1) and good:
            cohorts.append(Cohort(**v))  # type: ignore[arg-type]  # the table's rules are those of the class
    return tuple(cohorts)


def _runs(
    cells: Cells, sites: Mapping[str, tuple[int, Area, Site]], workloads: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Workload to the sites it is restricted to; empty if all its cells are."""
    area = cells.area("site_runs", "where workloads may run")
    if area is None:
        return {}
    bounds = {}
    rule = Column("runs", message("may run there"), tables.RUNS)
    for col in range(area.col, area.last_col + 1):
        head = cells.column(Area(area.sheet, area.row, col, area.row, col), area.row - 1).split("\n")[0]
        if not _exists(
            cells, Area(area.sheet, area.row, col, area.row, col), area.row - 1, head, "workload", workloads
        ):
            continue
        values = {name: cells.value(area, row, col, rule) for name, (row, _, _) in sites.items()}
        bounds[head] = frozenset(name for name, value in values.items() if value == YES)
        if not bounds[head] and any(values.values()):
            sentence = f"{head} may run nowhere: write {YES} at one site, or empty the column for anywhere"
            cells.fault(area.sheet, area.cell(area.row, col), sentence)
    missing = [w for w in workloads if w not in bounds]
    if missing:
        cells.fault(area.sheet, area.cell(area.row), f"there is no column for {', '.join(missing)}")
    return bounds


def _matrix(
    cells: Cells, column: Column, workloads: Sequence[str], periods: Sequence[str]
) -> dict[str, tuple[float, ...]]:
    """Workload to its figure in every period."""
    area = cells.area(column.name, str(column.title))
    of = cells.area(f"{column.name}_of", f"the workloads of {column.title}")
    if area is None or of is None:
        return {}
    if area.last_col - area.col + 1 != len(periods):
        sentence = f"{column.title} has {area.last_col - area.col + 1} periods, the table of periods {len(periods)}"
        cells.fault(area.sheet, area.cell(area.row), sentence)
        return {}
    rows = {}
    for row in _rows(area):
        name = cells.column(of, row)
        if not name and all(cells.empty(area, row, col) for col in range(area.col, area.last_col + 1)):
            continue  # an empty row that was inserted
        if _exists(cells, of, row, name, "workload", workloads):
            values = [cells.value(area, row, col, column) for col in range(area.col, area.last_col + 1)]
            rows[name] = tuple(math.nan if v is None else _float(v) for v in values)
    for name in workloads:
        if name not in rows:
            sentence = (
                f"there is no row for {name}; workloads cannot be added here, they belong in the file of the question"
            )
            cells.fault(area.sheet, area.cell(area.row), f"{column.title}: {sentence}")
    return rows


def _source(cells: Cells) -> dict[str, str]:
    """The provenance of the question behind the workbook."""
    area = cells.area("question_source", "where the question is from")
    if area is None:
        return {}
    source = {}
    for row in range(area.row + 1, area.last_row + 1):
        name = cells.column(area, row)
        if name:
            source[name] = cells.column(Area(area.sheet, row, area.col + 1, row, area.col + 1), row)
    return source
