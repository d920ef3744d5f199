"""A capacity question as a sparse mixed-integer programme for HiGHS.

Variables are counts per pair (a SKU at a site where it is in place or can be bought) and period: ``x`` ordered, ``d``
retired, ``i`` installed, ``n`` active; ``a`` servers that work for a workload with everything up; ``r`` more of them
that it needs when a failure domain is gone; ``e`` all servers of a dedicated workload; ``g`` work that a site gives a
workload that must survive a failure, ``r`` included;
``z`` whether a SKU is in use at a site with spares; ``y`` whether an order is placed for a
SKU with a minimum; ``m`` how many lots are ordered; ``b`` whether a price break of a SKU is reached, and ``q`` how many
of those ordered have its price; ``w`` bought servers that are in place at the end and worth something. Rows carry
labels, which lead back to the limits. Money and work are scaled because HiGHS's tolerances are absolute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from planner.capacity.question import Margin, Question

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Label = tuple[str | int, ...]
Caps = Mapping[tuple[str, str], int]
"""(sku, site), or (sku, "") for all sites together, to the most servers bought over all periods."""
NEAR = 1e-9  # a count this close above a whole number is that number


class Shape:
    """The variables of a question and their columns.

    ``pairs``: (sku, site) of x, d, i, n. ``combos``: (pair, workload) of a. ``lasting``: the combos of r, ``apart``
    those of e. ``gives``: (workload, site) of g.
    ``spared``, ``ordered`` and ``lots``: pairs of z, y and m. ``broken``: (SKU, number of its price break) of b;
    ``priced``: (pair, number in ``broken``) of q; ``kept``: pairs of w. ``demand``: workload to demand by period,
    margin included. ``start``: servers in place, per pair; ``placed``: arrivals of orders placed before, per pair and
    period. ``caps``: limits on purchases; a pair with a cap of 0 is not for sale.
    """

    def __init__(self, q: Question, margin: Margin, caps: Caps) -> None:
        self.question, self.caps = q, caps
        self.periods = len(q.periods)
        in_place = {(c.sku, c.site) for c in q.fleet if c.count}
        self.pairs = [(s, k) for s in q.skus for k in q.sites if (s, k) in in_place or self.sold(s, k)]
        self.skus = [q.skus[s] for s, _ in self.pairs]
        self.sites = [q.sites[k] for _, k in self.pairs]
        number = {pair: p for p, pair in enumerate(self.pairs)}
        self.start = np.zeros(len(self.pairs))
        self.placed = np.zeros((len(self.pairs), self.periods))
        for c in q.fleet:
            if c.count and c.arrives is None:
                self.start[number[c.sku, c.site]] += c.count
            elif c.count and c.arrives is not None:
                self.placed[number[c.sku, c.site], c.arrives] += c.count
        self.demand = {
            w: np.array(v.point, dtype=float) * np.asarray(margin.get(w, 1.0)) for w, v in q.workloads.items()
        }
        self.combos = [
            (p, w)
            for p, (s, k) in enumerate(self.pairs)
            for w, work in q.workloads.items()
            if w in q.skus[s].worth and (not work.sites or k in work.sites) and self.demand[w].any()
        ]
        self.lasting = np.array([j for j, (_, w) in enumerate(self.combos) if q.survives(w)], dtype=np.int64)
        self.apart = np.array([j for j, (_, w) in enumerate(self.combos) if q.workloads[w].dedicated], dtype=np.int64)
        self.gives = sorted({(self.combos[j][1], self.pairs[self.combos[j][0]][1]) for j in self.lasting.tolist()})
        self.spared = [p for p, site in enumerate(self.sites) if site.spares > 0]
        self.ordered = [p for p, sku in enumerate(self.skus) if sku.minimum_order > 1 and self.sold(*self.pairs[p])]
        n = len(self.pairs)
        self.count = {"x": n, "d": n, "i": n, "n": n, "a": len(self.combos)}
        self.count |= {"r": len(self.lasting), "e": len(self.apart), "g": len(self.gives)}
        self.count |= {"z": len(self.spared), "y": len(self.ordered)}
        self._of_prices()
        self.first, self.total = {}, 0
        for block, size in self.count.items():
            self.first[block] = self.total
            self.total += size * self.periods

    def _of_prices(self) -> None:
        """The variables of lots, price breaks and residual value."""
        buyable = [p for p, pair in enumerate(self.pairs) if self.sold(*pair)]
        self.lots = [p for p in buyable if self.skus[p].lot > 1]
        names = dict.fromkeys(self.pairs[p][0] for p in buyable)
        self.broken = [(s, j) for s in names for j in range(len(self.question.skus[s].breaks))]
        self.priced = [(p, b) for b, (s, _) in enumerate(self.broken) for p in buyable if self.pairs[p][0] == s]
        self.kept = [p for p in buyable if self.skus[p].residual > 0]
        self.count |= {"m": len(self.lots), "b": len(self.broken), "q": len(self.priced), "w": len(self.kept)}

    def sold(self, sku: str, site: str) -> bool:
        """Whether it can be bought there and arrives within the horizon."""
        s = self.question.skus[sku]
        left_out = 0 in (self.caps.get((sku, site)), self.caps.get((sku, "")))
        in_time = s.price is not None and s.delay < self.periods
        return in_time and not left_out and self.question.fits(sku, site)

    def at(self, block: str, which: npt.ArrayLike | None = None) -> Ints:
        """Columns of a block's variables over all periods: (count, periods), or (periods,) for a single one."""
        j = np.arange(self.count[block]) if which is None else np.asarray(which, dtype=np.int64)
        return self.first[block] + j[..., None] * self.periods + np.arange(self.periods)

    def part(self, values: Floats, block: str) -> Floats:
        """A block of a vector of variables, (count, periods)."""
        size = self.count[block] * self.periods
        return values[self.first[block] : self.first[block] + size].reshape(self.count[block], self.periods)

    @cached_property
    def pair_of(self) -> Ints:
        """The pair of each combo."""
        return np.array([p for p, _ in self.combos], dtype=np.int64)

    @cached_property
    def worth(self) -> Floats:
        """Work that one server of each combo does at its highest utilisation."""
        q = self.question
        return np.array([q.rate(self.skus[p].name, w) for p, w in self.combos])

    @cached_property
    def yields(self) -> npt.NDArray[np.bool_]:
        """The combos whose workload may be pre-empted."""
        return np.array([self.question.yields(w) for _, w in self.combos], dtype=bool)

    def servers(self, values: Floats) -> tuple[Floats, Floats]:
        """(combo, period): servers that are there for the workload, and those that work with everything up."""
        working = self.part(values, "a")
        servers = working.copy()
        servers[self.lasting] += self.part(values, "r")
        servers[self.apart] = self.part(values, "e")
        return servers, np.minimum(working, servers)

    @cached_property
    def unit(self) -> dict[str, float]:
        """Workload to its unit of work in the rows: the geometric mean of the work of one server."""
        logs: dict[str, list[float]] = {}
        for (_, w), one in zip(self.combos, np.log(self.worth), strict=True):
            logs.setdefault(w, []).append(float(one))
        return {w: float(np.exp(np.mean(each))) for w, each in logs.items()}

    @cached_property
    def needed(self) -> Floats:
        """The most servers that are useful per combo and period: enough to meet the demand alone."""
        need = np.array([self.demand[w] for _, w in self.combos]).reshape(-1, self.periods) / self.worth[:, None]
        need[self.apart] = np.ceil(need[self.apart] - NEAR)
        return need

    @cached_property
    def remaining(self) -> Floats:
        """Servers in place at the start or ordered before that are within their age limit, per pair and period."""
        left = np.zeros((len(self.pairs), self.periods))
        number = {pair: p for p, pair in enumerate(self.pairs)}
        for c in self.question.fleet:
            limit = self.question.skus[c.sku].age_limit
            if c.count:
                first = c.arrives or 0
                left[number[c.sku, c.site], first : None if limit is None else first + max(limit - c.age, 0)] += c.count
        return left

    @cached_property
    def most(self) -> Floats:
        """The most active servers that are useful and have room, per pair and period. More would only add cost."""
        most = np.zeros((len(self.pairs), self.periods))
        np.add.at(most, self.pair_of, self.needed)
        most = np.ceil(most - NEAR)
        for p, (sku, site) in enumerate(zip(self.skus, self.sites, strict=True)):
            for limit, each in (
                (site.power_w, sku.budgeted_w),
                (site.rack_units, sku.rack_units),
                (site.ports, sku.ports),
            ):
                if limit is not None and each > 0:
                    most[p] = np.minimum(most[p], max(np.floor(limit / each + NEAR) - site.spares, 0))
            early = sku.delay if self.sold(*self.pairs[p]) else self.periods
            old = np.maximum(self.remaining[p, :early] - site.spares, 0)
            most[p, :early] = np.minimum(most[p, :early], old)
        return most

    @cached_property
    def order(self) -> Floats:
        """The largest useful order, per pair and period."""
        order = np.zeros((len(self.pairs), self.periods))
        for p, (sku, site) in enumerate(zip(self.skus, self.sites, strict=True)):
            if self.sold(*self.pairs[p]) and self.most[p].any():
                useful = max(self.most[p].max() + site.spares, sku.minimum_order, *(least for least, _ in sku.breaks))
                order[p, : self.periods - sku.delay] = np.ceil(useful / sku.lot) * sku.lot
        return order


