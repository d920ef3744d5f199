"""``fleetmark profile``: what a workload is short of, fitted from machines on record; saved by name for ``plan``.

``profiles/NAME.VERSION.json`` under the results root. A new version never touches an old one.
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
from fleetmark.record.machines import machines
from fleetmark.record.pinned import Shelf
from fleetmark.record.select import Machine, choose, told_apart
from fleetmark.record.sides import side as side_of
from fleetmark.record.sides import some
from planner import bottleneck
from planner.bottleneck import Gain, Profile, Upgrade
from planner.capacity.question import Worth
from planner.comparison import Side
from planner.estimate import Estimate

THROTTLE = "throttle"  # the label of a machine that was slowed down on purpose: it is a machine of its own
SHELF = Shelf("profile", "checkout-2026", "fleetmark profile … --save NAME", "fit the profile again")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource: the pattern over workload/case/metric that says how fast machines are at it, the titles of the
    benchmarks it took (their geometric mean), and its unit.
    """

    pattern: str
    benchmarks: Sequence[str]
    unit: str


@dataclass(frozen=True, slots=True)
class Profiled:
    """A profile and what it was made of. ``unit``: of the target's throughput, a run's per second where it is a time.

    ``records``: (campaign, host) of the machines; ``left_out``: machine to why it was not used. ``name`` and
    ``version`` once it is saved.
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
    """Fit ``target`` (a pattern over workload/case/metric that one benchmark has) to ``resources`` (``name=pattern``)
    over the machines that ``select`` chooses, all on record where None.

    Raises FleetmarkError for what matches nothing or too much, and where the record is too small for a fit.
    """
    patterns = _patterns(resources)
    every = machines(root)
    chosen = choose(every, select) if select else every
    if not chosen:
        raise FleetmarkError(f"{root}: nothing is on record; `fleetmark run` or `import` first")
    title = select or "everything on record"
    names = _names(chosen)
    side = side_of(root, title, chosen, only=[target, *patterns.values()], names=names)
    wanted = _matching(side, target, "--target")
    if len(wanted) > 1:
        raise FleetmarkError(f"--target {target} is {len(wanted)} benchmarks: {some(wanted)}; narrow it to one")
    about = side.benchmarks.loc[wanted[0]]
    if ", " in str(about["unit"]):
        raise FleetmarkError(f"--target {target} is in {about['unit']}: one unit is needed")
    found = {name: _resource(side, name, pattern) for name, pattern in patterns.items()}
    if own := [n for n, r in found.items() if wanted[0] in r.benchmarks]:
        raise FleetmarkError(f"--resource {own[0]}: {wanted[0]} is the target itself; it cannot explain itself")
    rates, left_out = _rates(side, found)
    times = np.exp(-side.means[wanted[0]].dropna())
    left_out |= {str(m): message("has no {benchmark}", benchmark=wanted[0]) for m in side.means.index if m not in times}
    used = [str(m) for m in times.index if m not in left_out]
    if len(used) < len(found) + 1:
        why = "; ".join(f"{m} {w}" for m, w in list(left_out.items())[:3])
        raise FleetmarkError(
            f"{title}: {count(len(used), 'machine')} with the target and all resources; a profile of "
            f"{count(len(found), 'resource')} takes {len(found) + 1} or more that differ{f' ({why})' if why else ''}"
        )
    made = bottleneck.fit({m: rates[m] for m in used}, {m: float(times[m]) for m in used})
    unit = "1/s" if about["better"] == Better.LOWER else str(about["unit"])
    records = [key for key, name in names.items() if name in used]
    return Profiled(str(wanted[0]), unit, found, made, title, records, left_out)


def _patterns(resources: Sequence[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in resources:
        name, equals, pattern = text.partition("=")
        if not (equals and name.strip() and pattern.strip()):
            raise FleetmarkError(
                f"--resource {text}: write it as name=workload/case/metric, such as mem=stream/*/triad"
            )
        if name.strip() in made:
            raise FleetmarkError(
                f"--resource {name.strip()} is given twice; one pattern may stand for several benchmarks"
            )
        made[name.strip()] = pattern.strip()
    if not made:
        raise FleetmarkError("profile needs resources: --resource mem=stream/*/triad, one for each")
    return made


def _names(chosen: Sequence[Machine]) -> dict[tuple[str, str], str]:
    """What machines go by; one that was throttled is not the machine that it was before."""
    names = told_apart(chosen)
    for m in chosen:
        if m.labels.get(THROTTLE):
            names[m.campaign, m.host] += f" ({m.labels[THROTTLE]})"
    return names


def _matching(side: Side, pattern: str, what: str) -> list[str]:
    keys = side.benchmarks["workload"] + "/" + side.benchmarks["case"] + "/" + side.benchmarks["metric"]
    found = [str(t) for t, key in keys.items() if fnmatch.fnmatchcase(str(key), pattern)]
    if not found:
        raise FleetmarkError(
            f"{what} {pattern} matches no benchmark of {side.title}; it is a pattern over workload/case/metric, as "
            "`fleetmark report --format json` has them"
        )
    return found


def _resource(side: Side, name: str, pattern: str) -> Resource:
    titles = _matching(side, pattern, f"--resource {name}:")
    units = {str(side.benchmarks.loc[t, "unit"]) for t in titles}
    if len(units) > 1:
        raise FleetmarkError(f"--resource {name}: {pattern} is in {', '.join(sorted(units))}; narrow it to one unit")
    unit = units.pop()
    return Resource(pattern, titles, "1/s" if unit == "s" else unit)


def _rates(side: Side, resources: Mapping[str, Resource]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Machine to resource to rate (the geometric mean of its benchmarks), and machines that lack one, with what."""
    logs = pd.DataFrame(
        {n: side.means.reindex(columns=list(r.benchmarks)).mean(axis=1, skipna=False) for n, r in resources.items()}
    )
    lacking: dict[str, str] = {
        str(m): message("has no {resources}", resources=", ".join(str(n) for n in logs.columns[row.isna()]))
        for m, row in logs.iterrows()
        if row.isna().any()
    }
    made = {
        str(m): {str(n): math.exp(float(v)) for n, v in row.items()}
        for m, row in logs.iterrows()
        if str(m) not in lacking
    }
    return made, lacking


