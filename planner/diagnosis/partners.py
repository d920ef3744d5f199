"""Find what slows pairs of hosts: a host alone, a host with every partner, a link, or a border between labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fleetmark.planner.diagnosis.robust import missing_share

Pair = frozenset[str]
Alone = Callable[[Sequence[str]], Mapping[str, float]]
Together = Callable[[Sequence[Pair]], Mapping[Pair, float]]

PARTNERS = 2  # number of known-good hosts that a suspect is run with
SURE = 4.0  # standard deviations of a pair's rate from which the pair is slow
MOST = 10.0  # ln of the largest gap, used for failed runs
VAGUE = 0.5  # maximum smallest detectable loss; above it, a search without result is inconclusive
BORDER = 2  # minimum number of slow pairs between two labels, without a fast one, that make a border


class Reason(StrEnum):
    """Name how a fault shows, for programs."""

    INTRA_HOST = "slow-alone"  # over its own loopback
    ALL_PARTNERS = "slow-with-every-known-good-partner"
    ONE_PAIR = "slow-between-two-hosts-that-are-fast-with-others"
    ALL_ACROSS = "every-pair-across-the-border-is-slow"
    UPLINK = "every-pair-that-leaves-the-place-is-slow"


@dataclass(frozen=True, slots=True)
class Fault:
    """A faulty node, link or border (``kind``).

    ``members``: the host of a node, the two hosts of a link, the two labels of a border, or the label whose
    uplink is slow. ``deficit``: the missing
    share of performance, 1 if runs failed.
    """

    kind: str
    members: tuple[str, ...]
    reason: Reason
    deficit: float


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Hold the result of a search.

    ``faults`` lists the worst first. ``runs`` is the number of pairs and single hosts that were run; ``all_pairs`` and
    ``bisection`` give the same for those methods. ``open`` lists slow pairs or groups that no fault explains.
    """

    faults: tuple[Fault, ...]
    hosts: int
    runs: int
    open: tuple[Pair, ...]
    alone: int = 0  # hosts that ran alone, if ``runs`` counts only groups
    confirming: int = 0  # number of those runs with two hosts, if groups are larger
    named_after: int = 0  # number of group runs until the last fault was named
    blind: bool = False  # every run failed, so there was nothing to compare with
    visible: float = 0.0  # smallest detectable loss, given the variation between runs of the same hosts
    alone_vary: float = 0.0  # ratio of the fastest to the slowest sound host alone, if it hid who is slow

    @property
    def unclear(self) -> bool:
        """Return whether the search was inconclusive: nobody was named, and runs vary too much to name anybody."""
        return not self.faults and self.visible > VAGUE

    @property
    def all_pairs(self) -> int:
        return self.hosts * (self.hosts - 1) // 2

    @property
    def bisection(self) -> int:
        """Return the runs that plain bisection takes for each fault: 2 log2 N, and two for confirmation."""
        return (2 * int(np.ceil(np.log2(max(2, self.hosts)))) + 2) * max(1, len(self.faults))


def isolate(
    measured: Mapping[Pair, float],
    alone: Alone,
    together: Together,
    *,
    deficit: float,
    noise: float = 0.0,
    labels: Mapping[str, str] | None = None,
) -> Suspicion:
    """Find the hosts, links and borders that make pairs slow; rates are oriented logarithms, minus infinity if a run
    failed.

    - ``measured``: the rates of the campaign's pairs
    - ``alone``, ``together``: functions that run single hosts and pairs
    - ``deficit``: the share of loss that makes a pair slow, if it exceeds SURE times ``noise``
    - ``noise``: the standard deviation of a pair's rate
    - ``labels``: the rack or switch of each host

    A host that is fast with any partner is sound. The other hosts first run alone, at the same time as sound hosts. A
    host that loses at least half as much alone as in pairs is slow by itself. The rest run with PARTNERS known-good
    hosts each.

    If no host of a label is fast, its hosts first run with each other: where they are fast, it is the uplink.

    A slow pair of two sound hosts runs once more and is then a link, or a border if no pair across it is fast. The
    expected rate of a pair is near the best quarter.
    """
    expected = float(np.quantile(list(measured.values()), 0.75))
    loss = max(-float(np.log1p(-deficit)), SURE * noise)
    limit = expected - loss
    rates = dict(measured)
    fast, slow = _sorted(rates, limit)
    hosts = sorted(frozenset().union(*rates))
    sound = sorted(frozenset().union(*fast))
    suspects = [h for h in hosts if h not in sound]
    faults: list[Fault] = []
    runs = 0
    good = _usable(sound, slow)
    if suspects:
        by_host = alone([*suspects, *good[:PARTNERS]])
        runs += len(by_host)
        gaps = {s: expected - max(r for p, r in rates.items() if s in p) for s in suspects}
        faults += _by_themselves(by_host, gaps, good[:PARTNERS], loss)
    guilty = {f.members[0] for f in faults}
    left = [s for s in suspects if s not in guilty]
    neighbours = _neighbours(left, set(hosts) - set(left) - guilty, labels or {})
    if neighbours:  # an uplink makes every host of its place slow with others, but not with each other
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
    guilty |= {f.members[0] for f in faults}
    unexplained = [p for p in slow if not p & guilty]
    again = together(unexplained) if unexplained else {}
    runs += len(again)
    links = [p for p in unexplained if again.get(p, rates[p]) < limit]
    faults += _links(links, {p: again.get(p, rates[p]) for p in links}, fast, expected, labels or {})
    faults.sort(key=lambda f: -f.deficit)
    unclear = tuple(p for p in unexplained if p not in links)
    return Suspicion(tuple(faults), len(hosts), runs, unclear, visible=missing_share(loss))


