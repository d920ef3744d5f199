"""Parts that are made of tables, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import message
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.tabular import Part, Tabular

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
    for column in table.columns:
        title = fmt.clean(_(column.title))
        if column.right:
            shown.add_column(title, justify="right", overflow="fold", min_width=5)
        else:
            shown.add_column(title, overflow="fold")
    for row in table.rows[:MOST_ROWS]:
        shown.add_row(
            *(
                Text(fmt.clean(_(cell.text)) or "–" if c.right else fmt.clean(_(cell.text)))
                for c, cell in zip(table.columns, row, strict=True)
            )
        )
    return shown
