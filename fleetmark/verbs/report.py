"""Implement ``fleetmark report`` and the documents of ``fleetmark compare``.

Render all documents before writing any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import message
from fleetmark.record.archive import Archive, utc
from fleetmark.record.pinned import REFERENCES
from fleetmark.record.results import Results
from fleetmark.record.view import load_results
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.kit import format as fmt
from fleetmark.verbs import manifest
from fleetmark.verbs.documents import Documents, show
from fleetmark.workloads import declared

if TYPE_CHECKING:
    from pathlib import Path

    from fleetmark.planner.comparison import Comparison
    from fleetmark.record.compare import Answer, Question
    from fleetmark.reports.comparison.compared import Compared
    from fleetmark.reports.kit.document import Document


def _ahead(documents: Documents) -> None:
    """Start the chart engine in parallel, because its start takes half a second."""
    if documents.paths.keys() & {"html", "pdf"}:
        from fleetmark.reports.kit import charts

        threading.Thread(target=charts.warm, daemon=True).start()


# --- a campaign ------------------------------------------------------------------------------------------------------


def campaign(
    archive: Archive, form: str, console: Console, documents: Documents | None = None, *, has_page: bool = False
) -> Results:
    """Show a campaign as ``form`` (table, json, csv or md), and write its documents.

    Without documents, or with ``has_page``, write the campaign's page into its folder.
    """
    documents = documents or Documents()
    has_page = has_page or documents.is_empty
    _ahead(documents)
    page = archive.path / "summary.html" if has_page else documents.paths.get("html")
    results, document = campaign_document(archive, documents, page)
    if has_page:
        from fleetmark.reports.formats import html

        archive.write_page(html.render(document, documents.language, templates=documents.templates))
    show(document, form, console, documents)
    if form == "table":
        for name, path in ((message("report"), page), (message("campaign"), archive.path)):
            if path is not None:
                label = documents.language(message("{name}:", name=name))
                shown = path.resolve() if path is page else path
                console.print(unwrapped(f"{label} ", "dim").append(fmt.clean(shown), style="not dim"))
    return results


def campaign_document(archive: Archive, documents: Documents, page: Path | None = None) -> tuple[Results, Document]:
    """Return a campaign's results and its document. Documents for files have a manifest.

    ``page``: the file of the document's page.
    """
    results = load_results(archive, running=lambda: _so_far(archive))
    document = campaign_report.document(
        results,
        documents.language,
        date=documents.date,
        pinned=_beside_reference(archive, results),
        rated=_beside_reference(archive, results, _graded(results)),
        has_appendix=documents.appendix,
        has_every_value=documents.raw,
        page=page,
    )
    if documents.paths or page:
        question = manifest.Reporting.model_construct(verb="report", campaign=archive.id)
        root = archive.path.parent
        kinds = {*documents.paths, *(("html",) if page else ())}
        document = manifest.stamped(document, question, root, [archive.id], documents, kinds)
    return results, document


def _so_far(archive: Archive) -> list[Mapping[str, Any]] | None:
    """Return the rows of a running campaign so far, from its raw files; None if this machine cannot parse them."""
    from fleetmark.campaign.rebuild import rebuild

    try:
        return list(rebuild(archive))
    except FleetmarkError:  # this machine lacks one of the workloads
        return None


def _graded(results: Results) -> list[str]:
    """Return patterns for all metrics of the workloads that compare operators with roofs."""
    measured = map(str, results.values.distinct("workload")["workload"])
    return sorted({f"{workload}/*" for workload, _ in declared.roofs(measured)})


def _beside_reference(archive: Archive, results: Results, only: Sequence[str] | None = None) -> Comparison | None:
    """Compare a campaign with the latest reference that shares benchmarks with it.

    Compare the headlines of a single host, or the metrics that match ``only`` of hosts of one generation.
    """
    alike = len({h.generation for h in results.hosts}) if only else len(results.hosts)
    if alike != 1 or not len(results.values) or only == []:
        return None
    root = archive.path.parent
    if not REFERENCES.versions(root):
        return None
    from fleetmark.record import references
    from fleetmark.record.compare import Question, compare  # imports scipy, which other reports do not need

    try:
        others = [r for r in references.references(root) if archive.id not in r.campaigns]
    except FleetmarkError:  # a damaged reference, which `fleetmark reference` reports
        return None
    for reference in sorted(others, key=lambda r: (r.created, r.name, r.version), reverse=True):
        pinned = f"{reference.name}@{reference.version}"
        question = Question(
            root=root, baseline=None, candidates=[f"campaign={archive.id}"], reference=pinned, only=tuple(only or ())
        )
        with contextlib.suppress(FleetmarkError):  # no common benchmark; try the next reference
            return compare(question).comparison
    return None


# --- a comparison ----------------------------------------------------------------------------------------------------


def comparison(question: Question, form: str, console: Console, documents: Documents) -> None:
    """Show a comparison as ``form`` (table, json, csv or md), and write its documents."""
    from fleetmark.reports.comparison import model

    _ahead(documents)
    answer = answer_for(question, documents)
    has_evidence = bool(documents.paths) or form == "md"
    shown = comparison_document(question, answer, documents, has_evidence=has_evidence)
    if documents.paths:
        shown = _stamped(shown, question, answer, documents)
    show(shown, form, console, documents)
    if form == "csv":  # CSV has no place for warnings and notes
        seen = answer.comparison
        for sentence in [*(f"warning: {w}" for w in seen.warnings), *seen.notes, *model.footnotes(seen)]:
            typer.echo(f"fleetmark: {sentence}", err=True)


def _stamped(document: Document, question: Question, answer: Answer, documents: Documents) -> Document:
    """Return a comparison with its manifest."""
    from fleetmark.record.compare import inline_mix

    given = {f.name: getattr(question, f.name) for f in fields(question) if f.name not in ("root", "campaigns")}
    values: dict[str, Any] = {name: list(v) if isinstance(v, list | tuple) else v for name, v in given.items()}
    if question.mix is not None:
        values["mix"] = inline_mix(question.mix)
    options = manifest.Comparing.model_construct(verb="compare", **values)
    sources = {m.campaign for machines in answer.machines.values() for m in machines}
    return manifest.stamped(document, options, question.root, sources, documents, documents.paths)


def answer_for(question: Question, documents: Documents) -> Answer:
    """Return the answer with the parts that the documents need: other baselines for a page, single values for a
    workbook.
    """
    from fleetmark.record.compare import compare  # imports scipy, which a campaign's report does not need

    return compare(question, turn="html" in documents.paths, values="xlsx" in documents.paths)


def comparison_document(question: Question, answer: Answer, documents: Documents, *, has_evidence: bool) -> Document:
    """Return the comparison as a document. Without evidence, read only the loads for its frontiers."""
    from fleetmark.reports.comparison.document import document

    compared = _compared(question, answer, documents, has_evidence=has_evidence)
    return document(
        compared,
        documents.language,
        has_appendix=documents.appendix,
        has_workbook="xlsx" in documents.paths,
    )


def _compared(question: Question, answer: Answer, documents: Documents, *, has_evidence: bool) -> Compared:
    from fleetmark.record import evidence
    from fleetmark.reports.comparison.compared import with_evidence, without_evidence

    if not has_evidence:
        workloads = sorted(w for w in set(answer.comparison.benchmarks["workload"]) if declared.frontier(str(w)))
        measured = evidence.measurements(question.root, answer, workloads) if workloads else None
        return without_evidence(answer, evidence.hosts(answer), measured)
    together, parts = evidence.gather(question.root, answer, question.command(), documents.date or utc())
    if question.reference is not None:
        parts = (*parts, evidence.pinned(question.root, question.reference))
    return with_evidence(answer, together, parts)
