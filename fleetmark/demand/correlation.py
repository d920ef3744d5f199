"""Check the names of correlations between demands, and compute the correlations of histories."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand.amounts import HISTORY
from fleetmark.demand.history import Expected
from fleetmark.demand.places import Input, Path
from fleetmark.planner.capacity.demand.correlation import EVERY, JOIN, matrix, members
from fleetmark.planner.capacity.demand.forecast import LEAST


def resolved(
    written: Mapping[str, float | None], workloads: Sequence[str], histories: Mapping[str, Expected], source: Input
) -> dict[str, float]:
    """Return the correlations as numbers: first those computed from histories, by pairs, then the given ones.

    Record an error for a name that is not a workload, for histories that are too short, and for numbers that do not
    form a correlation matrix.
    """
    result: dict[str, float] = {}
    given: dict[tuple[int, frozenset[str]], str] = {}  # the key of each pair, by the size of the key's group
    for key, value in sorted(written.items(), key=lambda entry: entry[1] is not None):
        path: Path = ("correlation", key)
        try:
            names = members(key, workloads)
            for pair in map(frozenset, itertools.combinations({*names}, 2)):
                other = key if key == EVERY else given.setdefault((len({*names}), pair), key)
                if value is not None and written[other] not in (None, value):
                    raise FleetmarkError(f"{other} has other numbers for the same workloads; remove one of them")
            result |= _of_histories(names, histories) if value is None else {key: value}
        except FleetmarkError as error:
            source.fault(path, str(error))
            return {}
    try:
        matrix(result, workloads)
    except FleetmarkError as error:
        source.fault(("correlation",), str(error))
        return {}
    return result


def _of_histories(names: Sequence[str], histories: Mapping[str, Expected]) -> dict[str, float]:
    """Return the correlation of each pair, from the errors of one-period forecasts in their common periods."""
    if without := [name for name in names if name not in histories]:
        raise FleetmarkError(f"{without[0]} has no history: write a number instead of {HISTORY}")
    periods = sorted(set.intersection(*({*histories[name].residuals} for name in names)))
    if len(periods) < LEAST:
        raise FleetmarkError(
            f"the histories have {len(periods)} periods in common, at least {LEAST} are needed: write a number"
        )
    errors = np.array([[histories[name].residuals[period] for period in periods] for name in names])
    estimates = np.corrcoef(errors)
    pairs = itertools.combinations(range(len(names)), 2)
    return {f"{names[i]} {JOIN} {names[j]}": round(float(estimates[i, j]), 3) for i, j in pairs}
