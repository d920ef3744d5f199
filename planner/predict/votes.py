"""Compute a transfer: lines from known figures to the target, their combination, and their errors.

Everything is in natural logs. Each line also predicts every stored machine without that machine's family, so its
errors are those to expect for a machine of a new family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

LEAST_FAMILIES = 5  # with fewer families, neither a line nor its error is reliable
SLOPE = 0.2  # standard deviation of the slope between two benchmarks around 1
ELASTICITY = 1.0  # standard deviation of the effect of facts (cores, cache, memory) on a figure around 0
FIRST_SD = 1e-3  # first estimate of the scatter's standard deviation; small, so that exact data stay exact
PASSES = 3  # alternating estimates of scatter and shrinkage; after the second, changes are invisible
LEAST_SD = 0.01  # minimum standard deviation of a line
POWER = 4  # weights are 1 / sd^4: errors are correlated, so the best figures get more weight than with 1 / sd^2
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Vote:
    """One line's prediction for the new machine, and for each stored machine (NaN if it lacks a figure)."""

    value: float
    sd: float
    on_record: Floats
    sd_on_record: Floats


def vote(y: Floats, x: Floats, facts: Floats, family: Codes, new_x: Floats, new_facts: Floats) -> Vote | None:
    """Fit a ridge regression of y - mean(x) on ``x`` and ``facts``; without evidence, ratios carry over one to one.

    ``y`` is the target of each machine. ``x`` has a row per machine, NaN if a figure is missing. ``facts`` have no
    gaps. ``family`` numbers the families from 0.

    A family of n machines has the weight of sqrt(n) machines, because its machines are neither one observation nor
    independent ones. The amount by which slopes are shrunk towards 1 / len(x) follows from the scatter, and the two are
    estimated alternately, so that exact data are fitted exactly. Return None if there are too few families.
    """
    full = ~np.isnan(x).any(axis=1)
    groups = int(family.max()) + 1
    count = np.bincount(family[full], minlength=groups)
    if np.count_nonzero(count) < max(LEAST_FAMILIES, x.shape[1] + 3 if x.shape[1] > 1 else 0):
        return None
    family_of_row = family[full]
    w = count[family_of_row] ** -0.5
    level = x[full].mean(axis=1)
    z = np.column_stack([x[full], facts[full]])
    centre = np.average(z, axis=0, weights=w)
    z = np.column_stack([np.ones(len(z)), z - centre])
    all_of = np.column_stack([z, y[full] - level])
    moments = np.zeros((groups, all_of.shape[1], all_of.shape[1]))
    np.add.at(moments, family_of_row, w[:, None, None] * all_of[:, :, None] * all_of[:, None, :])
    # The last entry includes all families; each other one omits a family.
    without = np.concatenate([moments.sum(axis=0) - moments, moments.sum(axis=0)[None]])
    families = np.append(count.astype(bool).sum() - count.astype(bool), count.astype(bool).sum()).astype(float)
    slopes, inverse, variance = _ridge(without, families, x.shape[1])

    def sd(rows: Floats, patterns: Codes) -> Floats:
        """Return the scatter combined with the standard error of the line itself, at the given rows."""
        lever = np.einsum("ni,nij,nj->n", rows, inverse[patterns], rows)
        return np.asarray(np.sqrt(variance[patterns] * (1 + lever)))

    new = np.concatenate([[1.0], np.concatenate([new_x, new_facts]) - centre])
    on_record, sd_on_record = np.full(len(y), np.nan), np.full(len(y), np.nan)
    on_record[full] = level + (z * slopes[family_of_row]).sum(axis=1)
    sd_on_record[full] = sd(z, family_of_row)
    last = np.array([groups])
    return Vote(float(new_x.mean() + new @ slopes[-1]), float(sd(new[None], last)[0]), on_record, sd_on_record)


def _ridge(moments: Floats, families: Floats, figures: int) -> tuple[Floats, Floats, Floats]:
    """Return coefficients, the inverse of their normal matrix per family, and the scatter's variance, for each of
    ``moments``.

    Each of ``moments`` is a weighted matrix of moments of (1, figures, facts, response).
    """
    size = moments.shape[1] - 1
    weight = moments[:, 0, 0] / families  # weight per family
    strength = np.full(size, ELASTICITY**-2)
    strength[0], strength[1 : 1 + figures] = 0.0, SLOPE**-2
    variance = np.full(len(moments), FIRST_SD**2)
    for _ in range(PASSES):
        penalty = (variance * weight)[:, None] * strength + TINY
        normal = moments[:, :size, :size] + penalty[:, :, None] * np.eye(size)
        slopes = np.linalg.solve(normal, moments[:, :size, size:])[:, :, 0]
        explained = np.einsum("gi,gi->g", slopes, moments[:, :size, size])
        fitted = np.einsum("gi,gij,gj->g", slopes, moments[:, :size, :size], slopes)
        rest = np.maximum(moments[:, size, size] - 2 * explained + fitted, 0.0)
        variance = rest / moments[:, 0, 0] * families / np.maximum(families - figures - 1, 1.0)
    inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
    return np.asarray(slopes, dtype=np.float64), inverse * weight[:, None, None], variance + LEAST_SD**2


@dataclass(frozen=True, slots=True)
class Joined:
    """The combined votes: value and scale for the new machine, and errors in units of their scale for those on
    record.
    """

    value: float
    scale: float
    shares: Floats  # weight of each vote in the new machine's value
    errors: Floats  # NaN if there was no vote


def join(votes: Sequence[Vote], y: Floats) -> Joined:
    """Return the mean of the votes, weighted by precision.

    A stored machine has only the votes that its figures allow.
    """
    value, scale, shares = _mean(np.array([[v.value] for v in votes]), np.array([[v.sd] for v in votes]))
    then, its_scale, _ = _mean(np.array([v.on_record for v in votes]), np.array([v.sd_on_record for v in votes]))
    return Joined(float(value[0]), float(scale[0]), shares[:, 0], (y - then) / its_scale)


def _mean(values: Floats, sds: Floats) -> tuple[Floats, Floats, Floats]:
    present = ~np.isnan(values)
    weights = np.where(present, np.where(present, sds, 1.0) ** -POWER, 0.0)
    with np.errstate(invalid="ignore"):
        shares = weights / weights.sum(axis=0)
    mean = (shares * np.where(present, values, 0.0)).sum(axis=0)
    scale = np.sqrt((shares * np.where(present, sds, 0.0) ** 2).sum(axis=0))  # as if all errors were correlated
    return mean, scale, shares


def reach(errors: Floats, family: Codes, level: float) -> float:
    """Return how many scales a prediction interval of ``level`` extends to each side, from errors on unseen families.

    With enough families (9 for 90%), it is the conformal quantile of the errors' sizes, by weight. The next of n
    exchangeable values is below the k-th with probability k / (n + 1); families are exchangeable, machines are not.
    With fewer families, it is Student's t over families.
    """
    _, family_of_error, count = np.unique(family, return_inverse=True, return_counts=True)
    families = len(count)
    if level * (1 + 1 / families) > 1 + TINY:
        square = np.bincount(family_of_error, errors**2) / count
        return float(stats.t.ppf((1 + level) / 2, families - 1) * np.sqrt(square.mean()))
    order = np.argsort(np.abs(errors))
    weight = count[family_of_error[order]] ** -0.5
    middles = (np.cumsum(weight) - weight / 2) / weight.sum()
    return float(np.interp(level + (level - 0.5) / families, middles, np.abs(errors)[order]))
