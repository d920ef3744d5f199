"""Files: written completely or not at all, and read without following a link out of their folder."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from fleetmark.base.errors import FleetmarkError

MOST_JSON_VALUES = 3_000_000  # in a document; as Python's objects they take up to 400 MB
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # of archives: only the owner may read what hosts run and print


def replace(path: Path, data: bytes | str, *, private: bool = False) -> None:
    """Replace ``path``, or the file that it links to, atomically: it holds all of ``data``, or its old content.

    Only the owner can read a ``private`` file. Others follow the umask; an existing file keeps its mode.
    Raises OSError, also for a device or a pipe, since renaming would replace it.
    """
    raw = data.encode() if isinstance(data, str) else data
    file = path.resolve()
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "it is no plain file; give another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name[:40]}.{secrets.token_hex(4)}")
    mode = PRIVATE_FILE if private else 0o666
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as out:
            if not private and file.exists():
                os.fchmod(out.fileno(), stat.S_IMODE(file.stat().st_mode))
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        part.rename(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def create(path: Path, data: bytes | str) -> None:
    """Write a new file, which only its owner can read, and have it on disk. Raises OSError."""
    raw = data.encode() if isinstance(data, str) else data
    with open_new(path) as out:
        out.write(raw)
        out.flush()
        os.fsync(out.fileno())


def open_new(path: Path) -> BinaryIO:
    """A new file, which only its owner can read, to write to. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb")


def write_atomic(path: Path, data: bytes | str) -> None:
    """As ``replace``, for a document that the user named. Raises FleetmarkError where it cannot be written."""
    try:
        replace(path, data)
    except OSError as error:
        raise FleetmarkError(f"cannot write {path}: {error.strerror}") from error


def open_inside(file: Path, root: Path) -> BinaryIO:
    """Open ``file`` for reading. Raises OSError where it is no plain file, or a link in its path leaves ``root``."""
    try:
        place = os.open(file, os.O_PATH | os.O_CLOEXEC)  # which opens no device and waits for no writer of a pipe
    except FileNotFoundError:
        if file.is_symlink():
            raise OSError(errno.ELOOP, "a link leads to no file") from None
        raise
    try:
        opened = f"/proc/self/fd/{place}"
        try:
            real = os.readlink(opened)  # noqa: PTH115  a Path takes twice as long
        except FileNotFoundError:
            raise OSError(errno.ENOSYS, "/proc is not mounted here, so nobody knows where its path leads") from None
        if not f"{real}/".startswith(f"{_real(root.absolute()).rstrip('/')}/"):
            raise OSError(errno.ELOOP, "a link leads out of the campaign")
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        return os.fdopen(os.open(opened, os.O_RDONLY | os.O_CLOEXEC), "rb")
    finally:
        os.close(place)


@lru_cache(maxsize=8)
def _real(root: Path) -> str:
    """Where ``root`` lies. It is asked for every file of a campaign, which does not move while it is read."""
    return os.path.realpath(root)


def read_inside(file: Path, root: Path, most: int | None = None) -> bytes:
    """All of ``file``, at most ``most`` bytes. Raises OSError as ``open_inside``, and for a file that is larger."""
    with open_inside(file, root) as source:
        raw = source.read() if most is None else source.read(most + 1)
    if most is not None and len(raw) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    return raw


def decode_json(raw: bytes | str) -> Any:
    """``raw`` as JSON. Raises ValueError for anything else, for JSON that is nested too deeply, and for more than
    MOST_JSON_VALUES values, which would take many times the memory of their text.
    """
    if json_values(raw) > MOST_JSON_VALUES:
        raise ValueError(f"it has more than {MOST_JSON_VALUES:,} values")
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def json_values(raw: bytes | str) -> int:
    """How many values JSON of that text has at most: each follows a comma or a bracket. 0 for a short text."""
    if len(raw) <= MOST_JSON_VALUES:
        return 0
    if isinstance(raw, str):
        return sum(raw.count(sign) for sign in ",[{")
    return sum(raw.count(sign) for sign in (b",", b"[", b"{"))
