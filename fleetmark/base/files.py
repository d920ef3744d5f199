"""Write files that the user names atomically. For files below a results root, see ``inside``."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError

MOST_JSON_VALUES = 3_000_000  # per document; as Python objects, they take up to 400 MB


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace ``path``, or its symlink target, atomically: a reader sees either the old content or all of ``data``.

    An existing file keeps its mode; a new file follows the umask. Raise FleetmarkError if the file cannot be written,
    or if it is a device or a pipe, which a rename would replace.
    """
    try:
        _replace(path.resolve(), data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise FleetmarkError(f"cannot write {path}: {error.strerror}") from error


def _replace(file: Path, raw: bytes) -> None:
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file; give another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name[:40]}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as out:
            if file.exists():
                os.fchmod(out.fileno(), stat.S_IMODE(file.stat().st_mode))
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        part.rename(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def decode_json(raw: bytes | str) -> Any:
    """Return ``raw`` decoded as JSON.

    Raise ValueError if it is invalid, is nested too deeply, or has more than MOST_JSON_VALUES values, which would
    take many times the memory of their text.
    """
    if json_values(raw) > MOST_JSON_VALUES:
        raise ValueError(f"it has more than {MOST_JSON_VALUES:,} values")
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def json_values(raw: bytes | str) -> int:
    """Return an upper bound for the number of JSON values in a text, from its commas and brackets; 0 if it is short."""
    if len(raw) <= MOST_JSON_VALUES:
        return 0
    if isinstance(raw, str):
        return sum(raw.count(sign) for sign in ",[{")
    return sum(raw.count(sign) for sign in (b",", b"[", b"{"))
