"""Commands to type next that name the record they work on, so that they hold wherever they are pasted."""

from __future__ import annotations

from pathlib import Path

from fleetmark.record import store


def command(root: Path, *words: str) -> list[str]:
    """The words of the command ``fleetmark WORDS`` on the record under ``root``; of a copy of a store, on the store."""
    return command_for(store.name_of(root), *words)


def command_for(root: str, *words: str) -> list[str]:
    """The same for a ``root`` as ``--results`` names it. Pure."""
    return ["fleetmark", *words, "--results", root]
