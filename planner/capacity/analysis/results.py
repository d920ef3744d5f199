"""Define the results of analyses: binding limits, next best plans, and limits in conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from fleetmark.planner.capacity.question import Plan


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that binds.

    - ``name``, ``unit``: the limit in words and its unit
    - ``more``: the increase that was tried (for a demand, the decrease)
    - ``saves``: the present value saved per unit, with fractions of servers
    - ``demand``: True if the limit is a demand
    """

    name: str
    unit: str
    more: float
    saves: float
    demand: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """The cheapest plan that buys less of ``name`` than the better plans do, or does not buy it.

    ``extra`` is the difference of its present value from the plan's. ``least`` is the smallest difference that the
    bounds prove. If ``least`` is negative, the alternative may cost no more than the plan. ``trades`` is the difference
    from the plan in each of ``TRADES``.
    """

    name: str
    plan: Plan
    extra: float
    least: float
    trades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a conflict.

    - ``name``: the limit in words
    - ``relax``: its smallest relaxation in ``unit`` that is sufficient for a plan; None if there is none, or if time
      ran out
    - ``cost``: the present value of that plan
    - ``beside``: limits that conflict even without this one, if known
    - ``scarce``: for a demand, by SKU, the resource that limits its servers, if this is not their speed
    """

    name: str
    relax: float | None
    unit: str
    cost: float | None = None
    beside: Sequence[str] = ()
    _: KW_ONLY
    scarce: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A set of contradicting limits. If any one of them is dropped, there is a plan.

    ``smallest`` is True if it is proven that no smaller set is in conflict.
    """

    limits: Sequence[Limit]
    smallest: bool = False
