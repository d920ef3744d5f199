"""Record the end of a run in the journal, signed by this user and optionally with an SSH key."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.archive import Archive


def refuse_unchained(archive: Archive, key: Path | None) -> None:
    """Raise FleetmarkError if an SSH key is to sign a campaign without a hash chain in its journal."""
    if key and archive.head is None:
        raise FleetmarkError(
            f"--sign: an older version of Fleetmark started {archive.id}, so its journal has no hash chain; remove "
            "--sign"
        )


def end(archive: Archive, owed: int, key: Path | None, console: Console) -> None:
    """Record the end of a run that still owes ``owed`` steps, and sign the journal with the SSH key ``key``.

    If the key cannot sign now, print the reason; the results are complete without the signature.
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
