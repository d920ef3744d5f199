"""Write the legend of the first screen: the meaning of its intervals, and the reasons for missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import message
from fleetmark.reports.comparison.cell import Line
from fleetmark.reports.comparison.sentences.reliance import some


def legend(lines: Sequence[Line], published: bool) -> Iterator[str]:
    """Explain the two intervals and any missing ones.

    In ``published`` results, publishers take the place of hosts.
    """
    cells = [cell for line in lines for cell in line.cells]
    brackets = any(cell.interval and not cell.repeats for cell in cells)
    if brackets and published:
        yield message(
            "In brackets: 95% confidence intervals of the average, across publishers; valid if these are typical."
        )
    elif brackets:
        yield message(
            "In brackets: 95% confidence intervals of the average, across hosts; valid if these hosts are typical."
        )
    if any(cell.repeats for cell in cells):
        yield message("If a side is one machine, its interval describes this machine, not its kind.")
    for reason, titles in _by_reason(lines, "interval_why").items():
        yield message("No interval for {classes}: {why}.", classes=some(titles), why=reason)
    if any(cell.workload for cell in cells):
        yield message("Similar program: 95% prediction range for a program of this kind that is not benchmarked here.")
    for reason, titles in _by_reason(lines, "workload_why").items():
        yield message(
            "No estimate for other programs in {classes}: {why}. Run your program on both sides.",
            classes=some(titles),
            why=reason,
        )


def _by_reason(lines: Sequence[Line], name: str) -> dict[str, list[str]]:
    """Return the titles of the lines, grouped by the reason in the field ``name`` of their cells."""
    titles: dict[str, dict[str, None]] = {}
    for line in lines:
        for cell in line.cells:
            if reason := getattr(cell, name):
                titles.setdefault(reason, {})[line.title] = None
    return {reason: list(classes) for reason, classes in titles.items()}
