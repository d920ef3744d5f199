"""A report as one self-contained HTML page, for the screen or (``medium="paper"``) for what makes a PDF of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetmark.base.text import count, joined, message
from reports.campaign import figures, metrics, status, telemetry
from reports.campaign.hosts import section as hosts_section
from reports.campaign.versions import mixed
from reports.formats.breakdown import embedded
from reports.formats.html import Content, drawing, unit_scale
from reports.frontier.pictures import pictures
from reports.kit import format as fmt
from reports.kit.document import Section
from reports.kit.page import Medium, page
from reports.kit.page import Section as Heading
from reports.report import Report

if TYPE_CHECKING:
    from reports.comparison.page import Face


def render(report: Report, *, templates: Path | None = None, medium: Medium = "screen", appendix: bool = False) -> str:
    """The page: nothing is fetched; the caller writes it, in UTF-8.

    ``templates``: a user's folder that is searched first. It may hold ``logo.svg``, ``colours.css`` (behind all other
    styles), ``extra.html.j2`` (further sections), and any template of ours, replaced or extended
    (``{% extends "fleetmark/comparison.html.j2" %}``). On paper there is no script and nothing to fold, and all
    metrics of a campaign only with the ``appendix``.

    Raises FleetmarkError, with file and line, for a template that has an error.
    """
    return page(
        "comparison.html.j2", _context(report, medium, appendix), report.language, templates=templates, medium=medium
    )


def _measured_in(report: Report) -> str:
    """Return how many campaigns and imports have the figures."""
    from fleetmark.record import imports as imported  # with the readers of all published tables

    ids = [c.id for c in report.campaigns if not c.pinned]
    imports = sum(name.startswith(f"{imported.FOLDER}/") for name in ids)
    campaigns = count(len(ids) - imports, "campaign") if len(ids) > imports or not imports else None
    return joined([campaigns, count(imports, "import") if imports else None])


def _context(report: Report, medium: Medium, appendix: bool) -> dict[str, Any]:
    """Return the values that the templates use beside those of every page."""
    from reports.comparison.method import method
    from reports.comparison.page import faces

    view, is_screen = report.view, medium == "screen"
    appendix = appendix or is_screen
    numbers = metrics.numbered(view) if is_screen and metrics.is_wide(view) else {}
    side, kind = message("side"), "html" if is_screen else "pdf"
    exhibits = metrics.exhibits(view, numbers, metrics.ROWS if is_screen else metrics.ROWS_ON_PAPER, side)
    conditions = telemetry.table(view, report.conditions, side)
    shared = [
        *(figures.sections(view, report.language, ()) if appendix else []),
        Section("conditions", message("Host conditions during runs"), (conditions,) if conditions and appendix else ()),
        Section("metrics", message("All metrics"), exhibits if appendix else ()),
        hosts_section(view, side),
        status.causes(report.problems, status.CAUSES, (), tuple(status.gaps(view))),
        status.failed_section(view.results, ()),
    ]
    shared = [section for section in shared if section.exhibits]
    seen, drawn = faces(report, all_sides=is_screen), pictures(report.frontiers, report.language)
    return {
        "report": report,
        "view": view,
        "campaign": report.campaign,
        "campaigns": [(c, fmt.typed(c.command)) for c in report.campaigns],
        "measured_in": _measured_in(report),
        "command_line": fmt.typed(report.campaign.command),
        "embedded": embedded(metrics.breakdown(view, numbers), report.language) if numbers else "",
        "failed_runs": len(status.failed(view.results)),
        "mixed": mixed(view.results.values),
        "frontier_pictures": drawn,
        "faces": seen,
        "title": seen[0].question,
        "face": seen[0],
        "method": method(report.comparison),
        "titles": [f"{report.language(face.question)} · {fmt.clean(report.campaign.id)}" for face in seen],
        "shared": [Content(section) for section in shared],
        "sections": _sections(shared, report, seen[0]),
        "kind": kind,
        "prefix": "",
        "panel": False,
        "varying": (),
        "unit_scale": unit_scale,
        "link": lambda _: "",
        "svg": drawing([*shared, Section("frontiers", "", tuple(chain.from_iterable(drawn)))]),
    }


def _sections(shared: Sequence[Section], report: Report, face: Face) -> list[Heading]:
    """Return the sections of a comparison's page, in order, for its contents."""
    parts: list[tuple[bool, str, str]] = [
        (True, "answer", message("The answer")),
        (True, "ratios", message("Benchmarks")),
        (bool(report.frontiers), "frontier", message("Frontiers")),
        (face.peers is not None, "peers", message("Hosts against their side")),
        *((True, section.key, section.title) for section in shared),
        (True, "excluded", message("Exclusions")),
        (True, "method", message("Method")),
        (True, "provenance", message("Provenance")),
    ]
    return [Heading(id_, title) for is_shown, id_, title in parts if is_shown]
