"""Build the tables of headlines: the first ones of each generation, all of them with their spread, and by host."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.against import Against
from fleetmark.reports.campaign.deviation import chosen, title
from fleetmark.reports.campaign.view import MetricRows, View, footnotes, headlines, legend, meaning, spread
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Kind, LazyRows, Row, Tabular, number

FIRST_BENCHMARKS = 12  # headlines on the first screen
FIRST_SIDES = 4  # generations side by side
TERMINAL_METRICS = 40  # more would scroll the important results off the screen
HOSTS_ACROSS = 8  # hosts shown as columns
MOST_CELLS = 6000  # maximum figures in a table of all hosts' headlines
NOISY = 0.05  # coefficient of variation above which a figure is marked
READ: tuple[Kind, ...] = ("terminal", "html", "pdf", "markdown")  # formats for reading tables
WORKED: tuple[Kind, ...] = ("xlsx", "json", "csv")  # formats for further calculations
ON_PAGES: tuple[Kind, ...] = ("html", "pdf")
NOTHING = message("No run passed, so there is no figure to show.")


def class_of(metric: MetricRows) -> str:
    """Return the class of a metric."""
    return str(metric[1]["class"].iloc[0])


def leading(view: View, limit: int) -> list[MetricRows]:
    """Return the ``limit`` headlines that best represent all of them, or one of each class if classes are more."""
    by_metric = {headline[0]: headline for headline in view.headlines}
    first: dict[str, Metric] = {}  # maximum per class; a guardrail only if the class has no other headline
    for headline in sorted(view.headlines, key=lambda h: str(h[1]["kind"].iloc[0]) == "guardrail"):
        first.setdefault(class_of(headline), headline[0])
    return [by_metric[m] for m in chosen(list(by_metric), max(limit, len(first)), set(first.values()))]


def first_table(view: View, against: Against) -> Tabular:
    """Return the headlines of the first screen: a row per benchmark, a column per generation."""
    sides = view.generations[:FIRST_SIDES]
    several = len(sides) > 1
    columns = [Column("benchmark", message("benchmark"), "name"), Column("class", message("class of work"))]
    columns += [
        Column(f"side{n}", view.title_of(side) if several else message("value"), "number")
        for n, side in enumerate(sides)
    ]
    leaders = leading(view, FIRST_BENCHMARKS)
    noisy = not several and any((rows["cv"] > NOISY).any() for _, rows, _ in leaders)
    if noisy:
        columns.append(Column("cv", "CV", "number"))
    if against.has_shares and not several:
        columns.append(Column("peak_share", message("of peak"), "number"))
    if against.reference:
        columns.append(Column("times", message("times {reference}", reference=against.reference), "number"))
    rows = tuple(_first_row(view, against, headline, sides, noisy) for headline in leaders)
    return Tabular("first_headlines", message("Headline figures"), tuple(columns), rows)


def _first_row(view: View, against: Against, headline: MetricRows, sides: Sequence[str], noisy: bool) -> Row:
    metric, rows, shown = headline
    several = len(sides) > 1
    by_side = {_side(view, row): row for row in records(rows)}
    cells = []
    for side in sides:
        if side not in by_side:
            cells.append(Cell("–"))
            continue
        figure = by_side[side]
        share = against.context_of(metric, side).share.text if several else ""
        of_peak = message("{share} of peak", share=share) if share else None
        noise = f"CV {fmt.percent(figure['cv'])}" if several and figure["cv"] > NOISY else None
        cells.append(replace(_value(figure, metric, shown), details=tuple(filter(None, (noise, of_peak)))))
    context = against.context_of(metric, sides[0])
    more = [variation(by_side[sides[0]]["cv"])] if noisy else []
    more += [context.share] if against.has_shares and not several else []
    more += [context.times] if against.reference else []
    return (Cell(title(metric)), Cell(class_title(class_of(headline))), *cells, *more)


def _side(view: View, row: Mapping[str, Any]) -> str:
    """Return the generation of a row, which is about a host or a generation."""
    return str(row["generation"]) if "generation" in row else view.generation.get(row["host"]) or ""


def _value(row: Mapping[str, Any], metric: Metric, shown: fmt.Shown) -> Cell:
    return Cell(shown.quantity(row["value"]), float(row["value"]), metric.unit)


def records(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a frame as mappings of the columns that tables show."""
    names = [name for name in _SHOWN if name in rows]
    for values in zip(*(rows[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


_SHOWN = (
    *("better", "generation", "host", "value", "lo", "hi", "interval", "cv", "n", "rule"),
    *("low_host", "low", "high_host", "high"),
)


# --- all headlines ---------------------------------------------------------------------------------------------------


def table(view: View, against: Against, shown: Sequence[MetricRows]) -> Tabular:
    """Return headlines with their spread: a row per metric, and per generation if it has several hosts."""
    several = len(view.hosts) > 1
    sides = [Column("generation", message("generation"), "side", only=() if len(view.generations) > 1 else WORKED)]
    peak = [Column("peak_share", message("of peak"), "number")] if against.has_shares else []
    times = [Column("times", message("times {reference}", reference=against.reference), "number")]
    columns = (
        *identity(),
        *(sides if several else ()),
        Column("value", message("value"), "number"),
        *(peak if against.has_shares else ()),
        *(times if against.reference else ()),
        Column("spread", message("spread"), "number", only=READ),
        Column("low", message("from"), "number", only=WORKED),
        Column("high", message("to"), "number", only=WORKED),
        Column("cv", "CV", "number", hint=message("CV: standard deviation over mean.")),
        Column("n", message("hosts") if several else "n", "number"),
        *(_end_columns() if several else ()),
        Column("better", message("better"), only=("html", "pdf", "markdown", "xlsx", "json", "csv")),
    )

    def rows() -> Iterator[Row]:
        for metric, figures, scale in shown:
            yield from (_row(view, against, metric, row, scale, several) for row in records(figures))

    size = sum(len(figures) for _, figures, _ in shown)
    return Tabular(
        "headlines",
        message("Headlines and their spread"),
        columns,
        LazyRows(rows, size),
        limits={"terminal": 1000, "markdown": 400},
    )


def identity() -> tuple[Column, ...]:
    """Return the columns that name a metric: one column for readers, several for programs."""
    return (
        Column("benchmark", message("benchmark"), "name", only=READ),
        Column("workload", message("workload"), "name", only=WORKED),
        Column("case", message("case"), "name", only=WORKED),
        Column("metric", message("metric"), "name", only=WORKED),
        Column("subject", message("subject"), only=WORKED),
        Column("labels", message("labels"), only=WORKED),
        Column("standing", message("standing"), only=WORKED),
    )


def names(metric: Metric) -> tuple[Cell, ...]:
    """Return the cells that name a metric, by the columns of ``identity``."""
    texts = (metric.workload, metric.case, metric.metric, metric.subject)
    cells = (*map(Cell, map(fmt.clean, texts)), Cell(fmt.labels(metric.labels)), Cell(word(metric.standing)))
    return (Cell(title(metric)), *cells)


def _end_columns() -> tuple[Column, ...]:
    return (
        Column("lowest", message("lowest"), only=ON_PAGES),
        Column("highest", message("highest"), only=ON_PAGES),
        Column("low_host", message("lowest"), only=WORKED),
        Column("high_host", message("highest"), only=WORKED),
    )


def _row(view: View, against: Against, metric: Metric, row: Mapping[str, Any], shown: fmt.Shown, several: bool) -> Row:
    side = _side(view, row)
    context = against.context_of(metric, side)
    return (
        *names(metric),
        *([Cell(view.title_of(side))] if several else []),
        _value(row, metric, shown),
        *([context.share] if against.has_shares else []),
        *([context.times] if against.reference else []),
        *spread_cells(row, metric, shown),
        variation(row["cv"]),
        number(row["n"]),
        *(end_cells(row, shown) if several else ()),
        Cell(word(row["better"]) if row["better"] != "none" else ""),
    )


def spread_cells(row: Mapping[str, Any], metric: Metric, shown: fmt.Shown) -> tuple[Cell, Cell, Cell]:
    """Return the spread as one text, and its two ends as numbers."""
    lo, hi = (figure_cell(row[end], metric, shown) for end in ("lo", "hi"))
    return Cell(spread(shown, row["lo"], row["hi"], row["interval"])), lo, hi


def figure_cell(value: float, metric: Metric, shown: fmt.Shown) -> Cell:
    """Return a figure of a metric with its unit, or an empty cell for NaN."""
    return Cell(shown.quantity(value), float(value), metric.unit) if math.isfinite(value) else Cell()


def variation(cv: float) -> Cell:
    """Return a coefficient of variation, marked if it is large."""
    text = fmt.percent(cv)
    return Cell(text, float(cv), tone="unsure" if cv > NOISY else "") if text else Cell()


def end_cells(row: Mapping[str, Any], shown: fmt.Shown) -> Iterator[Cell]:
    """Yield the lowest and the highest figure, each with its host, then only the two hosts."""
    hosts = [fmt.clean(row[end]) for end in ("low_host", "high_host")]
    figures = [shown.quantity(row[end]) for end in ("low", "high")]
    yield Cell(f"{figures[0]} {hosts[0]}")
    yield Cell(f"{figures[1]} {hosts[1]}" if row["n"] > 1 else "")
    yield from map(Cell, hosts)


def section(view: View, against: Against) -> Section:
    """Return all headlines, with sentences on how to read them."""
    if not view.headlines:
        return Section("headlines", message("Headlines"), (Note(NOTHING),))
    kinds = {str(i) for _, rows, _ in view.headlines for i in rows["interval"]}
    exhibits: tuple[Exhibit, ...] = (
        table(view, against, view.headlines),
        *reading(view, kinds, (str(metric.standing) for metric, _, _ in view.headlines)),
    )
    return Section(
        "headlines", message("Headlines and their spread"), exhibits, ("html", "pdf", "markdown", "json", "csv")
    )


def brief(view: View, against: Against) -> Section:
    """Return the headlines for a terminal."""
    shown = leading(view, TERMINAL_METRICS)
    kinds = {str(i) for _, rows, _ in view.headlines for i in rows["interval"]}
    omitted = len(view.headlines) - len(shown)
    exhibits: tuple[Exhibit, ...] = (
        table(view, against, shown),
        *reading(view, kinds, (str(metric.standing) for metric, _, _ in view.headlines)),
        *([Note(message("{what} on the page", what=count(omitted, "further headline")))] if omitted else []),
    )
    return Section("headlines", "", exhibits if shown else (), ("terminal",))


def reading(view: View, intervals: set[str], standings: Iterable[str]) -> Iterator[Note]:
    """Yield notes that explain the figures: centres, spread, CV, and notices that benchmark owners require."""
    unit = message("n: hosts; spread is between hosts.") if len(view.hosts) > 1 else message("n: repeats.")
    yield Note(joined([meaning(view), message("Only what passed counts.")], " "), quiet=True)
    parts = [message("{sentence}.", sentence=legend(intervals)), message("CV: standard deviation over mean."), unit]
    yield Note(joined(parts, " "), quiet=True)
    yield from (Note(text, quiet=True) for text in footnotes(standings))


# --- headlines by host -----------------------------------------------------------------------------------------------


def by_host(view: View) -> Section | None:
    """Return the headlines of every host, or None for one host or too many figures.

    Few hosts are columns; more hosts are rows.
    """
    sides = len(view.generations) > 1
    heading = message("Headlines by host")
    if 1 < len(view.hosts) <= HOSTS_ACROSS:
        columns = [
            Column(f"host{n}", fmt.clean(h.name), "number", group=view.title_of(h.generation or "") if sides else "")
            for n, h in enumerate(view.hosts)
        ]
        rows = [
            (Cell(title(metric)), *_hosts(view, metric, rows, shown.quantity))
            for metric, rows, shown in view.by_metric(headlines(view.merged))
        ]
        shown = Tabular(
            "headlines_by_host", heading, (Column("benchmark", message("benchmark"), "name"), *columns), rows
        )
        note = Note(message("The value, below it its spread."), quiet=True)
        return Section("headlines-hosts", heading, (note, shown) if rows else (), ON_PAGES)
    if len(view.hosts) <= HOSTS_ACROSS or _has_more_than(MOST_CELLS, map(len, view.headlines_in_parts())):
        return None
    return Section("headlines-hosts", heading, (_down(view, heading, sides),), ("html",), is_folded=True)


def _down(view: View, heading: Message, sides: bool) -> Tabular:
    columns = [Column("host", message("host"), "name")]
    columns += [Column("generation", message("generation"), "side")] if sides else []
    figures: list[list[Cell]] = []
    for metric, rows, shown in view.by_metric(headlines(view.merged)):
        better = fmt.better(str(rows["better"].iloc[0]))
        columns.append(Column(f"metric{len(figures)}", title(metric), "number", unit=shown.unit, hint=better))
        figures.append(list(_hosts(view, metric, rows, shown.number)))
    by_row = zip(*figures, strict=True) if figures else ([] for _ in view.hosts)
    rows_ = [
        (Cell(fmt.clean(h.name)), *([Cell(view.title_of(h.generation or ""))] if sides else []), *cells)
        for h, cells in zip(view.hosts, by_row, strict=True)
    ]
    return Tabular("headlines_by_host", heading, tuple(columns), rows_)


def _hosts(view: View, metric: Metric, rows: Any, text: Any) -> Iterator[Cell]:
    """Yield the cell of each host: its figure with its spread, or the reason why there is none."""
    shown = view.shown(metric, rows)
    by_name = {r["host"]: r for r in records(rows)}
    for host in view.hosts:
        if host.name in by_name:
            r = by_name[host.name]
            extent = spread(shown, r["lo"], r["hi"], r["interval"])
            yield Cell(text(r["value"]), float(r["value"]), metric.unit, details=(extent,) if extent else ())
        else:
            yield Cell(word(view.why_absent(host.name, metric)) or "–", tone="unsure")


def _has_more_than(limit: int, sizes: Iterable[int]) -> bool:
    """Return whether ``sizes`` add up to more than ``limit``. Stop reading as soon as this is known."""
    return any(total > limit for total in accumulate(sizes))
