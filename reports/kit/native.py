"""Describe charts that a workbook draws from its cells."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """A chart that a workbook draws below the table with the key ``table``.

    ``category``, ``values``: keys of columns. ``rows``: the number of rows that it shows. ``ends``: the columns with
    the lengths of the error bars below and above the only value. ``axis``: the title of the value axis. ``colours``: a
    colour for each of ``values``. ``series``: series of any cells instead of all the above; ``category`` is then a
    range, as in formulas. ``form``: the number format of the value axis.

    A ``scatter`` chart has two logarithmic axes: ``category`` (titled ``category_axis``) and the only value. Its
    ``groups`` are series of consecutive rows: their names, numbers of rows and colours.
    """

    kind: Literal["column", "bar", "scatter"] = "column"
    table: str = ""
    category: str = ""
    values: tuple[str, ...] = ()
    rows: int = 0
    ends: tuple[str, str] | None = None
    axis: str = ""
    colours: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()
    form: str = "0.0"
    category_axis: str = ""
    groups: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a native chart.

    ``values``: its cells, as in formulas. ``colour``: empty for an invisible series that only raises the series above
    it. Areas and columns are stacked.
    """

    name: str
    values: str
    kind: Literal["area", "column", "line"]
    colour: str = ""
    dash: str = "solid"
    _: KW_ONLY
    transparency: int = 0
