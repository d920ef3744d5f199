"""Makes text from outside inert where a spreadsheet opens it: no cell of a CSV file becomes a formula."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?%?")
_ESCAPED = re.compile(r"'(?=[=+\-@\t\r])")


def inert(value: object) -> object:
    """``value`` for a cell of CSV: text that a spreadsheet would run gets an apostrophe in front, which the spreadsheet
    does not show. Numbers, also those written as text, stay as they are.
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def restored(text: str) -> str:
    """The text that ``inert`` was given."""
    return _ESCAPED.sub("", text, count=1) if _ESCAPED.match(text) else text
