"""Journal the end of a run with this user's signature, and with that of an SSH key."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.archive import Archive


def refuse_unchained(archive: Archive, key: Path | None) -> None:
    """Raise FleetmarkError if a key is to sign a campaign whose journal is not chained."""
    if key and archive.head is None:
        raise FleetmarkError(
            f"--sign: an older Fleetmark began {archive.id}, and its journal has no chain; remove --sign"
        )


def end(archive: Archive, owed: int, key: Path | None, console: Console) -> None:
    """Journal the end of a run that still owes ``owed`` steps, and sign the journal with the SSH key ``key``.

    If the key cannot sign now, say so: the results are complete without it.
    """
    with archive.keeping(archive.path / "campaign.json"):
        archive.record("campaign.json")
    archive.end("ended", owed=owed)
    if key is None:
        return
    try:
        archive.sign(key)
    except FleetmarkError as error:
        console.print(f"this campaign is not signed: {error}; then fleetmark run --resume {archive.id} --sign KEY")
