"""Format logarithmic axes of charts: round numbers as ticks, and titles that say the axis is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Spec = dict[str, Any]  # a Vega-Lite specification
_ROUND = 8  # maximum number of labels on an axis of rates


def round_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between ``low`` and ``high`` for a log scale, as many as fit."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5, 7), (1, 2, 5), (1,)):
        numbers = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(numbers) <= _ROUND:
            return numbers
    return numbers


def with_log_axes(spec: Any, titled: Callable[[str], str]) -> Any:
    """Return the specification with ``titled`` applied to the title of each logarithmic axis."""
    match spec:
        case {"scale": {"type": "log"}, "title": str(title)}:
            return {**spec, "title": titled(title)}
        case dict():
            return {key: with_log_axes(part, titled) for key, part in spec.items()}
        case list():
            return [with_log_axes(part, titled) for part in spec]
    return spec