@dataclass(frozen=True, slots=True)
class Model:
    """min cost @ v with low <= rows @ v <= high and lower <= v <= upper; ``integer`` marks the integers. ``labels``:
    one per row. ``units``: the amount of the limit's unit that is 1 in the row. ``scale``: money per unit of ``cost``.
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
    """The programme of a question, demands multiplied by ``margin``, purchases within ``caps``."""
    shape = Shape(question, margin, caps or {})
    cost = _money(shape)
    scale = float(cost.max(initial=0.0)) / 1000 or 1.0
    upper, integer = np.full(shape.total, np.inf), np.zeros(shape.total, dtype=bool)
    useful = {"a": shape.needed, "r": shape.needed[shape.lasting], "e": shape.needed[shape.apart]}
    for block, most in ({"x": shape.order, "n": shape.most} | useful).items():
        upper[shape.at(block)] = most
    upper[shape.at("z")] = upper[shape.at("y")] = upper[shape.at("b")] = 1.0
    upper[_closed(shape)] = 0.0
    for block in ("x", "d", "n", "e", "z", "y", "m", "b"):
        integer[shape.at(block)] = True
    rows = _Rows()
    _stock(rows, shape)
    _use(rows, shape)
    _orders(rows, shape)
    _breaks(rows, shape)
    _residual(rows, shape)
    _demand(rows, shape)
    _limits(rows, shape)
    _supply(rows, shape)
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


class _Rows:
    """Rows of the matrix, collected piece by piece."""

    def __init__(self) -> None:
        self.row: list[Ints] = []
        self.col: list[Ints] = []
        self.value: list[Floats] = []
        self.low: list[Floats] = []
        self.high: list[Floats] = []
        self.units: list[Floats] = []
        self.labels: list[Label] = []

    def add(self, labels: Sequence[Label], low: npt.ArrayLike, high: npt.ArrayLike, unit: float = 1.0) -> Ints:
        """Add rows and return their numbers. ``low`` and ``high`` are in units of ``unit``."""
        n = len(labels)
        self.units.append(np.full(n, unit))
        self.low.append(np.array(np.broadcast_to(np.asarray(low, dtype=float), n)))
        self.high.append(np.array(np.broadcast_to(np.asarray(high, dtype=float), n)))
        self.labels += labels
        return np.arange(len(self.labels) - n, len(self.labels))

    def put(self, row: npt.ArrayLike, col: npt.ArrayLike, value: npt.ArrayLike) -> None:
        """Set coefficients; the three arguments are broadcast against one another."""
        r, c, v = np.broadcast_arrays(row, col, value)
        self.row.append(r.ravel())
        self.col.append(c.ravel())
        self.value.append(v.ravel().astype(float))

    def matrix(self, columns: int) -> sparse.csr_array:
        """The matrix of all rows so far."""
        empty = np.zeros(0, dtype=np.int64)
        where = (np.concatenate([empty, *self.row]), np.concatenate([empty, *self.col]))
        size = (len(self.labels), columns)
        return sparse.csr_array(sparse.coo_array((np.concatenate([np.zeros(0), *self.value]), where), shape=size))


def _money(shape: Shape) -> Floats:
    """Present value of one more of each variable."""
    q = shape.question
    weight = np.array([q.weight(t) for t in range(shape.periods)])
    skus = shape.skus
    watt = np.array([q.watt(k) for _, k in shape.pairs])
    swing = [(skus[p].peak_w - skus[p].idle_w) * q.utilisation(skus[p].name, w) for p, w in shape.combos]
    each = {
        "x": np.array([(s.price or 0.0) + q.carbon_price / 1000 * s.embodied for s in skus]),
        "d": np.array([s.migration for s in skus]),
        "i": np.array([(s.support + s.space) * q.years for s in skus]),
        "n": watt * np.array([s.idle_w for s in skus]),
        "a": watt[shape.pair_of] * np.array(swing),
    }
    cost = np.zeros(shape.total)
    for block, money in each.items():
        cost[shape.at(block)] = np.outer(money, weight)
    for j, (p, b) in enumerate(shape.priced):
        cost[shape.at("q")[j]] = weight * (skus[p].breaks[shape.broken[b][1]][1] - (skus[p].price or 0.0))
    years = q.years * np.arange(shape.periods, 0, -1)  # of age at the end, by the period of arrival
    for j, p in enumerate(shape.kept):
        cost[shape.at("w")[j]] = -weight[-1] * skus[p].least_price * skus[p].residual ** years
    return cost


def _closed(shape: Shape) -> Ints:
    """The columns that are 0: retirements outside of a site's windows, and residual value beyond an age limit."""
    columns = [np.zeros(0, dtype=np.int64)]
    for p, site in enumerate(shape.sites):
        if site.windows is not None:
            columns.append(shape.at("d")[p, [t for t in range(shape.periods) if t not in site.windows]])
    for j, p in enumerate(shape.kept):
        limit = shape.skus[p].age_limit
        columns.append(shape.at("w")[j, : 0 if limit is None else max(shape.periods - limit, 0)])
    return np.concatenate(columns)


