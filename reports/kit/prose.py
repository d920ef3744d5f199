"""Write a worksheet with text instead of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleetmark.base.text import message
from fleetmark.reports.kit.workbook import Sheet

_LEFT = 26  # width in characters of the column left of the text


class Prose:
    """Write text to a worksheet from top to bottom: headings, sentences, and names with their descriptions."""

    def __init__(self, sheet: Sheet, row: int) -> None:
        self.sheet, self.row = sheet, row
        sheet.width(0, _LEFT)
        sheet.width(1, 100)

    def heading(self, text: str) -> None:
        self.row += 1
        self.sheet.text(self.row, 0, text, "heading")
        self.row += 1

    def pair(self, name: str, text: str, role: str = "wrap") -> None:
        if text:
            self.sheet.text(self.row, 0, name, "strong")
            self.sheet.text(self.row, 1, text, role)
            self.row += 1

    def sentences(self, texts: Iterable[str], role: str = "wrap") -> None:
        for text in texts:
            self.sheet.text(self.row, 1, text, role)
            self.row += 1

    def tabs(self, tabs: Mapping[str, str]) -> None:
        """Describe each tab, with a link to it."""
        self.heading(message("Tabs"))
        for name, text in tabs.items():
            self.sheet.link(self.row, 0, name)
            self.sheet.text(self.row, 1, text, "wrap")
            self.row += 1
