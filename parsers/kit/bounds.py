"""Define physically possible values by unit. A figure outside these bounds comes from damaged output or a faulty tool.

The bounds are deliberately wide: they detect figures that are wrong by powers of ten, and do not evaluate hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fleetmark.base.measurement import Measurement, Parsed

BOUNDS: Mapping[str, tuple[float, float]] = {
    "B/s": (0.0, 1e18),  # the memory of the largest machines reaches 1e17; 0 means that all data was lost
    "1/s": (0.0, 1e15),  # a hundred thousand hosts with 1e10 operations each
    "FLOP/s": (0.0, 1e21),  # the fastest machines reach 1e19 in their lowest precision
    "s": (1e-12, 1e9),  # from 1 ps, in which light travels 0.3 mm, to 30 years; no event takes 0 s
    "B": (0.0, 1e18),  # the largest file systems
    "Hz": (1.0, 1e13),  # higher frequencies are those of light
    "W": (0.0, 1e9),  # the output of a power station
    "J": (0.0, 1e16),  # a power station's energy in four months
    "degC": (-100.0, 300.0),  # no chip works outside these limits
    "1": (0.0, 1e20),  # fractions, ratios, scores, counts and 64-bit seeds, which are never negative
}


def bounded(parsed: Parsed) -> Parsed:
    """Return ``parsed``, marked ``invalid`` if a figure is outside its bounds. All figures are kept."""
    absurd = [m for m in parsed.measurements if not _possible(m)]
    if not absurd:
        return parsed
    further = f", and {len(absurd) - 1} more like it" if len(absurd) > 1 else ""
    reason = _why(absurd[0]) + further
    return replace(parsed, invalid=f"{parsed.invalid}; {reason}" if parsed.invalid else reason, invalid_cases=())


def _possible(m: Measurement) -> bool:
    low, high = BOUNDS[m.unit]
    return low <= m.value <= high


def _why(m: Measurement) -> str:
    low, high = BOUNDS[m.unit]
    unit = "" if m.unit == "1" else f" {m.unit}"
    return (
        f"{m.metric} of {m.case} is {m.value:g}{unit}, which is impossible: the limits are {low:g} and {high:g}{unit}"
    )
