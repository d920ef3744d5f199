"""A workload's profile for a terminal, and as JSON: what it is short of, what more of it gives, what is unknown."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.units import human, scale_for, significant
from fleetmark.record.profiles import MachinePrediction, Profiled
from planner.bottleneck import MOST_CONDITION, THROTTLES, Gain, Profile, Upgrade, gains
from planner.ratio import Ratio
from reports.kit.language import Language
from workloads.declared import throttle

MOST = 6  # machines left out that are named
MORE = 1.2  # what a resource is multiplied by to say what more of it gives
_OVERLAP = {1.0: message("one after the other (additive)"), math.inf: message("wholly overlapped (roofline)")}
_PARTLY = message("partly overlapped")


def more_of_each(profiled: Profiled) -> list[Gain]:
    """What ``MORE`` of each resource gives, the most first."""
    return gains(profiled.profile, [Upgrade(n, {n: MORE}) for n in profiled.resources])


def show(
    profiled: Profiled,
    upgrades: Sequence[Gain],
    predictions: Sequence[MachinePrediction],
    language: Language | None = None,
) -> list[RenderableType]:
    """The demand vector, its shares or why there are none, upgrades, and predicted machines."""
    _ = language or Language()
    p = profiled.profile
    used = message(
        "Resources are used {overlap}: p = {p}; off by {error} on machines left out",
        overlap=_OVERLAP.get(p.p, _PARTLY),
        p=_p(p.p),
        error=f"{p.error:.1%}",
    )
    powers = joined(f"p = {_p(q)}: {error:.1%}" for q, error in p.errors.items())
    parts: list[RenderableType] = [
        Text(_(_head(profiled)), style="bold"),
        Text(f"  {_(used)}"),
        Text(f"  {_(joined([powers, _alike(p.alike)], '; '))}", style="dim"),
        Text(""),
        _resources(profiled, _),
    ]
    if p.refused:
        parts += _refused(profiled, _)
    if upgrades:
        parts += [Text(""), _upgrades(upgrades, _)]
    if predictions:
        parts += [Text(""), *_predictions(profiled, predictions, _)]
    if profiled.left_out:
        shown = joined([f"{m} {_(why)}" for m, why in list(profiled.left_out.items())[:MOST]], "; ")
        more = message("and {n} more", n=len(profiled.left_out) - MOST) if len(profiled.left_out) > MOST else None
        parts += [Text(""), Text(_(message("Left out: {machines}", machines=joined([shown, more], " "))), style="dim")]
    return parts


def _head(profiled: Profiled) -> Message:
    machines = count(len(profiled.profile.machines), "machine")
    measured = message(
        "{target}, {machines} ({select})", target=profiled.target, machines=machines, select=profiled.select
    )
    if not profiled.name:
        return measured
    return message("{profile}, saved as {name}", profile=measured, name=f"{profiled.name}@{profiled.version}")


def _alike(powers: Sequence[float]) -> str:
    return message("within the noise p = {powers} fits as well", powers=joined(map(_p, powers))) if powers else ""


def _p(p: float) -> str:
    return "∞" if math.isinf(p) else f"{p:g}"


def _table(*heads: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for n, head in enumerate(heads):
        table.add_column(head, justify="left" if n == 0 else "right", overflow="fold")
    return table


def _resources(profiled: Profiled, _: Language) -> Table:
    p = profiled.profile
    more = message("+{part} gives", part=f"{MORE - 1:.0%}")
    heads = (message("resource"), message("rates"), message("per {work}", work=_work(profiled.unit)), message("share"))
    table = _table(*map(_, heads), "95%", _(more))
    gain = {g.upgrade.name: g.ratio for g in more_of_each(profiled)}
    for i, (name, r) in enumerate(profiled.resources.items()):
        least, most = float(p.rates[:, i].min()), float(p.rates[:, i].max())
        scale = scale_for(most, r.unit)
        rates = f"{significant(least * scale.factor)}–{significant(most * scale.factor)} {scale.unit}".rstrip()
        ends = _interval(p, name)
        unknown = _(message("unknown"))
        shown = (unknown, unknown) if p.refused else (f"{p.shares[name].value:.0%}", _gain(gain[name]))
        table.add_row(Text(name), rates, _(_demand(p.demand[name], r.unit)), shown[0], _percent(ends), shown[1])
    return table


def _interval(p: Profile, name: str) -> tuple[float, float] | None:
    """The interval of a share; None where rates rise and fall together, since fits then agree by chance."""
    return p.shares[name].interval if p.condition <= MOST_CONDITION else None


def _percent(interval: tuple[float, float] | None) -> str:
    return "–".join(f"{end:.0%}" for end in interval) if interval else "–"


def _work(unit: str) -> str:
    """The name of a unit of work of a throughput."""
    works = {"1/s": message("operation"), "B/s": message("byte"), "FLOP/s": "FLOP"}
    return works.get(unit, message("unit of score"))


def _demand(value: float, unit: str) -> str:
    if unit == "1":
        return message("{time} at 1", time=human(value, "s"))
    if unit == "1/s":
        return message("{n} times", n=significant(value))
    return human(value, unit).removesuffix("/s") if unit == "FLOP/s" else human(value, unit.removesuffix("/s"))


def _gain(ratio: Ratio) -> str:
    gain = f"{ratio.value - 1:+.1%}"
    return f"{gain} ({'–'.join(f'{end - 1:+.1%}' for end in ratio.interval)})" if ratio.interval else gain


def _refused(profiled: Profiled, _: Language) -> list[RenderableType]:
    p = profiled.profile
    head = _(message("Cannot tell what it is short of:"))
    parts: list[RenderableType] = [Text(""), Text(head, style="bold yellow")]
    parts += [Text(f"  {_(why)}") for why in p.refused]
    if p.throttle is None:
        return parts
    name, condition = p.throttle
    advice = message(
        "To settle it, measure the target and all resources on one machine with {name} throttled to {depths} of its "
        "rate, each with the inventory label throttle ({name}-50, say). The condition number is then {condition}.",
        name=name,
        depths=joined(f"{part:.0%}" for part in THROTTLES),
        condition=f"{condition:.0f}",
    )
    parts.append(Text(f"  {_(advice)}"))
    workloads = {b.partition(" ")[0] for b in profiled.resources[name].benchmarks}
    return parts + [Text(f"  {how}", style="dim") for how in dict.fromkeys(map(throttle, sorted(workloads))) if how]


def _upgrades(gains: Sequence[Gain], _: Language) -> Table:
    heads = (message("upgrade of the mean machine"), message("gives"), message("price"), message("gain per 1000"))
    table = _table(*map(_, heads))
    for g in gains:
        money = "" if g.upgrade.money is None else f"{g.upgrade.money:,.0f}"
        per = "" if g.per_money is None else f"{g.per_money * 1000:+.2%}"
        table.add_row(Text(g.upgrade.name), _gain(g.ratio), money, per)
    return table


def _predictions(profiled: Profiled, predictions: Sequence[MachinePrediction], _: Language) -> list[RenderableType]:
    base = predictions[0].baseline
    does = message("one replaces ({baseline})", baseline=base) if base else message("predicted")
    table = _table(_(message("machines")), _(does), "95%", _(message("hosts")))
    notes: list[RenderableType] = []
    for t in predictions:
        if t.why:
            notes.append(Text(_(message("{machines}: cannot tell: {why}", machines=t.machines, why=t.why))))
            continue
        figures = (t.estimate.value, *(t.estimate.interval or ()))
        value, *ends = (significant(v) if base else human(v, profiled.unit) for v in figures)
        table.add_row(Text(t.machines), value, "–".join(ends), str(t.estimate.n[-1]))
    return [*([table] if table.row_count else []), *notes]


def to_json(profiled: Profiled, upgrades: Sequence[Gain], predictions: Sequence[MachinePrediction]) -> str:
    """The same with every digit; what is unknown is null, with the reason beside it."""
    p = profiled.profile
    doc: dict[str, Any] = {
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
        "more": [] if p.refused else [_as_json(g) | {"factor": MORE} for g in more_of_each(profiled)],
        "upgrades": [_as_json(g) | {"money": g.upgrade.money, "per_money": g.per_money} for g in upgrades],
        "predictions": [
            {"machines": t.machines, "baseline": t.baseline, "hosts": t.estimate.n[-1], "why": t.why}
            | {key: None if t.why else getattr(t.estimate, key) for key in ("value", "lo", "hi")}
            for t in predictions
        ],
    }
    return json.dumps(doc, indent=1)


def _number(p: float) -> float | str:
    return p if math.isfinite(p) else "inf"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _as_json(gain: Gain) -> dict[str, Any]:
    return {"name": gain.upgrade.name, "ratio": gain.ratio.value, "lo": gain.ratio.lo, "hi": gain.ratio.hi}
