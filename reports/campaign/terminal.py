"""A campaign's results for a terminal: status, machines, headlines, anomalies, failures and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.measurement import Status
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count, message
from fleetmark.base.words import word
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import Results, status_counts
from reports.campaign.against import Against
from reports.campaign.front import leading, some
from reports.campaign.problems import WORST_FIRST, Problem, resume_command
from reports.campaign.remarks import FEW, Remarks, listed
from reports.campaign.tables import NOISY, records
from reports.campaign.view import View, footnotes, legend, meaning, spread
from reports.kit import console
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.report import Report

MOST_PROBLEMS = 6
MOST_METRICS = 40  # maximum headlines; more would scroll the important ones off the screen
_STYLE = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.LOST: "bold magenta",
    Status.INVALID: "bold yellow",
    Status.SKIPPED: "bold",
}


def summary(report: Report, page: Path | None = None) -> list[RenderableType]:
    """Return what to print at the end of a run, in order, for at least 80 columns. ``page``: path of the HTML page."""
    view, problems, results, _ = report.view, report.problems, report.view.results, report.language
    first = report.front
    shown: list[RenderableType] = [Text(_(first.status), style="bold"), *_counts(results, _)]
    shown += [Text(_(line), style="dim") for line in first.machines]
    shown.append(Text())
    if first.benchmarks:
        left_out = len(view.headlines) - len(leading(view, MOST_METRICS))
        shown += [
            _table(view, report.against, _),
            Text(_(meaning(view)), style="dim"),
            Text(_reading(view, _), style="dim"),
        ]
        shown += [
            Text(_(note), style="dim")
            for note in footnotes(metric.standing for metric, _rows, _shown in view.headlines)
        ]
        if left_out > 0:
            shown.append(Text(_further(count(left_out, "further headline"), page, _)))
        shown.append(Text())
    if report.tables:
        shown += [*console.show(report.tables, _), Text()]
    if first.means:
        shown.append(Text(_(message("What it means")), style="bold"))
        shown += [Text(f"  {_(line)}") for line in first.means]
        shown.append(Text())
    if first.odd:
        shown.append(Text(_(message("What is odd")), style="bold"))
        shown += [Text(f"  {_(line)}") for line in first.odd]
        shown.append(Text())
    shown += _remarks(report.remarks, _)
    if problems:
        shown.append(Text(_(message("Run status")), style="bold"))
    shown += [_problem(p, _) for p in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        shown.append(Text(_further(count(len(problems) - MOST_PROBLEMS, "further cause"), page, _)))
    if problems:
        shown.append(Text())
    if not results.campaign.finished:
        shown.append(_pair(message("not finished, go on"), resume_command(results), _))
    elif not problems:
        for advice, command in first.next:
            shown += [
                Text(_(message("{name}:", name=advice)), style="dim"),
                unwrapped(f"    {fmt.clean(command)}", "cyan"),
            ]
    if page:
        shown.append(_pair(message("report"), str(page), _))
    shown.append(_pair(message("campaign"), str(results.campaign.path), _))
    return shown


def _remarks(remarks: Remarks, _: Language) -> Iterator[Text]:
    if remarks.total:
        yield Text(_(message("Notes of runs")), style="bold")
        yield from (Text(f"  {fmt.clean(_(line))}") for line in listed(remarks, FEW))
        yield Text()


def _further(what: str, page: Path | None, _: Language) -> str:
    return _(message("{what} on the page", what=what)) if page else _(what)


def _reading(view: View, _: Language) -> str:
    """Return a sentence that explains spread and n."""
    kinds = _(legend({i for _key, rows, _shown in view.headlines for i in rows["interval"]}))
    if len(view.hosts) > 1:
        return _(message("{spread}. n: hosts; spread is between hosts.", spread=kinds))
    return _(message("{spread}. n: repeats.", spread=kinds))


def _table(view: View, against: Against, _: Language) -> Table:
    """Return a table with a row per headline, or per headline and generation if there are several generations."""
    several = len(view.generations) > 1 and len(view.hosts) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1), show_edge=False)
    if several:
        table.add_column(_(message("benchmark")), overflow="fold")
        table.add_column(_(message("generation")), overflow="ellipsis", max_width=20, no_wrap=True)
    else:
        table.add_column(_(message("case")), overflow="fold")
        table.add_column(_(message("metric")), overflow="fold")
    table.add_column(_(message("value")), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    if against.shares:
        table.add_column(_(message("of peak")), justify="right", no_wrap=True)
    if against.reference:
        table.add_column(_(message("times {reference}", reference=against.reference)), justify="right", max_width=14)
    table.add_column(_(message("spread")), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    # if a case has only one point, its name is enough
    points = Counter(key[:4] for key in {metric.columns[:5]: None for metric, _rows, _shown in view.headlines})
    case: tuple[str, ...] = ()
    for metric, rows, shown in leading(view, MOST_METRICS):
        same_case = case == (metric.workload, metric.case)
        title = "" if same_case and not several else f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)}"
        case = metric.workload, metric.case
        labels = metric.labels if points[metric.columns[:4]] > 1 else "{}"
        name = fmt.point(metric.metric, metric.subject, labels, metric.standing)
        lines = [_line(view, r, shown, against, metric, several, _) for r in records(rows)]
        cells = [Text("\n").join(cell) for cell in zip(*lines, strict=True)]
        heads = [Text(f"{title} {name}")] if several else [Text(title), Text(name)]
        table.add_row(*heads, *cells)
    return table


def _line(
    view: View, row: Mapping[str, Any], shown: fmt.Shown, against: Against, metric: Metric, several: bool, _: Language
) -> list[Text]:
    """Return the cells of a figure after its name."""
    generation = str(row["generation"]) if "generation" in row else view.generations[0]
    extent = Text(spread(shown, row["lo"], row["hi"], row["interval"]))
    if row["cv"] > NOISY:
        extent.append(f" CV {fmt.percent(row['cv'])}", style="yellow")
    beside = against.of(metric, generation)
    who = [Text(_(view.title_of(generation)))] if several else []
    share = [Text(beside.share)] if against.shares else []
    times = [Text(_(beside.times))] if against.reference else []
    return [
        *who,
        Text(shown.number(row["value"]), style="bold"),
        Text(shown.unit),
        *share,
        *times,
        extent,
        Text(str(row["n"])),
    ]


def _counts(results: Results, _: Language) -> Iterator[Text]:
    """Yield the number of runs per status, unless all passed."""
    counts = status_counts(results.outcomes)
    if counts[Status.PASSED] == sum(counts.values()):
        return
    text = Text()
    for status in (Status.PASSED, *WORST_FIRST):
        if counts[status] or status is Status.PASSED:
            one = _(message("{n} {status}", n=f"{counts[status]:,}", status=word(str(status))))
            text.append(", " if text else "").append(one, style=_STYLE[status])
    yield text


def _problem(problem: Problem, _: Language) -> RenderableType:
    hosts = some(problem.hosts, 4)
    runs, workloads = count(problem.runs, "run"), fmt.clean(", ".join(problem.workloads))
    where: str = hosts
    if problem.runs and problem.workloads:
        where = message("{runs} of {workloads} on {hosts}", runs=runs, workloads=workloads, hosts=hosts)
    elif problem.runs:
        where = message("{runs} on {hosts}", runs=runs, hosts=hosts)
    head = Text("  ").append(_(word(str(problem.status))), style=_STYLE[problem.status]).append(f" {_(where)}")
    reason = unwrapped(f"    {fmt.clean(_(problem.reason))}")  # it may name a command too
    advice = Padding(Text(_(message("{name}:", name=problem.advice)), style="dim"), (0, 0, 0, 4))
    return Group(head, reason, advice, unwrapped(f"    {fmt.clean(problem.command)}", "cyan"))


def _pair(name: str, value: str, _: Language) -> Text:
    return unwrapped(f"{_(message('{name}:', name=name))} ", "dim").append(fmt.clean(value), style="not dim")
