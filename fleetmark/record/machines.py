"""List the recorded machines: hosts of campaigns and machines of imported tables."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.facts import Facts
from fleetmark.record import imports
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns, shares_of, spoken
from fleetmark.record.select import Machine


def machines(root: Path) -> list[Machine]:
    """Return every host of every campaign under ``root``, and every machine of the tables imported there.

    Skip damaged files with a LeftOut warning. Raise FleetmarkError if the folder does not exist, or if no file in it
    can be read.
    """
    if not root.is_dir():
        raise FleetmarkError(f"{root}: no such folder; specify the results folder with --results")
    on_record: list[Machine] = []
    damaged: list[tuple[str, FleetmarkError]] = []
    for archive in campaigns(root):
        try:
            document = archive.campaign()
            hosts, shares = document["hosts"], shares_of(document)
        except FleetmarkError as error:
            damaged.append((archive.id, error))
            continue
        facts = cache(partial(_facts, archive))
        held = spoken(shares) if shares else ""
        for host in hosts:
            name, address = host["name"], str(host.get("address") or "")
            labels = host.get("labels") or {}
            machine = Machine(archive.id, name, labels, partial(facts, name), address=address, shares=held)
            on_record.append(machine)
    for file in imports.tables(root):
        try:
            on_record += imports.machines(file)
        except FleetmarkError as error:
            damaged.append((f"{imports.FOLDER}/{file.parent.name}", error))
    if damaged and not on_record:
        raise damaged[0][1]
    for name, reason in damaged:
        leave_out(name, reason)
    return on_record


def _facts(archive: Archive, host: str) -> Facts | None:
    try:
        return archive.facts_of(host)
    except FleetmarkError as error:
        leave_out(f"the identity of {host} in {archive.id}", error)
        return None
