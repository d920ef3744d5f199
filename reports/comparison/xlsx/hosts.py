"""Hosts in a comparison's workbook: their logs, made of the raw measurements; their figures; and what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.base.words import word
from reports.comparison.xlsx.grid import FIRST_COLUMN, FIRST_ROW, Grid, form_of
from reports.comparison.xlsx.sources import Middle, Sources
from reports.kit.workbook import INTEGER, LOG, MOST_FORMULA, Head, Sheet, cell

MOST_SHOWN = 50_000  # figures of hosts that are shown as such and not only as logarithms
MOST_PARTS = 200  # means in one formula; Excel takes 255
# Columns of the tab Raw: head, unit, column of the measurements.
_RAW = (
    ("side", "", "side"),
    ("benchmark", "", "title"),
    ("campaign", "", "campaign"),
    ("host", "", "machine"),
    ("workload", "", "workload"),
    ("case", "", "case"),
    ("metric", "", "metric"),
    ("subject", "", "subject"),
    ("labels", "", "labels"),
)
_REPEAT, _VALUE, _UNIT, _AMOUNT, _LOG = range(len(_RAW), len(_RAW) + 5)
_REST = (
    ("direction", "better"),
    ("standing", "standing"),
    ("tool", "tool_version"),
    ("time", "time"),
    ("raw file", "raw"),
)


def raw(sheet: Sheet, sources: Sources, per: str) -> None:
    """Every measurement that a mean is made of, with its logarithm."""
    heads = [Head(_head(name), unit) for name, unit, _ in _RAW]
    heads += [
        Head(message("repeat"), message("from 0"), 9),
        Head(message("value"), message("base unit"), 16),
        Head(message("unit")),
    ]
    heads += [Head(message("divided by"), word(per), 11), Head("ln", message("of value / amount"), 12)]
    heads += [Head(_head(name)) for name, _ in _REST]
    columns = {name: sources.rows[name].tolist() for name in {*(c for *_, c in _RAW), *(c for _, c in _REST)}}
    numbers = {name: sources.rows[name].tolist() for name in ("repeat", "value", "unit", "amount", "log", "per")}
    for n in range(len(sources.rows)):
        row = FIRST_ROW + n
        for column, (_, _, name) in enumerate(_RAW):
            sheet.text(row, column, columns[name][n])
        sheet.number(row, _REPEAT, numbers["repeat"][n], INTEGER)
        sheet.number(row, _VALUE, numbers["value"][n], "0.000000E+00")
        sheet.text(row, _UNIT, numbers["unit"][n])
        sheet.number(row, _AMOUNT, numbers["amount"][n])
        value, amount = cell(row, _VALUE), cell(row, _AMOUNT)
        sheet.formula(row, _LOG, f"=LN({value})-LN({amount})", numbers["log"][n] - numbers["per"][n], LOG)
        for column, (_, name) in enumerate(_REST, _LOG + 1):
            sheet.text(row, column, columns[name][n])
    sheet.heads(FIRST_ROW - 1, heads)
    sheet.filtered(FIRST_ROW - 1, FIRST_ROW + len(sources.rows) - 1, len(heads), frozen_columns=2)


def _head(name: str) -> str:
    return {
        "side": message("side"),
        "benchmark": message("benchmark"),
        "campaign": message("campaign"),
        "host": message("host"),
        "workload": message("workload"),
        "case": message("case"),
        "metric": message("metric"),
        "subject": message("subject"),
        "labels": message("labels"),
        "direction": message("direction"),
        "standing": message("standing"),
        "tool": message("tool version"),
        "time": message("time"),
        "raw file": message("raw file"),
    }[name]


def logs(grid: Grid, sheet: Sheet, sources: Sources, raw_sheet: Sheet | None) -> None:
    """A row per benchmark, a column per host: the mean of its logs, higher is better; live where Raw has the rows."""
    lower = set(grid.comparison.benchmarks.index[grid.comparison.benchmarks["better"] == Better.LOWER])
    for title in grid.titles:
        row = grid.row(title)
        _about(grid, sheet, row, title)
        for side, frame in grid.frames.items():
            centres = sources.centres.get((side, title), {})
            for column, (host, value) in enumerate(frame[title].items(), grid.first[side]):
                if math.isnan(value):
                    continue
                formula = raw_sheet and _mean(raw_sheet, centres, str(host), title in lower)
                if formula:
                    sheet.formula(row, column, formula, value, LOG)
                else:
                    sheet.number(row, column, value, LOG, "value")
    _finish(grid, sheet)


def figures(grid: Grid, sheet: Sheet, logs_sheet: Sheet) -> None:
    """The same as figures that people read: geometric means in base units, scaled by their format."""
    many = sum(frame.size for frame in grid.frames.values())
    top = message("Geometric mean of each host")
    if many > MOST_SHOWN:
        shown = message("{n} figures are too many to stand here too: the tab Host logs has them.", n=f"{many:,}")
        sheet.top(top, shown)
        return
    sheet.top(top, message("Figures keep their base unit; formats scale them."))
    lower = set(grid.comparison.benchmarks.index[grid.comparison.benchmarks["better"] == Better.LOWER])
    for title in grid.titles:
        row = grid.row(title)
        _about(grid, sheet, row, title)
        sign = -1.0 if title in lower else 1.0
        values = {side: frame[title] for side, frame in grid.frames.items()}
        every = [math.exp(sign * v) for of in values.values() for v in of if not math.isnan(v)]
        form = form_of(grid.comparison, title, every)
        for side, of in values.items():
            for column, value in enumerate(of, grid.first[side]):
                if not math.isnan(value):
                    formula = f"=EXP({'-' if sign < 0 else ''}{logs_sheet.at(row, column)})"
                    sheet.formula(row, column, formula, math.exp(sign * value), form)
    _finish(grid, sheet)


def _about(grid: Grid, sheet: Sheet, row: int, title: str) -> None:
    about = grid.comparison.benchmarks.loc[title]
    sheet.text(row, 0, about["class"])
    sheet.text(row, 1, title, "strong")
    sheet.text(row, 2, about["unit"])
    sheet.text(row, 3, word(str(about["better"])))


def _finish(grid: Grid, sheet: Sheet) -> None:
    heads = [
        Head(message("class"), "", 14),
        Head(message("benchmark")),
        Head(message("unit"), "", 9),
        Head(message("direction"), "", 10),
    ]
    heads += [Head(host, side, 14) for side, frame in grid.frames.items() for host in frame.index]
    sheet.heads(FIRST_ROW - 1, heads)
    sheet.filtered(FIRST_ROW - 1, FIRST_ROW + len(grid.titles) - 1, grid.columns, frozen_columns=FIRST_COLUMN)


def _mean(sheet: Sheet, centres: Mapping[str, Sequence[Middle]], host: str, lower: bool) -> str | None:
    """``=-AVERAGE(Raw!…)``, the mean of several centres, or the best of several hosts; None where it is too long."""
    hosts = [centres[host]] if host in centres else list(centres.values())  # the side may be one host, the best of all
    if not hosts or max(len(hosts), *map(len, hosts), *(len(m.parts) for of in hosts for m in of)) > MOST_PARTS:
        return None
    means = []
    for of in hosts:
        logs = [_centre(sheet, m) for m in of]
        mean = logs[0] if len(logs) == 1 else f"AVERAGE({','.join(logs)})"
        means.append(f"-({mean})" if lower else mean)
    formula = f"={means[0]}" if len(means) == 1 else f"=MAX({','.join(means)})"
    return formula if len(formula) <= MOST_FORMULA else None


def _centre(sheet: Sheet, middle: Middle) -> str:
    """The logarithm of a centre: the mean of the logarithms, or that of the median of the values."""
    if not middle.median:
        means = [f"AVERAGE({_cells(sheet, part, _LOG)})" for part in middle.parts]
        return means[0] if len(means) == 1 else f"AVERAGE({','.join(means)})"
    medians = [f"MEDIAN({_cells(sheet, part, _VALUE)})" for part in middle.parts]
    median = medians[0] if len(medians) == 1 else f"MEDIAN({','.join(medians)})"
    first = middle.parts[0][0]
    return f"LN({median})-LN({_cells(sheet, (first, first), _AMOUNT)})"


def _cells(sheet: Sheet, part: tuple[int, int], column: int) -> str:
    return sheet.span(FIRST_ROW + part[0], column, FIRST_ROW + part[1], column)
