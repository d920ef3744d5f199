"""What hosts were like while they measured, as the page's table has it: columns in one unit each, only those known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, message
from reports.campaign.conditions import Condition
from reports.kit import format as fmt


@dataclass(frozen=True, slots=True)
class Column:
    """A quantity over all rows: its heading, the unit shown, and what one of that is in ``base``."""

    title: str
    unit: str
    factor: float
    base: str


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """``rows`` are (what the row is of, a text for each column and its value in the base unit; None where unknown)."""

    columns: Sequence[Column]
    rows: Sequence[tuple[Condition, Sequence[tuple[str, float] | None]]]


# A field of Condition, its heading, its base unit.
_TOLD: tuple[tuple[str, Message, str], ...] = (
    ("clock_hz", message("mean clock, median run"), "Hz"),
    ("lowest_clock_hz", message("lowest clock"), "Hz"),
    ("hottest_c", message("hottest CPU sensor"), "degC"),
    ("power_w", message("mean power, median run"), "W"),
    ("steal", message("stolen share of the machine, worst sample"), "1"),
    ("foreign_cores", message("cores others kept busy, worst run"), "1"),
    ("gpu_clock_hz", message("accelerators: mean clock, median run"), "Hz"),
    ("gpu_lowest_clock_hz", message("accelerators: lowest clock"), "Hz"),
    ("gpu_hottest_c", message("hottest accelerator"), "degC"),
    ("gpu_power_w", message("accelerators: mean power, median run"), "W"),
    ("gpu_slowed", message("accelerators: share of samples slowed down by power or heat, median run"), "1"),
)


def meanwhile(conditions: Sequence[Condition]) -> Meanwhile | None:
    """The table; None where nothing is known of any run."""
    known = [t for t in _TOLD if any(getattr(c, t[0]) is not None for c in conditions)]
    if not known:
        return None
    shown = [
        fmt.fit(((v, math.nan, math.nan) for c in conditions if (v := getattr(c, name)) is not None), unit)
        for name, _, unit in known
    ]
    columns = [Column(title, s.unit, 1 / s.factor, unit) for s, (_, title, unit) in zip(shown, known, strict=True)]
    rows = [(c, [_cell(getattr(c, name), s) for (name, _, _), s in zip(known, shown, strict=True)]) for c in conditions]
    return Meanwhile(columns, rows)


def _cell(value: float | None, shown: fmt.Shown) -> tuple[str, float] | None:
    return None if value is None else (shown.number(value), value)
