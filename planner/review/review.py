"""Compare deliveries with what a plan assumed, and plan the remaining periods again with the measured worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum

from fleetmark.planner.capacity.analysis.nothing import do_nothing
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.review.lots import Delivery
from fleetmark.planner.review.posterior import Measurement, disagreement, posterior, promised, source_of

_ROOM = 0.9  # share of the capacity in place that a new plan must meet in periods in which nothing can arrive
_NEAR = 1e-9

Measured = Mapping[str, Measurement]  # measurements by workload
Key = tuple[str, str]  # SKU and workload


class Verdict(StrEnum):
    """The verdict on a delivery for one workload."""

    BELOW = "below"  # the whole interval lies below the promised worth
    KEPT = "kept"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """The measured worth of a delivered lot for a workload, and the worth that the plan assumed.

    - ``promised``: the worth that the plan assumed, before measurements of other deliveries
    - ``below``: the probability that its servers are worth less than ``promised``
    - ``disagreement``: the probability of a difference this large if the servers are of the planned kind
    - ``owed``: the number of servers missing for the work that the lot was planned to serve, with the measurement's
      interval
    """

    delivery: Delivery
    workload: str
    promised: float
    measured: Measurement
    below: float
    _: KW_ONLY
    disagreement: float
    owed: Estimate

    @property
    def verdict(self) -> Verdict:
        """Return the verdict at 95% confidence."""
        if self.measured.value >= self.promised:
            return Verdict.KEPT
        hi = self.measured.estimate.hi
        return Verdict.BELOW if hi is not None and hi < self.promised else Verdict.CANNOT_TELL

    @property
    def servers(self) -> int:
        """Return the number of whole servers that are missing by the point estimate, or 0 if the lot is not below its
        promise.
        """
        return math.ceil(self.owed.value - _NEAR) if self.verdict is Verdict.BELOW else 0

    @property
    def money(self) -> float:
        """Return the price of these servers at the lot's unit price."""
        return self.servers * self.delivery.lot.price


@dataclass(frozen=True, slots=True)
class Update:
    """The worth of a SKU for a workload before and after the measurements of ``lots``."""

    sku: str
    workload: str
    before: Worth
    after: Worth
    lots: Sequence[str]


@dataclass(kw_only=True, frozen=True, slots=True)
class Review:
    """The review of a plan, starting at period ``now`` of its question.

    - ``question``: the remaining question with the updated worths; its periods begin with ``now``
    - ``kept``: the old plan in this question; ``plan``: the new one, unless there is a ``conflict``
    - ``kept_futures``, ``futures``: the results of both plans in futures drawn from the updated question
    - ``late``: the periods that no new order can reach, and for which the servers in place do not keep the promise
    """

    now: int
    question: Question
    findings: Sequence[Finding]
    updates: Sequence[Update]
    kept: Plan
    kept_futures: Futures
    plan: Plan | None
    futures: Futures | None
    conflict: Conflict | None = None
    late: Sequence[str] = ()

    @property
    def below(self) -> list[Finding]:
        """Return the finding with the largest shortfall of servers for each lot that misses its promise."""
        worst: dict[str, Finding] = {}
        for finding in sorted(self.findings, key=lambda f: -f.servers):
            if finding.verdict is Verdict.BELOW:
                worst.setdefault(finding.delivery.lot.name, finding)
        return list(worst.values())

    @property
    def is_sound(self) -> bool:
        """Return whether every delivery kept its promise and a plan exists that meets demand."""
        return not self.below and self.plan is not None and not self.late


def findings(question: Question, measured: Sequence[tuple[Delivery, Measured]]) -> list[Finding]:
    """Return the findings of all deliveries in order."""
    return [
        Finding(
            delivery,
            workload,
            promise,
            m,
            m.below(promise),
            disagreement=disagreement(worth, m),
            owed=owed(delivery.lot.count, promise, m.estimate),
        )
        for delivery, by_workload in measured
        for workload, m in by_workload.items()
        for worth in [question.skus[delivery.lot.sku].worth[workload]]
        for promise in [promised(worth)]
    ]


def owed(count: int, promise: float, measured: Estimate) -> Estimate:
    """Return how many more servers than the ``count`` delivered ones the promised work needs, with the interval.

    The numbers are fractions, and negative if the delivered servers are worth more than promised.
    """

    def lacks(worth: float) -> float:
        return count * (promise / worth - 1)

    lo, hi = measured.hi, measured.lo
    return Estimate(
        lacks(measured.value),
        None if lo is None else lacks(lo),
        None if hi is None else lacks(hi),
        measured.level,
        measured.df,
    )


def updates(question: Question, measured: Sequence[tuple[Delivery, Measured]]) -> list[Update]:
    """Return the updated worths.

    A campaign that represents several lots of a SKU counts once.
    """
    by_key: dict[Key, dict[str, Measurement]] = {}
    lots: dict[Key, list[str]] = {}
    for delivery, by_workload in measured:
        for workload, m in by_workload.items():
            key = (delivery.lot.sku, workload)
            by_key.setdefault(key, {})[delivery.campaign] = m
            lots.setdefault(key, []).append(delivery.lot.name)
    result = []
    for (sku, workload), several in by_key.items():
        before, names = question.skus[sku].worth[workload], lots[sku, workload]
        after = replace(posterior(before, list(several.values())), source=source_of(before, names))
        result.append(Update(sku, workload, before, after, names))
    return result


def updated(question: Question, changes: Sequence[Update]) -> Question:
    """Return the question with the updated worths."""
    skus = dict(question.skus)
    for u in changes:
        skus[u.sku] = replace(skus[u.sku], worth={**skus[u.sku].worth, u.workload: u.after})
    return replace(question, skus=skus)


def replanned(
    question: Question, planned: Callable[[Question], Plan | Conflict]
) -> tuple[Plan | Conflict, tuple[str, ...]]:
    """Return the plan of ``question``, and the periods in which it cannot meet demand because nothing arrives in time.

    If there is no plan, the demand of the periods before the first possible arrival is reduced to the capacity of the
    servers in place, and those periods are returned. Any remaining conflict has another cause.
    """
    plan = planned(question)
    first = min((sku.delay for sku in question.skus.values() if sku.price is not None), default=0)
    if isinstance(plan, Plan) or first == 0:
        return plan, ()
    share = do_nothing(question).share
    reduced = {
        name: replace(
            work,
            point=tuple(p * min(_ROOM * share[t], 1.0) if t < first else p for t, p in enumerate(work.point)),
            sigma=tuple(0.0 if t < first else s for t, s in enumerate(work.sigma)),
        )
        for name, work in question.workloads.items()
    }
    again = planned(replace(question, workloads=reduced))
    return again, tuple(question.periods[:first]) if isinstance(again, Plan) else ()
