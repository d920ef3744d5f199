"""Compare a document with a regenerated one, and report the first differing line, key or cell of each part."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import Any

from fleetmark.base.text import message
from fleetmark.record.archive.integrity import Difference
from fleetmark.reports.kit.manifest import KEY

MAX_SHOWN = 20  # maximum differences to report per document
_LOCAL_KEYS = (KEY, "page")  # keys of a JSON document to ignore: the manifest itself, and the path of a page
MAX_TEXT = 40_000  # maximum bytes of a cell
_AROUND = 40  # characters to show before and after a difference
# An element ends where the next element of its kind begins, so that unclosed elements need only one pass.
_CELL = re.compile(rb'<c r="([A-Z]{1,3}[0-9]{1,7})"([^<>]*?)(?:/>|>([^<]*(?:<(?!/?c[ >])[^<]*)*)</c>)')
_COLUMNS = rb"<cols>[^<]*(?:<(?!/?cols>)[^<]*)*</cols>"
_LAYOUT = re.compile(_COLUMNS + rb'| (?:ht|customHeight)="[^"<]*"')  # column widths depend on the length of paths
_TEXT = re.compile(rb"<si>([^<]*(?:<(?!/?si>)[^<]*)*)</si>")
_SHEET = re.compile(r"xl/worksheets/sheet([0-9]+)\.xml")
_TAG = re.compile(r"<[^>]*>?")


def differences(file: bytes, again: bytes, kind: str, local: Collection[str]) -> Iterator[Difference]:
    """Yield the differences between a document and the regenerated one (``again``).

    ``kind``: html, pdf, xlsx, md or json.

    ``local``: words that may differ, such as the path of the results root; texts with these words are not compared.
    """
    if file == again:
        return
    if kind == "json":
        yield from _keys(json.loads(file), json.loads(again), "", local)
    elif kind == "xlsx":
        yield from _book(file, again, local)
    elif kind == "pdf":
        yield Difference(
            message("pages"),
            message("they differ from the regenerated pages: edited, or created with other fonts or another root"),
        )
    else:
        yield from _lines(file.decode("utf-8", "replace"), again.decode("utf-8", "replace"), local)


def _lines(file: str, again: str, local: Collection[str]) -> Iterator[Difference]:
    """Yield the first differing line, with the texts around the difference."""
    before, now = file.split("\n"), again.split("\n")
    for number, (line, expected) in enumerate(zip(before, now, strict=False), 1):
        if line != expected and not _is_local(expected, local):
            yield Difference(message("line {n}", n=f"{number:,}"), _excerpt(line, expected))
            return
    if len(before) != len(now):
        lines = {"n": f"{len(before):,}", "expected": f"{len(now):,}"}
        yield Difference(message("file"), message("it has {n} lines; the regenerated document has {expected}", **lines))


def _is_local(text: str, local: Collection[str]) -> bool:
    return any(word in text for word in local)


def _excerpt(text: str, expected: str) -> Any:
    """Return a sentence with excerpts of both texts around the first difference, without tags."""
    position = next(
        (n for n, (a, b) in enumerate(zip(text, expected, strict=False)) if a != b), min(len(text), len(expected))
    )
    shown = [
        " ".join(_TAG.sub(" ", t[max(0, position - _AROUND) : position + _AROUND]).split()) for t in (text, expected)
    ]
    return message("it has '{shown}'; the regenerated document has '{expected}'", shown=shown[0], expected=shown[1])


def _keys(value: Any, expected: Any, path: str, local: Collection[str]) -> Iterator[Difference]:
    """Yield the keys of JSON documents whose values differ, up to ``MAX_SHOWN``."""
    pending, count = [(value, expected, path)], 0
    while pending and count < MAX_SHOWN:
        value, expected, path = pending.pop()
        if isinstance(value, dict) and isinstance(expected, dict):
            names = [n for n in {**expected, **value} if path or n not in _LOCAL_KEYS]
            pending += [(value.get(n), expected.get(n), f"{path}.{n}" if path else str(n)) for n in reversed(names)]
        elif isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
            pending += [(value[n], expected[n], f"{path}[{n}]") for n in reversed(range(len(value)))]
        elif value != expected and not _is_local(json.dumps(expected), local):
            shown = {"shown": json.dumps(value)[: 2 * _AROUND], "expected": json.dumps(expected)[: 2 * _AROUND]}
            yield Difference(path[:200], message("it is {shown}; the regenerated document has {expected}", **shown))
            count += 1


def _book(file: bytes, again: bytes, local: Collection[str]) -> Iterator[Difference]:
    """Yield the differing cells of a workbook, and its differing parts that have no cells."""
    with zipfile.ZipFile(io.BytesIO(again)) as book:
        expected = {name: book.read(name) for name in book.namelist()}
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as book:
            names = set(book.namelist())
            parts = {n: _bounded(book, n, 2 * len(raw) + (1 << 20)) for n, raw in expected.items() if n in names}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError):
        yield Difference(message("file"), message("it is not a workbook that can be read"))
        return
    if names != expected.keys():
        odd = min(names ^ expected.keys())
        yield Difference(odd[:80], message("another program saved the workbook, or a part was added or removed"))
        return
    sheets = re.findall(r'<sheet name="([^"]*)"', expected["xl/workbook.xml"].decode("utf-8", "replace"))
    for name, raw in expected.items():
        if parts[name] == raw:
            continue
        match = _SHEET.fullmatch(name)
        if match:
            yield from _cells(parts[name], raw, sheets[int(match[1]) - 1])
        elif name == "xl/sharedStrings.xml":
            yield from _texts(parts[name], raw, local)
        else:
            yield Difference(name[:80], message("it differs from the regenerated part"))


def _bounded(book: zipfile.ZipFile, name: str, limit: int) -> bytes:
    with book.open(name) as part:
        return part.read(limit)


def _cells(file: bytes, again: bytes, sheet: str) -> Iterator[Difference]:
    before, now = ({c[1]: (c[2], c[3]) for c in _CELL.finditer(raw)} for raw in (file, again))
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    for name in names[:MAX_SHOWN]:
        texts = [_plain((cells.get(name) or (b"", b""))[1] or b"")[: 2 * _AROUND] for cells in (before, now)]
        place = message("sheet '{sheet}', cell {cell}", sheet=sheet, cell=name.decode())
        yield Difference(
            place,
            message("it has '{shown}'; the regenerated document has '{expected}'", shown=texts[0], expected=texts[1]),
        )
    if not names and _LAYOUT.sub(b"", file) != _LAYOUT.sub(b"", again):
        yield Difference(
            message("sheet '{sheet}'", sheet=sheet), message("its cells are equal, and its layout differs")
        )


def _texts(file: bytes, again: bytes, local: Collection[str]) -> Iterator[Difference]:
    before, now = ([_plain(t) for t in _TEXT.findall(raw)] for raw in (file, again))
    for text, expected in zip(before, now, strict=False):
        if text != expected and not _is_local(expected, local):
            yield Difference(message("texts"), _excerpt(text, expected))
            return
    if len(before) != len(now):
        yield Difference(message("texts"), message("some were added or removed"))


def _plain(raw: bytes) -> str:
    return _TAG.sub(" ", raw[:MAX_TEXT].decode("utf-8", "replace")).strip()
