"""What there is to choose from: workloads and suites, and the campaigns of a results root."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.archive import Archive
from fleetmark.record.documents import key_of
from workloads import Manifest, load_suite, suite_names
from workloads.manifest import Case
from workloads.template import evaluate


def overview(manifests: Sequence[Manifest]) -> list[RenderableType]:
    """Workloads, then suites, a line each."""
    shelf = _table("workload", "class", "scope", "measures")
    for m in manifests:
        shelf.add_row(m.name, m.class_, m.scope, m.about)
    suites = _table("suite", "repeats", "workloads", "for")
    for name in suite_names():
        suite = load_suite(name)
        suites.add_row(name, str(suite.repeats), ", ".join(suite.workloads), suite.about)
    return [shelf, Text(""), suites, Text("\nfleetmark workloads NAME shows one in full.", style="dim")]


def one(m: Manifest) -> list[RenderableType]:
    """One workload in full: what it measures, its cases, parameters and metrics."""
    cases = _table("case", "about", "program")
    for c in m.cases:
        cases.add_row(c.called or c.name, c.about, _program(m, c))
    parameters = _table("parameter", "type", "default", "about")
    defaults = _defaults(m)
    for name, p in m.parameters.items():
        kind = f"{p.type}, ..." if p.many else p.type
        about = p.about + (f" ({', '.join(map(str, p.choices))})" if p.choices else "")
        parameters.add_row(f"{m.name}.{name}", kind, defaults[name], about)
    metrics = _table("metric", "unit", "better", "about")
    for name, metric in m.metrics.items():
        metrics.add_row(
            Text(name, style="bold" if metric.headline else ""), metric.unit, metric.better.value, metric.about
        )
    head = Text.assemble((m.title, "bold"), f"  {m.class_}, {m.scope} scope\n{m.about}\n")
    foot = Text(f"\nlicence: {m.licence}\ncite: {m.citation}", style="dim")
    gap = Text("")
    return [head, cases, gap, parameters, gap, metrics, foot]


def _program(m: Manifest, case: Case) -> str:
    """What a case starts, as far as that is known before there is a host."""
    words = [str(word).rpartition("}}/")[2] for word in case.argv]
    words = [words[0], m.deploy.provides.rpartition("/")[2] if m.deploy else "", *words]
    return next((w for w in words if re.fullmatch(r"\w[\w.+-]*", w)), "")


def _defaults(m: Manifest) -> dict[str, str]:
    """Parameter to its default, worked out where it follows from others; what needs a host is ``from facts``."""
    known: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for name, p in m.parameters.items():
        try:
            value = evaluate(p.default, known, name)
            known[name] = p.coerce(value, name)
            shown[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        except FleetmarkError:
            shown[name] = "from facts"
    return shown


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    return table


def campaign_line(archive: Archive) -> dict[str, Any]:
    """What the list says of one campaign: where it is ``damaged``, why, and what is known of it all the same."""
    line: dict[str, Any] = {
        "campaign": archive.id,
        "created": "",
        "suite": "",
        "hosts": None,
        "statuses": {},
        "finished": False,
        "path": str(archive.path),
        "damaged": None,
    }
    try:
        asked = archive.campaign()
        line |= {"created": asked.get("created", ""), "suite": asked.get("suite", ""), "hosts": len(asked["hosts"])}
        last: dict[tuple[Any, ...], str] = {}
        for e in archive.journal():
            if e["e"] == "outcome":
                last[key_of(e)] = e["status"]
            elif e["e"] == "joined":  # what was lost of them as a whole was lost for a time
                last = {key: s for key, s in last.items() if key[0] not in e["hosts"] or key[2] != "*" or s != "lost"}
            elif e["e"] == "ended":
                line["finished"] = not e["owed"]
        line["statuses"] = dict(Counter(last.values()))
        archive.look_over()
    except FleetmarkError as error:
        line |= {"finished": False, "damaged": str(error)}
    return line


def campaign_table(lines: Sequence[dict[str, Any]]) -> Table:
    """The list as people read it."""
    table = _table("campaign", "created", "suite", "hosts", "outcomes", "")
    for line in lines:
        counts = ", ".join(f"{n} {status}" for status, n in line["statuses"].items())
        state = "" if line["finished"] else "unfinished: --resume"
        if line["damaged"]:
            state = f"damaged: {line['damaged'].removeprefix(line['path']).lstrip('/')}"
        hosts = "" if line["hosts"] is None else str(line["hosts"])
        table.add_row(*map(Text, (line["campaign"], line["created"][:16], line["suite"], hosts, counts, state)))
    return table
