"""Read and write files below a results root without following symlinks out of the root, because other users may write
there.

Each function takes a path and the ``root`` that the user named. The path to the root may contain symlinks. Below the
root, writes open each folder by descriptor and refuse symlinks. Writing to a symlink replaces it.
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

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # archive modes: only the owner may read commands and output
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


# ------------------------------------------------------------ reading


def open_inside(file: Path, root: Path) -> BinaryIO:
    """Open ``file`` for reading. Raise OSError if it is not a regular file, or if a symlink leads out of ``root``."""
    try:
        place = os.open(file, os.O_PATH | os.O_CLOEXEC)  # neither opens a device nor blocks on a pipe
    except FileNotFoundError:
        if file.is_symlink():
            raise OSError(errno.ELOOP, "a symlink in its path is broken") from None
        raise
    try:
        opened = f"/proc/self/fd/{place}"
        try:
            real = os.readlink(opened)  # noqa: PTH115  pathlib takes twice as long
        except FileNotFoundError:
            raise OSError(errno.ENOSYS, "/proc is not mounted here, so its path cannot be checked") from None
        if not f"{real}/".startswith(f"{_real(root.absolute()).rstrip('/')}/"):
            raise OSError(errno.ELOOP, "a symlink leads out of the campaign")
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return os.fdopen(os.open(opened, os.O_RDONLY | os.O_CLOEXEC), "rb")
    finally:
        os.close(place)


@lru_cache(maxsize=8)
def _real(root: Path) -> str:
    """Return the resolved path of ``root``, cached because every file of a campaign needs it."""
    return os.path.realpath(root)


def read_inside(file: Path, root: Path, limit_bytes: int | None = None) -> bytes:
    """Return the content of ``file``. Raise OSError like ``open_inside``, or if it exceeds ``limit_bytes``."""
    with open_inside(file, root) as source:
        raw = source.read() if limit_bytes is None else source.read(limit_bytes + 1)
    if limit_bytes is not None and len(raw) > limit_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {limit_bytes >> 20} MiB")
    return raw


def folders_below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders ``depth`` levels below ``folder``. A symlink is not a folder."""
    if depth == 0:
        yield folder
        return
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            for name in names:
                yield from folders_below(folder / name, depth - 1)


# ------------------------------------------------------------ writing


@contextlib.contextmanager
def folder_inside(folder: Path, root: Path, *, make: int | None = None) -> Iterator[int]:
    """Open ``folder``, which is ``root`` or a folder below it, and yield its descriptor.

    ``make``: the mode for missing folders; if None, no folder is created. Raise OSError if a folder on the path is
    missing, is a symlink, or is not a folder.
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
        raise OSError(errno.EINVAL, "its path contains ..")
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
                    raise OSError(errno.ELOOP, f"{name} is a symlink, which is not followed; remove it") from None
        raise


def replace_inside(file: Path, root: Path, data: bytes | str, *, private: bool = True) -> None:
    """Replace ``file`` atomically: a reader sees either the old content or all of ``data``. Create missing folders.

    Only the owner can read a ``private`` file; other files follow the umask. A symlink or pipe with the file's name is
    replaced. Raise OSError if that fails.
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
    """Write a new file that only its owner can read, and sync it to disk. Raise OSError if it exists."""
    with folder_inside(file.parent, root) as place:
        _write_new(file.name, place, data, PRIVATE_FILE)


def _write_new(name: str, place: int, data: bytes | str, mode: int) -> None:
    with os.fdopen(os.open(name, _NEW, mode, dir_fd=place), "wb") as out:
        out.write(data.encode() if isinstance(data, str) else data)
        out.flush()
        os.fsync(out.fileno())


def open_new_inside(file: Path, root: Path) -> BinaryIO:
    """Open a new file for writing, readable only by its owner. Raise OSError if it exists."""
    with folder_inside(file.parent, root) as place:
        return os.fdopen(os.open(file.name, _NEW, PRIVATE_FILE, dir_fd=place), "wb")


def append_inside(file: Path, root: Path) -> int:
    """Open one of Fleetmark's files for reading and appending, and return its descriptor. Create a missing file.

    Raise OSError if it is a symlink, is not a regular file, or has another hard link.
    """
    with folder_inside(file.parent, root) as place:
        handle = os.open(file.name, _APPEND, PRIVATE_FILE, dir_fd=place)
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        os.close(handle)
        reason = "it is not a regular file" if not stat.S_ISREG(info.st_mode) else "it has another hard link"
        raise OSError(errno.EINVAL, f"{reason}; remove it")
    return handle


def move_inside(source: Path, target: Path, root: Path) -> None:
    """Rename ``source`` to ``target``, creating missing parent folders. Raise OSError if that fails."""
    with folder_inside(source.parent, root) as before, folder_inside(target.parent, root, make=PRIVATE_FOLDER) as after:
        os.rename(source.name, target.name, src_dir_fd=before, dst_dir_fd=after)


def remove_inside(path: Path, root: Path) -> None:
    """Remove a file, a symlink or a folder tree; ignore errors."""
    with contextlib.suppress(OSError), folder_inside(path.parent, root) as place:
        if stat.S_ISDIR(os.stat(path.name, dir_fd=place, follow_symlinks=False).st_mode):
            shutil.rmtree(path.name, ignore_errors=True, dir_fd=place)
        else:
            os.unlink(path.name, dir_fd=place)


def sync_inside(folder: Path, root: Path) -> None:
    """Sync the entries of a folder to disk. Raise OSError if that fails."""
    with folder_inside(folder, root) as place:
        os.fsync(place)
