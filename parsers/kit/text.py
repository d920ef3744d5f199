"""Read the output of tools: bytes to numbered lines, JSON between other text, and numbers that may be invalid."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # tested before UTF-16, whose mark is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_TAG = re.compile(r"\s*(?:\[[0-9]{1,6},[0-9]{1,6}\](?:<stdout>)?:\s*|[0-9]{1,6}:\s+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Values that C prints but JSON does not allow. The replacements have the same length, to keep positions valid.
_NOT_JSON = re.compile(r"(?<=[:,\[\s])(?:-nan|-inf|nan|inf)(?=\s*[,}\]])")
_OPENING = re.compile(r'\{(?=\s*["}])')
_MOST_BROKEN = 200  # maximum attempts, because each one scans the text again


def decode(raw: bytes) -> str:
    """Return ``raw`` as text.

    A byte order mark selects the encoding and is removed. Invalid bytes become U+FFFD, NULs and terminal colours are
    removed, and CRLF becomes LF. A lone CR stays (progress lines overwrite themselves); see ``numbered``. Never raise.
    """
    text = ""
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            text = raw[len(mark) :].decode(encoding, "replace")
            break
    else:
        text = raw.decode("utf-8", "replace")
    return _ANSI.sub("", text.replace("\0", "")).replace("\r\n", "\n")


def numbered(text: str) -> list[tuple[int, str]]:
    """Return the lines of ``text`` with their numbers, counted from 1.

    Only LF ends a line; parts that a lone CR separates share one number.
    """
    return [(n, part) for n, line in enumerate(text.split("\n"), 1) for part in line.split("\r")]


def untagged(line: str) -> str:
    """Return ``line`` without indentation and MPI launcher tag: Open MPI's ``[1,0]<stdout>:``, srun's ``0: ``."""
    return _TAG.sub("", line, count=1)


def number(value: object) -> float | None:
    """Return ``value`` (a JSON number, or a text that is a plain decimal) as a finite float; otherwise None.

    JSON true and false, ``nan``, ``inf``, ``1_000``, ``0x1`` and values beyond a float's range give None.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.strip()
        if not _NUMBER.fullmatch(value):
            return None
    elif not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:  # an int of more than 308 digits
        return None
    return result if math.isfinite(result) else None


def dig(value: object, *path: str | int) -> Any:
    """Return the value at ``path`` (keys, list indices) in decoded JSON; None if a step is missing or mistyped."""
    current: Any = value
    for step in path:
        if isinstance(step, str) and isinstance(current, dict):
            current = current.get(step)
        elif isinstance(step, int) and isinstance(current, list) and -len(current) <= step < len(current):
            current = current[step]
        else:
            return None
    return current


class _Repeating(dict[str, Any]):
    """A JSON object with repeated keys: the last value counts, and ``pairs`` has all of them."""

    pairs: list[tuple[str, Any]]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        members = _Repeating(members)
        members.pairs = pairs
    return members


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None, object_pairs_hook=_object)


def every(value: object, key: str) -> list[Any]:
    """Return all values of ``key`` in the JSON object ``value``, in order, since some tools print a key twice."""
    if isinstance(value, _Repeating):
        return [v for k, v in value.pairs if k == key]
    return [value[key]] if isinstance(value, dict) and key in value else []


def objects(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects in the list ``value``; empty if it is not a list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Document:
    """A complete JSON object in a text: its value, and its first and last lines."""

    value: dict[str, Any]
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Broken:
    """JSON that begins on ``line`` and cannot be read beyond ``error_line``, with the ``reason``."""

    line: int
    error_line: int
    reason: str


@dataclass(frozen=True, slots=True)
class JsonScan:
    """The JSON in a text; ``around`` is the rest, with the same number of lines and the documents blanked out."""

    documents: tuple[Document, ...]
    broken: tuple[Broken, ...]
    around: str


def find_json(text: str) -> JsonScan:
    """Return all outermost JSON objects in ``text``; other text around them is skipped. Never raise.

    ``nan`` and ``inf`` as C prints them become null. A broken document does not hide a later complete one that begins
    at the start of a line. Objects inside a broken document are not documents.
    """
    text = _NOT_JSON.sub(lambda m: "NaN" if len(m[0]) == 3 else "null", text)
    lines = _LineCounter(text)
    documents: list[Document] = []
    broken: list[Broken] = []
    around: list[str] = []
    copied = 0
    candidate = _OPENING.search(text)
    while candidate and len(broken) < _MOST_BROKEN:
        position = candidate.start()
        try:
            value, resume = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            broken.append(Broken(lines.line_at(position), lines.line_at(error.pos), error.msg))
            resume = min(max(error.pos, position + 1), _next_at_line_start(text, position))
        except (ValueError, RecursionError):  # an int with thousands of digits, or nesting that no tool prints
            broken.append(
                Broken(lines.line_at(position), lines.line_at(position), "Number too large or nesting too deep")
            )
            resume = _next_at_line_start(text, position)
        else:
            documents.append(Document(value, lines.line_at(position), lines.line_at(resume - 1)))
            around += text[copied:position], "\n" * text.count("\n", position, resume)
            copied = resume
        candidate = _OPENING.search(text, resume)
    return JsonScan(tuple(documents), tuple(broken), "".join([*around, text[copied:]]))


def _next_at_line_start(text: str, position: int) -> int:
    return text.find("\n{", position) + 1 or len(text)


class _LineCounter:
    """Count lines at increasing positions without recounting from the start."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def line_at(self, position: int) -> int:
        if position < self._at:
            return self._line - self._text.count("\n", position, self._at)
        self._line += self._text.count("\n", self._at, position)
        self._at = position
        return self._line


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield (line number, match) for each line of ``text`` that ``pattern`` matches anywhere."""
    for n, line in numbered(text):
        if match := pattern.search(line):
            yield n, match


def decimals(number: str) -> int:
    """Return the number of digits after the decimal point in a text."""
    return len(number.partition(".")[2])
