"""Find redundant benchmarks, and weight the benchmarks of a class accordingly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

_NAME = re.compile(r"[A-Za-z_]{2,}")  # the leading name of a case, which identifies its family
ALIKE = 0.98  # minimum correlation of redundant benchmarks
LEAST_MACHINES = 8  # minimum number of machines for detecting redundancy


def pinned_weights(
    machines: pd.DataFrame,
    classes: pd.Series,
    kinds: pd.DataFrame | None = None,
    quantity: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Return the weight of each title within its class, to be saved with a reference; the weights of a class sum to 1.

    ``machines`` has the oriented log means, one row per host. ``classes`` maps titles to classes. ``kinds`` has one row
    per kind of machine, if there are enough of them. ``quantity`` is as in ``compare``.
    """
    weights: dict[str, float] = {}
    for name in sorted(set(classes)):
        titles = [str(t) for t in classes.index[classes == name]]
        frame = machines if kinds is None else kinds
        groups = clusters(frame.reindex(columns=titles), kinds=kinds is not None, quantity=quantity)
        weights |= {title: 1 / len(groups) / len(group) for group in groups for title in group}
    return weights


def families(benchmarks: pd.DataFrame) -> dict[str, str]:
    """Return the family of each benchmark by title: its workload and the leading name of its case.

    For example, the cases llama2-70b and llama3.1-405b of one workload belong to the family llama. A case that begins
    with a number, such as 505.mcf_r, is a family of its own. ``benchmarks`` has one row per title, with ``workload``
    and ``case``.
    """
    named = {}
    for title, workload, case in zip(benchmarks.index, benchmarks["workload"], benchmarks["case"], strict=True):
        name = _NAME.match(str(case))
        named[str(title)] = f"{workload} {name[0].lower()}" if name else str(title)
    return named


def clusters(machines: pd.DataFrame, kinds: bool = True, quantity: Mapping[str, str] | None = None) -> list[list[str]]:
    """Return clusters of benchmarks (columns) that rank the machines (rows) alike.

    The method is average linkage on 1 - correlation. It requires LEAST_MACHINES rows with both figures, from different
    ``kinds`` of machine, because hosts of only two generations would make all benchmarks appear correlated. With fewer
    rows, only columns that are equal in every row form a cluster. Benchmarks with the same ``quantity`` always form a
    cluster.
    """
    names = [str(c) for c in machines.columns]
    if len(names) < 2:
        return [[n] for n in names]
    values = machines.to_numpy(float)
    equal: dict[bytes, str] = {}
    keys = [equal.setdefault(column.round(9).tobytes(), name) for name, column in zip(names, values.T, strict=True)]
    nothing = np.isnan(values).all(axis=0)
    keys = [name if empty else key for name, key, empty in zip(names, keys, nothing, strict=True)]
    if kinds and len(machines) >= LEAST_MACHINES:
        related = machines.corr(min_periods=LEAST_MACHINES).to_numpy(float)
        distance = 1 - np.nan_to_num(related, nan=0.0)
        group_numbers = pd.factorize(np.array(keys))[0]
        distance[group_numbers[:, None] == group_numbers] = 0
        from scipy.cluster.hierarchy import fcluster, linkage  # imported lazily: few comparisons have enough machines
        from scipy.spatial.distance import squareform

        tree = linkage(squareform((distance + distance.T) / 2, checks=False), "average")
        keys = [str(number) for number in fcluster(tree, 1 - ALIKE, "distance")]
    members: dict[str, list[str]] = {}
    for name, key in zip(names, keys, strict=True):
        members.setdefault(key, []).append(name)
    return merged(list(members.values()), quantity or {})


def merged(groups: Iterable[Iterable[str]], quantity: Mapping[str, str]) -> list[list[str]]:
    """Return ``groups`` of benchmarks, merged if they share a quantity; ``quantity`` maps benchmark to quantity."""
    result: list[list[str]] = []
    for group in map(list, groups):
        measured = {quantity.get(name, name) for name in group}
        alike = [other for other in result if measured & {quantity.get(name, name) for name in other}]
        result = [other for other in result if other not in alike]
        result.append([name for part in (*alike, group) for name in part])
    return result
