"""``fleetmark compare`` and ``reference``: from selectors over everything on record to a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark import pool, reference
from fleetmark.model import FleetmarkError
from fleetmark.selection import Machine, choose
from planner.comparison import Comparison, comparison
from planner.equivalence import LEAST_MACHINES, Pairing
from workloads.manifest import read_yaml, suggest


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
) -> Comparison:
    """The comparison that the command line asks for. Raises FleetmarkError for what makes no sense or has no data."""
    if (baseline is None) == (pinned is None):
        raise FleetmarkError("compare needs --baseline gen=… or --reference NAME, one of them")
    if per not in pool.PER:
        raise FleetmarkError(f"--per {per}{suggest(per, list(pool.PER))}: it is one of {', '.join(pool.PER)}")
    if pinned and (paired or per != "server"):
        raise FleetmarkError("--reference goes with whole servers and without --paired: a pinned figure is neither")
    if (best or by != "host") and (paired or per != "server"):
        raise FleetmarkError("--best and --by go with whole servers and without --paired: they make hosts of several")
    every = pool.machines(root)
    sides = [pool.side(root, c, choose(every, c), only=only, per=per, by=by, best=best) for c in candidates]
    shares = _mix(mix) if mix else None
    if pinned:
        found = reference.load(root, pinned)
        return comparison(found.side, sides, mix=shares, weights=found.weights, pairing=Pairing.PINNED)
    assert baseline is not None
    base = pool.side(root, baseline, choose(every, baseline), only=only, per=per, by=by, best=best)
    kinds = _kinds(root, every, only)
    pairing = Pairing.SAME_HOSTS if paired else Pairing.APART
    for side in sides if paired else ():
        if not len(base.means.index.intersection(side.means.index)):
            raise FleetmarkError(f"--paired: {baseline} and {side.title} have no host in common; compare them without")
    return comparison(base, sides, per=per, mix=shares, machines=kinds, pairing=pairing)


def _kinds(root: Path, every: Sequence[Machine], only: Sequence[str]) -> pd.DataFrame | None:
    """A row per generation on record, for telling which benchmarks are redundant; None below what that takes."""
    labelled = [m for m in every if "gen" in m.labels]
    if len({m.labels["gen"] for m in labelled}) < LEAST_MACHINES:
        return None
    found = pool.side(root, "everything on record", labelled, only=only)
    return found.means.groupby({m.host: m.labels["gen"] for m in labelled}).mean()


def _mix(text: str) -> dict[str, float]:
    """``cpu-int=0.6,disk=0.4``, or a YAML file of such keys and values."""
    if text.endswith((".yml", ".yaml")):
        pairs: dict[str, Any] = read_yaml(Path(text))
    else:
        parts = [part.rpartition("=") for part in text.split(",")]
        pairs = {name.strip(): share for name, _, share in parts}
    made = {}
    for name, share in pairs.items():
        try:
            made[str(name)] = float(share)
        except (TypeError, ValueError):
            raise FleetmarkError(f"--mix {text}: {share!r} is no share; write cpu-int=0.6,disk=0.4") from None
        if not name:
            raise FleetmarkError(f"--mix {text}: {share} of what? Write cpu-int=0.6,disk=0.4")
    return made


def pin(root: Path, name: str, selector: str) -> str:
    """Save a reference; what to say of it."""
    chosen = choose(pool.machines(root), selector)
    made = reference.save(root, name, pool.side(root, selector, chosen), chosen)
    return f"{made.name}@{made.version}: {len(made.side.benchmarks)} benchmarks of {made.hosts} hosts ({selector})"


def listed(root: Path) -> list[dict[str, Any]]:
    """Every reference, as JSON would have it."""
    return [
        {
            "name": r.name,
            "version": r.version,
            "created": r.created,
            "from": r.selector,
            "hosts": r.hosts,
            "benchmarks": len(r.side.benchmarks),
        }
        for r in reference.references(root)
    ]


def table(found: Sequence[dict[str, Any]]) -> RenderableType:
    """The references for a terminal."""
    if not found:
        return Text("no references; `fleetmark reference save NAME --from gen=…` pins one")
    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in found[0]:
        made.add_column(name)
    for row in found:
        made.add_row(*(Text(str(v)) for v in row.values()))
    return made
