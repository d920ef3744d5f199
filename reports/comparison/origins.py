"""Collect the origins of each ratio of a comparison: hosts, repeats, raw files and commands, as far as they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.comparison import Comparison
from fleetmark.record import origins as record
from fleetmark.record.results import Results
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.breakdown import Measured, Origin

_MOST_COMMANDS = 400  # maximum benchmarks with origins from raw files


@dataclass(frozen=True, kw_only=True)
class Origins:
    """Yield the origins of a comparison's benchmarks one by one, in the order of ``numbers`` (by title).

    ``omitted``: how many benchmarks do not fit.
    """

    shown: View
    parts: Sequence[Results]
    comparison: Comparison
    scales: Mapping[str, fmt.Shown]
    rows: pd.DataFrame
    omitted: int
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def note(self) -> Message | None:
        """Return how to open the origins, and how many benchmarks are omitted; None if there are no origins."""
        if not self.numbers:
            return None
        if self.omitted:
            return message(
                "Select a ratio to see its hosts, repeats, raw files and command; {n} benchmarks have no room for "
                "that.",
                n=self.omitted,
            )
        return message("Select a ratio to see its hosts, repeats, raw files and command.")

    def __iter__(self) -> Iterator[Origin]:
        results = self.shown.results
        root, commands = results.campaign.path, {part.campaign.id: part.campaign.command for part in self.parts}
        order = {host.name: n for n, host in enumerate(self.shown.hosts)}
        read = 0
        for title, hosts in record.runs(root, results.values, self.shown.of_hosts, self.rows):
            by_side: dict[str, str] = {}
            hosts.sort(key=lambda host: order[host.host])
            for host in hosts:
                side = self._side(host)
                if side not in by_side and host.files and read < _MOST_COMMANDS:
                    by_side[side] = fmt.typed(record.command(root, host.files[0], commands))
                    read += 1
            yield Origin(
                title=title,
                shown=self.scales[title],
                unit=str(self.comparison.benchmarks.at[title, "unit"]),
                members=tuple(map(self._measured, hosts)),
                commands=tuple((side, text) for side, text in by_side.items() if text),
            )

    def _side(self, host: record.HostRuns) -> str:
        return self.shown.title_of(self.shown.generation.get(host.host) or "")

    def _measured(self, host: record.HostRuns) -> Measured:
        pair = host.subject.startswith(f"{host.host}>")
        name = host.subject.replace(">", " → ", 1) if pair else " ".join(filter(None, (host.host, host.subject)))
        return Measured(
            name=fmt.clean(name), side=self._side(host), value=host.value, repeats=host.repeats, files=host.files
        )


def origins(shown: View, parts: Sequence[Results], comparison: Comparison, scales: Mapping[str, fmt.Shown]) -> Origins:
    """Return the origins of the benchmarks in ``scales``, which maps each title to the format of its figures."""
    benchmarks = comparison.benchmarks[comparison.benchmarks.index.isin(list(scales))]
    rows, omitted = record.chosen(shown.of_hosts, benchmarks)
    titles = sorted(set(rows["title"]))
    return Origins(
        shown=shown,
        parts=parts,
        comparison=comparison,
        scales=scales,
        rows=rows,
        omitted=len(omitted),
        numbers={title: n for n, title in enumerate(titles)},
    )
