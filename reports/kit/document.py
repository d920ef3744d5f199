"""Represent a document: its subject, its answer and sections of exhibits, built once and rendered in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from fleetmark.base.text import Message, message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.breakdown import Breakdown, Origin
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.strip import Strip
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular, Tone, compact

PAGES: tuple[Kind, ...] = ("html", "pdf", "xlsx")  # formats with room for details
FILES: tuple[Kind, ...] = ("html", "pdf", "xlsx", "markdown", "json", "csv")  # all but the terminal


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence.

    ``quiet``: the sentence only explains or qualifies the exhibits next to it. ``link``: the section with details.
    ``is_unbroken``: the sentence contains something to copy, so a terminal shows it on one line and never omits it.
    """

    text: str
    tone: Tone = ""
    quiet: bool = False
    link: str = ""
    is_unbroken: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Make a statement about a ``subject``. Findings with the same subject are shown together.

    ``details``: sentences that qualify the statement. ``evidence``: files below the document's folder.
    """

    subject: str
    text: str
    details: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Show a command for the reader to type, and a ``text`` that says what it does."""

    text: str
    command: str

    def lead(self, _: Callable[[str], str]) -> str:
        """Return the text that precedes the command on its line."""
        text = fmt.clean(_(self.text))
        return f"{text} " if text.endswith((".", "。")) else f"{text}{_(': ')}"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of text to copy as a whole, such as a ticket, under their ``title``."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """Show a single figure under its ``title``. Consecutive tiles are cards on a page."""

    title: str
    cell: Cell
    note: str = ""


Exhibit = Note | Finding | Command | Block | Tile | Tabular | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """Group exhibits under a title.

    ``only``: the formats that include the section; all formats if empty. ``is_folded``: a page on a screen shows only
    the title until the reader opens the section. ``is_beside``: a wide page shows the section to the right of the
    previous ones. ``is_sheet``: a workbook has one tab for all its tables and charts, below each other, and its notes
    above them.
    """

    key: str
    title: str
    exhibits: tuple[Exhibit, ...]
    only: tuple[Kind, ...] = ()
    _: KW_ONLY
    is_folded: bool = False
    is_beside: bool = False
    is_sheet: bool = False

    def tables_of(self, kind: type, run: Sequence[Exhibit]) -> Iterator[Tabular]:
        """Yield the tables of consecutive exhibits of one ``kind``; tiles become one table."""
        if kind is Tile:
            yield tiles_table(self, [tile for tile in run if isinstance(tile, Tile)])
        else:
            tables = (e.table if isinstance(e, Chart) else e for e in run)
            yield from (table for table in tables if isinstance(table, Tabular))


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The content of a single page or slide, in addition to the document's answer.

    ``question``: the question that the answer answers. ``table``: the main figures. The other parts are sentences:
    ``cost``, ``worse`` (what gets worse, or may fail, under ``worse_title``), ``missing`` (what was not measured),
    ``certainty`` (how sure the answer is), ``steps`` (what to do next). An empty part is omitted.
    """

    question: str
    table: Tabular | None = None
    cost: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    worse_title: str = message("What gets worse, or may")
    missing: tuple[str, ...] = ()
    certainty: tuple[str, ...] = ()
    steps: tuple[Command | Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report that can be rendered in every format.

    ``title``: its subject, such as a campaign's id. ``answer``: its first sentence. ``tone``: whether the answer is
    good news. ``details``: short facts below the answer. ``folder``: the folder of the evidence. ``created``: ISO 8601.
    ``data``: the JSON form, if it differs from the exhibits because it is older than this model. ``alternatives``: the
    same question from other viewpoints, such as other baselines. Each alternative has the sections that differ, and its
    name is its ``viewpoint``. A page on a screen lets the reader choose one; other formats show this document only.
    ``breakdown``: the figures of single hosts, which a page on a screen shows on demand. ``origins``: the evidence of
    single figures, to which ``Cell.origin`` refers by number; it may be computed when read. ``strip``: the inputs that
    a reader may change on a page. ``manifest``: the record, question and code behind the figures, which files contain
    but do not show. ``brief``: its short form. ``groups``: names of what counts as one host, such as submitters, one of
    which the reader of a page may choose; ``group_label``: what they are.
    """

    title: str
    answer: str
    sections: tuple[Section, ...]
    tone: Tone = ""
    details: tuple[str, ...] = ()
    folder: Path | None = None
    created: str = ""
    data: Any = None
    viewpoint: str = ""
    alternatives: tuple[Document, ...] = ()
    breakdown: Breakdown | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    brief: Brief | None = None
    strip: Strip | None = None
    origins: Iterable[Origin] = ()
    groups: tuple[str, ...] = ()
    group_label: str = ""

    @property
    def facts(self) -> tuple[str, ...]:
        """Return the facts that a file shows below the answer: ``details`` and the time of creation."""
        creation = (message("Created {moment}", moment=fmt.moment(self.created)),) if self.created else ()
        return (*self.details, *creation)

    def sections_for(self, kind: Kind) -> list[Section]:
        """Return the sections that this format includes, without empty sections."""
        return [s for s in self.sections if s.exhibits and (not s.only or kind in s.only)]

    def tables_for(self, kind: Kind) -> Iterator[tuple[Section, Tabular]]:
        """Yield the tables that this format includes, each with its section.

        Tiles and charts are tables in formats that do not draw them.
        """
        draws = kind in ("terminal", "html", "pdf")
        for section in self.sections_for(kind):
            if draws:
                tables = (e for e in section.exhibits if isinstance(e, Tabular))
                yield from ((section, table.for_format(kind)) for table in tables)
                continue
            for type_, run in groupby(section.exhibits, type):
                yield from ((section, table.for_format(kind)) for table in section.tables_of(type_, list(run)))


def tiles_table(section: Section, tiles: Sequence[Tile]) -> Tabular:
    """Return consecutive tiles of a section as a table, for formats without cards."""
    columns = (
        Column("figure", message("figure"), "name"),
        Column("value", message("value"), "number"),
        Column("note", message("note"), "note"),
    )
    rows = tuple((Cell(tile.title), tile.cell, Cell(tile.note)) for tile in tiles)
    return compact(Tabular(f"{section.key}_figures", message("Key figures"), columns, rows))


def provenance(command: str, *more: Note) -> Section:
    """Return a section with the command that recreates the document. A terminal omits it."""
    again: Message = message("Make this report again")
    return Section("provenance", message("Provenance"), (Command(again, command), *more), PAGES)


def in_json(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Return sections in JSON form: title, notes, and rows by the key of their table, with null for a missing number.

    Numbers have full precision. Sections without exhibits are omitted, and charts are not data.
    """
    documents = []
    for section in sections:
        tables: dict[str, list[dict[str, Any]]] = {}
        for table in (e for e in section.exhibits if isinstance(e, Tabular)):  # several tables may share columns
            tables.setdefault(table.key, []).extend(_record(table, row) for row in table.rows)
        notes = [e.text for e in section.exhibits if isinstance(e, Note)]
        if section.exhibits:
            documents.append({"title": section.title, "notes": notes, **tables})
    return documents


def _record(table: Tabular, row: Sequence[Cell]) -> dict[str, Any]:
    return {
        column.key: cell.value if column.right else str(cell.text)
        for column, cell in zip(table.columns, row, strict=True)
    }


def listing(title: Message, table: Tabular, nothing: str, data: Any) -> Document:
    """Return a document with a single list. An empty list becomes the sentence ``nothing``, and in CSV a header row."""
    if table.rows:
        sections: tuple[Section, ...] = (Section(table.key, "", (table,)),)
    else:
        shown: tuple[Kind, ...] = ("terminal", *(kind for kind in FILES if kind != "csv"))
        sections = (Section(table.key, "", (Note(nothing),), shown), Section(table.key, "", (table,), ("csv",)))
    return Document(title=title, answer="", sections=sections, data=data)
