"""Test that plan workbooks that unpack to huge sizes are refused in one sentence, with little memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import xlsxwriter

from tests.bombs import Read, reader

MOST_KIB = 500_000
READ = """
from fleetmark.demand import cells, csv
def read(file):
    if file.suffix == ".xlsx":
        return cells.Cells(file, file.read_bytes()).last_row("Sheet1")
    return csv.Folder(file.parent).rows(file.name, ["a"], [])
"""


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    with reader(READ) as read:
        yield read


SHEET = '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def workbook(rows: Iterable[str], more: dict[str, bytes] | None = None, head: str = SHEET) -> bytes:
    """Return a workbook with a single tab, which has these rows as XML, and the parts in ``more``."""
    out, archive = io.BytesIO(), io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        book.add_worksheet().write_string(0, 0, "a")
    tab = f"{head}{''.join(rows)}</sheetData></worksheet>".encode()
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, (more or {}).get(name) or (tab if name.endswith("sheet1.xml") else old.read(name)))
    return archive.getvalue()


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">' + "".join(f'<c r="{cell}{number}"><v>1</v></c>' for cell in cells) + "</row>"


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "'
    + "x" * 1000
    + '">'
    + "".join(f'<!ENTITY {key} "{f"&{before};" * 100}">' for before, key in zip("abcd", "bcde", strict=True))
    + "]>"
)
BOMBS = {
    "a tab of zeros": ("a.xlsx", lambda: workbook([" " * (200 << 20)]), "expands to more than 128 MiB"),
    "texts of zeros": ("a.xlsx", lambda: workbook([], {"xl/sharedStrings.xml": b" " * (200 << 20)}), "expands to more"),
    "a row far below": ("a.xlsx", lambda: workbook([row(10**12, "A")]), "more than 200,000 rows"),
    "cells far right": ("a.xlsx", lambda: workbook([row(n, "XFD") for n in range(1, 2_000)]), "500,000 cells"),
    "many cells": ("a.xlsx", lambda: workbook([row(n, *"ABCDEF") for n in range(1, 150_000)]), "500,000 cells"),
    "entities": (
        "a.xlsx",
        lambda: workbook(
            ['<row r="1"><c r="A1" t="str"><v>&e;</v></c></row>'], head=SHEET.replace("?><", f"?>{LAUGHS}<")
        ),
        "a readable workbook",
    ),
    "long lines of CSV": ("a.csv", lambda: b"a,b\n" + b"," * (30 << 20), "longer than 1,048,576 characters"),
    "columns of CSV": ("a.csv", lambda: b"a," * (10 << 20) + b"\n", "more than 500 columns"),
    "rows of CSV": ("a.csv", lambda: b"a\n" * (8 << 20), "more than 400,000 rows"),
    "cells of CSV": (
        "a.csv",
        lambda: b",".join(b"%d" % n for n in range(400)) + b"\n" + (b"1," * 400 + b"\n") * 9_000,
        "cells",
    ),
    "a sheet that is too large": ("a.csv", lambda: b"a,b\n" + b"x" * (40 << 20), "larger than 32 MiB"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_sheet_beyond_the_bounds_is_refused_in_little_memory(name: str, read: Read, tmp_path: Path) -> None:
    title, make, part = BOMBS[name]
    (tmp_path / title).write_bytes(make())
    outcome, peak = read(tmp_path / title)
    assert outcome.startswith("refused ") and part in outcome and "\n" not in outcome, outcome[:400]
    assert 0 < peak < MOST_KIB, f"{peak} KiB"
