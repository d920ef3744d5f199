"""Define the rows for purchases: orders, lots, price breaks, residual value and supply."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fleetmark.planner.capacity.rows import Rows
from fleetmark.planner.capacity.shape import Ints, Shape


def purchases(rows: Rows, shape: Shape) -> None:
    """Add all rows that this module defines."""
    _orders(rows, shape)
    _breaks(rows, shape)
    _residual(rows, shape)
    _supply(rows, shape)


def _orders(rows: Rows, shape: Shape) -> None:
    """Require an order to be 0 or at least its minimum, and to consist of whole lots."""
    x, y, m = shape.columns("x"), shape.columns("y"), shape.columns("m")
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


def _breaks(rows: Rows, shape: Shape) -> None:
    """Allow at most one price break of a SKU in a period: the last one at or below the ordered quantity.

    The price applies to all servers of the SKU ordered in that period.
    """
    x, b, q = shape.columns("x"), shape.columns("b"), shape.columns("q")
    for s in dict.fromkeys(s for s, _ in shape.broken):
        sku, here = shape.question.skus[s], [p for p, pair in enumerate(shape.pairs) if pair[0] == s]
        mine = [j for j, (name, _) in enumerate(shape.broken) if name == s]
        labels = [("price break", s, t) for t in range(shape.periods)]
        largest = float(shape.order[here].sum(axis=0).max(initial=0.0))
        tops = [*(least - 1.0 for least, _ in sku.breaks[1:]), largest]
        for j, top in zip(mine, tops, strict=True):
            priced = [i for i, (_, number) in enumerate(shape.priced) if number == j]
            for sign, count in ((1.0, sku.breaks[shape.broken[j][1]][0]), (-1.0, top)):
                r = rows.add(labels, 0.0, np.inf)
                rows.put(r, q[priced], sign)
                rows.put(r, b[j], -sign * count)
        first = sku.breaks[0][0] - 1.0
        below = rows.add(labels, -np.inf, first)  # without a price break, the order is smaller than the first one
        rows.put(below, x[here], 1.0)
        rows.put(below, q[[i for i, (_, number) in enumerate(shape.priced) if number in mine]], -1.0)
        rows.put(below, b[mine], first)
        rows.put(rows.add(labels, -np.inf, 1.0), b[mine], 1.0)
        for p in here:
            r = rows.add(labels, 0.0, np.inf)
            rows.put(r, x[p], 1.0)
            rows.put(r, q[[i for i, (pair, _) in enumerate(shape.priced) if pair == p]], -1.0)


def _residual(rows: Rows, shape: Shape) -> None:
    """Limit residual value to servers that were bought and are in place at the end."""
    x, i, w = shape.columns("x"), shape.columns("i"), shape.columns("w")
    for j, p in enumerate(shape.kept):
        delay = shape.skus[p].delay
        r = rows.add([("kept", p, t) for t in range(shape.periods)], -np.inf, 0.0)
        rows.put(r, w[j], 1.0)
        rows.put(r[delay:], x[p, : max(shape.periods - delay, 0)], -1.0)
        end = rows.add([("kept", p)], -np.inf, 0.0)
        rows.put(end, w[j], 1.0)
        rows.put(end, i[p, -1], -1.0)


def _supply(rows: Rows, shape: Shape) -> None:
    """Limit the orders of a SKU or from a vendor, by period."""
    q, x = shape.question, shape.columns("x")
    for j, supply in enumerate(q.supply):
        skus = q.supplied(supply)
        mine = [p for p, (s, _) in enumerate(shape.pairs) if s in skus]
        periods = range(shape.periods) if supply.period is None else [supply.period]
        r = rows.add([("supply", j, t) for t in periods], -np.inf, float(supply.maximum))
        rows.put(r, x[mine][:, list(periods)], 1.0)


def discounts(rows: Rows, shape: Shape, row: Ints, pairs: Iterable[int], unit: float, periods: slice) -> None:
    """Add the discounts that price breaks give on purchases of these pairs."""
    here = set(pairs)
    for j, (p, b) in enumerate(shape.priced):
        if p in here:
            off = shape.skus[p].breaks[shape.broken[b][1]][1] - (shape.skus[p].price or 0.0)
            rows.put(row, shape.columns("q")[j, periods], off / unit * shape.price_levels[p, periods])
