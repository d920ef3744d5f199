"""Workbooks as LibreOffice sees them: recalculated, stored values ignored, and read back cell by cell."""

from __future__ import annotations

import atexit
import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest

Cells = dict[str, dict[str, Any]]  # sheet to cell (``B4``) to value

_ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
           xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="ODFRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def needs_libreoffice() -> str:
    """LibreOffice's program; the test is skipped if there is none."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if not program:
        pytest.skip("needs LibreOffice: apt install libreoffice-calc")
    return program


def recalculated(books: Sequence[bytes]) -> list[Cells]:
    """Every cell of ``books`` after LibreOffice recalculated all formulas; empty cells are absent."""
    return [values(book) for book in converted(books, "xlsx")]


def converted(books: Sequence[bytes], kind: str) -> list[bytes]:
    """``books`` as LibreOffice writes them (``xlsx``, ``pdf``), all formulas recalculated; one start for all."""
    program, home = needs_libreoffice(), _home()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        files = [Path(folder, f"book{n}.xlsx") for n in range(len(books))]
        for file, data in zip(files, books, strict=True):
            file.write_bytes(data)
        process = subprocess.run(
            [
                program,
                f"-env:UserInstallation={home.as_uri()}",
                "--headless",
                "--convert-to",
                kind,
                "--outdir",
                out,
                *files,
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        outputs = [out / f"{file.stem}.{kind}" for file in files]
        assert all(m.exists() for m in outputs), f"LibreOffice made no {kind}: {process.stdout} {process.stderr}"
        return [m.read_bytes() for m in outputs]


@cache
def _home() -> Path:
    """Return LibreOffice's profile for this process, which it fills at its first start."""
    home = Path(tempfile.mkdtemp(prefix="libreoffice-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "user").mkdir()
    (home / "user" / "registrymodifications.xcu").write_text(_ALWAYS)
    return home


def values(book: bytes) -> Cells:
    """The values that lie in a workbook, as they are; empty cells and empty texts are absent."""
    return _cells(book, data_only=True)


def formulas(book: bytes) -> Cells:
    """The cells that hold a formula, with it."""
    return _cells(book, data_only=False)


@lru_cache(maxsize=64)  # reading takes longer than most checks on it
def _cells(book: bytes, *, data_only: bool) -> Cells:
    read = openpyxl.load_workbook(io.BytesIO(book), data_only=data_only)
    return {
        sheet.title: {
            c.coordinate: c.value
            for row in sheet.iter_rows()
            for c in row
            if c.value not in (None, "") and (data_only or c.data_type == "f")
        }
        for sheet in read.worksheets
    }


@lru_cache
def table(book: bytes, sheet: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The heads of a sheet's table, each with its column, and its rows by number from 5 on, by column."""
    heads: dict[str, str] = {}
    rows: dict[int, dict[str, Any]] = {}
    for cell, value in values(book)[sheet].items():
        column, row = re.sub(r"\d", "", cell), int(re.sub(r"\D", "", cell))
        if row == 4:
            heads.setdefault(str(value).split("\n")[0], column)
        elif row > 4:
            rows.setdefault(row, {})[column] = value
    return heads, [rows.get(n, {}) for n in range(5, max(rows) + 1)]


def edited(book: bytes, changes: Mapping[tuple[str, str], Any]) -> bytes:
    """``book`` with other inputs: (sheet, cell) to value. Charts are lost on the way."""
    read = openpyxl.load_workbook(io.BytesIO(book))
    for (sheet, cell), value in changes.items():
        read[sheet][cell] = value
    out = io.BytesIO()
    read.save(out)
    return out.getvalue()


def disagreements(book: bytes, seen: Cells, tolerance: float = 1e-9) -> Iterator[str]:
    """Every formula cell of ``book`` whose value, as Python found it, is not what LibreOffice (``seen``) works out; and
    every error cell. The tolerance is relative above 1 and absolute below.
    """
    ours = values(book)
    for sheet, cells in formulas(book).items():
        for cell, formula in cells.items():
            mine, theirs = ours[sheet].get(cell), seen[sheet].get(cell)
            if not _same(mine, theirs, tolerance):
                yield f"{sheet}!{cell}: {mine!r}, LibreOffice {theirs!r}: {formula[:200]}"
    for sheet, cells in seen.items():
        for cell, value in cells.items():
            if isinstance(value, str) and value.startswith("#") and value.rstrip("!?").isupper():
                yield f"{sheet}!{cell}: {value}"


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= tolerance * max(1.0, abs(a))
    return bool((a or "") == (b or ""))
