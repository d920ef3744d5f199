"""Verdicts on groups of hosts under noise, and where a slow group has the end of a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Probe = Callable[[tuple[str, ...]], float]
MOST_REPEATS = 6  # of one group, until it counts as what is likelier


@dataclass
class Search:
    """Verdicts on groups, each run until the odds are clear. A group is as slow as its slowest part.

    ``probe`` runs some hosts and gives ln(rate / expected), with ``noise`` (a standard deviation). ``drop``: ln of a
    fault's rate, which tells a slow group from a sound one. ``likely``: ln of the odds at which a group counts as
    either. ``limit``: runs. ``rates``: what ``probe`` gave, in order.
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
        """What earlier runs say of a group: parts of a sound group are sound, and what holds a slow one is slow."""
        if not key or any(key <= group for group in self.sound):
            return False
        return True if any(group <= key for group in self.bad) else None

    def slow(self, group: Sequence[str]) -> bool:
        """Whether a group is slow: runs until the odds are clear (Wald 1945). What is known is not run again."""
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
        """The length of the shortest beginning of ``order`` that is slow together with ``more``; all of it is."""
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            if self.slow([*more, *order[:middle]]):
                high = middle
            else:
                low = middle
        return high


def apart(
    members: Sequence[str],
    links: Sequence[tuple[str, str]],
    borders: Sequence[tuple[str, str]],
    labels: Mapping[str, str],
) -> list[list[str]]:
    """Groups of ``members`` without any of ``links`` and ``borders`` that together have every member."""
    left = list(members)
    groups: list[list[str]] = []
    while left:
        group: list[str] = []
        for member in left:
            if not any(between(member, other, links, borders, labels) for other in group):
                group.append(member)
        groups.append(group)
        left = [m for m in left if m not in group]
    # A group of few would not show what its members do with others: it is filled up with those that it may have.
    for group in groups[1:]:
        for member in groups[0]:
            if not any(between(member, other, links, borders, labels) for other in group):
                group.append(member)
    return groups


def between(
    a: str,
    b: str,
    links: Sequence[tuple[str, str]],
    borders: Sequence[tuple[str, str]],
    labels: Mapping[str, str],
) -> bool:
    sides = tuple(sorted((labels.get(a, ""), labels.get(b, ""))))
    return (a, b) in links or (b, a) in links or sides in borders
