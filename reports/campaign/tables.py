"""The tables of a campaign's page, as text: values, missing figures, failures and mixed versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import message
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import HostInfo, Results
from fleetmark.record.values import Values
from fleetmark.record.values.engine import literal
from planner.centre import Interval
from reports.campaign.problems import WORST_FIRST
from reports.campaign.rows import Rows, groups
from reports.campaign.view import View, headlines, point, spread
from reports.kit import format as fmt

ACROSS = 8  # maximum hosts that are shown as columns
ROWS = 3000  # maximum figures for which every host has its own row in the table of all metrics
ROWS_ON_PAPER = 400  # the same limit on paper, where nothing can be folded
CELLS = 6000  # maximum figures in a table of all hosts' headlines
FOLD = 60  # rows above which each case of a workload is folded separately

NOISY = 0.05  # coefficient of variation above which a figure is marked

_PRINTED = ("better", "generation", "host", "value", "lo", "hi", "interval", "cv", "n")
_ENDS = ("low_host", "low", "high_host", "high")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as text.

    ``value``: the sort key of its column, in base units. ``why``: the reason why it is missing. ``noisy``: whether its
    coefficient of variation is above NOISY.
    """

    text: str = ""
    spread: str = ""
    cv: str = ""
    n: int = 0
    value: float = 0.0
    why: str = ""
    noisy: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A metric's figure of one host or generation (``who``).

    ``low``, ``high``: the hosts with a generation's lowest and highest figure. ``factor``: the size of ``unit`` in
    ``base``. ``again``: the row above already has the metric's name. ``number``: the position of the metric among the
    embedded ones, or None if it is not embedded.
    """

    workload: str
    case: str
    point: str
    better: str
    who: str
    figure: Figure
    unit: str
    factor: float
    base: str
    again: bool = False
    low: tuple[str, str] | None = None  # host, figure
    high: tuple[str, str] | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """All metrics of a workload as ``tables`` of (title, lines). A short workload has one table without a title."""

    name: str
    rows: int
    tables: tuple[tuple[str, list[Line]], ...]


def lines(
    view: View, metric: Metric, rows: Rows, shown: fmt.Shown, numbers: Mapping[Metric, int] | None = None
) -> list[Line]:
    """Return the rows of a metric, for hosts or for generations."""
    generational = "generation" in rows
    return [
        Line(
            *(metric.workload, metric.case, point(metric), r["better"]),
            view.title_of(r["generation"]) if generational else r["host"],
            _figure(r, shown),
            *(shown.unit, 1 / shown.factor, metric.unit),
            i > 0,
            (r["low_host"], shown.number(r["low"])) if generational else None,
            (r["high_host"], shown.number(r["high"])) if generational else None,
            (numbers or {}).get(metric),
        )
        for i, r in enumerate(records(rows))
    ]


def records(rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield the printed columns of each row."""
    names = [name for name in (*_PRINTED, *_ENDS) if name in rows]
    for values in rows.each(*names):
        yield dict(zip(names, values, strict=True))


def _figure(row: Mapping[Any, Any], shown: fmt.Shown) -> Figure:
    extent = spread(shown, row["lo"], row["hi"], row["interval"])
    return Figure(
        shown.number(row["value"]), extent, fmt.percent(row["cv"]), row["n"], row["value"], noisy=row["cv"] > NOISY
    )


def _by_host(rows: Rows, shown: fmt.Shown) -> dict[str, Figure]:
    return {r["host"]: _figure(r, shown) for r in records(rows)}


def across(view: View) -> list[tuple[Line, list[Figure]]]:
    """Return the headlines with hosts as columns and a common scale per row; empty for one host or too many."""
    if not 1 < len(view.hosts) <= ACROSS:
        return []
    table = []
    for metric, rows, shown in view.by_metric(headlines(view.merged)):
        of = _by_host(rows, shown)
        cells = [of.get(h.name) or Figure(why=view.why_absent(h.name, metric)) for h in view.hosts]
        table.append((lines(view, metric, rows, shown)[0], cells))
    return table


