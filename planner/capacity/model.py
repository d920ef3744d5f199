"""Formulate a capacity question as a sparse mixed-integer programme for HiGHS: its cost and its rows.

``Shape`` defines the variables. The label of a row identifies its limit. Money and work are scaled because HiGHS's
tolerances are absolute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fleetmark.planner.capacity.purchases import discounts, purchases
from fleetmark.planner.capacity.question import Margin, Question
from fleetmark.planner.capacity.rows import Label, Rows
from fleetmark.planner.capacity.series import in_period
from fleetmark.planner.capacity.shape import Caps, Floats, Ints, Shape


@dataclass(kw_only=True, frozen=True, slots=True)
class Model:
    """The programme min cost @ v with low <= rows @ v <= high and lower <= v <= upper.

    - ``integer``: marks the integer variables
    - ``labels``: one per row
    - ``units``: the amount of the limit's unit that corresponds to 1 in the row
    - ``scale``: the money per unit of ``cost``
    """

    shape: Shape
    cost: Floats
    lower: Floats
    upper: Floats
    integer: npt.NDArray[np.bool_]
    rows: sparse.csr_array
    low: Floats
    high: Floats
    labels: Sequence[Label]
    units: Floats
    scale: float


def build(question: Question, margin: Margin, caps: Caps | None = None) -> Model:
    """Return the programme of a question, with demands multiplied by ``margin`` and purchases limited by ``caps``."""
    shape = Shape(question, margin, caps or {})
    cost = _money(shape)
    scale = float(cost.max(initial=0.0)) / 1000 or 1.0
    upper, integer = np.full(shape.total, np.inf), np.zeros(shape.total, dtype=bool)
    useful = {"a": shape.needed, "r": shape.needed[shape.lasting], "e": shape.pooled}
    for block, bound in ({"x": shape.order, "n": shape.bounds} | useful).items():
        upper[shape.columns(block)] = bound
    upper[shape.columns("z")] = upper[shape.columns("y")] = upper[shape.columns("b")] = 1.0
    upper[_closed(shape)] = 0.0
    for block in ("x", "d", "n", "e", "z", "y", "m", "b"):
        integer[shape.columns(block)] = True
    rows = Rows()
    _stock(rows, shape)
    _use(rows, shape)
    purchases(rows, shape)
    _demand(rows, shape)
    _limits(rows, shape)
    _domains(rows, shape)
    _carbon(rows, shape)
    return Model(
        shape=shape,
        cost=cost / scale,
        lower=np.zeros(shape.total),
        upper=upper,
        integer=integer,
        rows=rows.matrix(shape.total),
        low=np.concatenate([np.zeros(0), *rows.low]),
        high=np.concatenate([np.zeros(0), *rows.high]),
        labels=rows.labels,
        units=np.concatenate([np.zeros(0), *rows.units]),
        scale=scale,
    )


def _money(shape: Shape) -> Floats:
    """Return the present value of one additional unit of each variable."""
    q = shape.question
    weight, level = np.array([q.weight(t) for t in range(shape.periods)]), shape.price_levels
    skus = shape.skus
    watt = np.array([[q.watt(k, t) for t in range(shape.periods)] for _, k in shape.pairs]).reshape(level.shape)
    swing = [(skus[p].peak_w - skus[p].idle_w) * q.utilisation(skus[p].name, w) for p, w in shape.combos]
    each = {
        "x": _column(s.price or 0.0 for s in skus) * level + _column(q.carbon_price / 1000 * s.embodied for s in skus),
        "d": _column(s.migration for s in skus),
        "i": _column((s.rent + s.support + s.space) * q.years for s in skus),
        "n": watt * _column(s.idle_w for s in skus),
        "a": watt[shape.pair_of] * _column(swing),
    }
    cost = np.zeros(shape.total)
    for block, money in each.items():
        cost[shape.columns(block)] = money * weight
    for j, (p, b) in enumerate(shape.priced):
        off = skus[p].breaks[shape.broken[b][1]][1] - (skus[p].price or 0.0)
        cost[shape.columns("q")[j]] = weight * level[p] * off
    years = q.years * np.arange(shape.periods, 0, -1)  # age at the end of the horizon, by period of arrival
    for j, p in enumerate(shape.kept):
        levels = np.array([q.level_at_arrival(skus[p].name, t) for t in range(shape.periods)])
        paid = skus[p].least_price * levels
        cost[shape.columns("w")[j]] = -weight[-1] * paid * skus[p].residual ** years
    return cost


def _column(values: Iterable[float]) -> Floats:
    """Return the values as pairs (value, 1)."""
    return np.array(list(values), dtype=float)[:, None]


def _closed(shape: Shape) -> Ints:
    """Return the columns that must be 0: retirements outside a site's windows, residual value beyond an age limit."""
    columns = [np.zeros(0, dtype=np.int64)]
    for p, site in enumerate(shape.sites):
        if site.windows is not None:
            columns.append(shape.columns("d")[p, [t for t in range(shape.periods) if t not in site.windows]])
    for j, p in enumerate(shape.kept):
        limit = shape.skus[p].age_limit
        columns.append(shape.columns("w")[j, : 0 if limit is None else max(shape.periods - limit, 0)])
    return np.concatenate(columns)


