"""Describe how a worth was measured."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Describe how a worth was measured, so that delivered servers can be measured in the same way.

    - ``select``: the measured machines; ``baseline``, ``pinned``: the machines they were compared with, empty for a
      rate
    - ``class_``, ``benchmark``, ``mix``: the compared work; exactly one of them is set
    - ``unit``: the workload's units in one base unit of a rate, 1 for a ratio
    - ``se``, ``df``: the error of the mean over the measured hosts, which is smaller than the error of the worth if the
      worth also covers a workload similar to its benchmarks
    - ``hosts``: the number of hosts of the baseline (0 for a rate) and of the machines

    Raise ValueError if not exactly one thing was compared, or if ``unit`` is not positive.
    """

    select: str
    baseline: str = ""
    pinned: str = ""
    class_: str = ""
    benchmark: str = ""
    _: KW_ONLY
    mix: str = ""
    unit: float = 1.0
    se: float = 0.0
    df: float = math.inf
    hosts: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        if sum(map(bool, (self.class_, self.benchmark, self.mix))) != 1:
            raise ValueError("one of class_, benchmark and mix must be given")
        if not 0 < self.unit < math.inf:
            raise ValueError(f"unit is {self.unit}")
