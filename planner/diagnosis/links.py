"""What was measured between hosts, as effects of nodes and of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.diagnosis.outliers import DISCOVERY, FLOOR, LEAST, LIMIT
from planner.diagnosis.robust import NORMAL, Floats, lower_tail, p_value
from planner.ratio import adjusted

PARTNERS = 3  # of a host, from which on its own effect can be told from those of its links
LINK = 2.0  # how much more a link must lose than a node: what fitting leaves of few partners is uneven
_ROUNDS, _ENOUGH = 50, 1e-6


@dataclass(frozen=True, slots=True)
class Effects:
    """ln rate = ``level`` + effect of the one host + effect of the other + ``rest``. ``node``: the effect of each host;
    ``partners``: with how many others it was measured. ``rest``: of each pair.
    """

    level: float
    node: Floats
    partners: npt.NDArray[np.int64]
    rest: Floats


def decompose(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], values: Floats, hosts: int) -> Effects:
    """Effects by medians in turn (Tukey's median polish, for pairs): up to half of a host's links may be faulty."""
    level = float(np.median(values)) if len(values) else 0.0
    node = np.zeros(hosts)
    ends, others = np.concatenate([a, b]), np.concatenate([b, a])
    twice = np.concatenate([values, values]) - level
    partners = np.bincount(
        pd.Series(range(len(ends))).groupby([ends, others]).first().index.get_level_values(0), minlength=hosts
    )
    for _ in range(_ROUNDS):
        medians = pd.Series(twice - node[others]).groupby(ends).median()
        new = node.copy()
        new[medians.index.to_numpy(int)] = medians.to_numpy()
        new[partners < PARTNERS] = 0.0  # what such a host lacks shows in its links
        new = (new + node) / 2  # both ends of a pair move at once: half a step each
        able = partners >= PARTNERS
        new[able] -= np.median(new[able]) if able.any() else 0.0
        moved = float(np.max(np.abs(new - node), initial=0.0))
        node = new
        if moved < _ENOUGH:
            break
    shift = float(np.median(values - node[a] - node[b])) if len(values) else 0.0
    return Effects(shift, node, partners, values - shift - node[a] - node[b])


def judge(pairs: pd.DataFrame, hosts: int, deficit: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes and links that are slower than others. ``pairs``: ``a`` and ``b`` (numbers of hosts), ``value`` (oriented
    logarithm).

    Nodes: ``host``, ``partners``, ``n``, ``deficit``, ``z``, ``p``, ``q``. Links: ``a``, ``b``, ``either`` too.
    A link counts where neither of its ends does. A host with fewer than PARTNERS others cannot be told from its links:
    the link is named, with ``either``.
    """
    a, b = pairs["a"].to_numpy(np.int64), pairs["b"].to_numpy(np.int64)
    values = pairs["value"].to_numpy(np.float64)
    effects = decompose(a, b, values, hosts)
    able = effects.partners >= PARTNERS
    noise = NORMAL * float(np.median(np.abs(effects.rest))) if len(values) else 0.0
    errors = 1.2533 * noise / np.sqrt(np.maximum(effects.partners, 1))  # the standard error of a median of so many
    nodes = _low(np.where(able, effects.node, np.nan), deficit, errors)
    nodes = nodes.rename(columns={"column": "host"}).assign(partners=effects.partners[nodes["column"]])
    guilty = np.zeros(hosts, dtype=bool)
    guilty[nodes["host"].to_numpy(int)] = True
    rest = np.where(guilty[a] | guilty[b], np.nan, effects.rest)
    links = _low(rest, LINK * deficit, np.full(len(rest), noise))
    columns = links["column"].to_numpy(int)
    return nodes, links.assign(a=a[columns], b=b[columns], either=~(able[a[columns]] & able[b[columns]]))


def _low(effects: Floats, deficit: float, error: Floats) -> pd.DataFrame:
    """Those of ``effects`` (NaN: not judged) that lie below the others: ``column``, ``n``, ``deficit``, ``z``, ``p``,
    ``q``."""
    n = int(np.sum(~np.isnan(effects)))
    tail = lower_tail(effects[None, :], -float(np.log1p(-deficit)))
    z = -tail.below / np.fmax(np.fmax(tail.spread, error[tail.column]), FLOOR)
    p = p_value(z, tail.n)
    frame = pd.DataFrame({"column": tail.column, "n": tail.n, "deficit": -np.expm1(-tail.below), "z": z, "p": p})
    frame["q"] = adjusted(p, n)
    counts = ((frame["z"] < LIMIT) | (frame["q"] <= DISCOVERY)) & (frame["n"] >= LEAST)
    return frame[counts].sort_values("z", ignore_index=True)
