"""From selectors over everything on record to a comparison."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.yaml import read_yaml
from fleetmark.record import pool
from fleetmark.record import references as reference
from fleetmark.record.select import Machine, choose, told_apart
from planner.comparison import Comparison, Side, compare_sides
from planner.equivalence import LEAST_MACHINES, Pairing


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison and what it was made of: side's title to its machines, (campaign, host) to what the host goes by.

    ``turned``: the same sides with each of the others as the baseline, by that side's title; a pinned reference
    cannot be turned round. ``sides``: each side's title to what was read of it.
    """

    found: Comparison
    machines: Mapping[str, Sequence[Machine]]
    names: Mapping[tuple[str, str], str]
    turned: Mapping[str, Comparison] = field(default_factory=dict)
    sides: Mapping[str, Side] = field(default_factory=dict)


def compare(
    root: Path,
    baseline: str | None,
    candidates: Sequence[str],
    pinned: str | None,
    per: str,
    mix: str | None,
    only: Sequence[str],
    paired: bool,
    by: str = "host",
    best: bool = False,
    turn: bool = False,
) -> Compared:
    """The comparison that the command line asks for; with ``turn`` also from each candidate's side.

    Raises FleetmarkError for what makes no sense or has no data.
    """
    if (baseline is None) == (pinned is None):
        raise FleetmarkError("compare needs --baseline gen=… or --reference NAME, one of them")
    if per not in pool.PER:
        raise FleetmarkError(f"--per {per}{suggest(per, list(pool.PER))}: it is one of {', '.join(pool.PER)}")
    if pinned is not None and (paired or per != "server"):
        raise FleetmarkError("--reference goes with whole servers and without --paired: a pinned figure is neither")
    if (best or by != "host") and (paired or per != "server"):
        raise FleetmarkError("--best and --by go with whole servers and without --paired: they make hosts of several")
    every = pool.machines(root)
    shares = None if mix is None else _mix(mix)
    selected = {c: choose(every, c) for c in candidates}
    first = {} if baseline is None else {baseline: choose(every, baseline)}
    names = told_apart([m for s in (selected, first) for c in s.values() for m in c], by_id=paired or per != "server")
    found, weights, pairing = None, None, Pairing.SAME_HOSTS if paired else Pairing.APART
    if pinned is not None:
        reference_ = reference.load(root, pinned)
        found, weights, pairing = reference_.side, reference_.weights, Pairing.PINNED
    for title, chosen in selected.items():
        for base, hosts in first.items():
            _apart(base, hosts, title, chosen, names, paired)
    sides = {t: pool.side(root, t, c, only=only, per=per, by=by, best=best, names=names) for t, c in selected.items()}
    if baseline is not None:
        found = pool.side(root, baseline, first[baseline], only=only, per=per, by=by, best=best, names=names)
    assert found is not None
    _all_matched(only, [found, *sides.values()])
    kinds = None if pinned is not None else kinds_on_record(root, every, only)
    made = compare_sides(
        found, list(sides.values()), per=per, mix=shares, machines=kinds, weights=weights, pairing=pairing
    )
    turned = {}
    if turn and pinned is None:
        for title, side in sides.items():
            others = [found, *(s for t, s in sides.items() if t != title)]
            with contextlib.suppress(FleetmarkError):  # two candidates may share nothing
                turned[title] = compare_sides(side, others, per=per, mix=shares, machines=kinds, pairing=pairing)
    return Compared(made, {**first, **selected}, names, turned, {s.title: s for s in (found, *sides.values())})


def _apart(
    baseline: str,
    first: Sequence[Machine],
    title: str,
    chosen: Sequence[Machine],
    names: Mapping[tuple[str, str], str],
    paired: bool,
) -> None:
    """Raises FleetmarkError where two sides are made of the same figures, or pairs of none."""
    mine = {(m.campaign, m.host) for m in first}
    both = [f"{m.host} of {m.campaign}" for m in chosen if (m.campaign, m.host) in mine]
    if both:
        raise FleetmarkError(
            f"{baseline} and {title} both select {', '.join(both[:3])}{', …' if len(both) > 3 else ''}: "
            "figures cannot be set against themselves; narrow one of them"
        )
    if paired and not {names[key] for key in mine} & {names[m.campaign, m.host] for m in chosen}:
        same = {m.host for m in first} & {m.host for m in chosen}
        why = f" ({', '.join(sorted(same)[:3])}: other machines of that name)" if same else ""
        raise FleetmarkError(f"--paired: {baseline} and {title} have no host in common{why}; compare them without")


def _all_matched(only: Sequence[str], sides: Sequence[Side]) -> None:
    for pattern in only:
        titles = {"/".join(row) for s in sides for row in s.benchmarks[["workload", "case", "metric"]].to_numpy()}
        if not any(fnmatch.fnmatchcase(t, pattern) for t in titles):
            raise FleetmarkError(f"--only {pattern} matches no benchmark that passed; there are {pool.some(titles)}")


def kinds_on_record(root: Path, every: Sequence[Machine], only: Sequence[str]) -> pd.DataFrame | None:
    """A row per generation on record, for telling which benchmarks are redundant; None below what that takes."""
    labelled = [m for m in every if "gen" in m.labels]
    if len({m.labels["gen"] for m in labelled}) < LEAST_MACHINES:
        return None
    return pool.side(root, "everything on record", labelled, only=only, by="gen").means


def _mix(text: str) -> dict[str, float]:
    """``cpu-int=0.6,disk=0.4``, or a YAML file of such keys and values."""
    if text.endswith((".yml", ".yaml")):
        pairs: dict[str, Any] = read_yaml(Path(text))
    else:
        parts = [(name.strip(), share) for name, _, share in (part.rpartition("=") for part in text.split(","))]
        pairs = dict(parts)
        if twice := [name for n, (name, _) in enumerate(parts) if name in dict(parts[:n])]:
            raise FleetmarkError(f"--mix {text}: {twice[0]} stands twice; give it one share")
    made = {}
    for name, share in pairs.items():
        try:
            made[str(name)] = float(share)
        except (TypeError, ValueError):
            raise FleetmarkError(f"--mix {text}: {share!r} is no share; write cpu-int=0.6,disk=0.4") from None
        if not name:
            raise FleetmarkError(f"--mix {text}: {share} of what? Write cpu-int=0.6,disk=0.4")
    return made
