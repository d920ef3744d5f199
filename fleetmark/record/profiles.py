"""Fit which resources limit a workload, from recorded machines, and save profiles by name for ``plan``.

Profiles are stored in ``profiles/NAME.VERSION.json`` under the results root. A new version never changes an old one.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better
from fleetmark.base.text import count, message
from fleetmark.planner import bottleneck
from fleetmark.planner.bottleneck import Gain, Profile, Upgrade
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.comparison import Side
from fleetmark.planner.estimate import Estimate
from fleetmark.record.machines import machines
from fleetmark.record.pinned import Shelf
from fleetmark.record.select import Machine, choose, distinct_names, within
from fleetmark.record.sides import side as side_of
from fleetmark.record.sides import some

THROTTLE = "throttle"  # the label of a deliberately throttled machine, which counts as a separate machine
SHELF = Shelf("profile", "checkout-2026", "fleetmark profile … --save NAME", "fit the profile again")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource.

    ``pattern`` over workload/case/metric selects ``benchmarks``, whose geometric mean is a machine's rate in ``unit``.
    """

    pattern: str
    benchmarks: Sequence[str]
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A profile and its inputs.

    ``unit``: the unit of the target's throughput, or runs per second if the target is a time.

    ``records``: (campaign, host) of the machines; ``left_out``: the reason why a machine was not used, by machine.
    ``name`` and ``version`` are set when the profile is saved.
    """

    target: str
    unit: str
    resources: Mapping[str, Resource]
    profile: Profile
    select: str
    records: Sequence[tuple[str, str]]
    left_out: Mapping[str, str]
    name: str = ""
    version: int = 0
    created: str = ""


def profile(root: Path, target: str, resources: Sequence[str], select: str | None) -> Profiled:
    """Fit ``target``, a pattern over workload/case/metric that matches one benchmark, to ``resources``
    (``name=pattern``). Use the machines that ``select`` matches, or all recorded machines if it is None.

    Raise FleetmarkError if a pattern matches no benchmark or too many, or if there are too few machines for a fit.
    """
    patterns = _patterns(resources)
    every = machines(root)
    chosen = within(every, select) if select else every
    if not chosen:
        raise FleetmarkError(f"{root}: no machine is recorded; use `fleetmark run` or `import` first")
    selection = select or message("all recorded machines")
    names = _names(chosen)
    side = side_of(root, selection, chosen, only=[target, *patterns.values()], names=names)
    titles = _matching(side, target, "--target")
    if len(titles) > 1:
        raise FleetmarkError(f"--target {target} is {len(titles)} benchmarks: {some(titles)}; narrow it to one")
    title = titles[0]
    benchmark = side.benchmarks.loc[title]
    if ", " in str(benchmark["unit"]):
        raise FleetmarkError(f"--target {target} is in {benchmark['unit']}: one unit is needed")
    fitted_resources = {name: _resource(side, name, pattern) for name, pattern in patterns.items()}
    if overlapping := [n for n, r in fitted_resources.items() if title in r.benchmarks]:
        raise FleetmarkError(
            f"--resource {overlapping[0]}: {title} is the target itself; choose other benchmarks for the resource"
        )
    rates, left_out = _rates(side, fitted_resources)
    times = np.exp(-side.means[title].dropna())
    left_out |= {str(m): message("has no {benchmark}", benchmark=title) for m in side.means.index if m not in times}
    used = [str(m) for m in times.index if m not in left_out]
    if len(used) < len(resources) + 1:
        reasons = "; ".join(f"{m} {w}" for m, w in list(left_out.items())[:3])
        raise FleetmarkError(
            f"{selection}: {count(len(used), 'machine')} with the target and all resources; a profile of "
            f"{count(len(resources), 'resource')} needs {len(resources) + 1} or more different ones"
            f"{f' ({reasons})' if reasons else ''}"
        )
    fitted = bottleneck.fit({m: rates[m] for m in used}, {m: float(times[m]) for m in used})
    unit = "1/s" if benchmark["better"] == Better.LOWER else str(benchmark["unit"])
    records = [key for key, name in names.items() if name in used]
    return Profiled(
        target=title,
        unit=unit,
        resources=fitted_resources,
        profile=fitted,
        select=selection,
        records=records,
        left_out=left_out,
    )


def _patterns(resources: Sequence[str]) -> dict[str, str]:
    patterns: dict[str, str] = {}
    for text in resources:
        name, equals, pattern = text.partition("=")
        if not (equals and name.strip() and pattern.strip()):
            raise FleetmarkError(
                f"--resource {text}: write it as name=workload/case/metric, such as mem=stream/*/triad"
            )
        if name.strip() in patterns:
            raise FleetmarkError(
                f"--resource {name.strip()} is repeated; use one pattern that matches several benchmarks"
            )
        patterns[name.strip()] = pattern.strip()
    if not patterns:
        raise FleetmarkError("profile: no resource; give each resource as --resource mem=stream/*/triad")
    return patterns


def _names(chosen: Sequence[Machine]) -> dict[tuple[str, str], str]:
    """Return a name by (campaign, host). A throttled machine gets another name than the same machine at full speed."""
    names = distinct_names(chosen)
    for m in chosen:
        if m.labels.get(THROTTLE):
            names[m.campaign, m.host] += f" ({m.labels[THROTTLE]})"
    return names


def _matching(side: Side, pattern: str, option: str) -> list[str]:
    keys = side.benchmarks["workload"] + "/" + side.benchmarks["case"] + "/" + side.benchmarks["metric"]
    titles = [str(t) for t, key in keys.items() if fnmatch.fnmatchcase(str(key), pattern)]
    if not titles:
        raise FleetmarkError(
            f"{option} {pattern} matches no benchmark of {side.title}; it is a pattern over workload/case/metric, as "
            "in `fleetmark report --format json`"
        )
    return titles


def _resource(side: Side, name: str, pattern: str) -> Resource:
    titles = _matching(side, pattern, f"--resource {name}:")
    units = {str(side.benchmarks.loc[t, "unit"]) for t in titles}
    if len(units) > 1:
        raise FleetmarkError(f"--resource {name}: {pattern} is in {', '.join(sorted(units))}; narrow it to one unit")
    unit = units.pop()
    return Resource(pattern, titles, "1/s" if unit == "s" else unit)


def _rates(side: Side, resources: Mapping[str, Resource]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return each machine's rate by resource (the geometric mean of its benchmarks), and the machines that lack rates,
    with the reason.
    """
    logs = pd.DataFrame(
        {n: side.means.reindex(columns=list(r.benchmarks)).mean(axis=1, skipna=False) for n, r in resources.items()}
    )
    lacking: dict[str, str] = {
        str(m): message("has no {resources}", resources=", ".join(str(n) for n in logs.columns[row.isna()]))
        for m, row in logs.iterrows()
        if row.isna().any()
    }
    rates = {
        str(m): {str(n): math.exp(float(v)) for n, v in row.items()}
        for m, row in logs.iterrows()
        if str(m) not in lacking
    }
    return rates, lacking


