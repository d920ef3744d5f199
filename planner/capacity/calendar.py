"""Name the years of a question's periods."""

from __future__ import annotations

from collections.abc import Sequence

NEAR = 1e-9


def is_calendar(periods: Sequence[str]) -> bool:
    """Return whether the names of all periods begin with a calendar year."""
    return all(len(name[:4]) == 4 and name[:4].isdigit() and name[:4].isascii() for name in periods)


def years(periods: Sequence[str], length: float) -> list[str]:
    """Return the year of each period of ``length`` years: that of the calendar, or a number from 1 on."""
    if is_calendar(periods):
        return [name[:4] for name in periods]
    return [f"year {int(n * length + NEAR) + 1}" for n in range(len(periods))]
