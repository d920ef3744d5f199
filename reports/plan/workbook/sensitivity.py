"""Build the tables of sensitivity: each input varied alone, live; and stored results of simulations and solves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.capacity.question import KINDS, TRADES
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.format import FIGURE_FORM
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan import tables as shown
from fleetmark.reports.plan.model import PlanView
from fleetmark.reports.plan.workbook.cells import MONEY, across, down, grid, live, names, numbers, plain, ref
from fleetmark.reports.plan.workbook.limits import able, rounded_up
from fleetmark.reports.plan.workbook.money import LAST
from fleetmark.reports.plan.workbook.numbers import Numbers, servers_for

_STEP = 0.1
_COUNT = "#,##0"
_TRADES: Mapping[str, tuple[Message, str]] = {  # an empty unit means money
    "purchases": (message("purchases"), ""),
    "running": (message("running costs"), ""),
    "servers": (message("servers"), message("servers")),
    "peak_w": (message("power at peak"), "W"),
    "rack_units": (message("rack units"), "U"),
    "carbon_kg": (message("carbon"), "kg CO2e"),
}
_PRICES: Sequence[tuple[str, Message]] = (
    ("energy", message("energy price at all sites")),
    ("carbon", message("carbon price")),
    ("rent", message("rent of all SKUs")),
    ("support", message("support of all SKUs")),
    ("space", message("space of all SKUs")),
    ("migration", message("moving off servers")),
)


def tables(n: Numbers, v: PlanView) -> Iterator[Tabular]:
    """Yield the tables of the tab."""
    hint = message("a share: a number, 0.001 to 10")
    step = Cell("", _STEP, is_input=True, limits=(0.001, 10), hint=hint, name="sensitivity_step", form="0.0%")
    columns = (*names(input=message("input")), numbers("value", message("value")))
    rows = ((Cell(message("by how much each input is moved")), step),)
    yield Tabular("step", message("Step"), columns, rows)
    yield _costs(n)
    yield _sizes(n)
    effects = [effect for effect in v.tornado if effect.size > 0]
    if effects:
        yield shown.drivers(v, effects)
    if v.futures is not None:
        yield from _simulated(n, v.futures)
    if v.bindings:
        yield shown.bindings(v)
    if v.alternatives:
        yield _alternatives(v)
    if v.answer.scenarios:
        yield shown.compared(v.answer)


def _costs(n: Numbers) -> Tabular:
    """Return the cost of the same plan with one price increased."""
    q, last = n.question, n.periods - 1
    lines: list[tuple[Message, str, float]] = [
        (label, ref("present", "total", KINDS.index(kind)), float(n.kinds[kind] @ n.weight)) for kind, label in _PRICES
    ]
    for s, name in enumerate(n.skus):
        mine = [p for p, (sku, _) in enumerate(n.pairs) if sku == name]
        bought = float((n.buy[mine] * n.paid[mine]).sum(axis=0) @ n.weight)
        formula = f"SUMPRODUCT({across('bought', s, last)},{across('weights', 0, last)})"
        lines.append((message("price of {sku}", sku=name), formula, bought))
    lines.append((message("discount rate"), "total_present_value", n.total))
    rate = "(1+question_discount*(1+sensitivity_step))"
    moved = f"SUMPRODUCT(MMULT({across('kinds', LAST + 1, last)},{rate}^-{down('periods', 'begins')}))"
    later = (1 + q.discount * (1 + _STEP)) ** (-q.years * np.arange(n.periods))
    gained = round(float(np.sum([money @ later for money in n.kinds.values()])) - n.total, 6)

    def row(i: int) -> Sequence[Cell]:
        label, formula, value = lines[i]
        adds, more = "{present}*sensitivity_step", value * _STEP
        if i == len(lines) - 1:
            adds, more = f"ROUND({moved}-total_present_value,6)", gained
        share = more / n.total if n.total else 0.0
        total = "IF(total_present_value=0,0,{adds}/total_present_value)"
        return Cell(label), live(formula, value), live(adds, more), live(total, share)

    columns = (
        *names(input=message("input")),
        numbers("present", message("present value that it stands for"), MONEY, unit=q.currency, width=16),
        numbers("adds", message("adds"), "#,##0.00", unit=q.currency, width=14),
        numbers("share", message("of the total"), "0.00%"),
    )
    title = message("Cost of this plan with one input higher (live)")
    return grid("costs_moved", title, columns, len(lines), row)


def _sizes(n: Numbers) -> Tabular:
    """Return the servers of one SKU that one workload needs, with one input changed."""
    pairs = [(i, w, s) for i, w in enumerate(n.workloads) for s in able(n, w)]
    cases = (
        ("planned", message("as planned"), "", "", 1.0),
        ("demand", message("demand up"), "*(1+sensitivity_step)", "", 1 + _STEP),
        ("worth", message("E down"), "", "*(1-sensitivity_step)", 1 / (1 - _STEP)),
        ("used", message("utilisation down"), "", "*(1-sensitivity_step)", 1 / (1 - _STEP)),
    )

    def row(line: int) -> Iterator[Cell]:
        i, w, s = pairs[line]
        yield Cell(message("{workload}, on {sku}", workload=w, sku=s))
        e, u = n.worth_cells(w, s)
        demand = f"INDEX({across('planned', i, n.periods - 1)},scenario_period)"
        planned, one = float(n.planned[i, -1]), n.question.rate(s, w)
        for _, _, more, reduction, factor in cases:
            yield live(rounded_up(f"{demand}{more}", f"{e}*{u}{reduction}"), servers_for(planned * factor, one))

    heads = (numbers(key, title, _COUNT, unit=message("servers")) for key, title, *_ in cases)
    columns = (*names(pair=message("workload, on SKU")), *heads)
    title = message("Servers needed in the period chosen in Scenarios, with one input changed (live)")
    return grid("sizes_moved", title, columns, len(pairs), row)


def _simulated(n: Numbers, f: Futures) -> Iterator[Tabular]:
    text = message(
        "In {share} of {n} futures demand is not met (95% interval {lo} to {hi}; seed {seed}); with servers kept to "
        "the workloads that Allocation gives them, in {unshared}.",
        share=fmt.share(f.shortfall.value),
        n=f"{f.draws:,}",
        lo=fmt.share(f.shortfall.lo),
        hi=fmt.share(f.shortfall.hi),
        seed=f.seed,
        unshared=fmt.share(f.unshared),
    )
    words = {"period": message("period"), "workload": message("workload"), "sku": message("SKU")}
    servers = message("servers")

    def column(name: str) -> Column:
        if name in words:
            return Column(name, words[name], "name")
        kind, _, share = name.rpartition("_p")
        if kind in ("needed", "servers"):
            return numbers(name, message("needed at p{share}", share=share), _COUNT, unit=servers)
        if kind:
            title = message("demand p{share}", share=share)
            return numbers(name, title if kind == "demand" else message("capacity p{share}", share=share), FIGURE_FORM)
        if name == "shortfall":
            return numbers(name, message("is short in"), "0.0%", unit=message("share of futures"))
        title = message("installed") if name == "installed" else message("in the plan")
        return numbers(name, title, "#,##0.##", unit=servers)

    def part(key: str, title: str, frame: pd.DataFrame, keys: Sequence[str], **more: tuple[str, ...]) -> Tabular:
        records = frame.to_dict("records")

        def row(i: int) -> Sequence[Cell]:
            return [_figure(n, name, records[i][name]) for name in keys]

        return grid(key, title, tuple(map(column, keys)), len(records), row, **more)

    needed = [f"servers_p{p}" for p in (50, 90, 95)]
    ends = [f"{kind}_p{p}" for kind in ("demand", "capacity") for p in (5, 50, 95)]
    stored = message("Simulated futures (kept as they were when the plan was made)")
    by_period = ["period", "installed", *(f"needed_p{p}" for p in (50, 90, 95))]
    yield part("simulated", stored, f.by_period, by_period, notes=(text,))
    each = ["workload", "period", "shortfall", *ends, "servers", *needed]
    yield part("simulated_workloads", message("Simulated futures of each workload"), f.table, each)
    alone = message("Alone, on the SKU that is cheapest for it")
    yield part("simulated_alone", alone, f.sizing, ["workload", "period", "sku", *needed])


def _figure(n: Numbers, name: str, value: float | str) -> Cell:
    """Return a stored figure. Numbers of needed servers are rounded up."""
    if name == "period":
        return Cell(n.question.periods[int(value)])
    if isinstance(value, str):
        return Cell(value)
    return plain(math.ceil(value - 1e-6) if name.startswith(("servers", "needed", "installed")) else value)


def _alternatives(v: PlanView) -> Tabular:
    """Return the next best plans, as differences from this plan."""
    money = v.question.currency
    columns = (
        *names(plan=message("plan")),
        numbers("extra", message("costs more"), MONEY, unit=message("{money}, present value", money=money), width=16),
        numbers("least", message("more at least, as proven"), MONEY, unit=money, width=16),
        *(numbers(key, _TRADES[key][0], MONEY, unit=_TRADES[key][1] or money) for key in TRADES),
    )
    rows = tuple(
        (Cell(o.name), plain(o.extra), plain(o.least), *(plain(o.trades.get(key)) for key in TRADES))
        for o in v.alternatives
    )
    title = message("Next best plans, and what they trade (as differences to this one; kept)")
    return Tabular("alternatives", title, columns, rows)
