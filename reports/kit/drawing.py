"""Draw text and tables as SVG files, with lines short enough for any font."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich.cells import cell_len

from fleetmark.base.text import Message
from fleetmark.base.words import word
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell, Column, Tabular

WIDTH = 720  # width of a drawing, in its own units
_MARGIN, _LINE = 12, 1.35  # margin; line spacing in multiples of the font size
_TEXT, _TITLE, _CODE, _CELL = 15.0, 17.0, 13.0, 12.0  # font sizes
_INK, _SOFT = "#1b1b1b", "#555"
_TONES = {"good": "#0b6b3a", "bad": "#b3261e", "unsure": "#8a5a00"}
_SANS = "Noto Sans, DejaVu Sans, Liberation Sans, Noto Sans CJK SC, sans-serif"
_MONO = "Noto Sans Mono, DejaVu Sans Mono, Liberation Mono, Noto Sans Mono CJK SC, monospace"
# Widths of characters relative to the font size, at least those of DejaVu Sans Bold, the widest font of the list.
_NARROW, _WIDE = frozenset(" .,:;'!|ijl()[]/"), frozenset("MWmw@%&ABCDGHKNOQRUVXYZ")


def text(title: str, items: Sequence[tuple[str, str]], *, tone: str = "") -> str:
    """Draw a title and sentences, each with a command below it or "". ``tone``: the tone of the sentences."""
    lines: list[str] = []
    y = float(_MARGIN)
    room = WIDTH - 2 * _MARGIN
    for shown in wrapped(title, _TITLE, room):
        y += _TITLE * _LINE
        lines.append(_line(shown, _MARGIN, y, _TITLE, weight=600, fill=_SOFT))
    for sentence, command in items:
        y += 0.35 * _TEXT
        for shown in wrapped(sentence, _TEXT, room):
            y += _TEXT * _LINE
            lines.append(_line(shown, _MARGIN, y, _TEXT, fill=_TONES.get(tone, _INK)))
        for shown in wrapped(command, _CODE, room) if command else ():
            y += _CODE * _LINE
            lines.append(_line(shown, _MARGIN, y, _CODE, family=_MONO))
    return _svg(" ".join([title, *(sentence for sentence, _ in items)]), y + _MARGIN, lines)


def table(shown: Tabular, _: Language) -> str:
    """Draw a table. The first column is three times as wide as the others."""
    room = WIDTH - 2 * _MARGIN
    unit = room / (len(shown.columns) + 2)
    widths = [3 * unit if n == 0 else unit for n in range(len(shown.columns))]
    if len(shown.columns) == 1:
        widths = [room]
    titles = [column.full_title(_) for column in shown.columns]
    y, lines = float(_MARGIN), []
    for row in (titles, *([_said(cell, _) for cell in row] for row in shown.rows)):
        is_head = row is titles
        cells = [wrapped(fmt.clean(t), _CELL, w - 8) for t, w in zip(row, widths, strict=True)]
        x = float(_MARGIN)
        for column, parts, width in zip(shown.columns, cells, widths, strict=True):
            for n, part in enumerate(parts):
                lines.append(_cell(part, column, x, y + (n + 1) * _CELL * _LINE, width, is_head=is_head))
            x += width
        y += max(map(len, cells)) * _CELL * _LINE + 4
        lines.append(f'<path d="M{_MARGIN} {y:.1f}H{WIDTH - _MARGIN}" stroke="#ccc" stroke-width="1"/>')
    return _svg(_(shown.title), y + _MARGIN, lines)


def _said(cell: Cell, _: Language) -> str:
    full = cell.full
    return _(full if isinstance(full, Message) else word(full))


def _cell(part: str, column: Column, x: float, y: float, width: float, *, is_head: bool) -> str:
    weight = 600 if is_head else 400
    if column.right:
        return _line(part, x + width - 4, y, _CELL, weight=weight, anchor="end")
    return _line(part, x, y, _CELL, weight=weight)


def _line(
    shown: str,
    x: float,
    y: float,
    size: float,
    *,
    weight: int = 400,
    fill: str = _INK,
    family: str = _SANS,
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-family="{family}" font-size="{size:g}" font-weight="{weight}" '
        f'fill="{fill}" text-anchor="{anchor}">{escape(shown)}</text>'
    )


def _svg(label: str, height: float, lines: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
    return (
        f'{head} viewBox="0 0 {WIDTH} {height:.0f}" role="img"><title>{escape(label)}</title>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{chr(10).join(lines)}\n</svg>\n'
    )


def wrapped(sentence: str, size: float, room: float) -> list[str]:
    """Return the lines of a sentence that fit into ``room`` in any font. Long words are broken."""
    lines, line = [], ""
    for piece in _pieces(sentence):
        if width(line + piece.rstrip()) * size <= room:
            line += piece
            continue
        if line.strip():
            lines.append(line.rstrip())
        line = piece.lstrip()
        while width(line.rstrip()) * size > room:
            n = max(1, next(n for n in range(1, len(line) + 1) if width(line[:n]) * size > room) - 1)
            lines.append(line[:n])
            line = line[n:]
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _pieces(sentence: str) -> Iterator[str]:
    """Yield words with the spaces that follow them; a Han character is a word."""
    piece = ""
    for character in sentence:
        if cell_len(character) > 1 and piece:
            yield piece
            piece = ""
        piece += character
        if character == " " or cell_len(character) > 1:
            yield piece
            piece = ""
    if piece:
        yield piece


def width(shown: str) -> float:
    """Return the width of a text relative to the font size: an upper bound over common fonts."""
    return sum(
        1.02 if cell_len(c) > 1 else 0.46 if c in _NARROW else 1.05 if c in "MWm@%" else 0.86 if c in _WIDE else 0.72
        for c in shown
    )
