"""Render a document in every format, and read back the rows of its tables."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import openpyxl

from fleetmark.base.inert import restored
from fleetmark.base.terminal import Terminal
from fleetmark.reports.formats import csv as csv_format
from fleetmark.reports.formats import html, markdown, pdf, terminal, xlsx
from fleetmark.reports.formats import json as json_format
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language

ENGLISH = Language()


def shown(document: Document, width: int = 400, language: Language = ENGLISH) -> str:
    """Return the text of the document on a terminal of this width."""
    console = Terminal()
    console.file, console.width = io.StringIO(), width
    for part in terminal.render(document, language):
        console.print(part)
    text: str = console.file.getvalue()
    return text


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.open = False

    def handle_data(self, data: str) -> None:
        if self.open:
            self.rows[-1][-1] += data


def on_page(document: Document) -> list[list[str]]:
    """Return the rows of all tables of the HTML page."""
    tables = _Tables()
    tables.feed(html.render(document, ENGLISH))
    return [[" ".join(cell.split()) for cell in row] for row in tables.rows]


def in_markdown(document: Document) -> list[list[str]]:
    """Return the rows of all tables in Markdown, without escape characters."""
    lines = [line for line in markdown.render(document, ENGLISH).splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |")) for line in lines]
    return [[_plain(cell) for cell in row] for row in cells]


def _plain(text: str) -> str:
    return re.sub(r"\\([^A-Za-z0-9 ])", r"\1", text).replace("&lt;", "<").replace("&amp;", "&").strip()


def in_csv(document: Document) -> list[list[str]]:
    """Return the rows of all tables in CSV."""
    return [[restored(cell) for cell in row] for row in csv.reader(io.StringIO(csv_format.render(document)))]


def in_json(document: Document) -> Any:
    return json.loads(json_format.render(document))


def in_workbook(document: Document, *, data_only: bool = False) -> openpyxl.Workbook:
    """Return the workbook. ``data_only``: with the values of formulas instead of the formulas."""
    return openpyxl.load_workbook(io.BytesIO(xlsx.render(document, ENGLISH)), data_only=data_only)


def on_paper(document: Document, folder: Path) -> tuple[str, list[str]]:
    """Return the text of the PDF without spaces, and the words outside the margins of their page."""
    path = folder / "document.pdf"
    path.write_bytes(pdf.render(document, ENGLISH))
    text = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout
    boxes = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, text=True, check=True).stdout
    return "".join(text.split()), list(_outside(boxes))


def _outside(boxes: str, margin: float = 34.0) -> Iterator[str]:
    width = 0.0
    for match in re.finditer(r'<page width="([\d.]+)"|xMin="([\d.-]+)".*?xMax="([\d.]+)".*?>(.*?)</word>', boxes):
        if match[1]:
            width = float(match[1])
        elif float(match[2]) < margin or float(match[3]) > width - margin:
            yield match[4]
