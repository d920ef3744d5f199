"""Read MLCommons logs line by line: ``:::MLLOG`` and a JSON object, from files of any size that may be compressed.

Memory is bounded: only the first ``LONGEST`` bytes of a line are read.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

MARK = b":::MLLOG"
LONGEST = 1 << 20  # bytes of a line that are kept; real lines have up to some tens of kB (file lists, git logs)
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_UTF8 = codecs.BOM_UTF8
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # tested before UTF-16, whose mark is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The start of LoadGen and mllog records whose first member is the key; others are decoded completely.
_KEY_FIRST = re.compile(rb'\s*\{\s*"key"\s*:\s*"([^"\\]{0,200})"')
# C++ streams print these values, which JSON cannot express.
_NOT_JSON = re.compile(r"(?<=[:,\[\s])[-+]?(?:nan|inf)(?=\s{0,9}[,}\]])", re.IGNORECASE)


class DamagedError(Exception):
    """Report compressed input that cannot be unpacked, with the reason."""


def records(line: bytes, keys: re.Pattern[bytes] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records on one line of a log; other text around them is skipped, and so are damaged records.

    ``keys``: a pattern that avoids decoding most records. A record is skipped if its first member is a ``key`` that
    does not begin with a match.
    """
    retries = 20
    position = line.find(MARK)
    while position >= 0:
        start = position + len(MARK)
        position = line.find(MARK, start)
        key = _KEY_FIRST.match(line, start)
        if keys is not None and key and not keys.match(key[1]):
            continue
        record = _decode(line[start : position if position >= 0 else None])
        if record is None and key and position >= 0 and retries:
            retries -= 1  # a mark within a record's text (a commit message, for example) does not end the record
            record = _decode(line[start:])
        if record is not None:
            yield record


def _decode(raw: bytes) -> dict[str, Any] | None:
    text = raw.decode("utf-8", "replace").replace("\0", "").lstrip()
    if not text.startswith("{"):
        return None
    record = _first_object(text)
    if record is None and _NOT_JSON.search(text):
        record = _first_object(_NOT_JSON.sub("null", text))
    return record


_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def _first_object(text: str) -> dict[str, Any] | None:
    try:
        value = _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):  # damaged or truncated, an int with thousands of digits, or excessive nesting
        return None
    return value if isinstance(value, dict) else None


class MllogLines:
    """Iterate over the lines of a file without line ends; gzip is unpacked, and UTF-16 and UTF-32 become UTF-8.

    UTF-16 and UTF-32 need a byte order mark. Each line has at most ``LONGEST`` bytes. Iterating raises DamagedError.
    ``open_end`` is true while the last line is returned without a line end: the file may have been truncated there.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.open_end = file, False

    def __iter__(self) -> Iterator[bytes]:
        pending: list[bytes] = []  # pieces of an incomplete line
        size = 0
        for chunk in _utf8(_unpacked(self._file)):
            *complete, rest = chunk.split(b"\n")
            if complete:
                complete[0] = b"".join([*pending, complete[0]])
                pending, size = [], 0
                for line in complete:
                    yield line if len(line) <= LONGEST else line[:LONGEST]
            if size < LONGEST and rest:
                pending.append(rest)
                size += len(rest)
        if pending:
            self.open_end = True
            yield b"".join(pending)[:LONGEST]


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Yield ``file`` in pieces, unpacked if it begins like gzip, which may have several members."""
    pieces = _chunks(file)
    head = next(pieces, b"")
    while 0 < len(head) < 4 and (more := next(pieces, b"")):  # a pipe may return fewer bytes than the mark has
        head += more
    if not head.startswith(_GZIP):
        if head:
            yield head
        yield from pieces
        return
    try:
        yield from _gunzip(head, pieces)
    except zlib.error as error:
        raise DamagedError(f"damaged gzip data ({error})") from error


def _gunzip(packed: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    while True:
        if unpacked := member.decompress(packed, _CHUNK):
            yield unpacked
        if member.eof:
            packed = member.unused_data.lstrip(b"\0") or next(pieces, b"").lstrip(b"\0")  # tapes are padded with zeros
            if not packed:
                return
            member = zlib.decompressobj(wbits=31)
        else:
            packed = member.unconsumed_tail or next(pieces, b"")
            if not packed and not unpacked:
                raise DamagedError("truncated gzip data")


def _utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield ``pieces`` without a byte order mark, converted to UTF-8 from UTF-16 or UTF-32 if there was such a mark."""
    head = next(pieces, b"")
    for mark, encoding in _WIDE:
        if head.startswith(mark):
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            yield decoder.decode(head[len(mark) :]).encode("utf-8", "replace")
            for piece in pieces:
                yield decoder.decode(piece).encode("utf-8", "replace")
            return
    yield head.removeprefix(_UTF8)
    yield from pieces
