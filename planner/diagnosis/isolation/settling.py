"""Settle a suspicion (a host, a link, or a border between labels) by runs of two or a few hosts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np

from fleetmark.planner.diagnosis.isolation.panel import SURELY, Group, Panel
from fleetmark.planner.diagnosis.isolation.partners import Fault, Reason
from fleetmark.planner.diagnosis.isolation.search import MOST_REPEATS, between
from fleetmark.planner.diagnosis.isolation.topology import Crossing, Suspects
from fleetmark.planner.diagnosis.robust import missing_share

PARTNERS = 2  # known-good hosts with which a faulty node must be slow, and the ends of a faulty link must be fast


class Settling(Panel):
    """Settle suspicions by runs of two hosts; ``drop`` is ln of the loss of such a run if the suspicion is right."""

    def confirmed(self, members: Suspects, drop: float) -> Fault | None:
        """Return the fault of a host, of a link between two hosts, or of a border, if runs of two hosts show it."""
        if isinstance(members, Crossing):
            return self._across(members, drop)
        if len(members) > 1:
            links = [(members[0], members[1])]
        else:
            lost = self._with_partners(members[0], drop)
            slow = {partner: deficit for partner, deficit in lost.items() if deficit > drop / 2}
            if len(slow) == PARTNERS:
                if self._fast_at_home(members[0], slow, drop):
                    return self._place(members[0], next(iter(slow)), drop)
                return Fault(
                    "node", tuple(members), Reason.ALL_PARTNERS, missing_share(float(np.median(list(slow.values()))))
                )
            links = [(members[0], partner) for partner in slow]
        for one, other in links:
            if (across := self._pair(one, other, drop)) > drop / 2:
                return self._place(one, other, drop) or _link(one, other, across)
        return None

    def with_halves(self, host: str, drop: float) -> Fault | None:
        """Return what slows down a host that is fast with single known-good hosts.

        The host itself is at fault if it is slow with each half of them. Otherwise, its link to a host of one half is
        at fault. Nothing is returned if no host of its place is known to be good, since their uplink may be slow.
        """
        good = self._partners(host)
        if self._mates(host) and not any(self.topology.shared(g, host) for g in good):
            return None
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
                return self._place(host, other, drop) or _link(host, other, across)
        return None

    def _reference(self, group: Group) -> float:
        """Return the rate of a group of known-good hosts."""
        if group not in self.rates:
            self.run(group)
        return self.rate(group)

    def _with_partners(self, host: str, drop: float) -> dict[str, float]:
        """Return ln of the loss of ``host`` with known-good hosts, starting with hosts of its place.

        Runs end when the host is slow or fast with PARTNERS of them.
        """
        lost: dict[str, float] = {}
        for partner in self._partners(host)[: 2 * PARTNERS - 1]:
            lost[partner] = self._pair(host, partner, drop)
            slow = sum(deficit > drop / 2 for deficit in lost.values())
            if PARTNERS in (slow, len(lost) - slow):
                break
        return lost

    def _partners(self, host: str) -> list[str]:
        """Return the known-good hosts without a known fault between them and ``host``, starting with hosts of its
        place.
        """
        good = [g for g in self.base() if g != host and not between(g, host, self.links(), self.borders())]
        return sorted(good, key=lambda g: -self.topology.shared(g, host))

    def _mates(self, host: str) -> list[str]:
        """Return the hosts that share a place with ``host``, whether or not they are known to be good.

        Hosts with the most shared places come first.
        """
        guilty = self.guilty()
        mates = [m for m in self.order if m != host and m not in guilty and self.topology.shared(m, host)]
        return sorted(mates, key=lambda m: -self.topology.shared(m, host))

    def _fast_at_home(self, host: str, lost: Collection[str], drop: float) -> bool:
        """Return whether a host that is slow with ``lost`` is fast with a host of its own place.

        If so, the uplink is at fault.
        """
        mates = self._mates(host)[:PARTNERS]
        return not set(mates) & set(lost) and any(self._pair(host, mate, drop) <= drop / 2 for mate in mates)

    def _pair(self, a: str, b: str, drop: float) -> float:
        """Return ln of the loss of two hosts against two known-good hosts, from runs until the odds are clear."""
        pair = frozenset((a, b))
        groups = [pair] if self.size == len(pair) else [pair, self._two_good(pair)]
        least = 2 if self.size == len(pair) else 1  # a suspicion cannot be settled by the runs that caused it

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

    def _across(self, border: Crossing, drop: float) -> Fault | None:
        """Return the border or uplink that slows down pairs of hosts, which may differ from the given one; None if
        there is none.
        """
        guilty = self.guilty()
        one, other = (next((m for m in self.order if m in side - guilty), "") for side in (border.one, border.other))
        if not one or not other or self._pair(one, other, drop) <= drop / 2:
            return None
        return self._place(one, other, drop)

    def _place(self, a: str, b: str, drop: float) -> Fault | None:
        """Return the border or uplink between two hosts that are slow together, or None if neither is slow.

        Other pairs between the two places are slow too, while hosts of one place are fast together. It is the uplink if
        the host of one place is slow with several other places.
        """
        for label in self.topology.labels:
            sides = self.topology.place(label, a), self.topology.place(label, b)
            if sides[0] is None or sides[1] is None or sides[0] == sides[1]:
                continue
            mates = [self._within(label, host) for host in (a, b)]
            lost = []
            for one, other in zip(*mates, strict=False):
                lost.append(self._pair(one, other, drop))
                if lost[-1] <= drop / 2 or len(lost) == PARTNERS:
                    break
            if not lost or lost[-1] <= drop / 2:
                continue
            if all(self._pair(host, near[0], drop) > drop / 2 for host, near in zip((a, b), mates, strict=True)):
                return None  # hosts of both places are slow among themselves
            for host, side in ((a, sides[0]), (b, sides[1])):
                if left := self._to_others(label, host, sides, drop):
                    missing = missing_share(float(np.median([*lost, *left])))
                    return Fault("border", (side,), Reason.UPLINK, missing, label)
            low, high = sorted((sides[0], sides[1]))
            return Fault("border", (low, high), Reason.ALL_ACROSS, missing_share(float(np.median(lost))), label)
        return None

    def _within(self, label: str, host: str) -> list[str]:
        """Return the other hosts of the place of ``host``.

        Hosts that share the fewest other places with it come first.
        """
        place, guilty = self.topology.place(label, host), self.guilty()
        here = [m for m in self.order if m != host and m not in guilty and self.topology.place(label, m) == place]
        return sorted(here, key=lambda m: self.topology.shared(m, host))

    def _to_others(self, label: str, host: str, but: Collection[str | None], drop: float) -> list[float]:
        """Return ln of the losses of ``host`` with hosts of other places than ``but``, if it is slow with all of them.

        The nearest places by other labels come first.
        """
        guilty = self.guilty()
        others: dict[str, str] = {}
        for other in sorted(self.order, key=lambda m: -self.topology.shared(m, host)):
            place = self.topology.place(label, other)
            if place is not None and place not in but and other not in guilty:
                others.setdefault(place, other)
        lost: list[float] = []
        for other in list(others.values())[:PARTNERS]:
            lost.append(self._pair(host, other, drop))
            if lost[-1] <= drop / 2:
                return []
        return lost


def _topped(others: Sequence[str], size: int, members: Sequence[str]) -> Group:
    """Return ``members`` with as many of ``others`` as needed to reach the size."""
    return frozenset([*members, *(o for o in others if o not in members)][:size])


def _link(a: str, b: str, lost: float) -> Fault:
    return Fault("link", tuple(sorted((a, b))), Reason.ONE_PAIR, missing_share(lost))
