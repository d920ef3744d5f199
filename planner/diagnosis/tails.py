"""Test whole distributions to find hosts with slower slow runs than others, even if their median run is as fast."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.planner.diagnosis.robust import Floats
from fleetmark.planner.ratio import adjusted

LEAST_RUNS = 5  # minimum number of repeats for comparing distributions
LEAST_HOSTS = 8
DISCOVERY = 0.01
EFFECT = 0.01  # minimum relevant mean shortfall, as a logarithm
DRAWS = 10_000
SUSPECT = 0.002  # maximum p value of all runs of a host for excluding its runs when other hosts are evaluated


def shortfall(runs: Floats, pool: Floats) -> Floats:
    """Return the mean distance by which each row of ``runs`` lies below ``pool``, quantile by quantile; both are
    sorted.

    Quantiles above the pool count as zero: this is a one-sided Wasserstein distance.
    """
    k = runs.shape[1]
    quantiles = np.quantile(pool, (np.arange(k) + 0.5) / k)
    return np.asarray(np.maximum(quantiles - runs, 0.0).mean(axis=1), dtype=np.float64)


def judge(runs: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Return the hosts with a heavier slow tail than the others.

    ``runs`` has the columns ``row`` (a benchmark), ``column`` (a host of the cohort) and ``value`` (oriented logarithms
    of single runs). The result has ``row``, ``column``, ``n`` (runs), ``hosts`` and:

    - ``shortfall``, ``normalised``: the mean log shortfall, and the same in spreads of the pool
    - ``worst``: the log distance of the slowest run below the host's own median
    - ``usual``: the median of the same for the other hosts
    - ``p``, ``q``: the p value and the false discovery rate

    Runs are relative to their host's median, because another test evaluates its typical speed. Runs of healthy hosts
    are then exchangeable, and p comes from a permutation test. All hosts of a benchmark share the test's draws.
    """
    by_host = runs.groupby(["row", "column"])["value"]
    centred = runs.assign(value=runs["value"] - by_host.transform("median"), n=by_host.transform("size"))
    enough = centred[centred["n"] >= LEAST_RUNS]
    tables = [_benchmark(part, seed) for _, part in enough.groupby("row")]
    tested = pd.concat([t for t in tables if t is not None] or [_NONE], ignore_index=True)
    tested["q"] = adjusted(tested["p"].to_numpy(float), len(tested))
    return tested[(tested["q"] <= DISCOVERY) & (tested["shortfall"] >= EFFECT)].reset_index(drop=True)


def against(values: Floats, pool: Floats, seed: int = 1) -> tuple[float, float]:
    """Return the shortfall of one host's runs below the ``pool`` of others, and its p.

    Both are sorted, and each run is relative to its host's median.
    """
    rows = values[None, :]
    short = shortfall(rows, pool)
    return float(short[0]), float(_p(short, pool, len(values), np.random.default_rng(seed))[0])


_COLUMNS = ("row", "column", "n", "hosts", "shortfall", "normalised", "worst", "usual", "p")
_NONE = pd.DataFrame({name: pd.Series(dtype=float) for name in _COLUMNS})


def _benchmark(centred: pd.DataFrame, seed: int) -> pd.DataFrame | None:
    """Return every host's shortfall in one benchmark and its p, or None if there are too few hosts.

    ``centred``: the ``row``, ``column``, ``value`` and ``n`` of the runs, each relative to its host's median.
    """
    row = int(centred["row"].iloc[0])
    columns, values, n = centred["column"].to_numpy(), centred["value"].to_numpy(float), centred["n"].to_numpy()
    hosts = len(set(columns))
    if hosts < LEAST_HOSTS:
        return None
    pool = _pool(values, columns, n, [seed, row])
    scale = max(float(np.std(pool)), 1e-9)
    parts = []
    for k in sorted(set(n)):
        block = np.flatnonzero(n == k)
        block = block[np.argsort(columns[block], kind="stable")]
        rows = np.sort(values[block].reshape(-1, k), axis=1)
        shortfalls = shortfall(rows, pool)
        worst = -rows[:, 0]
        p = _p(shortfalls, pool, int(k), np.random.default_rng([seed, row, int(k)]))
        columns_of_part = {"row": row, "column": columns[block][::k], "n": k, "hosts": hosts, "shortfall": shortfalls}
        columns_of_part |= {"normalised": shortfalls / scale, "worst": worst, "usual": float(np.median(worst)), "p": p}
        parts.append(pd.DataFrame(columns_of_part))
    return pd.concat(parts, ignore_index=True)


def _pool(values: Floats, columns: npt.NDArray[np.int64], n: npt.NDArray[np.int64], seed: list[int]) -> Floats:
    """Return the sorted runs of all hosts except the most likely faulty ones, as the reference for chance.

    The slow runs of several faulty hosts would otherwise hide each other.
    """
    pool = np.sort(values)
    suspect = np.zeros(len(values), dtype=bool)
    for k in sorted(set(n)):
        block = np.flatnonzero(n == k)
        block = block[np.argsort(columns[block], kind="stable")]
        shortfalls = shortfall(np.sort(values[block].reshape(-1, k), axis=1), pool)
        likely = shortfalls >= EFFECT
        if likely.any():
            likely &= _p(shortfalls, pool, int(k), np.random.default_rng([*seed, int(k)])) <= SUSPECT
        suspect[block] = np.repeat(likely, k)
    others = len(set(columns[~suspect]))
    return np.sort(values[~suspect]) if others >= LEAST_HOSTS - 1 else pool


def _p(shortfalls: Floats, pool: Floats, k: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the p of each of ``shortfalls`` under draws of ``k`` runs from ``pool``.

    Beyond the last hundredth of the draws, the tail is taken to be exponential, so that p can be below 1/DRAWS (after
    Knijnenburg et al. 2009).
    """
    drawn = np.sort(pool[rng.integers(0, len(pool), size=(DRAWS, k))], axis=1)
    drawn -= drawn[:, [(k - 1) // 2, k // 2]].mean(axis=1, keepdims=True)  # relative to their median, as hosts' runs
    null = np.sort(shortfall(drawn, pool))
    p = (1 + DRAWS - np.searchsorted(null, shortfalls, side="left")) / (1 + DRAWS)
    border = null[-(DRAWS // 100)]
    excess = max(float(np.mean(null[null >= border] - border)), 1e-12)
    return np.where(shortfalls > border, 0.01 * np.exp(-(shortfalls - border) / excess), p)
