"""Check who started a campaign: another user's campaign is resumed only with this user's agreement at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.campaign.resumed.scheduled import Request, request_of, unsigned_request
from fleetmark.campaign.schedule import settings_of
from fleetmark.record.archive import Archive


def request_to_run(archive: Archive, inventory: Sequence[str], console: Console) -> tuple[Request, bool]:
    """Return the request that started the campaign, and whether this user started it.

    ``inventory`` is the inventory given by this user; another user's inventory is never evaluated. Raise FleetmarkError
    if another user started the campaign (or changed campaign.json), unless this user agrees.
    """
    if archive.own_campaign() is not None:
        return request_of(archive), True
    request = unsigned_request(archive)
    author = f"{archive.id}: you did not start it here (campaign.json names {' '.join(request.owner.split())[:80]})"
    if request.slurm or request.trial:
        kind = "a job of Slurm" if request.slurm else "a trial of a setting"
        raise FleetmarkError(f"{author}, and only its author can resume {kind}; start a new campaign")
    if request.inventory and not inventory:
        raise FleetmarkError(f"{author}, so its inventory is not used; specify your own with -i")
    if not (console.is_terminal and sys.stdin.isatty()):
        raise FleetmarkError(f"{author}; resume it from a terminal, where you can review it and agree")
    if not _agrees(request, author, inventory, console):
        raise FleetmarkError(f"{archive.id}: nothing was run; start your own campaign with fleetmark run")
    return request, False


def _agrees(request: Request, author: str, inventory: Sequence[str], console: Console) -> bool:
    """Show everything that determines what would run, and ask for agreement.

    Raise FleetmarkError if the suite in campaign.json does not match its settings and workloads.
    """
    chosen = request.suite_as_read.chosen()
    settings = settings_of(request.suite_as_read, request.settings)
    if list(chosen) != request.workloads or settings != request.settings or not request.jobs:
        raise FleetmarkError(f"{author}, and its suite does not match what was scheduled; start a new campaign")
    hosts = [host.name for host in request.hosts]
    console.print(f"{author}. Its commands would run on your hosts:")
    rows = [
        *(("workload", repr(name)) for name in chosen),
        *(("setting", f"{w}.{name}={value!r}") for w, values in settings.items() for name, value in values.items()),
        *(("container", f"{name} in {c.in_container}") for name, c in chosen.items() if c.in_container),
        ("repeats", request.rounds or "as the suite has them"),
        ("hosts", f"{count(len(hosts), 'host')}{', as root' if request.become else ''}: {', '.join(map(repr, hosts))}"),
        ("inventory", ", ".join(inventory) or "none: this machine"),
        ("folder on hosts", repr(request.work_dir)),
    ]
    for name, value in rows:
        console.print(f"  {name:<16} {value}")
    try:
        return console.input("Run them? [y/N] ", markup=False).strip().lower() in ("y", "yes")
    except EOFError:
        return False
