"""A capacity question and its answer: what is wanted, what can be bought and where, and a plan that meets it.

Nothing is solved here; these are the words that input, solver, uncertainty and documents share. Money is in the one
currency of the question, power in W, energy prices per kWh; periods are of equal length and counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd


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
    periods from order to use; ``age_limit``: periods of service, None for ever. ``embodied``: kg CO2e of making one.
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


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. ``stock``: a row per (sku, site, period) with ``buy`` (ordered then), ``arrive``, ``retire``,
    ``installed``, ``active``, ``idle_w``, ``peak_w``; ``use``: a row per (sku, site, workload, period) with
    ``servers`` that serve it. ``costs``: a row per (period, kind) with ``money`` undiscounted and ``present`` value;
    kinds are purchase, energy, support, space, migration, carbon.

    ``objective``: present value of it all; ``bound``: no plan costs less; ``gap``: (objective - bound) / objective.
    ``binding``: what stands at its limit, with the money that one unit more of it would save (its shadow price).
    """

    stock: pd.DataFrame
    use: pd.DataFrame
    costs: pd.DataFrame
    objective: float
    bound: float
    gap: float
    seconds: float
    binding: Sequence[Binding] = ()
    margin: Mapping[str, float] = field(default_factory=dict)  # workload to what its demand was multiplied by


@dataclass(frozen=True, slots=True)
class Binding:
    """A limit that the plan stands at: ``name`` in words, its ``unit``, what ``more`` of it was tried and what that
    saves (present value per unit; None where the perturbed question was not solved).
    """

    name: str
    unit: str
    more: float
    saves: float | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why there is no plan: the smallest set of limits that cannot hold together, each with the least by which it
    would have to give way alone (``relax``, in ``unit``; None where that does not help).
    """

    limits: Sequence[tuple[str, float | None, str]]
