"""Runs of two hosts, or of few, that settle a suspicion: a host, a link, or a border between labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from planner.diagnosis.panel import SURELY, Group, Panel
from planner.diagnosis.partners import Fault, Reason
from planner.diagnosis.search import MOST_REPEATS, between

PARTNERS = 2  # known-good hosts, each alone, with which a node is slow, and the end of a link is fast


class Settling(Panel):
    """What runs of two hosts say of who is suspected. ``drop``: ln of what such a run loses where it is so."""

    def confirmed(self, members: Sequence[str], drop: float) -> Fault | None:
        """The fault of a host, or of a link between two, where runs of two hosts show it."""
        if len(members) > 1:
            links = [(members[0], members[1])]
        else:
            lost = self._with_partners(members[0], drop)
            slow = {partner: by for partner, by in lost.items() if by > drop / 2}
            if len(slow) == PARTNERS:
                return Fault("node", tuple(members), Reason.ALL_PARTNERS, share(float(np.median(list(slow.values())))))
            links = [(members[0], partner) for partner in slow]
        for one, other in links:
            if (across := self._pair(one, other, drop)) > drop / 2:
                return self._border(one, other, drop) or _link(one, other, across)
        return None

    def with_halves(self, host: str, drop: float) -> Fault | None:
        """What makes a host slow that is fast with single known-good ones: itself, where it is slow with each half of
        them; else the link to one of a half."""
        good = [g for g in self.base() if g != host and not self._apart(g, host)]
        size = min(len(good), self.size) // 2
        if size < PARTNERS:
            return None
        halves = good[:size], good[size : 2 * size]
        slow = []
        for half, rest in (halves, halves[::-1]):
            search = self._against(drop, partial(_topped, rest, size), partial(self._reference, frozenset(rest)))
            if search.slow([host, *half[: size - 1]]):
                slow.append((search, half[: size - 1]))
        if len(slow) == len(halves):
            return Fault("node", (host,), Reason.ALL_PARTNERS, share(drop))
        for search, half in slow:
            other = half[search.shortest(half, [host]) - 1]
            if (across := self._pair(host, other, drop)) > drop / 2:
                return self._border(host, other, drop) or _link(host, other, across)
        return None

    def _reference(self, group: Group) -> float:
        """What a group of known-good hosts reaches."""
        if group not in self.rates:
            self.run(group)
        return self.rate(group)

    def _with_partners(self, host: str, drop: float) -> dict[str, float]:
        """ln of what ``host`` loses with known-good hosts, those of its label first, until it is slow or fast with
        PARTNERS of them."""
        good = sorted(
            (g for g in self.base() if g != host and not self._apart(g, host)),
            key=lambda g: self.labels.get(g) != self.labels.get(host),
        )
        lost: dict[str, float] = {}
        for partner in good[: 2 * PARTNERS - 1]:
            lost[partner] = self._pair(host, partner, drop)
            slow = sum(by > drop / 2 for by in lost.values())
            if PARTNERS in (slow, len(lost) - slow):
                break
        return lost

    def _apart(self, a: str, b: str) -> bool:
        return between(a, b, self.pairs("link"), self.pairs("border"), self.labels)

    def _pair(self, a: str, b: str, drop: float) -> float:
        """ln of what two hosts lose against two that are known to be good, run until the odds are clear."""
        pair = frozenset((a, b))
        groups = [pair] if self.size == len(pair) else [pair, self._two_good(pair)]
        least = 2 if self.size == len(pair) else 1  # what made it suspect does not settle it

        def lost() -> float:
            sound = self.expected if len(groups) == 1 else self._reference(groups[1])
            return sound - self._reference(pair)

        for _ in range(MOST_REPEATS):
            loss = lost()
            variance = self.deviation**2 * sum(1 / len(self.rates[g]) for g in groups)
            clear = not np.isfinite(loss) or drop * abs(loss - drop / 2) > SURELY * variance
            if clear and len(self.rates[pair]) >= least:
                break
            fewest = min(groups, key=lambda g: len(self.rates[g]))
            if self.has_enough(fewest):
                break
            self.run(fewest)
        return lost()

    def _two_good(self, but: Group) -> Group:
        """Two known-good hosts of one fast group."""
        sound, guilty = (self.fast() or self.sound)[0], self.guilty()
        good = [m for m in self.order if m in sound and m not in but and m not in guilty]
        return frozenset(good[-2:])

    def across(self, border: tuple[str, ...], drop: float) -> Fault | None:
        """The border, where the first hosts of its two sides are slow together, and others are too."""
        guilty = self.guilty()
        sides = [[m for m in self.order if self.labels.get(m) == side and m not in guilty] for side in border]
        one, other = sides[0][0], sides[1][0]
        return self._border(one, other, drop) if self._pair(one, other, drop) > drop / 2 else None

    def _border(self, a: str, b: str, drop: float) -> Fault | None:
        """The border between the labels of two hosts, where others across are slow too."""
        sides = self.labels.get(a), self.labels.get(b)
        if None in sides or sides[0] == sides[1]:
            return None
        others = [
            [m for m in self.order if m not in (a, b, *self.guilty()) and self.labels.get(m) == side] for side in sides
        ]
        lost = []
        for one, other in zip(*(o[:PARTNERS] for o in others), strict=False):
            lost.append(self._pair(one, other, drop))
            if lost[-1] <= drop / 2:
                return None
        if not lost:
            return None
        low, high = sorted((str(sides[0]), str(sides[1])))
        return Fault("border", (low, high), Reason.ALL_ACROSS, share(float(np.median(lost))))


def _topped(others: Sequence[str], size: int, members: Sequence[str]) -> Group:
    """``members``, and as many of ``others`` as the size needs."""
    return frozenset([*members, *(o for o in others if o not in members)][:size])


def _link(a: str, b: str, lost: float) -> Fault:
    return Fault("link", tuple(sorted((a, b))), Reason.ONE_PAIR, share(lost))


def share(lost: float) -> float:
    return float(-np.expm1(-lost))