def rates_of(root: Path, selector: str, resources: Mapping[str, Resource]) -> dict[str, dict[str, float]]:
    """Return the rates of the machines that match ``selector``. Raise FleetmarkError if no machine has all of them."""
    chosen = choose(machines(root), selector)
    side = side_of(root, selector, chosen, only=[r.pattern for r in resources.values()], names=_names(chosen))
    rates, lacking = _rates(side, resources)
    if not rates:
        some = "; ".join(f"{m} {reason}" for m, reason in list(lacking.items())[:3])
        raise FleetmarkError(f"{selector}: no machine has all rates that the profile needs ({some})")
    return rates


def save(root: Path, name: str, profiled: Profiled) -> Profiled:
    """Save ``profiled`` as the next version of ``name``. Raise FleetmarkError if the name is invalid."""
    p = profiled.profile
    content = {
        "target": profiled.target,
        "unit": profiled.unit,
        "select": profiled.select,
        "records": [{"campaign": c, "host": h} for c, h in profiled.records],
        "left_out": dict(profiled.left_out),
        "resources": {
            n: {"pattern": r.pattern, "benchmarks": list(r.benchmarks), "unit": r.unit}
            for n, r in profiled.resources.items()
        },
        "machines": [
            {"name": m, "time": float(t), "rates": [float(v) for v in row]}
            for m, t, row in zip(p.machines, p.times, p.rates, strict=True)
        ],
        "demand": dict(p.demand),
        "p": _text(p.p),
        "errors": [[_text(q), _text(e)] for q, e in p.errors.items()],
        "shares": {n: share.value for n, share in p.shares.items()},
        "intervals": {n: [share.lo, share.hi] for n, share in p.shares.items()},
        "condition": _text(p.condition),
        "refused": list(p.refused),
        "throttle": None if p.throttle is None else [p.throttle[0], _text(p.throttle[1])],
        "alike": [_text(q) for q in p.alike],
        "drawn": [[_text(q), list(d)] for q, d in p.drawn],
    }
    return _profiled(SHELF.save(root, name, content))


