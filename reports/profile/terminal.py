"""A workload's profile for a terminal, and as JSON: what it is short of, what more of it gives, what is unknown."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import count
from fleetmark.base.units import human, scale_for, significant
from fleetmark.record.profiles import MachinePrediction, Profiled
from planner.bottleneck import MOST_CONDITION, THROTTLES, Gain, Profile, Upgrade, gains
from planner.ratio import Ratio
from workloads.declared import throttle

MORE = 1.2  # what a resource is multiplied by to say what more of it gives
_OVERLAP = {1.0: "one after the other (additive)", math.inf: "wholly overlapped (roofline)"}


def more_of_each(profiled: Profiled) -> list[Gain]:
    """What ``MORE`` of each resource gives, the most first."""
    return gains(profiled.profile, [Upgrade(n, {n: MORE}) for n in profiled.resources])


def show(
    profiled: Profiled, upgrades: Sequence[Gain], predictions: Sequence[MachinePrediction]
) -> list[RenderableType]:
    """The demand vector, its shares or why there are none, upgrades, and predicted machines."""
    p = profiled.profile
    overlap = _OVERLAP.get(p.p, "partly overlapped")
    saved = f", saved as {profiled.name}@{profiled.version}" if profiled.name else ""
    parts: list[RenderableType] = [
        Text(f"{profiled.target}, {count(len(p.machines), 'machine')} ({profiled.select}){saved}", style="bold"),
        Text(f"  resources are used {overlap}: p = {_p(p.p)}; off by {p.error:.1%} on machines left out"),
        Text(f"  {', '.join(f'p = {_p(q)}: {e:.1%}' for q, e in p.errors.items())}{_alike(p.alike)}", style="dim"),
        Text(""),
        _resources(profiled),
    ]
    if p.refused:
        parts += _refused(profiled)
    if upgrades:
        parts += [Text(""), _upgrades(upgrades)]
    if predictions:
        parts += [Text(""), *_predictions(profiled, predictions)]
    if profiled.left_out:
        named = "; ".join(f"{m} {why}" for m, why in list(profiled.left_out.items())[:6])
        more = f" and {len(profiled.left_out) - 6} more" if len(profiled.left_out) > 6 else ""
        parts += [Text(""), Text(f"left out: {named}{more}", style="dim")]
    return parts


def _alike(powers: Sequence[float]) -> str:
    named = ", ".join(_p(q) for q in powers)
    return f"; p = {named} {'does' if len(powers) == 1 else 'do'} as well within the noise" if powers else ""


def _p(p: float) -> str:
    return "∞" if math.isinf(p) else f"{p:g}"


def _table(*heads: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for n, head in enumerate(heads):
        table.add_column(head, justify="left" if n == 0 else "right", overflow="fold")
    return table


def _resources(profiled: Profiled) -> Table:
    p = profiled.profile
    table = _table("resource", "rates", f"per {_work(profiled.unit)}", "share", "95%", f"+{MORE - 1:.0%} gives")
    gain = {g.upgrade.name: g.ratio for g in more_of_each(profiled)}
    for i, (name, r) in enumerate(profiled.resources.items()):
        least, most = float(p.rates[:, i].min()), float(p.rates[:, i].max())
        scale = scale_for(most, r.unit)
        rates = f"{significant(least * scale.factor)} to {significant(most * scale.factor)} {scale.unit}".rstrip()
        ends = _interval(p, name)
        shown = ("unknown", "unknown") if p.refused else (f"{p.shares[name].value:.0%}", _gain(gain[name]))
        table.add_row(Text(name), rates, _demand(p.demand[name], r.unit), shown[0], _percent(ends), shown[1])
    return table


def _interval(p: Profile, name: str) -> tuple[float, float] | None:
    """The interval of a share; None where rates rise and fall together, since fits then agree by chance."""
    return p.shares[name].interval if p.condition <= MOST_CONDITION else None


def _percent(interval: tuple[float, float] | None) -> str:
    return " to ".join(f"{end:.0%}" for end in interval) if interval else "–"


def _work(unit: str) -> str:
    """The name of a unit of work of a throughput."""
    return {"1/s": "operation", "B/s": "byte", "FLOP/s": "FLOP"}.get(unit, "unit of score")


def _demand(value: float, unit: str) -> str:
    if unit == "1":
        return f"{human(value, 's')} at 1"
    if unit == "1/s":
        return f"{significant(value)} times"
    return human(value, unit).removesuffix("/s") if unit == "FLOP/s" else human(value, unit.removesuffix("/s"))


def _gain(ratio: Ratio) -> str:
    gain = f"{ratio.value - 1:+.1%}"
    return f"{gain} ({' to '.join(f'{end - 1:+.1%}' for end in ratio.interval)})" if ratio.interval else gain


def _refused(profiled: Profiled) -> list[RenderableType]:
    p = profiled.profile
    parts: list[RenderableType] = [Text(""), Text("Cannot tell what it is short of:", style="bold yellow")]
    parts += [Text(f"  {why}") for why in p.refused]
    if p.throttle is None:
        return parts
    name, condition = p.throttle
    depths = ", ".join(f"{part:.0%}" for part in THROTTLES)
    parts.append(
        Text(
            f"  To settle it, measure the target and all resources on one machine with {name} throttled to {depths} of "
            f"its rate, each with the inventory label throttle ({name}-50, say). The condition number is then "
            f"{condition:.0f}."
        )
    )
    workloads = {b.partition(" ")[0] for b in profiled.resources[name].benchmarks}
    return parts + [Text(f"  {how}", style="dim") for how in dict.fromkeys(map(throttle, sorted(workloads))) if how]


def _upgrades(gains: Sequence[Gain]) -> Table:
    table = _table("upgrade of the mean machine", "gives", "money", "gain per 1000")
    for g in gains:
        money = "" if g.upgrade.money is None else f"{g.upgrade.money:,.0f}"
        per = "" if g.per_money is None else f"{g.per_money * 1000:+.2%}"
        table.add_row(Text(g.upgrade.name), _gain(g.ratio), money, per)
    return table


def _predictions(profiled: Profiled, predictions: Sequence[MachinePrediction]) -> list[RenderableType]:
    base = predictions[0].baseline
    table = _table("machines", f"one is worth ({base})" if base else "does", "95%", "hosts")
    notes: list[RenderableType] = []
    for t in predictions:
        if t.why:
            notes.append(Text(f"{t.machines}: cannot tell: {t.why}"))
            continue
        figures = (t.estimate.value, *(t.estimate.interval or ()))
        value, *ends = (significant(v) if base else human(v, profiled.unit) for v in figures)
        table.add_row(Text(t.machines), value, " to ".join(ends), str(t.estimate.n[-1]))
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
