"""Report how the runs ended: causes with what to do, runs by host and workload, and every run that did not pass."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.record.results import Results, status_counts
from fleetmark.reports.campaign.front import place, short, some
from fleetmark.reports.campaign.problems import WORST_FIRST, Problem
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Command, Exhibit, Finding, Note, Section, Tile
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Row, Tabular, Tone, number

CAUSES = 50
CAUSES_IN_TERMINAL = 6
PLACES = 2  # maximum number of causes of one status on the first screen
SHORT_REASON = 56  # maximum characters of a reason there
RUNS = 400  # maximum number of failed runs to list one by one
_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "lost": "bad", "invalid": "unsure", "skipped": "strong"}


def tiles(results: Results) -> Iterator[Tile]:
    """Yield the number of runs by status, unless all runs passed."""
    counts = status_counts(results.outcomes)
    if counts[Status.PASSED] == sum(counts.values()):
        return
    for status in (Status.PASSED, *WORST_FIRST):
        if counts[status] or status is Status.PASSED:
            figure = number(counts[status])
            yield Tile(word(str(status)), Cell(figure.text, figure.value, tone=_TONES[status]))


def unpassed(problems: Sequence[Problem]) -> Iterator[Note]:
    """Yield which runs did not pass and why, by status, for the first screen."""
    by_status: list[str] = []
    for status in WORST_FIRST:
        listed = [problem for problem in problems if problem.status is status]
        if listed:
            places = joined([_where(problem) for problem in listed[:PLACES]])
            if len(listed) > PLACES:
                places = joined([places, message("and {n} more", n=len(listed) - PLACES)])
            by_status.append(message("{name}: {what}", name=word(str(status)), what=places))
    if by_status:
        yield Note(joined(by_status, "; "), link="status-of-runs")


def _in_short(reason: str) -> str:
    """Return a reason of at most SHORT_REASON characters; a longer one is cut before its details."""
    if len(reason) <= SHORT_REASON:
        return reason
    return short(re.split(r"[:;] ", reason, maxsplit=1)[0], SHORT_REASON)


def _where(problem: Problem) -> Message:
    workloads = joined([fmt.clean(name) for name in problem.workloads])
    if len(problem.workloads) > 1:
        workloads = count(len(problem.workloads), "workload")
    hosts, reason = some(problem.hosts), _in_short(problem.reason)
    if not workloads:
        return message("{hosts} ({reason})", hosts=hosts, reason=reason)
    return message("{workload} on {hosts} ({reason})", workload=workloads, hosts=hosts, reason=reason)


def sentence(view: View) -> Message:
    """Return the number of runs and hosts, and the number of runs by status."""
    counts = status_counts(view.results.outcomes)
    state = [
        message("{n} {status}", n=f"{counts[s]:,}", status=word(str(s)))
        for s in (Status.PASSED, *WORST_FIRST)
        if counts[s] or s is Status.PASSED
    ]
    runs, hosts = count(sum(counts.values()), "run"), count(len(view.hosts), "host")
    return message("{runs} on {hosts}: {state}", runs=runs, hosts=hosts, state=joined(state))


def causes(problems: Sequence[Problem], limit: int, only: tuple[Kind, ...], more: Sequence[Exhibit] = ()) -> Section:
    """Return the causes of failed runs, worst first, each with the next command."""
    exhibits: list[Exhibit] = []
    for problem in problems[:limit]:
        tone = _TONES[problem.status]
        subject = message("{name}: {what}", name=word(str(problem.status)), what=place(problem, 6))
        exhibits += [Finding(subject, problem.reason, tone=tone), Command(problem.advice, problem.command)]
    if len(problems) > limit:
        remainder = count(len(problems) - limit, "further cause")
        exhibits.append(Note(message("{what} on the page", what=remainder) if only == ("terminal",) else remainder))
    return Section("status-of-runs", message("Run status"), (*exhibits, *more), only)


def causes_table(problems: Sequence[Problem]) -> Tabular:
    """Return the causes as a table."""
    columns = (
        Column("status", message("status"), "verdict"),
        Column("hosts", message("hosts")),
        Column("workloads", message("workloads")),
        Column("reason", message("reason"), "note"),
        Column("runs", message("runs"), "number"),
        Column("advice", message("what to do"), "note"),
        Column("command", message("command"), "code"),
    )
    rows = tuple(
        (
            Cell(word(str(p.status)), tone=_TONES[p.status]),
            Cell(some(p.hosts, 20)),
            Cell(fmt.clean(", ".join(p.workloads))),
            Cell(p.reason),
            number(p.runs),
            Cell(p.advice),
            Cell(p.command),
        )
        for p in problems
    )
    return Tabular("causes", message("What did not pass, and why"), columns, rows)


def gaps(view: View) -> Iterator[Tabular]:
    """Yield a table of passed runs and all runs for the hosts with a failed run, if there are any."""
    outcomes = view.results.outcomes
    passed = (
        (outcomes["status"] == Status.PASSED).groupby([outcomes["host"], outcomes["workload"]]).agg(["sum", "size"])
    )
    counts = {key: (int(ok), int(runs)) for key, ok, runs in passed.itertuples(name=None)}
    workloads = sorted(str(w) for w in outcomes["workload"].unique())
    rows: list[Row] = []
    for host in view.hosts:
        known = [counts.get((host.name, workload)) for workload in workloads]
        if any(c and c[0] < c[1] for c in known):
            rows.append((Cell(fmt.clean(host.name)), *map(_passed, known)))
    if rows:
        heading = message("Where the gaps are: {hosts} by workload, passed / all", hosts=count(len(rows), "host"))
        columns = [Column(f"workload{n}", fmt.clean(w), "number") for n, w in enumerate(workloads)]
        table = Tabular("gaps", heading, (Column("host", message("host"), "name"), *columns), rows, is_folded=True)
        yield table


def _passed(runs: tuple[int, int] | None) -> Cell:
    if runs is None:
        return Cell("–")
    return Cell(f"{runs[0]} / {runs[1]}", runs[0] / max(1, runs[1]), tone="unsure" if runs[0] < runs[1] else "")


def failed(results: Results) -> pd.DataFrame:
    """Return every run that did not pass, worst first."""
    outcomes = results.outcomes[results.outcomes["status"] != Status.PASSED]
    rank = outcomes["status"].astype(object).map({s: i for i, s in enumerate(WORST_FIRST)})
    order = ["rank", "host", "workload", "case", "repeat"]
    return outcomes.assign(rank=rank.astype(int)).sort_values(order, kind="stable")


def failed_section(results: Results, only: tuple[Kind, ...], file: str = "") -> Section:
    """Return every run that did not pass with its reason. ``file``: the file that lists the omitted runs."""
    runs = failed(results)
    listed = list(runs.head(RUNS).itertuples(index=False))
    rows = tuple(_run(run) for run in listed)
    columns = (
        Column("status", message("status"), "verdict"),
        Column("host", message("host"), "name"),
        Column("workload", message("workload")),
        Column("case", message("case")),
        Column("repeat", message("repeat"), "number"),
        Column("reason", message("reason"), "note"),
        Column("foreign_cores", message("foreign cores"), "number"),
    )
    heading: Message = message("{runs} with reasons", runs=count(len(runs), "run"))
    table = Tabular("failed_runs", heading, columns, rows, limits={"pdf": 60}, is_folded=len(runs) > 25)
    omitted = len(runs) - len(rows)
    notes = [message("and {n} more", n=f"{omitted:,}") if omitted else None]
    if omitted and file:
        notes.append(message("All {runs} are in {file}.", runs=count(len(runs), "run"), file=file))
    note = joined(notes, "; ")
    exhibits: tuple[Exhibit, ...] = (table, *([Note(note, quiet=True)] if note else []))
    return Section("failed", message("Not passed"), exhibits if rows else (), only)


def _run(run: object) -> Row:
    case, subject = str(getattr(run, "case", "")), str(getattr(run, "subject", "host"))
    name = message("all") if case == "*" else fmt.clean(case)
    cores, status = getattr(run, "foreign_cores", None), str(getattr(run, "status", ""))
    return (
        Cell(word(status), tone=_TONES[status]),
        Cell(fmt.clean(getattr(run, "host", ""))),
        Cell(fmt.clean(getattr(run, "workload", ""))),
        Cell(joined([name, fmt.clean(subject) if subject != "host" else None])),
        Cell() if case == "*" else number(getattr(run, "repeat", None)),
        Cell(getattr(run, "reason", "") or message("no reason recorded")),
        Cell(f"{cores:.2f}", cores) if cores is not None and math.isfinite(cores) else Cell(),
    )
