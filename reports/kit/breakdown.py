"""Represent the evidence for the figures of a document: hosts, repeats, files and commands, shown on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.reports.kit.format import Shown

Figures = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The figures behind a cell: a value for each member of the breakdown, NaN if missing.

    ``shown``: the format of the figures, whose base unit is ``unit``. ``lo``, ``hi``: the bounds of each spread. ``n``:
    the number of values behind each figure.
    """

    title: str
    shown: Shown
    unit: str
    values: Figures
    lo: Figures
    hi: Figures
    n: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The repeats behind the figure of one member.

    ``name``: the member. ``side``: its group. ``value``: its figure. ``repeats``: the values behind it. ``files``: the
    source of each repeat: a path below the document's folder, or another place.
    """

    name: str
    side: str
    value: float
    repeats: tuple[float, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The evidence behind a figure: the repeats of all members and, for each side, the ``commands`` behind them.

    ``shown``: the format of the figures, whose base unit is ``unit``.
    """

    title: str
    shown: Shown
    unit: str
    members: tuple[Measured, ...]
    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The entries of a document, to which ``Cell.entry`` refers by number.

    ``members``: names, such as hosts. ``sides``: the group of each member, as a position in ``groups``. ``entries`` may
    be computed when they are read. ``has_spread``: whether a page has room for the ends of the spreads.
    """

    members: tuple[str, ...]
    sides: tuple[int, ...]
    groups: tuple[str, ...]
    entries: Iterable[Entry]
    has_spread: bool = True