def _sorted(rates: Mapping[Pair, float], limit: float) -> tuple[list[Pair], list[Pair]]:
    order = sorted(rates, key=sorted)
    return [p for p in order if rates[p] >= limit], [p for p in order if rates[p] < limit]


def _usable(sound: Iterable[str], slow: Sequence[Pair]) -> list[str]:
    """Return the sound hosts, those with the fewest slow pairs first."""
    return sorted(sound, key=lambda host: (sum(host in pair for pair in slow), host))


def _turned(good: list[str], turns: int) -> list[str]:
    """Return the list rotated by some places, so that suspects do not all wait for the same partner."""
    start = PARTNERS * turns % max(1, len(good))
    return good[start:] + good[:start]


def _by_themselves(
    rates: Mapping[str, float], gaps: Mapping[str, float], good: Sequence[str], loss: float
) -> list[Fault]:
    """Return the suspects whose loss alone explains the ``gaps`` of their pairs.

    The loss must exceed the normal variation between sound hosts, since a loopback that varies under load does not
    explain a slow port.
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


def _neighbours(left: Sequence[str], sound: set[str], labels: Mapping[str, str]) -> list[Pair]:
    """Return pairs of suspects with one label of which no host is sound: neighbours in a ring."""
    known = {labels.get(host, "") for host in sound}
    members: dict[str, list[str]] = {}
    for host in left:
        if labels.get(host) and labels[host] not in known:
            members.setdefault(labels[host], []).append(host)
    return list(
        dict.fromkeys(
            frozenset((one, other))
            for hosts in members.values()
            if len(hosts) > 1
            for one, other in zip(hosts, hosts[1:] + hosts[:1], strict=True)
        )
    )


def _links(
    pairs: Sequence[Pair], rates: Mapping[Pair, float], fast: Sequence[Pair], expected: float, labels: Mapping[str, str]
) -> list[Fault]:
    """Return slow pairs of sound hosts: as an uplink if all pairs that leave a label are slow, as a border if all
    pairs across it are, else as links.
    """
    across: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        across.setdefault(_border(pair, labels), []).append(pair)
    crossed = {_border(pair, labels) for pair in fast}
    slow_borders = [b for b in across if len(b) == 2 and b not in crossed]
    faults = []
    for place in sorted({place for border in slow_borders for place in border}):
        borders = [b for b in slow_borders if place in b]
        left_by = sum(len(across[b]) for b in borders)
        if len(borders) < BORDER or left_by < BORDER or any(len(b) == 2 and place in b for b in crossed):
            continue
        lost = [expected - rates[p] for b in borders for p in across.pop(b)]
        slow_borders = [b for b in slow_borders if b not in borders]
        faults.append(Fault("border", (place,), Reason.UPLINK, missing_share(float(np.median(lost)))))
    for border, slow_pairs in across.items():
        if len(border) == 2 and len(slow_pairs) >= BORDER and border not in crossed:
            missing = missing_share(expected - float(np.median([rates[p] for p in slow_pairs])))
            faults.append(Fault("border", border, Reason.ALL_ACROSS, missing))
        else:
            faults += [
                Fault("link", tuple(sorted(p)), Reason.ONE_PAIR, missing_share(expected - rates[p])) for p in slow_pairs
            ]
    return faults


def _border(pair: Pair, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the two labels of a pair; fewer if they are equal or a host has no label."""
    sides = {labels.get(host, "") for host in pair}
    return tuple(sorted(sides)) if "" not in sides else ()