def rates_of(root: Path, selector: str, resources: Mapping[str, Resource]) -> dict[str, dict[str, float]]:
    """The rates of the machines that ``selector`` chooses. Raises FleetmarkError where none has them all."""
    chosen = choose(machines(root), selector)
    side = side_of(root, selector, chosen, only=[r.pattern for r in resources.values()], names=_names(chosen))
    found, lacking = _rates(side, resources)
    if not found:
        some = "; ".join(f"{m} {why}" for m, why in list(lacking.items())[:3])
        raise FleetmarkError(f"{selector}: no machine has all rates that the profile rests on ({some})")
    return found


def save(root: Path, name: str, found: Profiled) -> Profiled:
    """Keep it under ``name``, as its next version. Raises FleetmarkError for a bad name."""
    p = found.profile
    content = {
        "target": found.target,
        "unit": found.unit,
        "select": found.select,
        "records": [{"campaign": c, "host": h} for c, h in found.records],
        "left_out": dict(found.left_out),
        "resources": {
            n: {"pattern": r.pattern, "benchmarks": list(r.benchmarks), "unit": r.unit}
            for n, r in found.resources.items()
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
    return _made(SHELF.save(root, name, content))


def _text(value: float) -> float | str:
    """JSON has no infinity."""
    return float(value) if math.isfinite(value) else "inf"


def load(root: Path, name: str) -> Profiled:
    """The profile ``name`` (its latest version) or ``name@2``. Raises FleetmarkError where there is none."""
    return SHELF.read(SHELF.find(root, name), _made)


def _made(doc: Mapping[str, Any]) -> Profiled:
    machines, throttle = doc["machines"], doc["throttle"]
    made = Profile(
        [m["name"] for m in machines],
        list(doc["resources"]),
        np.array([m["rates"] for m in machines], dtype=float),
        np.array([m["time"] for m in machines], dtype=float),
        {n: float(v) for n, v in doc["demand"].items()},
        float(doc["p"]),
        {float(q): float(e) for q, e in doc["errors"]},
        {
            n: Estimate(float(doc["shares"][n]), float(a), float(b), n=(len(machines),))
            for n, (a, b) in doc["intervals"].items()
        },
        float(doc["condition"]),
        doc["refused"],
        None if throttle is None else (str(throttle[0]), float(throttle[1])),
        [(float(q), [float(v) for v in d]) for q, d in doc["drawn"]],
        [float(q) for q in doc["alike"]],
    )
    return Profiled(
        doc["target"],
        doc["unit"],
        {n: Resource(r["pattern"], r["benchmarks"], r["unit"]) for n, r in doc["resources"].items()},
        made,
        doc["select"],
        [(r["campaign"], r["host"]) for r in doc["records"]],
        doc["left_out"],
        doc["name"],
        doc["version"],
        doc["created"],
    )


def upgrades(texts: Sequence[str]) -> list[Upgrade]:
    """``mem=1.2@800`` and its like: resources' factors, and the money it costs. Raises FleetmarkError for others."""
    made = []
    for text in texts:
        factors, at, money = text.partition("@")
        pairs = [part.partition("=") for part in factors.split(",")]
        try:
            wanted = {name.strip(): float(factor) for name, _, factor in pairs}
            made.append(Upgrade(text, wanted, float(money) if at else None))
        except ValueError:
            raise FleetmarkError(
                f"--upgrade {text}: write it as resource=factor@money, such as mem=1.2@800 or cpu=2,mem=1.5@4000"
            ) from None
    return made


def gains_of(found: Profiled, wanted: Sequence[Upgrade]) -> list[Gain]:
    """What upgrades of the mean machine give. Raises FleetmarkError where the profile cannot tell."""
    if wanted and found.profile.refused:
        raise FleetmarkError(
            f"--upgrade: the profile cannot tell what {found.target} is short of: {found.profile.refused[0]}; "
            "without --upgrade it says which measurement would settle that"
        )
    return bottleneck.gains(found.profile, wanted)


@dataclass(frozen=True, slots=True)
class Foretold:
    """What machines would do, by a profile: ``estimate`` in the profile's unit, or as a multiple of the ``baseline``.
    Its ``n`` counts the machines whose rates were measured. ``why`` it cannot be told, empty else.
    """

    machines: str
    baseline: str | None
    estimate: Estimate
    why: str


def foretell(root: Path, found: Profiled, selector: str, baseline: str | None = None) -> Foretold:
    """One machine of those that ``selector`` chooses, by their measured rates; against one of ``baseline`` where given.

    Its standard error joins the profile's and that of the machines' means. Raises FleetmarkError where no machine has
    the rates.
    """
    p, measured = found.profile, rates_of(root, selector, found.resources)
    rates, own = _mean(measured, p)
    why = bottleneck.cannot_tell(p, rates)
    if baseline is None:
        rate = bottleneck.predicted(p, rates)
        se = _joined((rate.log_error or 0.0, p.df), (own.se, own.hosts - 1))
        return Foretold(selector, None, Estimate.of_error(rate.value, *se, n=(own.hosts,)), why)
    against = rates_of(root, baseline, found.resources)
    if against.keys() == measured.keys():
        return Foretold(selector, baseline, Estimate.of_error(1.0, 0.0, float(p.df), (own.hosts, own.hosts)), "")
    base, theirs = _mean(against, p)
    ratio = bottleneck.equivalence(p, base, rates)
    se = _joined((ratio.log_error or 0.0, p.df), (own.se, own.hosts - 1), (theirs.se, theirs.hosts - 1))
    estimate = Estimate.of_error(ratio.value, *se, n=(theirs.hosts, own.hosts))
    return Foretold(selector, baseline, estimate, why or bottleneck.cannot_tell(p, base))


def _joined(*errors: tuple[float, int]) -> tuple[float, float]:
    """Independent standard errors with their degrees of freedom as one (Welch 1947, Satterthwaite 1946)."""
    there = [(se**2, df) for se, df in errors if se > 0]
    variance = sum(v for v, _ in there)
    return math.sqrt(variance), variance**2 / sum(v**2 / df for v, df in there) if there else float(errors[0][1])


@dataclass(frozen=True, slots=True)
class _Spread:
    hosts: int
    se: float


def _mean(rates: Mapping[str, Mapping[str, float]], p: Profile) -> tuple[dict[str, float], _Spread]:
    """The geometric mean of machines' rates, and how unsure what the profile makes of it is because they differ."""
    logs = pd.DataFrame(rates).T.map(math.log)
    told = [math.log(bottleneck.predicted(p, r).value) for r in rates.values()]
    se = float(np.std(told, ddof=1)) / math.sqrt(len(told)) if len(told) > 1 else 0.0
    return {str(n): math.exp(float(v)) for n, v in logs.mean().items()}, _Spread(len(told), se)


def worth(root: Path, name: str, selector: str, baseline: str | None = None) -> Worth:
    """What one machine of those ``selector`` chooses is worth by the saved profile ``name`` (``name@2``): in the
    target's unit (``load(root, name).unit``), or in machines of ``baseline`` where given.

    Raises FleetmarkError where there is no such profile, or it cannot tell.
    """
    found = load(root, name)
    told = foretell(root, found, selector, baseline)
    if told.why:
        raise FleetmarkError(
            f"profile {found.name}@{found.version} cannot tell what {selector} does: {told.why}; "
            "measure the workload there, or profile it on machines more like these"
        )
    source = message(
        "profile {name}: {target} of {machines}, {n} hosts",
        name=f"{found.name}@{found.version}",
        target=found.target,
        machines=selector,
        n=told.estimate.n[-1],
    )
    estimate = told.estimate
    return Worth(estimate.value, estimate.log_error or 0.0, estimate.df or math.inf, source)
