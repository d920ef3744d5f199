"""Build the commands that add unknown host keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count, joined, message
from fleetmark.hosts.ssh.target import UnknownKey, scans


def advice(unknown: Sequence[UnknownKey]) -> str:
    """Return how to check the keys, and when not to add them immediately."""
    keys = count(len(unknown), "host key")
    if len(unknown) == 1:
        comparison = message("{keys} to add: log in to the host once with ssh and compare the fingerprint.", keys=keys)
    else:
        comparison = message("{keys} to add: log in to each host once with ssh and compare the fingerprint.", keys=keys)
    at_once = message(
        "Or add all keys at once. This trusts whoever answers now, so use it only on a network that you trust."
    )
    return joined([comparison, at_once if scans(unknown) else None], " ")


def unknown_keys(unknown: Sequence[UnknownKey]) -> list[RenderableType]:
    """Return the advice and the command that adds the keys of all these hosts; nothing if there are none."""
    if not unknown:
        return []
    return [Text(f"\n{advice(unknown)}"), *(unwrapped(f"  {command}", "cyan") for command in scans(unknown))]
