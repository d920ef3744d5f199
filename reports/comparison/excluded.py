"""Report what a comparison omits, and why: benchmarks, hosts, and notes on headlines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from fleetmark.base.text import joined, message
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.headline import short_titles
from fleetmark.reports.comparison.sentences.reliance import some
from fleetmark.reports.comparison.titles import class_title, labelled, titled
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, number

_NAMED = 12  # maximum benchmarks named per reason


def sections(face: Face) -> Iterator[Section]:
    """Yield what is omitted: everything for pages, the benchmarks and notes for other formats."""
    gaps, notes = tuple(_gaps(face)), tuple(map(Note, face.comparison.notes))
    warnings = tuple(Note(titled(warning), "unsure") for warning in face.comparison.warnings)
    hosts, headlines = tuple(_hosts(face)), tuple(_headlines(face))
    nothing = () if gaps or warnings or hosts or notes or headlines else (Note(message("Nothing was left out.")),)
    pages: tuple[Exhibit, ...] = (*warnings, *gaps, *hosts, *notes, *headlines, *nothing)
    yield Section("excluded", message("Exclusions"), pages, ("html", "pdf"))
    yield Section("not_compared", message("Benchmarks not compared"), gaps, ("terminal", "markdown"))
    yield Section("warnings", message("Warnings"), warnings, ("xlsx",))
    yield Section("notes", message("Notes"), notes, ("terminal", "markdown", "xlsx"))


def _gaps(face: Face) -> Iterator[Tabular]:
    """Yield the benchmarks without a ratio by reason, the most frequent first."""
    reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in face.rows:
        if row.left_out:
            candidates, titles = reasons.setdefault(row.note, ({}, {}))
            candidates[row.candidate] = titles[row.benchmark] = None
    titles_left_out = list(dict.fromkeys(row.benchmark for row in face.rows if row.left_out))
    short = short_titles(titles_left_out, face.comparison.benchmarks["metric"].reindex(titles_left_out).dropna())
    columns = (
        Column("reason", message("reason"), "name"),
        Column("candidates", message("candidate"), "side"),
        Column("number", message("benchmarks"), "number"),
        Column("benchmarks", message("which"), "text"),
    )
    ranked = sorted(reasons.items(), key=lambda item: -len(item[1][1]))
    rows = tuple(
        (
            Cell(reason),
            Cell(", ".join(map(fmt.clean, candidates))),
            number(len(titles)),
            Cell(some([short[title] for title in titles], _NAMED)),
        )
        for reason, (candidates, titles) in ranked
    )
    if rows:
        yield Tabular("not_compared", message("Benchmarks not compared"), columns, rows)


def _hosts(face: Face) -> Iterator[Tabular]:
    """Yield the hosts that the headline of a class leaves out."""
    is_published = bool(face.comparison.grouped)
    columns = (
        Column("host", message("publisher") if is_published else message("host"), "name"),
        Column("class", message("class")),
        Column("candidate", message("candidate"), "side"),
        Column("reason", message("reason"), "text"),
    )
    rows = tuple(
        (Cell(host), Cell(class_title(name)), Cell(candidate.title), Cell(reason))
        for candidate in face.comparison.candidates
        for name, headline in candidate.classes.items()
        for host, reason in headline.hosts_out.items()
    )
    title = message("Submitters excluded from a class") if is_published else message("Hosts excluded from a class")
    if rows:
        yield Tabular("hosts_left_out", title, columns, rows, limits={"html": 400, "pdf": 50})


def _headlines(face: Face) -> Iterator[Note]:
    """Yield notes on headlines: gaps, excluded hosts and missing headlines. Equal notes are merged."""
    classes = {candidate.title: candidate.classes for candidate in face.comparison.candidates}
    candidates: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in face.rows:
        if not row.benchmark and row.note:
            headline = classes[row.candidate][row.class_]
            if headline.ratio is None or headline.gaps or headline.hosts_out:
                candidates[class_title(row.class_), row.note].append(fmt.clean(row.candidate))
    for (class_, note), sides in candidates.items():
        yield Note(labelled(joined([class_, f"({joined(sides)})"], " "), note))


def listing(face: Face) -> Tabular:
    """Return everything that is omitted as one table for a workbook: a row per benchmark, host, class and note."""
    columns = (
        Column("kind", message("kind"), "name"),
        Column("side", message("candidate"), "side"),
        Column("name", message("name"), "note"),
        Column("reason", message("reason"), "note"),
    )
    return Tabular("excluded", message("Data that is not in the figures, and why"), columns, tuple(_listed(face)))


def _listed(face: Face) -> Iterator[Row]:
    for candidate in face.comparison.candidates:
        side = candidate.title
        yield from _rows(message("benchmark"), side, candidate.excluded.items())
        for class_, headline in candidate.classes.items():
            name = class_title(class_)
            if not headline.ratio:
                yield from _rows(message("class"), side, [(name, headline.reason)])
            yield from _rows(message("benchmark"), f"{side}, {name}", headline.left_out.items())
            yield from _rows(message("host"), f"{side}, {name}", headline.hosts_out.items())
    yield from _rows(message("note"), "", [("", note) for note in face.comparison.notes])


def _rows(kind: str, side: str, items: Iterable[tuple[str, str]]) -> Iterator[Row]:
    yield from ((Cell(kind), Cell(side), Cell(name), Cell(reason)) for name, reason in items)
