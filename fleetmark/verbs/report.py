"""``fleetmark report`` and the documents of ``fleetmark compare``: made in memory, all of them, then written whole."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import Terminal, unwrapped
from fleetmark.base.text import message
from fleetmark.record.archive import Archive, utc
from fleetmark.record.pinned import REFERENCES
from fleetmark.record.results import Results
from fleetmark.record.view import load_results
from fleetmark.verbs.documents import Documents, show, write
from reports import report
from reports.campaign import document as campaign_report
from reports.kit import format as fmt
from reports.report import Report
from workloads import declared

if TYPE_CHECKING:
    from fleetmark.record.compare import Answer, Question
    from planner.comparison import Comparison
    from reports.comparison.front import Around
    from reports.frontier.section import Block


def _ahead(documents: Documents) -> None:
    """Start the chart engine in parallel, because it takes half a second."""
    if documents.paths.keys() & {"html", "pdf"}:
        from reports.kit import charts

        threading.Thread(target=charts.warm, daemon=True).start()


def _write(of: Report, documents: Documents, console: Console) -> None:
    renderers = {kind: partial(render, of, documents) for kind, render in _RENDER.items()}
    write(documents, renderers, console)


def _html(of: Report, documents: Documents) -> bytes:
    from reports import html

    return html.render(of, templates=documents.templates).encode()


def _pdf(of: Report, documents: Documents) -> bytes:
    from reports import pdf

    return pdf.render(of, templates=documents.templates, appendix=documents.appendix)


def _xlsx(of: Report, documents: Documents) -> bytes:
    from reports import xlsx

    return xlsx.render(of)


_RENDER: Mapping[str, Callable[[Report, Documents], bytes]] = {"html": _html, "pdf": _pdf, "xlsx": _xlsx}


# --- a campaign ------------------------------------------------------------------------------------------------------


def campaign(archive: Archive, form: str, console: Console, documents: Documents | None = None) -> Results:
    """Show a campaign as ``form`` (table, json, csv or md), and write its documents; without any, write its page.

    The page lies beside the campaign's files.
    """
    documents = documents or Documents()
    _ahead(documents)
    results = load_results(archive)
    pinned, rated = _beside_reference(archive, results), _beside_reference(archive, results, _graded(results))
    page = documents.paths.get("html") if documents.paths else archive.path / "summary.html"
    document = campaign_report.document(
        results,
        documents.language,
        date=documents.date,
        pinned=pinned,
        rated=rated,
        has_appendix=documents.appendix,
        has_every_value=documents.raw,
        page=page,
    )
    if not documents.paths:
        from reports.formats import html

        archive.write_page(html.render(document, documents.language, templates=documents.templates))
    show(document, form, console, documents)
    if form == "table":
        for name, path in ((message("report"), page), (message("campaign"), archive.path)):
            if path is not None:
                label = documents.language(message("{name}:", name=name))
                shown = path.resolve() if path is page else path
                console.print(unwrapped(f"{label} ", "dim").append(fmt.clean(shown), style="not dim"))
    return results


def _graded(results: Results) -> list[str]:
    """Return patterns of all metrics of the workloads that hold operators against roofs."""
    measured = map(str, results.values.distinct("workload")["workload"])
    return sorted({f"{workload}/*" for workload, _ in declared.roofs(measured)})


def _beside_reference(archive: Archive, results: Results, only: Sequence[str] | None = None) -> Comparison | None:
    """Return a campaign compared with the latest reference that has benchmarks in common with it.

    Compare the headlines of its only host, or what the patterns ``only`` match of hosts of one generation.
    """
    alike = len({h.generation for h in results.hosts}) if only else len(results.hosts)
    if alike != 1 or not len(results.values) or only == []:
        return None
    root = archive.path.parent
    if not REFERENCES.versions(root):
        return None
    from fleetmark.record import references
    from fleetmark.record.compare import Question, compare  # with scipy, which a report has no use for otherwise

    try:
        others = [r for r in references.references(root) if archive.id not in r.campaigns]
    except FleetmarkError:  # a damaged one: `fleetmark reference` names it
        return None
    for reference in sorted(others, key=lambda r: (r.created, r.name, r.version), reverse=True):
        pinned = f"{reference.name}@{reference.version}"
        question = Question(root, None, [f"campaign={archive.id}"], reference=pinned, only=tuple(only or ()))
        with contextlib.suppress(FleetmarkError):  # nothing in common: another may have
            return compare(question).comparison
    return None


# --- a comparison ----------------------------------------------------------------------------------------------------


def comparison(question: Question, form: str, console: Console, documents: Documents) -> None:
    """Show a comparison as ``form`` (table, json, csv or md), and write its documents."""
    from fleetmark.record.compare import compare  # with scipy, which a campaign's report has no use for
    from reports import markdown
    from reports.comparison import json as comparison_json
    from reports.comparison import model as flat
    from reports.comparison import terminal as comparison_terminal

    _ahead(documents)
    answer = compare(question, turn="html" in documents.paths, values="xlsx" in documents.paths)
    document = _report(question, answer, documents) if documents.paths or form == "md" else None
    if document is not None:
        _write(document, documents, console)
    shown = answer.comparison
    if form == "md" and document is not None:
        typer.echo(markdown.render(document), nl=False)
    elif form in ("table", "json"):
        blocks = document.frontiers if document is not None else _frontiers(question, answer)
        around = document.around if document is not None else _around(answer, blocks)
        parts = document.parts if document is not None else tuple(block.part for block in blocks)
        rows = flat.rows(shown)
        if form == "json":
            typer.echo(comparison_json.render(shown, rows, around, answer.selectors, parts))
        else:
            for part in comparison_terminal.show(shown, rows, around, documents.language, parts):
                Terminal().print(part)
    else:
        typer.echo(flat.to_csv(shown), nl=False)
    if form == "csv":  # which has no place for them
        for sentence in [*(f"warning: {w}" for w in shown.warnings), *shown.notes, *flat.footnotes(shown)]:
            typer.echo(f"fleetmark: {sentence}", err=True)


def _around(answer: Answer, blocks: Sequence[Block]) -> Around:
    from fleetmark.record import evidence
    from reports.comparison.front import Around

    families = [block.family for block in blocks]
    outlying = (answer.outliers, answer.without)
    return Around(
        evidence.hosts(answer), *outlying, families, answer.powered, answer.causes, answer.effects, answer.again
    )


def _frontiers(question: Question, answer: Answer) -> tuple[Block, ...]:
    """Return the frontiers of the workloads that have one; read no data for other workloads."""
    from fleetmark.record import evidence
    from reports.report import frontiers

    workloads = sorted(w for w in set(answer.comparison.benchmarks["workload"]) if declared.frontier(str(w)))
    if not workloads:
        return ()
    measured = evidence.measurements(question.root, answer, workloads)
    hosts = evidence.hosts(answer)
    titles = {side: side for side in answer.machines}
    return frontiers(measured, hosts, titles, answer.comparison)


def _report(question: Question, answer: Answer, documents: Documents) -> Report:
    from fleetmark.record import evidence

    together, parts = evidence.gather(question.root, answer, question.command(), documents.date or utc())
    if question.reference is not None:
        parts = (*parts, evidence.pinned(question.root, question.reference))
    return report.of_comparison(answer, together, parts, documents.language)
