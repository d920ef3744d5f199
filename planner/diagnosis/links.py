"""Split measurements between hosts into the effects of nodes and of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.planner.diagnosis.outliers import DISCOVERY, FLOOR, LEAST, LIMIT
from fleetmark.planner.diagnosis.robust import NORMAL, Floats, lower_tail, p_value
from fleetmark.planner.ratio import adjusted

PARTNERS = 3  # minimum number of partners to separate a host's effect from those of its links
LINK = 2.0  # factor by which a link's loss must exceed a node's loss, since fits with few partners are unreliable
_ROUNDS, _ENOUGH = 50, 1e-6


@dataclass(frozen=True, slots=True)
class Effects:
    """The model ln rate = ``level`` + effect of one host + effect of the other + ``rest``.

    ``node`` has the effect of each host, ``partners`` the number of hosts that it was measured with, and ``rest`` the
    residual of each pair.
    """

    level: float
    node: Floats
    partners: npt.NDArray[np.int64]
    rest: Floats


def decompose(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], values: Floats, hosts: int) -> Effects:
    """Return effects fitted by alternating medians (Tukey's median polish for pairs).

    The fit is valid even if half of a host's links are faulty.
    """
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
        new[partners < PARTNERS] = 0.0  # the loss of such a host is attributed to its links
        new = (new + node) / 2  # both ends of a pair move in the same step, so each moves by half
        able = partners >= PARTNERS
        new[able] -= np.median(new[able]) if able.any() else 0.0
        moved = float(np.max(np.abs(new - node), initial=0.0))
        node = new
        if moved < _ENOUGH:
            break
    shift = float(np.median(values - node[a] - node[b])) if len(values) else 0.0
    return Effects(shift, node, partners, values - shift - node[a] - node[b])


def judge(pairs: pd.DataFrame, hosts: int, deficit: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return nodes and links that are slower than others.

    ``pairs`` has ``a`` and ``b`` (host numbers) and ``value`` (oriented logarithm). The table of nodes has ``host``,
    ``partners``, ``n``, ``deficit``, ``z``, ``p`` and ``q``. The table of links has ``a``, ``b`` and ``either`` instead
    of ``host``.

    A link is reported only if neither of its ends is. With fewer than PARTNERS partners, a host cannot be separated
    from its links. The link is then reported, with ``either``.
    """
    a, b = pairs["a"].to_numpy(np.int64), pairs["b"].to_numpy(np.int64)
    values = pairs["value"].to_numpy(np.float64)
    effects = decompose(a, b, values, hosts)
    able = effects.partners >= PARTNERS
    noise = NORMAL * float(np.median(np.abs(effects.rest))) if len(values) else 0.0
    # Standard error of a median of this number of values.
    errors = 1.2533 * noise / np.sqrt(np.maximum(effects.partners, 1))
    nodes = _low(np.where(able, effects.node, np.nan), deficit, errors)
    nodes = nodes.rename(columns={"column": "host"}).assign(partners=effects.partners[nodes["column"]])
    guilty = np.zeros(hosts, dtype=bool)
    guilty[nodes["host"].to_numpy(int)] = True
    rest = np.where(guilty[a] | guilty[b], np.nan, effects.rest)
    links = _low(rest, LINK * deficit, np.full(len(rest), noise))
    columns = links["column"].to_numpy(int)
    return nodes, links.assign(a=a[columns], b=b[columns], either=~(able[a[columns]] & able[b[columns]]))


def _low(effects: Floats, deficit: float, error: Floats) -> pd.DataFrame:
    """Return those ``effects`` (NaN: not evaluated) that are lower than the others.

    The columns are ``column``, ``n``, ``deficit``, ``z``, ``p`` and ``q``.
    """
    n = int(np.sum(~np.isnan(effects)))
    tail = lower_tail(effects[None, :], -float(np.log1p(-deficit)))
    z = -tail.below / np.fmax(np.fmax(tail.spread, error[tail.column]), FLOOR)
    p = p_value(z, tail.n)
    frame = pd.DataFrame({"column": tail.column, "n": tail.n, "deficit": -np.expm1(-tail.below), "z": z, "p": p})
    frame["q"] = adjusted(p, n)
    counts = ((frame["z"] < LIMIT) | (frame["q"] <= DISCOVERY)) & (frame["n"] >= LEAST)
    return frame[counts].sort_values("z", ignore_index=True)
