"""Escape untrusted text in CSV files, so that a spreadsheet does not evaluate it as a formula."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?%?")
_ESCAPED = re.compile(r"'(?=[=+\-@\t\r])")


def inert(value: object) -> object:
    """Return ``value`` as a CSV cell, with an apostrophe in front of text that a spreadsheet would evaluate.

    Spreadsheets do not display the apostrophe. Numbers stay unchanged, including numbers written as text.
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def restored(text: str) -> str:
    """Return the original text of a cell that ``inert`` escaped."""
    return _ESCAPED.sub("", text, count=1) if _ESCAPED.match(text) else text
