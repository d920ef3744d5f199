"""Draw the map of hosts by classes: each host's deviation from the median of its own side, in percent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from fleetmark.base.text import message
from fleetmark.planner import peers
from fleetmark.planner.comparison import Comparison, Side
from fleetmark.reports.campaign.deviation import LEVELS, STEP
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, Tone

MOST = 60  # maximum hosts in the map
MOST_CLASSES = 12
TONES: Mapping[int, Tone] = {
    -5: "h-5", -4: "h-4", -3: "h-3", -2: "h-2", -1: "h-1", 0: "h0", 1: "h1", 2: "h2", 3: "h3", 4: "h4", 5: "h5"
}  # fmt: skip


def section(comparison: Comparison, sides: Mapping[str, Side]) -> Section:
    """Return the map, which is empty if no side has enough hosts to be compared with each other."""
    return Section("peers", message("Deviation from group median"), tuple(_map(comparison, sides)), ("html", "pdf"))


def _map(comparison: Comparison, sides: Mapping[str, Side]) -> Iterator[Tabular]:
    titles = [comparison.baseline, *(candidate.title for candidate in comparison.candidates)]
    frames = {t: peers.deviations(sides[t]) for t in titles if t in sides and len(sides[t].means) >= peers.LEAST}
    if not frames:
        return
    names = [c for c in dict.fromkeys(c for frame in frames.values() for c in frame.columns) if c][:MOST_CLASSES]
    classes = ["", *names] if len(names) > 1 else names
    hosts = [(title, host) for title, frame in frames.items() for host in frame.index]
    distances = [d for frame in frames.values() for d in frame.abs().max(axis=1).fillna(0.0).tolist()]
    chosen = sorted(sorted(range(len(hosts)), key=lambda n: -distances[n])[:MOST])
    columns = (
        Column("host", message("host"), "name"),
        Column("side", message("side"), "side"),
        *(Column(f"class_{n}", class_title(c) if c else message("all"), "number") for n, c in enumerate(classes)),
    )
    rows = []
    for title, host in (hosts[n] for n in chosen):
        values = frames[title].loc[host]
        cells = (_cell(float(values.get(c, math.nan))) for c in classes)
        rows.append((Cell(str(host)), Cell(title), *cells))
    notes = [message("Percent from the median of the host's own side; positive is better, for latency too.")]
    if left_out := len(hosts) - len(rows):
        notes.append(
            message("The hosts furthest from their median are shown; {n} others are closer.", n=f"{left_out:,}")
        )
    yield Tabular("peers", message("Deviation from group median"), columns, tuple(rows), notes=tuple(notes))


def _cell(deviation: float) -> Cell:
    if math.isnan(deviation):
        return Cell()
    level = max(-LEVELS, min(LEVELS, round(100 * deviation / STEP)))
    return Cell(fmt.change(deviation), deviation, tone=TONES[level])
