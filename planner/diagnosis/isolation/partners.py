"""Find what slows down pairs of hosts: a host, a link, a border between places, or something that hosts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

import numpy as np

from fleetmark.planner.diagnosis import places
from fleetmark.planner.diagnosis.isolation.topology import Crossing, Labels, Topology
from fleetmark.planner.diagnosis.isolation.unlabelled import components, gathered
from fleetmark.planner.diagnosis.outliers import LARGE
from fleetmark.planner.diagnosis.robust import missing_share

Pair = frozenset[str]
Alone = Callable[[Sequence[str]], Mapping[str, float]]
Together = Callable[[Sequence[Pair]], Mapping[Pair, float]]

SLOW = 2 * LARGE  # minimum lost share of a slow pair or group, unless the user sets another one; the same as for links
LEAST = 0.04  # smallest share that the user may ask for; smaller ones are within the noise of a few runs
PARTNERS = 2  # number of known-good hosts that a suspect is run with
SURE = 4.0  # a pair is slow if its rate is this many standard deviations too low
MOST = 10.0  # ln of the largest gap, used for failed runs
VAGUE = 0.5  # largest detectable loss up to which a search without result is conclusive
BORDER = 2  # minimum number of slow pairs between two places, without a fast one, that make a border
FIRM = 0.75  # share of the relevant loss that a border must lose when it runs again
AGAIN = 8  # maximum number of pairs across a border that run again, and of other pairs that run with them
MEDIAN_ERROR = 1.2533  # standard error of a median, relative to that of a mean


class Reason(StrEnum):
    """The symptom of a fault, for programs."""

    INTRA_HOST = "slow-alone"  # slow over the host's own loopback
    ALL_PARTNERS = "slow-with-every-known-good-partner"
    ONE_PAIR = "slow-between-two-hosts-that-are-fast-with-others"
    ALL_ACROSS = "every-pair-across-the-border-is-slow"
    UPLINK = "every-pair-that-leaves-the-place-is-slow"
    UNLABELLED = "slow-with-others-but-not-with-each-other"


@dataclass(frozen=True, slots=True)
class Fault:
    """A faulty node, link or border, or something faulty that several hosts share (``kind``).

    - ``members``: the host of a node, the two hosts of a link, the two places of a border, the place with a slow
      uplink, or the hosts that share something without a label
    - ``deficit``: the missing share of performance, 1 if runs failed
    - ``label``: the kind of the places
    """

    kind: str
    members: tuple[str, ...]
    reason: Reason
    deficit: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The result of a search.

    ``faults`` lists the worst first. ``runs`` is the number of pairs and single hosts that were run; ``all_pairs`` and
    ``bisection`` give the same for those methods. ``open`` lists slow pairs or groups that no fault explains.
    """

    faults: tuple[Fault, ...]
    hosts: int
    runs: int
    open: tuple[Pair, ...]
    alone: int = 0  # number of hosts that ran alone, if ``runs`` counts only groups
    _: KW_ONLY
    confirming: int = 0  # number of those runs with two hosts, if groups are larger
    named_after: int = 0  # number of group runs until the last fault was named
    blind: bool = False  # every run failed, so there was nothing to compare with
    visible: float = 0.0  # smallest detectable loss, given the variation between runs of the same hosts
    alone_vary: float = 0.0  # ratio of the fastest to the slowest healthy host alone, if this variation hid who is slow
    alike: bool = False  # all groups were equally fast, and no label locates a fault that all of them contain

    @property
    def unclear(self) -> bool:
        """Return whether the search was inconclusive: no fault was named, and runs vary too much to rule faults out."""
        return not self.faults and self.visible > VAGUE

    @property
    def all_pairs(self) -> int:
        return self.hosts * (self.hosts - 1) // 2

    @property
    def bisection(self) -> int:
        """Return the runs that plain bisection needs per fault: 2 log2 N, and two for confirmation."""
        return (2 * int(np.ceil(np.log2(max(2, self.hosts)))) + 2) * max(1, len(self.faults))


