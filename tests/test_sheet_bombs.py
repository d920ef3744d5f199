"""Test plan workbooks and sheets that unpack to huge sizes: each is refused in one sentence, in little memory."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import xlsxwriter

HOUSE = Path(__file__).parents[1]

MOST_KIB = 500_000
SCRIPT = """
import resource, sys
from pathlib import Path
from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import cells, csv
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
path = Path(sys.argv[1])
try:
    if path.suffix == ".xlsx":
        cells.Cells(path, path.read_bytes()).last_row("Sheet1")
    else:
        csv.Folder(path.parent).rows(path.name, ["a"], [])
    print("read")
except FleetmarkError as error:
    print("refused", error)
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
SHEET = '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def workbook(rows: Iterable[str], more: dict[str, bytes] | None = None, head: str = SHEET) -> bytes:
    """Write a workbook with a single tab that has these rows as XML, and the parts in ``more``."""
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
def test_a_sheet_beyond_the_bounds_is_refused_in_little_memory(name: str, tmp_path: Path) -> None:
    title, make, part = BOMBS[name]
    (tmp_path / title).write_bytes(make())
    words = [sys.executable, "-c", SCRIPT, str(tmp_path / title)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=HOUSE, timeout=300)
    assert done.returncode == 0, done.stderr[-400:]
    sentence, peak = done.stdout.splitlines()
    assert sentence.startswith("refused ") and part in sentence, sentence[:400]
    assert int(peak) < MOST_KIB, f"{peak} KiB"
