"""Render text and tables as Markdown. Characters that could be markup are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fleetmark.base.text import message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Tabular

MOST_ROWS = 400  # maximum rows per table

# Characters that CommonMark and its extensions (tables, formulas) treat as markup within a line. An underscore within a
# word is not markup and is common in names.
_MARKUP = re.compile(r"[\\`*{}\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BEGINS = re.compile(r"^([#+=>-]|\d+(?=[.)]))")  # prefix that turns a line into a heading, list or quotation


def written(lines: Iterable[str]) -> str:
    """Join lines into the text of a file. Consecutive empty lines are merged."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def tabular(table: Tabular, _: Language, *, above: str = "") -> Iterator[str]:
    """Yield a table under its title. The title is omitted if it equals the heading ``above``."""
    if table.title != above:
        yield from ("", f"### {escaped(_(table.title))}", "")
    if table.notes:
        yield from (*(f"- {escaped(_(note))}" for note in table.notes), "")
    sides = "".join("r" if column.right else "l" for column in table.columns)
    yield from table_head([column.full_title(_) for column in table.columns], sides)
    rows = table.rows if table.listing else table.rows[: table.limits.get("markdown", MOST_ROWS)]
    yield from (table_row([_(cell.full) for cell in row]) for row in rows)
    if len(table.rows) > len(rows):
        yield from ("", _(message("and {n} more", n=len(table.rows) - len(rows))))


def table_head(cells: Sequence[str], sides: str) -> list[str]:
    """Return the heading row of a table. ``sides``: the alignment of each column, l or r."""
    return [table_row(cells), f"|{'|'.join('-:' if s == 'r' else '-' for s in sides)}|"]


def table_row(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Escape ``text`` for use within a line."""
    shown = fmt.clean(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(lambda m: f"\\{m[0]}", shown)


def as_line(text: str) -> str:
    """Escape ``text`` for use at the start of a line."""
    return _BEGINS.sub(lambda m: f"{m[0]}\\" if m[0].isdigit() else f"\\{m[0]}", escaped(text.strip()))


def code(text: str) -> str:
    """Return ``text`` as inline code, delimited by more backticks than any run of backticks in it."""
    shown = fmt.clean(text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    room = " " if "`" in shown else ""
    return f"{fence}{room}{shown}{room}{fence}"
