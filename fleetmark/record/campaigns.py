"""The campaigns under a results root, and the one that a user means."""

from __future__ import annotations

import re
from pathlib import Path

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.archive import Archive

_ID = re.compile(r"\d{8}T\d{6}-")


def campaigns(root: Path) -> list[Archive]:
    """The campaigns under a results root, oldest first, damaged ones among them."""
    try:
        folders = sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Archive(p) for p in folders if not p.name.startswith(".") and _is_campaign(p)]


def _is_campaign(folder: Path) -> bool:
    try:
        return any(file.name in ("campaign.json", "journal.jsonl") for file in folder.iterdir())
    except PermissionError:  # somebody else's
        return _ID.match(folder.name) is not None
    except OSError:
        return False


def find(root: Path, name: str) -> Archive:
    """The campaign a user means: a path, an id under ``root``, the start of one, or ``last``.

    Raises FleetmarkError when none or several answer to it.
    """
    if (Path(name) / "campaign.json").exists():
        return Archive.open(Path(name))
    there = campaigns(root)
    if name == "last" and there:
        return Archive.open(there[-1].path)
    matching = [a for a in there if a.id == name] or [a for a in there if a.id.startswith(name)]
    if len(matching) == 1:
        return Archive.open(matching[0].path)
    if not matching:
        known = f"the latest is {there[-1].id}" if there else f"there is none under {root}"
        raise FleetmarkError(f"no campaign {name!r}: {known}; `fleetmark campaigns` lists them, --results says where")
    raise FleetmarkError(f"{name!r} could be {', '.join(a.id for a in matching)}: type more of it")
