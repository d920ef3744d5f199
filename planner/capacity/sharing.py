"""Whether servers can be shared among workloads so that all demands are met, for many futures at once.

Shares first move, draw by draw, to the workloads that lack servers. A linear programme decides an open draw: the
largest theta at which every workload gets theta times its demand. It helps with other draws too: its prices can prove
that no shares meet their demands, and its shares are the start of the next moves. So few programmes are solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SOLVED = 100  # most linear programmes per period; draws that are still open count as not possible
_NEAR = 1e-7  # share of a demand: tolerance for rounding of the programme
_TURNS = 20
_TRIED = 1e-3  # share of the servers that is spread evenly at first
_BLOCK = 500  # draws at a time, for memory


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers of one period. ``count``: (skus, sites); ``may``: (skus, sites, workloads), which workload may run where.

    ``surviving``: (cases, sites): the sites that remain in each failure to survive.
    """

    count: Floats
    may: Flags
    surviving: Flags


def served(worth: Floats, shares: Floats, surviving: Flags) -> Floats:
    """Work done for each workload in the worst case: (draws, workloads). ``worth`` of a server: (draws, skus,
    workloads); ``shares``, servers per workload: (skus, sites, workloads).
    """
    by_site = np.einsum("jsw,skw->jwk", worth, shares, optimize=True)
    return np.asarray(np.einsum("jwk,fk->fjw", by_site, surviving.astype(float), optimize=True).min(axis=0))


def possible(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> tuple[Flags, int]:
    """Whether some shares meet ``demand`` (draws, workloads) in each draw, and the number of open draws (which count as
    not possible). ``shares``: the first ones to try.
    """
    good = _moved(worth, demand, servers, shares)
    open_ = np.flatnonzero(~good)
    for _ in range(SOLVED):
        if not len(open_):
            break
        one = open_[len(open_) // 2]
        theta, shared, prices = best_share(worth[one], demand[one], servers)
        if theta >= 1 - _NEAR:
            settled = _moved(worth[open_], demand[open_], servers, shared)
            good[open_[settled]] = good[one] = True
        else:
            settled = _proven(worth[open_], demand[open_], servers, _fitting(prices, worth[one], worth[open_], shared))
        settled[len(open_) // 2] = True
        open_ = open_[~settled]
    return good, len(open_)


def _moved(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> Flags:
    """Draws whose demand is met after some turns that move servers to the workloads that lack them."""
    allowed = servers.may & (servers.count > 0)[:, :, None]
    even = allowed * (servers.count / np.maximum(allowed.sum(axis=2), 1))[:, :, None]
    begin = (1 - _TRIED) * np.where(allowed, shares, 0.0) + _TRIED * even  # so that any share can grow
    good = np.zeros(len(worth), dtype=bool)
    for first in range(0, len(worth), _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, len(worth)))
        now = np.repeat(begin[None], len(rows), axis=0)
        for _ in range(_TURNS):
            by_site = np.einsum("jsw,jskw->jwk", worth[rows], now, optimize=True)
            work = np.einsum("jwk,fk->fjw", by_site, servers.surviving.astype(float), optimize=True).min(axis=0)
            met = enough(work, demand[rows])
            good[rows[met]] = True
            rows, now, work = rows[~met], now[~met], work[~met]
            if not len(rows):
                break
            lack = np.clip(np.divide(demand[rows], work, out=np.full_like(work, 1e3), where=work > 0), 1e-3, 1e3)
            now *= lack[:, None, None, :]
            total = now.sum(axis=3)
            now *= np.divide(servers.count, total, out=np.zeros_like(total), where=total > 0)[..., None]
    return good


def enough(work: Floats, demand: Floats) -> Flags:
    """Draws in which every workload gets its demand."""
    return np.asarray((work >= demand * (1 - _NEAR)).all(axis=-1))


def best_share(worth: Floats, demand: Floats, servers: Servers) -> tuple[float, Floats, Floats]:
    """The largest theta (at most 2) of one draw, its shares, and the prices (cases, workloads) of the demands."""
    skus, sites, workloads = servers.may.shape
    s, k, w = np.nonzero(servers.may & (servers.count > 0)[:, :, None] & (worth > 0)[:, None, :])
    cases, many = len(servers.surviving), len(s)
    gives = worth[s, w]
    rows, columns, values = [], [], []
    for f in range(cases):
        left = np.flatnonzero(servers.surviving[f, k])
        rows.append(f * workloads + w[left])
        columns.append(left)
        values.append(-gives[left])
    rows.append(np.arange(cases * workloads))
    columns.append(np.full(cases * workloads, many))
    values.append(np.tile(demand, cases))
    rows.append(cases * workloads + s * sites + k)
    columns.append(np.arange(many))
    values.append(np.ones(many))
    shape = (cases * workloads + skus * sites, many + 1)
    where = (np.concatenate(rows), np.concatenate(columns))
    matrix: Any = sparse.csr_array(
        (np.concatenate(values), where), shape=shape
    )  # scipy's stubs know dense matrices only
    limits = np.concatenate([np.zeros(cases * workloads), servers.count.ravel()])
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * many + [
        (0.0, 2.0)
    ]  # more than twice the demand is never needed
    goal = np.zeros(many + 1)
    goal[-1] = -1.0
    result: Any = optimize.linprog(goal, A_ub=matrix, b_ub=limits, bounds=bounds)
    shares = np.zeros(servers.may.shape)
    shares[s, k, w] = result.x[:-1]
    prices = np.maximum(-result.ineqlin.marginals[: cases * workloads].reshape(cases, workloads), 0.0)
    return float(result.x[-1]), shares, prices


def _fitting(prices: Floats, worth: Floats, others: Floats, shares: Floats) -> Floats:
    """Prices of one draw, adapted to ``others`` (draws, cases, workloads): the price of a workload rises as its servers
    are worth less. A proof holds with any prices; these prove more draws.
    """
    by_sku = shares.sum(axis=1)
    here, elsewhere = (worth * by_sku).sum(axis=0), np.einsum("jsw,sw->jw", others, by_sku)
    return np.asarray(prices * np.divide(here, elsewhere, out=np.ones_like(elsewhere), where=elsewhere > 0)[:, None, :])


def _proven(worth: Floats, demand: Floats, servers: Servers, prices: Floats) -> Flags:
    """Draws that ``prices`` (draws, cases, workloads) prove short: all servers together, each on its best paid work,
    earn less than the price of the demand.
    """
    of_site = np.einsum("fk,jfw->jkw", servers.surviving.astype(float), prices)  # price of a unit of work at each site
    earned = np.zeros(len(worth))
    for k in np.flatnonzero(servers.count.any(axis=0)):
        paid = np.where(servers.may[:, k], worth * of_site[:, None, k], 0.0).max(axis=2)
        earned += paid @ servers.count[:, k]
    return np.asarray(earned < (demand * prices.sum(axis=1)).sum(axis=1) * (1 - _NEAR))