def _stock(rows: Rows, shape: Shape) -> None:
    """Add the balance i_t = i_(t-1) + x_(t-lead) - d_t. Servers leave at their age limit, the oldest first."""
    x, d, i = (shape.columns(block) for block in "xdi")
    for p, sku in enumerate(shape.skus):
        held = shape.placed[p].copy()
        held[0] += shape.start[p]
        r = rows.add([("stock", p, t) for t in range(shape.periods)], held, held)
        rows.put(r, i[p], 1.0)
        rows.put(r[1:], i[p, :-1], -1.0)
        rows.put(r, d[p], 1.0)
        rows.put(r[sku.delay :], x[p, : max(shape.periods - sku.delay, 0)], -1.0)
        if sku.term:
            _term(rows, shape, p)
        if sku.age_limit is None:
            continue
        gone = shape.start[p] + np.cumsum(shape.placed[p]) - shape.remaining[p]
        r = rows.add([("age", p, t) for t in range(shape.periods)], gone, np.inf)
        late, early = np.tril_indices(shape.periods)
        rows.put(r[late], d[p, early], 1.0)
        delay = sku.delay + sku.age_limit
        late, early = np.tril_indices(max(shape.periods - delay, 0))
        rows.put(r[late + delay], x[p, early], -1.0)


def _term(rows: Rows, shape: Shape, p: int) -> None:
    """Require servers to stay for their term: only servers that have served it may leave, the oldest first."""
    q, sku, span = shape.question, shape.skus[p], shape.periods
    mine = [c for c in q.fleet if (c.sku, c.site) == shape.pairs[p] and c.count]
    served = [sum(c.count for c in mine if c.age + t - (c.arrives or 0) >= sku.term) for t in range(span)]
    r = rows.add([("term", p, t) for t in range(span)], -np.inf, np.array(served, dtype=float))
    late, early = np.tril_indices(span)
    rows.put(r[late], shape.columns("d")[p, early], 1.0)
    late, early = np.tril_indices(max(span - sku.delay - sku.term, 0))
    rows.put(r[late + sku.delay + sku.term], shape.columns("x")[p, early], -1.0)


