"""Who makes a case over several hosts slow: groups of one size are held against the fastest of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from planner.diagnosis.design import choose
from planner.diagnosis.panel import PAIR, Group, Together
from planner.diagnosis.partners import Fault, Reason, Suspicion
from planner.diagnosis.posterior import Posterior
from planner.diagnosis.search import MOST_REPEATS, apart
from planner.diagnosis.settling import PARTNERS, Settling, share

Alone = Callable[[Sequence[str]], Mapping[str, float]]

PARTS = 4  # into which the hosts are cut: every two of the parts have to run together
CUTS = (2, 4, 8)  # of the hosts that run together: every second, fourth or eighth
MOST_OF = 0.7  # of what a slow group loses: noise may have made it more
SUSPECT = 0.0  # ln of the odds of a fault, at which runs of two hosts settle it: they then say as much as a group can
RATHER = math.log(1 / 2)  # the same of a border, which three pairs settle
FAILS = math.log(2)  # what tells a run that fails from one that is slow
MOST_RUNS = 500
OTHERS = 8  # groups without a suspect that say how fast a sound one is
MOST_LOOKED = 100  # of them for one fault: the first of four links among 512 hosts takes up to 80
MORE = 0.05  # how likely there is another fault, for it to be looked for before others run
NONE = 0.01  # the same where all runs were alike: they may all have been slow
LITTLE, ENOUGH = 0.02, 0.6  # bits of a run: not worth its while; no other size is looked at
NEW = 0.35  # bits that the first run of another size costs


def isolate(
    measured: Mapping[Group, Sequence[float]],
    members: Sequence[str],
    alone: Alone,
    together: Together,
    *,
    deficit: float,
    noise: float = 0.0,
    labels: Mapping[str, str] | None = None,
    most_runs: int = MOST_RUNS,
) -> Suspicion:
    """Find who makes groups of ``members`` slow. Rates are oriented logarithms; a run that failed is minus infinity.

    ``measured``: groups of one size, as a campaign has them, each with the rates of its repeats. ``alone`` runs hosts
    by themselves, and gives nothing where the workload has no such case. ``together`` runs a group once: a rate for
    each repeat. ``deficit``: the share that makes a group slow, where it is beyond SURE times ``noise``, the deviation
    of a run (0: as repeats say). ``labels``: rack or switch of each host.

    How fast a sound group is depends on its size, and nobody knows it: runs of one size are held against each other.
    Every set of up to four hosts and links, and every border, has its odds by all runs so far; the next group is the
    one whose run says most by them. Who is suspected is settled by runs of two hosts: a node is slow with each of two
    known-good ones, a link is two hosts that are slow together, a border a link with others across. The worst faults
    are looked for first, and last those who have not run in a sound group. Where all that was measured failed, it is
    asked who makes it fail: a run that passes is sound, however fast.
    """
    labels = labels or {}
    order = sorted(members, key=lambda m: labels.get(m, ""))
    if measured and not np.isfinite(np.concatenate(list(measured.values()))).any():
        together = partial(_passed, together)
    hunt = _Hunt(order, together, -math.log1p(-deficit), noise, dict(labels), most_runs)
    by_host = alone(order)
    hunt.compare(measured)
    hunt.by_themselves(by_host)
    hunt.search()
    faults = sorted(hunt.faults, key=lambda f: -f.deficit)
    return Suspicion(
        tuple(faults),
        len(order),
        hunt.runs,
        tuple(hunt.open),
        len(by_host),
        hunt.confirming,
        hunt.named_after,
        hunt.blind,
        share(hunt.loss),
        hunt.alone_vary,
    )


class _Hunt(Settling):
    """The search: what is compared, what is suspect, who is named."""

    def compare(self, measured: Mapping[Group, Sequence[float]]) -> None:
        """Find groups of one size of which one is faster than another: those of the campaign, else parts of all."""
        if len(measured) > 1:
            self.rates |= {group: [self._note(repeats)] for group, repeats in measured.items()}
            self.panel, self.size = list(measured), len(next(iter(measured)))
            self.sizes = [self.size]
            self._settle()
            if self.slow() or len(self.panel) > PARTNERS:
                return
        if len(self.order) <= PARTNERS:
            return
        few = len(self.order) < 2 * PARTS
        self.blocks = _cut(self.order, len(self.order) if few else PARTS)
        self.sizes = [PAIR] if few else [s for s in (len(self.order) // cut for cut in CUTS) if s >= PAIR]
        self._resize(self.sizes[0])
        posterior = self._posterior(frozenset(), self.loss)
        while not self.slow() and posterior.more([]) > NONE and self.runs < self.limit:
            if not self._step(posterior):
                return

    def by_themselves(self, rates: Mapping[str, float]) -> None:
        """Name the hosts that are slow alone by so much that it explains the slow groups they are in, beyond what sound
        hosts differ by."""
        slow = self.slow()
        if not slow or not rates:
            return
        gap = self.expected - self.rate(slow[0])
        sound = set(self.base())
        good = [rate for host, rate in rates.items() if host in sound and np.isfinite(rate)]
        if not good:
            return
        usual = float(np.median(good))
        for host in self.order:
            lost = usual - rates.get(host, usual)
            if host in sound or not any(host in g for g in slow) or lost < max(self.loss, gap / 2):
                continue
            if lost - (usual - min(good)) >= max(self.loss, gap / 2):
                self._name(Fault("node", (host,), Reason.INTRA_HOST, share(lost)))
            else:  # sound hosts are as slow by themselves: it says nothing
                self.alone_vary = math.exp(max(good) - min(good))

    def _name(self, fault: Fault) -> Fault:
        """The fault as it is named: a host that is slow with two others, each alone, is no link."""
        shared = [f for f in self.faults if f.kind == fault.kind == "link" and set(f.members) & set(fault.members)]
        if shared:
            (host, *_) = set(shared[0].members) & set(fault.members)
            self.faults = [f for f in self.faults if f not in shared]
            fault = Fault("node", (host,), Reason.ALL_PARTNERS, fault.deficit)
        self.faults.append(fault)
        self.named_after = self.runs - self.confirming
        return fault

    def search(self) -> None:
        """Name faults until every host and, in parts of all hosts, every two blocks ran as sound ones do."""
        while self.runs < self.limit:
            left = [g for g in self.slow() if not self._explained(g) and g not in self.open]
            if not left:
                if not self._cover():
                    return
            elif not self._look(left[0]):
                if len(self.rates[left[0]]) > 1:
                    self.open.append(left[0])
                else:  # it may have been slow by noise
                    self.run(left[0])

    def _cover(self) -> bool:
        """Run hosts together that have not been in a sound group yet. Whether there were any."""
        if not self.fast():
            return False
        if self.size != self.sizes[0]:
            self._resize(self.sizes[0])
        before = self.runs
        for part in self._uncovered():
            for half in self._without(part):
                if half and not self._covered(half):
                    self._try(self._filled(half))
        self._settle()
        return self.runs > before

    def _uncovered(self) -> list[list[str]]:
        """Suspects that have to run together: every two blocks, or who is in no sound group of the campaign."""
        guilty = self.guilty()
        if self.blocks:
            both = [[*self.blocks[a], *self.blocks[b]] for a, b in combinations(range(len(self.blocks)), 2)]
            return [[m for m in half if m not in guilty] for half in both]
        sound = frozenset().union(*self._sound())
        left = [m for m in self.order if m not in sound | guilty]
        parts = [left[start : start + self.size] for start in range(0, len(left), self.size)]
        return parts + [[m for m in self.order if m in group and m not in guilty] for group in self.slow()]

    def _without(self, part: Sequence[str]) -> list[list[str]]:
        """``part`` without a known fault: in groups that together have everybody."""
        if self.pairs("border"):
            return apart(part, self.pairs("link"), self.pairs("border"), self.labels)
        here = set(part)
        links = [link for link in self.pairs("link") if here.issuperset(link)]
        ways = [{link[end] for link in links} for end in ((0, 1) if links else (0,))]
        return [[m for m in part if m not in barred] for barred in ways]

    def _covered(self, members: Sequence[str]) -> bool:
        """Whether every two of these hosts ran together in a sound group."""
        together = (
            np.eye(len(members), dtype=bool) if len(members) > 1 else np.zeros((len(members), len(members)), dtype=bool)
        )
        for group in self._sound():
            here = np.array([m in group for m in members])
            together |= here[:, None] & here
        return bool(together.all())

    def _sound(self) -> list[Group]:
        """Groups that ran as sound ones do: none with a known fault, which may be as fast as any of their size."""
        return [group for group in super()._sound() if not self._explained(group)]

    def _explained(self, group: Group) -> bool:
        """Whether a fault is named that this group has."""
        sides = {self.labels.get(m) for m in group}
        return (
            not self.guilty().isdisjoint(group)
            or any(group.issuperset(link) for link in self.pairs("link"))
            or any(sides.issuperset(border) for border in self.pairs("border"))
        )

    def _look(self, slow: Group) -> bool:
        """Name the faults that make ``slow`` so slow, wherever they are. Whether there was one."""
        gap = self.expected - self.rate(slow)
        drop = max(self.loss, MOST_OF * gap) if np.isfinite(gap) else FAILS
        posterior = self._posterior(slow, drop)
        before, limit = len(self.faults), self.runs + MOST_LOOKED
        refuted: list[tuple[str, ...]] = []
        settled: list[tuple[str, ...]] = []
        while self.runs < min(self.limit, limit):
            known = [f.members for f in self.faults if f.kind != "border"]
            suspects, odds = posterior.likeliest([*known, *settled])
            if odds > (RATHER if suspects in posterior.borders else SUSPECT):
                settled.append(suspects)
                if suspects not in posterior.borders and not self.guilty().isdisjoint(suspects):  # its host is named
                    continue
                fault = self.across(suspects, drop) if suspects in posterior.borders else self.confirmed(suspects, drop)
                if fault is None or set(fault.members) != set(suspects):
                    posterior.settle(suspects, fault=False)
                    refuted.append(suspects)
                if fault is not None and not any(
                    (f.kind, set(f.members)) == (fault.kind, set(fault.members)) for f in self.faults
                ):
                    named = self._name(fault)
                    limit = self.runs + MOST_LOOKED
                    if named.kind == "border" or named is not fault:
                        break
                    posterior.settle(fault.members, fault=True)
            elif posterior.more(known) < MORE or not self._step(posterior):
                break
        if len(self.faults) == before:
            for suspects in refuted:
                if len(suspects) == 1 and (fault := self.with_halves(suspects[0], drop)):
                    self._name(fault)
                    break
        return len(self.faults) > before

    def _step(self, posterior: Posterior) -> bool:
        """Run the group that says most; False where none says anything. Another size costs a run to know it."""
        best: tuple[float, list[str]] = (LITTLE, [])
        for size in sorted(self.sizes, key=lambda s: s != self.size):
            members, bits = choose(posterior, size, self._barred())
            worth = bits - (0.0 if size in posterior.sizes_run() or size == self.size else NEW)
            if len(members) == size and worth > best[0] and len(self.rates.get(frozenset(members), ())) < MOST_REPEATS:
                best = worth, members
            if best[0] > ENOUGH:
                break
        if not best[1]:
            return False
        if len(best[1]) != self.size:
            self._resize(len(best[1]))
        group = frozenset(best[1])
        posterior.learn(group, self.run(group))
        return True

    def _posterior(self, slow: Group, drop: float) -> Posterior:
        """What runs say so far, but for those that a known fault made slow."""
        base = set(self.base()) if not self.blocks else set()
        suspects = [m for m in self.order if m not in self.guilty() and (m in slow or m not in base)]
        posterior = Posterior(self.order, suspects, drop, self.deviation, self.labels)
        for border in self.pairs("border"):
            posterior.beside(border)
        beside = 0  # groups of others, which only say how fast a sound one is
        for group, rates in self.rates.items():
            if len(group) in self.sizes and not self._explained(group):
                beside += group.isdisjoint(suspects)
                if beside < OTHERS or not group.isdisjoint(suspects):
                    for rate in rates:
                        posterior.learn(group, rate)
        return posterior

    def _barred(self) -> list[set[str]]:
        """Hosts that a group must not have, so that no known fault makes it slow: of links the one end or the other."""
        ways = []
        for end in (0, 1):
            barred = set(self.guilty())
            for link in self.pairs("link"):
                barred.add(link[end])
            for border in self.pairs("border"):
                barred |= {m for m in self.order if self.labels.get(m) == border[end]}
            ways.append(barred)
        return ways


def _passed(together: Together, group: tuple[str, ...]) -> list[float]:
    """What ``together`` gives of a group, where only failures count."""
    return [0.0 if np.isfinite(rate) else -math.inf for rate in together(group)]


def _cut(order: Sequence[str], parts: int) -> list[list[str]]:
    """``order`` in so many blocks of neighbours, the longest first."""
    return [[str(m) for m in block] for block in np.array_split(np.array(order, dtype=object), parts)]
