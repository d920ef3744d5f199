"""Convert a capacity plan to the rows of all documents: purchases, retirements, costs, capacity and demand, sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.capacity.analysis.nothing import Nothing
from fleetmark.planner.capacity.analysis.results import Alternative, Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import KINDS, NORMAL, PREEMPTIBLE, SURVIVES, Plan, Question
from fleetmark.planner.capacity.series import in_period
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.planner.cost.cash import Cash, by_year
from fleetmark.planner.estimate import Estimate
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import colour_of

NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class Order:
    """An order of ``count`` servers of ``sku`` for ``site`` in period ``period``.

    ``arrives``: the first period of use; None if it is after the last period. ``money``: the undiscounted price. A
    retirement has the same form; it has no arrival, and its money is the cost of migration.
    """

    period: int
    arrives: int | None
    site: str
    sku: str
    count: int
    _: KW_ONLY
    money: float


@dataclass(frozen=True, slots=True)
class Supply:
    """The supply of a workload in a period; amounts are in the workload's unit.

    ``demand``: the median demand. ``planned``: the median with the plan's margin. ``capacity``: the work of the plan's
    servers, with the worst failure domain lost if the question asks for survival. ``all_up``: the same with every site
    up. ``nothing``: the work of the present servers if nothing is bought. ``servers``: the whole servers of its pool at
    all sites where it may run. ``share``: the workload's share of these servers. ``pool``: the name of the pool, empty
    for the servers that all others share. ``bound_by``: the share of its servers whose work is limited by each
    resource, or by speed under an empty name; empty if the workload needs no resources. ``load``: the utilisation of
    its servers at the planned demand without failures. ``load_lost``: the same for the servers left without the worst
    failure domain (None if the plan does not survive that loss). ``runs``: for pre-emptible work, the least share that
    gets done on average; None for other work.
    """

    workload: str
    period: int
    demand: float
    planned: float
    capacity: float
    _: KW_ONLY
    servers: int
    all_up: float
    nothing: float
    load: float
    load_lost: float | None
    runs: float | None
    share: float = 1.0
    pool: str = ""
    bound_by: Mapping[str, float] = field(default_factory=dict)

    @property
    def spare(self) -> float:
        """Return the capacity beyond the planned demand, as a share of that demand."""
        return self.capacity / self.planned - 1 if self.planned else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A site in a period: its servers, and their use of each limit (None without a limit).

    Power is in W, at peak or as provisioned. ``mean_w``: the mean power without failures. ``failover_w``: the mean
    power with a failure domain lost elsewhere. ``racks``: used rack positions. ``liquid``: used positions with liquid
    cooling.
    """

    site: str
    period: int
    servers: int
    power_w: float
    power_limit_w: float | None
    rack_units: float
    rack_limit: float | None
    ports: float
    port_limit: float | None
    mean_w: float
    failover_w: float
    racks: float
    rack_positions: float | None
    liquid: float
    liquid_positions: float | None


