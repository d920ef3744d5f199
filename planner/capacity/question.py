"""A capacity question and its answer: demand, what can be bought and where, and a plan that meets the demand.

Nothing is solved here; input, solver, uncertainty and documents share these classes. Money is in the currency of the
question, power in W, energy prices per kWh; periods have equal length and are counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from planner.estimate import Estimate

HOURS = 8766.0  # in a year
OUTAGE = 0.001  # nine hours a year
SURVIVES, NORMAL, PREEMPTIBLE = "survives", "normal", "preemptible"
AVAILABILITY = (SURVIVES, NORMAL, PREEMPTIBLE)
KINDS = ("purchase", "energy", "support", "space", "migration", "carbon", "residual")
TRADES = (  # figures of alternatives: present values of purchases and of all other costs; the others at the end
    "purchases",
    "running",
    "servers",
    "peak_w",
    "rack_units",
    "carbon_kg",  # over the horizon
)


# Workload to the factor on its demand: one for all periods, or one per period (uncertainty grows with time).
Margin = Mapping[str, float | Sequence[float]]


@dataclass(frozen=True, slots=True)
class Worth:
    """The demand of a workload that one server of a SKU serves at full use, in the workload's unit.

    ``se``: standard error of its natural logarithm. ``df``: degrees of freedom of that error, infinite if it is an
    input and not an estimate. ``source``: its origin, as the Equivalence tab shows it. ``utilisation``: the highest
    of these servers for this workload, None for the workload's own; ``why`` says where it is from.
    """

    value: float
    se: float = 0.0
    df: float = math.inf
    source: str = "given"
    utilisation: float | None = None
    why: str = ""

    @property
    def estimate(self) -> Estimate:
        """The value with its 95% interval, exp(ln value ± t se)."""
        return Estimate.of_error(self.value, self.se, self.df)


@dataclass(frozen=True, slots=True)
class Workload:
    """Demand by period. ``point``: its median in ``unit``; ``sigma``: standard deviation of its logarithm.

    ``utilisation``: the highest utilisation (0 to 0.85) of servers whose worth has none of its own; ``why`` says where
    it is from. ``sites``: where it may run; empty for all. ``dedicated``: it does not share servers with others.
    ``pool``: it shares servers with workloads of the same pool only; empty for the servers that all others share.
    ``availability``: one of ``AVAILABILITY``, empty for the question's. ``gpus``: that one unit of its demand needs in
    one server, each with ``gpu_memory`` bytes at least. ``forecast``: how good it is, if it follows from past use.
    """

    name: str
    unit: str
    point: Sequence[float]
    sigma: Sequence[float]
    utilisation: float
    why: str = "given"
    sites: frozenset[str] = frozenset()
    dedicated: bool = False
    availability: str = ""
    gpus: int = 0
    gpu_memory: float = 0.0
    forecast: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Sku:
    """A server model that can be bought or is in place. ``worth``: workload to Worth; other workloads cannot run on it.

    ``price`` is None if it is no longer sold. ``support`` and ``space``: money per server and year. ``lead``: periods
    from order to use. ``age_limit``: periods of service, None for no limit; a server is 0 periods old in the period of
    its arrival, and gone from the period in which its age reaches the limit. ``minimum_order``: the smallest order for
    one site in one period. ``embodied``: kg CO2e of making one. ``gpu_memory``: bytes of one of its ``gpus``.
    ``provisioned_w``: what one is allowed of a site's power, measured or set by policy; None for ``peak_w``.
    ``out``: workload to the reason why this SKU cannot run it within its objective. ``vendor``: who sells it.
    ``lot``: orders are multiples of it. ``racks``: positions for racks that one takes, a rack bought whole takes 1;
    0: as many as its power asks for. ``liquid``: only positions with liquid cooling count. ``residual``: the share of
    its price that it keeps for each year of age. ``breaks``: (count, price of one), upwards: what each server costs in
    a period in which at least so many are ordered at all sites together. ``slips``: the probability that all its
    orders arrive 0, 1, 2 ... periods late; empty if they never do. ``allowance``: periods that the plan adds to
    ``lead`` for that.
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
    gpu_memory: float = 0.0
    provisioned_w: float | None = None
    out: Mapping[str, str] = field(default_factory=dict)
    vendor: str = ""
    lot: int = 1
    racks: float = 0.0
    liquid: bool = False
    residual: float = 0.0
    breaks: tuple[tuple[int, float], ...] = ()
    slips: tuple[float, ...] = ()
    allowance: int = 0

    @property
    def delay(self) -> int:
        """Periods from order to use in the plan."""
        return self.lead + self.allowance

    @property
    def least_price(self) -> float:
        """The lowest price of one, whatever the quantity; 0 if it is not sold."""
        return 0.0 if self.price is None else min([self.price, *(price for _, price in self.breaks)])

    def price_in(self, count: float) -> float:
        """The price of one in a period in which ``count`` are ordered; 0 if it is not sold."""
        reached = [price for least, price in self.breaks if count >= least]
        return reached[-1] if reached else self.price or 0.0

    @property
    def budgeted_w(self) -> float:
        """W that count against a site's power limit."""
        return self.peak_w if self.provisioned_w is None else self.provisioned_w


