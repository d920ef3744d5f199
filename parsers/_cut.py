"""Output that ends before its tool was done: how a parser sees that, and the one sentence that says so."""

from __future__ import annotations

from parsers._text import Found


def cut(where: str) -> str:
    """Why a parse of cut output is ``invalid``; ``where`` says what is missing, and on which line."""
    return f"the output is cut: {where}"


def cut_in_line(text: str) -> str | None:
    """That the last line of ``text`` has no end, where it has none: every tool here ends its lines.

    Blanks after the last line's end are not output, nor is an empty text cut.
    """
    last = text[text.rfind("\n") + 1 :]
    return cut(f"it ends inside line {text.count(chr(10)) + 1}") if last.strip() else None


def cut_in_json(found: Found) -> str | None:
    """That the text ends inside a JSON document, where one begins after all that could be read."""
    last = found.documents[-1].end if found.documents else 0
    for broken in found.broken:
        if broken.line >= last:
            return cut(f"the JSON that begins on line {broken.line} is not complete")
    opened = found.around.rstrip()
    if opened.endswith("{"):  # too short to be seen as a document
        return cut(f"the JSON that begins on line {opened.count(chr(10)) + 1} is not complete")
    return None