OTHERS = 2  # next best plans to search for


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan in rows. ``costs``: maps kind to (undiscounted by year, present value). ``years``: their names."""

    answer: Answer
    question: Question
    plan: Plan
    orders: tuple[Order, ...]
    retired: tuple[Order, ...]
    _: KW_ONLY
    years: tuple[str, ...]
    costs: Mapping[str, tuple[tuple[float, ...], float]]
    supply: tuple[Supply, ...]
    loads: tuple[Load, ...]

    @property
    def nothing(self) -> Nothing:
        """Return what happens if nothing is bought."""
        return self.answer.nothing

    @property
    def futures(self) -> Futures | None:
        """Return the plan in simulated futures."""
        return self.answer.futures

    @property
    def tornado(self) -> Sequence[Effect]:
        """Return the inputs that its cost depends on."""
        return self.answer.tornado

    @property
    def alternatives(self) -> Sequence[Alternative]:
        """Return the next best plans."""
        return self.answer.alternatives

    @property
    def bindings(self) -> Sequence[Binding]:
        """Return the binding limits."""
        return self.answer.bindings

    def bought(self) -> dict[str, int]:
        """Return the number bought over all periods by SKU."""
        counts: dict[str, int] = {}
        for order in self.orders:
            counts[order.sku] = counts.get(order.sku, 0) + order.count
        return counts

    @property
    def by_price(self) -> list[Binding]:
        """Return the binding limits, sorted by the saving from one more unit; limits without a saving come last."""
        return sorted(self.bindings, key=lambda b: price_of(b)[0], reverse=True)

    @property
    def others_missing(self) -> Message | None:
        """Return a note if there are fewer next best plans than ``OTHERS``; otherwise None."""
        if not self.orders or len(self.alternatives) >= OTHERS:
            return None
        return message("No other plan was found that buys less of something: there is none, or the time was too short.")

    @property
    def cash(self) -> Cash:
        """Return the capital and operating expenses by year."""
        named = self.question.year_names
        return by_year(self.answer.ledger, [self.years.index(name) for name in named])

    def in_year(self, number: int) -> float:
        """Return all costs of a year, undiscounted."""
        return sum(by_year[number] for by_year, _ in self.costs.values())

    def in_place(self, sku: str) -> int:
        """Return the servers of a SKU at the start, at all sites."""
        return sum(c.count for c in self.question.fleet if c.sku == sku and not c.ordered)

    def supply_of(self, workload: str) -> list[Supply]:
        """Return the supply of a workload, period by period."""
        return [s for s in self.supply if s.workload == workload]


def view(answer: Answer) -> PlanView:
    """Return the rows of an answer that has a plan."""
    q, plan = answer.question, answer.plan
    assert plan is not None
    named = tuple(q.year_names)
    return PlanView(
        answer,
        q,
        plan,
        tuple(_orders(q, plan)),
        tuple(_retired(q, plan)),
        years=tuple(dict.fromkeys(named)),
        costs=_costs(plan, named),
        supply=tuple(_supply(answer)),
        loads=tuple(_loads(answer.ledger)),
    )


def _moved(plan: Plan, column: str) -> list[tuple[int, str, str, int]]:
    rows = plan.stock[plan.stock[column] > 0].sort_values(["period", "site", "sku"], kind="stable")
    return [(int(r["period"]), str(r["site"]), str(r["sku"]), int(r[column])) for r in rows.to_dict("records")]


def _orders(q: Question, plan: Plan) -> list[Order]:
    orders, ordered = [], plan.stock.groupby(["sku", "period"])["buy"].sum().to_dict()
    for period, site, sku, count in _moved(plan, "buy"):
        arrives = period + q.skus[sku].delay
        money = count * q.skus[sku].price_in(ordered[sku, period]) * q.price_level(sku, period)
        orders.append(Order(period, arrives if arrives < len(q.periods) else None, site, sku, count, money=money))
    return orders


def _retired(q: Question, plan: Plan) -> list[Order]:
    return [
        Order(period, None, site, sku, count, money=count * q.skus[sku].migration)
        for period, site, sku, count in _moved(plan, "retire")
    ]


def _costs(plan: Plan, years: Sequence[str]) -> dict[str, tuple[tuple[float, ...], float]]:
    names = list(dict.fromkeys(years))
    costs = {}
    for kind in KINDS:
        rows = plan.costs[plan.costs["kind"] == kind]
        by_year = (
            rows.groupby(rows["period"].map(lambda t: years[int(t)]))["money"].sum().reindex(names, fill_value=0.0)
        )
        costs[kind] = (tuple(float(v) for v in by_year), float(rows["present"].sum()))
    return {kind: cost for kind, cost in costs.items() if any(cost[0])}


def _supply(answer: Answer) -> list[Supply]:
    q, plan, ledger = answer.question, answer.plan, answer.ledger
    assert plan is not None
    supply = []
    for i, (w, workload) in enumerate(q.workloads.items()):
        all_up, servers, share = ledger.delivered(i), ledger.pool_of(i), ledger.serving(i)
        left, runs = ledger.counted(i), ledger.expected(i)
        planned_for = np.array([point * plan.factor(w, t) for t, point in enumerate(workload.point)])
        resources = ledger.bound_by(i) if workload.needs else {}
        up, lost = (ledger.load(i, planned_for, worst=worst) for worst in (False, True))
        for t, point in enumerate(workload.point):
            planned, without = point * plan.factor(w, t), point * answer.nothing.share[t]
            row = Supply(
                w,
                t,
                point,
                planned,
                float(left[t]),
                servers=round(float(servers[t])),
                all_up=float(all_up[t]),
                nothing=without,
                load=float(up[t]),
                load_lost=float(lost[t]) if q.survives(w) else None,
                runs=float(runs[t]) if q.yields(w) else None,
                share=float(share[t]),
                pool=q.pool(w),
                bound_by={name: float(shares[t]) for name, shares in resources.items() if shares[t]},
            )
            supply.append(row)
    return supply


def _loads(n: Ledger) -> list[Load]:
    installed = n.at_sites(lambda s: 1.0, n.installed)
    up, failed = n.power(failed=False), n.power(failed=True)
    racks, liquid = n.racks(liquid=False), n.racks(liquid=True)
    return [
        Load(
            site=name,
            period=t,
            servers=round(float(installed[k, t])),
            power_w=float(n.budgeted_w[k, t]),
            power_limit_w=in_period(site.power_w, t),
            rack_units=float(n.rack_units[k, t]),
            rack_limit=in_period(site.rack_units, t),
            ports=float(n.ports[k, t]),
            port_limit=in_period(site.ports, t),
            mean_w=float(up[k, t]),
            failover_w=float(failed[k, t]),
            racks=float(racks[k, t]),
            rack_positions=in_period(site.racks, t),
            liquid=float(liquid[k, t]),
            liquid_positions=in_period(site.liquid_racks, t),
        )
        for k, (name, site) in enumerate(n.question.sites.items())
        for t in range(n.periods)
    ]


@dataclass(frozen=True, slots=True)
class Served:
    """The capacity of one server of a SKU for a workload, with its 95% interval, and the server's utilisation."""

    workload: str
    sku: str
    worth: Estimate
    source: str
    utilisation: float
    _: KW_ONLY
    reason: str