def _stock(rows: _Rows, shape: Shape) -> None:
    """i_t = i_(t-1) + x_(t-lead) - d_t; servers leave at their age limit, the oldest first."""
    x, d, i = (shape.at(block) for block in "xdi")
    for p, sku in enumerate(shape.skus):
        held = shape.placed[p].copy()
        held[0] += shape.start[p]
        r = rows.add([("stock", p, t) for t in range(shape.periods)], held, held)
        rows.put(r, i[p], 1.0)
        rows.put(r[1:], i[p, :-1], -1.0)
        rows.put(r, d[p], 1.0)
        rows.put(r[sku.delay :], x[p, : max(shape.periods - sku.delay, 0)], -1.0)
        if sku.age_limit is None:
            continue
        gone = shape.start[p] + np.cumsum(shape.placed[p]) - shape.remaining[p]
        r = rows.add([("age", p, t) for t in range(shape.periods)], gone, np.inf)
        late, early = np.tril_indices(shape.periods)
        rows.put(r[late], d[p, early], 1.0)
        delay = sku.delay + sku.age_limit
        late, early = np.tril_indices(max(shape.periods - delay, 0))
        rows.put(r[late + delay], x[p, early], -1.0)


def _use(rows: _Rows, shape: Shape) -> None:
    """Used servers are active, active servers are installed, and spares are kept for a SKU that is active.

    Twice: with a failure domain gone, when work that may be pre-empted makes room, and with everything up, when it runs
    on the servers that the others do not need then.
    """
    n, i, z, x, a, e = (shape.at(block) for block in "nizxae")
    labels = [(p, t) for p in range(len(shape.pairs)) for t in range(shape.periods)]
    shared = np.ones(len(shape.combos), dtype=bool)
    shared[shape.apart] = False
    stays = np.flatnonzero(shared & ~shape.yields)
    r = rows.add([("use", *label) for label in labels], 0.0, np.inf).reshape(n.shape)
    rows.put(r, n, 1.0)
    rows.put(r[shape.pair_of[stays]], a[stays], -1.0)
    reserve = np.flatnonzero(shared[shape.lasting])
    rows.put(r[shape.pair_of[shape.lasting[reserve]]], shape.at("r", reserve), -1.0)
    rows.put(r[shape.pair_of[shape.apart]], e, -1.0)
    if shape.yields.any():
        r = rows.add([("normal use", *label) for label in labels], 0.0, np.inf).reshape(n.shape)
        rows.put(r, n, 1.0)
        rows.put(r[shape.pair_of[shared]], a[shared], -1.0)
        rows.put(r[shape.pair_of[shape.apart]], e, -1.0)
    if len(shape.apart):
        labels_apart = [("dedicated", j, t) for j in range(len(shape.apart)) for t in range(shape.periods)]
        r = rows.add(labels_apart, 0.0, np.inf).reshape(e.shape)
        rows.put(r, e, 1.0)
        rows.put(r, a[shape.apart], -1.0)
        last, where = np.flatnonzero(~shared[shape.lasting]), {c: j for j, c in enumerate(shape.apart.tolist())}
        rows.put(r[[where[c] for c in shape.lasting[last].tolist()]], shape.at("r", last), -1.0)
    r = rows.add([("active", *label) for label in labels], 0.0, np.inf).reshape(n.shape)
    rows.put(r, i, 1.0)
    rows.put(r, n, -1.0)
    for j, p in enumerate(shape.spared):
        rows.put(r[p], z[j], -shape.sites[p].spares)
        in_use = rows.add([("in use", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(in_use, z[j], shape.most[p])
        rows.put(in_use, n[p], -1.0)
        # Implied for integer z, but tighter for fractions: all installed servers but the spares can be active.
        tighter = rows.add([("in use", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(tighter, z[j], shape.remaining[p] - shape.sites[p].spares)
        rows.put(tighter, n[p], -1.0)
        lead = shape.skus[p].delay
        late, early = np.tril_indices(max(shape.periods - lead, 0))
        rows.put(tighter[late + lead], x[p, early], 1.0)


def _orders(rows: _Rows, shape: Shape) -> None:
    """An order is 0 or at least its minimum, and of whole lots."""
    x, y, m = shape.at("x"), shape.at("y"), shape.at("m")
    for j, p in enumerate(shape.lots):
        r = rows.add([("lot", p, t) for t in range(shape.periods)], 0.0, 0.0)
        rows.put(r, x[p], 1.0)
        rows.put(r, m[j], -shape.skus[p].lot)
    for j, p in enumerate(shape.ordered):
        r = rows.add([("minimum order", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(r, x[p], 1.0)
        rows.put(r, y[j], -shape.skus[p].minimum_order)
        r = rows.add([("order", p, t) for t in range(shape.periods)], 0.0, np.inf)
        rows.put(r, y[j], shape.order[p])
        rows.put(r, x[p], -1.0)


def _breaks(rows: _Rows, shape: Shape) -> None:
    """At most one price break of a SKU is reached in a period: the last at or below what is ordered. All that is
    ordered has its price then.
    """
    x, b, q = shape.at("x"), shape.at("b"), shape.at("q")
    for s in dict.fromkeys(s for s, _ in shape.broken):
        sku, here = shape.question.skus[s], [p for p, pair in enumerate(shape.pairs) if pair[0] == s]
        mine = [j for j, (name, _) in enumerate(shape.broken) if name == s]
        labels = [("price break", s, t) for t in range(shape.periods)]
        most = float(shape.order[here].sum(axis=0).max(initial=0.0))
        tops = [*(least - 1.0 for least, _ in sku.breaks[1:]), most]
        for j, top in zip(mine, tops, strict=True):
            priced = [i for i, (_, number) in enumerate(shape.priced) if number == j]
            for sign, count in ((1.0, sku.breaks[shape.broken[j][1]][0]), (-1.0, top)):
                r = rows.add(labels, 0.0, np.inf)
                rows.put(r, q[priced], sign)
                rows.put(r, b[j], -sign * count)
        first = sku.breaks[0][0] - 1.0
        below = rows.add(labels, -np.inf, first)  # without a break, fewer than the first asks for
        rows.put(below, x[here], 1.0)
        rows.put(below, q[[i for i, (_, number) in enumerate(shape.priced) if number in mine]], -1.0)
        rows.put(below, b[mine], first)
        rows.put(rows.add(labels, -np.inf, 1.0), b[mine], 1.0)
        for p in here:
            r = rows.add(labels, 0.0, np.inf)
            rows.put(r, x[p], 1.0)
            rows.put(r, q[[i for i, (pair, _) in enumerate(shape.priced) if pair == p]], -1.0)


def _residual(rows: _Rows, shape: Shape) -> None:
    """What is worth something at the end was bought, and is in place then."""
    x, i, w = shape.at("x"), shape.at("i"), shape.at("w")
    for j, p in enumerate(shape.kept):
        delay = shape.skus[p].delay
        r = rows.add([("kept", p, t) for t in range(shape.periods)], -np.inf, 0.0)
        rows.put(r, w[j], 1.0)
        rows.put(r[delay:], x[p, : max(shape.periods - delay, 0)], -1.0)
        end = rows.add([("kept", p)], -np.inf, 0.0)
        rows.put(end, w[j], 1.0)
        rows.put(end, i[p, -1], -1.0)


def _supply(rows: _Rows, shape: Shape) -> None:
    """What can be ordered of a SKU or from a vendor, by period; the power of a row or a feed."""
    q, x, i = shape.question, shape.at("x"), shape.at("i")
    for j, supply in enumerate(q.supply):
        of = q.supplied(supply)
        mine = [p for p, (s, _) in enumerate(shape.pairs) if s in of]
        periods = range(shape.periods) if supply.period is None else [supply.period]
        r = rows.add([("supply", j, t) for t in periods], -np.inf, float(supply.most))
        rows.put(r, x[mine][:, list(periods)], 1.0)
    watts = np.array([s.budgeted_w for s in shape.skus])
    unit = float(watts.max(initial=0.0)) or 1.0
    for name, limit in q.domains_w.items():
        mine = [p for p, (_, k) in enumerate(shape.pairs) if name in q.domains(k)]
        r = rows.add([("domain power", name, t) for t in range(shape.periods)], -np.inf, limit / unit, unit)
        rows.put(r, i[mine], watts[mine][:, None] / unit)


def _demand(rows: _Rows, shape: Shape) -> None:
    """Demand is met with everything up; if it must survive a failure, by what any one lost domain leaves, too."""
    q, a, g = shape.question, shape.at("a"), shape.at("g")
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
        if not mine:  # nothing can run it in time: infeasible rows
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
            rows.put(r, shape.at("r", [reserve[c] for c in here]), value[here][:, None])
            rows.put(r, g[j], -1.0)
        for lost in sorted({name for k in sites[w] for name in q.domains(k)}):
            r = rows.add([("demand", w, t, lost) for t in span], need, np.inf, unit)
            left = [j for k, j in sites[w].items() if lost not in q.domains(k)]
            rows.put(r, g[left], 1.0)


def _limits(rows: _Rows, shape: Shape) -> None:
    """Power, rack units and ports of sites; money for purchases by site and by period; caps on purchases."""
    q, x, i = shape.question, shape.at("x"), shape.at("i")
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
                r = rows.add(labels, -np.inf, limit / unit[kind], unit[kind])
                rows.put(r, i[here], load[kind][here][:, None])
        if site.budget is not None:
            r = rows.add([("site budget", k)], -np.inf, site.budget / unit["money"], unit["money"])
            rows.put(r, x[here], load["money"][here][:, None])
            _off(rows, shape, r, here, unit["money"], slice(None))
    for t, money in enumerate(q.budget):
        if money is not None:
            r = rows.add([("budget", t)], -np.inf, money / unit["money"], unit["money"])
            rows.put(r, x[:, t], load["money"])
            _off(rows, shape, r, range(len(shape.pairs)), unit["money"], slice(t, t + 1))
    for (sku, place), most in shape.caps.items():
        capped = [p for p, (s, k) in enumerate(shape.pairs) if s == sku and place in ("", k)]
        if most and capped:
            rows.put(rows.add([("cap", sku, place)], -np.inf, float(most)), x[capped].ravel(), 1.0)


def _off(rows: _Rows, shape: Shape, row: Ints, pairs: Iterable[int], unit: float, when: slice) -> None:
    """What price breaks take off purchases of these pairs."""
    here = set(pairs)
    for j, (p, b) in enumerate(shape.priced):
        if p in here:
            off = shape.skus[p].breaks[shape.broken[b][1]][1] - (shape.skus[p].price or 0.0)
            rows.put(row, shape.at("q")[j, when], off / unit)
