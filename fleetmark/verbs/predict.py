"""``fleetmark predict``: what a machine would show on what it did not run, by the machines on record."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better
from fleetmark.base.units import human
from fleetmark.record import imports as importing
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine, choose
from fleetmark.record.sides import sides as sides_of
from planner.comparison import Side, at_odds
from planner.predict.transfer import Prediction, transfer


@dataclass(frozen=True, slots=True)
class Foretold:
    """One benchmark: its prediction, and how to read it (unit, direction)."""

    prediction: Prediction
    unit: str
    better: str

    def value(self, log: float | None) -> float | None:
        """An oriented logarithm in base units."""
        return None if log is None else math.exp(-log if self.better == Better.LOWER else log)

    def ends(self) -> tuple[float | None, float | None]:
        """The interval in base units, the smaller end first."""
        log = self.prediction.log
        lo, hi = (self.value(log.lo), self.value(log.hi)) if log else (None, None)
        return (hi, lo) if self.better == Better.LOWER else (lo, hi)

    def as_json(self) -> dict[str, Any]:
        p, (lo, hi) = self.prediction, self.ends()
        return {
            "benchmark": p.target,
            "unit": self.unit,
            "better": self.better,
            "value": self.value(p.log.value if p.log else None),
            "lo": lo,
            "hi": hi,
            "level": p.level,
            "ratio": p.ratio.value if p.ratio else None,
            "ratio_lo": p.ratio.lo if p.ratio else None,
            "ratio_hi": p.ratio.hi if p.ratio else None,
            "machines": len(p.machines),
            "families": p.families,
            "why": p.why,
            "votes": dict(p.votes),
        }


def predict(
    root: Path, machine: str, targets: Sequence[str], baseline: str | None, family: str, level: float
) -> list[Foretold]:
    """What the ``machine`` (a selector) would show on what the record has and it lacks.

    ``targets``: shell-style patterns over benchmarks' titles; ``family``: the label that tells families apart. Raises
    FleetmarkError where the record cannot serve.
    """
    every = machines(root)
    new = choose(every, machine)
    base = choose(every, baseline) if baseline else []
    taken = {id(m) for m in [*new, *base]}
    kinds: dict[tuple[str, str], list[Machine]] = {}
    for m in every:
        if id(m) not in taken and family in m.labels:
            kinds.setdefault((m.labels[family], _kind(m)), []).append(m)
    if not kinds:
        raise FleetmarkError(
            f"no other machine on record has the label {family!r}, which tells families apart: --family"
        )
    families = {f"{f}, {kind}": f for f, kind in kinds}
    chosen = dict(zip(families, kinds.values(), strict=True))
    if base:
        own = {m.labels[family] for m in base if family in m.labels}
        families["baseline"], chosen["baseline"] = ", ".join(sorted(own)) or "baseline", base
    of = sides_of(root, {machine: new, **chosen})
    known, sides = of[machine], {name: (f, of[name]) for name, f in families.items()}
    history = pd.DataFrame({name: side.means.mean() for name, (_, side) in sides.items()}).T
    about = _about([side for _, side in sides.values()])
    have = known.means.mean().dropna()
    clash = _clashes([known, *(side for _, side in sides.values())])
    wanted = [t for t in history.columns if t not in have.index and _asked(str(t), targets)]
    if not wanted:
        raise FleetmarkError(f"{machine} has all that the record has{' of ' + ', '.join(targets) if targets else ''}")
    found = transfer(
        history.drop(columns=list(clash), errors="ignore"),
        {name: f for name, (f, _) in sides.items()},
        {str(t): float(v) for t, v in have.items() if t in history.columns and t not in clash},
        [str(t) for t in wanted if t not in clash],
        baseline="baseline" if base else None,
        level=level,
    )
    found |= {str(t): Prediction(str(t), None, level, clash[t]) for t in wanted if t in clash}
    return [Foretold(found[str(t)], *about[str(t)]) for t in wanted]


def _kind(machine: Machine) -> str:
    named = next((machine.labels[k] for k in importing.MODEL if k in machine.labels), None)
    if named:
        return named
    facts = machine.facts()
    return (facts.cpu.model if facts else None) or machine.host


def _about(sides: Sequence[Side]) -> Mapping[str, tuple[str, str]]:
    found = pd.concat([s.benchmarks for s in sides])
    return {str(t): (str(u), str(b)) for t, u, b in zip(found.index, found["unit"], found["better"], strict=True)}


def _clashes(sides: Sequence[Side]) -> Mapping[str, str]:
    """Benchmarks whose figures do not go together, and why."""
    found = {}
    for title, of in pd.concat([s.benchmarks for s in sides]).groupby(level=0):
        units, ways = (sorted(set(of[key])) for key in ("unit", "better"))
        if what := at_odds(units, ways):
            told = units if what == "units" else [Better(way).phrase or way for way in ways]
            found[str(title)] = f"{what} clash: {', '.join(told)}"
    return found


def _asked(title: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(title, p) for p in patterns)


def table(found: Sequence[Foretold]) -> list[RenderableType]:
    """What is foretold, for a terminal; then what cannot be told, and why."""
    told = [f for f in found if f.prediction.log is not None]
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    made.add_column("benchmark", overflow="fold", min_width=24)
    made.add_column("predicted", justify="right", no_wrap=True)
    made.add_column("interval", justify="right")
    made.add_column("ratio", justify="right")
    made.add_column("by", justify="right", no_wrap=True)
    for f in told:
        p, (lo, hi) = f.prediction, f.ends()
        ratio = _ratio(p.ratio.value, p.ratio.lo, p.ratio.hi) if p.ratio else ""
        ends = f"{human(lo or 0, f.unit)} to {human(hi or 0, f.unit)}"
        value = human(f.value(p.log.value if p.log else None) or 0, f.unit)
        made.add_row(Text(p.target), value, ends, Text(ratio), f"{len(p.machines)}/{p.families}")
    parts: list[RenderableType] = [made] if told else []
    for f in found:
        if f.prediction.log is None:
            parts.append(Text(f"{f.prediction.target}: cannot tell: {f.prediction.why}"))
    if told:
        level = told[0].prediction.level
        parts.append(
            Text(
                f"interval: holds {level:.0%} of machines of a family that is not on record; by: machines/families",
                style="dim",
            )
        )
    return parts


def _ratio(value: float, lo: float | None, hi: float | None) -> str:
    return f"{value:.3g}" if lo is None or hi is None else f"{value:.3g} [{lo:.3g}, {hi:.3g}]"
