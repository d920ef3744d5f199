"""Workloads and suites for a terminal: a line each, or one workload in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better
from workloads import Manifest, Suite
from workloads.manifest import Case, Metric
from workloads.template import evaluate


def overview(manifests: Sequence[Manifest], suites: Sequence[Suite]) -> list[RenderableType]:
    """Workloads, then suites, a line each."""
    shelf = table("workload", "class", "scope", "measures")
    for m in manifests:
        shelf.add_row(m.name, m.class_, m.scope, m.about)
    choices = table("suite", "repeats", "workloads", "for")
    for suite in suites:
        choices.add_row(suite.name, str(suite.repeats), ", ".join(suite.workloads), suite.about)
    hint = "\nfleetmark workloads NAME shows one in full, fleetmark run -s NAME runs it alone."
    return [shelf, Text(""), choices, Text(hint, style="dim")]


def workload(m: Manifest) -> list[RenderableType]:
    """One workload in full: what it measures, its cases, parameters and metrics."""
    cases = table("case", "about", "program")
    for c in m.cases:
        cases.add_row(c.called or c.name, c.about, _program(m, c))
    parameters = table("parameter", "type", "default", "about")
    defaults = _defaults(m)
    for name, p in m.parameters.items():
        kind = f"{p.type}, ..." if p.many else p.type
        about = p.about + (f" ({', '.join(map(str, p.choices))})" if p.choices else "")
        parameters.add_row(f"{m.name}.{name}", kind, defaults[name], about)
    metrics = table("metric", "unit", "better", "kind", "about")
    for name, metric in m.metrics.items():
        metrics.add_row(
            Text(name, style="bold" if metric.headline else ""),
            metric.unit,
            metric.better.value,
            _kind(m, metric),
            metric.about,
        )
    head = Text.assemble((m.title, "bold"), f"  {m.class_}, {m.scope} scope\n{m.about}\n")
    foot = Text(f"\nlicence: {m.licence}\ncite: {m.citation}", style="dim")
    gap = Text("")
    return [head, cases, gap, parameters, gap, metrics, foot]


def _kind(m: Manifest, metric: Metric) -> str:
    """``capacity; responsiveness in tcp-1``: the kind of a metric, and where it differs; empty for what describes."""
    if metric.better is Better.NONE:
        return ""
    usual = metric.kind or m.kind or ""
    cases: dict[str, list[str]] = {}
    for pattern, at in metric.at.items():
        kind = "a setting" if at.better else str(at.kind or usual)
        if kind != usual:
            cases.setdefault(kind, []).append(pattern)
    return "; ".join([str(usual), *(f"{kind} in {', '.join(patterns)}" for kind, patterns in cases.items())])


def _program(m: Manifest, case: Case) -> str:
    """The program that a case starts, where it does not depend on the host."""
    words = [str(word).rpartition("}}/")[2] for word in case.argv]
    words = [words[0], m.deploy.provides.rpartition("/")[2] if m.deploy else "", *words]
    return next((w for w in words if re.fullmatch(r"\w[\w.+-]*", w)), "")


def _defaults(m: Manifest) -> dict[str, str]:
    """Parameter to its default, evaluated where it follows from others; what needs a host is ``from facts``."""
    values: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for name, p in m.parameters.items():
        try:
            value = evaluate(p.default, values, name)
            values[name] = p.coerce(value, name)
            shown[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        except FleetmarkError:
            shown[name] = "from facts"
    return shown


def table(*columns: str) -> Table:
    """A plain table whose first column does not wrap."""
    lines = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns):
        lines.add_column(name, no_wrap=number == 0, overflow="fold")
    return lines
