"""What only a campaign's page shows: its first screen, the map of hosts, headlines, hosts by generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleetmark.base.measurement import Status
from fleetmark.base.text import Message, count, message
from fleetmark.record.results import status_counts
from reports.campaign import tables
from reports.campaign.deviation import heat
from reports.campaign.figures import Figures
from reports.campaign.grade_tables import parts
from reports.campaign.problems import WORST_FIRST
from reports.campaign.remarks import listed
from reports.campaign.roofline import pictures
from reports.campaign.view import View, legend
from reports.hosts import roofs as under_roofs
from reports.hosts.generations import by_generation
from reports.kit import format as fmt
from reports.kit.page import Medium, Section
from reports.report import Report

ON_PAPER = 6  # plots of a PDF without its appendix
ROWS_ON_PAPER = 36  # of the map of hosts


def context(report: Report, medium: Medium) -> dict[str, Any]:
    """What the templates of a campaign's page use beside what every report's page has."""
    view = report.view
    counts = status_counts(view.results.outcomes)
    shown = report.front
    rows = {"rows_at_most": ROWS_ON_PAPER} if medium == "paper" else {}
    return {
        "title": _title(report),
        "front": shown,
        "heat": heat(view, shown.deviations, **rows),
        "generations": by_generation(view.hosts),
        "total": sum(counts.values()),
        "counts": [(str(s), counts[s]) for s in (Status.PASSED, *WORST_FIRST)],
        "legend": legend({*_intervals(view), *(i for _, rows, _ in view.headlines for i in rows["interval"])}),
        "headlines": [tables.lines(view, *metric) for metric in view.headlines],
        "operators": parts(report.grades),
        "remarks": listed(report.remarks),
        "rooflines": pictures(report.grades, report.language),
        "roofs": under_roofs.part(report.roofs, narrow=medium == "paper") if report.roofs else None,
        "roof_pictures": under_roofs.pictures(report.roofs, report.language),
        "across": tables.across(view),
        "down": tables.down(view),
    }


def _intervals(view: View) -> set[str]:
    """Which kinds of spread headlines of hosts have."""
    return {str(i) for part in view.headlines_in_parts() for i in part["interval"].unique()}


def _title(report: Report) -> Message:
    hosts = report.view.hosts
    who = fmt.clean(hosts[0].name) if len(hosts) == 1 else count(len(hosts), "host")
    # A suite of the user's own is named after its file.
    return message("{who}, {suite} suite", who=who, suite=fmt.clean(Path(report.campaign.suite).stem))


def first_charts(charts: Figures) -> Figures:
    """The first plots of every kind, ON_PAPER of them."""
    kept = Figures({kind: [] for kind in charts})
    kept.left_out = {}
    left = ON_PAPER
    for turn in range(ON_PAPER):
        for kind, drawn in charts.items():
            if turn < len(drawn) and left:
                kept[kind].append(drawn[turn])
                left -= 1
    return kept


def sections(context: dict[str, Any]) -> list[Section]:
    """The sections that a campaign's page has, in order, for its contents."""
    parts: list[tuple[bool, str, str]] = [
        (True, "state", message("Summary")),
        (context["heat"] is not None, "map", message("Hosts against their generation")),
        (bool(context["problems"] or context["coverage"]), "status-of-runs", message("Run status")),
        (bool(context["remarks"]), "remarks", message("Notes of runs")),
        (True, "headlines", message("Headlines")),
        (context["roofs"] is not None, "roofs", message("Hosts under their own roofs")),
        (bool(context["operators"]), "grades", message("Operators")),
        (bool(context["frontier_pictures"]), "frontier", message("Frontiers")),
        (True, "charts", message("Charts")),
        (context["appendix"], "metrics", message("All metrics")),
        (True, "hosts", message("Hosts")),
        (bool(context["failed_runs"]) and context["appendix"], "failed", message("Not passed")),
        (True, "provenance", message("Provenance")),
    ]
    return [Section(id_, title) for shown, id_, title in parts if shown]
