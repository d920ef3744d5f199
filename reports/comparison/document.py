"""Build a comparison's document: the answer, every benchmark, the evidence, and a workbook with formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetmark.base.text import joined, message
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.reports.comparison import benchmarks, coverage, data, evidence, excluded, first, peers
from fleetmark.reports.comparison.brief import brief
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.face import Face, face
from fleetmark.reports.comparison.method import method
from fleetmark.reports.comparison.model import footnotes, rows
from fleetmark.reports.comparison.origins import Origins, origins
from fleetmark.reports.comparison.purchase.strip import strip
from fleetmark.reports.comparison.titles import labelled
from fleetmark.reports.comparison.workbook import book
from fleetmark.reports.frontier.pictures import sections as frontiers
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.strip import Strip
from fleetmark.reports.kit.tabular import Kind

_ALL: tuple[Kind, ...] = ("html", "pdf", "xlsx", "markdown", "terminal")


def document(compared: Compared, _: Language, *, has_appendix: bool = False, has_workbook: bool = True) -> Document:
    """Return the document. Without evidence it has only what a terminal, Markdown, JSON and CSV show.

    ``_``: the language of charts. ``has_appendix``: include charts and all metrics in a PDF. ``has_workbook``: include
    the sheets that only a workbook shows.
    """
    shown = compared.shown
    main = _face(compared, compared.comparison)
    behind = _origins(compared, main)
    main = replace(main, origins=behind.numbers if behind else {})
    others = [replace(_face(compared, other), origins=main.origins) for other in compared.turned.values()]
    failed = evidence.failed(shown) if shown else ""
    covered = coverage.coverage(
        main.comparison, compared.sides, compared.around.hosts, compared.root, compared.around.families
    )
    sections = [
        *((book.first(main, compared.sides),) if shown and has_workbook else ()),
        *first.sections(main, _, failed, covered.gaps, compared.around.same_size),
        *frontiers(compared.frontiers, _, _ALL),
        benchmarks.section(main),
        *([Section("origins", "", (Note(behind.note, quiet=True),), ("html",))] if behind and behind.note else ()),
        coverage.section(covered),
        peers.section(main.comparison, compared.sides),
        *(evidence.sections(shown, _, has_appendix=has_appendix) if shown else ()),
        *excluded.sections(main),
        *(evidence.runs(shown, compared.parts) if shown else ()),
        Section("method", message("Method"), tuple(_method(main)), ("html", "pdf", "xlsx")),
        *(book.sections(main, compared.sides, str(shown.results.campaign.path), _) if shown and has_workbook else ()),
        Section("rows", "", (data.table(main, covered),), ("csv",)),
        *(evidence.provenance(shown, compared.parts) if shown else ()),
    ]
    return Document(
        title=shown.results.campaign.id if shown else main.comparison.baseline,
        answer=main.front.answer,
        details=_details(compared, main),
        sections=tuple(sections),
        folder=shown.results.campaign.path if shown else None,
        created=shown.results.campaign.created if shown else "",
        data=data.record(main, compared) | coverage.record(covered),
        viewpoint=main.comparison.baseline,
        alternatives=tuple(_alternative(compared, other, _, failed) for other in others),
        breakdown=evidence.breakdown(shown) if shown else None,
        brief=brief(main, covered.gaps, shown.results.campaign.command if shown else ()),
        strip=_strip(compared),
        origins=behind or (),
        groups=_groups(compared),
        group_label=next(iter(main.comparison.grouped.values()), ""),
    )


def _groups(compared: Compared) -> tuple[str, ...]:
    """Return the submitters, vendors or values of another label that count as one host, without the names of sides."""
    if not compared.comparison.grouped:
        return ()
    hosts = ((str(host), f" of {title}") for title, side in compared.sides.items() for host in side.means.index)
    return tuple(sorted({host.removesuffix(end) for host, end in hosts if host.endswith(end)}, key=str.casefold))


def _strip(compared: Compared) -> Strip | None:
    if compared.shown is None:
        return None
    around = compared.around
    views = [around.whole_servers.get(c.baseline, c) for c in (compared.comparison, *compared.turned.values())]
    return strip(views, around.hosts, around.families, around.terms, compared.shown.results.campaign.command)


def _face(compared: Compared, comparison: Comparison) -> Face:
    return face(comparison, rows(comparison), compared.around, compared.titles)


def _origins(compared: Compared, main: Face) -> Origins | None:
    if compared.shown is None:
        return None
    scales = benchmarks.scales_of(main.comparison, main.rows)
    return origins(compared.shown, compared.parts, main.comparison, scales)


def _alternative(compared: Compared, other: Face, _: Language, failed: str) -> Document:
    """Return the sections that depend on the baseline, computed for another baseline."""
    sections = (
        *first.sections(other, _, failed),
        benchmarks.section(other),
        peers.section(other.comparison, compared.sides),
        *excluded.sections(other),
    )
    shown = compared.shown
    return Document(
        title=shown.results.campaign.id if shown else other.comparison.baseline,
        answer=other.front.answer,
        details=_details(compared, other),
        sections=sections,
        created=shown.results.campaign.created if shown else "",
        viewpoint=other.comparison.baseline,
    )


def _details(compared: Compared, seen: Face) -> tuple[str, ...]:
    measured = evidence.measured_in(compared.parts) if compared.parts else ""
    return tuple(filter(None, (seen.front.sides, measured, seen.front.basis)))


def _method(seen: Face) -> Iterator[Note]:
    yield from (Note(labelled(name, rule)) for name, rule in method(seen.comparison))
    if seen.front.capacity and seen.front.capacity[0].class_ == WORK_MIX:
        rule = message(
            "Shares are of server-hours on the baseline. The ratio for the same jobs is that of the server-hours "
            "that they take; where it lies more than 5% from the geometric mean, the answer depends on the mix."
        )
        yield Note(
            labelled(message("Work mix"), joined([message("{sentence}.", sentence=seen.front.basis), rule], " "))
        )
    yield from (Note(note, quiet=True) for note in footnotes(seen.comparison))
