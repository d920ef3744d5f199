"""Decide for many futures whether workloads can share servers so that all demands are met.

First, each draw repeatedly moves servers to the workloads that lack them. If that does not decide a draw, a linear
programme finds the largest theta at which every workload gets theta times its demand. Its result helps with other
draws, too. Its prices can prove that no distribution of servers meets their demands, and its shares are the starting
point of further moves. Therefore few programmes must be solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from fleetmark.planner.capacity.question import Question

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SOLVED = 100  # maximum linear programmes per period; draws that remain undecided count as not possible
_NEAR = 1e-7  # relative tolerance of a demand, for rounding in the programme
_TURNS = 20
_TRIED = 1e-3  # share of the servers that is distributed evenly at first
_BLOCK = 500  # draws processed together, to limit memory


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of one period.

    - ``count``: (skus, sites), the number of servers
    - ``may``: (skus, sites, workloads), whether the workload may run there
    - ``kept``: (cases, sites, workloads), whether the site remains for the workload in each failure that it must
      survive; True for workloads that need not survive failures
    - ``guests``: (workloads,), whether the workload may be pre-empted; without failures, guests run on the servers
      that the other workloads do not need
    """

    count: Floats
    may: Flags
    kept: Flags
    guests: Flags


def kept(question: Question) -> tuple[Flags, Flags]:
    """Return ``Servers.kept`` and ``Servers.guests`` for a question's workloads."""
    workloads = list(question.workloads)
    lasting = np.array([question.survives(w) for w in workloads])
    cases = question.cases if lasting.any() else [()]
    stays = np.array([[not question.is_lost(k, case) for k in question.sites] for case in cases])
    return stays[:, :, None] | ~lasting, np.array([question.yields(w) for w in workloads])


def served(worth: Floats, shares: Floats, servers: Servers, demand: Floats) -> Floats:
    """Return (draws, workloads): the work done for each workload in the worst case.

    - ``worth``: (draws, skus, workloads), the work of one server
    - ``shares``: (skus, sites, workloads), the servers of each workload; draws may come first
    - ``demand``: (draws, workloads)

    Guests share the remaining servers in proportion to their ``shares``.
    """
    draws = shares.ndim == 4
    by_site = np.einsum("jsw,jskw->jwk" if draws else "jsw,skw->jwk", worth, shares, optimize=True)
    work = np.asarray(np.einsum("jwk,fkw->fjw", by_site, servers.kept.astype(float), optimize=True).min(axis=0))
    if not servers.guests.any():
        return work
    all_up = by_site.sum(axis=2)
    busy = np.minimum(np.divide(demand, all_up, out=np.ones_like(all_up), where=all_up > 0), 1.0)
    busy[:, servers.guests] = 0.0
    held = np.einsum("jskw,jw->jsk" if draws else "skw,jw->jsk", shares, busy, optimize=True)
    guest_shares = shares * servers.guests
    total = guest_shares.sum(axis=-1)
    free = np.maximum(servers.count - held, 0.0)
    share = free * np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    theirs = np.einsum("jsw,jskw->jw", worth, guest_shares * share[..., None], optimize=True)
    work[:, servers.guests] = theirs[:, servers.guests]
    return work


