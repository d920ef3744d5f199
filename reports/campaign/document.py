"""Build a campaign's report as one document for every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fleetmark.base.text import count, joined, message
from fleetmark.record.results import Results
from fleetmark.reports.campaign import (
    data,
    figures,
    grade_tables,
    headlines,
    metrics,
    provenance,
    roofline,
    status,
    tabs,
    telemetry,
)
from fleetmark.reports.campaign import remarks as run_notes
from fleetmark.reports.campaign.against import against
from fleetmark.reports.campaign.conditions import conditions
from fleetmark.reports.campaign.deviation import Deviations, map_of_hosts
from fleetmark.reports.campaign.front import (
    anomalies,
    below_title,
    calm,
    lost,
    machines,
    next_steps,
    unmeasured,
    verdict,
)
from fleetmark.reports.campaign.grades import grades
from fleetmark.reports.campaign.hosts import facts_tab
from fleetmark.reports.campaign.hosts import section as hosts_section
from fleetmark.reports.campaign.problems import go_on, problems, run_on_failed
from fleetmark.reports.campaign.roofs import lines
from fleetmark.reports.campaign.summary.brief import brief
from fleetmark.reports.campaign.summary.slow import slow_hosts
from fleetmark.reports.campaign.summary.suspect import suspects
from fleetmark.reports.campaign.versions import mixed
from fleetmark.reports.campaign.view import View, view
from fleetmark.reports.frontier.pictures import sections as frontier_sections
from fleetmark.reports.frontier.points import families, metrics_of
from fleetmark.reports.frontier.section import Block, blocks
from fleetmark.reports.hosts import roofs as under_roofs
from fleetmark.reports.hosts.likely import SlowHost, ticket
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Command, Document, Exhibit, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Kind

if TYPE_CHECKING:
    from fleetmark.planner.comparison import Comparison

_SIDE = message("generation")
_ON_PAGES: tuple[Kind, ...] = ("html", "pdf")
_NOT_PAGES: tuple[Kind, ...] = ("terminal", "xlsx", "markdown")
_FILES: tuple[Kind, ...] = ("html", "pdf", "markdown")
_DOCUMENTS: tuple[Kind, ...] = ("html", "pdf", "xlsx", "markdown")
PLOTS_ON_PAPER = 6  # figures in a PDF without the appendix
MAP_ON_PAPER = 36  # maximum hosts of a map in a PDF


def document(
    results: Results,
    language: Language | None = None,
    *,
    date: str | None = None,
    pinned: Comparison | None = None,
    rated: Comparison | None = None,
    has_appendix: bool = False,
    has_every_value: bool = False,
    page: Path | None = None,
) -> Document:
    """Return the report of a campaign.

    ``date``: the date to print instead of the campaign's. ``pinned``: the headlines of its host compared with a
    reference. ``rated``: the rates of its operators compared with the reference. ``has_appendix``: a PDF has all
    metrics, plots and failures. ``has_every_value``: a workbook has every value, however many there are. ``page``: the
    HTML page to mention.
    """
    _ = language or Language()
    shown, campaign, listed = view(results), results.campaign, problems(results)
    context, graded = against(shown, pinned), grades(shown, rated)
    deviations = Deviations(shown)
    slow, doubtful = slow_hosts(shown, deviations), list(suspects(shown, context))
    odd, steps = anomalies(shown, deviations, doubtful), next_steps(shown, listed, slow)
    odd_here = below_title(odd, slow)
    served, roof_lines = frontiers(shown), lines(shown)
    notes_of_runs = run_notes.remarks(results)
    paper: tuple[Kind, ...] = _ON_PAGES if has_appendix else ("html",)
    roofs, operators = under_roofs.section(roof_lines), grade_tables.section(graded)
    parts = {
        "roofs": [roofs],
        "operators": [operators],
        "frontiers": [block.section for block in served],
        run_notes.KEY: [run_notes.section(notes_of_runs)],
    }
    graded_charts = roofline.pictures(graded, _)
    hardware = tuple(map(Note, machines(shown)))
    lacking = unmeasured(shown, has_reference=pinned is not None)
    gaps = tuple(Note(text, quiet=True) for text in (lost(shown, deviations), lacking) if text)
    first = headlines.first_table(shown, context)
    means = tuple(Note(text, quiet=True) for text in context.means)
    omitted = len(shown.headlines) - len(first.rows)
    more = (Note(message("and {n} more", n=omitted), quiet=True),) if omitted > 0 else ()
    commands = tuple(Command(advice, command) for advice, command in steps)
    following = Section("next", message("What to do next"), commands, _ON_PAGES)
    numbers = metrics.numbered(shown) if metrics.is_wide(shown) else {}
    sections: list[Section | None] = [
        Section("state", "", (*status.tiles(results), *gaps), ("terminal",)),
        Section("state", "", (*status.tiles(results), *status.unpassed(listed), *gaps), _ON_PAGES),
        Section("state", "", (Note(status.sentence(shown)), *gaps), ("xlsx", "markdown")),
        Section("machines", "", hardware),
        following,
        Section("first", first.title, (first, *means, *more) if first.rows else (), _ON_PAGES),
        headlines.brief(shown, context),
        _with_charts(operators, graded_charts, ("terminal",)),
        *(replace(block.section, only=("terminal",)) for block in served),
        Section("means", message("What it means"), means, _NOT_PAGES),
        _odd(odd_here, calm(shown)),
        run_notes.section(notes_of_runs, run_notes.FEW, ("terminal",)),
        status.causes(listed, status.CAUSES_IN_TERMINAL, ("terminal",)),
        replace(following, only=("xlsx", "markdown", *(() if listed and not slow else ("terminal",)))),
        _unfinished(results),
        _tickets(slow, campaign.id),
        _map(shown, deviations),
        status.causes(listed, status.CAUSES, _FILES, tuple(status.gaps(shown))),
        run_notes.section(notes_of_runs, run_notes.MOST, _DOCUMENTS),
        headlines.section(shown, context),
        headlines.by_host(shown),
        *tabs.sections(shown, context, has_every_value),
        _with_charts(roofs, under_roofs.pictures(roof_lines, _), _DOCUMENTS),
        _with_charts(operators, graded_charts, _DOCUMENTS),
        *frontier_sections(served, _, _DOCUMENTS),
        *_charts(shown, _, has_appendix),
        _conditions(shown, paper),
        Section(
            "metrics",
            message("All metrics"),
            metrics.exhibits(shown, numbers, metrics.ROWS, _SIDE),
            ("html",),
        ),
        Section(
            "metrics",
            message("All metrics"),
            metrics.exhibits(shown, {}, metrics.ROWS_ON_PAPER, _SIDE) if has_appendix else (),
            ("pdf",),
        ),
        hosts_section(shown, _SIDE),
        facts_tab(shown),
        status.failed_section(results, paper, fmt.clean(campaign.path / "journal.jsonl")),
        Section("not-passed", message("Not passed"), (status.causes_table(listed),), ("xlsx",)),
        Section(
            "provenance",
            message("Provenance"),
            tuple(_provenance(results, has_appendix=has_appendix)),
            (*_FILES, "xlsx"),
        ),
    ]
    took = message("took {time}", time=fmt.duration(campaign.wall_s))
    return Document(
        title=campaign.id,
        answer=joined(verdict(shown, deviations, context, doubtful), " "),
        sections=tuple(section for section in sections if section is not None),
        details=(
            _subject(shown),
            fmt.moment(campaign.created),
            took,
            message("campaign {id}", id=fmt.clean(campaign.id)),
        ),
        folder=campaign.path,
        created=date if date and date != campaign.created else "",
        data=data.record(shown, listed, odd, steps, context, parts, page),
        breakdown=metrics.breakdown(shown, numbers) if numbers else None,
        brief=brief(shown, first if first.rows else None, odd, listed, steps),
    )


def _subject(shown: View) -> str:
    hosts = shown.hosts
    subject = fmt.clean(hosts[0].name) if len(hosts) == 1 else count(len(hosts), "host")
    if silent := sum(not host.reachable for host in hosts):
        subject = message("{n} of {hosts} answered", n=len(hosts) - silent, hosts=count(len(hosts), "host"))
    # A user-defined suite is named after its file.
    return message("{who}, {suite} suite", who=subject, suite=fmt.clean(Path(shown.results.campaign.suite).stem))


def _odd(odd: Sequence[str], calm: str) -> Section:
    """Return the anomalies. ``calm``: the sentence to show if there are none."""
    only: tuple[Kind, ...] = () if odd else _ON_PAGES
    return Section("odd", message("Anomalies"), tuple(map(Note, odd or [calm])), only, is_beside=True)


def _tickets(slow: Sequence[SlowHost], campaign: str) -> Section:
    blocks = tuple(ticket(host, campaign) for host in slow)
    return Section("tickets", message("Text for a ticket"), blocks, ("html", "pdf", "markdown"), is_folded=True)


def _unfinished(results: Results) -> Section | None:
    commands = [Command(*step) for step in (go_on(results), run_on_failed(results)) if step]
    return Section("unfinished", "", tuple(commands), ("terminal", "markdown")) if commands else None


def _map(shown: View, deviations: Deviations) -> Section | None:
    table = map_of_hosts(shown, deviations, _SIDE, {"pdf": MAP_ON_PAPER})
    return Section("map", table.title, (table,), _ON_PAGES) if table else None


def _with_charts(section: Section, charts: Sequence[Chart], only: tuple[Kind, ...]) -> Section:
    return replace(section, exhibits=(*section.exhibits, *charts), only=only)


def frontiers(shown: View) -> tuple[Block, ...]:
    """Return the frontiers of the workloads that have one, without reading values of other workloads."""
    values = shown.results.values
    metrics = {str(w): chosen for w in values.distinct("workload")["workload"] if (chosen := metrics_of(str(w)))}
    if not metrics:
        return ()
    measured = pd.concat(list(values.metrics(metrics)), ignore_index=True)
    return blocks(families(measured, shown.results.hosts, None), {g: shown.title_of(g) for g in shown.generations})


def _charts(shown: View, _: Language, has_appendix: bool) -> Iterator[Section]:
    drawn = figures.sections(shown, _, _ON_PAGES if has_appendix else ("html",))
    yield from drawn
    if not any(section.exhibits for section in drawn):
        nothing = Note(message("Nothing was measured that a chart would show."))
        yield Section("charts", message("Charts"), (nothing,), _ON_PAGES)
    elif not has_appendix:
        yield Section("charts", message("Charts"), figures.first(drawn, PLOTS_ON_PAPER), ("pdf",))


def _conditions(shown: View, only: tuple[Kind, ...]) -> Section | None:
    table = telemetry.table(shown, conditions(shown), _SIDE)
    return Section("conditions", table.title, (table,), ("html", "pdf")) if table else None


def _provenance(results: Results, *, has_appendix: bool) -> Iterator[Exhibit]:
    yield from provenance.exhibits(results.campaign, has_appendix=has_appendix)
    yield from provenance.mixed_versions(mixed(results.values))
    yield provenance.pair(message("Statuses"), provenance.STATUSES)
