"""Hold the figures of a decision strip, which a page recalculates when the reader changes mix, prices, power or counts.

A page on a screen shows the strip below the first section. It computes no statistics: ratios and intervals are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StripSide:
    """A side of the strip.

    - ``price``, ``watts``, ``rack_units``: of one server or piece; None if unknown
    - ``ratios``: by class, how many baseline servers one server replaces for equal work; empty for the baseline
    - ``given``: the ratio of the initial mix with the bounds of its interval, None if it has none
    """

    title: str
    price: float | None = None
    watts: float | None = None
    rack_units: float | None = None
    ratios: Mapping[str, float | None]
    given: tuple[float, float | None, float | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StripView:
    """The strip seen from one baseline, which is the first of ``sides``.

    - ``classes``: the title of each class by its name
    - ``mix``: the initial share of each class
    - ``is_given``: whether the user gave the mix; otherwise all shares are equal
    - ``is_exact``: whether every mix gives the same figures as ``--mix``; otherwise figures are approximate, because
      hosts or sizes differ
    """

    sides: Sequence[StripSide]
    classes: Mapping[str, str]
    mix: Mapping[str, float]
    is_given: bool
    is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A decision strip.

    - ``views``: in the order of the document's viewpoints
    - ``servers``, ``years``, ``energy``: the initial conditions of a purchase
    - ``unit``: the unit of prices, such as ``USD per hour``; empty without any price
    - ``hours``: the hours that a price pays for, None for a purchase
    - ``command``: the command that repeats the comparison with another mix, which is appended to it; empty if it takes
      no mix
    - ``piece``: what is counted, such as ``accelerator``; empty for servers
    - ``hours_per_year``, ``rounding``: constants of costs; ``rounding`` is the amount by which a number of servers may
      exceed a whole number
    """

    views: Sequence[StripView]
    servers: int
    hours_per_year: float
    rounding: float
    years: float | None
    energy: float | None
    unit: str
    hours: float | None
    command: str
    piece: str = ""
