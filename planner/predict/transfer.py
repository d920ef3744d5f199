"""Predict the missing figures of a new machine from a few known ones and the stored machines.

Every known figure casts a vote: a regression line from it to the target over the machines that have both. The line
includes their ratio and its trend with the figure and with facts such as cores. All known figures together cast one
more vote. Votes are weighted by their past errors.

The interval comes from the errors on machines whose whole family was left out, so it also holds for a machine of an
unknown family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count, message
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.predict.votes import LEAST_FAMILIES, Codes, Floats, Joined, Vote, join, reach, vote
from fleetmark.planner.ratio import Ratio

LEVEL = 0.9  # level of the prediction intervals
LEAST_MACHINES = 8
BEYOND = 2.0  # maximum factor between a usable figure and the stored range
TOGETHER = "all together"  # the vote of all known figures combined


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The prediction of ``target`` for the new machine.

    - ``log``: the natural logarithm of the value, with an interval that covers ``level`` of such machines; None if
      there is no prediction, and ``reason`` says why
    - ``ratio``: the ratio to the baseline machine; None without one, or if it lacks the target
    - ``machines``: the stored machines behind the prediction; ``families``: the number of their families
    - ``votes``: the weight of each known figure
    - ``ignored``: for each figure or fact without a vote, the reason
    """

    target: str
    log: Estimate | None
    level: float
    reason: str = ""
    ratio: Ratio | None = None
    machines: Sequence[str] = ()
    families: int = 0
    votes: Mapping[str, float] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Return the value with its interval, or "cannot tell" with the reason."""
        if self.log is None or self.log.interval is None:
            return f"cannot tell: {self.reason}"
        value, lo, hi = (math.exp(v) for v in (self.log.value, *self.log.interval))
        return f"{value:.4g} ({self.level:.0%} interval {lo:.4g}-{hi:.4g}; {count(len(self.machines), 'machine')})"


@dataclass(frozen=True, slots=True)
class _Record:
    machines: list[str]
    columns: dict[str, int]
    values: Floats
    family: Codes
    facts: dict[str, Floats]


def transfer(
    history: pd.DataFrame,
    families: Mapping[str, str],
    known: Mapping[str, float],
    targets: Sequence[str],
    *,
    facts: pd.DataFrame | None = None,
    known_facts: Mapping[str, float] | None = None,
    baseline: str | None = None,
    level: float = LEVEL,
) -> dict[str, Prediction]:
    """Predict each of ``targets`` for a machine with the figures ``known``; a target's own figure is not used for it.

    - ``history``: natural logs, one row per machine and one column per benchmark; NaN if missing
    - ``families``: the family of each machine (the generation of its processor or accelerator)
    - ``facts``, ``known_facts``: logs of facts that need no measurement (cores, cache); only facts in both are used
    - ``baseline``: the machine of ``history`` that ratios refer to

    Raise FleetmarkError for invalid input.
    """
    record = _record(history, families, facts)
    fact_values = dict(known_facts or {})
    bad = [k for k, v in {**known, **fact_values}.items() if not math.isfinite(v)]
    if bad:
        raise FleetmarkError(f"the new machine's {bad[0]} is not a finite logarithm; exclude it, or pass log(value)")
    if baseline is not None and baseline not in record.machines:
        raise FleetmarkError(f"the baseline {baseline!r} is not among the {len(history)} stored machines")
    if not 0.5 <= level < 1:
        raise FleetmarkError(f"an interval of level {level:g} cannot be made; give one from 0.5 to 0.99")
    return {t: _predict(record, t, known, fact_values, baseline, level) for t in targets}


def _record(history: pd.DataFrame, families: Mapping[str, str], facts: pd.DataFrame | None) -> _Record:
    machines, columns = [str(m) for m in history.index.tolist()], [str(c) for c in history.columns]
    for noun, names in (("machine", machines), ("benchmark", columns)):
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise FleetmarkError(f"the {noun} {twice!r} is recorded twice; merge its figures first")
    strays = [m for m in machines if m not in families]
    if strays:
        raise FleetmarkError(
            f"{len(strays)} stored machines have no family, {strays[0]} among them; specify their families"
        )
    values = history.to_numpy(float)
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise FleetmarkError(f"{columns[column]} of {machines[row]} is infinite: a figure of zero has no logarithm")
    _, codes = np.unique([families[m] for m in machines], return_inverse=True)
    of_facts = {} if facts is None else {str(c): facts[c].reindex(history.index).to_numpy(float) for c in facts}
    return _Record(machines, {c: i for i, c in enumerate(columns)}, values, np.asarray(codes, dtype=np.intp), of_facts)


def _predict(
    record: _Record,
    target: str,
    known: Mapping[str, float],
    fact_values: Mapping[str, float],
    baseline: str | None,
    level: float,
) -> Prediction:
    def cannot(reason: str, ignored: Mapping[str, str] | None = None) -> Prediction:
        return Prediction(target=target, log=None, level=level, reason=reason, ignored=ignored or {})

    if target not in record.columns:
        return cannot(f"no stored machine has {target}")
    facts = [n for n in record.facts if n in fact_values and not np.isnan(record.facts[n]).all()]
    of_facts = np.column_stack([record.facts[n] for n in facts]) if facts else np.empty((len(record.machines), 0))
    y = record.values[:, record.columns[target]]
    rows = np.flatnonzero(~np.isnan(y) & ~np.isnan(of_facts).any(axis=1))
    named = [n for n in known if n in record.columns and n != target]
    ignored = {n: "no stored machine has it" for n in known if n not in record.columns}
    x = record.values[rows][:, np.array([record.columns[n] for n in named], dtype=np.intp)]
    rows, x = rows[~np.isnan(x).all(axis=1)], x[~np.isnan(x).all(axis=1)]
    many, families = len(rows), len(np.unique(record.family[rows]))
    if not named:
        return cannot("no stored machine has any of the known figures", ignored)
    if many < LEAST_MACHINES or families < LEAST_FAMILIES:
        need = f"{LEAST_MACHINES} machines of {LEAST_FAMILIES} families are needed"
        with_facts = ", with the facts that were given" if facts else ""
        return cannot(f"{many} machines of {families} families have it and a known figure{with_facts}; {need}", ignored)
    y, of_facts, family = y[rows], of_facts[rows], np.unique(record.family[rows], return_inverse=True)[1]
    new_facts = np.array([fact_values[n] for n in facts])
    for i, name in enumerate(facts):
        if out := _beyond(of_facts[:, i], fact_values[name]):
            return cannot(f"its {name} {out}", ignored | {name: out})
    names, votes = [], []
    for i, name in enumerate(named):
        figures = x[:, i][~np.isnan(x[:, i])]
        if out := _beyond(figures, known[name]) if len(figures) else "":
            ignored[name] = out
        elif cast := vote(y, x[:, [i]], of_facts, family, np.array([known[name]]), new_facts):
            names.append(name)
            votes.append(cast)
        else:
            ignored[name] = f"fewer than {LEAST_FAMILIES} stored families have it and {target}"
    if not votes:
        return cannot("; ".join(f"{n} {w}" for n, w in list(ignored.items())[:2]), ignored)
    if len(names) > 1:
        positions = [named.index(n) for n in names]
        cast = vote(y, x[:, positions], of_facts, family, np.array([known[n] for n in names]), new_facts)
        names, votes = ([*names, TOGETHER], [*votes, cast]) if cast else (names, votes)
    return _prediction(record, target, rows, y, family, names, votes, ignored, baseline, level)


def _prediction(
    record: _Record,
    target: str,
    rows: Codes,
    y: Floats,
    family: Codes,
    names: Sequence[str],
    votes: Sequence[Vote],
    ignored: Mapping[str, str],
    baseline: str | None,
    level: float,
) -> Prediction:
    joined: Joined = join(votes, y)
    judged = ~np.isnan(joined.errors)
    half = reach(joined.errors[judged], family[judged], level) * joined.scale
    ratio, reason = None, ""
    if baseline is not None:
        figure = float(record.values[record.machines.index(baseline), record.columns[target]])
        if math.isnan(figure):
            reason = message("no ratio: the baseline {baseline} has no {target}", baseline=baseline, target=target)
        else:
            value, lo, hi = (math.exp(joined.value - figure + d) for d in (0, -half, half))
            ratio = Ratio(value, lo, hi, level, n=(1, 1))
    machines = [record.machines[i] for i in rows[judged]]
    return Prediction(
        target=target,
        log=Estimate(joined.value, joined.value - half, joined.value + half, level, n=(len(machines),)),
        level=level,
        reason=reason,
        ratio=ratio,
        machines=machines,
        families=len(np.unique(family[judged])),
        votes={n: float(s) for n, s in zip(names, joined.shares, strict=True)},
        ignored=ignored,
    )


def _beyond(figures: Floats, value: float) -> str:
    """Return why ``value`` cannot be used because it lies far outside ``figures``; empty if it can be used."""
    lo, hi = float(figures.min()), float(figures.max())
    if lo - math.log(BEYOND) <= value <= hi + math.log(BEYOND):
        return ""
    span = f"{math.exp(lo):.4g} to {math.exp(hi):.4g}"
    return f"({math.exp(value):.4g}) lies more than {BEYOND:g} times beyond the record, {span}"
