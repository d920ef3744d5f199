"""Present workloads and suites as documents: a list of all, or one workload in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number
from fleetmark.workloads import Manifest, Suite
from fleetmark.workloads.manifest import Case, Metric
from fleetmark.workloads.template import evaluate


def overview(manifests: Sequence[Manifest], suites: Sequence[Suite]) -> Document:
    """Return a row per workload, then a row per suite."""
    shelf = (
        Column("workload", message("workload"), "name"),
        Column("class", message("class")),
        Column("scope", message("scope")),
        Column("measures", message("measures")),
    )
    choices = (
        Column("suite", message("suite"), "name"),
        Column("repeats", message("repeats"), "number"),
        Column("workloads", message("workloads")),
        Column("for", message("for")),
    )
    kinds = tuple((Cell(m.name), Cell(m.class_), Cell(m.scope), Cell(m.description)) for m in manifests)
    sets = tuple((Cell(s.name), number(s.repeats), Cell(", ".join(s.workloads)), Cell(s.description)) for s in suites)
    exhibits = (
        Tabular("workloads", message("Workloads"), shelf, kinds, listing=True),
        Tabular("suites", message("Suites"), choices, sets, listing=True),
        Note(message("fleetmark workloads NAME shows one in full, fleetmark run -s NAME runs it alone."), quiet=True),
    )
    title = message("Workloads and suites")
    return Document(title=title, answer="", sections=(Section("catalogue", "", exhibits),), data=_json(manifests))


def _json(manifests: Sequence[Manifest]) -> list[Any]:
    return [m.model_dump(mode="json", by_alias=True) for m in manifests]


def workload(m: Manifest) -> Document:
    """Return one workload in full: what it measures, its cases, parameters and metrics."""
    head = message("{title}  {class_}, {scope} scope", title=m.title, class_=m.class_, scope=m.scope)
    foot = (
        Note(message("licence: {licence}", licence=m.licence), quiet=True),
        Note(message("cite: {citation}", citation=m.citation), quiet=True),
    )
    tables = (_cases(m), _parameters(m), _metrics(m))
    (data,) = _json([m])
    section = Section("workload", "", (*tables, *foot))
    return Document(title=m.name, answer=head, details=(m.description,), sections=(section,), data=data)


def _cases(m: Manifest) -> Tabular:
    columns = (
        Column("case", message("case"), "name"),
        Column("description", message("description")),
        Column("program", message("program"), "code"),
    )
    rows = tuple((Cell(c.called or c.name), Cell(c.description), Cell(_program(m, c))) for c in m.cases)
    return Tabular("cases", message("Cases"), columns, rows, listing=True)


def _parameters(m: Manifest) -> Tabular:
    columns = (
        Column("parameter", message("parameter"), "name"),
        Column("type", message("type")),
        Column("default", message("default"), "code"),
        Column("description", message("description")),
    )
    defaults = _defaults(m)
    rows = []
    for name, p in m.parameters.items():
        kind = f"{p.type}, ..." if p.many else p.type
        text = p.description + (f" ({', '.join(map(str, p.choices))})" if p.choices else "")
        rows.append((Cell(f"{m.name}.{name}"), Cell(kind), Cell(defaults[name]), Cell(text)))
    return Tabular("parameters", message("Parameters"), columns, tuple(rows), listing=True)


def _metrics(m: Manifest) -> Tabular:
    columns = (
        Column("metric", message("metric"), "name"),
        Column("unit", message("unit")),
        Column("better", message("better")),
        Column("kind", message("kind")),
        Column("description", message("description")),
    )
    rows = tuple(
        (
            Cell(name, tone="strong" if metric.headline else ""),
            Cell(metric.unit),
            Cell(metric.better.value),
            Cell(_kind(m, metric)),
            Cell(metric.description),
        )
        for name, metric in m.metrics.items()
    )
    return Tabular("metrics", message("Metrics"), columns, rows, listing=True)


def _kind(m: Manifest, metric: Metric) -> str:
    """Return the kind of a metric with its exceptions, such as ``capacity; responsiveness in tcp-1``.

    The result is empty for a descriptive metric, which has no better direction.
    """
    if metric.better is Better.NONE:
        return ""
    usual = metric.kind or m.kind or ""
    cases: dict[str, list[str]] = {}
    for pattern, override in metric.overrides.items():
        kind = "a setting" if override.better else str(override.kind or usual)
        if kind != usual:
            cases.setdefault(kind, []).append(pattern)
    return "; ".join([str(usual), *(f"{kind} in {', '.join(patterns)}" for kind, patterns in cases.items())])


def _program(m: Manifest, case: Case) -> str:
    """Return the program that a case starts, or an empty string if it depends on the host."""
    words = [str(word).rpartition("}}/")[2] for word in case.argv]
    words = [words[0], m.deploy.provides.rpartition("/")[2] if m.deploy else "", *words]
    return next((w for w in words if re.fullmatch(r"\w[\w.+-]*", w)), "")


def _defaults(m: Manifest) -> dict[str, str]:
    """Return the default of each parameter, or ``from facts`` if it depends on the host."""
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
