"""What is behind the figures of a document: hosts, repeats, files and commands, which a page shows on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.reports.kit.format import Shown

Figures = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The figures behind a cell: a value for each member of the breakdown, NaN for a missing one.

    ``shown``: how they are written, in base ``unit``. ``lo``, ``hi``: the ends of each spread. ``n``: the number of
    values behind each figure.
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

    ``name``: the member. ``side``: its group. ``value``: its figure. ``repeats``: the values behind it. ``files``:
    where each was read from: a path below the document's folder, or another place.
    """

    name: str
    side: str
    value: float
    repeats: tuple[float, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a figure rests on: the repeats of all members, and for each side the ``commands`` that measured them.

    ``shown``: how the figures are written, in base ``unit``.
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
