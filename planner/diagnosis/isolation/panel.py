"""Compare groups of hosts of one size with the fastest of them, and fill groups up to that size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np

from fleetmark.planner.diagnosis.isolation.partners import Fault
from fleetmark.planner.diagnosis.isolation.search import MOST_REPEATS, Search, between
from fleetmark.planner.diagnosis.isolation.topology import Crossing, Topology

Group = frozenset[str]
Together = Callable[[tuple[str, ...]], Sequence[float]]

NOISE = 0.02  # minimum standard deviation of a run
UNKNOWN = 0.10  # standard deviation if nothing was run twice
SURE = 4.0  # a group is slow if it is this many standard deviations below the fastest group
LIKELY = math.log(20)  # minimum odds of a group that counts as sound or slow, if runs of two hosts will confirm it
SURELY = math.log(500)  # the same for these runs of two hosts, and if they did not confirm it
PAIR = 2
MEDIAN_DIFFERENCE = 0.954  # the median difference of two normal values, in standard deviations


@dataclass(kw_only=True)
class Panel:
    """The rates of groups and decide which of them are slow; a failed run is minus infinity.

    Rates are oriented logarithms.
    """

    order: Sequence[str]
    together: Together
    least: float  # ln of the relevant loss
    noise: float
    topology: Topology
    limit: int
    rates: dict[Group, list[float]] = field(default_factory=dict)  # one per run
    panel: list[Group] = field(default_factory=list)  # groups of one size, to be compared with each other
    blocks: list[list[str]] = field(default_factory=list)  # the hosts of the panel; empty for a campaign's own groups
    size: int = 0
    sizes: list[int] = field(default_factory=list)  # the hosts that groups may contain
    sound: list[Group] = field(default_factory=list)  # runs of other sizes than the panel's
    faults: list[Fault] = field(default_factory=list)
    open: list[Group] = field(default_factory=list)
    runs: int = 0
    confirming: int = 0  # number of these runs with two hosts, if groups are larger
    named_after: int = 0
    alone_vary: float = (
        0.0  # ratio of the fastest to the slowest healthy host alone, if this variation hides who is slow
    )
    _spread: list[float] = field(default_factory=list)  # differences between repeats of one run

    @property
    def deviation(self) -> float:
        """Return the standard deviation of a run, estimated from repeats if it is not given."""
        if self.noise:
            return self.noise
        least = min(NOISE, self.least / SURE)  # so that the search can detect a smaller loss
        return max(least, float(np.median(self._spread)) / MEDIAN_DIFFERENCE) if self._spread else UNKNOWN

    @property
    def loss(self) -> float:
        """Return ln of the smallest loss that makes a group slow: it is relevant, and larger than the noise."""
        return max(self.least, SURE * self.deviation)

    def run(self, group: Group) -> float:
        """Run a group once more."""
        self.runs += 1
        self.confirming += len(group) == PAIR < self.size
        rate = self._note(self.together(tuple(m for m in self.order if m in group)))
        before = self.rates.setdefault(group, [])
        if before and np.isfinite(before[-1] + rate):
            self._spread.append(abs(rate - before[-1]))
        before.append(rate)
        if len(group) == self.size and group not in self.panel:
            self.panel.append(group)
        return rate

    def _resize(self, size: int) -> None:
        """Compare groups of another size from now on."""
        if self.slow():
            self.sound += self.fast()
        self.size = size
        self.panel = [group for group in self.rates if len(group) == size]

    def _try(self, group: Group) -> None:
        if group not in self.rates:
            self.run(group)

    def _note(self, repeats: Sequence[float]) -> float:
        passed = [r for r in repeats if np.isfinite(r)]
        self._spread += [abs(a - b) for a, b in pairwise(passed)]
        return float(np.median(passed)) if passed and len(passed) == len(repeats) else -math.inf

    def rate(self, group: Group) -> float:
        """Return the centre of all runs of a group so far."""
        return median(self.rates[group])

    def has_enough(self, group: Group) -> bool:
        """Return whether further runs would not make the verdict clearer; the group then counts as whatever is
        likelier.
        """
        return len(self.rates.get(group, ())) > MOST_REPEATS

    def _settle(self) -> None:
        """Repeat groups that may be either sound or slow (Wald's odds), and a single fastest run."""
        for _ in range(MOST_REPEATS):
            near = LIKELY * self.deviation**2 / self.loss
            runnable = [g for g in self.panel if not self.has_enough(g)]
            unclear = [g for g in runnable if abs(self.rate(g) - self._limit(g)) * len(self.rates[g]) < near]
            if not unclear and self.slow():
                fastest = [*self._fastest()]
                unclear = fastest if len(fastest) == 1 == len(self.rates[fastest[0]]) else []
            if not unclear:
                return
            for group in unclear:
                self.run(group)

    def _fastest(self) -> dict[Group, float]:
        """Return the groups of the panel that are about as fast as the fastest one, with their rates."""
        rates = {g: self.rate(g) for g in self.panel}
        top = max(rates.values(), default=-math.inf)
        return {g: r for g, r in rates.items() if r > top - self.loss / 2} if np.isfinite(top) else {}

    def _limit(self, group: Group) -> float:
        """Return the rate below which a group is slow, estimated from the other groups."""
        others = [r for g, r in self._fastest().items() if g != group]
        return float(np.mean(others)) - self.loss / 2 if others else -math.inf

    @property
    def expected(self) -> float:
        """Return the rate of a healthy group of the panel's size."""
        rates = [*self._fastest().values()]
        if not rates:
            return -math.inf
        centre = float(np.mean(rates))
        every = [repeats for g, repeats in self.rates.items() if len(g) == self.size]
        near = [r for repeats in every if abs(median(repeats) - centre) < self.loss / 3 for r in repeats]
        return float(np.mean(near or rates))

    def slow(self) -> list[Group]:
        """Return the groups of the panel that are slower than the fastest, the worst first."""
        fastest = self._fastest()
        limits = {g: self._limit(g) if g in fastest else self.expected - self.loss / 2 for g in self.panel}
        return sorted((g for g, limit in limits.items() if self.rate(g) < limit), key=self.rate)

    def fast(self) -> list[Group]:
        """Return the groups of the panel that are not slow."""
        slow = set(self.slow())
        return [g for g in self.panel if g not in slow] if np.isfinite(self.expected) else []

    def base(self) -> list[str]:
        """Return the hosts that are known to be good: those of fast groups."""
        sound = frozenset().union(*self.fast(), *self.sound) - self.guilty()
        return [m for m in self.order if m in sound]

    def guilty(self) -> set[str]:
        return {f.members[0] for f in self.faults if f.kind == "node"}

    @property
    def blind(self) -> bool:
        """Return whether every run failed, so that no host is known to be sound."""
        return bool(self.panel) and not self.fast()

    def links(self) -> list[tuple[str, str]]:
        return [(f.members[0], f.members[1]) for f in self.faults if f.kind == "link"]

    def borders(self) -> list[Crossing]:
        """Return the borders and uplinks that were named."""
        return [self.topology.crossing(f.label, f.members) for f in self.faults if f.kind == "border"]

    def _against(
        self, drop: float, fill: Callable[[Sequence[str]], Group], sound: Callable[[], float], likely: float = SURELY
    ) -> Search:
        """Return a function that compares groups of hosts with the ``sound`` rate; ``fill`` completes each group.

        Earlier runs are used first.
        """
        used: dict[Group, int] = {}
        filled: dict[tuple[str, ...], Group] = {}

        def probe(members: tuple[str, ...]) -> float:
            group = filled.setdefault(members, fill(members))
            n = used.get(group, 0)
            used[group] = n + 1
            rate = self.rates[group][n] if n < len(self.rates.get(group, ())) else self.run(group)
            return rate - sound()

        return Search(probe=probe, noise=self.deviation, drop=-drop, limit=self.limit, likely=likely)

    def _filled(self, members: Sequence[str], but: Group = frozenset()) -> Group:
        """Return ``members`` with as many other hosts as the size requires.

        Hosts of ``but`` are used only if there are no other hosts. Hosts that ran in a healthy group with many of the
        members come first, so that no other fault is added.
        """
        group, guilty = set(members), self.guilty()
        links, borders = self.links(), self.borders()

        def add(others: Iterable[str]) -> None:
            for other in others:
                if len(group) >= self.size:
                    return
                if other not in group | guilty and not any(between(other, m, links, borders) for m in group):
                    group.add(other)

        sound = self._sound() if self.panel and len(group) < self.size else []
        while sound and len(group) < self.size:
            best = max(sound, key=lambda g: (len(g & group), len(g - but)))
            sound.remove(best)
            add(m for m in self.order if m in best and m not in but)
        good = set(self.base()) if self.panel else set()
        add(sorted(self.order, key=lambda m: (m in but, m not in good)))
        return frozenset(group)

    def _sound(self) -> list[Group]:
        """Return the groups of the panel's size that ran like healthy ones."""
        limit = self.expected - self.loss / 2
        return [g for g in self.rates if len(g) == self.size and self.rate(g) > limit]
