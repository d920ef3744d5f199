"""Implement ``fleetmark predict``: predict a machine's results on benchmarks that it has not run, from recorded
machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better
from fleetmark.base.patterns import is_chosen
from fleetmark.planner.comparison import Side, at_odds
from fleetmark.planner.predict.transfer import Prediction, transfer
from fleetmark.record import imports as importing
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine, choose
from fleetmark.record.sides import sides as sides_of
from fleetmark.reports.lists.predictions import BenchmarkPrediction, document
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def predict(
    root: Path, machine: str, targets: Sequence[str], baseline: str | None, family: str, level: float
) -> list[BenchmarkPrediction]:
    """Predict the figures of ``machine`` (a selector) on the recorded benchmarks that it has not run.

    ``targets``: shell-style patterns that benchmark titles must match. ``family``: the label that identifies a machine
    family. Raise FleetmarkError if no prediction is possible.
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
            f"no other recorded machine has the label {family!r}, which identifies families; use --family"
        )
    family_of = {f"{f}, {kind}": f for f, kind in kinds}
    chosen = dict(zip(family_of, kinds.values(), strict=True))
    if base:
        families = {m.labels[family] for m in base if family in m.labels}
        family_of["baseline"], chosen["baseline"] = ", ".join(sorted(families)) or "baseline", base
    side_of = sides_of(root, {machine: new, **chosen})
    measured, sides = side_of[machine], {name: (f, side_of[name]) for name, f in family_of.items()}
    history = pd.DataFrame({name: side.means.mean() for name, (_, side) in sides.items()}).T
    descriptions = _about([side for _, side in sides.values()])
    logs = measured.means.mean().dropna()
    clashes = _clashes([measured, *(side for _, side in sides.values())])
    titles = [str(t) for t in history.columns if t not in logs.index and is_chosen(str(t), targets)]
    if not titles:
        raise FleetmarkError(
            f"{machine} has already run every recorded benchmark{' of ' + ', '.join(targets) if targets else ''}"
        )
    predictions = transfer(
        history.drop(columns=list(clashes), errors="ignore"),
        {name: f for name, (f, _) in sides.items()},
        {str(t): float(v) for t, v in logs.items() if t in history.columns and t not in clashes},
        [t for t in titles if t not in clashes],
        baseline="baseline" if base else None,
        level=level,
    )
    predictions |= {t: Prediction(target=t, log=None, level=level, reason=clashes[t]) for t in titles if t in clashes}
    return [BenchmarkPrediction(predictions[t], *descriptions[t]) for t in titles]


def _kind(machine: Machine) -> str:
    model = next((machine.labels[k] for k in importing.MODEL if k in machine.labels), None)
    if model:
        return model
    facts = machine.facts()
    return (facts.cpu.model if facts else None) or machine.host


def _about(sides: Sequence[Side]) -> Mapping[str, tuple[str, str]]:
    """Return the unit and the direction of each benchmark."""
    rows = pd.concat([s.benchmarks for s in sides])
    return {str(t): (str(u), str(b)) for t, u, b in zip(rows.index, rows["unit"], rows["better"], strict=True)}


def _clashes(sides: Sequence[Side]) -> Mapping[str, str]:
    """Return the benchmarks whose units or directions differ between machines, each with the difference."""
    clashes = {}
    for title, rows in pd.concat([s.benchmarks for s in sides]).groupby(level=0):
        units, directions = (sorted(set(rows[key])) for key in ("unit", "better"))
        if quantity := at_odds(units, directions):
            values = units if quantity == "units" else [Better(d).phrase or d for d in directions]
            clashes[str(title)] = f"{quantity} clash: {', '.join(values)}"
    return clashes


def show(predictions: Sequence[BenchmarkPrediction], form: str, console: Console, files: Documents) -> None:
    """Print the predictions as ``form``, and write the requested ``files``."""
    documents.show(document(predictions), form, console, files)
