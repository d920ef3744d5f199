"""A report as one self-contained HTML page, for the screen or (``medium="paper"``) for what makes a PDF of it."""

from __future__ import annotations

import base64
import hashlib
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2
import jinja2.sandbox
from markupsafe import Markup, escape

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.base.text import Said, said
from fleetmark.base.words import word
from planner import summary
from reports.campaign import tables as page_tables
from reports.campaign.embedded import Embedded, embedded
from reports.campaign.figures import figures
from reports.campaign.problems import WORST_FIRST, resume_command
from reports.campaign.telemetry import meanwhile
from reports.campaign.view import by_metric, footnotes, headlines, legend
from reports.comparison.page import Face, faces
from reports.hosts.columns import side_by_side
from reports.kit import charts
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.report import Report

LISTED = 400  # runs that did not pass and are listed one by one
Medium = Literal["screen", "paper"]

_HERE = Path(__file__).parent / "kit" / "templates"
_SCRIPT = (_HERE / "page.js").read_text("utf-8")  # alone allowed to run in the page, by its hash


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: the id of its heading's section, its title, and what stands below it."""

    id: str
    title: str
    below: tuple[Section, ...] = ()


def render(report: Report, *, templates: Path | None = None, medium: Medium = "screen") -> str:
    """The page: nothing is fetched; the caller writes it where it shall be, in UTF-8.

    ``templates``: a user's folder that is searched first. It may hold ``logo.svg``, ``colours.css`` (behind all other
    styles), ``extra.html.j2`` (further sections), and any template of ours, replaced or extended
    (``{% extends "fleetmark/comparison.html.j2" %}``). On paper there is no script and nothing to fold.

    Raises FleetmarkError, with file and line, for a template that has an error.
    """
    name = "campaign.html.j2" if report.comparison is None else "comparison.html.j2"
    return page(name, _context(report, medium), report.language, templates=templates, medium=medium)


def page(
    name: str,
    context: Mapping[str, Any],
    language: Language,
    *,
    templates: Path | None = None,
    medium: Medium = "screen",
) -> str:
    """The template ``name``, which extends ``base.html.j2``, filled with ``context`` and what every page has: ``_``,
    ``medium``, styles, script, logo. Arguments and errors as of ``render``.
    """
    if templates is not None and not templates.is_dir():
        raise FleetmarkError(f"--templates {templates}: no such folder")
    shared = {
        "_": _translator(language),
        "medium": medium,
        "script": Markup(_SCRIPT),
        "script_hash": base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode(),
    }
    context = {**shared, **_own(templates, medium), **context}
    environment = _ENVIRONMENT if templates is None else _environment(templates)
    try:
        return environment.get_template(name).render(context)
    except jinja2.TemplateNotFound as e:
        raise FleetmarkError(f"--templates {templates}: there is no template {e.name}") from e
    except jinja2.TemplateSyntaxError as e:
        raise FleetmarkError(f"{e.filename or e.name} line {e.lineno}: {e.message}") from e
    except Exception as e:
        where = _line_of(e, templates)
        if where is None:
            raise  # a fault of ours
        raise FleetmarkError(f"{where}: {e}") from e


def _line_of(error: Exception, templates: Path | None) -> str | None:
    """``FILE line N``: where in a user's template ``error`` arose; None where none of them is to blame."""
    if templates is None:
        return None
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith((".j2", ".css"))]
    mine = [f for f in frames if Path(f.filename).is_relative_to(templates)]
    return f"{mine[-1].filename} line {mine[-1].lineno}" if mine else None


# --- what the templates are given ------------------------------------------------------------------------------------


