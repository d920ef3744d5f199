"""Find the allowed line breaks of a text: between words, and between characters of scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from rich.cells import cell_len

# Characters that Chinese and Japanese may break after or before; closing marks never begin a line, opening ones never
# end one (a part of JIS X 4051 and GB/T 15834).
_WIDE = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CLOSING = "、。，．：；？！％）］｝」』】〉》〕〗”’…·,.:;?!%)\\]}"
_OPENING = "（［｛「『【〈《〔〖“‘(\\[{"
_UNIT = rf"\s*(?:[{_OPENING}]{{0,3}}[{_WIDE}][{_CLOSING}]*|[^\s{_WIDE}]+?(?=[{_OPENING}]{{0,3}}[{_WIDE}]|\s|$))\s*|\s+"
_ANY = f"[{_WIDE}]"


def spaceless(text: str) -> bool:
    """Return whether a text has characters of a script without spaces."""
    return not text.isascii() and _compiled(_ANY).search(text) is not None


def breaks(text: str, width: int) -> list[int]:
    """Return the offsets at which to break a text so that each line fits ``width`` terminal cells. A longer word gets
    its own line.
    """
    offsets: list[int] = []
    used = 0
    for start, unit in _units(text):
        if used and used + cell_len(unit.rstrip()) > width:
            offsets.append(start)
            used = 0
        used += cell_len(unit)
    return offsets


def _units(text: str) -> Iterator[tuple[int, str]]:
    """Return the parts of a text that must not be broken, each with its trailing spaces."""
    place, unit = 0, _compiled(_UNIT)
    while place < len(text):
        match = unit.match(text, place)
        end = match.end() if match and match.end() > place else place + 1
        yield place, text[place:end]
        place = end


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use, because compiling takes 5 ms and most texts are ASCII."""
    return re.compile(pattern)
