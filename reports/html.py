"""A report as one self-contained HTML page, for the screen or (``medium="paper"``) for what makes a PDF of it."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from fleetmark.base.measurement import Status
from fleetmark.base.text import Message, count, message
from fleetmark.record.results import status_counts
from reports.campaign import tables as page_tables
from reports.campaign.against import sentences
from reports.campaign.embedded import Embedded, embedded
from reports.campaign.figures import figures
from reports.campaign.problems import WORST_FIRST, resume_command
from reports.campaign.telemetry import meanwhile
from reports.campaign.view import by_metric, footnotes, headlines, legend, meaning
from reports.comparison.method import method
from reports.comparison.page import Face, faces
from reports.hosts.columns import side_by_side
from reports.kit import charts
from reports.kit import format as fmt
from reports.kit.page import Medium, Section, page
from reports.report import Report

LISTED = 400  # runs that did not pass and are listed one by one


def render(report: Report, *, templates: Path | None = None, medium: Medium = "screen") -> str:
    """The page: nothing is fetched; the caller writes it, in UTF-8.

    ``templates``: a user's folder that is searched first. It may hold ``logo.svg``, ``colours.css`` (behind all other
    styles), ``extra.html.j2`` (further sections), and any template of ours, replaced or extended
    (``{% extends "fleetmark/comparison.html.j2" %}``). On paper there is no script and nothing to fold.

    Raises FleetmarkError, with file and line, for a template that has an error.
    """
    name = "campaign.html.j2" if report.comparison is None else "comparison.html.j2"
    return page(name, _context(report, medium), report.language, templates=templates, medium=medium)


def _context(report: Report, medium: Medium) -> dict[str, Any]:
    """Everything the templates may use beside what every page has."""
    view = report.view
    per_host = not page_tables.wide(view, page_tables.ROWS if medium == "screen" else page_tables.ROWS_ON_PAPER)
    hosts = Embedded("", {}, False, 0) if per_host or medium == "paper" else embedded(view)
    failed = page_tables.failed(view.results)
    seen = faces(report, all_sides=medium == "screen") if report.comparison else []
    context: dict[str, Any] = {
        "report": report,
        "view": view,
        "campaign": report.campaign,
        "campaigns": [(c, shlex.join(c.command)) for c in report.campaigns],
        "measured_in": sum(not c.pinned for c in report.campaigns),
        "command_line": shlex.join(report.campaign.command),
        "problems": report.problems,
        "coverage": page_tables.coverage(view),
        "workloads": sorted(str(w) for w in view.results.outcomes["workload"].unique()),
        "footnotes": footnotes(view.stats),
        "meaning": meaning(view),
        "legend_all": legend(page_tables.intervals(view, per_host=per_host)),
        "metrics": list(page_tables.metrics(view, hosts.numbers, per_host=per_host)),
        "per_host": per_host,
        "embedded": hosts,
        "charts": figures(view, report.language),
        "colours": charts.colour_of(view.generations) if len(view.generations) > 1 else {},
        "matrix_left_out": len(view.hosts) > charts.MANY_CELLS and bool((view.merged["over"] == "pairs").any()),
        "meanwhile": meanwhile(report.conditions),
        "hosts": side_by_side(view.hosts),
        "failed": list(failed.head(LISTED).itertuples(index=False)),
        "failed_runs": len(failed),
        "mixed": page_tables.mixed(view.results.measurements),
        "generation_sizes": Counter(h.generation or "" for h in view.hosts),
        "faces": seen,
    }
    if report.comparison is None:
        context |= _of_campaign(report)
    else:
        context |= {"title": seen[0].question, "face": seen[0], "method": method(report.comparison)}
    return context | {"sections": _sections(context, seen[0] if seen else None)}


def _of_campaign(report: Report) -> dict[str, Any]:
    """What only a campaign's page shows: how it went, and its headlines."""
    view = report.view
    counts = status_counts(view.results.outcomes)
    of = view.merged if len(view.hosts) == 1 else view.generational
    return {
        "title": _title(report),
        "total": sum(counts.values()),
        "counts": [(str(s), counts[s]) for s in (Status.PASSED, *WORST_FIRST)],
        "resume": resume_command(view.results),
        "legend": legend({*headlines(view.merged)["interval"], *headlines(of)["interval"]}),
        "meant": sentences(report.against),
        "headlines": [page_tables.lines(view, *metric) for metric in by_metric(headlines(of))],
        "across": page_tables.across(view),
        "down": page_tables.down(view),
    }


def _title(report: Report) -> Message:
    hosts = report.view.hosts
    who = fmt.clean(hosts[0].name) if len(hosts) == 1 else count(len(hosts), "host")
    # A suite of the user's own is named after its file.
    return message("{who}, {suite} suite", who=who, suite=fmt.clean(Path(report.campaign.suite).stem))


def _sections(context: dict[str, Any], face: Face | None) -> list[Section]:
    """The sections that the page has, in order, for its contents."""
    charted = face is None or any(context["charts"].values()) or context["meanwhile"] or context["matrix_left_out"]
    parts: list[tuple[bool, str, str]] = [
        (face is None, "state", message("How it went")),
        (face is None, "headlines", message("Headlines")),
        (face is not None, "answer", message("The answer")),
        (face is not None, "conversion", message("Conversion table")),
        (face is not None, "ratios", message("Ratios")),
        (bool(charted), "charts", message("Charts")),
        (True, "metrics", message("All metrics")),
        (True, "hosts", message("Hosts")),
        (face is not None, "excluded", message("Exclusions")),
        (bool(context["failed_runs"] or (face and context["problems"])), "failed", message("Not passed")),
        (face is not None, "method", message("Method")),
        (True, "provenance", message("Provenance")),
    ]
    classes = tuple(Section(t.anchor, fmt.clean(t.name)) for t in face.tables) if face else ()
    return [Section(id_, title, classes if id_ == "ratios" else ()) for shown, id_, title in parts if shown]
