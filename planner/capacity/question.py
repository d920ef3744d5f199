"""A capacity question and its answer: what is wanted, what can be bought and where, and a plan that meets it.

Nothing is solved here; these are the words that input, solver, uncertainty and documents share. Money is in the one
currency of the question, power in W, energy prices per kWh; periods are of equal length and counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from planner.estimate import Estimate

HOURS = 8766.0  # in a year
KINDS = ("purchase", "energy", "support", "space", "migration", "carbon")
TRADES = (  # what alternatives are compared on: present values of purchases and of all else; the rest at the end
    "purchases",
    "running",
    "servers",
    "peak_w",
    "rack_units",
    "carbon_kg",  # over the whole horizon
)


# Workload to what its demand is multiplied by: in all periods, or period by period (uncertainty grows with time).
Margin = Mapping[str, float | Sequence[float]]


@dataclass(frozen=True, slots=True)
class Worth:
    """How much of a workload's demand one server of a SKU serves at full use, in the workload's unit.

    ``se``: standard error of its natural logarithm, ``df`` that error's degrees of freedom (infinite where it was
    given rather than estimated). ``source``: where it is from, as the Equivalence tab shows it.
    """

    value: float
    se: float = 0.0
    df: float = math.inf
    source: str = "given"

    @property
    def estimate(self) -> Estimate:
        """The value with its 95% interval, exp(ln value ± t se)."""
        return Estimate.of_error(self.value, self.se, self.df)


@dataclass(frozen=True, slots=True)
class Workload:
    """Demand period by period. ``point``: its median in ``unit``; ``sigma``: standard deviation of its logarithm.

    ``utilisation``: the most that servers are used for it (0 to 0.85), given or from its latency SLO, ``why`` says
    which. ``sites``: where it may run, all where empty. ``dedicated``: it does not share servers with others.
    """

    name: str
    unit: str
    point: Sequence[float]
    sigma: Sequence[float]
    utilisation: float
    why: str = "given"
    sites: frozenset[str] = frozenset()
    dedicated: bool = False


@dataclass(frozen=True, slots=True)
class Sku:
    """A server that can be bought or is there already. ``worth``: workload to Worth; what is absent cannot run on it.

    ``price`` is None for what is no longer sold. ``support`` and ``space``: money per server and year. ``lead``:
    periods from order to use; ``age_limit``: periods of service, None for ever: a server is 0 periods old in the one
    it arrives in, and gone from the one on in which its age reaches the limit. ``minimum_order``: the fewest that are
    ordered for one site in one period. ``embodied``: kg CO2e of making one.
    """

    name: str
    worth: Mapping[str, Worth]
    price: float | None
    idle_w: float
    peak_w: float
    rack_units: float
    gpus: int = 0
    ports: int = 1
    lead: int = 0
    support: float = 0.0
    space: float = 0.0
    migration: float = 0.0  # money to move the work off one server that is decommissioned
    minimum_order: int = 0
    age_limit: int | None = None
    embodied: float = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """A place. Limits are None where there is none; ``domain``: what it fails together with, itself by default.

    ``budget``: money for purchases over the whole horizon; ``spares``: servers per SKU in use there kept idle (N+1).
    """

    name: str
    power_w: float | None = None
    rack_units: float | None = None
    ports: float | None = None
    budget: float | None = None
    domain: str = ""
    spares: int = 0
    energy_price: float | None = None  # per kWh, where it differs from the question's
    pue: float | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Servers in place at the start: ``count`` of ``sku`` at ``site``, ``age`` periods old."""

    sku: str
    site: str
    count: int
    age: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a plan must obey. ``periods`` are their names, each ``years`` long (0.25 for a quarter).

    ``survive``: capacity must suffice with any one failure domain gone. ``quantile``: the plan shall meet demand in
    that share of futures. ``budget``: money for purchases, period by period, None for no limit. ``carbon_price``: per
    tonne CO2e; ``grid``: kg CO2e per kWh. ``source``: file to its SHA-256, and whatever else provenance needs.
    """

    currency: str
    date: str  # ISO 8601, of prices and of the present value
    periods: Sequence[str]
    years: float
    workloads: Mapping[str, Workload]
    skus: Mapping[str, Sku]
    sites: Mapping[str, Site]
    fleet: Sequence[Cohort] = ()
    discount: float = 0.0
    energy_price: float = 0.0
    pue: float = 1.0
    carbon_price: float = 0.0
    grid: float = 0.0
    survive: bool = False
    quantile: float = 0.95
    budget: Sequence[float | None] = ()
    source: Mapping[str, str] = field(default_factory=dict)

    def demand(self, workload: str, period: int) -> float:
        """The median demand."""
        return self.workloads[workload].point[period]

    def weight(self, period: int) -> float:
        """What money of that period is worth at the start: 1 / (1 + discount) ** years."""
        return float((1 + self.discount) ** (-self.years * period))

    def domain(self, site: str) -> str:
        """What the site fails together with."""
        return self.sites[site].domain or site

    def energy(self, site: str) -> float:
        """kWh drawn at the site's meter by one W of servers over one period."""
        pue = self.sites[site].pue
        return HOURS * self.years * (self.pue if pue is None else pue) / 1000

    def price_of_energy(self, site: str) -> float:
        """Money per kWh."""
        price = self.sites[site].energy_price
        return self.energy_price if price is None else price

    def watt(self, site: str) -> float:
        """Money for one W of servers over one period, energy and its carbon."""
        return self.energy(site) * (self.price_of_energy(site) + self.carbon_price * self.grid / 1000)


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that the plan stands at: ``name`` in words, its ``unit``, what ``more`` of it was tried (for a demand:
    how much less was asked for) and what that ``saves``: present value per unit of it, None where the changed question
    was not solved. ``relaxed``: the saving is that of the relaxation with fractions of servers, since the whole
    question was not solved closely enough to tell.
    """

    name: str
    unit: str
    more: float
    saves: float | None
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    ``stock``: a row per (sku, site, period), zeros too, with counts ``buy`` (ordered then), ``arrive``, ``retire``,
    ``installed``, ``active``, and W: ``idle_w`` of the active at rest, ``peak_w`` of all installed at their peak, which
    is what a site's power limit is held against. ``use``: a row per (sku, site, workload, period) with the ``servers``
    that serve it (may be fractions), where there are any. ``costs``: a row per (period, kind) with ``money``
    undiscounted and its ``present`` value; kinds are those of ``KINDS``. ``period`` is a number from 0 everywhere.

    ``objective``: present value of it all; ``bound``: no plan costs less; ``gap``: (objective - bound) / objective.
    ``margin``: workload to what its demand was multiplied by, in all periods or period by period; ``factor`` reads it.
    """

    stock: pd.DataFrame
    use: pd.DataFrame
    costs: pd.DataFrame
    objective: float
    bound: float
    gap: float
    seconds: float
    binding: Sequence[Binding] = ()
    margin: Margin = field(default_factory=dict)

    def factor(self, workload: str, period: int) -> float:
        """What the demand of that workload and period was multiplied by, 1 where there is no margin."""
        given = self.margin.get(workload, 1.0)
        return float(given[period] if isinstance(given, Sequence) else given)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another plan, the cheapest that lacks something the better ones buy, or has less of it. ``name`` says of what.

    ``extra``: present value above the plan's; ``least``: what the bounds prove of it (negative: that it is dearer at
    all is not proven, both being within their gaps). ``trades``: difference to the plan in each of ``TRADES``.
    """

    name: str
    plan: Plan
    extra: float
    least: float
    trades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit in a conflict: its ``name`` in words; the least by which it would have to give way alone (``relax``, in
    ``unit``; None where that does not help or could not be found); ``cost``: present value of the plan it then allows.
    ``beside``: limits that are in conflict even where this one is no limit at all, where that was found out.
    """

    name: str
    relax: float | None
    unit: str
    cost: float | None = None
    beside: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why there is no plan: limits that cannot hold together, while any of them left out leaves the others possible.

    ``smallest``: no set of fewer limits is in conflict; where False, that was not proven.
    """

    limits: Sequence[Limit]
    smallest: bool = False
