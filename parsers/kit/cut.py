"""Detect truncated output, and describe the truncation in a sentence."""

from __future__ import annotations

from fleetmark.parsers.kit.text import JsonScan

_CUT = "the output is cut: "


def says_cut(reason: str) -> bool:
    """Return whether ``reason`` reports truncated output, which is redundant if the tool ended with an error."""
    return _CUT in reason


def cut(place: str) -> str:
    """Return why truncated output is ``invalid``. ``place``: the missing part, and its line."""
    return _CUT + place


def cut_in_line(text: str) -> str | None:
    """Return a sentence if the last line of ``text`` has no line end, otherwise None.

    All supported tools end their lines. Trailing blanks are not output, and an empty text is not truncated.
    """
    last = text[text.rfind("\n") + 1 :]
    return cut(f"it ends inside line {text.count(chr(10)) + 1}") if last.strip() else None


def cut_in_json(scan: JsonScan) -> str | None:
    """Return a sentence if the text ends inside a JSON document that could not be read, otherwise None."""
    last = scan.documents[-1].end if scan.documents else 0
    for broken in scan.broken:
        if broken.line >= last:
            return cut(f"the JSON that begins on line {broken.line} is not complete")
    opened = scan.around.rstrip()
    if opened.endswith("{"):  # too short to be recognised as a document
        return cut(f"the JSON that begins on line {opened.count(chr(10)) + 1} is not complete")
    return None