@dataclass(frozen=True, slots=True)
class Site:
    """A site, or a room, row or rack of one. A limit of None is no limit. ``domain``: its failure domains (a room, a
    power feed), separated by commas; itself by default.

    ``budget``: money for purchases over the horizon; ``spares``: idle servers per SKU in use there (N+1). ``racks``:
    positions for racks; ``liquid_racks``: those with liquid cooling, none unless given; ``rack_w``: the power of one of
    the others. ``windows``: the periods in which servers may be retired, None for all.
    """

    name: str
    power_w: float | None = None
    rack_units: float | None = None
    ports: float | None = None
    budget: float | None = None
    domain: str = ""
    spares: int = 0
    energy_price: float | None = None  # per kWh, if it differs from the question's
    pue: float | None = None
    racks: float | None = None
    liquid_racks: float | None = 0.0
    rack_w: float | None = None
    windows: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Supply:
    """The ``maximum`` servers of a SKU, or of all of a vendor, that can be ordered in one ``period``, None for each."""

    item: str
    maximum: int
    period: int | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Servers in place at the start: ``count`` of ``sku`` at ``site``, ``age`` periods old. With ``arrives``, an order
    that is placed already: new servers, there and paid for from that period on.
    """

    sku: str
    site: str
    count: int
    age: int = 0
    arrives: int | None = None

    @property
    def ordered(self) -> bool:
        """Whether they are not in place yet."""
        return self.arrives is not None


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a plan must obey. ``periods``: their names; each is ``years`` long (0.25 for a quarter).

    ``survive``: capacity must suffice with any one failure domain gone, for workloads that do not say otherwise.
    ``outage``: the share of time in which one failure domain is down. ``quantile``: the plan must meet demand in
    that share of futures. ``budget``: money for purchases by period, None for no limit. ``carbon_price``: per tonne
    CO2e; ``grid``: kg CO2e per kWh. ``source``: file to its SHA-256, and the rest of the provenance. ``supply``: what
    can be had. ``domains_w``: failure domain (a row, a power feed) to the W of all in it. ``rates``: other currency to
    what one unit of it is in ``currency``; prices here are converted.
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
    outage: float = OUTAGE
    supply: Sequence[Supply] = ()
    domains_w: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)

    def weight(self, period: int) -> float:
        """The present value of 1 in that period: 1 / (1 + discount) ** years."""
        return float((1 + self.discount) ** (-self.years * period))

    def domains(self, site: str) -> tuple[str, ...]:
        """The failure domains of the site."""
        written = self.sites[site].domain
        return tuple(name.strip() for name in written.split(",") if name.strip()) if written else (site,)

    @property
    def cases(self) -> list[str]:
        """The failure domains, in the order of the sites."""
        return list(dict.fromkeys(name for k in self.sites for name in self.domains(k)))

    def positions(self, sku: str, site: str) -> float:
        """The positions for racks that one server takes at a site: its own, or its share of a rack's power."""
        s, rack = self.skus[sku], self.sites[site].rack_w
        if s.racks or not rack or not s.budgeted_w:
            return s.racks
        return 1 / max(math.floor(rack / s.budgeted_w), 1)

    def fits(self, sku: str, site: str) -> bool:
        """Whether the power of a rack at the site suffices for one; liquid-cooled racks have power of their own."""
        s, rack = self.skus[sku], self.sites[site].rack_w
        return s.liquid or not rack or s.budgeted_w <= rack * max(s.racks, 1.0)

    def supplied(self, supply: Supply) -> list[str]:
        """The SKUs that a limit of supply counts."""
        return [s for s, sku in self.skus.items() if supply.item in (s, sku.vendor)]

    def availability(self, workload: str) -> str:
        """One of ``AVAILABILITY``."""
        return self.workloads[workload].availability or (SURVIVES if self.survive else NORMAL)

    def survives(self, workload: str) -> bool:
        """Whether its capacity must suffice with any one failure domain gone."""
        return self.availability(workload) == SURVIVES

    def yields(self, workload: str) -> bool:
        """Whether it may be pre-empted: it runs on servers that others need only when a failure domain is gone."""
        return self.availability(workload) == PREEMPTIBLE

    def pool(self, workload: str) -> str:
        """The pool whose servers a workload uses: its own name if it is dedicated, empty for the common ones."""
        work = self.workloads[workload]
        return workload if work.dedicated else work.pool

    @property
    def pools(self) -> dict[str, list[str]]:
        """Each pool (empty: the common servers) to its workloads, in the question's order."""
        pools: dict[str, list[str]] = {}
        for w in self.workloads:
            pools.setdefault(self.pool(w), []).append(w)
        return pools

    def utilisation(self, sku: str, workload: str) -> float:
        """The highest utilisation of servers of the SKU for the workload."""
        used = self.skus[sku].worth[workload].utilisation
        return self.workloads[workload].utilisation if used is None else used

    def rate(self, sku: str, workload: str) -> float:
        """Work of one server of the SKU for the workload at its utilisation, E u; 0 if it cannot run there."""
        worth = self.skus[sku].worth.get(workload)
        return 0.0 if worth is None else worth.value * self.utilisation(sku, workload)

    def energy(self, site: str) -> float:
        """kWh drawn at the site's meter by one W of servers over one period."""
        pue = self.sites[site].pue
        return HOURS * self.years * (self.pue if pue is None else pue) / 1000

    def price_of_energy(self, site: str) -> float:
        """Money per kWh."""
        price = self.sites[site].energy_price
        return self.energy_price if price is None else price

    def watt(self, site: str) -> float:
        """Money for one W of servers over one period: energy and its carbon."""
        return self.energy(site) * (self.price_of_energy(site) + self.carbon_price * self.grid / 1000)


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that binds. ``name`` in words, its ``unit``. ``more``: the tried increase (for a demand: the decrease).
    ``saves``: present value saved per unit of it, None if the changed question was not solved. ``relaxed``: the saving
    is that of the relaxation with fractions of servers, because the question was not solved closely enough.
    ``demand``: the limit is a demand.
    """

    name: str
    unit: str
    more: float
    saves: float | None
    relaxed: bool = False
    demand: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: what to buy, use and retire.

    ``stock``: a row per (sku, site, period), zeros too, with counts ``buy`` (ordered then), ``arrive``, ``retire``,
    ``installed``, ``active``, and W: ``idle_w`` of the active servers at rest, ``peak_w`` of all installed servers at
    their peak. ``use``: a row per (sku, site, workload, period) with the ``servers`` that are there for it, failover
    included, and how many of them are ``working`` with everything up (at their utilisation; they make its energy), both
    with fractions where servers are shared; without zeros. ``costs``: a row per (period, kind of ``KINDS``)
    with ``money`` undiscounted and its ``present`` value. ``period`` is a number from 0 everywhere.

    ``objective``: present value of all costs; ``bound``: no plan costs less; ``gap``: (objective - bound) / objective.
    ``margin``: workload to the factor on its demand, one for all periods or one per period; ``factor`` reads it.
    """

    stock: pd.DataFrame
    use: pd.DataFrame
    costs: pd.DataFrame
    objective: float
    bound: float
    gap: float
    seconds: float
    margin: Margin = field(default_factory=dict)

    def factor(self, workload: str, period: int) -> float:
        """The factor on the demand of that workload and period; 1 without a margin."""
        factors = self.margin.get(workload, 1.0)
        return float(factors[period] if isinstance(factors, Sequence) else factors)


@dataclass(frozen=True, slots=True)
class Alternative:
    """The cheapest plan that buys less of something than the better plans, or none; ``name`` says of what.

    ``extra``: present value above the plan's; ``least``: the part of it that the bounds prove (negative: it is not
    proven to be dearer, because both lie within their gaps). ``trades``: difference to the plan in each of ``TRADES``.
    """

    name: str
    plan: Plan
    extra: float
    least: float
    trades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit in a conflict. ``name`` in words. ``relax``: the least relaxation of it alone that gives a plan, in
    ``unit``; None if none helps or time ran out. ``cost``: present value of the plan that it then allows.
    ``beside``: limits that are in conflict even without this one, if that is known.
    """

    name: str
    relax: float | None
    unit: str
    cost: float | None = None
    beside: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why there is no plan: limits that cannot hold together; without any one of them the others can.

    ``smallest``: no set of fewer limits is in conflict; if False, that is not proven.
    """

    limits: Sequence[Limit]
    smallest: bool = False
