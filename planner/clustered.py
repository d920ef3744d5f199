"""Hosts that resemble each other because they share a batch, a rack, a BIOS or a microcode.

Hosts of one cluster are not independent: ten hosts of two batches say little more of their kind than two hosts do. The
intraclass correlation (ICC) is the part of the variance between hosts that lies between clusters. From ALIKE on an
interval counts clusters instead of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

ALIKE = 0.2  # intraclass correlation from which on clusters count instead of hosts
LEAST_WITHIN = 2  # degrees of freedom within clusters, below which the correlation is unknown


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of one side's hosts. ``kind``: what their hosts share (batch, rack, bios, microcode); ``number`` of
    clusters; ``icc``: the intraclass correlation; ``codes``: the cluster of each host.
    """

    kind: str
    number: int
    icc: float
    codes: Codes


def correlation(scores: Floats, codes: Codes) -> float | None:
    """Return the intraclass correlation of ``scores`` (one per host) within clusters; None if it cannot be known.

    It is the estimate of one-way analysis of variance, made median-unbiased: the ratio of the mean squares is divided
    by the median of its distribution. With two clusters the plain estimate is too low in two cases of three. A value
    below 0 says that hosts of one cluster differ more than others do.
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
    from scipy import special  # imported here, as in planner.estimate

    ratio = between / within / float(special.fdtri(clusters - 1, hosts - clusters, 0.5))
    return (ratio - 1) / (ratio + size - 1)


def strongest(scores: Floats, groups: pd.DataFrame) -> Clusters | None:
    """Return the clusters of the column of ``groups`` with the highest intraclass correlation; None below ALIKE.

    ``groups`` has a row per score. A host without a score (NaN) does not count; a column in which a host with a score
    has no value is passed over.
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
    """Return the benchmarks (columns) in groups that no host (row) ran across: more than one if no host ran both."""
    if seen.all():
        return [list(range(seen.shape[1]))]
    from scipy.sparse.csgraph import connected_components  # imported here, since few comparisons have gaps

    ran = seen.astype(float)
    number, of = connected_components(ran.T @ ran, directed=False)
    return [np.flatnonzero(of == n).tolist() for n in range(number)]
