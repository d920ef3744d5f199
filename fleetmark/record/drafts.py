"""Campaigns under construction: hidden folders until one rename, removed when their controller is dead."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from fleetmark.base.files import PRIVATE_FILE, PRIVATE_FOLDER

_NEW = ".new-"  # before the id of a campaign under construction
_LOCK = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def make_draft(root: Path, campaign_id: str) -> tuple[Path, int]:
    """A folder for a new campaign, and its lock (a descriptor), held while the campaign is under construction."""
    draft = root / f"{_NEW}{campaign_id}"
    while True:
        with contextlib.suppress(FileExistsError):
            draft.mkdir(mode=PRIVATE_FOLDER)
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(draft / "controller.lock", _LOCK, PRIVATE_FILE)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (
                draft / "controller.lock"
            ).exists():  # else another controller removed it as a leftover before it was locked
                return draft, lock
            os.close(lock)


def remove_unfinished(root: Path) -> None:
    """Remove the folders of controllers that were killed while they made a campaign."""
    for draft in root.glob(f"{_NEW}*"):
        with contextlib.suppress(OSError):
            lock = os.open(draft / "controller.lock", _LOCK, PRIVATE_FILE)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(draft)
            finally:
                os.close(lock)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