def down(view: View) -> tuple[list[Line], list[tuple[HostInfo, list[Figure]]]] | None:
    """Return the headlines with hosts as rows: the columns, each with a common scale, and the rows.

    The result is None for few hosts or too many figures.
    """
    if len(view.hosts) <= ACROSS or _more_than(CELLS, view.headlines_in_parts()):
        return None
    chosen = headlines(view.merged)
    columns, figures = [], []
    for metric, rows, shown in view.by_metric(chosen):
        columns.append(lines(view, metric, rows, shown)[0])
        figures.append((metric, _by_host(rows, shown)))
    return columns, [
        (h, [of.get(h.name) or Figure(why=view.why_absent(h.name, metric)) for metric, of in figures])
        for h in view.hosts
    ]


def _more_than(most: int, parts: Iterator[pd.DataFrame]) -> bool:
    """Return whether ``parts`` have more than ``most`` rows in total. Stop reading as soon as this is known."""
    return any(rows > most for rows in accumulate(map(len, parts)))


def metrics(view: View, numbers: Mapping[Metric, int], *, per_host: bool) -> Iterator[Workload]:
    """Yield all metrics, by host or by generation. ``numbers``: position of embedded metrics, as in ``Line.number``."""
    of_metrics = view.by_metric(view.stats if per_host else view.generational)
    for workload, of in groupby(of_metrics, lambda group: group[0].workload):
        listed = list(of)
        size = sum(len(rows) for _, rows, _ in listed)
        tables: dict[str, list[Line]] = defaultdict(list)
        for metric, rows, shown in listed:
            tables[metric.case if size > FOLD else ""] += lines(view, metric, rows, shown, numbers)
        yield Workload(workload, size, tuple(tables.items()))


def coverage(view: View) -> list[tuple[str, list[tuple[int, int] | None]]]:
    """Return the hosts on which a run did not pass, with (passed, all) per workload; None if nothing was planned."""
    outcomes = view.results.outcomes
    passed = (
        (outcomes["status"] == Status.PASSED).groupby([outcomes["host"], outcomes["workload"]]).agg(["sum", "size"])
    )
    table = {key: (int(ok), int(all_)) for key, ok, all_ in passed.itertuples(name=None)}
    workloads = sorted(str(w) for w in outcomes["workload"].unique())
    rows = [(h.name, [table.get((h.name, w)) for w in workloads]) for h in view.hosts]
    return [(name, cells) for name, cells in rows if any(c and c[0] < c[1] for c in cells)]


def failed(results: Results) -> pd.DataFrame:
    """Return every run that did not pass, worst first."""
    outcomes = results.outcomes[results.outcomes["status"] != Status.PASSED]
    outcomes = outcomes.astype(dict.fromkeys(("host", "workload", "case", "status"), object))  # sorted as text
    rank = outcomes["status"].map({s: i for i, s in enumerate(WORST_FIRST)})
    return outcomes.assign(rank=rank).sort_values(["rank", "host", "workload", "case", "repeat"], kind="stable")


def mixed(values: Values) -> list[tuple[str, str, list[str]]]:
    """Return (workload, version, hosts) for workloads with a case that several tool versions measured.

    Figures of different versions are not comparable. Different cases may have different versions, because some tools
    report a case's precision as part of the version.
    """
    versions = values.distinct("workload", "case", "tool_version")
    several = versions[versions.duplicated(["workload", "case"])][["workload", "case"]].drop_duplicates()
    if several.empty:
        return []
    of = f"workload in ({', '.join(map(literal, several['workload'].unique()))})"
    hosts = values.distinct("workload", "case", "tool_version", "host", where=of).merge(
        several, on=["workload", "case"]
    )
    return [
        (workload, version or message("(not told)"), sorted(set(rows["host"]), key=fmt.natural))
        for (workload, version), rows in groups(hosts, ["workload", "tool_version"])
    ]


def wide(view: View, most: int = ROWS) -> bool:
    """Return whether several hosts have more than ``most`` figures, too many for a row each."""
    return len(view.of_hosts) > most and len(view.hosts) > 1


def intervals(view: View, *, per_host: bool) -> set[Interval]:
    """Return the kinds of spread that the tables of all metrics show."""
    shown = (
        view.of_hosts.distinct("interval")
        if per_host
        else [(interval,) for interval in view.generational["interval"].unique()]
    )
    return {Interval(i) for (i,) in shown}
