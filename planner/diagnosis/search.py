"""Who makes a group slow: adaptive group tests that find nodes, links and borders in few runs, under noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Probe = Callable[[tuple[str, ...]], float]
LIKELY = math.log(50)  # odds at which a group counts as sound or slow
SURE = math.log(100)  # the same where a node is named by it
HALVES = 2  # in a row that must be slow before a node is thought of, not a link
MOST_REPEATS = 6  # of one group, until it counts as what is likelier
UPPER = 0.6  # where beginnings are split: nodes lie half below 0.5, the later ends of links half below 0.7
PARTNERS = 2  # with which a node must fail, each alone, before it is named


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a ``group``: ``rate``, ln of what it reached over what a sound group reaches."""

    group: tuple[str, ...]
    rate: float


@dataclass(frozen=True, slots=True)
class Isolation:
    """The faulty ``nodes``, ``links`` (pairs) and ``borders`` (pairs of labels); ``runs`` in order. ``complete``: every
    fault that shows in a group is explained, and what is left ran as a sound group does. ``named_after``: how many
    runs had named the last of them; the others showed that nothing else is slow.
    """

    nodes: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    borders: tuple[tuple[str, str], ...]
    runs: tuple[Run, ...]
    complete: bool
    named_after: int = 0

    def as_json(self) -> dict[str, object]:
        """Faults with a reason that programs can read, and how many runs they took."""
        faults = [{"kind": "node", "of": [n]} for n in self.nodes]
        faults += [{"kind": "link", "of": list(ends)} for ends in self.links]
        faults += [{"kind": "border", "of": list(sides)} for sides in self.borders]
        return {"faults": faults, "runs": len(self.runs), "named_after": self.named_after, "complete": self.complete}


@dataclass
class Search:
    """Verdicts on groups, each run until the odds are clear. ``least``: members of the smallest group that runs."""

    probe: Probe
    noise: float
    drop: float  # ln of a fault's rate: what tells a slow group from a sound one
    most: int
    labels: Mapping[str, str]
    least: int = 2
    likely: float = LIKELY
    runs: list[Run] = field(default_factory=list)
    odds: dict[frozenset[str], tuple[float, int]] = field(default_factory=dict)  # and how many runs they come from
    sound: list[frozenset[str]] = field(default_factory=list)
    bad: list[frozenset[str]] = field(default_factory=list)

    def known(self, key: frozenset[str]) -> bool | None:
        """What earlier runs say of a group: parts of a sound group are sound, and what holds a slow one is slow."""
        if len(key) < self.least or any(key <= group for group in self.sound):
            return False
        return True if any(group <= key for group in self.bad) else None

    def slow(self, group: Sequence[str], sure: float = 0.0) -> bool:
        """Whether a group is slow: runs until the odds are ``sure`` (Wald 1945). What is known is not run again."""
        key = frozenset(group)
        known = self.known(key) if sure <= self.likely else None
        sure = max(sure, self.likely)
        if known is not None:
            return known
        odds, repeats = self.odds.get(key, (0.0, 0))
        while abs(odds) < sure and repeats < MOST_REPEATS and len(self.runs) < self.most:
            rate = self.probe(tuple(group))
            self.runs.append(Run(tuple(group), rate))
            odds += self.drop * (rate - self.drop / 2) / self.noise**2
            repeats += 1
        self.odds[key] = odds, repeats
        for verdicts in (self.bad, self.sound):
            if key in verdicts:  # more runs may have turned it
                verdicts.remove(key)
        (self.bad if odds > 0 else self.sound).append(key)
        return odds > 0

    def shortest(self, order: Sequence[str], more: Sequence[str] = ()) -> int:
        """The length of the shortest beginning of ``order`` that is slow together with ``more``; all of it is.

        Of a link the later end counts, so that without ``more`` the answer is likelier in the upper part.
        """
        low, high = (1 if more else self.least) - 1, len(order)
        for group in self.sound:
            if group.issuperset(more):
                length = next((n for n, member in enumerate(order) if member not in group), len(order))
                low = max(low, min(length, high - 1))
        while high - low > 1:
            middle = (low + high) // 2 if more else round(low + UPPER * (high - low))
            middle = min(max(middle, low + 1), high - 1)
            if self.slow([*more, *order[:middle]]):
                high = middle
            else:
                low = middle
        return high

    def in_one_part(self, node: str, sound: Sequence[str]) -> bool:
        """Whether ``node`` is slow with a part of the ``sound`` ones only, as the end of a link is.

        The search for the link's other end asks for the first halves too, so that they cost nothing there.
        """
        part = len(sound)
        for _ in range(HALVES):
            part //= 2
            if part and not self.slow([node, *sound[:part]]):
                return True
        return part > 0 and not self.slow([node, *sound[part:]])

    def is_node(self, node: str, partners: Sequence[str], enough: int = PARTNERS) -> bool:
        """Whether ``node`` is slow with each of several partners alone; a slow link is slow with one only."""
        chosen = [p for p in partners if p != node][-enough:]
        return len(chosen) == enough and all(self.slow([node, p], SURE) for p in chosen)


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
    search = Search(probe, noise, math.log1p(-deficit), most_runs, labels or {})
    nodes: list[str] = []
    links: list[tuple[str, str]] = []
    borders: list[tuple[str, str]] = []
    named_after = 0

    def result(complete: bool) -> Isolation:
        return Isolation(tuple(nodes), tuple(links), tuple(borders), tuple(search.runs), complete, named_after)

    while len(search.runs) < most_runs:
        group = next((g for g in apart(members, nodes, links, borders, search.labels) if search.slow(g)), None)
        if group is None:
            return result(complete=True)
        end = search.shortest(group)
        last, before = group[end - 1], group[: end - 1]
        good = before if len(before) > PARTNERS else [m for m in reversed(group) if m not in (*before, last)]
        split = len(before) >> HALVES > 0  # then it is slow with two separate parts of the sound ones already
        if not search.in_one_part(last, before) and search.is_node(last, good, 1 if split else PARTNERS):
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
        named_after = len(search.runs)
    return result(complete=False)


def _border(search: Search, a: str, b: str, group: Sequence[str]) -> tuple[str, str] | None:
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


def apart(
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
