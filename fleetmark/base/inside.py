"""Files below a results root, which others may write to: nothing is read or written through a link that leaves it.

Each function takes a path and the ``root`` that the user named. The root may be reached through links; below it, writes
open one folder after the other by descriptor and refuse links. A name that is a link is replaced, never followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # of archives: only the owner may read what hosts run and print
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


# ------------------------------------------------------------ reading


def open_inside(file: Path, root: Path) -> BinaryIO:
    """Open ``file`` for reading. Raises OSError where it is no plain file, or a link in its path leaves ``root``."""
    try:
        place = os.open(file, os.O_PATH | os.O_CLOEXEC)  # opens no device, and waits for no writer of a pipe
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
    """Return where ``root`` lies. Every file of a campaign needs it, and the root does not move meanwhile."""
    return os.path.realpath(root)


def read_inside(file: Path, root: Path, limit_bytes: int | None = None) -> bytes:
    """Return the content of ``file``. Raises OSError as ``open_inside``, and for a file above ``limit_bytes``."""
    with open_inside(file, root) as source:
        raw = source.read() if limit_bytes is None else source.read(limit_bytes + 1)
    if limit_bytes is not None and len(raw) > limit_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {limit_bytes >> 20} MiB")
    return raw


# ------------------------------------------------------------ writing


@contextlib.contextmanager
def folder_inside(folder: Path, root: Path, *, make: int | None = None) -> Iterator[int]:
    """Open ``folder``, which is ``root`` or lies below it, and yield its descriptor.

    ``make``: the mode of folders to create where they are missing; none are created without it. Raises OSError where a
    folder on the way is missing, is a link, or is no folder.
    """
    if make is not None:
        root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, _FOLDER)
    try:
        for name in folder.relative_to(root).parts:
            below = _open_folder(name, handle, make)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _open_folder(name: str, above: int, make: int | None) -> int:
    if name == "..":
        raise OSError(errno.EINVAL, "its path goes up with ..")
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except FileNotFoundError:
        if make is None:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, make, dir_fd=above)
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            with contextlib.suppress(OSError):
                if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, f"{name} is a link, and links are not followed; remove it") from None
        raise


def replace_inside(file: Path, root: Path, data: bytes | str, *, private: bool = True) -> None:
    """Replace ``file`` atomically: it holds all of ``data``, or its old content. Missing folders are created.

    Only the owner can read a ``private`` file; others follow the umask. Whatever has the file's name (a link, a pipe)
    is replaced. Raises OSError.
    """
    with folder_inside(file.parent, root, make=PRIVATE_FOLDER if private else 0o777) as place:
        part = f".{file.name[:40]}.{secrets.token_hex(4)}"
        try:
            _write_new(part, place, data, PRIVATE_FILE if private else 0o666)
            os.rename(part, file.name, src_dir_fd=place, dst_dir_fd=place)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=place)
            raise


def create_inside(file: Path, root: Path, data: bytes | str) -> None:
    """Write a new file, which only its owner can read, and sync it to disk. Raises OSError where it exists."""
    with folder_inside(file.parent, root) as place:
        _write_new(file.name, place, data, PRIVATE_FILE)


def _write_new(name: str, place: int, data: bytes | str, mode: int) -> None:
    with os.fdopen(os.open(name, _NEW, mode, dir_fd=place), "wb") as out:
        out.write(data.encode() if isinstance(data, str) else data)
        out.flush()
        os.fsync(out.fileno())


def open_new_inside(file: Path, root: Path) -> BinaryIO:
    """Open a new file, which only its owner can read, for writing. Raises OSError where it exists."""
    with folder_inside(file.parent, root) as place:
        return os.fdopen(os.open(file.name, _NEW, PRIVATE_FILE, dir_fd=place), "wb")


def append_inside(file: Path, root: Path) -> int:
    """Open a file of this program for reading and appending, and return its descriptor; create it where it is missing.

    Raises OSError where its name is a link, no plain file, or a second name of another file.
    """
    with folder_inside(file.parent, root) as place:
        handle = os.open(file.name, _APPEND, PRIVATE_FILE, dir_fd=place)
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        os.close(handle)
        why = "it is no plain file" if not stat.S_ISREG(info.st_mode) else "another file shares its content (hard link)"
        raise OSError(errno.EINVAL, f"{why}; remove it")
    return handle


def move_inside(source: Path, target: Path, root: Path) -> None:
    """Rename ``source`` to ``target``, and create the folders above it. Raises OSError."""
    with folder_inside(source.parent, root) as before, folder_inside(target.parent, root, make=PRIVATE_FOLDER) as after:
        os.rename(source.name, target.name, src_dir_fd=before, dst_dir_fd=after)


def remove_inside(path: Path, root: Path) -> None:
    """Remove a file, a link or a folder with its content, as far as that is possible."""
    with contextlib.suppress(OSError), folder_inside(path.parent, root) as place:
        if stat.S_ISDIR(os.stat(path.name, dir_fd=place, follow_symlinks=False).st_mode):
            shutil.rmtree(path.name, ignore_errors=True, dir_fd=place)
        else:
            os.unlink(path.name, dir_fd=place)


def sync_inside(folder: Path, root: Path) -> None:
    """Sync the entries of a folder to disk. Raises OSError."""
    with folder_inside(folder, root) as place:
        os.fsync(place)
