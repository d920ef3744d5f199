"""Convert planning periods (quarters, months, halves and years by name) and durations in periods."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

LENGTHS = {"year": 1.0, "half": 0.5, "quarter": 0.25, "month": 1 / 12}  # length in years
_NAMES = {
    "quarter": re.compile(r"(\d{4})-?Q([1-4])"),
    "half": re.compile(r"(\d{4})-?H([12])"),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])"),
    "year": re.compile(r"(\d{4})"),
}
_HOW = "write 2027-Q1 (quarter), 2027-H1 (half), 2027-01 (month) or 2027 (year)"
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", re.IGNORECASE)
_NEAR = 1e-9  # tolerance of a duration for rounding, in periods
_YEARS = {**LENGTHS, "week": 7 / 365.25, "day": 1 / 365.25}
MOST = 240


@dataclass(frozen=True, slots=True)
class Place:
    """A period of the calendar: the name of its ``length``, and its ``number`` since the year 0."""

    length: str
    number: int

    @property
    def name(self) -> str:
        """Return the name of the period, such as ``2027-Q1``."""
        a_year = round(1 / LENGTHS[self.length])
        year, part = divmod(self.number, a_year)
        return {
            "quarter": f"{year:04}-Q{part + 1}",
            "half": f"{year:04}-H{part + 1}",
            "month": f"{year:04}-{part + 1:02}",
            "year": f"{year:04}",
        }[self.length]


def place(name: str) -> Place | None:
    """Return the period with this calendar name, or None for other names."""
    for length, pattern in _NAMES.items():
        if match := pattern.fullmatch(name):
            part = int(match[2]) - 1 if length != "year" else 0
            return Place(length, int(match[1]) * round(1 / LENGTHS[length]) + part)
    return None


def sequence(start: str, count: int, length: str | None = None) -> tuple[list[str], float]:
    """Return ``count`` names starting at ``start``, and the length of each period in years.

    Raise ValueError for an invalid name.
    """
    first = place(start)
    if first is None:
        raise ValueError(f"{start!r} is not a period: {_HOW}")
    if length and first.length != length:
        raise ValueError(f"{start!r} is a {first.length}, not a {length}: {_HOW}")
    return [Place(first.length, first.number + n).name for n in range(count)], LENGTHS[first.length]


def in_order(names: Sequence[str], length: str | None = None) -> float:
    """Return the length in years of the named periods.

    Names that are not in the calendar (``launch``, ``year 2``) need a ``length``, which applies to all of them. Raise
    ValueError if a name is out of order or repeated.
    """
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise ValueError(f"period {twice} is there twice")
    places = [place(n) for n in names]
    calendar = [p for p in places if p]
    if len(calendar) < len(names):
        odd = next(n for n, p in zip(names, places, strict=True) if p is None)
        if length is None:
            raise ValueError(f"{odd!r} is not a period: {_HOW}, or give the length of all: length: quarter")
        return LENGTHS[length]
    length_of_first = calendar[0].length
    if length not in (None, length_of_first):
        raise ValueError(f"{names[0]!r} is a {length_of_first}, not a {length}")
    for n, (one, two) in enumerate(itertools.pairwise(calendar)):
        a, b = names[n], names[n + 1]
        if two.length != length_of_first:
            raise ValueError(f"{b} is a {two.length}, {a} a {length_of_first}: all periods are of one length")
        if two.number != one.number + 1:
            expected = Place(length_of_first, one.number + 1).name
            raise ValueError(f"{b} is out of order: {expected} comes after {a}")
    return LENGTHS[length_of_first]


def duration(value: object) -> tuple[float, str]:
    """Return ``2 quarters`` as (2, "quarter"), and ``3`` as (3, "period"). Raise ValueError for any other text."""
    advice = "write 2 (periods), 2 quarters, 6 months, 10 weeks or 5 years"
    if isinstance(value, int | float) and not isinstance(value, bool):
        amount, unit = float(value), "period"
    else:
        match = _DURATION.fullmatch(str(value))
        unit = match[2].lower() if match else ""
        unit = "half" if unit in ("halve", "half-year") else unit
        if not match or unit not in (*_YEARS, "period"):
            raise ValueError(f"{value!r} is not a duration: {advice}")
        amount = float(match[1])
    if not 0 <= amount < 1e4:
        raise ValueError(f"{value!r} is not a duration: {advice}")
    return amount, unit


def in_fractions(span: tuple[float, str], years: float) -> float:
    """Return a duration as a number of periods of ``years`` each, which may be a fraction."""
    amount, unit = span
    return amount if unit == "period" else amount * _YEARS[unit] / years


def in_periods(span: tuple[float, str], years: float, *, up: bool) -> int:
    """Return a duration as a number of periods of ``years`` each, rounded ``up`` or down."""
    periods = in_fractions(span, years)
    return math.ceil(periods - _NEAR) if up else math.floor(periods + _NEAR)