def _text(value: float) -> float | str:
    """Return infinity as text, because JSON cannot represent it, and other values unchanged."""
    return float(value) if math.isfinite(value) else "inf"


def load(root: Path, name: str) -> Profiled:
    """Return a profile by its ``name``: the latest version, or a specific one, as in ``name@2``. Raise FleetmarkError
    if it does not exist.
    """
    return SHELF.read(SHELF.find(root, name), _profiled)


def _profiled(doc: Mapping[str, Any]) -> Profiled:
    machines, throttle = doc["machines"], doc["throttle"]
    profile = Profile(
        machines=[m["name"] for m in machines],
        resources=list(doc["resources"]),
        rates=np.array([m["rates"] for m in machines], dtype=float),
        times=np.array([m["time"] for m in machines], dtype=float),
        demand={n: float(v) for n, v in doc["demand"].items()},
        p=float(doc["p"]),
        errors={float(q): float(e) for q, e in doc["errors"]},
        shares={
            n: Estimate(float(doc["shares"][n]), float(a), float(b), n=(len(machines),))
            for n, (a, b) in doc["intervals"].items()
        },
        condition=float(doc["condition"]),
        refused=doc["refused"],
        throttle=None if throttle is None else (str(throttle[0]), float(throttle[1])),
        drawn=[(float(q), [float(v) for v in d]) for q, d in doc["drawn"]],
        alike=[float(q) for q in doc["alike"]],
    )
    return Profiled(
        target=doc["target"],
        unit=doc["unit"],
        resources={n: Resource(r["pattern"], r["benchmarks"], r["unit"]) for n, r in doc["resources"].items()},
        profile=profile,
        select=doc["select"],
        records=[(r["campaign"], r["host"]) for r in doc["records"]],
        left_out=doc["left_out"],
        name=doc["name"],
        version=doc["version"],
        created=doc["created"],
    )


def upgrades(texts: Sequence[str]) -> list[Upgrade]:
    """Parse upgrades such as ``mem=1.2@800``: factors of resources, and the price.

    Raise FleetmarkError for invalid text.
    """
    parsed = []
    for text in texts:
        factors, separator, money = text.partition("@")
        pairs = [part.partition("=") for part in factors.split(",")]
        try:
            by_resource = {name.strip(): float(factor) for name, _, factor in pairs}
            parsed.append(Upgrade(text, by_resource, float(money) if separator else None))
        except ValueError:
            raise FleetmarkError(
                f"--upgrade {text}: write it as resource=factor@money, such as mem=1.2@800 or cpu=2,mem=1.5@4000"
            ) from None
    return parsed


def gains_of(profiled: Profiled, offered: Sequence[Upgrade]) -> list[Gain]:
    """Return the gains of upgrading an average machine.

    Raise FleetmarkError if the profile does not attribute time to resources.
    """
    if offered and profiled.profile.refused:
        raise FleetmarkError(
            f"--upgrade: the profile does not show which resource limits {profiled.target}: "
            f"{profiled.profile.refused[0]}; "
            "without --upgrade, the output recommends a measurement that would show it"
        )
    return bottleneck.gains(profiled.profile, offered)


