"""Decide under noise whether groups of hosts are slow, and find the end of a fault within a slow group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fleetmark.planner.diagnosis.isolation.topology import Crossing

Probe = Callable[[tuple[str, ...]], float]
MOST_REPEATS = 6  # maximum runs of a group; after these, the group counts as whatever is likelier


@dataclass(kw_only=True)
class Search:
    """The verdicts on groups. Each group runs until its odds are clear; it is as slow as its slowest part.

    - ``probe``: runs hosts and returns ln(rate / expected), with the standard deviation ``noise``
    - ``drop``: ln of the rate with a fault, relative to a healthy group
    - ``likely``: the minimum ln of the odds of a group that counts as sound or slow
    - ``limit``: the maximum number of runs
    - ``rates``: the results of ``probe``, in order
    """

    probe: Probe
    noise: float
    drop: float
    limit: int
    likely: float
    rates: list[float] = field(default_factory=list)
    sound: list[frozenset[str]] = field(default_factory=list)
    bad: list[frozenset[str]] = field(default_factory=list)

    def known(self, key: frozenset[str]) -> bool | None:
        """Return the verdict that earlier runs imply: parts of a healthy group are sound; groups with a slow part are
        slow.
        """
        if not key or any(key <= group for group in self.sound):
            return False
        return True if any(group <= key for group in self.bad) else None

    def slow(self, group: Sequence[str]) -> bool:
        """Return whether a group is slow.

        Run it until the odds are clear (Wald 1945); known verdicts need no run.
        """
        key = frozenset(group)
        known = self.known(key)
        if known is not None:
            return known
        odds, repeats = 0.0, 0
        while abs(odds) < self.likely and repeats < MOST_REPEATS and len(self.rates) < self.limit:
            rate = self.probe(tuple(group))
            self.rates.append(rate)
            odds += self.drop * (rate - self.drop / 2) / self.noise**2
            repeats += 1
        (self.bad if odds > 0 else self.sound).append(key)
        return odds > 0

    def shortest(self, order: Sequence[str], more: Sequence[str]) -> int:
        """Return the length of the shortest prefix of ``order`` that is slow together with ``more``.

        The whole of ``order`` together with ``more`` must be slow.
        """
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            if self.slow([*more, *order[:middle]]):
                high = middle
            else:
                low = middle
        return high


def apart(members: Sequence[str], links: Sequence[tuple[str, str]], borders: Sequence[Crossing]) -> list[list[str]]:
    """Return groups that together contain all ``members``, and none of ``links`` and ``borders``."""
    left = list(members)
    groups: list[list[str]] = []
    while left:
        group: list[str] = []
        for member in left:
            if not any(between(member, other, links, borders) for other in group):
                group.append(member)
        groups.append(group)
        left = [m for m in left if m not in group]
    # A small group would not show how its members perform with others, so it is filled up with allowed hosts.
    for group in groups[1:]:
        for member in groups[0]:
            if not any(between(member, other, links, borders) for other in group):
                group.append(member)
    return groups


def between(a: str, b: str, links: Sequence[tuple[str, str]], borders: Sequence[Crossing]) -> bool:
    return (a, b) in links or (b, a) in links or any(border.crossed_by((a, b)) for border in borders)
