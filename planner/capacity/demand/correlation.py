"""Convert correlations between workloads' demands: from names to a matrix, and from a matrix to draws."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fleetmark.base.errors import FleetmarkError, suggest

Floats = npt.NDArray[np.float64]

EVERY = "all"
JOIN = "+"
_NEGATIVE = 1e-9  # smallest eigenvalue, as a negative number, that counts as zero


def members(key: str, workloads: Sequence[str]) -> list[str]:
    """Return the workloads of a key: ``all``, or at least two names joined by ``+``.

    Raise FleetmarkError if a name is not a workload, or if there are fewer than two.
    """
    names = list(workloads) if key == EVERY else [name.strip() for name in key.split(JOIN)]
    if unknown := [name for name in names if name not in workloads]:
        hint = suggest(unknown[0], list(workloads))
        raise FleetmarkError(f"no workload {unknown[0]!r}{hint}; there are {', '.join(workloads)}")
    if len({*names}) < 2:
        raise FleetmarkError(f"a correlation is between two workloads or more: {EVERY}, or web {JOIN} batch")
    return names


def matrix(correlation: Mapping[str, float], workloads: Sequence[str]) -> Floats:
    """Return the correlation matrix (workloads, workloads) of the logarithms of demand.

    A key with fewer workloads overrides a key with more workloads. Pairs without a key are independent. Raise
    FleetmarkError for the faults of ``members``, and if these correlations contradict each other (the matrix has a
    negative eigenvalue).
    """
    result = np.eye(len(workloads))
    place = {name: n for n, name in enumerate(workloads)}
    groups = sorted(((members(key, workloads), value) for key, value in correlation.items()), key=lambda g: -len(g[0]))
    for names, value in groups:
        for one, other in itertools.permutations({*names}, 2):
            result[place[one], place[other]] = value
    least = float(np.linalg.eigvalsh(result)[0]) if len(workloads) else 0.0
    if least < -_NEGATIVE:
        raise FleetmarkError(
            "no demands can have these correlations together "
            f"(the smallest eigenvalue of their matrix is {least:.2g}, below 0): bring them closer to 0"
        )
    return result


def correlated(normal: Floats, correlation: Floats) -> Floats:
    """Return independent standard normal draws (draws, workloads) with the given correlation matrix.

    The first workloads keep their draws as far as possible (Cholesky, extended to singular matrices by QR).
    """
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    lower = np.linalg.qr(root).R.T
    lower = lower * np.where(np.diag(lower) < 0, -1.0, 1.0)
    return np.asarray(normal @ lower.T)