def isolate(
    measured: Mapping[Pair, float],
    alone: Alone,
    together: Together,
    *,
    deficit: float,
    noise: float = 0.0,
    labels: Labels | None = None,
) -> Suspicion:
    """Find the hosts, links and borders that make pairs slow; rates are oriented logarithms, minus infinity if a run
    failed.

    - ``measured``: the rates of the campaign's pairs
    - ``alone``, ``together``: functions that run single hosts and pairs
    - ``deficit``: the share of loss that makes a pair slow, if it exceeds SURE times ``noise``
    - ``noise``: the standard deviation of a pair's rate
    - ``labels``: the place of each host by label: rack, switch

    A host that is fast with any partner is sound. The other hosts first run alone, at the same time as healthy hosts.
    If a host loses at least half as much alone as in pairs, the fault is in the host itself. The rest run with PARTNERS
    known-good hosts each.

    Borders and uplinks that the pair model finds slow (``places``) run again first, so that hosts behind a slow uplink
    are not blamed. If no host of a place is fast, its hosts first run with each other. If these runs are fast, the
    uplink is at fault.

    A slow pair of two healthy hosts runs once more and is then a link, or a border if no pair across it is fast. The
    expected rate of a pair is estimated near the best quarter of the rates.

    If hosts are slow with all others but fast with each other, the fault is in something that they share.
    """
    loss = max(-float(np.log1p(-deficit)), SURE * noise)
    hosts = sorted(frozenset().union(*measured))
    topology = Topology(labels or {}, hosts)
    search = _Borders(
        topology=topology,
        rates=dict(measured),
        together=together,
        least=FIRM * -float(np.log1p(-deficit)),
        noise=noise,
    )
    search.confirm()
    faults, runs, rates = search.faults, search.runs, search.rates
    expected = float(np.quantile(list(rates.values()), 0.75))
    limit = expected - loss
    fast, slow = _sorted(rates, limit)
    sound = sorted(frozenset().union(*fast))
    suspects = [h for h in hosts if h not in sound]
    good = _usable(sound, slow)
    if suspects:
        by_host = alone([*suspects, *good[:PARTNERS]])
        runs += len(by_host)
        gaps = {s: expected - max(r for p, r in rates.items() if s in p) for s in suspects}
        faults += _by_themselves(by_host, gaps, good[:PARTNERS], loss)
    guilty = {f.members[0] for f in faults if f.kind == "node"}
    left = [s for s in suspects if s not in guilty]
    neighbours = _neighbours(left, set(hosts) - set(left) - guilty, topology)
    if neighbours:  # an uplink makes every host of its place slow with other places, but not with each other
        rates |= (again := together(neighbours))
        runs += len(again)
        fast, slow = _sorted(rates, limit)
        near = frozenset().union(*(p for p in neighbours if rates.get(p, -np.inf) >= limit))
        left = [s for s in left if s not in near]
    if left:
        wanted = [frozenset((s, g)) for n, s in enumerate(left) for g in _turned(good, n)[:PARTNERS]]
        rates |= (again := together(wanted))
        runs += len(again)
        fast, slow = _sorted(rates, limit)
    for host in left:
        confirmed = [rates[p] for g in good if (p := frozenset((host, g))) in rates]
        if confirmed and max(confirmed) < limit:
            faults.append(
                Fault("node", (host,), Reason.ALL_PARTNERS, missing_share(expected - float(np.median(confirmed))))
            )
    guilty |= {f.members[0] for f in faults if f.kind == "node"}
    unexplained = [p for p in slow if not p & guilty]
    again = together(unexplained) if unexplained else {}
    runs += len(again)
    links = [p for p in unexplained if again.get(p, rates[p]) < limit]
    faults += _links(links, {p: again.get(p, rates[p]) for p in links}, fast, expected, topology)
    unlabelled = _Unlabelled(hosts=hosts, faults=faults, rates={**rates, **again}, together=together, limit=limit)
    faults = unlabelled.gather(expected)
    runs += unlabelled.runs
    faults.sort(key=lambda f: -f.deficit)
    unclear = tuple(p for p in unexplained if p not in links)
    return Suspicion(tuple(faults), len(hosts), runs, unclear, visible=missing_share(loss))


