"""Create cells, columns and references of the plan's workbook. Columns of periods have the keys ``p0``, ``p1``, ...."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from fleetmark.base.text import Message, message
from fleetmark.demand.columns import Column as InputColumn
from fleetmark.reports.kit.tabular import Cell, Column, LazyRows, Row, Tabular
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers

COUNT, SHARE, MONEY = "#,##0;-#,##0;–", "0.0%;-0.0%;–", "#,##0;-#,##0;0"

SPARE = 5  # empty rows below a table of inputs, for new entries

Key = str | int  # key of a column; a number is a period


def _key(key: Key) -> str:
    return f"p{key}" if isinstance(key, int) else key


def ref(table: str, key: Key, row: int = 0) -> str:
    """Return the reference of a cell."""
    return f"[{table}!{_key(key)}!{row}]"


def down(table: str, key: Key, first: int | None = None, last: int | None = None) -> str:
    """Return the reference of a column, or of some of its rows (first and last included)."""
    if first is None or last is None:
        return f"[{table}!{_key(key)}]"
    return f"[{table}!{_key(key)}!{first}:{_key(key)}!{last}]"


def across(table: str, row: int, last: int, first: int = 0) -> str:
    """Return the reference of the periods from ``first`` to ``last`` in a row."""
    return f"[{table}!p{first}!{row}:p{last}!{row}]"


def live(formula: str, value: Any, form: str = "", **more: Any) -> Cell:
    """Return a cell with a formula (without =), and its value: a number, a word, or None for an empty text."""
    if value is None or isinstance(value, str):
        return Cell(value or "", formula=f"={formula}", form=form, **more)
    return Cell("", value if isinstance(value, bool) else float(value), formula=f"={formula}", form=form, **more)


def decided(value: float) -> Cell:
    """Return a cell with a decision of the solver."""
    return Cell("", float(value), is_decided=True)


def plain(value: float | None) -> Cell:
    """Return a cell with a number that is neither an input nor computed."""
    return Cell() if value is None else Cell("", float(value))


def numbers(key: str, title: str, form: str = "", **more: Any) -> Column:
    """Return a column of numbers."""
    return Column(key, title, "number", form=form, has_interval=False, **more)


def names(**titles: Message | str) -> tuple[Column, ...]:
    """Return the columns that name a row, by key."""
    return tuple(Column(key, title, "name") for key, title in titles.items())


def periods(n: Numbers, form: str = "", key: str = "p", **more: Any) -> tuple[Column, ...]:
    """Return a column per period."""
    return tuple(numbers(f"{key}{t}", str(name), form, width=11, **more) for t, name in enumerate(n.question.periods))


def grid(
    key: str,
    title: str,
    columns: Sequence[Column],
    size: int | Callable[[], int],
    row: Callable[[int], Iterable[Cell]],
    **more: Any,
) -> Tabular:
    """Return a table of ``size`` rows, which are created when they are read."""

    def rows() -> list[Row]:
        return [tuple(row(i)) for i in range(len(lazy))]

    lazy = LazyRows(rows, size)
    return Tabular(key, title, tuple(columns), lazy, **more)


def by_period(
    n: Numbers,
    key: str,
    title: str,
    labels: Sequence[Column],
    labelled: Sequence[Sequence[Cell]],
    cell: Callable[[int, int], Cell],
    form: str = "",
    *,
    last: Sequence[tuple[Column, Callable[[int], Cell]]] = (),
    **more: Any,
) -> Tabular:
    """Return a table with a row per entry of ``labelled`` and a column per period. ``last``: columns to their right."""
    columns = (*labels, *periods(n, form), *(column for column, _ in last))

    def row(i: int) -> Sequence[Cell]:
        cells = map(partial(cell, i), range(n.periods))
        return (*labelled[i], *cells, *(make(i) for _, make in last))

    return grid(key, title, columns, len(labelled), row, **more)


def total(values: Floats, form: str = MONEY, **more: Any) -> tuple[Column, Callable[[int], Cell]]:
    """Return a column with the sum of each row. ``values``: the values of the row's periods."""

    def cell(i: int) -> Cell:
        return live(f"SUM({{p0}}:{{p{len(values[i]) - 1}}})", values[i].sum(), **more)

    return numbers("total", message("total"), form, width=14), cell


def entry(column: InputColumn, value: object, choices: str = "") -> Cell:
    """Return an input cell. ``choices``: the named range whose values are suggested."""
    rule = column.rule
    given = value is not None and value != ""
    if rule.text:
        return Cell(str(value) if given else "", is_input=True, choices=choices or rule.words)
    least = math.nextafter(rule.minimum, math.inf) if rule.above else rule.minimum
    number = float(str(value)) if given else None
    return Cell("", number, is_input=True, limits=(least, rule.maximum), hint=rule.hint, form=column.form)
