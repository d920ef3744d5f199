"""Shows the command that adds all unknown host keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count
from fleetmark.hosts.ssh.target import UnknownKey, scans


def unknown_keys(unknown: Sequence[UnknownKey]) -> list[RenderableType]:
    """The command that adds the keys of all these hosts, and when not to use it; nothing where there are none."""
    if not unknown:
        return []
    host = "the host" if len(unknown) == 1 else "each host"
    advice = f"\n{count(len(unknown), 'host key')} to add: log in to {host} once with ssh and compare the fingerprint."
    if commands := scans(unknown):
        advice += " Or at once, which believes whoever answers now: only where you trust the network between."
    return [Text(advice), *(unwrapped(f"  {command}", "cyan") for command in commands)]
