"""Parts that are made of tables, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import message
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.tabular import Part, Tabular

_WORD = 11  # columns
_NAMES = 2  # cells that tell a row
MOST_ROWS = 24  # of a table; more would scroll what matters off the screen


def show(parts: Sequence[Part], _: Language) -> Iterator[RenderableType]:
    """What to print, in order, for 80 columns and wider."""
    for part in parts:
        yield Text()
        yield Text(fmt.clean(_(part.title)), style="bold")
        yield from (Text(fmt.clean(_(note)), style="dim") for note in part.notes)
        for table in part.tables:
            yield Text()
            yield _table(table, _)
            if len(table.rows) > MOST_ROWS:
                yield Text(_(message("and {n} more", n=len(table.rows) - MOST_ROWS)), style="dim")
            yield from _notes(table, _)


def _table(table: Tabular, _: Language) -> Table:
    shown = Table(
        title=fmt.clean(_(table.title)),
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    columns = [n for n, column in enumerate(table.columns) if column.kind != "note"]
    rows = [[fmt.clean(_(row[n].text)) for n in columns] for row in table.rows[:MOST_ROWS]]
    for n, place in enumerate(columns):
        column, title = table.columns[place], fmt.clean(_(table.columns[place].title))
        if column.right:  # whose figures are never cut
            shown.add_column(title, justify="right", overflow="fold", width=_width(title, [row[n] for row in rows]))
        else:
            shown.add_column(title, overflow="fold")
    for row in rows:
        shown.add_row(*(text or ("–" if table.columns[n].right else "") for n, text in zip(columns, row, strict=True)))
    return shown


def _width(title: str, cells: Sequence[str]) -> int:
    """Return the width of the longest figure, or of the title in two lines if that is more, but at most _WORD."""
    words = max(map(cell_len, title.split()), default=0)
    return max([min(max(words, (cell_len(title) + 1) // 2), _WORD), *map(cell_len, cells)])


def _notes(table: Tabular, _: Language) -> Iterator[Text]:
    """What has no room in a column, below the table."""
    for n, column in enumerate(table.columns):
        for row in table.rows[:MOST_ROWS]:
            if column.kind == "note" and row[n].text:
                names = ", ".join(fmt.clean(_(cell.text)) for cell in row[:_NAMES] if cell.text)
                yield Text(f"{names}: {fmt.clean(_(row[n].text))}", style="dim")
