"""Find the next best plans. Each buys less of something than the better plans do, or does not buy it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.results import Alternative
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.model import build
from fleetmark.planner.capacity.question import TRADES, Plan, Question
from fleetmark.planner.capacity.search import highs
from fleetmark.planner.capacity.shape import Caps

Choice = frozenset[tuple[str, str]]
"""(SKU, site), or (SKU, "") for all sites together, of which the alternative buys less."""
LEAST_GAP = 0.002
MOST_TRIED = 40  # maximum number of choices with a solved relaxation
SHARES = (0.0, 0.5, 0.75, 0.9)  # fractions of the better plans' purchases that an alternative may buy


def alternatives(question: Question, plan: Plan, limit: int = 2, *, clock: Clock | None = None) -> list[Alternative]:
    """Return the ``limit`` cheapest alternatives to ``plan``.

    Each alternative omits a SKU that the plan buys, and a SKU that each earlier alternative buys. If there are no more
    of these, alternatives omit a SKU at a site. After that, they buy at most 0.5, 0.75 or 0.9 of the quantity that any
    better plan buys. The list is shorter if there is no other plan, or if the ``clock`` (60 s) runs out.
    """
    clock = clock or Clock(60.0)
    others: list[Alternative] = []
    for share, by_site in itertools.product(SHARES, (False, True) if len(question.sites) > 1 else (False,)):
        while len(others) < limit and not clock.over():
            counts = [_bought(p, by_site) for p in (plan, *(a.plan for a in others))]
            caps = {
                key: int(share * min(count[key] for count in counts if key in count))
                for key in dict.fromkeys(itertools.chain(*counts))
            }
            above = [[key for key, count in bought.items() if count > caps[key]] for bought in counts]
            if not above[0]:
                return others
            nearest = _cheapest(question, plan, _hitting(above), caps, clock)
            if nearest is None:
                break
            others.append(nearest)
    return sorted(others, key=lambda a: a.extra)


def trades(question: Question, plan: Plan) -> dict[str, float]:
    """Return the figures used to compare plans, see ``TRADES``."""
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
        Ledger(question, stock, plan.use).carbon,
    )
    return dict(zip(TRADES, values, strict=True))


def _bought(plan: Plan, by_site: bool) -> dict[tuple[str, str], int]:
    """Return the number that the plan buys over all periods, by (SKU, site), or by (SKU, "") for all sites together."""
    some = plan.stock[plan.stock["buy"] > 0]
    counts: Counter[tuple[str, str]] = Counter()
    for sku, site, count in zip(some["sku"], some["site"], some["buy"], strict=True):
        counts[sku, site if by_site else ""] += int(count)
    return counts


def _hitting(sets: Sequence[Iterable[tuple[str, str]]]) -> list[Choice]:
    """Return the smallest choices that contain a member of each set."""
    choices = {
        frozenset(choice) for choice in itertools.islice(itertools.product(*map(sorted, sets)), 100 * MOST_TRIED)
    }
    least = [c for c in choices if not any(other < c for other in choices)]
    return sorted(least, key=lambda c: (len(c), sorted(c)))[:MOST_TRIED]


def _cheapest(
    question: Question, plan: Plan, choices: Sequence[Choice], upper: Caps, clock: Clock
) -> Alternative | None:
    """Return the cheapest plan that buys at most ``upper`` of the members of one choice.

    Choices are tried in ascending order of the cost of their relaxations.
    """
    bounds: list[tuple[float, int]] = []
    for j, choice in enumerate(choices):
        model = build(question, plan.margin, {key: upper[key] for key in choice})
        if not len(model.cost):
            continue
        relaxed = highs(model, integer=np.zeros_like(model.integer), clock=clock)
        if not relaxed.infeasible:
            bounds.append((relaxed.bound * model.scale, j))
    nearest: tuple[Plan, Choice] | None = None
    least = math.inf
    for bound, j in sorted(bounds):
        if (nearest is not None and bound >= nearest[0].objective) or clock.over():
            least = min(least, bound)
            break
        caps = {key: upper[key] for key in choices[j]}
        try:
            candidate = best(question, gap=max(plan.gap, LEAST_GAP), seconds=clock.left, margin=plan.margin, caps=caps)
        except FleetmarkError:  # a limit ended the search: keep the plan and the alternatives so far
            clock.stopped = clock.stopped or not clock.left
            least = min(least, bound)
            continue
        if candidate is None:
            continue
        least = min(least, candidate.bound)
        if nearest is None or candidate.objective < nearest[0].objective:
            nearest = candidate, choices[j]
    if nearest is None:
        return None
    candidate, choice = nearest
    before, after = trades(question, plan), trades(question, candidate)
    return Alternative(
        name=_name({key: upper[key] for key in sorted(choice)}),
        plan=candidate,
        extra=candidate.objective - plan.objective,
        least=min(least, candidate.objective) - plan.objective,
        trades={quantity: after[quantity] - before[quantity] for quantity in TRADES},
    )


def _name(caps: Caps) -> str:
    names = {(s, k): message("{sku} at {site}", sku=s, site=k) if k else s for s, k in caps}
    if any(caps.values()):
        parts = ", ".join(message("{n} {sku}", n=limit, sku=names[key]) for key, limit in caps.items())
        return message("with at most {what}", what=parts)
    return message("without {what}", what=", ".join(names.values()))
