"""A campaign's results for a terminal: how it went, the headlines, what did not pass, and where the rest is."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.measurement import Status
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count
from fleetmark.record.figures.summary import METRIC
from fleetmark.record.results import Results, status_counts
from reports.campaign.against import sentences
from reports.campaign.problems import WORST_FIRST, Problem, resume_command
from reports.campaign.view import View, by_metric, footnotes, headlines, legend, meaning, spread
from reports.kit import format as fmt
from reports.report import Report

MOST_PROBLEMS = 6
MOST_METRICS = 40  # headlines; more would scroll what matters off the screen
_STYLE = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.LOST: "bold magenta",
    Status.INVALID: "bold yellow",
    Status.SKIPPED: "bold",
}


def summary(report: Report, page: Path | None = None) -> list[RenderableType]:
    """What to print at the end of a run, in order, for 80 columns and wider. ``page``: where the HTML page lies."""
    seen, problems, results = report.view, report.problems, report.view.results
    shown: list[RenderableType] = []
    figures = headlines(seen.generational if len(seen.hosts) > 1 else seen.merged)
    if not figures.empty:
        left_out = figures[METRIC].drop_duplicates().shape[0] - MOST_METRICS
        shown += [
            _table(seen, figures),
            Text(str(meaning(seen)), style="dim"),
            Text(f"{legend(set(figures['interval']))}. n: {_unit_of_n(seen)}.", style="dim"),
        ]
        shown += [Text(note, style="dim") for note in footnotes(figures)]
        if left_out > 0:
            shown.append(Text(f"{count(left_out, 'further headline')}{' on the page' if page else ''}"))
        shown.append(Text())
    if meant := sentences(report.against):
        shown += [Text("What it means", style="bold"), *(Text(f"  {line}") for line in meant), Text()]
    shown.append(_counts(results))
    shown += [_problem(p) for p in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        shown.append(Text(f"{count(len(problems) - MOST_PROBLEMS, 'further cause')}{' on the page' if page else ''}"))
    shown += [unwrapped(fmt.clean(note)) for note in results.campaign.notes]
    shown.append(Text())
    if not results.campaign.finished:
        shown.append(_pair("not finished, go on", resume_command(results)))
    if page:
        shown.append(_pair("report", str(page)))
    shown.append(_pair("campaign", str(results.campaign.path)))
    return shown


def _table(view: View, figures: pd.DataFrame) -> Table:
    several = len(view.generations) > 1 and len(view.hosts) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("case", overflow="fold")
    table.add_column("metric", overflow="fold")
    if several:
        table.add_column("generation", overflow="fold", max_width=20)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("spread", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    case: tuple[str, ...] = ()
    # where a case has one point, its name is enough
    points = figures.groupby(METRIC[:4], observed=True)["labels"].nunique()
    for key, rows, shown in islice(by_metric(figures), MOST_METRICS):
        title = "" if case == key[:2] else f"{fmt.clean(key[0])} {fmt.clean(key[1])}"
        case = key[:2]
        name = fmt.point(key[2], key[3], key[4] if points[key[:4]] > 1 else "{}", key[5])
        for i, r in enumerate(rows.to_dict("records")):
            who = [Text(view.title_of(r["generation"]))] if several else []
            extent = spread(shown, r["lo"], r["hi"], r["interval"])
            value = Text(shown.number(r["value"]), style="bold")
            heads = (Text(title), Text(name)) if i == 0 else ("", "")
            table.add_row(*heads, *who, value, Text(shown.unit), Text(extent), Text(str(r["n"])))
    return table


def _unit_of_n(view: View) -> str:
    return "hosts; spread is between hosts" if len(view.hosts) > 1 else "repeats"


def _counts(results: Results) -> Text:
    counts = status_counts(results.outcomes)
    total = sum(counts.values())
    text = Text()
    if not total:
        return text.append("Nothing was measured.", style="bold")
    for status in (Status.PASSED, *WORST_FIRST):
        if counts[status] or status is Status.PASSED:
            text.append(", " if text else "").append(f"{counts[status]:,} {status}", style=_STYLE[status])
    return text.append(f" of {count(total, 'run')}")


def _problem(problem: Problem) -> RenderableType:
    where = _some(problem.hosts)
    of = f" of {fmt.clean(', '.join(problem.workloads))}" if problem.workloads else ""
    head = Text("  ").append(str(problem.status), style=_STYLE[problem.status])
    head.append(f" {count(problem.runs, 'run')}{of} on {where}" if problem.runs else f" {where}")
    reason = unwrapped(f"    {fmt.clean(problem.reason)}")  # it may name a command too
    advice = Padding(Text(f"{problem.advice}:", style="dim"), (0, 0, 0, 4))
    return Group(head, reason, advice, unwrapped(f"    {fmt.clean(problem.command)}", "cyan"))


def _some(names: tuple[str, ...], most: int = 4) -> str:
    text = ", ".join(_short(n) for n in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def _short(name: str, width: int = 28) -> str:
    name = fmt.clean(name)
    return name if len(name) <= width else name[: width - 1] + "…"


def _pair(name: str, value: str) -> Text:
    return unwrapped(f"{name}: ", "dim").append(fmt.clean(value), style="not dim")
