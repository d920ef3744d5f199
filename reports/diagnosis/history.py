"""Present hosts over time as a document: sparklines in a table, small multiples on a page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.diagnosis.history import LEAST_SERIES, Change, Trend
from fleetmark.record.diagnosis.history import History, Series, as_json
from fleetmark.record.diagnosis.table import title
from fleetmark.reports.diagnosis.sentences import MANY, share
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Document, Note, Section, provenance
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular, Tone
from fleetmark.workloads import declared

BARS = "▁▂▃▄▅▆▇█"
WIDE, MOST_PLOTS = 24, 400
MOST_ROWS = 1000  # maximum plots of a page; changed series come first
WIDTH, HEIGHT, MARGIN = 220, 56, 5


def sentence(series: Series, change: Change) -> Message:
    """Return when a series changed, the levels before and after, and the p-value."""
    sign = -1.0 if series.benchmark["better"] == Better.LOWER else 1.0
    before, after = (float(np.exp(sign * level)) for level in (change.before, change.after))
    shown = _shown(series, (before, after))
    figures = {
        "share": share(abs(float(np.expm1(change.change)))),
        "date": fmt.moment(series.moments[change.position])[:10],
    }
    parts = {"before": shown.quantity(before), "after": shown.quantity(after), "p": f"{max(change.p, 1e-6):.1g}"}
    if change.change < 0:
        return message("{share} worse since {date}: {before} to {after} (p {p})", **figures, **parts)
    return message("{share} better since {date}: {before} to {after} (p {p})", **figures, **parts)


def trend_sentence(series: Series, trend: Trend) -> Message:
    """Return the slope of a series: the total change, its dates, the change per month, and the p-value."""
    monthly = series.monthly(trend)
    parts = {
        "share": share(abs(float(np.expm1(trend.change)))),
        "start": fmt.moment(series.moments[trend.start])[:10],
        "end": fmt.moment(series.moments[trend.end])[:10],
        "p": f"{max(trend.p, 1e-6):.1g}",
        "monthly": "–" if monthly is None else share(abs(monthly)),
    }
    if trend.change < 0:
        return message("steadily {share} worse from {start} to {end}: {monthly} a month (p {p})", **parts)
    return message("steadily {share} better from {start} to {end}: {monthly} a month (p {p})", **parts)


def sentences(series: Series) -> list[str]:
    """Return a sentence for each slope and step, with the facts that changed at the same time."""
    texts = [sentence(series, c) for c in series.changes] + [trend_sentence(series, t) for t in series.trends]
    causes = series.causes or ((),) * len(texts)
    return [joined([text, *map(_fact, cause)], "; ") for text, cause in zip(texts, causes, strict=True)]


def _fact(change: tuple[str, str, str]) -> Message:
    name, before, after = (fmt.clean(text) for text in change)
    return message("{fact} changed from {before} to {after}", fact=name, before=before or "–", after=after or "–")


def _host(series: Series) -> str:
    return fmt.clean(series.host) or message("all hosts")


def _shown(series: Series, values: Iterable[float]) -> fmt.Shown:
    """Return how to format ``values``: as percent or bit/s if the manifest says so."""
    names = (series.benchmark["workload"], series.benchmark["metric"])
    bits, percent = declared.in_bits(*names), declared.in_percent(*names)
    counted = declared.counted(*names)
    return fmt.fit([(v, v, v) for v in values], series.benchmark["unit"], bits=bits, percent=percent, counted=counted)


def headline(history: History) -> Message:
    """Return the answer in one sentence."""
    changed = history.changed()
    slower = [s for s in changed if s.slower]
    if not changed:
        return message("There is no lasting change over {campaigns}.", campaigns=count(history.campaigns, "campaign"))
    together = [s for s in slower if not s.host]
    single = message(
        "Over {campaigns}, {slower} became permanently worse, {better} better.",
        campaigns=count(history.campaigns, "campaign"),
        slower=count(len({s.host for s in slower if s.host}), "host"),
        better=f"{len({s.host for s in changed if s.host and not s.slower})}",
    )
    if not together:
        return single
    names = ", ".join(fmt.clean(title(s.benchmark)) for s in together[:MANY]) + (", …" if together[MANY:] else "")
    fleet = message("All hosts together became worse in {benchmarks}.", benchmarks=names)
    text = joined([single, fleet], " ")
    return text if isinstance(text, Message) else single


def sparkline(values: tuple[float, ...]) -> str:
    """Return the last WIDE values as bars, scaled between the lowest and the highest."""
    last = np.log(np.array(values[-WIDE:]))
    low, high = float(last.min()), float(last.max())
    steps = np.zeros(len(last)) if high - low < 1e-9 else (last - low) / (high - low)
    return "".join(BARS[min(len(BARS) - 1, int(s * len(BARS)))] for s in steps)


def document(history: History, created: str, command: str) -> Document:
    """Return every series, changed ones first, and a plot of each. Plots of one benchmark share their scale."""
    order = [*history.changed(), *(s for s in history.series if not s.moved)]
    tone: Tone = "bad" if any(s.slower for s in order) else ""
    short = (Note(_too_short(history), quiet=True),) if history.short else ()
    return Document(
        title="history",
        answer=headline(history),
        tone=tone,
        created=created,
        sections=(
            Section("series", message("Series"), (_series(order), *short)),
            *_plots(order[:MOST_PLOTS]),
            provenance(command, *_left_out(len(order) - MOST_PLOTS)),
        ),
        data=as_json(history),
    )


def _series(order: Sequence[Series]) -> Tabular:
    columns = (
        Column("host", message("host"), "name"),
        Column("benchmark", message("benchmark")),
        Column("history", message("history")),
        Column("last", message("last value"), "number"),
        Column("changed", message("what changed"), "note"),
    )
    limits: dict[Kind, int] = {"html": MOST_ROWS, "pdf": MOST_ROWS}
    return Tabular("series", message("Series"), columns, tuple(map(_row, order)), limits=limits)


def _row(series: Series) -> tuple[Cell, ...]:
    last = series.values[-1]
    every = sentences(series)
    changed = joined([*every[len(series.changes) :], *every[: len(series.changes)][-1:]], "; ")
    return (
        Cell(_host(series)),
        Cell(title(series.benchmark)),
        Cell(sparkline(series.values)),
        Cell(_shown(series, series.values).quantity(last), last, series.benchmark["unit"]),
        Cell(changed, tone="bad" if series.slower else ""),
    )


def _plots(order: Sequence[Series]) -> Iterator[Section]:
    """Yield a section per benchmark with a plot per host. The plots in a section share their scale."""
    panels: dict[str, list[Series]] = {}
    for series in order:
        panels.setdefault(title(series.benchmark), []).append(series)
    text = message(
        "A point is a campaign, oldest first; plots of one benchmark share their scale, which is logarithmic. A dashed "
        "line marks a lasting change of the level."
    )
    for number, (name, series_of_panel) in enumerate(panels.items()):
        values = [v for series in series_of_panel for v in series.values]
        charts = (_chart(series, min(values), max(values)) for series in series_of_panel)
        note = (Note(text, quiet=True),) if number == 0 else ()
        yield Section(f"plots-{number}", name, (*note, *charts), ("html", "pdf"))


def _chart(series: Series, low: float, high: float) -> Chart:
    last = message("last {value}", value=_shown(series, series.values).quantity(series.values[-1]))
    return Chart(_host(series), joined([last, *sentences(series)], "; "), plot(series, low, high), small=True)


def _left_out(number: int) -> tuple[Note, ...]:
    return (Note(count(number, "further series", "further series"), quiet=True),) if number > 0 else ()


def _too_short(history: History) -> Message:
    return message(
        "Not judged, with fewer than {least} campaigns: {n}.",
        least=LEAST_SERIES,
        n=count(history.short, "series", "series"),
    )


def plot(series: Series, low: float, high: float) -> str:
    """Return a plot of the series as SVG, with a point per campaign, levels and changes.

    The y axis is logarithmic, from ``low`` to ``high``.
    """
    span = max(float(np.log(high / low)), 0.02)
    xs = np.linspace(MARGIN, WIDTH - MARGIN, len(series.values)) if len(series.values) > 1 else np.array([WIDTH / 2])

    def y(value: float) -> float:
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * float(np.log(value / low)) / span

    parts = []
    ends = [0, *(c.position for c in series.changes), len(series.values)]
    for first, last in itertools.pairwise(ends):
        level = y(float(np.exp(np.mean(np.log(series.values[first:last])))))
        parts.append(
            f'<path d="M{xs[first]:.1f} {level:.1f}H{xs[last - 1]:.1f}" stroke="currentColor" stroke-opacity=".45"/>'
        )
    for change in series.changes:
        x = (xs[change.position - 1] + xs[change.position]) / 2
        colour = "#c0392b" if change.change < 0 else "#1e8449"
        parts.append(f'<path d="M{x:.1f} 0V{HEIGHT}" stroke="{colour}" stroke-dasharray="3 2"/>')
    parts += [
        f'<circle cx="{x:.1f}" cy="{y(v):.1f}" r="2" fill="currentColor"><title>{escape(m[:10])}</title></circle>'
        for x, v, m in zip(xs, series.values, map(fmt.clean, series.moments), strict=True)
    ]
    return f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
