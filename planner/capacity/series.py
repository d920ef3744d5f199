"""Handle figures that are constant, or that have one value per period."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

Series = float | tuple[float, ...]
"""One figure for all periods, or a tuple with one per period."""


@overload
def in_period(series: Series, period: int) -> float: ...
@overload
def in_period(series: Series | None, period: int) -> float | None: ...
def in_period(series: Series | None, period: int) -> float | None:
    """Return the figure in that period, or None if the series is None."""
    return series[period] if isinstance(series, tuple) else series


def each(series: Series, change: Callable[[float], float]) -> Series:
    """Return the series with a function applied to every figure."""
    return tuple(map(change, series)) if isinstance(series, tuple) else change(series)


def figures(series: Series) -> tuple[float, ...]:
    """Return the figures of all periods, or the constant as the only figure."""
    return series if isinstance(series, tuple) else (series,)
