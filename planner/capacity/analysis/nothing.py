"""Compute what happens if nothing is bought: how much of the demand the existing servers meet in each period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetmark.planner.capacity.question import Question
from fleetmark.planner.capacity.sharing import Floats, Servers, best_share, kept

MOST = 2.0  # the largest share that is computed
_NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class Nothing:
    """The part of the demand that is met if nothing is bought.

    ``share`` is, by period, the part of every workload's median demand that the existing servers can serve, at most
    ``MOST``. Servers leave only at their age limit. All workloads share all servers here, so workloads with pools may
    do worse.
    """

    share: tuple[float, ...]

    @property
    def short_from(self) -> int | None:
        """Return the first period in which demand is not met, or None if it is always met."""
        short = [t for t, share in enumerate(self.share) if share < 1 - _NEAR]
        return short[0] if short else None


def do_nothing(question: Question) -> Nothing:
    """Share the initial servers among the workloads as well as possible.

    If the question asks for survival, the worst failure domain is removed.
    """
    workloads, sites = list(question.workloads.values()), list(question.sites.values())
    skus = list(question.skus.values())
    worth = np.array([[question.rate(s.name, w.name) for w in workloads] for s in skus])
    allowed = np.array([[not w.sites or site.name in w.sites for w in workloads] for site in sites])
    stays, guests = kept(question)
    may = np.repeat(allowed[None], len(skus), axis=0)
    shares = []
    for t in range(len(question.periods)):
        demand = np.array([w.point[t] for w in workloads], dtype=float)
        count = _in_place(question, t)
        if not demand.any():
            shares.append(MOST)
        elif not count.any():
            shares.append(0.0)
        else:
            shares.append(max(0.0, best_share(worth, demand, Servers(count, may, stays, guests))[0]))
    return Nothing(tuple(shares))


def _in_place(question: Question, period: int) -> Floats:
    """Return (skus, sites): the servers that may be active.

    They are in place or were ordered earlier, and are within their age limit.
    """
    skus, sites = list(question.skus), list(question.sites)
    count = np.zeros((len(skus), len(sites)))
    for cohort in question.fleet:
        limit = question.skus[cohort.sku].age_limit
        since = cohort.arrives or 0
        if since <= period and (limit is None or cohort.age + period - since < limit):
            count[skus.index(cohort.sku), sites.index(cohort.site)] += cohort.count
    usable = [[question.usable(s, k, period, count[i, j]) for j, k in enumerate(sites)] for i, s in enumerate(skus)]
    return np.array(usable).reshape(count.shape)
