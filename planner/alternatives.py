"""The next best plans that are made differently: without something that the better ones buy."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence

import numpy as np

from fleetmark.said import said
from planner._milp import build
from planner._search import highs
from planner.capacity import TRADES, Alternative, Plan, Question
from planner.costs import carbon
from planner.solve import best

Bans = frozenset[tuple[str, str]]
LEAST_GAP = 0.002
MOST_TRIED = 40  # combinations of what is left out whose relaxation is looked at


def alternatives(question: Question, plan: Plan, most: int = 2, *, seconds: float = 60.0) -> list[Alternative]:
    """The ``most`` cheapest other plans, made differently: each lacks a SKU that the plan buys, and one that each
    alternative before it buys. Where there are no more of these, the same of SKUs at sites. Fewer where there is no
    other way, or ``seconds`` do not suffice.
    """
    end = time.monotonic() + seconds
    found: list[Alternative] = []
    for by_site in (False, True):
        while len(found) < most and time.monotonic() < end:
            others = [plan, *(a.plan for a in found)]
            left_out = [_bought(p, by_site) for p in others]
            if not left_out[0] or (by_site and len(question.sites) == 1):
                break
            share = (end - time.monotonic()) / (most - len(found))
            nearest = _cheapest(question, plan, _hitting(left_out), share)
            if nearest is None:
                break
            found.append(nearest)
    return sorted(found, key=lambda a: a.extra)


def trades(question: Question, plan: Plan) -> dict[str, float]:
    """What plans are compared on, see ``TRADES``."""
    stock = plan.stock
    purchases = float(plan.costs.loc[plan.costs["kind"] == "purchase", "present"].sum())
    last = stock[stock["period"] == len(question.periods) - 1]
    units = sum(n * question.skus[s].rack_units for s, n in zip(last["sku"], last["installed"], strict=True))
    values = (
        purchases,
        plan.objective - purchases,
        float(last["installed"].sum()),
        float(last["peak_w"].sum()),
        float(units),
        carbon(question, stock, plan.use),
    )
    return dict(zip(TRADES, values, strict=True))


def _bought(plan: Plan, by_site: bool) -> set[tuple[str, str]]:
    """(SKU, site) that the plan buys, or (SKU, "") for all sites together."""
    some = plan.stock[plan.stock["buy"] > 0]
    return {(s, k if by_site else "") for s, k in zip(some["sku"], some["site"], strict=True)}


def _hitting(sets: Sequence[Iterable[tuple[str, str]]]) -> list[Bans]:
    """The smallest choices that have something of each set."""
    choices = {
        frozenset(choice) for choice in itertools.islice(itertools.product(*map(sorted, sets)), 100 * MOST_TRIED)
    }
    least = [c for c in choices if not any(other < c for other in choices)]
    return sorted(least, key=lambda c: (len(c), sorted(c)))[:MOST_TRIED]


def _cheapest(question: Question, plan: Plan, choices: Sequence[Bans], seconds: float) -> Alternative | None:
    """The cheapest plan that leaves out one of the choices, in the order of what their relaxations cost."""
    end = time.monotonic() + seconds
    bounds: list[tuple[float, int]] = []
    for j, choice in enumerate(choices):
        model = build(question, plan.margin, _banned(question, choice))
        if not len(model.cost):
            continue
        relaxed = highs(model, whole=np.zeros_like(model.whole), seconds=max(end - time.monotonic(), 1.0))
        if not relaxed.infeasible:
            bounds.append((relaxed.bound * model.scale, j))
    nearest: tuple[Plan, Bans] | None = None
    least = math.inf
    for bound, j in sorted(bounds):
        left = end - time.monotonic()
        if (nearest is not None and bound >= nearest[0].objective) or left <= 0:
            least = min(least, bound)
            break
        made = best(
            question,
            gap=max(plan.gap, LEAST_GAP),
            seconds=max(left, 1.0),
            margin=plan.margin,
            banned=_banned(question, choices[j]),
        )
        if made is None:
            continue
        least = min(least, made.bound)
        if nearest is None or made.objective < nearest[0].objective:
            nearest = made, choices[j]
    if nearest is None:
        return None
    made, choice = nearest
    before, after = trades(question, plan), trades(question, made)
    names = [said("{sku} at {site}", sku=s, site=k) if k else s for s, k in sorted(choice)]
    return Alternative(
        name=said("without {what}", what=", ".join(names)),
        plan=made,
        extra=made.objective - plan.objective,
        least=min(least, made.objective) - plan.objective,
        trades={what: after[what] - before[what] for what in TRADES},
    )


def _banned(q: Question, choice: Bans) -> Bans:
    return frozenset((s, place) for s, k in choice for place in ([k] if k else q.sites))
