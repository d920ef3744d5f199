"""Render tables of a report for a terminal."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, Tone

_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")
_DATE = 16  # columns of a time, which is never broken
_WORD = 11  # maximum columns of a word
_GAP = 2  # columns between table columns
_NAMES = 2  # number of cells that identify a row
MOST_ROWS = 24  # maximum rows per table; more would scroll the important results off the screen
MANY = 1000  # maximum rows of a laid-out table; laying out 10,000 rows takes 4 s, so longer lists are plain text
_STYLES: Mapping[Tone, str] = {"good": "green", "bad": "red", "unsure": "yellow", "strong": "bold", "hot3": "red"}
STYLES: Mapping[Tone, str] = defaultdict(str, _STYLES)


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
    yield _Fitted(replace(table, rows=rows, heads=heads), _)
    if len(table.rows) > len(rows):
        yield Text(_(message("and {n} more", n=len(table.rows) - len(rows))), style="dim")
    yield from _notes(table, rows, _)


def _aligned(table: Tabular, _: Language) -> str:
    """Return the rows as plain text. Lines may be wider than the terminal."""
    rows = [
        [column.full_title(_) for column in table.columns],
        *([_(cell.shown) for cell in row] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if column.right else str.ljust for column in table.columns]
    return "\n".join("  ".join(s(t, w) for s, t, w in zip(sides, row, widths, strict=True)).rstrip() for row in rows)


class _Fitted:
    """A table that is split by columns if the terminal is too narrow. Each part begins with the first column."""

    def __init__(self, table: Tabular, _: Language) -> None:
        self.table, self._ = table, _

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for n, places in enumerate(self._parts(options.max_width)):
            yield from [Text()] if n else []
            yield _table(self.table, _widths(self.table, places, options.max_width, self._), self._)

    def _parts(self, width: int) -> Iterator[list[int]]:
        """Yield the columns of each part. Neighbouring columns of a group stay together if they fit."""
        columns = self.table.columns
        places = [n for n, column in enumerate(columns) if column.role != "note"]
        if not places:
            return
        room = width + _GAP
        least = {n: _least(self.table, n, self._) + _GAP for n in places}
        first, *others = places
        runs = [list(run) for _, run in groupby(others, lambda n: columns[n].group or str(n))]
        part = [first]
        for run in runs:
            pieces = [run] if least[first] + sum(least[n] for n in run) <= room else [[n] for n in run]
            for piece in pieces:
                if len(part) > 1 and sum(least[n] for n in (*part, *piece)) > room:
                    yield part
                    part = [first]
                part += piece
        yield part


def _widths(table: Tabular, places: Sequence[int], width: int, _: Language) -> dict[int, int]:
    """Return the width of each column: the width that it needs, and a part of the remaining room."""
    widths = {n: _least(table, n, _) for n in places}
    longest = {n: max(cell_len(_(row[n].full)) for row in table.rows) if table.rows else 0 for n in places}
    titles = {n: fmt.clean(table.columns[n].full_title(_)) for n in places}
    words = {n: max(map(cell_len, title.split()), default=0) for n, title in titles.items()}
    needed = {n: words[n] if table.columns[n].right else max(longest[n], cell_len(titles[n])) for n in places}
    wanted = {n: needed[n] - widths[n] for n in places}
    room = width - sum(widths.values()) - _GAP * (len(places) - 1)
    for left, n in zip(range(len(places), 0, -1), sorted(places, key=wanted.__getitem__), strict=True):
        more = max(0, min(wanted[n], room // left))
        widths[n] += more
        room -= more
    return widths


def _least(table: Tabular, place: int, _: Language) -> int:
    """Return the width that a column needs."""
    column, title = table.columns[place], fmt.clean(table.columns[place].full_title(_))
    cells = [row[place] for row in table.rows]
    if column.right:  # figures are never truncated
        details = [word for cell in cells for text in cell.details for word in _(text).split()]
        return _width(title, [*(fmt.clean(_(cell.shown)) for cell in cells), *details])
    texts = (title, *(_(cell.full) for cell in cells))
    if table.listing and place == 0:  # not broken into lines
        return max(map(cell_len, texts))
    words = [word for text in texts for word in text.split()]
    dates = _DATE if any(_TIME.fullmatch(word) for word in words) else 0
    return max(min(max(map(cell_len, words), default=0), _WORD), dates)


def _table(table: Tabular, widths: Mapping[int, int], _: Language) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for place, width in widths.items():
        column, title = table.columns[place], fmt.clean(table.columns[place].full_title(_))
        shown.add_column(title, justify="right" if column.right else "left", overflow="fold", width=width)
    for number, row in enumerate(table.rows):
        is_head = number in table.heads
        cells = (_cell(row[n], table.columns[n], _, is_head=is_head) for n in widths)
        shown.add_row(*cells, style="bold" if is_head else "")
    return shown


def _cell(cell: Cell, column: Column, _: Language, *, is_head: bool) -> Text:
    text = Text(fmt.clean(_(cell.shown)) or ("–" if column.right and not is_head else ""), style=STYLES[cell.tone])
    for detail in cell.details:
        text.append(f"\n{fmt.clean(_(detail))}", style="not bold dim")
    return text


def _width(title: str, cells: Sequence[str]) -> int:
    """Return the width of the longest figure, or of the title in two lines if that is wider, but at most _WORD."""
    words = max(map(cell_len, title.split()), default=0)
    return max([min(max(words, (cell_len(title) + 1) // 2), _WORD), *map(cell_len, cells)])


def _notes(table: Tabular, rows: Sequence[Row], _: Language) -> Iterator[Text]:
    """Yield the notes, which are printed below the table because they do not fit in a column."""
    for n, column in enumerate(table.columns):
        for row in rows:
            if column.role == "note" and row[n].text:
                names = ", ".join(fmt.clean(_(cell.text)) for cell in row[:_NAMES] if cell.text)
                yield Text(f"{names}: {fmt.clean(_(row[n].text))}", style=STYLES[row[n].tone] or "dim")
