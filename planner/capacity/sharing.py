"""Whether servers can be shared out among workloads so that all demands are met, for many futures at once.

Shares are first moved, draw by draw, to where they lack. What that leaves open is a linear programme: the largest theta
at which every workload gets theta times its demand. It serves the others too: its prices may prove that no shares can
meet their demands, and its shares are where the next moves begin. So few are solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SOLVED = 100  # at most so many linear programmes a period; what is open then counts as not possible
_NEAR = 1e-7  # of a demand: rounding of the programme
_TURNS = 20
_TRIED = 1e-3  # of the servers, spread evenly at first
_BLOCK = 500  # draws at a time, for memory


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers of one period. ``count``: (skus, sites); ``may``: (skus, sites, workloads), which may run where.

    ``kept``: (cases, sites): the sites that are left in each case that must be survived.
    """

    count: Floats
    may: Flags
    surviving: Flags


def served(worth: Floats, shares: Floats, surviving: Flags) -> Floats:
    """Work done for each workload in the worst case: (draws, workloads), from what a server is worth in each draw
    (draws, skus, workloads), and servers per workload (skus, sites, workloads).
    """
    by_site = np.einsum("jsw,skw->jwk", worth, shares, optimize=True)
    return np.asarray(np.einsum("jwk,fk->fjw", by_site, surviving.astype(float), optimize=True).min(axis=0))


def possible(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> tuple[Flags, int]:
    """Whether some shares meet ``demand`` (draws, workloads) in each draw; how many draws were left open (and count as
    not possible). ``shares``: those to begin with.
    """
    good = _moved(worth, demand, servers, shares)
    open_ = np.flatnonzero(~good)
    for _ in range(SOLVED):
        if not len(open_):
            break
        one = open_[len(open_) // 2]
        theta, shared, prices = _best(worth[one], demand[one], servers)
        if theta >= 1 - _NEAR:
            settled = _moved(worth[open_], demand[open_], servers, shared)
            good[open_[settled]] = good[one] = True
        else:
            settled = _proven(worth[open_], demand[open_], servers, _fitting(prices, worth[one], worth[open_], shared))
        settled[len(open_) // 2] = True
        open_ = open_[~settled]
    return good, len(open_)


def _moved(worth: Floats, demand: Floats, servers: Servers, shares: Floats) -> Flags:
    """Draws whose demand is met when every server is given, turn by turn, more to the workloads that lack."""
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


def _best(worth: Floats, demand: Floats, servers: Servers) -> tuple[float, Floats, Floats]:
    """The largest theta of one draw, the shares that give it, and the prices (cases, workloads) of the demands."""
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
    matrix: Any = sparse.csr_array((np.concatenate(values), where), shape=shape)  # scipy's stubs know dense ones only
    limits = np.concatenate([np.zeros(cases * workloads), servers.count.ravel()])
    bounds: list[tuple[float, float | None]] = [(0.0, None)] * many + [(0.0, 2.0)]  # twice the demand is plenty
    goal = np.zeros(many + 1)
    goal[-1] = -1.0
    result: Any = optimize.linprog(goal, A_ub=matrix, b_ub=limits, bounds=bounds)
    shares = np.zeros(servers.may.shape)
    shares[s, k, w] = result.x[:-1]
    prices = np.maximum(-result.ineqlin.marginals[: cases * workloads].reshape(cases, workloads), 0.0)
    return float(result.x[-1]), shares, prices


def _fitting(prices: Floats, worth: Floats, others: Floats, shares: Floats) -> Floats:
    """Prices of one draw as they would be in ``others`` (draws, cases, workloads): a workload's rises as the servers
    that serve it are worth less for it. Any prices prove what they prove; these prove more.
    """
    by_sku = shares.sum(axis=1)
    here, elsewhere = (worth * by_sku).sum(axis=0), np.einsum("jsw,sw->jw", others, by_sku)
    return np.asarray(prices * np.divide(here, elsewhere, out=np.ones_like(elsewhere), where=elsewhere > 0)[:, None, :])


def _proven(worth: Floats, demand: Floats, servers: Servers, prices: Floats) -> Flags:
    """Draws that ``prices`` (draws, cases, workloads) prove short: all servers, each at the work that pays most, earn
    less than is demanded.
    """
    of_site = np.einsum(
        "fk,jfw->jkw", servers.surviving.astype(float), prices
    )  # what a unit of work done there is paid
    earned = np.zeros(len(worth))
    for k in np.flatnonzero(servers.count.any(axis=0)):
        paid = np.where(servers.may[:, k], worth * of_site[:, None, k], 0.0).max(axis=2)
        earned += paid @ servers.count[:, k]
    return np.asarray(earned < (demand * prices.sum(axis=1)).sum(axis=1) * (1 - _NEAR))
