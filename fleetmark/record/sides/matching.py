"""Match sides before comparing them: within strata if they mix machine sizes, and on request without some hosts."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Candidate, Comparison, Side, among_many
from fleetmark.planner.equivalence import Equivalence
from fleetmark.planner.guardrail import judged_together
from fleetmark.planner.peers import Outlier, outliers
from fleetmark.planner.remarks import of_hosts
from fleetmark.planner.strata import Part, hosts_of, joined_parts, named, refused
from fleetmark.record.select import Machine
from fleetmark.record.sides.same_size import conditions
from fleetmark.record.sides.strata import Places, Sizes, Strata

MOST_STRATA = 4  # maximum number of strata named in a sentence
Drop = Mapping[str, Collection[str]]  # side title -> names of excluded machines
Build = Callable[[Mapping[str, Sequence[Machine]], Mapping[str, str]], Mapping[str, Side]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Compare sides, within strata if they differ in size.

    ``pooled``: compares sides without strata; ``build``: reads sides of selected machines; ``host_labels``: the label
    that identifies a host, by side; ``chosen`` and ``names``: the machines of each side and their names; ``sizes``:
    None if sides are not matched by size; ``effects``: filled with how far each sentence's subject moves the result, as
    a logarithm; ``narrowed``: filled, by the titles of the two sides, with the conditions that select their one size.
    """

    pooled: Callable[[Side, Sequence[Side]], Comparison]
    build: Build
    host_labels: Mapping[str, str]
    chosen: Mapping[str, Sequence[Machine]]
    names: Mapping[tuple[str, str], str]
    sizes: Sizes | None
    effects: dict[str, float] = field(default_factory=dict)
    narrowed: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def compare(self, base: Side, rest: Sequence[Side], drop: Drop | None = None) -> Comparison:
        """Return every side in ``rest`` compared with ``base``, within strata if the sides mix sizes.

        Warnings about strata come first. ``drop``: machines to exclude from strata; ``base`` and
        ``rest`` already exclude them.
        """
        result = self.pooled(base, rest)
        warnings: dict[str, None] = {}
        alike: dict[str, None] = {}
        candidates = []
        for side, pool in zip(rest, result.candidates, strict=True):
            candidate, sentences, of_strata = self._within(base, side, pool, drop or {})
            candidates.append(candidate)
            warnings |= dict.fromkeys(sentences)
            alike |= dict.fromkeys([*of_hosts(base.title, side.title, candidate.classes), *of_strata])
        return replace(result, candidates=candidates, warnings=[*warnings, *result.warnings, *alike])

    def unlike(self, side: Side) -> list[Outlier]:
        """Return the hosts of a side that differ from their peers, which are the hosts of the same size."""
        if self.sizes is None:
            return outliers(side)
        matches = []
        for machines in self.sizes.groups(side.title):
            peers = side.means.index.isin([self.names[m.campaign, m.host] for m in machines])
            matches += outliers(replace(side, means=side.means[peers]))
        return sorted(matches, key=lambda o: (-abs(o.deviation), o.host))

    def reduced(self, side: Side, drop: Drop) -> Side:
        """Return ``side`` without the machines in ``drop``."""
        out = set(drop.get(side.title, ()))
        if not out:
            return side
        chosen = self.chosen[side.title]
        places = [n for n, m in enumerate(chosen) if self.names[m.campaign, m.host] not in out]
        if self.host_labels.get(side.title) == "host":
            left = None if side.machines is None else side.machines[side.machines["record"].isin(places)]
            return replace(without(side, out), machines=left)
        built = self.build({side.title: [chosen[n] for n in places]}, self.host_labels)[side.title]
        positions = None if built.machines is None else built.machines["record"].map(dict(enumerate(places)))
        return built if built.machines is None else replace(built, machines=built.machines.assign(record=positions))

    def _within(
        self, base: Side, other: Side, pool: Candidate, drop: Drop
    ) -> tuple[Candidate, list[Message], list[Message]]:
        """Return the candidate within strata, how its sides were matched, and the notes on similar hosts in strata."""
        if self.sizes is None:
            return pool, [], []
        sentences: list[Message] = []
        alike: list[Message] = []
        for (places, others), group in _by_machines(base, other, pool).items():
            some = replace(group, arithmetic=pool.arithmetic)
            strata = self.sizes.strata((base.title, places), (other.title, others))
            if strata.refused:
                some = refused(some, strata.refused)
                sentences.append(message("{name}: {what}", name=other.title, what=strata.refused))
                self.effects[sentences[-1]] = math.inf
            elif strata.keys:
                measured = [
                    [self.chosen[side.title][n] for n in sorted(numbers)]
                    for side, numbers in ((base, places), (other, others))
                ]
                if selecting := conditions(strata, measured):
                    self.narrowed.setdefault((base.title, other.title), selecting)
                parts = self._stratified(strata, base, other, drop)
                sentence = _matched(base.title, other.title, some, parts, len(pool.classes) > 1)
                some = joined_parts(some, parts)
                if some.classes:  # guardrails have a separate note
                    sentences.append(sentence)
                    self.effects[sentence] = max(map(_moved, some.classes.values()))
                alike += hosts_of(base.title, other.title, some.classes, parts)
            guardrails = {**pool.guardrails, **some.guardrails}
            classes = {**pool.classes, **some.classes}
            pool = replace(pool, classes=classes, guardrails=guardrails, arithmetic=some.arithmetic)
        pool = replace(pool, guardrails=judged_together(pool.guardrails))
        return (replace(pool, classes=among_many(pool.classes)) if sentences else pool), sentences, alike

    def _stratified(self, strata: Strata, base: Side, other: Side, drop: Drop) -> list[Part]:
        halves: dict[str, Sequence[Machine]] = {}
        host_labels = {}
        for n, stratum in enumerate(strata.keys.values()):
            for half, side, machines in (("a", base, stratum.baseline), ("b", other, stratum.candidate)):
                out = set(drop.get(side.title, ()))
                halves[f"{n}{half}"] = [m for m in machines if self.names[m.campaign, m.host] not in out]
                host_labels[f"{n}{half}"] = self.host_labels[side.title]
        built = self._built({key: machines for key, machines in halves.items() if machines}, host_labels)
        parts = []
        for n, (name, stratum) in enumerate(strata.keys.items()):
            one, two = built.get(f"{n}a"), built.get(f"{n}b")
            candidate = None
            if one is not None and two is not None:
                try:
                    sides = replace(one, title=base.title), replace(two, title=other.title)
                    (candidate,) = self.pooled(sides[0], [sides[1]]).candidates
                except FleetmarkError:  # the two sides have no benchmark in common
                    candidate = None
            hosts = [[self.names[m.campaign, m.host] for m in halves[f"{n}{half}"]] for half in "ab"]
            parts.append(Part(name, stratum.share, candidate, (hosts[0], hosts[1])))
        return parts

    def _built(self, halves: Mapping[str, Sequence[Machine]], host_labels: Mapping[str, str]) -> Mapping[str, Side]:
        """Return the halves of strata that can be built. This fails, for example, if no machine has an amount."""
        with contextlib.suppress(FleetmarkError):
            return self.build(halves, host_labels)
        built: dict[str, Side] = {}
        for key, machines in halves.items():
            with contextlib.suppress(FleetmarkError):
                built |= self.build({key: machines}, {key: host_labels[key]})
        return built


