"""Build new campaigns in hidden folders, which a single rename publishes. Remove those of dead controllers."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from fleetmark.base.inside import PRIVATE_FOLDER, append_inside, folder_inside, remove_inside

_NEW = ".new-"  # prefix of a campaign that is being created
_LOCK = "controller.lock"


def make_draft(folder: Path, root: Path, campaign_id: str) -> tuple[Path, int]:
    """Create a folder for a new campaign in ``folder``, which is ``root`` or below it.

    Return its path and its lock, a descriptor to close when the campaign is complete. Raise OSError if that fails or
    the folder exists.
    """
    draft = folder / f"{_NEW}{campaign_id}"
    while True:
        with folder_inside(folder, root) as place:
            os.mkdir(draft.name, PRIVATE_FOLDER, dir_fd=place)
        with contextlib.suppress(FileNotFoundError):  # another controller removed it before this one locked it
            lock = append_inside(draft / _LOCK, root)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return draft, lock
            os.close(lock)


def remove_unfinished(folder: Path, root: Path) -> None:
    """Remove incomplete campaigns of killed controllers in ``folder``."""
    try:
        with os.scandir(folder) as entries:
            drafts = [folder / entry.name for entry in entries if entry.name.startswith(_NEW)]
    except OSError:
        return
    for draft in drafts:
        with contextlib.suppress(OSError):  # it belongs to another user, or another controller uses it
            lock = append_inside(draft / _LOCK, root)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_inside(draft, root)
            finally:
                os.close(lock)