@dataclass(frozen=True, slots=True)
class MachinePrediction:
    """A profile's prediction for machines.

    ``estimate`` is in the profile's unit, or a multiple of the ``baseline``; its ``n`` counts the machines with
    measured rates. ``reason``: why there is no prediction; otherwise empty.
    """

    machines: str
    baseline: str | None
    estimate: Estimate
    reason: str


def predict(root: Path, profiled: Profiled, selector: str, baseline: str | None = None) -> MachinePrediction:
    """Predict the throughput of an average machine that matches ``selector`` from measured rates, relative to a machine
    of ``baseline`` if given.

    The standard error combines the errors of the profile and of the machines' means. Raise FleetmarkError if no machine
    has the rates.
    """
    p, measured = profiled.profile, rates_of(root, selector, profiled.resources)
    rates, spread = _mean(measured, p)
    hosts, error = spread.hosts, (spread.se, spread.hosts - 1)
    objection = bottleneck.cannot_tell(p, rates)
    if baseline is None:
        rate = bottleneck.predicted(p, rates)
        se = _joined((rate.log_error or 0.0, p.df), error)
        return MachinePrediction(selector, None, Estimate.of_error(rate.value, *se, n=(hosts,)), objection)
    against = rates_of(root, baseline, profiled.resources)
    if against.keys() == measured.keys():
        unity = Estimate.of_error(1.0, 0.0, float(p.df), (hosts, hosts))
        return MachinePrediction(selector, baseline, unity, "")
    base, base_spread = _mean(against, p)
    ratio = bottleneck.equivalence(p, base, rates)
    se = _joined((ratio.log_error or 0.0, p.df), error, (base_spread.se, base_spread.hosts - 1))
    estimate = Estimate.of_error(ratio.value, *se, n=(base_spread.hosts, hosts))
    return MachinePrediction(selector, baseline, estimate, objection or bottleneck.cannot_tell(p, base))


def _joined(*errors: tuple[float, int]) -> tuple[float, float]:
    """Combine independent standard errors and their degrees of freedom (Welch 1947, Satterthwaite 1946)."""
    terms = [(se**2, df) for se, df in errors if se > 0]
    variance = sum(v for v, _ in terms)
    return math.sqrt(variance), variance**2 / sum(v**2 / df for v, df in terms) if terms else float(errors[0][1])


@dataclass(frozen=True, slots=True)
class _Spread:
    hosts: int
    se: float


def _mean(rates: Mapping[str, Mapping[str, float]], p: Profile) -> tuple[dict[str, float], _Spread]:
    """Return the geometric mean of the machines' rates, and the standard error of its prediction, from the differences
    between machines.
    """
    logs = pd.DataFrame(rates).T.map(math.log)
    outputs = [math.log(bottleneck.predicted(p, r).value) for r in rates.values()]
    se = float(np.std(outputs, ddof=1)) / math.sqrt(len(outputs)) if len(outputs) > 1 else 0.0
    return {str(n): math.exp(float(v)) for n, v in logs.mean().items()}, _Spread(len(outputs), se)


def worth(root: Path, name: str, selector: str, baseline: str | None = None) -> Worth:
    """Return the throughput that the saved profile ``name`` (or ``name@2``) predicts for an average machine that
    matches ``selector``. It is in the target's unit (``load(root, name).unit``), or in machines of ``baseline`` if
    given.

    Raise FleetmarkError if the profile does not exist or makes no prediction.
    """
    profiled = load(root, name)
    prediction = predict(root, profiled, selector, baseline)
    if prediction.reason:
        raise FleetmarkError(
            f"profile {profiled.name}@{profiled.version} cannot predict {selector}: {prediction.reason}; "
            "measure the workload there, or profile it on more similar machines"
        )
    source = message(
        "profile {name}: {target} of {machines}, {n} hosts",
        name=f"{profiled.name}@{profiled.version}",
        target=profiled.target,
        machines=selector,
        n=prediction.estimate.n[-1],
    )
    estimate = prediction.estimate
    return Worth(estimate.value, estimate.log_error or 0.0, estimate.df or math.inf, source)
