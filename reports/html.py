"""A report as one self-contained HTML page, for the screen or (``medium="paper"``) for what makes a PDF of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetmark.base.text import count, joined, message
from reports.campaign import html as campaign_page
from reports.campaign import tables as page_tables
from reports.campaign.embedded import Embedded, embedded
from reports.campaign.figures import figures
from reports.campaign.telemetry import meanwhile
from reports.campaign.view import footnotes, legend, meaning
from reports.formats.html import unit_scale
from reports.frontier.pictures import pictures
from reports.hosts.generations import by_generation
from reports.kit import charts
from reports.kit import format as fmt
from reports.kit.page import Medium, Section, page
from reports.report import Report

if TYPE_CHECKING:
    from reports.comparison.page import Face

LISTED = 400  # runs that did not pass and are listed one by one


def render(report: Report, *, templates: Path | None = None, medium: Medium = "screen", appendix: bool = False) -> str:
    """The page: nothing is fetched; the caller writes it, in UTF-8.

    ``templates``: a user's folder that is searched first. It may hold ``logo.svg``, ``colours.css`` (behind all other
    styles), ``extra.html.j2`` (further sections), and any template of ours, replaced or extended
    (``{% extends "fleetmark/comparison.html.j2" %}``). On paper there is no script and nothing to fold, and all
    metrics of a campaign only with the ``appendix``.

    Raises FleetmarkError, with file and line, for a template that has an error.
    """
    name = "campaign.html.j2" if report.comparison is None else "comparison.html.j2"
    return page(name, _context(report, medium, appendix), report.language, templates=templates, medium=medium)


def _measured_in(report: Report) -> str:
    """How many campaigns and imports the figures are of."""
    if report.comparison is None:
        return count(1, "campaign")
    from fleetmark.record import imports as imported  # with the readers of all published tables

    ids = [c.id for c in report.campaigns if not c.pinned]
    imports = sum(name.startswith(f"{imported.FOLDER}/") for name in ids)
    campaigns = count(len(ids) - imports, "campaign") if len(ids) > imports or not imports else None
    return joined([campaigns, count(imports, "import") if imports else None])


def _context(report: Report, medium: Medium, appendix: bool) -> dict[str, Any]:
    """Everything the templates may use beside what every page has."""
    view = report.view
    per_host = not page_tables.wide(view, page_tables.ROWS if medium == "screen" else page_tables.ROWS_ON_PAPER)
    hosts = Embedded("", {}, 0) if per_host or medium == "paper" else embedded(view)
    failed = page_tables.failed(view.results)
    context: dict[str, Any] = {
        "report": report,
        "unit_scale": unit_scale,
        "view": view,
        "campaign": report.campaign,
        "campaigns": [(c, fmt.typed(c.command)) for c in report.campaigns],
        "measured_in": _measured_in(report),
        "command_line": fmt.typed(report.campaign.command),
        "problems": report.problems,
        "coverage": page_tables.coverage(view),
        "workloads": sorted(str(w) for w in view.results.outcomes["workload"].unique()),
        "footnotes": footnotes(name for (name,) in view.of_hosts.distinct("standing")),
        "meaning": meaning(view),
        "legend_all": legend(page_tables.intervals(view, per_host=per_host)),
        "metrics": list(page_tables.metrics(view, hosts.numbers, per_host=per_host)),
        "per_host": per_host,
        "embedded": hosts.json,
        "left_out": hosts.left_out,
        "charts": figures(view, report.language),
        "colours": charts.colour_of(view.generations) if len(view.generations) > 1 else {},
        "matrix_left_out": len(view.hosts) > charts.MANY_CELLS and ("pairs",) in view.of_merged.distinct("over"),
        "meanwhile": meanwhile(report.conditions),
        "failed": list(failed.head(LISTED).itertuples(index=False)),
        "failed_runs": len(failed),
        "mixed": page_tables.mixed(view.results.values),
        "generation_sizes": Counter(h.generation or "" for h in view.hosts),
        "frontier_pictures": pictures(report.frontiers, report.language),
        "appendix": appendix or medium == "screen",
    }
    if report.comparison is None:
        context |= campaign_page.context(report, medium)
        if not context["appendix"]:
            context["charts"] = campaign_page.first_charts(context["charts"])
        context["sections"] = campaign_page.sections(context)
        return context
    from reports.comparison.method import method
    from reports.comparison.page import faces

    seen = faces(report, all_sides=medium == "screen")
    context |= {"faces": seen, "title": seen[0].question, "face": seen[0], "method": method(report.comparison)}
    context["generations"] = by_generation(view.hosts)
    context["titles"] = [f"{report.language(face.question)} · {fmt.clean(report.campaign.id)}" for face in seen]
    return context | {"sections": _sections(context, seen[0])}


def _sections(context: dict[str, Any], face: Face) -> list[Section]:
    """The sections that a comparison's page has, in order, for its contents."""
    charted = any(context["charts"].values()) or context["meanwhile"] or context["matrix_left_out"]
    parts: list[tuple[bool, str, str]] = [
        (True, "answer", message("The answer")),
        (True, "ratios", message("Benchmarks")),
        (bool(context["frontier_pictures"]), "frontier", message("Frontiers")),
        (face.peers is not None, "peers", message("Hosts against their side")),
        (bool(charted) and context["appendix"], "charts", message("Charts")),
        (context["appendix"], "metrics", message("All metrics")),
        (True, "hosts", message("Hosts")),
        (True, "excluded", message("Exclusions")),
        (bool(context["failed_runs"] or context["problems"]), "failed", message("Not passed")),
        (True, "method", message("Method")),
        (True, "provenance", message("Provenance")),
    ]
    return [Section(id_, title) for shown, id_, title in parts if shown]