@dataclass(kw_only=True)
class _Borders:
    """Run slow borders and uplinks again, and add their loss to the rates of the pairs across them.

    ``least`` is ln of the smallest loss that counts; ``noise`` is the standard deviation of a pair's rate.
    """

    topology: Topology
    rates: dict[Pair, float]
    together: Together
    least: float
    noise: float
    faults: list[Fault] = field(default_factory=list)
    runs: int = 0

    def confirm(self) -> None:
        for label in self.topology.labels:
            for border in self._slow(label):
                lost = self._again(border)
                if lost is None:
                    continue
                reason = Reason.ALL_ACROSS if len(border.places) > 1 else Reason.UPLINK
                self.faults.append(Fault("border", border.places, reason, missing_share(lost), label))
                for pair in self.rates:
                    self.rates[pair] += lost if border.crossed_by(pair) else 0.0

    def _slow(self, label: str) -> list[Crossing]:
        """Return the borders and uplinks that are slow by the pair model."""
        place_of = self.topology.labels[label]
        names = sorted(set(place_of.values()))
        pairs = [tuple(sorted(p)) for p, rate in self.rates.items() if np.isfinite(rate) and len(p) == PARTNERS]
        numbers = {host: number for number, host in enumerate(sorted({h for p in pairs for h in p}))}
        place = np.array([names.index(place_of[h]) if h in place_of else -1 for h in numbers], dtype=np.int64)
        a, b = (np.array([numbers[p[end]] for p in pairs], dtype=np.int64) for end in (0, 1))
        values = np.array([self.rates[frozenset(p)] for p in pairs])
        two = label not in places.APART
        borders = places.slow_borders(a, b, values, place, two=two) if pairs else []
        return [self.topology.crossing(label, [names[n] for n in f.places]) for f in borders if f.shift >= self.least]

    def _again(self, border: Crossing) -> float | None:
        """Return ln of the loss of pairs across a border in new runs, or None if they are not certainly slow.

        These pairs are compared with pairs across other borders, or within places if there is no other border.
        """
        across = [p for p in sorted(self.rates, key=sorted) if border.crossed_by(p)]
        rest = [p for p in sorted(self.rates, key=sorted) if p not in across]
        between = [p for p in rest if self.topology.shared(*p) == 0]
        chosen = [_spread(across), _spread(between if len(between) >= BORDER else rest)]
        again = self.together([*chosen[0], *chosen[1]])
        self.runs += len(again)
        slow, usual = ([again[p] for p in pairs if np.isfinite(again.get(p, -np.inf))] for pairs in chosen)
        if min(len(slow), len(usual)) < BORDER:
            return None
        lost = float(np.median(usual) - np.median(slow))
        error = MEDIAN_ERROR * self.noise * float(np.sqrt(1 / len(slow) + 1 / len(usual)))
        return lost if lost >= max(self.least, SURE * error) else None


