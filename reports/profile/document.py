"""Build a profile's document: the workload's bottlenecks, the gain from more of each resource, and unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.units import human, scale_for, significant
from fleetmark.planner.bottleneck import MOST_CONDITION, THROTTLES, Gain, Profile, Upgrade, gains
from fleetmark.planner.ratio import Ratio
from fleetmark.record.profiles import MachinePrediction, Profiled
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, number, quantity, times
from fleetmark.workloads.declared import throttle

MOST = 6  # maximum number of omitted machines to name
MORE = 1.2  # factor applied to a resource to show the gain from more of it
_OVERLAP = {1.0: message("one after the other (additive)"), math.inf: message("wholly overlapped (roofline)")}
_PARTLY = message("partly overlapped")


def more_of_each(profiled: Profiled) -> list[Gain]:
    """Return the gain from multiplying each resource by ``MORE``, the largest first."""
    return gains(profiled.profile, [Upgrade(n, {n: MORE}) for n in profiled.resources])


def document(profiled: Profiled, upgrades: Sequence[Gain], predictions: Sequence[MachinePrediction]) -> Document:
    """Return the demand vector, its shares or the reason for missing shares, upgrades, and predicted machines."""
    p = profiled.profile
    used = message(
        "Resources are used {overlap} (p = {p}); the prediction error is {error} on machines left out",
        overlap=_OVERLAP.get(p.p, _PARTLY),
        p=_p(p.p),
        error=f"{p.error:.1%}",
    )
    listed = joined(f"p = {_p(q)}: {error:.1%}" for q, error in p.errors.items())
    errors = message("Prediction error by overlap: {errors}", errors=joined([listed, _alike(p.alike)], "; "))
    return Document(
        title=profiled.target,
        answer=_answer(profiled),
        details=(_head(profiled), used),
        sections=(
            Section("resources", "", (_resources(profiled),)),
            Section(
                "refused",
                message("The bottleneck cannot be determined:"),
                tuple(_refused(profiled)) if p.refused else (),
            ),
            Section("upgrades", "", (_upgrades(upgrades),) if upgrades else ()),
            Section("predictions", "", tuple(_predictions(profiled, predictions))),
            Section("left_out", "", (*_left_out(profiled), Note(errors, quiet=True))),
        ),
        data=as_json(profiled, upgrades, predictions),
    )


def _left_out(profiled: Profiled) -> Iterator[Note]:
    if profiled.left_out:
        shown = joined([joined([m, reason], " ") for m, reason in list(profiled.left_out.items())[:MOST]], "; ")
        more = message("and {n} more", n=len(profiled.left_out) - MOST) if len(profiled.left_out) > MOST else None
        yield Note(message("Left out: {machines}", machines=joined([shown, more], " ")), quiet=True)


def _answer(profiled: Profiled) -> Message:
    """Return the resource on which the workload spends most of its time, and the gain from more of it."""
    p = profiled.profile
    if p.refused:
        return message("The bottleneck of {target} cannot be determined.", target=profiled.target)
    name = max(profiled.resources, key=lambda resource: p.shares[resource].value)
    gain = next(g.ratio for g in more_of_each(profiled) if g.upgrade.name == name)
    return message(
        "{target} spends {share} of its time on {resource}: {part} more of it gives {gain}",
        target=profiled.target,
        share=f"{p.shares[name].value:.0%}",
        resource=name,
        part=f"{MORE - 1:.0%}",
        gain=_gain(gain).shown,
    )


def _head(profiled: Profiled) -> Message:
    machines = count(len(profiled.profile.machines), "machine")
    measured = message(
        "{target}, {machines} ({select})", target=profiled.target, machines=machines, select=profiled.select
    )
    if not profiled.name:
        return measured
    return message("{profile}, saved as {name}", profile=measured, name=f"{profiled.name}@{profiled.version}")


def _alike(powers: Sequence[float]) -> str:
    return message("p = {powers} fits equally well within the noise", powers=joined(map(_p, powers))) if powers else ""


def _p(p: float) -> str:
    return "∞" if math.isinf(p) else f"{p:g}"


def _resources(profiled: Profiled) -> Tabular:
    p = profiled.profile
    columns = (
        Column("resource", message("resource"), "name"),
        Column("rates", message("rates")),
        Column("demand", message("per {work}", work=_work(profiled.unit)), "number"),
        Column("share", message("share"), "number"),
        Column("gain", message("+{part} gives", part=f"{MORE - 1:.0%}"), "number"),
    )
    gain = {g.upgrade.name: g.ratio for g in more_of_each(profiled)}
    rows = []
    for i, (name, r) in enumerate(profiled.resources.items()):
        least, maximum = float(p.rates[:, i].min()), float(p.rates[:, i].max())
        scale = scale_for(maximum, r.unit)
        rates = f"{significant(least * scale.factor)}–{significant(maximum * scale.factor)} {scale.unit}".rstrip()
        unknown = Cell(message("unknown"))
        shares = unknown if p.refused else _share(p.shares[name].value, _interval(p, name))
        gains_ = unknown if p.refused else _gain(gain[name])
        rows.append((Cell(name), Cell(rates), Cell(_demand(p.demand[name], r.unit), p.demand[name]), shares, gains_))
    return Tabular("resources", message("Resources"), columns, tuple(rows))


def _interval(p: Profile, name: str) -> tuple[float, float] | None:
    """Return the interval of a share, or None if the rates are collinear, because fits then agree by chance."""
    return p.shares[name].interval if p.condition <= MOST_CONDITION else None


def _share(value: float, interval: tuple[float, float] | None) -> Cell:
    lo, hi = interval or (None, None)
    return Cell(f"{value:.0%}", value, lo=lo, hi=hi, ends="–".join(f"{end:.0%}" for end in interval or ()))


def _work(unit: str) -> str:
    """Return the name of the work that a throughput counts."""
    works = {"1/s": message("operation"), "B/s": message("byte"), "FLOP/s": "FLOP"}
    return works.get(unit, message("unit of score"))


def _demand(value: float, unit: str) -> str:
    if unit == "1":
        return message("CPU {time} per operation at score 1", time=human(value, "s"))
    if unit == "1/s":
        return message("{n} times", n=significant(value))
    return human(value, unit).removesuffix("/s") if unit == "FLOP/s" else human(value, unit.removesuffix("/s"))


def _gain(ratio: Ratio) -> Cell:
    """Return a cell that shows ``ratio`` as a change in percent; its value is the ratio."""
    ends = "–".join(f"{end - 1:+.1%}" for end in ratio.interval or ())
    return Cell(f"{ratio.value - 1:+.1%}", ratio.value, lo=ratio.lo, hi=ratio.hi, ends=ends)


def _refused(profiled: Profiled) -> Iterator[Note]:
    p = profiled.profile
    yield from (Note(reason, "unsure") for reason in p.refused)
    if p.throttle is None:
        return
    name, condition = p.throttle
    yield Note(
        message(
            "To settle it, measure the target and all resources on one machine with {name} throttled to {depths} of "
            "its rate, each with the inventory label throttle ({name}-50, say). The condition number is then "
            "{condition}.",
            name=name,
            depths=joined(f"{part:.0%}" for part in THROTTLES),
            condition=f"{condition:.0f}",
        )
    )
    workloads = {b.partition(" ")[0] for b in profiled.resources[name].benchmarks}
    yield from (Note(text, quiet=True) for text in dict.fromkeys(map(throttle, sorted(workloads))) if text)


def _upgrades(upgrades: Sequence[Gain]) -> Tabular:
    columns = (
        Column("upgrade", message("upgrade of the average machine"), "name"),
        Column("gain", message("gives"), "number"),
        Column("price", message("price"), "number"),
        Column("gain_per_1000", message("gain per 1,000 spent"), "number"),
    )
    rows = tuple(
        (
            Cell(g.upgrade.name),
            _gain(g.ratio),
            number(g.upgrade.money),
            Cell() if g.per_money is None else Cell(f"{g.per_money * 1000:+.2%}", g.per_money * 1000),
        )
        for g in upgrades
    )
    return compact(Tabular("upgrades", message("Upgrades"), columns, rows))


def _predictions(profiled: Profiled, predictions: Sequence[MachinePrediction]) -> Iterator[Tabular | Note]:
    known = [t for t in predictions if not t.reason]
    if known:
        base = known[0].baseline
        columns = (
            Column("machines", message("machines"), "name"),
            Column(
                "predicted",
                message("one replaces ({baseline})", baseline=base) if base else message("predicted"),
                "number",
            ),
            Column("hosts", message("hosts"), "number"),
        )
        rows = []
        for t in known:
            value, lo, hi = t.estimate.value, t.estimate.lo, t.estimate.hi
            shown = times(value, lo, hi) if base else quantity(value, profiled.unit, lo=lo, hi=hi)
            rows.append((Cell(t.machines), shown, number(t.estimate.n[-1])))
        yield Tabular("predictions", message("Predictions"), columns, tuple(rows))
    for t in predictions:
        if t.reason:
            yield Note(message("{machines}: cannot tell: {why}", machines=t.machines, why=t.reason))


def as_json(profiled: Profiled, upgrades: Sequence[Gain], predictions: Sequence[MachinePrediction]) -> dict[str, Any]:
    """Return the profile as JSON with full precision. Unknown values are null, with a reason."""
    p = profiled.profile
    return {
        "target": profiled.target,
        "unit": profiled.unit,
        "select": profiled.select,
        "name": profiled.name or None,
        "version": profiled.version or None,
        "machines": list(p.machines),
        "left_out": dict(profiled.left_out),
        "p": _number(p.p),
        "alike": [_number(q) for q in p.alike],
        "errors": [{"p": _number(q), "error": _finite(e)} for q, e in p.errors.items()],
        "condition": _finite(p.condition),
        "refused": list(p.refused),
        "throttle": None if p.throttle is None else {"resource": p.throttle[0], "condition": _finite(p.throttle[1])},
        "resources": [
            {
                "name": name,
                "benchmarks": list(r.benchmarks),
                "unit": r.unit,
                "mean": float(mean),
                "demand": p.demand[name],
                "share": None if p.refused else p.shares[name].value,
            }
            | dict(zip(("lo", "hi"), _interval(p, name) or (None, None), strict=True))
            for (name, r), mean in zip(profiled.resources.items(), p.rates_of(None), strict=True)
        ],
        "more": [] if p.refused else [_gain_json(g) | {"factor": MORE} for g in more_of_each(profiled)],
        "upgrades": [_gain_json(g) | {"money": g.upgrade.money, "per_money": g.per_money} for g in upgrades],
        "predictions": [
            {"machines": t.machines, "baseline": t.baseline, "hosts": t.estimate.n[-1], "why": t.reason}
            | {key: None if t.reason else getattr(t.estimate, key) for key in ("value", "lo", "hi")}
            for t in predictions
        ],
    }


def _number(p: float) -> float | str:
    return p if math.isfinite(p) else "inf"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _gain_json(gain: Gain) -> dict[str, Any]:
    return {"name": gain.upgrade.name, "ratio": gain.ratio.value, "lo": gain.ratio.lo, "hi": gain.ratio.hi}
