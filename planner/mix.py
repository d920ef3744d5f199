"""Resolve a mix of work into shares of benchmarks, and report the errors in it."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Container, Mapping

import pandas as pd

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.kinds import PEAK, successors
from fleetmark.base.measurement import Kind


def shares_of(mix: Mapping[str, float], benchmarks: pd.DataFrame, shared: Container[str]) -> dict[str, float]:
    """Return the share of each title in a mix.

    The share of a pattern is divided equally among its benchmarks. The share of a class is divided among the quantities
    that its benchmarks measure, so redundant benchmarks divide one part. ``benchmarks`` has one row per title, as in
    ``planner.comparison.Side``. ``shared`` lists the titles that all sides have, which take precedence.

    Raise FleetmarkError if the mix does not sum to 1, or if it names something that is not measured or not capacity.
    """
    total = sum(mix.values())
    for name, share in mix.items():
        if not (math.isfinite(share) and share >= 0):
            raise FleetmarkError(f"the work mix gives {name} {share:g}: a share is a number from 0 to 1")
    if abs(total - 1) > 1e-6:
        raise FleetmarkError(f"the work mix sums to {total:g}, not to 1: its shares are parts of all server-hours")
    for name in mix:
        if name.removesuffix(PEAK) != name and name.removesuffix(PEAK) in mix:
            base = name.removesuffix(PEAK)
            raise FleetmarkError(f"the work mix names {base} and {name}, which are one work twice: name one of them")
    shares: dict[str, float] = {}
    for name, share in mix.items():
        titles = _of_mix(name, benchmarks)
        both = [t for t in titles if t in shared]
        members: dict[str, list[str]] = {}
        of_class = not any(fnmatch.fnmatchcase(t, name) for t in titles)  # a pattern selects benchmarks one by one
        for title in both or titles:
            quantity = str(benchmarks.loc[title, "quantity"]) if of_class else ""
            members.setdefault(quantity or title, []).append(title)
        for group in members.values():
            for title in group:
                shares[title] = shares.get(title, 0.0) + share / len(members) / len(group)
    return shares


def ratio_of_class(
    name: str, benchmarks: pd.DataFrame, shared: Container[str], ratios: Mapping[str, float]
) -> float | None:
    """Return the equal-work ratio of a mix of one class, from the ratio of each benchmark.

    The ratio of any mix of classes is the harmonic mean of these, weighted by their shares, if every host has every
    benchmark. Return None if the class has no capacity benchmark, or lacks a ratio. ``benchmarks``, ``shared``: as in
    ``shares_of``.
    """
    try:
        shares = shares_of({name: 1.0}, benchmarks, shared)
    except FleetmarkError:
        return None
    if any(title not in ratios for title in shares):
        return None
    return 1 / sum(share / ratios[title] for title, share in shares.items())


def _of_mix(name: str, benchmarks: pd.DataFrame) -> list[str]:
    """Return the capacity benchmarks that a name in a mix selects: a title, a pattern of titles or a class.

    Raise FleetmarkError if nothing of that name is measured, or if none of it is capacity.
    """
    titles = [str(t) for t in benchmarks.index if t == name or fnmatch.fnmatchcase(str(t), name)]
    titles = titles or [str(t) for t in benchmarks.index[benchmarks["class"] == name]]
    work = sorted(benchmarks.loc[benchmarks["kind"] == Kind.CAPACITY, "class"].unique())
    work = [c for c in work if not c.endswith(PEAK)] or work
    if not titles and (sentence := successors(name)):
        raise FleetmarkError(f"the work mix names {name!r}: {sentence}")
    if not titles:
        capacity = benchmarks.index[benchmarks["kind"] == Kind.CAPACITY]
        some = "; ".join(map(str, capacity[:4])) + ("; …" if len(capacity) > 4 else "")
        of_work = f"write a class of capacity ({', '.join(work)}) or a benchmark ({some})" if work else "remove --mix"
        raise FleetmarkError(f"the work mix names {name!r}, which is not measured{suggest(name, work)}; {of_work}")
    chosen = benchmarks.loc[titles]
    chosen = chosen[chosen["kind"] == Kind.CAPACITY]
    if chosen.empty:
        kind = str(benchmarks.loc[titles[0], "kind"]) or "a setting"
        example = ",".join(f"{c}={1 / len(work[:2]):g}" for c in work[:2])
        hint = f"write one of capacity, such as --mix {example}" if work else "nothing here is: remove --mix"
        raise FleetmarkError(
            f"the work mix names {name!r}, which is {kind}: only capacity is an amount of work; {hint}"
        )
    tuned = chosen["class"].str.endswith(PEAK)  # both would count the same work twice
    return [str(t) for t in (chosen[~tuned] if not tuned.all() else chosen).index]
