"""Explain why a question has no plan: a set of contradicting limits, and the smallest relaxation of each limit.

An irreducible set comes from a deletion filter (Chinneck, Feasibility and Infeasibility in Optimization, 2008). The
filter drops one limit after another, and leaves it out if there is still no plan. Several orders are tried.

If the relaxation is already infeasible, the limits with a price in its elastic form are in conflict. The filter then
starts from these few limits.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis import limits
from fleetmark.planner.capacity.analysis.results import Conflict, Limit
from fleetmark.planner.capacity.best import GAP, best
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.model import build
from fleetmark.planner.capacity.question import Margin, Question
from fleetmark.planner.capacity.rows import Label
from fleetmark.planner.capacity.search import highs, search

ANY = 1.0  # gap at which any plan is accepted
PROBE = 10.0  # seconds for a single search for a plan
MOST_SETS = 400  # number of smaller sets that are tried to prove that none is in conflict
A_LITTLE = 1e-6  # relative increase of the smallest relaxation, so that rounding does not make it infeasible
SAVED = 0.4  # share of the time that is reserved for relaxations
Without = frozenset[Label]


class _Oracle:
    """Decide whether a question has a plan without some of its limits; results are cached."""

    def __init__(self, question: Question, margin: Margin, end: float) -> None:
        self.question, self.margin, self.end = question, margin, end
        self.answers: dict[tuple[Without, bool], bool | None] = {}

    def possible(self, dropped: Iterable[Label], relaxed: bool = False) -> bool | None:
        """Return whether there is a plan without the ``dropped`` limits, or None if time ran out.

        If ``relaxed`` is True, plans may use fractions of servers.
        """
        key = frozenset(dropped), relaxed
        if key not in self.answers:
            left = min(PROBE, self.end - time.monotonic())
            question = limits.without(self.question, sorted(key[0], key=str))
            self.answers[key] = None if left <= 0 else _possible(question, self.margin, left, relaxed)
        return self.answers[key]


def conflict(question: Question, *, margin: Margin, seconds: float = 60.0) -> Conflict:
    """Find the smallest reachable set of limits in conflict, for a question without a plan.

    Each limit has the smallest relaxation that is sufficient for a plan, and the cost of this plan.

    Raise FleetmarkError if time runs out before a set is found.
    """
    end = time.monotonic() + seconds
    oracle = _Oracle(question, margin, time.monotonic() + (1 - SAVED) * seconds)
    every = limits.limits(question)
    sets: list[list[Label]] = []
    sure = True
    start = _priced(question, margin)
    for order in _orders(every):
        keep, proven = _irreducible(order, start, oracle)
        sets.append(keep)
        sure = sure and proven
    least = min(sets, key=len)
    smaller, smallest = _smaller(every, least, oracle)
    least = smaller or least
    rank = {limit: j for j, limit in enumerate(every)}
    members = []
    for j, limit in enumerate(sorted(least, key=rank.__getitem__, reverse=True)):
        share = max(end - time.monotonic(), 1.0) / (len(least) - j)
        relax, cost = _relaxation(question, margin, limit, share)
        conflicts = _beside(question, margin, limit, share / 2) if relax is None else []
        named, unit = limits.name(question, limit), limits.unit(question, limit)
        members.append(Limit(named, relax, unit, cost, conflicts, scarce=_scarce(question, limit)))
    return Conflict(members, smallest and sure)


def _scarce(question: Question, limit: Label) -> dict[str, str]:
    """Return, by SKU, the resource that limits its servers for the workload.

    Return nothing if the limit is not a demand.
    """
    if limit[0] != "demand":
        return {}
    workload, in_place = str(limit[1]), {c.sku for c in question.fleet if c.count}
    able = [s for s, k in question.skus.items() if workload in k.worth and (k.price is not None or s in in_place)]
    return {s: resource for s in able if (resource := question.binding(s, workload))}


def _possible(question: Question, margin: Margin, seconds: float, relaxed: bool) -> bool | None:
    model = build(question, margin)
    if not len(model.cost):
        return not (model.low > 0).any()
    if relaxed:
        none = np.zeros_like(model.cost)
        answer = highs(model, integer=np.zeros_like(model.integer), cost=none, clock=Clock(seconds))
        return True if answer.values is not None else False if answer.infeasible else None
    result = search(model, ANY, Clock(seconds))
    return False if result is None else True if result.values is not None else None


def _priced(question: Question, margin: Margin) -> set[Label] | None:
    """Return the amounts that must grow for the relaxation to have a plan, or None if it has one already."""
    model = build(question, margin)
    if not len(model.cost):
        return None
    stretched = limits.elastic(model)
    prices = limits.duals(stretched)
    if prices is None or prices[0] <= A_LITTLE:
        return None
    return {limits.stands_for(label) for label in prices[1] if label[0] in limits.AMOUNTS}


def _orders(every: Sequence[Label]) -> Iterator[list[Label]]:
    """Return the orders in which limits are dropped: as listed, reversed, amounts first, and amounts reversed first."""
    yield list(every)
    yield list(reversed(every))
    amounts = [limit for limit in every if limit[0] in limits.AMOUNTS]
    yield [*amounts, *(limit for limit in every if limit[0] not in limits.AMOUNTS)]
    yield [*reversed(amounts), *(limit for limit in every if limit[0] not in limits.AMOUNTS)]


def _irreducible(order: list[Label], start: set[Label] | None, oracle: _Oracle) -> tuple[list[Label], bool]:
    """Return the limits that remain when dropping any one of them gives a plan, and whether that is proven."""
    keep = list(order)
    if start is not None:
        fewer = [limit for limit in order if limit not in set(order) - start or limit[0] not in limits.AMOUNTS]
        if oracle.possible(set(order) - set(fewer), relaxed=True) is False:
            keep, _ = _filtered(fewer, set(order), lambda out: oracle.possible(out, relaxed=True))
    return _filtered(keep, set(order), oracle.possible)


def _filtered(
    keep: list[Label], every: set[Label], possible: Callable[[set[Label]], bool | None]
) -> tuple[list[Label], bool]:
    """Apply the deletion filter: first to halves, then to quarters and so on down to single limits."""
    size, proven = max(len(keep) // 2, 1), True
    while True:
        j = 0
        while j < len(keep):
            rest = keep[:j] + keep[j + size :]
            answer = possible(every - set(rest))
            if answer is False:
                keep = rest
            else:
                proven = proven and not (size == 1 and answer is None)
                j += size
        if size == 1:
            return keep, proven
        size = max(size // 2, 1)


def _smaller(every: Sequence[Label], least: Sequence[Label], oracle: _Oracle) -> tuple[list[Label] | None, bool]:
    """Return a smaller set in conflict or None, and whether the smallest set is proven.

    Without demand there is always a plan, so sets without a demand are skipped.
    """
    demands = [limit for limit in every if limit[0] == "demand"]
    for size in range(1, len(least)):
        if math.comb(len(every), size) > MOST_SETS:
            return None, False
        for some in itertools.combinations(every, size):
            if any(limit in demands for limit in some):
                answer = oracle.possible(set(every) - set(some))
                if answer is None:
                    return None, False
                if answer is False:
                    return list(some), True
    return None, True


def _beside(question: Question, margin: Margin, limit: Label, seconds: float) -> list[str]:
    """Return the names of limits that conflict even without ``limit``.

    The result is empty if there is a plan without ``limit``, or if time ran out.
    """
    oracle = _Oracle(limits.without(question, [limit]), margin, time.monotonic() + seconds)
    if oracle.possible(()) is not False:
        return []
    every = [other for other in limits.limits(question) if other != limit]
    keep, proven = _irreducible(every, _priced(oracle.question, margin), oracle)
    return [limits.name(question, other) for other in keep] if proven else []


def _relaxation(question: Question, margin: Margin, limit: Label, seconds: float) -> tuple[float | None, float | None]:
    """Return the smallest relaxation of this limit that is sufficient for a plan, and the cost of that plan."""
    end = time.monotonic() + seconds
    relax: float | None
    if limit[0] in limits.AMOUNTS:
        relax, changed = _least_amount(question, margin, limit, seconds / 2)
    else:
        relax, changed = _least_step(question, margin, limit, end)
    if relax is None or changed is None:
        return None, None
    try:
        plan = best(changed, gap=GAP, seconds=max(end - time.monotonic(), 1.0), margin=margin)
    except FleetmarkError:  # time ran out: the relaxation is correct even without its cost
        plan = None
    return relax, None if plan is None else plan.objective


def _least_amount(
    question: Question, margin: Margin, limit: Label, seconds: float
) -> tuple[float | None, Question | None]:
    """Return the least amount from an elastic programme, with the bounds of a question without the limit."""
    enough = question if limit[0] == "demand" else limits.loosened(question, limit, _plenty(question, limit))
    model = limits.elastic(build(enough, margin), only=limit)
    if limit[0] != "demand":
        high = model.high.copy()
        for row, label in enumerate(model.labels):
            if limits.stands_for(label) == limit:
                period = int(label[2]) if len(label) > 2 else 0
                high[row] = limits.amount(question, limit, period) / model.units[row]
        model = replace(model, high=high)
    answer = highs(model, gap=1e-6, clock=Clock(seconds))
    if answer.values is None:
        return None, None
    row = next(r for r, label in enumerate(model.labels) if limits.stands_for(label) == limit)
    excess = max(float(answer.values[-1]), 0.0) * float(model.units[row])
    if limit[0] == "demand":  # the row includes the margin
        factor = margin.get(str(limit[1]), 1.0)
        excess /= float(factor[int(limit[2])] if isinstance(factor, Sequence) else factor)
    excess *= 1 + A_LITTLE
    return excess, limits.loosened(question, limit, excess)


def _plenty(question: Question, limit: Label) -> float:
    """Return an amount so large that the limit never binds."""
    return 1e9 * max(limits.amount(question, limit), 1.0)


def _least_step(question: Question, margin: Margin, limit: Label, end: float) -> tuple[float | None, Question | None]:
    """Return the first step of a rule that gives a plan; rules are relaxed in integer steps."""
    for step, changed in _steps(question, limit):
        left = min(PROBE, end - time.monotonic())
        if left <= 0:
            break
        if _possible(changed, margin, left, relaxed=False):
            return float(step), changed
    return None, None


def _steps(question: Question, limit: Label) -> Iterator[tuple[int, Question]]:
    kind = limit[0]
    if kind in limits.ALL:
        yield 1, limits.without(question, [limit])
    elif kind == "sites":
        work = question.workloads[str(limit[1])]
        others = [k for k in question.sites if k not in work.sites]
        for n in range(1, len(others) + 1):
            for more in itertools.islice(itertools.combinations(others, n), MOST_SETS):
                wider = replace(work, sites=work.sites | set(more))
                yield n, replace(question, workloads={**question.workloads, work.name: wider})
    else:
        steps = len(question.periods) if kind == "age limit" else int(limits.amount(question, limit))
        for n in range(1, steps + 1):
            yield n, limits.loosened(question, limit, n)
