"""A page of ours as elements: its tags, words and the rows of its tables; and a PDF as text."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest


class Page(HTMLParser):
    """The page as elements: tags with attributes, the text, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.words = ""
        self.data: list[str] = []  # JSON that comes with the page
        self._open: list[str] = []
        self.unclosed: list[str] = []
        self.feed(text)
        self.close()
        self.unclosed += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr", "input", "img"):
            self._open.append(tag)
        if "template" in self._open:
            return  # seen from another baseline
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._open):
            if data.startswith("{"):
                self.data.append(data)
            return
        if "template" in self._open:
            return
        self.words += data
        if "tr" in self._open and self.rows[-1]:
            self.rows[-1][-1] += data

    def table_row(self, *start: str) -> list[str]:
        """The first row whose cells begin so, white space normalised."""
        for row in self.rows:
            cells = [" ".join(cell.split()) for cell in row]
            if cells[: len(start)] == list(start):
                return cells
        raise AssertionError(f"no row begins with {start}")


def on_paper(page: bytes, folder: Path) -> str:
    """The text of a PDF as laid out; the test is skipped if nothing reads one."""
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext")
    (folder / "page.pdf").write_bytes(page)
    done = subprocess.run(
        ["pdftotext", "-layout", folder / "page.pdf", "-"], capture_output=True, text=True, check=True
    )
    return done.stdout
