"""Decide when a watch may measure, and which hosts come next."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import parse_quantity

_WINDOW = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class Window:
    """A daily time window in local time. It spans midnight if it ends before it starts."""

    start: time
    end: time

    def has(self, now: time) -> bool:
        """Return whether ``now`` is in the window. The end is exclusive."""
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end


def window(text: str) -> Window:
    """Parse a window such as ``22:00-06:00``. Raise FleetmarkError if it is invalid."""
    match = _WINDOW.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        hours = [int(word) for word in match.groups()]
        result = Window(time(hours[0], hours[1]), time(hours[2], hours[3]))
    except ValueError:
        raise FleetmarkError(f"--window {text}: write it as 22:00-06:00, in local time") from None
    if result.start == result.end:
        raise FleetmarkError(f"--window {text}: starts when it ends; remove --window to measure at any time")
    return result


def is_open(windows: Sequence[Window], now: time) -> bool:
    """Return whether a watch may measure now: inside any of the windows, or at any time if there are none."""
    return not windows or any(w.has(now) for w in windows)


def share(text: str) -> float:
    """Parse a share of hosts such as ``25%``. Raise FleetmarkError if it is not above 0% and at most 100%."""
    value, unit = parse_quantity(text)
    if unit != "1" or not 0 < value <= 1:
        raise FleetmarkError(f"--share {text}: write a share of the hosts of at most 100%, such as 25%")
    return value


def duration(text: str) -> float:
    """Parse a time such as ``30min`` or ``6h`` to seconds.

    Raise FleetmarkError if it is below a second or above a week.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", text)
    seconds = float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]] if match else 0.0
    if not 1 <= seconds <= 7 * 86400:
        raise FleetmarkError(f"--every {text}: write a time between 1s and 7d, such as 30min or 6h")
    return seconds


def chosen(names: Sequence[str], measured: Mapping[str, str], part: float) -> list[str]:
    """Return the hosts of the next round: a ``part`` of all, rounded up.

    ``names``: the idle hosts. ``measured``: the time of each host's last measurement, ISO 8601. Hosts without a
    measurement come first, then those with the oldest one. Ties keep the order of ``names``.
    """
    maximum = math.ceil(part * len(names))
    return sorted(names, key=lambda name: measured.get(name, ""))[:maximum]
