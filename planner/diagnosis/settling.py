"""Settle a suspicion by runs of two or a few hosts: a host, a link, or a border between labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from fleetmark.planner.diagnosis.panel import SURELY, Group, Panel
from fleetmark.planner.diagnosis.partners import Fault, Reason
from fleetmark.planner.diagnosis.robust import missing_share
from fleetmark.planner.diagnosis.search import MOST_REPEATS, between

PARTNERS = 2  # number of known-good hosts with which a node must be slow, or the end of a link fast


class Settling(Panel):
    """Settle suspicions by runs of two hosts; ``drop`` is ln of the loss of such a run if the suspicion is right."""

    def confirmed(self, members: Sequence[str], drop: float) -> Fault | None:
        """Return the fault of a host, or of a link between two hosts, if runs of two hosts show it."""
        if len(members) > 1:
            links = [(members[0], members[1])]
        else:
            lost = self._with_partners(members[0], drop)
            slow = {partner: deficit for partner, deficit in lost.items() if deficit > drop / 2}
            if len(slow) == PARTNERS:
                return Fault(
                    "node", tuple(members), Reason.ALL_PARTNERS, missing_share(float(np.median(list(slow.values()))))
                )
            links = [(members[0], partner) for partner in slow]
        for one, other in links:
            if (across := self._pair(one, other, drop)) > drop / 2:
                return self._border(one, other, drop) or _link(one, other, across)
        return None

    def with_halves(self, host: str, drop: float) -> Fault | None:
        """Return what slows a host that is fast with single known-good hosts.

        It is the host itself if it is slow with each half of them, or else its link to a host of one half.
        """
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
            return Fault("node", (host,), Reason.ALL_PARTNERS, missing_share(drop))
        for search, half in slow:
            other = half[search.shortest(half, [host]) - 1]
            if (across := self._pair(host, other, drop)) > drop / 2:
                return self._border(host, other, drop) or _link(host, other, across)
        return None

    def _reference(self, group: Group) -> float:
        """Return the rate of a group of known-good hosts."""
        if group not in self.rates:
            self.run(group)
        return self.rate(group)

    def _with_partners(self, host: str, drop: float) -> dict[str, float]:
        """Return ln of the loss of ``host`` with known-good hosts, those with its label first.

        Runs end when the host is slow or fast with PARTNERS of them.
        """
        good = sorted(
            (g for g in self.base() if g != host and not self._apart(g, host)),
            key=lambda g: self.labels.get(g) != self.labels.get(host),
        )
        lost: dict[str, float] = {}
        for partner in good[: 2 * PARTNERS - 1]:
            lost[partner] = self._pair(host, partner, drop)
            slow = sum(deficit > drop / 2 for deficit in lost.values())
            if PARTNERS in (slow, len(lost) - slow):
                break
        return lost

    def _apart(self, a: str, b: str) -> bool:
        return between(a, b, self.pairs("link"), self.pairs("border"), self.labels)

    def _pair(self, a: str, b: str, drop: float) -> float:
        """Return ln of the loss of two hosts against two known-good hosts, from runs until the odds are clear."""
        pair = frozenset((a, b))
        groups = [pair] if self.size == len(pair) else [pair, self._two_good(pair)]
        least = 2 if self.size == len(pair) else 1  # the runs that caused the suspicion cannot settle it

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
        """Return two known-good hosts of one fast group."""
        sound, guilty = (self.fast() or self.sound)[0], self.guilty()
        good = [m for m in self.order if m in sound and m not in but and m not in guilty]
        return frozenset(good[-2:])

    def across(self, border: tuple[str, ...], drop: float) -> Fault | None:
        """Return the border if the first hosts of both sides and other pairs across it are slow."""
        guilty = self.guilty()
        sides = [[m for m in self.order if self.labels.get(m) == side and m not in guilty] for side in border]
        one, other = sides[0][0], sides[1][0]
        return self._border(one, other, drop) if self._pair(one, other, drop) > drop / 2 else None

    def _border(self, a: str, b: str, drop: float) -> Fault | None:
        """Return the border between the labels of two hosts, if other pairs across it are slow too."""
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
        return Fault("border", (low, high), Reason.ALL_ACROSS, missing_share(float(np.median(lost))))


def _topped(others: Sequence[str], size: int, members: Sequence[str]) -> Group:
    """Return ``members`` with as many of ``others`` as the size requires."""
    return frozenset([*members, *(o for o in others if o not in members)][:size])


def _link(a: str, b: str, lost: float) -> Fault:
    return Fault("link", tuple(sorted((a, b))), Reason.ONE_PAIR, missing_share(lost))
