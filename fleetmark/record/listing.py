"""List the campaigns of a results root with an index. Listing ten thousand campaigns takes a second or two.

``.campaigns.jsonl`` under the root has a line with each summary of a campaign and the sizes and times of its files; the
last line of a campaign counts. The index can be deleted at any time. A campaign is read again if its files changed or
are damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from fleetmark.base.inside import append_inside, open_inside, replace_inside
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.campaigns import Summary, is_campaign, summarise

_INDEX = ".campaigns.jsonl"
_FILES = ("campaign.json", "journal.jsonl", "measurements.parquet")
_FIELDS = [f.name for f in fields(Summary) if f.name not in ("campaign", "path", "damaged")]
_STALE = 2  # lines per campaign above which the index is rewritten


def summaries(root: Path, *, stores_index: bool = True) -> list[Summary]:
    """Return a summary of each campaign under ``root``, oldest first.

    ``stores_index``: add new summaries to the index.
    """
    lines, known = _read(root)
    listed, fresh = [], []
    for name in _names(root):
        summary = _known(root / name, known.get(name))
        if summary is None and is_campaign(root / name):
            summary = summarise(Archive(root / name))
            fresh += _lines(summary)
        if summary is not None:
            listed.append(summary)
    if not stores_index:
        return listed
    _append(root, fresh, root)
    if lines + len(fresh) > _STALE * max(100, len(listed)):
        _tidy(root)
    return listed


def note(archive: Archive) -> None:
    """Add a campaign that has just ended to the index."""
    _append(archive.path.parent, _lines(summarise(archive)), archive.root)


def _names(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(e.name for e in entries if not (e.name.startswith(".") or e.is_symlink()))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _known(path: Path, entry: Mapping[str, Any] | None) -> Summary | None:
    """Return the summary of a campaign if its files have not changed since it was read."""
    try:
        if entry is None or entry["stamp"] != _stamp(path, entry["files"]):
            return None
        return Summary(campaign=path.name, path=path, **{name: entry[name] for name in _FIELDS})
    except (KeyError, TypeError, ValueError):
        return None


def _lines(summary: Summary) -> list[str]:
    """Return the index line of a campaign, or no line if the campaign is damaged."""
    if summary.damaged:
        return []
    hosts = Archive(summary.path).campaign().get("jobs", {})
    files = [*_FILES, *(f"{kind}/{safe_name(host)}.json" for host in hosts for kind in ("facts", "jobs"))]
    values = {name: getattr(summary, name) for name in _FIELDS} | {"statuses": dict(summary.statuses)}
    entry = {"campaign": summary.campaign, "stamp": _stamp(summary.path, files), "files": files}
    return [json.dumps({**entry, **values})]


def _stamp(folder: Path, files: Sequence[str]) -> str:
    """Return the sizes and times of ``files`` as a hash."""
    states = []
    for name in files:
        try:
            state = os.lstat(f"{folder}/{name}")
            states.append(f"{state.st_size} {state.st_mtime_ns} {state.st_ino}")
        except OSError:
            states.append("-")
    return hashlib.blake2b(" ".join(states).encode(), digest_size=12).hexdigest()


def _read(root: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the number of lines in the index, and the last line of each campaign. Skip invalid lines."""
    known: dict[str, dict[str, Any]] = {}
    count = 0
    with contextlib.suppress(OSError), open_inside(root / _INDEX, root) as lines:
        for line in lines:
            count += 1
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and isinstance(entry.get("campaign"), str):
                    known[entry["campaign"]] = entry
    return count, known


def _append(folder: Path, lines: Sequence[str], root: Path) -> None:
    """Append lines in one write, because other controllers may append at the same time. Ignore a read-only root."""
    if not lines:
        return
    data = "".join(f"{line}\n" for line in lines).encode()
    with contextlib.suppress(OSError):
        handle = append_inside(folder / _INDEX, root)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, data)
        finally:
            os.close(handle)


def _tidy(root: Path) -> None:
    """Rewrite the index with the campaigns that still exist."""
    _, known = _read(root)
    lines = [json.dumps(entry) + "\n" for name, entry in known.items() if (root / name).exists()]
    with contextlib.suppress(OSError):
        replace_inside(root / _INDEX, root, "".join(lines))
