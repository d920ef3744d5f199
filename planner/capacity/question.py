"""Define a capacity question and its answer: demand, available SKUs and sites, and a plan that meets the demand.

Nothing is solved here; input, solver, uncertainty and documents share these classes. Money is in the currency of the
question, power in W, and energy prices are per kWh. Periods have equal length and are numbered from 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import pandas as pd

from fleetmark.planner.capacity.calendar import years
from fleetmark.planner.capacity.reserve import down, unavailability
from fleetmark.planner.capacity.resources import bound
from fleetmark.planner.capacity.series import Series, in_period
from fleetmark.planner.capacity.sku import Sku
from fleetmark.planner.review.promise import promise

HOURS = 8766.0  # hours in a year
OUTAGE = 0.001  # about nine hours a year
SURVIVES, NORMAL, PREEMPTIBLE = "survives", "normal", "preemptible"
AVAILABILITY = (SURVIVES, NORMAL, PREEMPTIBLE)
KINDS = ("purchase", "rent", "energy", "support", "space", "migration", "carbon", "residual")
# Figures used to compare alternatives: present values of purchases and of other costs, residual value, total carbon.
TRADES = ("purchases", "running", "servers", "peak_w", "rack_units", "carbon_kg")
Case = tuple[str, ...]  # failure domains that are lost together
Margin = Mapping[str, float | Sequence[float]]  # factors on each workload's demand: for all periods, or per period


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload's demand by period.

    - ``point``: the median demand in ``unit``; ``sigma`` is the standard deviation of its logarithm
    - ``utilisation``: the maximum (0 to 0.85) for servers without a limit in their worth; ``reason`` gives its origin
    - ``sites``: where it may run; empty for all sites
    - ``dedicated``: True if it does not share servers with other workloads
    - ``pool``: it shares servers only with workloads of the same pool; empty for the common servers
    - ``availability``: one of ``AVAILABILITY``; empty for the question's default
    - ``gpus``: the number of GPUs that one unit of demand needs in one server, each with at least ``gpu_memory`` bytes
    - ``forecast``: the quality of the forecast, if the demand is derived from past use
    - ``needs``: by resource, the amount that one unit of demand uses on its server, in base units
    - ``revenue``: the money that one unit of demand earns in a year
    """

    name: str
    unit: str
    point: Sequence[float]
    sigma: Sequence[float]
    utilisation: float
    _: KW_ONLY
    reason: str = "given"
    sites: frozenset[str] = frozenset()
    dedicated: bool = False
    availability: str = ""
    gpus: int = 0
    gpu_memory: float = 0.0
    forecast: str = ""
    pool: str = ""
    needs: Mapping[str, float] = field(default_factory=dict)
    revenue: float = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """A site, or a room, row or rack of a site. None means no limit; 0 means that the site is not open yet.

    - ``domain``: its failure domains (a room, a power feed), separated by commas; by default the site itself
    - ``budget``: the money for purchases over the horizon
    - ``spares``: the number of idle servers of each SKU in use there: 2 for two simultaneous failures (N+2)
    - ``spare_share``: the share of the installed servers that is kept idle in addition to ``spares``
    - ``maintenance``: the share of the installed servers that is out of service
    - ``racks``, ``liquid_racks``: the rack positions, and those with liquid cooling (none by default)
    - ``rack_w``: the power of a position without liquid cooling
    - ``windows``: the periods in which servers may be retired; None for all
    """

    name: str
    power_w: Series | None = None
    rack_units: Series | None = None
    ports: Series | None = None
    budget: float | None = None
    _: KW_ONLY
    domain: str = ""
    spares: int = 0
    energy_price: Series | None = None  # per kWh, if it differs from the question's
    pue: float | None = None
    racks: Series | None = None
    liquid_racks: Series | None = 0.0
    rack_w: float | None = None
    windows: frozenset[int] | None = None
    maintenance: Series = 0.0
    spare_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Supply:
    """A limit on orders of a SKU, or from a vendor: ``maximum`` servers in one ``period``; in each if it is None."""

    item: str
    maximum: int
    period: int | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """Servers in place at the start: ``count`` of ``sku`` at ``site``, ``age`` periods old.

    With ``arrives``, they are new servers that were ordered earlier; they arrive and are paid for in that period.
    """

    sku: str
    site: str
    count: int
    age: int = 0
    arrives: int | None = None

    @property
    def ordered(self) -> bool:
        """Return whether the servers are on order and not yet in place."""
        return self.arrives is not None


