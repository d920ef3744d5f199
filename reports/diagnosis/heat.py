"""Suspects against benchmarks: how much each lacks, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleetmark.record.diagnosis import Diagnosis
from planner.diagnosis.finding import Finding, Kind
from reports.diagnosis.sentences import benchmark

MOST_HOSTS, MOST_BENCHMARKS = 40, 12


@dataclass(frozen=True, slots=True)
class Heat:
    """``hosts`` down and ``benchmarks`` across, those with the most findings; ``cells``: the finding of each."""

    hosts: tuple[str, ...]
    benchmarks: tuple[str, ...]
    cells: Mapping[tuple[str, str], Finding]
    left_out: int


def table(diagnosis: Diagnosis) -> Heat:
    """The suspects' findings; more hosts or benchmarks than fit are counted, not shown."""
    cells: dict[tuple[str, str], Finding] = {}
    for finding in diagnosis.findings:
        if finding.host and finding.kind is not Kind.LINK and not finding.cleared:
            cells.setdefault((finding.host, benchmark(finding)), finding)
    hosts = tuple(dict.fromkeys(h for h, _ in cells))[:MOST_HOSTS]
    names = [name for _, name in cells]
    order = sorted(dict.fromkeys(names), key=lambda name: -names.count(name))[:MOST_BENCHMARKS]
    shown = {key: f for key, f in cells.items() if key[0] in hosts and key[1] in order}
    return Heat(hosts, tuple(order), shown, len(cells) - len(shown))
