"""Solve a capacity question: find the plan with the lowest present value, or the limits that rule out a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.conflict import conflict
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.best import GAP, best
from fleetmark.planner.capacity.question import Margin, Plan, Question
from fleetmark.planner.capacity.series import Series, figures

SECONDS = 60.0


def solve(
    question: Question, *, gap: float = GAP, seconds: float = SECONDS, margin: Margin | None = None
) -> Plan | Conflict:
    """Return the plan with the lowest present value, proven to be within ``gap`` of the best (0.01: 1%) as far as
    ``seconds`` allow.

    Return the Conflict if there is no plan. ``margin`` is the factor on each workload's demand, see ``Margin``.

    Raise FleetmarkError for an invalid question, and if time runs out before there is a plan.
    """
    margin = dict(margin or {})
    refuse(question, margin)
    plan = best(question, gap=gap, seconds=seconds, margin=margin)
    return conflict(question, margin=margin, seconds=seconds) if plan is None else plan


def refuse(question: Question, margin: Margin) -> None:
    """Raise FleetmarkError for a question that is invalid, or that has no plan even without limits."""
    q = question
    numbers: list[tuple[str, float | None]] = [(f"demand of {w}", v) for w, x in q.workloads.items() for v in x.point]
    numbers += [(f"margin of {w}", x) for w, v in margin.items() for x in (v if isinstance(v, Sequence) else (v,))]
    for s, sku in q.skus.items():
        names = "price idle_w peak_w rack_units ports lead support space migration minimum_order embodied rent term"
        names += " failure_rate repair"
        numbers += [(f"{name} of {s}", getattr(sku, name)) for name in names.split()]
        if sku.peak_w < sku.idle_w:
            raise FleetmarkError(message("{sku} draws less at its peak than idle: correct idle_w or peak_w", sku=s))
        numbers += [(f"{name} of {s}", amount) for name, amount in sku.has.items()]
        for w, worth in sku.worth.items():
            if not (math.isfinite(worth.value) and worth.value > 0):
                raise FleetmarkError(message("the worth of {sku} for {workload} must be positive", sku=s, workload=w))
    for k, site in q.sites.items():
        if any(q.withheld(k, t) >= 1 for t in range(len(q.periods))):
            raise FleetmarkError(message("{site}: spares and maintenance take all servers; lower them", site=k))
        for name in ("maintenance", "power_w", "rack_units", "ports", "racks", "liquid_racks", "energy_price"):
            series = getattr(site, name)
            numbers += [(f"{name} of {k}", value) for value in (() if series is None else _figures(q, series, name))]
        numbers += [(f"{name} of {k}", getattr(site, name)) for name in ("budget", "spares", "spare_share", "pue")]
    numbers += [("energy_price", value) for value in _figures(q, q.energy_price, "energy_price")]
    numbers += [
        ("reviews", q.reviews),
        ("reviewed", q.reviewed),
        ("survive", q.survive),
        ("pue", q.pue),
        ("carbon_limit", q.carbon_limit),
        ("carbon_price", q.carbon_price),
        ("grid", q.grid),
    ]
    numbers += [(f"carbon_by_year of {year}", kg) for year, kg in q.carbon_by_year.items()]
    numbers += [(f"budget of {p}", v) for p, v in zip(q.periods, q.budget, strict=False)]
    for name, value in numbers:
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise FleetmarkError(message("{what} is {value}: it must be 0 or more", what=name, value=value))
    if q.survive > 2:
        raise FleetmarkError(message("survive is {n}: at most 2 failure domains at once", n=q.survive))
    _refuse_workloads(q)
    if not any(c.count for c in q.fleet) and all(sku.price is None for sku in q.skus.values()):
        raise FleetmarkError(message("no server is in place and none is for sale: give a SKU a price"))


def _figures(q: Question, series: Series, name: str) -> tuple[float, ...]:
    """Return the figures of a series. Raise FleetmarkError if their number differs from the number of periods."""
    if isinstance(series, tuple) and len(series) != len(q.periods):
        raise FleetmarkError(
            message("{what} has {n} figures for {m} periods", what=name, n=len(series), m=len(q.periods))
        )
    return figures(series)


def _refuse_workloads(q: Question) -> None:
    for w, work in q.workloads.items():
        if len(work.point) != len(q.periods):
            raise FleetmarkError(message("the demand of {workload} must have a value for each period", workload=w))
        used = [q.utilisation(s, w) for s, sku in q.skus.items() if w in sku.worth] or [work.utilisation]
        if not all(0 < u <= 1 for u in used):
            raise FleetmarkError(message("the utilisation of {workload} must be above 0 and at most 1", workload=w))
        if work.dedicated and q.yields(w):
            raise FleetmarkError(message("{workload} may be pre-empted, so it has no servers of its own", workload=w))
        in_place = {(c.sku, c.site) for c in q.fleet if c.count}
        able = any(
            w in sku.worth and (sku.price is not None or (s, k) in in_place)
            for s, sku in q.skus.items()
            for k in (work.sites or q.sites)
        )
        if any(work.point) and not able:
            raise FleetmarkError(
                message(
                    "{workload} is in demand, but no server that can run it is in place or for sale where it may run: "
                    "give a SKU its worth for it",
                    workload=w,
                )
            )