@dataclass(frozen=True, slots=True)
class Shock:
    """A jump in all demands: in a share ``chance`` of futures, they are multiplied by ``demand``.

    The jump begins in any period with equal probability, and is permanent.
    """

    chance: float
    demand: float


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that a plan must obey.

    - ``periods``: their names; each is ``years`` long (0.25 for a quarter)
    - ``survive``: the number of failure domains that may be lost simultaneously, unless a workload overrides it
    - ``outage``: the share of time in which one failure domain is down
    - ``quantile``: the share of futures in which the plan, together with its ``reviews``, must meet demand
    - ``reviewed``: the number of reviews already made
    - ``budget``: the money for purchases by period; None for no limit
    - ``carbon_price``: per tonne CO2e; ``grid`` is in kg CO2e per kWh
    - ``source``: the SHA-256 of each file, and the rest of the provenance
    - ``supply``: the limits on orders
    - ``domains_w``: the power limit in W of each failure domain (a row, a power feed)
    - ``rates``: the value of one unit of each other currency in ``currency``; prices here are already converted
    - ``correlation``: between the logarithms of demands, by names as in ``correlation.members``; the rest are
      independent
    - ``shock``: a jump that all demands share, or None
    - ``carbon_limit``: the kg CO2e over all periods, from energy and from making the ordered servers; None for no limit
    - ``carbon_by_year``: the limit in kg CO2e of each calendar year that has one
    - ``depreciation``: the periods over which purchases are depreciated; 0 for no such accounts
    - ``energy_price_change``: the relative change of energy prices per year, at all sites
    """

    currency: str
    date: str  # ISO 8601 date of prices and of the present value
    periods: Sequence[str]
    years: float
    workloads: Mapping[str, Workload]
    _: KW_ONLY
    skus: Mapping[str, Sku]
    sites: Mapping[str, Site]
    fleet: Sequence[Cohort] = ()
    discount: float = 0.0
    energy_price: Series = 0.0
    pue: float = 1.0
    carbon_price: float = 0.0
    grid: float = 0.0
    survive: int = 0
    quantile: float = 0.95
    budget: Sequence[float | None] = ()
    source: Mapping[str, str] = field(default_factory=dict)
    outage: float = OUTAGE
    supply: Sequence[Supply] = ()
    domains_w: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    correlation: Mapping[str, float] = field(default_factory=dict)
    shock: Shock | None = None
    energy_price_change: float = 0.0
    depreciation: int = 0
    carbon_limit: float | None = None
    carbon_by_year: Mapping[str, float] = field(default_factory=dict)
    reviews: int = 0
    reviewed: int = 0

    @property
    def promise(self) -> float:
        """Return the share of futures that the next plan must meet, so that all reviews together keep ``quantile``."""
        return promise(self.quantile, self.reviews, self.reviewed)

    @property
    def year_names(self) -> list[str]:
        """Return the year of each period."""
        return years(self.periods, self.years)

    @property
    def carbon_limits(self) -> Iterator[tuple[str, list[int], float]]:
        """Yield each limit on carbon: its year, or an empty name for all periods; its periods; and kg CO2e."""
        if self.carbon_limit is not None:
            yield "", list(range(len(self.periods))), self.carbon_limit
        for year, limit in self.carbon_by_year.items():
            yield year, [t for t, name in enumerate(self.year_names) if name == year], limit

    def weight(self, period: int) -> float:
        """Return the present value of 1 in that period: 1 / (1 + discount) ** years."""
        return float((1 + self.discount) ** (-self.years * period))

    def price_level(self, sku: str, period: int) -> float:
        """Return the ratio of a SKU's price in a period to ``Sku.price``, or 0 if it is not sold in that period."""
        s = self.skus[sku]
        written = s.prices[period] if s.prices else s.price
        part = 1.0 if not s.price else (written or 0.0) / s.price
        return float(part * (1 + s.price_change) ** (self.years * period))

    def level_at_arrival(self, sku: str, period: int) -> float:
        """Return the price level at the order of servers that arrive in that period; 1 if ordered before the plan."""
        return self.price_level(sku, max(period - self.skus[sku].delay, 0))

    def unavailability(self, sku: str) -> float:
        """Return the share of the SKU's servers that are down on average."""
        s = self.skus[sku]
        return unavailability(s.failure_rate, s.repair * self.years)

    def withheld(self, site: str, period: int) -> float:
        """Return the share of installed servers that is kept idle or out of service at the site in that period."""
        return self.sites[site].spare_share + in_period(self.sites[site].maintenance, period)

    def reserved(self, sku: str, site: str, period: int, installed: float) -> float:
        """Return how many of the installed servers must not be active, which may be a fraction; see ``reserve``."""
        idle = installed * self.withheld(site, period) + self.sites[site].spares
        return idle + down(installed, self.unavailability(sku), self.quantile)

    def usable(self, sku: str, site: str, period: int, installed: float) -> float:
        """Return how many of the installed servers may be active, as a fraction."""
        return max(installed - self.reserved(sku, site, period, installed), 0.0)

    def domains(self, site: str) -> tuple[str, ...]:
        """Return the failure domains of the site."""
        written = self.sites[site].domain
        return tuple(name.strip() for name in written.split(",") if name.strip()) if written else (site,)

    @property
    def all_domains(self) -> list[str]:
        """Return the failure domains, in the order of the sites."""
        return list(dict.fromkeys(name for k in self.sites for name in self.domains(k)))

    @property
    def cases(self) -> list[Case]:
        """Return the sets of failure domains that a surviving workload may lose together: every one, or every pair."""
        return list(itertools.combinations(names := self.all_domains, min(max(self.survive, 1), len(names))))

    def is_lost(self, site: str, case: Case) -> bool:
        """Return whether the site is in one of the failure domains of ``case``."""
        return not set(case).isdisjoint(self.domains(site))

    def positions(self, sku: str, site: str) -> float:
        """Return the rack positions that one server takes at a site: its own number, or its share of a rack's power."""
        s, rack = self.skus[sku], self.sites[site].rack_w
        if s.racks or not rack or not s.budgeted_w:
            return s.racks
        return 1 / max(math.floor(rack / s.budgeted_w), 1)

    def fits(self, sku: str, site: str) -> bool:
        """Return whether a rack at the site has enough power for one server; liquid-cooled racks have their own."""
        s, rack = self.skus[sku], self.sites[site].rack_w
        return s.liquid or not rack or s.budgeted_w <= rack * max(s.racks, 1.0)

    def supplied(self, supply: Supply) -> list[str]:
        """Return the SKUs that a supply limit covers."""
        return [s for s, sku in self.skus.items() if supply.item in (s, sku.vendor)]

    def availability(self, workload: str) -> str:
        """Return the workload's availability, one of ``AVAILABILITY``."""
        return self.workloads[workload].availability or (SURVIVES if self.survive else NORMAL)

    def survives(self, workload: str) -> bool:
        """Return whether the workload's capacity must suffice in every one of ``cases``."""
        return self.availability(workload) == SURVIVES

    def yields(self, workload: str) -> bool:
        """Return whether the workload may be pre-empted: it runs on servers that others need only in a failure."""
        return self.availability(workload) == PREEMPTIBLE

    def pool(self, workload: str) -> str:
        """Return the pool whose servers a workload uses: its own name if dedicated, empty for the common servers."""
        work = self.workloads[workload]
        return workload if work.dedicated else work.pool

    @property
    def pools(self) -> dict[str, list[str]]:
        """Return the workloads of each pool in the question's order; the empty name stands for the common servers."""
        pools: dict[str, list[str]] = {}
        for w in self.workloads:
            pools.setdefault(self.pool(w), []).append(w)
        return pools

    def speed_limit(self, sku: str, workload: str) -> float:
        """Return the maximum utilisation of servers of the SKU for the workload, as limited by their speed alone."""
        used = self.skus[sku].worth[workload].utilisation
        return self.workloads[workload].utilisation if used is None else used

    def utilisation(self, sku: str, workload: str) -> float:
        """Return the maximum utilisation of servers of the SKU for the workload; scarce resources lower it."""
        units, _ = bound(self.skus[sku].has, self.workloads[workload].needs)
        return min(self.speed_limit(sku, workload), units / self.skus[sku].worth[workload].value)

    def binding(self, sku: str, workload: str) -> str:
        """Return the resource that limits a server's work, or an empty name if its speed is the limit."""
        units, name = bound(self.skus[sku].has, self.workloads[workload].needs)
        return name if units < self.skus[sku].worth[workload].value * self.speed_limit(sku, workload) else ""

    def rate(self, sku: str, workload: str) -> float:
        """Return the work of one server of the SKU at its utilisation, E u, or 0 if it cannot run the workload."""
        worth = self.skus[sku].worth.get(workload)
        return 0.0 if worth is None else worth.value * self.utilisation(sku, workload)

    def energy(self, site: str) -> float:
        """Return the kWh at the site's meter for one W of servers over one period."""
        pue = self.sites[site].pue
        return HOURS * self.years * (self.pue if pue is None else pue) / 1000

    def price_of_energy(self, site: str, period: int) -> float:
        """Return the price of energy in that period, in money per kWh."""
        price = self.sites[site].energy_price
        return in_period(self.energy_price if price is None else price, period) * self.energy_level(period)

    def energy_level(self, period: int) -> float:
        """Return the factor by which ``energy_price_change`` has changed energy prices until that period."""
        return float((1 + self.energy_price_change) ** (self.years * period))

    def watt(self, site: str, period: int) -> float:
        """Return the cost of one W of servers over that period: energy and its carbon."""
        return self.energy(site) * (self.price_of_energy(site, period) + self.carbon_price * self.grid / 1000)


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: what to buy, use and retire. All periods are numbered from 0.

    ``stock`` has one row per (sku, site, period), including zeros: the counts ``buy`` (ordered then), ``arrive``,
    ``retire``, ``installed`` and ``active``; ``idle_w`` of the active servers; ``peak_w`` of all installed servers.

    ``use`` has one row per (sku, site, workload, period), without zeros. ``servers`` are assigned to the workload,
    including failover; ``working`` of them are needed without failures, at their utilisation, and determine the
    energy. Both are fractions if servers are shared.

    ``costs`` has one row per (period, kind of ``KINDS``) with ``money`` undiscounted and its ``present`` value.

    ``objective`` is the present value of all costs. No plan costs less than ``bound``; ``gap`` is (objective - bound) /
    objective. ``margin`` is the factor on the demand of each workload, see ``factor``. ``stopped`` is True if a time
    limit ended a search, so that another machine may find another plan.
    """

    stock: pd.DataFrame
    use: pd.DataFrame
    costs: pd.DataFrame
    objective: float
    bound: float
    _: KW_ONLY
    gap: float
    seconds: float
    margin: Margin = field(default_factory=dict)
    stopped: bool = False

    def factor(self, workload: str, period: int) -> float:
        """Return the factor on the demand of that workload and period, or 1 without a margin."""
        factors = self.margin.get(workload, 1.0)
        return float(factors[period] if isinstance(factors, Sequence) else factors)
