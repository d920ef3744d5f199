"""Build commands for the user to type next. They name the results root, so that they work in any folder."""

from __future__ import annotations

from pathlib import Path

from fleetmark.record import store


def command(root: Path, *words: str) -> list[str]:
    """Return the words of ``fleetmark WORDS`` for the results under ``root``. For a copy of a store, the command names
    the store.
    """
    return command_for(store.name_of(root), *words)


def command_for(root: str, *words: str) -> list[str]:
    """Return the same for a ``root`` in the form of ``--results``. Pure."""
    return ["fleetmark", *words, "--results", root]
