"""Who makes a group slow: adaptive group tests that find nodes, links and borders in few runs, under noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Probe = Callable[[tuple[str, ...]], float]
SURE = math.log(100)  # odds at which a group counts as sound or slow
MOST_REPEATS = 6  # of one group, until it counts as what is likelier
PARTNERS = 2  # with which a node must fail, each alone, before it is named


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a ``group``: ``rate``, ln of what it reached over what a sound group reaches."""

    group: tuple[str, ...]
    rate: float


@dataclass(frozen=True, slots=True)
class Isolation:
    """The faulty ``nodes``, ``links`` (pairs) and ``borders`` (pairs of labels); ``runs`` in order. ``complete``: every
    fault that shows in a group is explained, and what is left ran as a sound group does.
    """

    nodes: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    borders: tuple[tuple[str, str], ...]
    runs: tuple[Run, ...]
    complete: bool

    def as_json(self) -> dict[str, object]:
        """Faults with a reason that programs can read, and how many runs they took."""
        faults = [{"kind": "node", "of": [n]} for n in self.nodes]
        faults += [{"kind": "link", "of": list(ends)} for ends in self.links]
        faults += [{"kind": "border", "of": list(sides)} for sides in self.borders]
        return {"faults": faults, "runs": len(self.runs), "complete": self.complete}


@dataclass
class _Search:
    probe: Probe
    noise: float
    drop: float  # ln of a fault's rate: what tells a slow group from a sound one
    most: int
    labels: Mapping[str, str]
    runs: list[Run] = field(default_factory=list)
    verdicts: dict[frozenset[str], bool] = field(default_factory=dict)

    def slow(self, group: Sequence[str]) -> bool:
        """Whether a group is slow: runs until the odds are SURE (Wald 1945). Each group is asked once."""
        key = frozenset(group)
        if len(key) < 2:
            return False
        if key not in self.verdicts:
            odds, repeats = 0.0, 0
            while abs(odds) < SURE and repeats < MOST_REPEATS and len(self.runs) < self.most:
                rate = self.probe(tuple(group))
                self.runs.append(Run(tuple(group), rate))
                odds += self.drop * (rate - self.drop / 2) / self.noise**2
                repeats += 1
            self.verdicts[key] = odds > 0
        return self.verdicts[key]

    def shortest(self, order: Sequence[str], more: Sequence[str] = ()) -> int:
        """The length of the shortest beginning of ``order`` that is slow together with ``more``; all of it is."""
        low, high = (1 if more else 2) - 1, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            if self.slow([*more, *order[:middle]]):
                high = middle
            else:
                low = middle
        return high

    def in_one_half(self, node: str, sound: Sequence[str]) -> bool:
        """Whether ``node`` is slow with one half of the ``sound`` ones only, as the end of a link is.

        The search for the link's other end asks for the same groups, so that this costs nothing there.
        """
        half = len(sound) // 2
        return half > 0 and not (self.slow([node, *sound[:half]]) and self.slow([node, *sound[half:]]))

    def is_node(self, node: str, partners: Sequence[str]) -> bool:
        """Whether ``node`` is slow with each of several partners alone; a slow link is slow with one only."""
        chosen = [p for p in partners if p != node][:PARTNERS]
        return len(chosen) == PARTNERS and all(self.slow([node, p]) for p in chosen)


def isolate(
    members: Sequence[str],
    probe: Probe,
    *,
    noise: float = 0.02,
    deficit: float = 0.1,
    labels: Mapping[str, str] | None = None,
    most_runs: int = 1000,
) -> Isolation:
    """Find who makes a group of ``members`` slow.

    ``probe`` runs a case over some of them and gives ln(rate / expected), with ``noise`` (a standard deviation).
    A group is as slow as its slowest part. Faults of half ``deficit`` (a share) or less are sound. ``labels``: rack or
    switch of each member, for faults at borders.

    The shortest slow beginning of the members ends in one end of a fault: log2 N runs. That end is a node where it is
    slow with partners of the sound beginning, else the shortest beginning that is slow with it ends in the other end
    of a link: log2 N more. What is known is then kept apart, and the rest is searched again.
    """
    search = _Search(probe, noise, math.log1p(-deficit), most_runs, labels or {})
    nodes: list[str] = []
    links: list[tuple[str, str]] = []
    borders: list[tuple[str, str]] = []
    while len(search.runs) < most_runs:
        group = next((g for g in _apart(members, nodes, links, borders, search.labels) if search.slow(g)), None)
        if group is None:
            return Isolation(tuple(nodes), tuple(links), tuple(borders), tuple(search.runs), complete=True)
        end = search.shortest(group)
        last, before = group[end - 1], group[: end - 1]
        good = before if len(before) > PARTNERS else [m for m in reversed(group) if m not in (*before, last)]
        if not search.in_one_half(last, before) and search.is_node(last, good):
            nodes.append(last)
        elif len(before) == 1 and search.is_node(before[0], good):
            nodes.append(before[0])
        else:
            other = before[search.shortest(before, [last]) - 1]
            border = _border(search, last, other, group)
            if border:
                borders.append(border)
            else:
                links.append((other, last))
    return Isolation(tuple(nodes), tuple(links), tuple(borders), tuple(search.runs), complete=False)


def _border(search: _Search, a: str, b: str, group: Sequence[str]) -> tuple[str, str] | None:
    """The border between the labels of ``a`` and ``b``, where other members of both are slow together too."""
    sides = search.labels.get(a), search.labels.get(b)
    if None in sides or sides[0] == sides[1]:
        return None
    others = [[m for m in group if m not in (a, b) and search.labels.get(m) == side] for side in sides]
    pairs = list(zip(*(o[:PARTNERS] for o in others), strict=False))
    if not pairs or not all(search.slow(pair) for pair in pairs):
        return None
    low, high = sorted((str(sides[0]), str(sides[1])))
    return low, high


def _apart(
    members: Sequence[str],
    nodes: Sequence[str],
    links: Sequence[tuple[str, str]],
    borders: Sequence[tuple[str, str]],
    labels: Mapping[str, str],
) -> list[list[str]]:
    """Groups without any known fault that together have every member that is not known to be faulty."""
    left = [m for m in members if m not in nodes]
    groups: list[list[str]] = []
    while left:
        group: list[str] = []
        for member in left:
            if not any(_between(member, other, links, borders, labels) for other in group):
                group.append(member)
        groups.append(group)
        left = [m for m in left if m not in group]
    # A group of few would not show what its members do with others: it is filled up with those that it may have.
    for group in groups[1:]:
        for member in groups[0]:
            if not any(_between(member, other, links, borders, labels) for other in group):
                group.append(member)
    return groups


def _between(
    a: str,
    b: str,
    links: Sequence[tuple[str, str]],
    borders: Sequence[tuple[str, str]],
    labels: Mapping[str, str],
) -> bool:
    sides = tuple(sorted((labels.get(a, ""), labels.get(b, ""))))
    return (a, b) in links or (b, a) in links or sides in borders
