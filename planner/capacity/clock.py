"""Limit the time of a computation, and record whether the limit ended it.

A result that was cut off by the limit depends on the speed of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """A time limit of ``seconds``. ``stopped`` is True if the limit ended a computation."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.stopped = False
        self._now = now
        self._end = now() + seconds

    @property
    def left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(self._end - self._now(), 0.0)

    def over(self) -> bool:
        """Return whether the time is up. The caller must then stop."""
        over = not self.left
        self.stopped = self.stopped or over
        return over
