"""Why a question has no plan: limits that cannot hold together, and by how little each would have to give way.

An irreducible set is found by leaving out one limit after the other and keeping out those without which there still is
no plan (deletion filter: Chinneck, Feasibility and Infeasibility in Optimization, 2008), in several orders. Where
already the relaxation is infeasible, the limits its elastic form puts a price on are in conflict, which leaves few.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fleetmark.base.errors import FleetmarkError
from planner.capacity import limits as of
from planner.capacity.best import GAP, best
from planner.capacity.model import Label, build
from planner.capacity.question import Conflict, Limit, Margin, Question
from planner.capacity.search import highs, search

ANY = 1.0  # the gap at which any plan will do
PROBE = 10.0  # seconds that one look for a plan may take
MOST_SETS = 400  # smaller sets that are tried to prove that there are none
A_LITTLE = 1e-6  # added to the least relaxation, so that the plan with it is not lost to rounding
SAVED = 0.4  # share of the time that is kept for relaxations
Without = frozenset[Label]


class _Oracle:
    """Says whether a question has a plan with limits left out, remembering what it said."""

    def __init__(self, question: Question, margin: Margin, end: float) -> None:
        self.question, self.margin, self.end = question, margin, end
        self.answers: dict[tuple[Without, bool], bool | None] = {}

    def possible(self, dropped: Iterable[Label], relaxed: bool = False) -> bool | None:
        """None where time did not suffice. ``relaxed``: with fractions of servers."""
        key = frozenset(dropped), relaxed
        if key not in self.answers:
            left = min(PROBE, self.end - time.monotonic())
            question = of.without(self.question, sorted(key[0], key=str))
            self.answers[key] = None if left <= 0 else _possible(question, self.margin, left, relaxed)
        return self.answers[key]


def conflict(question: Question, *, margin: Margin, seconds: float = 60.0) -> Conflict:
    """For a question without a plan: the smallest set of limits found that has none, each with the least relaxation
    that alone gives the whole question a plan, and what that plan costs.

    Raises FleetmarkError where no set is found in time.
    """
    end = time.monotonic() + seconds
    oracle = _Oracle(question, margin, time.monotonic() + (1 - SAVED) * seconds)
    every = of.limits(question)
    sets: list[list[Label]] = []
    sure = True
    start = _priced(question, margin, seconds)
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
        beside = _beside(question, margin, limit, share / 2) if relax is None else []
        members.append(Limit(of.name(question, limit), relax, of.unit(question, limit), cost, beside))
    return Conflict(members, smallest and sure)


def _possible(question: Question, margin: Margin, seconds: float, relaxed: bool) -> bool | None:
    model = build(question, margin)
    if not len(model.cost):
        return not (model.low > 0).any()
    if relaxed:
        answer = highs(model, integer=np.zeros_like(model.integer), cost=np.zeros_like(model.cost), seconds=seconds)
        return True if answer.values is not None else False if answer.infeasible else None
    result = search(model, ANY, seconds)
    return False if result is None else True if result.values is not None else None


def _priced(question: Question, margin: Margin, seconds: float) -> set[Label] | None:
    """The amounts that a relaxation without a plan would give way in; None where it has one."""
    model = build(question, margin)
    if not len(model.cost):
        return None
    stretched = of.elastic(model)
    prices = of.duals(stretched, seconds)
    if prices is None or prices[0] <= A_LITTLE:
        return None
    return {of.stands_for(label) for label in prices[1] if label[0] in of.AMOUNTS}


def _orders(every: Sequence[Label]) -> Iterator[list[Label]]:
    """In which limits are left out: rules before amounts, amounts before rules, and both backwards."""
    yield list(every)
    yield list(reversed(every))
    amounts = [limit for limit in every if limit[0] in of.AMOUNTS]
    yield [*amounts, *(limit for limit in every if limit[0] not in of.AMOUNTS)]
    yield [*reversed(amounts), *(limit for limit in every if limit[0] not in of.AMOUNTS)]


def _irreducible(order: list[Label], start: set[Label] | None, oracle: _Oracle) -> tuple[list[Label], bool]:
    """What is left when nothing more can be left out without a plan appearing, and whether that is proven."""
    keep = list(order)
    if start is not None:
        fewer = [limit for limit in order if limit not in set(order) - start or limit[0] not in of.AMOUNTS]
        if oracle.possible(set(order) - set(fewer), relaxed=True) is False:
            keep, _ = _filtered(fewer, set(order), lambda out: oracle.possible(out, relaxed=True))
    return _filtered(keep, set(order), oracle.possible)


def _filtered(
    keep: list[Label], every: set[Label], possible: Callable[[set[Label]], bool | None]
) -> tuple[list[Label], bool]:
    """The deletion filter, over halves, quarters and so on before single limits."""
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
    """A smaller set in conflict, if there is one, and whether what is smallest then is proven to be.

    Without demand there is always a plan, so that sets without one need no look.
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
    """Limits in conflict in a question that lacks ``limit``, by name; none where it has a plan, or time ran out."""
    oracle = _Oracle(of.without(question, [limit]), margin, time.monotonic() + seconds)
    if oracle.possible(()) is not False:
        return []
    every = [other for other in of.limits(question) if other != limit]
    keep, proven = _irreducible(every, _priced(oracle.question, margin, seconds), oracle)
    return [of.name(question, other) for other in keep] if proven else []


