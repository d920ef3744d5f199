"""Build the tables of all metrics of a campaign or a comparison, and the figures of single hosts behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.deviation import title
from fleetmark.reports.campaign.headlines import NOTHING, end_cells, figure_cell, records, spread_cells, variation
from fleetmark.reports.campaign.view import MetricRows, View, footnotes, legend, meaning, of_metrics, point
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.breakdown import Breakdown, Entry
from fleetmark.reports.kit.document import Exhibit, Note
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, number

ROWS = 3000  # maximum figures for which every host has its own row
ROWS_ON_PAPER = 400
_ROOM = 5_200_000  # characters of the breakdown, to keep a page below 6 MB
_FIGURE, _SPREAD = 7, 16  # approximate characters of a figure without and with its spread


def is_wide(view: View, limit: int = ROWS) -> bool:
    """Return whether several hosts have more than ``limit`` figures, which is too many for a row each."""
    return len(view.of_hosts) > limit and len(view.hosts) > 1


def numbered(view: View) -> dict[Metric, int]:
    """Return the metrics that fit in the breakdown, headlines first, each with its number in the breakdown."""
    headline = {Metric(*columns): is_first for *columns, is_first in view.of_merged.distinct(*METRIC, "headline")}
    room = _ROOM // (_SPREAD if _has_spread(view) else _FIGURE)
    listed = sorted(headline, key=lambda metric: not headline[metric])
    return {metric: n for n, metric in enumerate(listed[: room // max(1, len(view.hosts))])}


def breakdown(view: View, numbers: Mapping[Metric, int]) -> Breakdown:
    """Return the figures of hosts behind the metrics in ``numbers``."""
    return Breakdown(
        tuple(h.name for h in view.hosts),
        tuple(view.generations.index(h.generation or "") for h in view.hosts),
        tuple(map(view.title_of, view.generations)),
        _Entries(view, numbers),
        _has_spread(view),
    )


def _has_spread(view: View) -> bool:
    return len(view.of_merged) * _SPREAD <= _ROOM


class _Entries:
    """Entries that are computed when read: the figures of a few metrics at a time."""

    def __init__(self, view: View, numbers: Mapping[Metric, int]) -> None:
        self.view, self.numbers = view, numbers

    def __iter__(self) -> Iterator[Entry]:
        places = {h.name: n for n, h in enumerate(self.view.hosts)}
        entries: dict[Metric, Entry | None] = dict.fromkeys(self.numbers)
        for part in self.view.of_merged:
            place = np.array([places.get(str(host), -1) for host in part["host"].cat.categories], int)
            for metric, rows, shown in self.view.by_metric(of_metrics(part, self.numbers)):
                positions = place[rows["host"].cat.codes.to_numpy()]
                columns = {field: _spread_out(rows[name], positions, len(places)) for name, field in _COLUMNS.items()}
                entries[metric] = Entry(title=title(metric), shown=shown, unit=metric.unit, **columns)
        return (entry for entry in entries.values() if entry is not None)


_COLUMNS = {"value": "values", "lo": "lo", "hi": "hi", "n": "n"}


def _spread_out(column: pd.Series, positions: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.float64]:
    """Return a value for each of ``size`` positions, NaN where ``column`` has no value."""
    values = np.full(size, np.nan)
    values[positions] = column.to_numpy(float)
    return values


def exhibits(view: View, numbers: Mapping[Metric, int], limit: int, side: Message) -> tuple[Exhibit, ...]:
    """Return a table per workload: by host up to ``limit`` figures, otherwise by generation.

    ``numbers``: the numbers of metrics in the breakdown. ``side``: the heading of generations.
    """
    per_host = not is_wide(view, limit)
    listed = view.by_metric(view.stats if per_host else view.generational)
    tables = [
        _table(view, workload, list(metrics), numbers, per_host, side)
        for workload, metrics in groupby(listed, lambda listed: listed[0].workload)
    ]
    return (*_notes(view, numbers, per_host), *tables) if tables else (Note(NOTHING),)


def _notes(view: View, numbers: Mapping[Metric, int], per_host: bool) -> Iterator[Note]:
    kinds = view.of_hosts.distinct("interval") if per_host else set(zip(view.generational["interval"], strict=True))
    spread = [
        message("Only what passed counts."),
        message("{sentence}.", sentence=legend({str(kind) for (kind,) in kinds})),
        message("CV: standard deviation over mean."),
        message("n: repeats.") if per_host else message("n: hosts."),
    ]
    lead = [meaning(view)] if per_host else list(_of_generations(view, numbers))
    yield Note(joined([*lead, *spread], " "), quiet=True)
    yield from (Note(text, quiet=True) for text in footnotes(name for (name,) in view.of_hosts.distinct("standing")))


def _of_generations(view: View, numbers: Mapping[Metric, int]) -> Iterator[Message]:
    yield message("By side: the geometric mean of its hosts' values, and the hosts at both ends.")
    if not numbers:
        n = f"{len(view.of_hosts):,}"
        yield message("Figures of single hosts ({n}) are too many for this page.", n=n)
        return
    yield message("The button at a row's end shows every host.")
    omitted = len(view.of_merged.distinct(*METRIC)) - len(numbers)
    if omitted:
        yield message("{n} metrics have no room for that here.", n=omitted)


def _table(
    view: View, workload: str, metrics: list[MetricRows], numbers: Mapping[Metric, int], per_host: bool, side: Message
) -> Tabular:
    several, sides = len(view.hosts) > 1, len(view.generations) > 1
    columns = (
        Column("metric", message("metric"), "name"),
        Column("case", message("case")),
        *([Column("host", message("host"))] if several and per_host else []),
        *([Column("generation", side, "side")] if sides else []),
        Column("value", message("value"), "number"),
        Column("spread", message("spread"), "number"),
        Column("cv", "CV", "number"),
        Column("n", "n", "number"),
        *(() if per_host else (Column("lowest", message("lowest")), Column("highest", message("highest")))),
        Column("better", message("better")),
        *([Column("hosts", message("hosts"))] if numbers and not per_host else []),
    )
    rows = [row for metric in metrics for row in _rows(view, metric, numbers, per_host, several, sides)]
    name = fmt.clean(workload)
    heading = message("{workload} ({rows})", workload=name, rows=count(len(rows), "row"))
    return Tabular(f"metrics_{name}", heading, columns, rows, is_folded=True)


def _rows(
    view: View, listed: MetricRows, numbers: Mapping[Metric, int], per_host: bool, several: bool, sides: bool
) -> Iterator[Row]:
    metric, rows, shown = listed
    name, case, entry = Cell(point(metric)), Cell(fmt.clean(metric.case)), numbers.get(metric)
    for row in records(rows):
        yield (
            name,
            case,
            *([Cell(fmt.clean(row["host"]))] if several and per_host else []),
            *([Cell(_side(view, row))] if sides else []),
            figure_cell(row["value"], metric, shown),
            spread_cells(row, metric, shown)[0],
            variation(row["cv"]),
            number(row["n"]),
            *(() if per_host else [*end_cells(row, shown)][:2]),
            Cell(word(row["better"]) if row["better"] != "none" else ""),
            *([Cell(message("hosts") if entry is not None else "", entry=entry)] if numbers and not per_host else []),
        )


def _side(view: View, row: Mapping[str, Any]) -> str:
    return view.title_of(row["generation"] if "generation" in row else view.generation.get(row["host"]) or "")
