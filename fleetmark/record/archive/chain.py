"""Chain the lines of a journal: each line ends with a SHA-256 of the line before it and of its own text."""

from __future__ import annotations

import hashlib
import re
from typing import BinaryIO

START = "0" * 64  # the digest before the first line
_BLOCK = 1 << 20  # block size for hashing in bytes
_END = re.compile(rb', "chain": "([0-9a-f]{64})"\}\n?$')


def chained(text: str, head: str) -> tuple[str, str]:
    """Return the line for ``text``, a JSON object, that follows the line with the digest ``head``, and its digest."""
    digest = hashlib.sha256(f"{head}{text}".encode()).hexdigest()
    return f'{text[:-1]}, "chain": "{digest}"}}', digest


def stated(line: bytes) -> str:
    """Return the digest at the end of a line; empty if the line is not chained."""
    end = _END.search(line)
    return end[1].decode() if end else ""


def follows(line: bytes, head: str) -> bool:
    """Return whether a line is intact and follows the line with the digest ``head``."""
    end = _END.search(line)
    return end is not None and hashlib.sha256(head.encode() + line[: end.start()] + b"}").hexdigest() == end[1].decode()


def digest_of(file: BinaryIO) -> tuple[int, str]:
    """Return the size of a file in bytes and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    while block := file.read(_BLOCK):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()
