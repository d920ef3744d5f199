"""Check that a plan meets all conditions of its question, using only the plan's tables and no solver code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from fleetmark.base.text import message
from fleetmark.planner.capacity.question import HOURS, KINDS, Cohort, Plan, Question, Site
from fleetmark.planner.capacity.series import Series
from fleetmark.planner.capacity.sku import Sku

TOLERANCE = 1e-6  # relative tolerance of a limit, as solvers use it
Floats = npt.NDArray[np.float64]
Counts = Mapping[tuple[str, str], Mapping[str, Floats]]  # each column of Plan.stock by (sku, site), in order of periods
WHERE = ("sku", "site", "workload", "period")
COUNTED = ("buy", "arrive", "retire", "installed", "active")


def check(question: Question, plan: Plan) -> list[str]:
    """Return the faults of a plan as sentences; the list is empty if all limits are met and all costs are right."""
    counts = _counts(plan.stock)
    faults = [*_tables(question, plan, counts)]
    if faults:  # the other checks require valid tables
        return faults
    faults += _stock(question, counts)
    faults += _use(question, plan, counts)
    faults += _demand(question, plan)
    faults += _limits(question, counts)
    faults += _money(question, plan)
    faults += _carbon(question, plan)
    return faults


def _counts(stock: pd.DataFrame) -> Counts:
    """Return the stock of each (sku, site)."""
    table = stock.sort_values("period", kind="stable")
    rows_by_pair: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(table["sku"], table["site"], strict=True)):
        rows_by_pair.setdefault(pair, []).append(row)
    columns = {c: table[c].to_numpy(float) for c in ("period", *COUNTED)}
    return {pair: {c: values[rows] for c, values in columns.items()} for pair, rows in rows_by_pair.items()}


def _over(value: float, limit: float) -> bool:
    return value > limit + TOLERANCE * max(abs(limit), 1.0)


def _tables(q: Question, plan: Plan, counts: Counts) -> Iterator[str]:
    for (s, k), table in counts.items():
        if s not in q.skus or k not in q.sites:
            yield message("the plan has {sku} at {site}, which is not in the question", sku=s, site=k)
        elif list(table["period"]) != list(range(len(q.periods))):
            yield message("the plan's rows of {sku} at {site} are not one for each period", sku=s, site=k)
    for c in q.fleet:
        if c.count and (c.sku, c.site) not in counts:
            yield message("the plan has no rows of {sku} at {site}, which is in place", sku=c.sku, site=c.site)
    for s, k, w in sorted(set(zip(plan.use["sku"], plan.use["site"], plan.use["workload"], strict=True))):
        if (s, k) not in counts:
            yield message("the plan uses {sku} at {site} without stock of it", sku=s, site=k)
        if w not in q.workloads:
            yield message("the plan has the workload {workload}, which is not in the question", workload=w)
    if not plan.use["period"].between(0, len(q.periods) - 1).all():
        yield message("the plan uses servers in a period that is not in the question")


def _stock(q: Question, counts: Counts) -> Iterator[str]:
    """Yield faults of counts: they must be integers, and each must follow from the previous period."""
    for (s, k), table in counts.items():
        sku, names = q.skus[s], {"sku": s, "site": k}
        all_counts = np.array([table[c] for c in COUNTED])
        buy, arrived, retire, installed, _ = all_counts
        for t in np.flatnonzero(((all_counts < 0) | (all_counts != np.round(all_counts))).any(axis=0)).tolist():
            yield message(
                "{sku} at {site} in {period}: counts must be whole and not negative", **names, period=q.periods[t]
            )
        sold = np.array([price is not None for price in sku.prices or [sku.price] * len(buy)])
        if (buy[~sold] > 0).any():
            yield message("{sku} is bought at {site}, but it is not for sale", **names)
        for t in np.flatnonzero((buy > 0) & (buy < sku.minimum_order)).tolist():
            n, least = int(buy[t]), sku.minimum_order
            yield message(
                "{n} {sku} are ordered for {site} in {period}; the minimum is {least}",
                **names,
                n=n,
                least=least,
                period=q.periods[t],
            )
        cohorts = [c for c in q.fleet if (c.sku, c.site) == (s, k)]
        for t in np.flatnonzero(buy % sku.lot).tolist():
            yield message(
                "{n} {sku} are ordered for {site} in {period}; they are sold by {lot}",
                **names,
                n=int(buy[t]),
                lot=sku.lot,
                period=q.periods[t],
            )
        windows = q.sites[k].windows
        for t in [t for t in np.flatnonzero(retire).tolist() if windows is not None and t not in windows]:
            yield message(
                "{sku} is retired at {site} in {period}, outside of its windows", **names, period=q.periods[t]
            )
        arrive = _later(buy, sku.lead + sku.allowance)
        for c in cohorts:
            if c.arrives is not None:
                arrive[c.arrives] += c.count
        if (arrived != arrive).any():
            yield message(
                "{sku} at {site}: arrivals are not the orders of {lead} periods before",
                **names,
                lead=sku.lead + sku.allowance,
            )
        expected = sum(c.count for c in cohorts if c.arrives is None) + np.cumsum(arrive - retire)
        if (installed != expected).any():
            t = int(np.flatnonzero(installed != expected)[0])
            yield message(
                "{sku} at {site} in {period}: {n} installed, but what is bought and retired leaves {m}",
                **names,
                period=q.periods[t],
                n=int(installed[t]),
                m=int(expected[t]),
            )
        late = np.flatnonzero(np.cumsum(retire) < _expired(sku, cohorts, arrive)).tolist()
        if late:
            yield message(
                "{sku} at {site} in {period}: servers beyond their age limit are kept",
                **names,
                period=q.periods[late[0]],
            )
        yield from _in_service(q, (s, k), table, cohorts, arrive)


def _in_service(
    q: Question, pair: tuple[str, str], table: Mapping[str, Floats], cohorts: Sequence[Cohort], arrive: Floats
) -> Iterator[str]:
    """Yield servers that leave before their term, and active ones that may be needed as spares."""
    (s, k), sku = pair, q.skus[pair[0]]
    retire, active, installed = table["retire"], table["active"], table["installed"]
    names = {"sku": s, "site": k}
    if sku.term:
        served = _expired(replace(sku, age_limit=sku.term), cohorts, arrive)
        for t in np.flatnonzero(np.cumsum(retire) > served).tolist()[:1]:
            yield message(
                "{sku} at {site} in {period}: servers are retired before their term", **names, period=q.periods[t]
            )
    for t in np.flatnonzero(active > 0).tolist():
        if not _may_be_active(q, sku, q.sites[k], t, active[t], installed[t]):
            yield message(
                "{sku} at {site} in {period}: more active than installed, less spares, maintenance and failures",
                **names,
                period=q.periods[t],
            )
            break


def _may_be_active(q: Question, sku: Sku, site: Site, t: int, active: float, installed: float) -> bool:
    """Return whether all active servers are up in a share ``quantile`` of the time, despite spares and maintenance."""
    maintained = site.maintenance[t] if isinstance(site.maintenance, tuple) else site.maintenance
    left = installed * (1 - maintained - site.spare_share) - site.spares - active
    if left < -TOLERANCE * max(installed, 1.0):
        return False
    rate = sku.failure_rate * sku.repair * q.years
    up = stats.binom.cdf(math.floor(left + TOLERANCE * max(installed, 1.0)), installed, rate / (1 + rate))
    return bool(up >= q.quantile - TOLERANCE) or not rate


def _later(buy: Floats, lead: int) -> Floats:
    return np.concatenate([np.zeros(min(lead, len(buy))), buy[: max(len(buy) - lead, 0)]])


def _expired(sku: Sku, cohorts: Sequence[Cohort], arrive: Floats) -> Floats:
    """Return the number of servers that have reached the age limit by each period."""
    gone = np.zeros_like(arrive)
    if sku.age_limit is not None:
        for c in cohorts:
            if c.arrives is None:
                gone[max(sku.age_limit - c.age, 0) :] += c.count
        gone += np.cumsum(_later(arrive, sku.age_limit))
    return gone


def _use(q: Question, plan: Plan, counts: Counts) -> Iterator[str]:
    """Yield faults of used servers: they must be active, able and allowed to run the workload, and in one pool."""
    use = plan.use
    failed: dict[tuple[str, str, int, str], float] = {}  # servers of each pool in use when a failure domain is lost
    normal: dict[tuple[str, str, int, str], float] = {}
    for s, k, w, t, servers, working in zip(*(use[c] for c in (*WHERE, "servers", "working")), strict=True):
        work = q.workloads[w]
        key = (s, k, t, f"{w} alone" if work.dedicated else work.pool and f"pool {work.pool}")
        if work.availability != "preemptible":
            failed[key] = failed.get(key, 0.0) + servers
        normal[key] = normal.get(key, 0.0) + (servers if work.dedicated else working)
        if _over(working, servers):
            yield message("{workload} at {site}: more servers work than are there for it", workload=w, site=k)
    taken: dict[tuple[str, str, int], float] = {}
    for (s, k, t, pool), servers in normal.items():
        needed = max(failed.get((s, k, t, pool), 0.0), servers)
        count = math.ceil(needed - TOLERANCE * max(needed, 1.0)) if pool else needed  # no server belongs to two pools
        taken[s, k, t] = taken.get((s, k, t), 0.0) + count
    for (s, k, t), servers in taken.items():
        active = float(counts[s, k]["active"][t])
        if _over(servers, active):
            yield message(
                "{sku} at {site} in {period}: {n} servers are used, {m} are active",
                sku=s,
                site=k,
                period=q.periods[t],
                n=servers,
                m=int(active),
            )
    yield from _able(q, plan)
    for k, w, servers in zip(use["site"], use["workload"], use["servers"], strict=True):
        if q.workloads[w].dedicated and abs(servers - round(servers)) > TOLERANCE:
            yield message("{workload} is dedicated, but has a part of a server at {site}", workload=w, site=k)
    if (use[["servers", "working"]] < 0).any(axis=None):
        yield message("a number of servers used is negative")


def _able(q: Question, plan: Plan) -> Iterator[str]:
    """Yield faults of servers that cannot run their workload or are at a site where it may not run."""
    use = plan.use
    for s, k, w in sorted(set(zip(use["sku"], use["site"], use["workload"], strict=True))):
        work, sku = q.workloads[w], q.skus[s]
        if w not in sku.worth:
            yield message("{workload} runs on {sku}, which has no worth for it", workload=w, sku=s)
        if work.sites and k not in work.sites:
            yield message("{workload} runs at {site}, which its question does not allow", workload=w, site=k)
        if work.gpus and (sku.gpus < work.gpus or sku.gpu_memory < work.gpu_memory):
            yield message("{workload} runs on {sku}, which lacks the GPUs for it", workload=w, sku=s)
        elif work.gpus and w in sku.worth and _over(sku.worth[w].value, sku.gpus // work.gpus):
            yield message("{workload} on {sku}: its worth is more than its GPUs give", workload=w, sku=s)


def _demand(q: Question, plan: Plan) -> Iterator[str]:
    """Yield unmet demands, with all servers up and in the failures that a workload must survive."""
    each = {
        (s, w): worth.value * _used(q, s, w)
        for s, sku in q.skus.items()
        for w, worth in sku.worth.items()
        if w in q.workloads
    }
    domains = {k: [d.strip() for d in site.domain.split(",") if d.strip()] or [k] for k, site in q.sites.items()}
    done: dict[tuple[str, int], float] = {}
    total: dict[tuple[str, int], float] = {}
    at_site: dict[tuple[str, int], dict[str, float]] = {}
    for s, k, w, t, servers, working in zip(*(plan.use[c] for c in (*WHERE, "servers", "working")), strict=True):
        rate = each.get((s, w), 0.0)
        done[w, t] = done.get((w, t), 0.0) + working * rate
        total[w, t] = total.get((w, t), 0.0) + servers * rate
        here = at_site.setdefault((w, t), {})
        here[k] = here.get(k, 0.0) + servers * rate
    for w, load in q.workloads.items():
        survives = load.availability == "survives" or (q.survive and not load.availability)
        for t, point in enumerate(load.point):
            need = point * plan.factor(w, t)
            have = done.get((w, t), 0.0)
            words = {"workload": w, "period": q.periods[t], "need": need, "unit": load.unit}
            if have < need * (1 - TOLERANCE):
                yield message("{workload} in {period}: {have} of {need} {unit}", have=have, **words)
            for gone in _failures(q, domains) if survives else ():
                left = total.get((w, t), 0.0) - sum(
                    rate for k, rate in at_site.get((w, t), {}).items() if gone & set(domains[k])
                )
                if left < need * (1 - TOLERANCE):
                    yield message(
                        "{workload} in {period} without {domain}: {have} of {need} {unit}",
                        domain=", ".join(sorted(gone)),
                        have=left,
                        **words,
                    )


def _failures(q: Question, domains: Mapping[str, Sequence[str]]) -> list[frozenset[str]]:
    """Return the sets of failure domains lost together: every single one, and every pair if two must be survived."""
    every = sorted({d for each_site in domains.values() for d in each_site})
    both = [frozenset((a, b)) for i, a in enumerate(every) for b in every[i + 1 :]] if q.survive > 1 else []
    return [*(frozenset((a,)) for a in every), *both]


def _used(q: Question, s: str, w: str) -> float:
    """Return the utilisation of servers: up to its limit, or up to the point at which a needed resource runs out."""
    work, sku = q.workloads[w], q.skus[s]
    if w not in sku.worth:
        return work.utilisation
    worth = sku.worth[w]
    used = work.utilisation if worth.utilisation is None else worth.utilisation
    for resource, need in work.needs.items():
        if need * worth.value * used > sku.has.get(resource, 0.0):
            used = sku.has.get(resource, 0.0) / (need * worth.value)
    return used


def _limits(q: Question, counts: Counts) -> Iterator[str]:
    """Yield violations of the limits on power, rack units, ports, racks, supply and money."""
    paid = np.zeros(len(q.periods))
    bought = _bought(counts, len(q.periods))
    yield from _supply(q, counts, bought)
    for k, site in q.sites.items():
        here = [(q.skus[s], table) for (s, place), table in counts.items() if place == k]
        spent = sum((table["buy"] * _prices(q, sku, bought[sku.name]) for sku, table in here), np.zeros_like(paid))
        paid += spent
        if site.budget is not None and _over(float(spent.sum()), site.budget):
            yield message("{site}: purchases of {n} exceed its budget of {m}", site=k, n=spent.sum(), m=site.budget)
        for sku, table in here:
            if (
                site.rack_w
                and table["buy"].any()
                and not sku.liquid
                and sku.budgeted_w > site.rack_w * max(sku.racks, 1)
            ):
                yield message(
                    "{sku} is bought for {site}, but no rack there has the power for one", sku=sku.name, site=k
                )
        for resource, limit in _room(site):
            if limit is None:
                continue
            load = sum((table["installed"] * _takes(sku, site, resource) for sku, table in here), np.zeros_like(paid))
            limits = np.broadcast_to(np.asarray(limit, dtype=float), len(q.periods))
            for t in [t for t, value in enumerate(load) if _over(value, float(limits[t]))][:1]:
                yield message(
                    "{site} in {period}: {what} of {n}, the limit is {m}",
                    site=k,
                    period=q.periods[t],
                    what=resource,
                    n=load[t],
                    m=float(limits[t]),
                )
    for t, limit in enumerate(q.budget):
        if limit is not None and _over(float(paid[t]), limit):
            yield message(
                "{period}: purchases of {n} exceed the budget of {m}", period=q.periods[t], n=paid[t], m=limit
            )


def _bought(counts: Counts, periods: int) -> dict[str, Floats]:
    """Return the number ordered in each period at all sites, by SKU."""
    bought: dict[str, Floats] = {}
    for (s, _), table in counts.items():
        bought[s] = bought.get(s, np.zeros(periods)) + table["buy"]
    return bought


def _prices(q: Question, sku: Sku, ordered: Floats) -> Floats:
    """Return the price of one server in each period."""
    prices = np.full(len(ordered), sku.price or 0.0)
    for least, price in sorted(sku.breaks):
        prices[ordered >= least] = price
    return np.asarray(prices * [_level(q, sku, t) for t in range(len(prices))])


def _level(q: Question, sku: Sku, period: int) -> float:
    """Return the ratio of the price of an order in that period to the first price."""
    if sku.prices:
        return (sku.prices[period] or 0.0) / sku.price if sku.price else 1.0
    return float((1 + sku.price_change) ** (q.years * period))


def _room(site: Site) -> list[tuple[str, Series | None]]:
    return [
        ("budgeted_w", site.power_w),
        ("rack_units", site.rack_units),
        ("ports", site.ports),
        ("racks", site.racks),
        ("liquid racks", site.liquid_racks),
    ]


def _takes(sku: Sku, site: Site, resource: str) -> float:
    """Return how much of a site's limit one server uses."""
    if resource not in ("racks", "liquid racks"):
        return float(getattr(sku, resource))
    if sku.liquid != (resource == "liquid racks"):
        return 0.0
    if sku.racks == 0 and site.rack_w and sku.budgeted_w:
        return 1 / max(site.rack_w // sku.budgeted_w, 1)
    return sku.racks


def _supply(q: Question, counts: Counts, bought: dict[str, Floats]) -> Iterator[str]:
    """Yield orders that exceed the supply, and rows or feeds whose servers draw too much power."""
    for limit in q.supply:
        ordered = sum(n for s, n in bought.items() if limit.item in (s, q.skus[s].vendor)) + np.zeros(len(q.periods))
        for t in np.flatnonzero(ordered > limit.maximum).tolist():
            if limit.period in (None, t):
                yield message(
                    "{n} of {what} are ordered in {period}; only {m} available",
                    n=int(ordered[t]),
                    what=limit.item,
                    period=q.periods[t],
                    m=limit.maximum,
                )
    for name, domain_limit in q.domains_w.items():
        inside = [k for k, site in q.sites.items() if name in [d.strip() for d in (site.domain or k).split(",")]]
        drawn = sum(
            (table["installed"] * q.skus[s].budgeted_w for (s, k), table in counts.items() if k in inside),
            np.zeros(len(q.periods)),
        )
        for t in [t for t, value in enumerate(drawn) if _over(float(value), domain_limit)][:1]:
            yield message(
                "{site} in {period}: {what} of {n}, the limit is {m}",
                site=name,
                period=q.periods[t],
                what="budgeted_w",
                n=drawn[t],
                m=domain_limit,
            )


def _money(q: Question, plan: Plan) -> Iterator[str]:
    """Yield costs that disagree with the counts, or whose present value differs from the objective."""
    expected = _costs(q, plan)
    reported = plan.costs.sort_values("period", kind="stable").set_index(["period", "kind"])[["money", "present"]]
    keys = list(expected)
    if sorted(keys) != sorted(reported.index):
        yield message("the plan does not have exactly one cost for each period and kind")
        return
    both = np.array([expected[key] for key in keys]), reported.loc[keys].to_numpy()
    off = np.abs(both[0] - both[1]) > TOLERANCE * np.maximum(np.abs(both[0]), 1.0)
    for (t, kind), wrong in zip(keys, off.any(axis=1), strict=True):
        if wrong:
            yield message(
                "the plan's cost of {kind} in {period} does not follow from its counts", kind=kind, period=q.periods[t]
            )
    total = float(sum(present for _, present in expected.values()))
    if abs(total - plan.objective) > TOLERANCE * max(abs(total), 1.0):
        yield message("the plan's present value is {n}, but its costs come to {m}", n=plan.objective, m=total)
    if plan.bound > plan.objective * (1 + TOLERANCE) + TOLERANCE:
        yield message("the plan costs {n}, less than the bound of {m} allows", n=plan.objective, m=plan.bound)


def _left_over(q: Question, plan: Plan, sku: str, site: str, installed: float) -> float:
    """Return the residual value of a SKU's orders at a site still in place at the end; the newest count first."""
    owned, mine = q.skus[sku], plan.stock[(plan.stock["sku"] == sku) & (plan.stock["site"] == site)]
    ages = [  # ages in periods at the end
        len(q.periods) - t - owned.lead - owned.allowance
        for t, n in zip(mine["period"], mine["buy"], strict=True)
        for _ in range(int(n))
    ]
    some = sorted(a for a in ages if a > 0 and (owned.age_limit is None or a <= owned.age_limit))[: int(installed)]
    price = min([owned.price or 0.0, *(each for _, each in owned.breaks)])

    def paid(age: int) -> float:
        ordered = len(q.periods) - age - owned.lead - owned.allowance
        return price * _level(q, owned, ordered)

    return float(sum(paid(age) * owned.residual ** (q.years * age) for age in some))


def _costs(q: Question, plan: Plan) -> dict[tuple[int, str], tuple[float, float]]:
    """Return money and its present value by (period, kind), computed server by server and use by use."""
    money = {(t, kind): 0.0 for t in range(len(q.periods)) for kind in KINDS}
    watts: dict[tuple[int, str], float] = {}
    columns = ("sku", "site", "period", "buy", "retire", "installed", "active")
    orders = plan.stock.pivot_table(index="sku", columns="period", values="buy", aggfunc="sum")
    prices = {s: _prices(q, q.skus[s], orders.loc[s].to_numpy(float)) for s in orders.index}
    end = len(q.periods) - 1
    for s, k, t, buy, retire, installed, active in zip(*(plan.stock[c] for c in columns), strict=True):
        sku = q.skus[s]
        money[t, "purchase"] += buy * float(prices[s][t])
        if t == end and sku.residual:
            money[end, "residual"] -= _left_over(q, plan, s, k, installed)
        money[t, "rent"] += installed * sku.rent * q.years
        money[t, "support"] += installed * sku.support * q.years
        money[t, "space"] += installed * sku.space * q.years
        money[t, "migration"] += retire * sku.migration
        money[t, "carbon"] += buy * sku.embodied * q.carbon_price / 1000
        watts[t, k] = watts.get((t, k), 0.0) + active * sku.idle_w
    for s, k, w, t, working in zip(*(plan.use[c] for c in (*WHERE, "working")), strict=True):
        sku = q.skus[s]
        watts[t, k] = watts.get((t, k), 0.0) + working * _used(q, s, w) * (sku.peak_w - sku.idle_w)
    for (t, k), drawn in watts.items():
        site = q.sites[k]
        kwh = drawn / 1000 * HOURS * q.years * (q.pue if site.pue is None else site.pue)
        written = q.energy_price if site.energy_price is None else site.energy_price
        price = written[t] if isinstance(written, tuple) else written
        money[t, "energy"] += kwh * price * (1 + q.energy_price_change) ** (q.years * t)
        money[t, "carbon"] += kwh * q.grid * q.carbon_price / 1000
    return {(t, kind): (paid, paid / (1 + q.discount) ** (q.years * t)) for (t, kind), paid in money.items()}


def _carbon(q: Question, plan: Plan) -> Iterator[str]:
    """Yield a fault for each limit that the plan's carbon emissions exceed."""
    kg = {k: HOURS * q.years / 1000 * (site.pue or q.pue) * q.grid for k, site in q.sites.items()}  # of one W
    emitted = np.zeros(len(q.periods))
    for s, k, t, buy, active in zip(*(plan.stock[c] for c in ("sku", "site", "period", "buy", "active")), strict=True):
        emitted[t] += buy * q.skus[s].embodied + active * q.skus[s].idle_w * kg[k]
    for s, k, w, t, working in zip(*(plan.use[c] for c in (*WHERE, "working")), strict=True):
        emitted[t] += working * _used(q, s, w) * (q.skus[s].peak_w - q.skus[s].idle_w) * kg[k]
    if q.carbon_limit is not None and _over(float(emitted.sum()), q.carbon_limit):
        yield message("the plan emits {n} kg CO2e, the limit is {m}", n=emitted.sum(), m=q.carbon_limit)
    for year, limit in q.carbon_by_year.items():
        kg_year = float(emitted[[name.startswith(year) for name in q.periods]].sum())
        if _over(kg_year, limit):
            yield message("the plan emits {n} kg CO2e in {year}, the limit is {m}", n=kg_year, year=year, m=limit)