def reason(q: Question, sku: str, workload: str) -> str:
    """Return why servers reach only this utilisation: the limiting resource, or what limits their utilisation."""
    resource = q.binding(sku, workload)
    if not resource:
        return q.skus[sku].worth[workload].reason or q.workloads[workload].reason
    has, need = q.skus[sku].has[resource], q.workloads[workload].needs[resource]
    return message("its {resource} suffices for {units}", resource=resource, units=fmt.figure(has / need))


def served(q: Question) -> list[Served]:
    """Return a row for each SKU that can run a workload."""
    return [
        Served(w, s, worth.estimate, worth.source, q.utilisation(s, w), reason=reason(q, s, w))
        for w in q.workloads
        for s, sku in q.skus.items()
        if (worth := sku.worth.get(w)) is not None
    ]


def left_out(q: Question) -> list[Message]:
    """Return the SKUs that cannot run a workload within its objective, with the reasons."""
    return [
        message("{sku} cannot serve {workload}: {why}", sku=s, workload=w, why=reason)
        for s, sku in q.skus.items()
        for w, reason in sku.out.items()
    ]


def availability(name: str) -> Message:
    """Describe what happens to a workload when a failure domain is lost."""
    return {
        SURVIVES: message("survives a lost failure domain"),
        NORMAL: message("loses what is lost"),
        PREEMPTIBLE: message("may be pre-empted"),
    }[name]


def shares_with(q: Question, workload: str) -> Message | str:
    """Describe which workloads share their servers with this one."""
    pool = q.pool(workload)
    others = joined([w for w in q.pools[pool] if w != workload])
    if q.workloads[workload].pool:
        return (
            message("pool {pool}: {others}", pool=pool, others=others) if others else message("pool {pool}", pool=pool)
        )
    return others or message("none")


def price_of(binding: Binding) -> tuple[float, str]:
    """Return the saving from one more unit of a limit (for a demand: one less), and the unit; power is in kW, not W."""
    if binding.unit != "W":
        return binding.saves, binding.unit
    return binding.saves * 1000, "kW"


def trades(other: Alternative, currency: str) -> list[tuple[Message, str]]:
    """Return the differences between an alternative and the plan: name, and figure with unit."""
    units = {
        "purchases": (message("purchases"), 1.0, currency, 0),
        "running": (message("running costs"), 1.0, currency, 0),
        "servers": (message("servers"), 1.0, "", 0),
        "peak_w": (message("peak power"), 1e-3, "kW", 1),
        "rack_units": (message("rack units"), 1.0, "", 0),
        "carbon_kg": (message("carbon"), 1e-3, "t CO2e", 1),
    }
    return [
        (name, f"{other.trades[key] * factor:+,.{digits}f} {unit}".rstrip())
        for key, (name, factor, unit, digits) in units.items()
        if abs(other.trades.get(key, 0.0)) * factor >= 0.5 * 10**-digits
    ]


def cost_colours() -> dict[str, str]:
    """Return a colour for each kind of cost. The residual value, which is not an expense, is grey."""
    return {**colour_of(KINDS[:-1]), KINDS[-1]: "#BDBDBD"}


def kind(name: str) -> Message:
    """Return a kind of cost (from ``KINDS``) as a translatable word."""
    return {
        "purchase": message("purchase"),
        "rent": message("rent"),
        "energy": message("energy"),
        "support": message("support"),
        "space": message("space"),
        "migration": message("migration"),
        "carbon": message("carbon"),
        "residual": message("worth at the end"),
    }[name]
