"""Build the tabs of hosts in a comparison's workbook: measurements, logarithms of hosts, and their figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.base.words import word
from fleetmark.reports.comparison.workbook.grid import FIRST_COLUMN, Grid, cells, figure
from fleetmark.reports.comparison.workbook.sources import LIVE, Middle, Sources
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, LazyRows, Row, Tabular, quantity
from fleetmark.reports.kit.workbook import LOG, MOST_FORMULA
from fleetmark.workloads.declared import counted, in_bits, in_percent

MOST_SHOWN = 50_000  # maximum figures of hosts shown as values besides their logarithms
MOST_PARTS = 200  # maximum means in one formula; Excel allows 255 arguments
RAW, LOGS, FIGURES = "raw", "logs", "figures"  # keys of tables
_BEFORE: Mapping[str, Message] = {
    "side": message("side"),
    "title": message("benchmark"),
    "campaign": message("campaign"),
    "machine": message("host"),
    "workload": message("workload"),
    "case": message("case"),
    "metric": message("metric"),
    "subject": message("subject"),
    "labels": message("labels"),
}
_REPEAT, _VALUE, _UNIT, _AMOUNT, _LOG = range(len(_BEFORE), len(_BEFORE) + 5)  # columns of the tab Raw
_AFTER: Mapping[str, Message] = {
    "better": message("direction"),
    "standing": message("standing"),
    "tool_version": message("tool version"),
    "time": message("time"),
    "raw": message("raw file"),
}


def raw(sources: Sources, per: str, folder: str) -> Tabular:
    """Return every measurement behind a mean, with its logarithm; no rows if there are too many for formulas."""
    columns = (
        *(Column(name, title) for name, title in _BEFORE.items()),
        Column("repeat", message("repeat"), "number", unit=message("from 0"), has_interval=False),
        Column("value", message("value"), "number", unit=message("base unit"), form="0.000000E+00", has_interval=False),
        Column("unit", message("unit")),
        Column("amount", message("divided by"), "number", unit=word(per), has_interval=False),
        Column("log", "ln", "number", unit=message("of value / amount"), form=LOG, has_interval=False),
        *(Column(name, title) for name, title in _AFTER.items()),
    )
    notes = (_RAW if sources.is_listed else _no_rows(sources, folder),)
    rows = tuple(_measurements(sources)) if sources.is_listed else ()
    return Tabular(RAW, message("Measurements behind the means"), columns, rows, notes=notes)


def _measurements(sources: Sources) -> Iterator[Row]:
    texts: dict[str, Cell] = {}  # equal texts share one cell

    def text(value: object) -> Cell:
        shown = fmt.clean(value)
        return texts.setdefault(shown, Cell(shown))

    names = (*_BEFORE, "repeat", "value", "unit", "amount", "log", "per", *_AFTER)
    for values in zip(*(sources.rows[name].tolist() for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        yield (
            *(text(row[name]) for name in _BEFORE),
            Cell(str(row["repeat"]), row["repeat"]),
            figure(row["value"]),
            text(row["unit"]),
            figure(row["amount"]),
            figure(row["log"] - row["per"], "=LN({value})-LN({amount})"),
            *(text(row[name]) for name in _AFTER),
        )


def _no_rows(sources: Sources, folder: str) -> Message:
    if not sources.count:
        return message("No measurements are recorded for these sides.")
    return message(
        "{n} measurements are too many for formulas over each (at most {most}): the means are values. "
        "Every measurement is in the file measurements.parquet of its campaign, below {path}.",
        n=f"{sources.count:,}",
        most=f"{LIVE:,}",
        path=folder,
    )


def logs(grid: Grid, sources: Sources) -> Tabular:
    """Return the mean of each host's logarithms, as formulas over the measurements if these are listed."""
    lower = _lower(grid)

    def rows() -> Iterator[Row]:
        for title in grid.titles:
            by_side = {side: sources.centres.get((side, title), {}) for side in grid.frames}
            yield (
                *grid.names(title),
                *(
                    Cell() if value is None else figure(value, _mean(by_side[side], host, title in lower))
                    for side, host, value in grid.values(title)
                ),
            )

    title = message("Logarithms of the hosts' figures; higher is better")
    notes = (_LOGS if sources.is_listed else _LOGS_AS_VALUES,)
    return Tabular(LOGS, title, grid.columns(LOG), LazyRows(rows, len(grid.titles)), notes=notes)