def possible(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> tuple[Flags, int]:
    """Return whether each draw's ``demand`` (draws, workloads) can be met, and the number of undecided draws.

    Undecided draws count as not possible. ``shares`` are tried first.
    """
    good = _moved(worth, demand, servers, shares)
    open_ = np.flatnonzero(~good)
    for _ in range(SOLVED):
        if not len(open_):
            break
        one = open_[len(open_) // 2]
        theta, shared, prices = best_share(worth[one], demand[one], servers)
        settled = np.zeros(len(open_), dtype=bool)
        if theta >= 1 - _NEAR:
            settled = _moved(worth[open_], demand[open_], servers, shared)
            good[open_[settled]] = good[one] = True
        elif not servers.guests.any():  # other workloads' servers also serve guests, so these prices prove nothing
            settled = _proven(worth[open_], demand[open_], servers, _fitting(prices, worth[one], worth[open_], shared))
        settled[len(open_) // 2] = True
        open_ = open_[~settled]
    return good, len(open_)


def _moved(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> Flags:
    """Return which draws are met after some rounds that move servers to the workloads that lack them."""
    allowed = servers.may & (servers.count > 0)[:, :, None]
    even = allowed * (servers.count / np.maximum(allowed.sum(axis=2), 1))[:, :, None]
    begin = (1 - _TRIED) * np.where(allowed, shares, 0.0) + _TRIED * even  # so that every share can grow
    good = np.zeros(len(worth), dtype=bool)
    for first in range(0, len(worth), _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, len(worth)))
        now = np.repeat(begin[None], len(rows), axis=0)
        for _ in range(_TURNS):
            work = served(worth[rows], now, servers, demand[rows])
            met = enough(work, demand[rows])
            good[rows[met]] = True
            rows, now, work = rows[~met], now[~met], work[~met]
            if not len(rows):
                break
            lack = np.clip(np.divide(demand[rows], work, out=np.full_like(work, 1e3), where=work > 0), 1e-3, 1e3)
            now *= lack[:, None, None, :]
            total = (now * ~servers.guests).sum(axis=3)
            fit = np.divide(servers.count, total, out=np.zeros_like(total), where=total > 0)[..., None]
            now = np.where(servers.guests, now, now * fit)
    return good


def enough(work: Floats, demand: Floats) -> Flags:
    """Return in which draws every workload gets its demand."""
    return np.asarray((work >= demand * (1 - _NEAR)).all(axis=-1))


def best_share(worth: Floats, demand: Floats, servers: Servers) -> tuple[float, Floats, Floats]:
    """Return the largest theta (at most 2) of one draw, its shares, and the prices of the demands.

    The prices have the shape (cases, workloads).
    """
    skus, sites, workloads = servers.may.shape
    s, k, w = np.nonzero(servers.may & (servers.count > 0)[:, :, None] & (worth > 0)[:, None, :])
    cases, many = len(servers.kept), len(s)
    gives, place = worth[s, w], s * sites + k
    hosts = np.flatnonzero(~servers.guests[w])
    reserves = hosts if servers.guests.any() else hosts[:0]  # servers that other workloads need only in a failure
    last = many + len(reserves)  # the column of theta
    rows, columns, values = [], [], []

    def put(row: Ints, column: Ints, value: Floats) -> None:
        rows.append(row)
        columns.append(column)
        values.append(value)

    for f in range(cases):
        left = np.flatnonzero(servers.kept[f, k, w])
        put(f * workloads + w[left], left, -gives[left])
        more = np.flatnonzero(servers.kept[f, k[reserves], w[reserves]])
        put(f * workloads + w[reserves[more]], many + more, -gives[reserves[more]])
    put(np.arange(cases * workloads), np.full(cases * workloads, last), np.tile(demand, cases))
    counted = cases * workloads + place
    put(counted[hosts], hosts, np.ones(len(hosts)))
    put(counted[reserves], many + np.arange(len(reserves)), np.ones(len(reserves)))
    size = cases * workloads + skus * sites
    limits = [np.zeros(cases * workloads), servers.count.ravel()]
    # there is no failure: guests run beside the demand of the other workloads
    if len(reserves) or servers.guests.any():
        put(size + place, np.arange(many), np.ones(many))
        size += skus * sites
        put(size + w[hosts], hosts, -gives[hosts])
        some = np.unique(w[hosts])
        put(size + some, np.full(len(some), last), demand[some])
        size += workloads
        limits += [servers.count.ravel(), np.zeros(workloads)]
    coordinates = (np.concatenate(rows), np.concatenate(columns))
    matrix: Any = sparse.csr_array(  # scipy's type stubs lack sparse matrices
        (np.concatenate(values), coordinates), shape=(size, last + 1)
    )
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * last + [(0.0, 2.0)]  # more is never needed
    goal = np.zeros(last + 1)
    goal[-1] = -1.0
    result: Any = optimize.linprog(goal, A_ub=matrix, b_ub=np.concatenate(limits), bounds=bounds)
    shares = np.zeros(servers.may.shape)
    shares[s, k, w] = result.x[:many]
    np.add.at(shares, (s[reserves], k[reserves], w[reserves]), result.x[many:last])
    prices = np.maximum(-result.ineqlin.marginals[: cases * workloads].reshape(cases, workloads), 0.0)
    return float(result.x[-1]), shares, prices


def _fitting(prices: Floats, worth: Floats, others: Floats, shares: Floats) -> Floats:
    """Return the prices of one draw, adapted to ``others`` (draws, skus, workloads).

    The price of a workload rises in proportion as its servers lose worth. Any prices give a valid proof; adapted prices
    prove more draws.
    """
    by_sku = shares.sum(axis=1)
    here, elsewhere = (worth * by_sku).sum(axis=0), np.einsum("jsw,sw->jw", others, by_sku)
    return np.asarray(prices * np.divide(here, elsewhere, out=np.ones_like(elsewhere), where=elsewhere > 0)[:, None, :])


def _proven(worth: Floats, demand: Floats, servers: Servers, prices: Floats) -> Flags:
    """Return which draws ``prices`` (draws, cases, workloads) prove to be short.

    In these draws, all servers together earn less than the price of the demand, even if each does its best-paid work.
    """
    of_site = np.einsum("fkw,jfw->jkw", servers.kept.astype(float), prices)  # price of one unit of work at each site
    earned = np.zeros(len(worth))
    for k in np.flatnonzero(servers.count.any(axis=0)):
        paid = np.where(servers.may[:, k], worth * of_site[:, None, k], 0.0).max(axis=2)
        earned += paid @ servers.count[:, k]
    return np.asarray(earned < (demand * prices.sum(axis=1)).sum(axis=1) * (1 - _NEAR))
