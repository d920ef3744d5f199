"""Define the identity of a recorded host in a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """Identify a host of a ``campaign``, or a machine of an imported table.

    ``id``: its position among the hosts of a query; ``side``: its side of a comparison. A host on two sides has two
    ids.
    """

    id: int
    campaign: str
    name: str
    side: str = ""


def numbered(hosts: Iterable[tuple[str, str]]) -> list[Host]:
    """Return hosts of one side, given as (campaign, name)."""
    return [Host(number, campaign, name) for number, (campaign, name) in enumerate(hosts)]