@dataclass(frozen=True, slots=True)
class Again:
    """Repeat the comparison of ``sides`` without some machines; results are cached.

    ``against`` compares a baseline with other sides.
    """

    matching: Matching
    sides: Mapping[str, Side]
    against: Callable[[Side, Sequence[Side], Drop], Comparison]
    known: dict[tuple[str, frozenset[tuple[str, frozenset[str]]]], Comparison | None] = field(default_factory=dict)

    def __call__(self, baseline: str, drop: Drop) -> Comparison | None:
        """Return the comparison with ``baseline``; None if the remaining machines have no benchmark in common."""
        key = baseline, frozenset((title, frozenset(hosts)) for title, hosts in drop.items())
        if key not in self.known:
            self.known[key] = None
            with contextlib.suppress(FleetmarkError):
                reduced = {title: self.matching.reduced(side, drop) for title, side in self.sides.items()}
                self.known[key] = self.against(reduced.pop(baseline), list(reduced.values()), drop)
        return self.known[key]


def without(side: Side, hosts: Collection[str]) -> Side:
    """Return a side without the given hosts."""
    out = [host for host in hosts if host in side.means.index]
    shared = None if side.shared is None else side.shared.drop(index=out, errors="ignore")
    return replace(side, means=side.means.drop(index=out), shared=shared) if out else side