@dataclass(kw_only=True)
class _Unlabelled:
    """Among the faults of nodes and links, find hosts that share something slow; ``limit`` is ln of a fast rate."""

    hosts: Sequence[str]
    faults: list[Fault]
    rates: dict[Pair, float]
    together: Together
    limit: float
    runs: int = 0

    def gather(self, expected: float) -> list[Fault]:
        """Return the faults, with the faults of hosts that share something merged into one.

        ``expected`` is the rate of a healthy pair.
        """
        nodes = {f.members[0] for f in self.faults if f.reason is Reason.ALL_PARTNERS}
        if sum(f.reason in (Reason.ALL_PARTNERS, Reason.ONE_PAIR) for f in self.faults) < BORDER:
            return self.faults
        alone = {f.members[0] for f in self.faults if f.reason is Reason.INTRA_HOST}
        hosts = [h for h in self.hosts if h not in alone]
        fast = [p for p, rate in self.rates.items() if rate >= self.limit and len(p) == PARTNERS and not p & alone]
        _, *small = components(hosts, fast)
        by_first = {c[0]: c for c in small if len(c) > 1 or c[0] in nodes}
        joined = gathered(list(by_first), self._fast_with)
        single = by_first.keys() - {first for firsts in joined for first in firsts}
        sets = [
            {h for first in firsts for h in by_first[first]} for firsts in (*joined, *([s] for s in sorted(single)))
        ]
        for members in sets:
            others = [h for h in hosts if h not in members | nodes]
            if len(members) > 1 and (lost := self._lost(members, others, expected)) is not None:
                self.faults = [f for f in self.faults if not _explained(f, members)]
                share = missing_share(lost)
                self.faults.append(Fault("shared", tuple(sorted(members)), Reason.UNLABELLED, share))
        return self.faults

    def _fast_with(self, host: str, others: Sequence[str]) -> list[str]:
        again = self._run([frozenset((host, other)) for other in others])
        return [other for other in others if again.get(frozenset((host, other)), -np.inf) >= self.limit]

    def _lost(self, members: set[str], others: Sequence[str], expected: float) -> float | None:
        """Return ln of the loss of pairs between two sets of hosts, or None unless nearly all such pairs are slow."""
        across = [frozenset((one, other)) for one in sorted(members) for other in others]
        known = {p: self.rates[p] for p in across if p in self.rates}
        known |= self._run(_spread([p for p in across if p not in known]))
        slow = [rate for rate in known.values() if rate < self.limit]
        if len(slow) < max(BORDER, places.SLOW * len(known)):
            return None
        return expected - float(np.median(slow))

    def _run(self, pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        again = self.together(pairs) if pairs else {}
        self.runs += len(again)
        return again


def _explained(fault: Fault, members: set[str]) -> bool:
    """Return whether something that hosts share explains a fault of one of them, or of a link to another host."""
    inside = len(members.intersection(fault.members))
    return inside == 1 and fault.reason in (Reason.ALL_PARTNERS, Reason.ONE_PAIR)


def _spread(pairs: Sequence[Pair]) -> list[Pair]:
    """Return up to AGAIN of the pairs, evenly spread over the list."""
    if not pairs:
        return []
    return [pairs[n] for n in np.unique(np.linspace(0, len(pairs) - 1, min(AGAIN, len(pairs))).round().astype(int))]


def _sorted(rates: Mapping[Pair, float], limit: float) -> tuple[list[Pair], list[Pair]]:
    order = sorted(rates, key=sorted)
    return [p for p in order if rates[p] >= limit], [p for p in order if rates[p] < limit]


def _usable(sound: Iterable[str], slow: Sequence[Pair]) -> list[str]:
    """Return the healthy hosts, starting with those with the fewest slow pairs."""
    return sorted(sound, key=lambda host: (sum(host in pair for pair in slow), host))


def _turned(good: list[str], turns: int) -> list[str]:
    """Return the list rotated by some positions, so that suspects do not all wait for the same partner."""
    start = PARTNERS * turns % max(1, len(good))
    return good[start:] + good[:start]


def _by_themselves(
    rates: Mapping[str, float], gaps: Mapping[str, float], good: Sequence[str], loss: float
) -> list[Fault]:
    """Return the suspects with a loss when run alone that explains the ``gaps`` of their pairs.

    The loss must exceed the normal variation between healthy hosts. A loopback that varies under load does not explain
    a slow port.
    """
    usual = [rates[g] for g in good if g in rates]
    if not usual:
        return []
    expected = float(np.median(usual))
    lost = {s: expected - rates[s] for s in gaps if s in rates}
    return [
        Fault("node", (s,), Reason.INTRA_HOST, missing_share(loss_of_host))
        for s, loss_of_host in lost.items()
        if loss_of_host - (expected - min(usual)) >= max(loss, min(gaps[s], MOST) / 2)
    ]


def _neighbours(left: Sequence[str], sound: set[str], topology: Topology) -> list[Pair]:
    """Return pairs of suspects, as neighbours in a ring, for each place that has no healthy host."""
    members: dict[tuple[str, str], list[str]] = {}
    for label, place_of in topology.labels.items():
        known = {place_of.get(host) for host in sound}
        for host in left:
            if host in place_of and place_of[host] not in known:
                members.setdefault((label, place_of[host]), []).append(host)
    return list(
        dict.fromkeys(
            frozenset((one, other))
            for hosts in members.values()
            if len(hosts) > 1
            for one, other in zip(hosts, hosts[1:] + hosts[:1], strict=True)
        )
    )


def _links(
    pairs: Sequence[Pair], rates: Mapping[Pair, float], fast: Sequence[Pair], expected: float, topology: Topology
) -> list[Fault]:
    """Return slow pairs of healthy hosts as uplinks, borders or links.

    They are an uplink if all pairs that leave a place are slow, and a border if all pairs across it are slow. Other
    pairs are links.
    """
    left, faults = list(pairs), []
    for label, place_of in topology.labels.items():
        crossed = {_border(pair, place_of) for pair in fast}
        across: dict[tuple[str, ...], list[Pair]] = {}
        for pair in left:
            if len(border := _border(pair, place_of)) == PARTNERS and border not in crossed:
                across.setdefault(border, []).append(pair)
        uplinks = {(p,): [b for b in across if p in b] for p in sorted({p for border in across for p in border})}
        for places_of, borders in [*uplinks.items(), *((b, [b]) for b in list(across))]:
            slow = [pair for border in borders for pair in across.get(border, [])]
            is_uplink = len(places_of) == 1
            lone = sum(border in across for border in borders) < BORDER or any(
                places_of[0] in b for b in crossed if len(b) > 1
            )
            if len(slow) < BORDER or (is_uplink and lone):
                continue
            for border in borders:
                across.pop(border, None)
            left = [pair for pair in left if pair not in slow]
            missing = missing_share(expected - float(np.median([rates[p] for p in slow])))
            reason = Reason.UPLINK if is_uplink else Reason.ALL_ACROSS
            faults.append(Fault("border", places_of, reason, missing, label))
    return faults + [Fault("link", tuple(sorted(p)), Reason.ONE_PAIR, missing_share(expected - rates[p])) for p in left]


def _border(pair: Pair, place_of: Mapping[str, str]) -> tuple[str, ...]:
    """Return the two places of a pair, or fewer if both are equal or a host has no place."""
    sides = {place_of.get(host, "") for host in pair}
    return tuple(sorted(sides)) if "" not in sides else ()
