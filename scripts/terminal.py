"""Keep what a terminal shows, and draw a sequence of screens as an animated SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

COLUMNS, ROWS = 100, 30
WIDTH, HEIGHT, MARGIN = 8.4, 19.0, 14.0  # of a character and around the screen, in px
STYLES = {  # codes of "select graphic rendition", and the properties of CSS
    1: "font-weight:bold",
    2: "opacity:.65",
    3: "font-style:italic",
    4: "text-decoration:underline",
    31: "fill:#ff7b72",
    32: "fill:#56d364",
    33: "fill:#e3b341",
    34: "fill:#79c0ff",
    35: "fill:#d2a8ff",
    36: "fill:#56d4dd",
    90: "fill:#8b949e",
    91: "fill:#ffa198",
    92: "fill:#7ee787",
    93: "fill:#f2cc60",
}
PIECE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\r\n]|[^\x1b\r\n]+|\x1b.?")
Style = tuple[int, ...]
Run = tuple[int, str, Style]  # the column where it starts, its text and its style
Row = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the screen shows for some ``seconds``."""

    rows: Sequence[Row]
    seconds: float


class Screen:
    """A terminal without a lower end. Understands what Rich prints: colours, cursor movements and erasures."""

    def __init__(self, text: str = "") -> None:
        self._cells: list[list[tuple[str, Style]]] = [[]]
        self._row = self._column = 0
        self._style: Style = ()
        self._written = ""
        self.feed(text)

    def feed(self, text: str) -> None:
        """Take the next part of a program's output."""
        self._written += text
        for piece in PIECE.finditer(text):
            if piece[2]:
                self._control(piece[1], piece[2])
            elif piece[0] == "\n":
                self._row += 1
                self._extend()
            elif piece[0] == "\r":
                self._column = 0
            elif not piece[0].startswith("\x1b"):
                self._print(piece[0])

    def rows(self) -> list[Row]:
        """Return the rows that have been printed."""
        return [tuple(_runs(cells)) for cells in self._cells]

    def text(self) -> str:
        """Return the rows without styles."""
        return "\n".join("".join(character for character, _ in cells).rstrip() for cells in self._cells)

    def written(self) -> str:
        """Return all output so far."""
        return self._written

    def _extend(self) -> None:
        while len(self._cells) <= self._row:
            self._cells.append([])

    def _print(self, text: str) -> None:
        cells = self._cells[self._row]
        for character in text:
            cells.extend([(" ", ())] * (self._column + 1 - len(cells)))
            cells[self._column] = (character, self._style)
            self._column += 1

    def _control(self, arguments: str, letter: str) -> None:
        numbers = [int(n) for n in re.findall(r"\d+", arguments)]
        if letter == "m":
            self._select(numbers or [0])
        elif letter == "A":
            self._row = max(0, self._row - (numbers or [1])[0])
        elif letter == "K":
            cells = self._cells[self._row]
            cells[:] = [] if numbers == [2] else cells[: self._column]

    def _select(self, numbers: list[int]) -> None:
        for number in numbers:
            if number == 0:
                self._style = ()
            elif number in STYLES:
                self._style = tuple(sorted({*self._style, number}))
            elif number in (22, 39):
                kept = (1, 2) if number == 39 else tuple(n for n in STYLES if n > 2)
                self._style = tuple(n for n in self._style if n in kept)


def _runs(cells: list[tuple[str, Style]]) -> Iterator[Run]:
    column = 0
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        text = "".join(character for character, _ in group)
        for word in re.finditer(r"\S+(?: \S+)*", text):  # wide gaps are not drawn
            yield column + word.start(), word[0], style
        column += len(text)


def picture(frames: Sequence[Frame], shown: int = -1) -> str:
    """Return the frames as an SVG that plays them in a loop. A viewer without animation shows the frame ``shown``."""
    lines: dict[Row, int] = {}
    screens, steps, elapsed = [], [], 0.0
    total = sum(frame.seconds for frame in frames)
    wide, high = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN
    for number, frame in enumerate(frames):
        uses = "".join(
            f'<use href="#l{lines.setdefault(row, len(lines))}" y="{place * HEIGHT:g}"/>'
            for place, row in enumerate(frame.rows)
            if row
        )
        screens.append(f'<g transform="translate(0 {number * high:g})">{uses}</g>')
        steps.append(f"{100 * elapsed / total:.3f}%{{transform:translateY({-number * high:g}px)}}")
        elapsed += frame.seconds
    used = sorted({style for row in lines for _, _, style in row if style})
    names = {style: f"s{number}" for number, style in enumerate(used)}
    still = (shown % len(frames)) * -high
    css = [
        "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace}",
        "text{fill:#e6edf3;white-space:pre}",
        *(f".{name}{{{';'.join(STYLES[code] for code in style)}}}" for style, name in names.items()),
        f"@keyframes p{{{''.join(steps)}}}",
        f".p{{transform:translateY({still:g}px);animation:p {total:g}s steps(1,end) infinite}}",
        "@media(prefers-reduced-motion:reduce){.p{animation:none}}",
    ]
    drawn = "".join(f'<g id="l{number}">{_drawn(row, names)}</g>' for row, number in lines.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}">'
        f"<title>A terminal: hosts, run, report, compare, diagnose</title><style>{''.join(css)}</style>"
        f"<defs>{drawn}</defs>"
        f'<rect width="{wide:g}" height="{high:g}" rx="8" fill="#0d1117"/>'
        f'<svg x="{MARGIN:g}" y="{MARGIN:g}" width="{COLUMNS * WIDTH:g}" height="{ROWS * HEIGHT:g}"><g class="p">'
        f"{''.join(screens)}</g></svg></svg>\n"
    )


def _drawn(row: Row, names: dict[Style, str]) -> str:
    return "".join(
        f'<text x="{column * WIDTH:.5g}" y="14" textLength="{len(text) * WIDTH:.5g}"'
        + (f' class="{names[style]}"' if style else "")
        + f">{escape(text, quote=False)}</text>"
        for column, text, style in row
    )