def figures(grid: Grid) -> Tabular:
    """Return the geometric mean of each host in base units; the number format scales it."""
    title = message("Geometric mean of each host")
    size = sum(frame.size for frame in grid.frames.values())
    if size > MOST_SHOWN:
        note = message("{n} figures are too many for this table: the tab Host logs has them.", n=f"{size:,}")
        return Tabular(FIGURES, title, grid.columns("")[:FIRST_COLUMN], (), notes=(note,))
    lower = _lower(grid)

    def rows() -> Iterator[Row]:
        for row, benchmark in enumerate(grid.titles):
            sign = -1.0 if benchmark in lower else 1.0
            facts = grid.comparison.benchmarks.loc[benchmark]
            names, unit = (str(facts["workload"]), str(facts["metric"])), str(facts["unit"])
            percent, counted_unit, bits = in_percent(*names), counted(*names), in_bits(*names)
            values = [None if log is None else math.exp(sign * log) for *_, log in grid.values(benchmark)]
            shown = (
                quantity(value, unit, bits=bits, percent=percent, counted=counted_unit, digits=4) for value in values
            )
            minus, factor = "-" if sign < 0 else "", "8*" if bits and unit == "B/s" else ""
            class_, title_of_row, base_unit, better = grid.names(benchmark)
            yield (
                *(class_, title_of_row, Cell("bit/s") if factor else base_unit, better),
                *(
                    replace(cell, formula=f"={factor}EXP({minus}{cells(LOGS, (row, column))})") if cell.text else cell
                    for column, cell in enumerate(shown, FIRST_COLUMN)
                ),
            )

    notes = (message("Figures keep their base unit, network rates bit/s; formats scale them."),)
    return Tabular(FIGURES, title, grid.columns(""), LazyRows(rows, len(grid.titles)), notes=notes)


def _lower(grid: Grid) -> set[str]:
    facts = grid.comparison.benchmarks
    return set(facts.index[facts["better"] == Better.LOWER])


def _mean(centres: Mapping[str, Sequence[Middle]], host: str, is_lower: bool) -> str:
    """Return a formula such as ``=-AVERAGE(Raw!…)``, or an empty string if it is too long.

    The result is the mean of several centres, or the best of several hosts if the side counts as one host.
    """
    hosts = [centres[host]] if host in centres else list(centres.values())
    if not hosts or max(len(hosts), *map(len, hosts), *(len(m.parts) for ms in hosts for m in ms)) > MOST_PARTS:
        return ""
    means = []
    for middles in hosts:
        shown = [_centre(middle) for middle in middles]
        mean = shown[0] if len(shown) == 1 else f"AVERAGE({','.join(shown)})"
        means.append(f"-({mean})" if is_lower else mean)
    formula = f"={means[0]}" if len(means) == 1 else f"=MAX({','.join(means)})"
    return formula if len(formula) <= MOST_FORMULA - 100 else ""


def _centre(middle: Middle) -> str:
    """Return the logarithm of a centre: the mean of logarithms, or the logarithm of the median."""
    if not middle.is_median:
        means = [f"AVERAGE({_part(part, _LOG)})" for part in middle.parts]
        return means[0] if len(means) == 1 else f"AVERAGE({','.join(means)})"
    medians = [f"MEDIAN({_part(part, _VALUE)})" for part in middle.parts]
    median = medians[0] if len(medians) == 1 else f"MEDIAN({','.join(medians)})"
    return f"LN({median})-LN({cells(RAW, (middle.parts[0][0], _AMOUNT))})"


def _part(part: tuple[int, int], column: int) -> str:
    return cells(RAW, (part[0], column), (part[1], column))


_RAW = message(
    "Measurements that are in a mean. Filter rows as you like, but do not sort: the tab Host logs refers to them."
)
_LOGS = message("Live from the tab Raw. Grey cells are values without a formula.")
_LOGS_AS_VALUES = message("Values instead of formulas, because there are too many measurements.")