def _relaxation(question: Question, margin: Margin, limit: Label, seconds: float) -> tuple[float | None, float | None]:
    """The least by which this limit alone must give way for the question to have a plan, and what that plan costs."""
    end = time.monotonic() + seconds
    relax: float | None
    if limit[0] in of.AMOUNTS:
        relax, changed = _least_amount(question, margin, limit, seconds / 2)
    else:
        relax, changed = _least_step(question, margin, limit, end)
    if relax is None or changed is None:
        return None, None
    try:
        plan = best(changed, gap=GAP, seconds=max(end - time.monotonic(), 1.0), margin=margin)
    except FleetmarkError:  # time ran out: that there is a plan is known all the same
        plan = None
    return relax, None if plan is None else plan.objective


def _least_amount(
    question: Question, margin: Margin, limit: Label, seconds: float
) -> tuple[float | None, Question | None]:
    """By an elastic programme, whose bounds are those of a question without the limit."""
    enough = question if limit[0] == "demand" else of.loosened(question, limit, _plenty(question, limit))
    model = of.elastic(build(enough, margin), only=limit)
    if limit[0] != "demand":
        high = model.high.copy()
        for row, label in enumerate(model.labels):
            if of.stands_for(label) == limit:
                high[row] = of.amount(question, limit) / model.units[row]
        model = replace(model, high=high)
    answer = highs(model, gap=1e-6, seconds=seconds)
    if answer.values is None:
        return None, None
    row = next(r for r, label in enumerate(model.labels) if of.stands_for(label) == limit)
    by = max(float(answer.values[-1]), 0.0) * float(model.units[row])
    if limit[0] == "demand":  # the row has the margin in it
        factor = margin.get(str(limit[1]), 1.0)
        by /= float(factor[int(limit[2])] if isinstance(factor, Sequence) else factor)
    by *= 1 + A_LITTLE
    return by, of.loosened(question, limit, by)


def _plenty(question: Question, limit: Label) -> float:
    """So much of a limit that it is none."""
    return 1e9 * max(of.amount(question, limit), 1.0)


def _least_step(question: Question, margin: Margin, limit: Label, end: float) -> tuple[float | None, Question | None]:
    """Rules give way in whole steps: the first that helps."""
    for step, changed in _steps(question, limit):
        left = min(PROBE, end - time.monotonic())
        if left <= 0:
            break
        if _possible(changed, margin, left, relaxed=False):
            return float(step), changed
    return None, None


def _steps(question: Question, limit: Label) -> Iterator[tuple[int, Question]]:
    kind = limit[0]
    if kind == "survival":
        yield 1, of.without(question, [limit])
    elif kind == "sites":
        work = question.workloads[str(limit[1])]
        others = [k for k in question.sites if k not in work.sites]
        for n in range(1, len(others) + 1):
            for more in itertools.islice(itertools.combinations(others, n), MOST_SETS):
                wider = replace(work, sites=work.sites | set(more))
                yield n, replace(question, workloads={**question.workloads, work.name: wider})
    else:
        most = len(question.periods) if kind == "age limit" else int(of.amount(question, limit))
        for n in range(1, most + 1):
            yield n, of.loosened(question, limit, n)