def _use(rows: Rows, shape: Shape) -> None:
    """Add the rows on use: used servers must be active, active servers must be installed, and active SKUs keep spares.

    Separate pools consist of whole active servers.
    """
    n, i, z, x, e = (shape.columns(block) for block in "nizxe")
    labels = [(p, t) for p in range(len(shape.pairs)) for t in range(shape.periods)]
    pools = [("pool", j, t) for j in range(len(shape.named_pools)) for t in range(shape.periods)]
    for r in _enough(rows, shape, [("use", *label) for label in labels], n, shape.pair_of, shape.own_of < 0):
        rows.put(r[np.array([p for p, _ in shape.named_pools], dtype=np.int64)], e, -1.0)
    if pools:
        _enough(rows, shape, pools, e, shape.own_of, shape.own_of >= 0)
    r = rows.add([("active", *label) for label in labels], 0.0, np.inf).reshape(n.shape)
    rows.put(r, i, 1.0 - shape.withheld)
    rows.put(r, n, -1.0)
    for j, p in enumerate(shape.spared):
        rows.put(r[p], z[j], -shape.idle[p])
        in_use = rows.add([("in use", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(in_use, z[j], shape.bounds[p])
        rows.put(in_use, n[p], -1.0)
        # Implied for integer z, but tighter for fractions: all installed servers except spares can be active.
        tighter = rows.add([("in use", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(tighter, z[j], shape.remaining[p] - shape.idle[p])
        rows.put(tighter, n[p], -1.0)
        lead = shape.skus[p].delay
        late, early = np.tril_indices(max(shape.periods - lead, 0))
        rows.put(tighter[late + lead], x[p, early], 1.0)


def _enough(
    rows: Rows, shape: Shape, labels: Sequence[Label], servers: Ints, group: Ints, some: npt.NDArray[np.bool_]
) -> list[Ints]:
    """Add the rows that require enough servers for the use of ``some`` combos; ``group`` numbers the servers of each
    combo.

    If work may be pre-empted, there are two sets of rows. In the first set, a failure domain is lost and this work
    makes room. In the second set, there is no failure and this work runs on spare servers.
    """
    a, last = shape.columns("a"), shape.lasting
    stays, reserve = np.flatnonzero(some & ~shape.yields), np.flatnonzero(some[last])
    r = rows.add(labels, 0.0, np.inf).reshape(servers.shape)
    rows.put(r, servers, 1.0)
    rows.put(r[group[stays]], a[stays], -1.0)
    rows.put(r[group[last[reserve]]], shape.columns("r", reserve), -1.0)
    if not (some & shape.yields).any():
        return [r]
    normal = rows.add([("normal use", *label[1:]) for label in labels], 0.0, np.inf).reshape(servers.shape)
    rows.put(normal, servers, 1.0)
    rows.put(normal[group[some]], a[some], -1.0)
    return [r, normal]


def _demand(rows: Rows, shape: Shape) -> None:
    """Add the rows that require demand to be met without failures, and in each failure that it must survive."""
    q, a, g = shape.question, shape.columns("a"), shape.columns("g")
    reserve = {c: j for j, c in enumerate(shape.lasting.tolist())}
    span = range(shape.periods)
    combos: dict[str, list[int]] = {}
    for j, (_, w) in enumerate(shape.combos):
        combos.setdefault(w, []).append(j)
    value = shape.worth / np.array([shape.unit[w] for _, w in shape.combos])
    sites: dict[str, dict[str, int]] = {}
    for j, (w, k) in enumerate(shape.gives):
        sites.setdefault(w, {})[k] = j
    for w, demand in shape.demand.items():
        if not demand.any():
            continue
        mine, unit = combos.get(w, []), shape.unit.get(w, 1.0)
        need = demand / unit
        if not mine:  # no server can run the workload in time, so these rows are infeasible
            rows.add([("demand", w, t) for t in span], need, np.inf, unit)
            continue
        r = rows.add([("demand", w, t) for t in span], need, np.inf, unit)
        rows.put(r, a[mine], value[mine][:, None])
        if not q.survives(w):
            continue
        for k, j in sites[w].items():
            here = [c for c in mine if shape.pairs[shape.combos[c][0]][1] == k]
            r = rows.add([("gives", w, k, t) for t in span], 0.0, 0.0)
            rows.put(r, a[here], value[here][:, None])
            rows.put(r, shape.columns("r", [reserve[c] for c in here]), value[here][:, None])
            rows.put(r, g[j], -1.0)
        for case in sorted(case for case in q.cases if any(q.is_lost(k, case) for k in sites[w])):
            r = rows.add([("demand", w, t, ", ".join(case)) for t in span], need, np.inf, unit)
            left = [j for k, j in sites[w].items() if not q.is_lost(k, case)]
            rows.put(r, g[left], 1.0)


def _limits(rows: Rows, shape: Shape) -> None:
    """Add the limits on power, rack units and ports of sites, on money by site and by period, and the caps on
    purchases.
    """
    q, x, i = shape.question, shape.columns("x"), shape.columns("i")
    load = {
        "power": np.array([s.budgeted_w for s in shape.skus]),
        "rack units": np.array([s.rack_units for s in shape.skus]),
        "ports": np.array([float(s.ports) for s in shape.skus]),
        "racks": np.array([0.0 if q.skus[s].liquid else q.positions(s, k) for s, k in shape.pairs]),
        "liquid racks": np.array([q.positions(s, k) if q.skus[s].liquid else 0.0 for s, k in shape.pairs]),
        "money": np.array([s.price or 0.0 for s in shape.skus]),
    }
    unit = {kind: float(each.max(initial=0.0)) or 1.0 for kind, each in load.items()}
    load = {kind: each / unit[kind] for kind, each in load.items()}
    for k, site in q.sites.items():
        here = [p for p, pair in enumerate(shape.pairs) if pair[1] == k]
        amounts = (site.power_w, site.rack_units, site.ports, site.racks, site.liquid_racks)
        for kind, limit in zip(("power", "rack units", "ports", "racks", "liquid racks"), amounts, strict=True):
            if limit is not None and (kind != "liquid racks" or load[kind][here].any()):
                labels = [(kind, k, t) for t in range(shape.periods)]
                limits = np.array([in_period(limit, t) for t in range(shape.periods)])
                r = rows.add(labels, -np.inf, limits / unit[kind], unit[kind])
                rows.put(r, i[here], load[kind][here][:, None])
        if site.budget is not None:
            r = rows.add([("site budget", k)], -np.inf, site.budget / unit["money"], unit["money"])
            rows.put(r, x[here], load["money"][here][:, None] * shape.price_levels[here])
            discounts(rows, shape, r, here, unit["money"], slice(None))
    for t, money in enumerate(q.budget):
        if money is not None:
            r = rows.add([("budget", t)], -np.inf, money / unit["money"], unit["money"])
            rows.put(r, x[:, t], load["money"] * shape.price_levels[:, t])
            discounts(rows, shape, r, range(len(shape.pairs)), unit["money"], slice(t, t + 1))
    for (sku, place), cap in shape.caps.items():
        capped = [p for p, (s, k) in enumerate(shape.pairs) if s == sku and place in ("", k)]
        if cap and capped:
            rows.put(rows.add([("cap", sku, place)], -np.inf, float(cap)), x[capped].ravel(), 1.0)


def _domains(rows: Rows, shape: Shape) -> None:
    """Add the limits on the power of rows and feeds."""
    q, i = shape.question, shape.columns("i")
    watts = np.array([s.budgeted_w for s in shape.skus])
    unit = float(watts.max(initial=0.0)) or 1.0
    for name, limit in q.domains_w.items():
        mine = [p for p, (_, k) in enumerate(shape.pairs) if name in q.domains(k)]
        r = rows.add([("domain power", name, t) for t in range(shape.periods)], -np.inf, limit / unit, unit)
        rows.put(r, i[mine], watts[mine][:, None] / unit)


def _carbon(rows: Rows, shape: Shape) -> None:
    """Add the limits on carbon, over all periods and by year: of energy, and of making the ordered servers."""
    q, skus = shape.question, shape.skus
    watt = np.array([q.grid * q.energy(k) for _, k in shape.pairs])  # kg CO2e of one W over a period
    swing = [(skus[p].peak_w - skus[p].idle_w) * q.utilisation(skus[p].name, w) for p, w in shape.combos]
    each = {
        "x": np.array([s.embodied for s in skus]),
        "n": watt * np.array([s.idle_w for s in skus]),
        "a": watt[shape.pair_of] * np.array(swing),
    }
    unit = max((float(kg.max(initial=0.0)) for kg in each.values()), default=0.0) or 1.0
    for year, periods, limit in q.carbon_limits:
        r = rows.add([("carbon year", year) if year else ("carbon",)], -np.inf, limit / unit, unit)
        for block, kg in each.items():
            rows.put(r, shape.columns(block)[:, periods], kg[:, None] / unit)
