"""Tables of a report for a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import message
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.tabular import Cell, Column, Part, Row, Tabular, Tone

_WORD = 11  # columns
_NAMES = 2  # cells that identify a row
MOST_ROWS = 24  # per table; more would scroll the important results off the screen
MANY = 1000  # rows above which a list is plain text: laying out 10,000 rows takes 4 s
_STYLES: Mapping[Tone, str] = {"good": "green", "bad": "red", "unsure": "yellow", "strong": "bold", "hot3": "red"}
STYLES: Mapping[Tone, str] = defaultdict(str, _STYLES)


def show(parts: Sequence[Part], _: Language) -> Iterator[RenderableType]:
    """Yield what to print, in order, for terminals with at least 80 columns."""
    for part in parts:
        yield Text()
        yield Text(fmt.clean(_(part.title)), style="bold")
        yield from (Text(fmt.clean(_(note)), style="dim") for note in part.notes)
        for table in part.tables:
            yield from tabular(table, _)


def tabular(table: Tabular, _: Language, *, above: str = "") -> Iterator[RenderableType]:
    """Yield a table, the number of omitted rows, and the notes that do not fit in a column.

    ``above``: the heading above the table; the table's title is not repeated if it is the same.
    """
    yield Text()
    if len(table.rows) > MANY and table.listing:
        yield unwrapped(_aligned(table, _))
        return
    rows = table.rows if table.listing else table.rows[: table.limits.get("terminal", MOST_ROWS)]
    heads = frozenset(n for n in table.heads if n < len(rows))
    if table.title and not table.listing and table.title != above:
        yield Text(fmt.clean(_(table.title)))
    yield from (Text(fmt.clean(_(note)), style="dim") for note in table.notes)
    yield _table(table, rows, _, heads)
    if len(table.rows) > len(rows):
        yield Text(_(message("and {n} more", n=len(table.rows) - len(rows))), style="dim")
    yield from _notes(table, rows, _)


def _aligned(table: Tabular, _: Language) -> str:
    """Return the rows as plain text. Lines may be longer than the terminal is wide."""
    rows = [
        [column.full_title(_) for column in table.columns],
        *([_(cell.shown) for cell in row] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if column.right else str.ljust for column in table.columns]
    return "\n".join("  ".join(s(t, w) for s, t, w in zip(sides, row, widths, strict=True)).rstrip() for row in rows)


def _table(table: Tabular, rows: Sequence[Row], _: Language, heads: frozenset[int]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    columns = [n for n, column in enumerate(table.columns) if column.role != "note"]
    for place in columns:
        column, title = table.columns[place], fmt.clean(table.columns[place].full_title(_))
        if column.right:  # figures are never truncated
            texts = [fmt.clean(_(row[place].shown)) for row in rows]
            shown.add_column(title, justify="right", overflow="fold", width=_width(title, texts))
        else:
            words = [word for text in (title, *(_(row[place].shown) for row in rows)) for word in text.split()]
            least = min(max(map(cell_len, words), default=0), _WORD)
            shown.add_column(title, no_wrap=table.listing and place == 0, overflow="fold", min_width=least)
    for number, row in enumerate(rows):
        style = "bold" if number in heads else ""
        shown.add_row(*(_cell(row[n], table.columns[n], _) for n in columns), style=style)
    return shown


def _cell(cell: Cell, column: Column, _: Language) -> Text:
    return Text(fmt.clean(_(cell.shown)) or ("–" if column.right else ""), style=STYLES[cell.tone])


def _width(title: str, cells: Sequence[str]) -> int:
    """Return the width of the longest figure, or of the title in two lines if that is more, but at most _WORD."""
    words = max(map(cell_len, title.split()), default=0)
    return max([min(max(words, (cell_len(title) + 1) // 2), _WORD), *map(cell_len, cells)])


def _notes(table: Tabular, rows: Sequence[Row], _: Language) -> Iterator[Text]:
    """Yield the notes, which are printed below the table because they do not fit in a column."""
    for n, column in enumerate(table.columns):
        for row in rows:
            if column.role == "note" and row[n].text:
                names = ", ".join(fmt.clean(_(cell.text)) for cell in row[:_NAMES] if cell.text)
                yield Text(f"{names}: {fmt.clean(_(row[n].text))}", style=STYLES[row[n].tone] or "dim")
