"""Define how several values of a figure are averaged, and which interval is shown, as data that SQL can join."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from fleetmark.planner.estimate import CONFIDENCE, deviate

if TYPE_CHECKING:
    import pandas as pd


class Interval(StrEnum):
    """The meaning of ``lo`` and ``hi`` around a centre."""

    ORDER = "order"  # interval of a median: order statistics, coverage at least 95%
    STUDENT = "student"  # interval of a mean or geometric mean: Student's t at 95%
    RANGE = "range"  # smallest to largest: too few values for an interval
    NONE = "none"  # a single value: its spread is unknown


LEAST = 6  # minimum number of values for an interval; with fewer, the range is shown


@lru_cache(maxsize=4096)
def order_interval(n: int, confidence: float = CONFIDENCE) -> tuple[int, int, float] | None:
    """Return the ranks (from 1) of a median's narrowest symmetric order-statistic interval, and its coverage.

    ``n`` is the number of values. Return None if no pair of ranks covers ``confidence`` (n < 6 for 95%). The coverage
    is the exact binomial one, which assumes no distribution (Hahn & Meeker, Statistical Intervals, 1991, section 5.2).
    """
    total, tail, rank = 1 << n, 0, 0
    term = 1  # C(n, rank)
    while rank < n // 2 and 1 - 2 * (tail + term) / total >= confidence:
        tail += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return (rank, n + 1 - rank, 1 - 2 * tail / total) if rank else None


def ends(sizes: Iterable[int]) -> pd.DataFrame:
    """Return one row per number of values ``n``.

    ``lo_rank`` and ``hi_rank`` give the interval of the median, or the range below LEAST values. ``half`` is the
    half-width of a mean's interval, in standard deviations of one value.
    """
    import pandas as pd  # imported lazily: a campaign needs the ranks above but no data frames

    rows = []
    for n in sorted(set(sizes)):
        low, high, _ = order_interval(n) or (1, n, math.nan)
        half = deviate(CONFIDENCE, n - 1) / math.sqrt(n) if n >= LEAST else math.nan
        rows.append((n, low, high, half))
    return pd.DataFrame(rows, columns=["n", "lo_rank", "hi_rank", "half"])
