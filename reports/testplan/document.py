"""Render a test plan for the terminal, as Markdown, as HTML and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from fleetmark import __version__
from fleetmark.base.text import message
from fleetmark.campaign.prepare.dryrun import DryRun, PlannedHost
from reports.diagnosis.html import Page
from reports.kit import console
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.marks import as_line, code, escaped, part_lines, written
from reports.kit.page import Medium, Section, page
from reports.testplan.parts import parts, title


def show(dry: DryRun, language: Language) -> Iterator[RenderableType]:
    """Yield the terminal output in order, with workloads but without single cases."""
    yield Text(language(title(dry)), style="bold")
    yield from console.show(parts(dry, matrix=False), language)


def markdown(dry: DryRun, created: str, language: Language) -> str:
    """Return the plan as Markdown."""
    lines = [f"# {as_line(language(title(dry)))}", ""]
    lines.append(f"- {escaped(language(message('Created {moment}', moment=fmt.moment(created))))}")
    lines.append(f"- {language('Start command')}{language(': ')}{code(fmt.typed(dry.command))}")
    return written([*lines, *(line for part in parts(dry) for line in part_lines(part, language))])


def render(dry: DryRun, created: str, language: Language, medium: Medium = "screen") -> str:
    """Return the plan as a self-contained HTML page."""
    this = Page(dry.suite.name, created, __version__, language)
    listed = parts(dry)
    context: dict[str, Any] = {
        "title": title(dry),
        "report": this,
        "campaign": this,
        "scales": False,
        "sections": [Section(part.key, part.title) for part in listed],
        "parts": listed,
        "command_line": fmt.typed(dry.command),
    }
    return page("testplan.html.j2", context, language, medium=medium)


def as_json(dry: DryRun) -> str:
    """Return the plan as JSON, with times in s, sizes in bytes and shares as fractions of 1."""
    document = {
        "suite": dry.suite.name,
        "about": dry.suite.about,
        "command": list(dry.command),
        "seed": dry.seed,
        "settings": dry.settings,
        "until": {"ci": dry.until.ci, "least": dry.until.least, "most": dry.until.most} if dry.until else None,
        "seconds": dry.seconds,
        "seconds_least": dry.seconds_least,
        "hosts": [_host(host) for host in dry.hosts],
    }
    return json.dumps(document, indent=1)


def _host(host: PlannedHost) -> dict[str, Any]:
    return {
        "host": host.host.name,
        "reachable": host.facts is not None,
        "reason": host.reason,
        "kind": list(host.kind),
        "seconds": host.seconds,
        "seconds_least": host.seconds_least,
        "disk": host.disk,
        "network_seconds": host.network_s,
        "network": host.network,
        "cases": [
            {
                "workload": case.workload,
                "case": case.case,
                "repeats": case.repeats,
                "runs": case.runs,
                "seconds": case.seconds,
                "source": case.source,
                "half_width": case.half_width,
                "spread_source": case.spread_source,
            }
            for case in host.cases
        ],
        "skipped": dict(host.skipped or {}),
        "unmet": dict(host.unmet or {}),
        "refused": [{"workload": r.workload, "case": r.case, "reason": r.reason} for r in host.refused],
        "installs": [
            {"workload": i.workload, "provides": i.provides, "packages": list(i.packages)} for i in host.installs
        ],
    }
