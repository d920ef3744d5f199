"""Convert points, growth or quantiles of demand into medians and standard deviations of logarithms per period.

Demand is assumed log-normal, so ``p50`` is its median. ``sigma`` is the standard deviation of its natural logarithm:
the least-squares slope of the quantiles' logarithms over the normal deviates of their ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import norm

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.demand.amounts import Quantity
from fleetmark.demand.keys.part import rank
from fleetmark.demand.keys.workload import Demand, Growth, Start
from fleetmark.demand.places import Input, Path


def per_period(value: Any, names: Sequence[str], source: Input, path: Path, needed: bool) -> list[Any]:
    """Return one figure per period, or None for periods without a figure.

    ``value`` is one figure for all periods, a list in the order of periods, or a mapping by name. If ``needed`` is
    True, no figure may be missing. Record an error if the figures do not match the periods.
    """
    if isinstance(value, list):
        if len(value) != len(names):
            source.fault(path, f"has {len(value)} figures for {len(names)} periods ({names[0]} to {names[-1]})")
        return [*value, *[None] * len(names)][: len(names)]
    if isinstance(value, Mapping):
        for odd in [k for k in value if k not in names]:
            sentence = f"{odd!r} is not one of the periods{suggest(odd, list(names))}: {names[0]} to {names[-1]}"
            source.fault((*path, odd), sentence)
        lacking = [n for n in names if n not in value]
        if lacking and needed:
            source.fault(path, f"has no figure for {', '.join(lacking[:4])}{', …' if len(lacking) > 4 else ''}")
        return [value.get(n) for n in names]
    return [value] * len(names)


def steps(value: Any, names: Sequence[str], source: Input, path: Path) -> Any:
    """Return one figure per period as a tuple, or a constant. A figure of a mapping applies until the next one.

    Record an error if a list does not match the periods, or if a mapping lacks the first period.
    """
    if not isinstance(value, list | Mapping):
        return value
    if isinstance(value, Mapping) and names[0] not in value:
        source.fault(path, f"has no figure for {names[0]}, the first period: a figure applies from its period on")
    given = per_period(value, names, source, path, needed=False)
    if isinstance(value, Mapping):
        for n, name in enumerate(names):
            given[n] = value[name] if name in value else given[n - 1] if n else None
    return given[0] if all(one == given[0] for one in given) else tuple(given)


def spread(values: Mapping[float, float]) -> tuple[float, float]:
    """Return median and sigma of the log-normal distribution with these quantiles (rank to value).

    Raise FleetmarkError if the quantiles decrease with rank, or if one is 0 and another is not.
    """
    ranked = sorted(values.items())
    for (low, a), (high, b) in itertools.pairwise(ranked):
        if b < a:
            raise FleetmarkError(f"p{high * 100:g} ({b:g}) is below p{low * 100:g} ({a:g})")
    if ranked[-1][1] == 0:
        return 0.0, 0.0
    if ranked[0][1] == 0:
        raise FleetmarkError("one quantile is 0 and another is not; no log-normal demand has such quantiles")
    logs = {float(norm.ppf(r)): math.log(v) for r, v in ranked}
    if 0.0 in logs:
        middle = logs.pop(0.0)
        slope = sum(z * (y - middle) for z, y in logs.items()) / (sum(z * z for z in logs) or 1.0)
    else:
        if len(logs) < 2:
            raise FleetmarkError(
                "a single quantile other than p50 does not determine the median: add p50, or a second quantile"
            )
        z0, y0 = sum(logs) / len(logs), sum(logs.values()) / len(logs)
        slope = sum((z - z0) * (y - y0) for z, y in logs.items()) / sum((z - z0) ** 2 for z in logs)
        middle = y0 - slope * z0
    return values.get(0.5, math.exp(middle)), max(0.0, slope)


def demand(
    written: Demand, unit: str, names: Sequence[str], years: float, source: Input, path: Path
) -> tuple[list[float], list[float]]:
    """Return median and sigma of every period in the workload's ``unit``; invalid demand is recorded as an error."""
    none = [0.0] * len(names)
    if written.point is not None:
        return _plain(per_period(written.point, names, source, path, True), unit, source, path), none
    if written.quantiles:
        return _quantiles(written, unit, names, source, path)
    assert written.start is not None
    start, at_start = _start(written.start, unit, source, (*path, "start"))
    growth, a_year = _growth(written.growth, source, (*path, "growth")) if written.growth else (0.0, 0.0)
    ages = [n * years for n in range(len(names))]
    return [start * math.exp(growth * t) for t in ages], [math.hypot(at_start, a_year * t) for t in ages]


def _quantiles(
    written: Demand, unit: str, names: Sequence[str], source: Input, path: Path
) -> tuple[list[float], list[float]]:
    assert written.quantiles is not None
    faults = len(source.faults)
    columns = {
        key: _plain(per_period(series, names, source, (*path, key), True), unit, source, (*path, key))
        for key, series in written.quantiles.items()
    }
    points, sigmas = [0.0] * len(names), [0.0] * len(names)
    if written.sigma is not None:
        spreads = per_period(written.sigma, names, source, (*path, "sigma"), True)
        return columns["p50"], [s or 0.0 for s in spreads]
    if len(source.faults) > faults:  # a missing figure would cause a second fault, as a quantile of 0
        return points, sigmas
    for n, name in enumerate(names):
        try:
            points[n], sigmas[n] = spread({rank(key): values[n] for key, values in columns.items()})
        except FleetmarkError as error:
            source.fault(path, f"{name}: {error}")  # the other periods probably have the same fault
            break
    return points, sigmas


def _start(start: Start, unit: str, source: Input, path: Path) -> tuple[float, float]:
    if start.value is not None:
        return _plain([start.value], unit, source, path)[0], 0.0
    return _spread(
        {k: _plain([q], unit, source, (*path, k))[0] for k, q in (start.quantiles or {}).items()}, source, path
    )


def _growth(growth: Growth, source: Input, path: Path) -> tuple[float, float]:
    """Return the logarithm of the yearly growth, and its sigma."""
    if growth.value is not None:
        return math.log1p(growth.value), 0.0
    median, sigma = _spread({k: 1 + g for k, g in (growth.quantiles or {}).items()}, source, path)
    return math.log(median or 1.0), sigma


def _spread(values: Mapping[str, float], source: Input, path: Path) -> tuple[float, float]:
    try:
        return spread({rank(k): v for k, v in values.items()})
    except FleetmarkError as error:
        source.fault(path, str(error))
        return 0.0, 0.0


def _plain(values: Sequence[Quantity | None], unit: str, source: Input, path: Path) -> list[float]:
    odd = sorted({q.unit for q in values if q and q.unit and q.unit != unit})
    if odd:
        source.fault(path, f"is in {', '.join(odd)}, the unit of the workload is {unit}")
    return [q.value if q else 0.0 for q in values]