def moved(before: Comparison, after: Comparison) -> float:
    """Return the largest change of a headline ratio between two comparisons, as a logarithm.

    Capacity headlines take precedence if there are any. The result is infinite if a headline disappears.
    """
    changes: dict[str, list[float]] = {}
    for one, other in zip(before.candidates, after.candidates, strict=True):
        for name, e in one.classes.items():
            if e.headline is None:
                continue
            new = other.classes[name].headline if name in other.classes else None
            change = math.inf if new is None else abs(math.log(new.value / e.headline.value))
            changes.setdefault(before.kind(name), []).append(change)
    return max(changes.get(Kind.CAPACITY) or [c for listed in changes.values() for c in listed], default=0.0)


def _moved(e: Equivalence) -> float:
    """Return the distance of the headline ratio within strata from the ratio over all hosts, as a logarithm."""
    return abs(math.log(e.headline.value / e.geometric.value)) if e.headline and e.geometric else 0.0


def _by_machines(base: Side, other: Side, pool: Candidate) -> dict[tuple[Places, Places], Candidate]:
    """Split a candidate's classes and guardrails by the machines of both sides that measured them.

    A machine that did not measure a class does not count for the sizes in that class.
    """
    groups: dict[tuple[Places, Places], Candidate] = {}
    nothing = replace(pool, classes={}, guardrails={})
    for name, e in pool.classes.items():
        if e.each:
            key = _places(base, e.each), _places(other, e.each)
            some = groups.get(key, nothing)
            groups[key] = replace(some, classes={**some.classes, name: e})
    for title, guard in pool.guardrails.items():
        if guard.change is not None:
            key = _places(base, [title]), _places(other, [title])
            some = groups.get(key, nothing)
            groups[key] = replace(some, guardrails={**some.guardrails, title: guard})
    return groups


def _places(side: Side, titles: Iterable[str]) -> Places:
    if side.machines is None:
        return frozenset()
    return frozenset(side.machines.loc[side.machines["title"].isin(list(titles)), "record"].unique().tolist())


def _matched(baseline: str, candidate: str, pool: Candidate, parts: Sequence[Part], several: bool) -> Message:
    """Return how the sides were matched, with each stratum's share and its ratio in the first class.

    ``several``: the candidate has several classes, so the sentence names this one.
    """
    if len(parts) == 1:
        (part,) = parts
        return message(
            "{candidate} is compared with {baseline} at {size} only: {n} against {m} machines",
            candidate=candidate,
            baseline=baseline,
            size=part.name,
            n=len(part.hosts[1]),
            m=len(part.hosts[0]),
        )
    class_ = next((name for name, e in pool.classes.items() if e.headline is not None), None)
    ratios = {} if class_ is None else named(parts, class_)
    shown = [
        message(
            "{name}: {what}",
            name=joined([part.name, f"({part.share:.0%})"], " "),
            what=f"{ratios[part.name]:.2f}" if part.name in ratios else message("no figure"),
        )
        for part in parts[:MOST_STRATA]
    ]
    further = [message("and {n} more", n=len(parts) - MOST_STRATA)] if len(parts) > MOST_STRATA else []
    if class_ is not None and several:
        return message(
            "{candidate} is compared with {baseline} size by size, weighted by the baseline's shares; "
            "{class_}: {strata}",
            candidate=candidate,
            baseline=baseline,
            class_=word(class_),
            strata=joined([*shown, *further], "; "),
        )
    return message(
        "{candidate} is compared with {baseline} size by size, weighted by the baseline's shares: {strata}",
        candidate=candidate,
        baseline=baseline,
        strata=joined([*shown, *further], "; "),
    )
