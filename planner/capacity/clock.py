"""Limit a computation by time, and remember whether time ended it, because its result then depends on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Hold a time limit of ``seconds``. ``stopped`` tells whether it ended anything."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.stopped = False
        self._now = now
        self._end = now() + seconds

    @property
    def left(self) -> float:
        """Return the seconds left, 0 or more."""
        return max(self._end - self._now(), 0.0)

    def over(self) -> bool:
        """Return whether time is over, which the caller then obeys."""
        over = not self.left
        self.stopped = self.stopped or over
        return over
