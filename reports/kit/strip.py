"""The figures of a decision strip: what a page multiplies when its reader changes mix, prices, power or numbers.

A page on a screen shows the strip below the first section. It computes no statistics: ratios and intervals are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StripSide:
    """A side of the strip.

    - ``price``, ``watts``, ``rack_units``: of one server or piece, None if they are not known
    - ``ratios``: by class, how many baseline servers one server replaces for equal work; empty for the baseline
    - ``given``: the ratio of the initial mix with the ends of its interval, None if it has none
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
    - ``is_given``: the user gave the mix; otherwise its shares are equal
    - ``is_exact``: every mix has the figures of ``--mix``; otherwise hosts or sizes differ, so they are approximate
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
    - ``unit``: of prices, such as ``USD per hour``; empty without any price
    - ``hours``: the hours that a price pays for, None for a purchase
    - ``command``: repeats the comparison with another mix, which follows it; empty if it takes no mix
    - ``piece``: what is counted, such as ``accelerator``; empty for servers
    - ``hours_per_year``, ``rounding``: constants of costs; ``rounding`` is what a number of servers may exceed a whole
      number by
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
