"""List the campaigns under a results root, and find the campaign that a user names."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import joined, message
from fleetmark.record.archive import Archive
from fleetmark.record.documents import key_of
from fleetmark.workloads.shares import Shares

_ID = re.compile(r"\d{8}T\d{6}-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Summarise one campaign.

    ``statuses``: status to its number of outcomes; ``finished``: no run is outstanding; ``damaged``: why the campaign
    cannot be read; the other fields then hold the readable part.
    """

    campaign: str
    path: Path
    created: str = ""
    suite: str = ""
    hosts: int | None = None
    statuses: Mapping[str, int] = field(default_factory=dict)
    finished: bool = False
    damaged: str | None = None

    def as_json(self) -> dict[str, Any]:
        order = ("campaign", "created", "suite", "hosts", "statuses", "finished", "path", "damaged")
        values = asdict(self) | {"path": str(self.path)}
        return {name: values[name] for name in order}


def campaigns(root: Path) -> list[Archive]:
    """Return the campaigns under a results root, oldest first, including damaged ones. Links are skipped."""
    try:
        folders = sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Archive(p) for p in folders if not p.name.startswith(".") and not p.is_symlink() and is_campaign(p)]


def campaigns_inside(archive: Archive, folder: str) -> list[Archive]:
    """Return the campaigns in a folder of ``archive`` that were run for it, oldest first."""
    place = archive.path / folder
    if place.is_symlink() or archive.path.is_symlink():
        return []
    return [Archive(a.path, archive.root) for a in campaigns(place)]


def is_campaign(folder: Path) -> bool:
    """Return whether a folder contains a campaign, damaged or not."""
    try:
        with os.scandir(folder) as files:
            return any(file.name in ("campaign.json", "journal.jsonl") for file in files)
    except PermissionError:  # another user's folder
        return _ID.match(folder.name) is not None
    except OSError:
        return False


def find(root: Path, name: str) -> Archive:
    """Return the campaign that a user names by path, id under ``root``, prefix of an id, or ``last``.

    Raise FleetmarkError if no campaign or several campaigns match.
    """
    if (Path(name) / "campaign.json").exists():
        path = Path(name).absolute()
        if path.is_symlink():
            raise FleetmarkError(f"{name}: a link; use the folder that it points to")
        return Archive.open(path if path.name and ".." not in path.parts else path.resolve())
    archives = campaigns(root)
    if name == "last" and archives:
        return Archive.open(archives[-1].path)
    matching = [a for a in archives if a.id == name] or [a for a in archives if a.id.startswith(name)]
    if len(matching) == 1:
        return Archive.open(matching[0].path)
    if not matching:
        hint = f"the latest is {archives[-1].id}" if archives else f"there are no campaigns under {root}"
        raise FleetmarkError(
            f"no campaign {name!r}: {hint}; `fleetmark campaigns` lists them, and --results selects another folder"
        )
    raise FleetmarkError(f"{name!r} could be {', '.join(a.id for a in matching)}; type more characters of it")


def summarise(archive: Archive) -> Summary:
    """Return the contents of campaign.json and of the journal, as far as they can be read."""
    fields: dict[str, Any] = {}
    try:
        document = archive.campaign()
        fields |= {
            "created": document.get("created", ""),
            "suite": document.get("suite", ""),
            "hosts": len(document["hosts"]),
        }
        statuses, finished = _last_statuses(archive)
        fields |= {"statuses": statuses, "finished": finished}
        archive.look_over()
    except FleetmarkError as error:
        fields |= {"finished": False, "damaged": str(error)}
    return Summary(campaign=archive.id, path=archive.path, **fields)


def _last_statuses(archive: Archive) -> tuple[dict[str, int], bool]:
    """Return the number of steps by their last status, and whether the campaign ended with no step outstanding."""
    last: dict[tuple[Any, ...], str] = {}
    finished = False
    for e in archive.journal():
        if e["e"] == "outcome":
            last[key_of(e)] = e["status"]
        elif e["e"] == "joined":  # lost hosts participate again
            last = {key: s for key, s in last.items() if key[0] not in e["hosts"] or key[2] != "*" or s != "lost"}
        elif e["e"] == "ended":
            finished = not e["owed"]
    return dict(Counter(last.values())), finished


def shares_of(document: Mapping[str, Any]) -> Shares | None:
    """Return the shares of its hosts to which a campaign was held, from campaign.json.

    Raise FleetmarkError if they cannot be read.
    """
    suite = document.get("suite_as_read")
    try:
        return TypeAdapter(Shares | None).validate_python(suite.get("shares") if isinstance(suite, dict) else None)
    except ValidationError as error:
        raise FleetmarkError(
            f"{document.get('id')}: campaign.json: the shares of its suite are damaged; restore the file"
        ) from error


def spoken(shares: Shares) -> str:
    """Return shares as a phrase."""
    cpu = message("{share} of the CPU time", share=shares.cpu) if shares.cpu else None
    memory = message("{share} of memory", share=shares.memory) if shares.memory else None
    disk = message("{rate} of each disk", rate=shares.disk) if shares.disk else None
    network = message("{rate} of the network", rate=shares.network) if shares.network else None
    return joined([cpu, memory, disk, network])


def repeated(archive: Archive) -> dict[str, Any]:
    """Return the keys of a suite under which the campaign's figures can be measured again."""
    shares = shares_of(archive.campaign())
    return {"shares": shares.model_dump()} if shares else {}


def container_of(archive: Archive, workload: str) -> dict[str, str]:
    """Return the image in which the campaign ran a workload; empty if it ran on the hosts."""
    choice = ((archive.campaign().get("suite_as_read") or {}).get("workloads") or {}).get(workload) or {}
    return {"in_container": choice["in_container"]} if choice.get("in_container") else {}