def _context(report: Report, medium: Medium) -> dict[str, Any]:
    """Everything the templates may use beside what every page has."""
    view = report.view
    per_host = not page_tables.wide(view, page_tables.ROWS if medium == "screen" else page_tables.ROWS_ON_PAPER)
    hosts = Embedded("", {}, False, 0) if per_host or medium == "paper" else embedded(view)
    failed = page_tables.failed(view.results)
    seen = faces(report, all_sides=medium == "screen") if report.comparison else []
    found: dict[str, Any] = {
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
    found |= _of_campaign(report) if report.comparison is None else {"title": seen[0].question, "face": seen[0]}
    return found | {"sections": _sections(found, seen[0] if seen else None)}


def _of_campaign(report: Report) -> dict[str, Any]:
    """What only a campaign's page shows: how it went, and its headlines."""
    view = report.view
    counts = summary.status_counts(view.results.outcomes)
    of = view.merged if len(view.hosts) == 1 else view.generational
    return {
        "title": _title(report),
        "total": sum(counts.values()),
        "counts": [(str(s), counts[s]) for s in (Status.PASSED, *WORST_FIRST)],
        "resume": resume_command(view.results),
        "legend": legend({*headlines(view.merged)["interval"], *headlines(of)["interval"]}),
        "headlines": [page_tables.lines(view, *found) for found in by_metric(headlines(of))],
        "across": page_tables.across(view),
        "down": page_tables.down(view),
    }


def _title(report: Report) -> Said:
    hosts = report.view.hosts
    who = fmt.clean(hosts[0].name) if len(hosts) == 1 else fmt.count(len(hosts), "host")
    # A suite of the user's own goes by its file.
    return said("{who}, {suite} suite", who=who, suite=fmt.clean(Path(report.campaign.suite).stem))


def _sections(found: dict[str, Any], face: Face | None) -> list[Section]:
    """The sections that the page has, in order, for its contents."""
    charted = face is None or any(found["charts"].values()) or found["meanwhile"] or found["matrix_left_out"]
    parts: list[tuple[bool, str, str]] = [
        (face is None, "state", said("How it went")),
        (face is None, "headlines", said("Headlines")),
        (face is not None, "answer", said("The answer")),
        (face is not None, "conversion", said("Conversion table")),
        (face is not None, "ratios", said("Ratios")),
        (bool(charted), "charts", said("Charts")),
        (True, "metrics", said("All metrics")),
        (True, "hosts", said("Hosts")),
        (face is not None, "excluded", said("Exclusions")),
        (bool(found["failed_runs"] or (face and found["problems"])), "failed", said("Not passed")),
        (face is not None, "method", said("Method")),
        (True, "provenance", said("Provenance")),
    ]
    classes = tuple(Section(t.anchor, fmt.clean(t.name)) for t in face.tables) if face else ()
    return [Section(id_, title, classes if id_ == "ratios" else ()) for there, id_, title in parts if there]


def _translator(language: Language) -> Callable[..., str]:
    def translate(text: str, **values: Any) -> str:
        """``text`` in the reader's language; markup among ``values`` stays markup, all else is escaped."""
        if any(isinstance(v, Markup) for v in values.values()):
            told = {k: language(v) if isinstance(v, Said) else v for k, v in values.items()}
            return Markup(escape(language(text))).format(**told)
        return language(text, **values)

    return translate


# --- the user's folder, and how templates are found ------------------------------------------------------------------


def _own(templates: Path | None, medium: Medium) -> dict[str, Any]:
    """Styles and logo: ours, and the user's where the folder has them."""
    sheets = [_HERE / "page.css", *([_HERE / "paper.css"] if medium == "paper" else [])]
    logo = templates and templates / "logo.svg"
    colours = templates and templates / "colours.css"
    try:
        style = "\n".join(p.read_text("utf-8") for p in [*sheets, *([colours] if colours and colours.exists() else [])])
        data = base64.b64encode(logo.read_bytes()).decode() if logo and logo.exists() else ""
    except (OSError, UnicodeDecodeError) as e:
        raise FleetmarkError(f"--templates {templates}: {e}") from e
    return {
        # A style element ends at the first </ of its name, wherever that stands.
        "style": Markup(style.replace("</", "<\\/")),
        "logo": f"data:image/svg+xml;base64,{data}" if data else "",
    }


def _environment(templates: Path | None) -> jinja2.Environment:
    """Where a user's folder is searched, what stands in it may not leave the page: it is sandboxed."""
    ours = jinja2.FileSystemLoader(_HERE)
    loaders: list[jinja2.BaseLoader] = [ours, jinja2.PrefixLoader({"fleetmark": ours})]
    if templates is not None:
        loaders.insert(0, jinja2.FileSystemLoader(templates))
    kind = jinja2.Environment if templates is None else jinja2.sandbox.ImmutableSandboxedEnvironment
    made = kind(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clean": fmt.clean,
        "percent": fmt.percent,
        "duration": fmt.duration,
        "moment": fmt.moment,
        "count": fmt.count,
        "better": fmt.better,
        "say": _say,
    }
    return made


@jinja2.pass_context
def _say(context: jinja2.runtime.Context, text: object) -> str:
    """A sentence or a word of ours in the reader's language; what others wrote stays as it is, made visible."""
    told = fmt.clean(text)
    return str(context["_"](told if isinstance(told, Said) else word(told)))


_ENVIRONMENT = _environment(None)
