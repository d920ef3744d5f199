"""Detect hosts that resemble each other because they share a batch, rack, BIOS or microcode.

Hosts in one cluster are not independent: ten hosts from two batches carry little more information than two hosts. The
intraclass correlation (ICC) is the share of the between-host variance that lies between clusters. If the ICC exceeds
ALIKE, confidence intervals count clusters instead of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

ALIKE = 0.2  # intraclass correlation above which intervals count clusters instead of hosts
LEAST_WITHIN = 2  # minimum degrees of freedom within clusters for estimating the correlation


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of hosts on one side.

    - ``kind``: the property that the hosts of a cluster share (batch, rack, bios or microcode)
    - ``number``: the number of clusters
    - ``icc``: the intraclass correlation
    - ``codes``: the cluster index of each host
    """

    kind: str
    number: int
    icc: float
    codes: Codes


def correlation(scores: Floats, codes: Codes) -> float | None:
    """Return the intraclass correlation of ``scores`` (one per host) within clusters, or None if it cannot be
    estimated.

    The estimate comes from a one-way analysis of variance and is median-unbiased: the ratio of mean squares is divided
    by the median of its F distribution. Without this correction, the estimate for two clusters is too low in two out of
    three cases. A negative value means that hosts within a cluster differ more than hosts in different clusters.
    """
    names, places = np.unique(codes, return_inverse=True)
    sizes = np.bincount(places).astype(float)
    hosts, clusters = len(scores), len(names)
    if clusters < 2 or hosts - clusters < LEAST_WITHIN:
        return None
    means = np.bincount(places, scores) / sizes
    within = float(((scores - means[places]) ** 2).sum()) / (hosts - clusters)
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (clusters - 1)
    size = (hosts - float((sizes**2).sum()) / hosts) / (clusters - 1)
    if between == 0:
        return 0.0
    if within == 0:
        return 1.0
    from scipy import special  # imported lazily, as in planner.estimate

    ratio = between / within / float(special.fdtri(clusters - 1, hosts - clusters, 0.5))
    return (ratio - 1) / (ratio + size - 1)


def strongest(scores: Floats, groups: pd.DataFrame) -> Clusters | None:
    """Return the clustering with the highest intraclass correlation, or None if no correlation exceeds ALIKE.

    Each column of ``groups`` is a candidate clustering, with one row per score. Hosts without a score (NaN) are
    ignored. A column is skipped if any host with a score has no value in it.
    """
    known = ~np.isnan(scores)
    groupings: list[Clusters] = []
    for kind in groups.columns:
        values = groups[kind]
        if values[known].isna().any():
            continue
        codes, _ = pd.factorize(values)
        icc = correlation(scores[known], codes[known])
        if icc is not None and icc > ALIKE:
            groupings.append(Clusters(str(kind), len(set(codes[known].tolist())), icc, codes.astype(np.int64)))
    return max(groupings, key=lambda c: c.icc, default=None)


def halves(seen: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Split the benchmarks (columns) into groups, so that no host (row) ran benchmarks from two groups."""
    if seen.all():
        return [list(range(seen.shape[1]))]
    from scipy.sparse.csgraph import connected_components  # imported lazily: few comparisons have gaps

    ran = seen.astype(float)
    number, component = connected_components(ran.T @ ran, directed=False)
    return [np.flatnonzero(component == n).tolist() for n in range(number)]
