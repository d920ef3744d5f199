"""A document: what it is about, its answer, and sections of exhibits. It is built once and rendered in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fleetmark.base.text import Message, message
from reports.kit import format as fmt
from reports.kit.charts import Chart
from reports.kit.tabular import Tabular, Tone

Kind = Literal["terminal", "html", "pdf", "xlsx", "markdown", "json", "csv"]
PAGES: tuple[Kind, ...] = ("html", "pdf", "xlsx")  # formats with room for details
FILES: tuple[Kind, ...] = ("html", "pdf", "xlsx", "markdown", "json", "csv")  # all but the terminal
WIDE = 7  # columns that fit on an upright page


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence. ``quiet``: it explains or qualifies what stands beside it."""

    text: str
    tone: Tone = ""
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement about a ``subject``, under which findings stand together; ``details`` qualify it. ``evidence``: files
    below the document's folder."""

    subject: str
    text: str
    details: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Something to type, and the ``text`` that says what for."""

    text: str
    command: str

    def lead(self, _: Callable[[str], str]) -> str:
        """What stands before the command on its line."""
        text = fmt.clean(_(self.text))
        return f"{text} " if text.endswith((".", "。")) else f"{text}{_(': ')}"


Exhibit = Note | Finding | Command | Tabular | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """Exhibits under a title. ``only``: the formats that have it; all of them where empty."""

    key: str
    title: str
    exhibits: tuple[Exhibit, ...]
    only: tuple[Kind, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether a table of it needs the long side of a page."""
        return any(isinstance(e, Tabular) and len(e.columns) > WIDE for e in self.exhibits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """``title``: what it is about, a campaign's id for instance. ``answer``: the one sentence that it begins with, and
    whether that is good news (``tone``). ``about``: short facts below it. ``folder``: where evidence lies. ``created``:
    ISO 8601. ``data``: what JSON has instead of the exhibits, for the kinds whose JSON is older than this model.
    """

    title: str
    answer: str
    sections: tuple[Section, ...]
    tone: Tone = ""
    about: tuple[str, ...] = ()
    folder: Path | None = None
    created: str = ""
    data: Any = None

    @property
    def facts(self) -> tuple[str, ...]:
        """What a file says below the answer: ``about``, and when it was made."""
        creation = (message("Created {moment}", moment=fmt.moment(self.created)),) if self.created else ()
        return (*self.about, *creation)

    def sections_for(self, kind: Kind) -> list[Section]:
        """The sections that this format has; none without exhibits."""
        return [s for s in self.sections if s.exhibits and (not s.only or kind in s.only)]

    def tables_for(self, kind: Kind) -> Iterator[tuple[Section, Tabular]]:
        """The tables that this format has, each with its section."""
        for section in self.sections_for(kind):
            yield from ((section, exhibit) for exhibit in section.exhibits if isinstance(exhibit, Tabular))


def provenance(command: str, *more: Note) -> Section:
    """How to make the document again; not for a terminal, where the command was just typed."""
    again: Message = message("Make this report again")
    return Section("provenance", message("Provenance"), (Command(again, command), *more), PAGES)


def listing(title: Message, table: Tabular, nothing: str, data: Any) -> Document:
    """Return a document of one list. An empty list is the sentence ``nothing``, and in CSV its header row."""
    if table.rows:
        sections: tuple[Section, ...] = (Section(table.key, "", (table,)),)
    else:
        shown: tuple[Kind, ...] = ("terminal", *(kind for kind in FILES if kind != "csv"))
        sections = (Section(table.key, "", (Note(nothing),), shown), Section(table.key, "", (table,), ("csv",)))
    return Document(title=title, answer="", sections=sections, data=data)
