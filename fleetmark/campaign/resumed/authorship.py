"""Check who started a campaign: another user's campaign resumes only if this user agrees at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.campaign.resumed.scheduled import Request, request_of, unsigned_request
from fleetmark.record.archive import Archive

_SHOWN = 12  # maximum number of hosts and settings listed in the question


def request_to_run(archive: Archive, inventory: Sequence[str], console: Console) -> tuple[Request, bool]:
    """Return the request that started the campaign, and whether this user started it.

    ``inventory``: the inventory that this user names; another user's inventory is never evaluated. Raise
    FleetmarkError if another user started the campaign (or changed campaign.json), unless this user agrees.
    """
    if archive.own_campaign() is not None:
        return request_of(archive), True
    request = unsigned_request(archive)
    author = f"{archive.id}: you did not start it here (campaign.json names {' '.join(request.owner.split())[:80]})"
    if request.slurm or request.trial:
        kind = "a job of Slurm" if request.slurm else "a trial of a setting"
        raise FleetmarkError(f"{author}, and only its author can resume {kind}; start a new campaign")
    if request.inventory and not inventory:
        raise FleetmarkError(f"{author}, so its inventory is not used; name your own with -i")
    if not (console.is_terminal and sys.stdin.isatty()):
        raise FleetmarkError(f"{author}; resume it from a terminal, where you can review it and agree")
    if not _agrees(request, author, inventory, console):
        raise FleetmarkError(f"{archive.id}: nothing was run; start your own campaign with fleetmark run")
    return request, False


def _agrees(request: Request, author: str, inventory: Sequence[str], console: Console) -> bool:
    """Show what the campaign would run, and ask for agreement."""
    console.print(f"{author}. Its commands would run on your hosts:")
    hosts = [host.name for host in request.hosts]
    settings = [f"{w}.{name}={value}" for w, values in request.settings.items() for name, value in values.items()]
    images = [f"{w} in {c.in_container}" for w, c in request.suite_as_read.chosen().items() if c.in_container]
    rows = {
        "workloads": ", ".join(request.workloads),
        "settings": _some(settings),
        "containers": _some(images),
        "hosts": f"{count(len(hosts), 'host')}: {_some(hosts)}{', as root' if request.become else ''}",
        "inventory": ", ".join(inventory) or "none: this machine",
        "folder on hosts": request.work_dir,
    }
    for name, value in rows.items():
        console.print(f"  {name:<16} {value or 'none'}")
    try:
        return console.input("Run them? [y/N] ", markup=False).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _some(words: Sequence[str]) -> str:
    rest = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
