"""The map of hosts by classes: how far each host lies from the median of its own side, in percent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from planner import peers
from planner.comparison import Comparison, Side
from reports.campaign.deviation import LEVELS, STEP
from reports.comparison.titles import class_title
from reports.kit import format as fmt

MOST = 60  # hosts
MOST_CLASSES = 12


@dataclass(frozen=True, slots=True)
class Cell:
    """``text``: the deviation in percent; ``level``: its colour, -LEVELS to LEVELS."""

    text: str
    level: int
    deviation: float


@dataclass(frozen=True, slots=True)
class Row:
    """A host of ``side``; ``cells``: None where it has no figure."""

    host: str
    side: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class PeerMap:
    """Rows of hosts by ``columns`` of classes, the first over all; ``left_out`` hosts lie nearer to their median."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int


def peer_map(comparison: Comparison, sides: Mapping[str, Side]) -> PeerMap | None:
    """The map; None where no side has peers to be compared."""
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    frames = {t: peers.deviations(sides[t]) for t in titles if t in sides and len(sides[t].means) >= peers.LEAST}
    if not frames:
        return None
    names = [c for c in dict.fromkeys(c for frame in frames.values() for c in frame.columns) if c][:MOST_CLASSES]
    columns = ["", *names] if len(names) > 1 else names
    hosts = [(t, host) for t, frame in frames.items() for host in frame.index]
    far = [away for frame in frames.values() for away in frame.abs().max(axis=1).fillna(0.0).tolist()]
    kept = sorted(range(len(hosts)), key=lambda n: -far[n])[:MOST]
    shown = [_row(str(host), t, frames[t].loc[host], columns) for t, host in (hosts[n] for n in sorted(kept))]
    return PeerMap(tuple(class_title(c) if c else "" for c in columns), tuple(shown), len(hosts) - len(shown))


def _row(host: str, side: str, values: pd.Series, columns: Sequence[str]) -> Row:
    return Row(host, side, tuple(_cell(float(values.get(c, float("nan")))) for c in columns))


def _cell(deviation: float) -> Cell | None:
    if math.isnan(deviation):
        return None
    level = round(100 * deviation / STEP)
    text = fmt.change(deviation)
    return Cell("0.0%" if text in ("+0.0%", "-0.0%") else text, max(-LEVELS, min(LEVELS, level)), deviation)
