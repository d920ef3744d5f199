"""Hosts over time: sparklines for a terminal, small multiples on a page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark import __version__
from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis.history import History, Series
from fleetmark.record.diagnosis.table import title
from planner.diagnosis.history import LEAST_SERIES, Change
from reports.diagnosis.html import About, Page
from reports.diagnosis.sentences import share
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.page import Section, page
from workloads import declared

BARS = "▁▂▃▄▅▆▇█"
WIDE, MOST_ROWS, MOST_PLOTS = 24, 60, 400
WIDTH, HEIGHT, MARGIN = 220, 56, 5


def sentence(series: Series, change: Change) -> Message:
    """When, from what to what, and how surely."""
    sign = -1.0 if series.benchmark["better"] == Better.LOWER else 1.0
    before, after = (float(np.exp(sign * level)) for level in (change.before, change.after))
    shown = _shown(series, (before, after))
    how = {
        "share": share(abs(float(np.expm1(change.change)))),
        "date": fmt.moment(series.moments[change.position])[:10],
    }
    parts = {"before": shown.quantity(before), "after": shown.quantity(after), "p": f"{max(change.p, 1e-6):.1g}"}
    if change.change < 0:
        return message("{share} worse since {date}: {before} to {after} (p {p})", **how, **parts)
    return message("{share} better since {date}: {before} to {after} (p {p})", **how, **parts)


def _shown(series: Series, values: Iterable[float]) -> fmt.Shown:
    """The one way in which ``values`` are written: a share in %, a rate in bit/s where its manifest says so."""
    names = (series.benchmark["workload"], series.benchmark["metric"])
    bits, percent = declared.in_bits(*names), declared.in_percent(*names)
    return fmt.fit([(v, v, v) for v in values], series.benchmark["unit"], bits=bits, percent=percent)


def headline(history: History) -> Message:
    """The answer in one sentence."""
    changed = history.changed()
    slower = [s for s in changed if s.slower]
    if not changed:
        return message("Nothing changed for good over {campaigns}.", campaigns=count(history.campaigns, "campaign"))
    return message(
        "Over {campaigns}, {slower} became worse for good, {better} better.",
        campaigns=count(history.campaigns, "campaign"),
        slower=count(len({s.host for s in slower}), "host"),
        better=f"{len({s.host for s in changed if not s.slower})}",
    )


def sparkline(values: tuple[float, ...]) -> str:
    """The last WIDE values as bars, between their lowest and highest."""
    last = np.log(np.array(values[-WIDE:]))
    low, high = float(last.min()), float(last.max())
    steps = np.zeros(len(last)) if high - low < 1e-9 else (last - low) / (high - low)
    return "".join(BARS[min(len(BARS) - 1, int(s * len(BARS)))] for s in steps)


def table(history: History, _: Language) -> list[RenderableType]:
    """What to print: the series that changed first."""
    order = [*history.changed(), *(s for s in history.series if not s.changes)]
    style = "bold red" if any(s.slower for s in order) else "bold"
    grid = Table(box=None, pad_edge=False)
    for name in (_("host"), _("benchmark"), _("history"), _("what changed")):
        grid.add_column(name, overflow="fold")
    for series in order[:MOST_ROWS]:
        what = _(sentence(series, series.changes[-1])) if series.changes else "–"
        red = "red" if series.slower else ""
        cells = (fmt.clean(series.host), fmt.clean(title(series.benchmark)), sparkline(series.values), what)
        grid.add_row(*(Text(c, style=red if n == 3 else "") for n, c in enumerate(cells)))
    parts: list[RenderableType] = [Text(_(headline(history)), style=style), Text(), grid]
    if len(order) > MOST_ROWS:
        parts.append(Text(_(count(len(order) - MOST_ROWS, "further series", "further series"))))
    if history.short:
        parts.append(Text(_(_too_short(history)), style="dim"))
    return parts


def _too_short(history: History) -> Message:
    return message(
        "Not judged, with fewer than {least} campaigns: {n}.",
        least=LEAST_SERIES,
        n=count(history.short, "series", "series"),
    )


def render(history: History, about: About, *, templates: Path | None = None) -> str:
    """The page: a panel for each benchmark, in it a plot for each host on one scale."""
    this = Page("history", about.created, __version__, about.language)
    order = [*history.changed(), *(s for s in history.series if not s.changes)]
    panels: dict[str, list[Series]] = {}
    for series in order[:MOST_PLOTS]:
        panels.setdefault(title(series.benchmark), []).append(series)
    context: dict[str, Any] = {
        "title": headline(history),
        "report": this,
        "campaign": this,
        "scales": False,
        "sections": [Section("answer", message("The answer")), Section("provenance", message("Provenance"))],
        "panels": [(name, [_panel(s, of) for s in of]) for name, of in panels.items()],
        "left_out": len(order) - min(len(order), MOST_PLOTS),
        "short": _too_short(history) if history.short else None,
        "command_line": about.command,
    }
    return page("history.html.j2", context, about.language, templates=templates)


def _panel(series: Series, beside: list[Series]) -> dict[str, Any]:
    everything = [v for s in beside for v in s.values]
    shown = _shown(series, series.values)
    return {
        "host": series.host,
        "svg": plot(series, min(everything), max(everything)),
        "last": shown.quantity(series.values[-1]),
        "changes": [sentence(series, c) for c in series.changes],
        "slower": series.slower,
    }


def plot(series: Series, low: float, high: float) -> str:
    """The series between ``low`` and ``high`` (logarithmic), a point a campaign, levels and changes marked."""
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
