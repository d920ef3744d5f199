"""Find the hosts that slow down a case over several hosts: groups of one size are compared with the fastest of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from fleetmark.planner.diagnosis.isolation.design import choose
from fleetmark.planner.diagnosis.isolation.panel import PAIR, Group, Together
from fleetmark.planner.diagnosis.isolation.partners import Fault, Reason, Suspicion
from fleetmark.planner.diagnosis.isolation.posterior import Posterior
from fleetmark.planner.diagnosis.isolation.search import MOST_REPEATS, apart
from fleetmark.planner.diagnosis.isolation.settling import PARTNERS, Settling
from fleetmark.planner.diagnosis.isolation.topology import Crossing, Labels, Suspects, Topology
from fleetmark.planner.diagnosis.isolation.unlabelled import components, gathered
from fleetmark.planner.diagnosis.robust import missing_share

Alone = Callable[[Sequence[str]], Mapping[str, float]]

PARTS = 4  # number of blocks of hosts; every two blocks must run together
CUTS = (2, 4, 8)  # fractions of hosts that ran together: every second, fourth or eighth
MOST_OF = 0.7  # share of a slow group's loss that counts, since noise may have increased the loss
SUSPECT = 0.0  # minimum ln of the odds of a fault for settling it by runs of two hosts; larger groups add nothing
RATHER = math.log(1 / 2)  # minimum ln of the odds of a border for settling it by three pairs
FAILS = math.log(2)  # threshold between a failed run and a slow one
MOST_RUNS = 500
OTHERS = 8  # number of groups without a suspect that show the rate of a healthy group
MOST_LOOKED = 100  # maximum runs for one fault: the first of four links among 512 hosts takes up to 80
MORE = 0.05  # minimum probability of another fault for searching it before other hosts run
NONE = 0.01  # the same if all runs were equally fast, since all of them may have been slow
LITTLE, ENOUGH = 0.02, 0.6  # information of a run in bits: too little to run it; enough to try no other size
NEW = 0.35  # cost in bits of the first run of a new size


def isolate(
    measured: Mapping[Group, Sequence[float]],
    members: Sequence[str],
    alone: Alone,
    together: Together,
    *,
    deficit: float,
    noise: float = 0.0,
    labels: Labels | None = None,
    most_runs: int = MOST_RUNS,
) -> Suspicion:
    """Find the hosts, links and borders that make groups of ``members`` slow.

    Rates are oriented logarithms; a failed run is minus infinity.

    - ``measured``: the campaign's groups of one size, each with the rates of its repeats
    - ``alone``: runs hosts one by one; it returns nothing if the workload has no such case
    - ``together``: runs a group once and returns a rate for each repeat
    - ``deficit``: the share of loss that makes a group slow, if it exceeds SURE times ``noise``
    - ``noise``: the standard deviation of a run; 0 means that it is estimated from repeats
    - ``labels``: the place of each host by label: rack, switch

    The rate of a healthy group depends on its size and is unknown, so runs of one size are compared with each other.
    All runs so far determine the odds of every set of up to four hosts and links, of every border and of every uplink.
    The next group is the one with the most informative run.

    Runs of two hosts settle a suspicion. A node is slow with each of two known-good hosts, and with hosts of its own
    place. A link is two hosts that are slow together. A border is at fault if other links between the same two places
    are slow. An uplink is at fault if links to several places are slow. If slow nodes are fast with each other, the
    fault is in something that they share. The worst faults come first.

    If all measured runs failed, the search is for the hosts that cause the failure; every run that passes then counts
    as sound.
    """
    topology = Topology(labels or {}, members)
    order = sorted(members, key=topology.position)
    if measured and not np.isfinite(np.concatenate(list(measured.values()))).any():
        together = partial(_passed, together)
    hunt = _Hunt(
        order=order,
        together=together,
        least=-math.log1p(-deficit),
        noise=noise,
        topology=topology,
        limit=most_runs,
    )
    by_host = alone(order)
    hunt.compare(measured)
    hunt.by_themselves(by_host)
    hunt.search()
    hunt.gather()
    faults = sorted(hunt.faults, key=lambda f: -f.deficit)
    return Suspicion(
        tuple(faults),
        len(order),
        hunt.runs,
        tuple(hunt.open),
        len(by_host),
        confirming=hunt.confirming,
        named_after=hunt.named_after,
        blind=hunt.blind,
        visible=missing_share(hunt.loss),
        alone_vary=hunt.alone_vary,
        alike=not faults and len(measured) > 1 and not any(topology.labels.values()),
    )


class _Hunt(Settling):
    """Run the search; it holds the comparison, the suspects and the named faults."""

    def compare(self, measured: Mapping[Group, Sequence[float]]) -> None:
        """Find groups of one size with different rates: the campaign's groups, or else parts of all hosts."""
        if len(measured) > 1:
            self.rates |= {group: [self._note(repeats)] for group, repeats in measured.items()}
            self.panel, self.size = list(measured), len(next(iter(measured)))
            self.sizes = [self.size]
            self._leave_out()
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

    def _leave_out(self) -> None:
        """Run groups within places until each border and uplink that all groups of the campaign cross is avoided by
        at least one group.

        If all groups cross a slow border, they are equally slow, and no comparison between them shows it.
        """
        crossed = [c for c in self.topology.crossings() if all(c.crossed_by(group) for group in self.panel)]
        near = [self.order[n : n + self.size] for n in range(0, len(self.order) - self.size + 1, self.size)]
        while crossed:
            best = min(near, key=lambda group: sum(c.crossed_by(group) for c in crossed))
            left = [c for c in crossed if c.crossed_by(best)]
            if len(left) == len(crossed):
                return
            self._try(frozenset(best))
            crossed = left

    def by_themselves(self, rates: Mapping[str, float]) -> None:
        """Name hosts with a loss when run alone that explains the slow groups containing them.

        The loss must exceed the normal variation between healthy hosts.
        """
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
                self._name(Fault("node", (host,), Reason.INTRA_HOST, missing_share(lost)))
            else:  # healthy hosts alone are equally slow, so this explains nothing
                self.alone_vary = math.exp(max(good) - min(good))

    def _name(self, fault: Fault) -> Fault:
        """Return the fault to name: a node fault, not a link fault, if a host is slow with each of two others."""
        shared = [f for f in self.faults if f.kind == fault.kind == "link" and set(f.members) & set(fault.members)]
        if shared:
            (host, *_) = set(shared[0].members) & set(fault.members)
            self.faults = [f for f in self.faults if f not in shared]
            fault = Fault("node", (host,), Reason.ALL_PARTNERS, fault.deficit)
        self.faults.append(fault)
        self.named_after = self.runs - self.confirming
        return fault

    def search(self) -> None:
        """Name faults until every host ran in a healthy group; with parts of all hosts, until every two blocks did."""
        while self.runs < self.limit:
            left = [g for g in self.slow() if not self._explained(g) and g not in self.open]
            if not left:
                if not self._cover():
                    return
            elif not self._look(left[0]):
                if len(self.rates[left[0]]) > 1:
                    self.open.append(left[0])
                else:  # noise may have made the group slow
                    self.run(left[0])

    def gather(self) -> None:
        """Merge the faults of nodes that are fast with each other into one fault of something that they share."""
        nodes = {f.members[0]: f.deficit for f in self.faults if f.reason is Reason.ALL_PARTNERS}
        if len(nodes) < PAIR:
            return
        least = min(nodes.values())
        drop = max(self.loss, MOST_OF * -math.log1p(-least)) if least < 1 else FAILS

        def fast_with(host: str, others: Sequence[str]) -> list[str]:
            return [other for other in others if self._pair(host, other, drop) <= drop / 2]

        sets = gathered(list(nodes), fast_with)
        fast = [frozenset(ends) for group in self._sound() for ends in pairwise(sorted(group))] if sets else []
        # Groups of hosts that are fast among themselves.
        ran = [part for part in components(self.order, fast) if len(part) > 1][:OTHERS]
        for members in sets:
            deficit = float(np.median([nodes[m] for m in members]))
            near = fast_with(members[0], [part[0] for part in ran])
            hosts = {*members, *(host for part in ran if part[0] in near for host in part)}
            self.faults = [f for f in self.faults if not (f.kind == "node" and f.members[0] in members)]
            self.faults.append(Fault("shared", tuple(sorted(hosts)), Reason.UNLABELLED, deficit))

    def _cover(self) -> bool:
        """Run hosts together that have not been in a healthy group yet, and return whether there were any."""
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
        """Return suspects that must run together: every two blocks, or hosts that are in no healthy group of the
        campaign.
        """
        guilty = self.guilty()
        if self.blocks:
            both = [[*self.blocks[a], *self.blocks[b]] for a, b in combinations(range(len(self.blocks)), 2)]
            return [[m for m in half if m not in guilty] for half in both]
        sound = frozenset().union(*self._sound())
        left = [m for m in self.order if m not in sound | guilty]
        parts = [left[start : start + self.size] for start in range(0, len(left), self.size)]
        return parts + [[m for m in self.order if m in group and m not in guilty] for group in self.slow()]

    def _without(self, part: Sequence[str]) -> list[list[str]]:
        """Return ``part`` without known faults, as groups that together contain every host."""
        if borders := self.borders():
            return apart(part, self.links(), borders)
        here = set(part)
        links = [link for link in self.links() if here.issuperset(link)]
        ways = [{link[end] for link in links} for end in ((0, 1) if links else (0,))]
        return [[m for m in part if m not in barred] for barred in ways]

    def _covered(self, members: Sequence[str]) -> bool:
        """Return whether every two of these hosts ran together in a healthy group."""
        together = (
            np.eye(len(members), dtype=bool) if len(members) > 1 else np.zeros((len(members), len(members)), dtype=bool)
        )
        for group in self._sound():
            here = np.array([m in group for m in members])
            together |= here[:, None] & here
        return bool(together.all())

    def _sound(self) -> list[Group]:
        """Return the groups that ran like healthy ones, without groups that contain a known fault."""
        return [group for group in super()._sound() if not self._explained(group)]

    def _explained(self, group: Group) -> bool:
        """Return whether the group contains a named fault."""
        return (
            not self.guilty().isdisjoint(group)
            or any(group.issuperset(link) for link in self.links())
            or any(border.crossed_by(group) for border in self.borders())
        )

    def _look(self, slow: Group) -> bool:
        """Name all faults that slow down the group ``slow``, and return whether there was one."""
        gap = self.expected - self.rate(slow)
        drop = max(self.loss, MOST_OF * gap) if np.isfinite(gap) else FAILS
        posterior = self._posterior(slow, drop)
        before, limit = len(self.faults), self.runs + MOST_LOOKED
        refuted: list[Suspects] = []
        settled: list[Suspects] = []
        while self.runs < min(self.limit, limit):
            known = [f.members for f in self.faults if f.kind != "border"]
            suspects, odds = posterior.likeliest([*known, *settled])
            if odds > (RATHER if isinstance(suspects, Crossing) else SUSPECT):
                settled.append(suspects)
                if not isinstance(suspects, Crossing) and not self.guilty().isdisjoint(suspects):  # its host is named
                    continue
                fault = self.confirmed(suspects, drop)
                if fault is None or not _is(fault, suspects):
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
            for (host,) in (s for s in refuted if not isinstance(s, Crossing) and len(s) == 1):
                if fault := self.with_halves(host, drop):
                    self._name(fault)
                    break
        return len(self.faults) > before

    def _step(self, posterior: Posterior) -> bool:
        """Run the most informative group, or return False if none is informative. A new size costs a run to learn its
        rate.
        """
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
        """Return the posterior given the runs so far, without runs that a known fault made slow."""
        base = set(self.base()) if not self.blocks else set()
        suspects = [m for m in self.order if m not in self.guilty() and (m in slow or m not in base)]
        posterior = Posterior(self.order, suspects, drop, self.deviation, self.topology.crossings())
        for border in self.borders():
            posterior.know_border(border)
        reference_groups = 0  # other groups only show the rate of a healthy group
        for group, rates in self.rates.items():
            if len(group) in self.sizes and not self._explained(group):
                reference_groups += group.isdisjoint(suspects)
                if reference_groups < OTHERS or not group.isdisjoint(suspects):
                    for rate in rates:
                        posterior.learn(group, rate)
        return posterior

    def _barred(self) -> list[set[str]]:
        """Return two sets of hosts to exclude, so that no known fault slows a group; each has one end of every faulty
        link.
        """
        ways = []
        for end in (0, 1):
            barred = set(self.guilty())
            for link in self.links():
                barred.add(link[end])
            for border in self.borders():
                barred |= border.other if end else border.one
            ways.append(barred)
        return ways


def _is(fault: Fault, suspects: Suspects) -> bool:
    """Return whether a fault is the suspected one."""
    if isinstance(suspects, Crossing):
        return (fault.label, fault.members) == (suspects.label, suspects.places)
    return fault.kind != "border" and set(fault.members) == set(suspects)


def _passed(together: Together, group: tuple[str, ...]) -> list[float]:
    """Return the rates of a group from ``together``, if only failures count."""
    return [0.0 if np.isfinite(rate) else -math.inf for rate in together(group)]


def _cut(order: Sequence[str], parts: int) -> list[list[str]]:
    """Return ``order`` as ``parts`` consecutive blocks, the longest first."""
    return [[str(m) for m in block] for block in np.array_split(np.array(order, dtype=object), parts)]
