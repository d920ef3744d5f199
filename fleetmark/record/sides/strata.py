"""Stratify sides by machine size, so that only machines of equal size are compared (Simpson's paradox)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, count, joined, message
from fleetmark.record import imports
from fleetmark.record.select import Machine
from fleetmark.record.sides.amounts import positive
from fleetmark.record.sides.mixtures import ALIKE, MOST_FACTS

MOST_NAMED = 4
_GiB = 1 << 30
Key = tuple[str, ...]
Places = frozenset[int]  # indices of machines in the list of their side
_NAMES: Mapping[str, Message] = {
    "sockets": message("sockets"),
    "cores": message("cores per socket"),
    "devices": message("number of accelerators"),
    "memory": message("memory"),
}
_PARTS = ("sockets", "devices")
_SOFT = ("memory",)  # if these sizes do not match, the headline is kept with a warning


@dataclass(frozen=True, slots=True)
class Stratum:
    """The machines of one size on both sides. ``share``: their fraction of the baseline's machines."""

    share: float
    baseline: Sequence[Machine]
    candidate: Sequence[Machine]


@dataclass(frozen=True, slots=True)
class Strata:
    """The way in which two sides are compared within strata.

    ``keys``: the strata of the baseline by name; empty if no matching is needed. ``traits``: the sizes that define the
    strata. ``refused``: why the sides cannot be matched.
    """

    keys: Mapping[str, Stratum]
    refused: Message | None = None
    traits: Sequence[str] = ()


NONE = Strata({})


class Sizes:
    """The sizes of all machines in a comparison by side.

    If a sample of the facts is uniform, no further facts are read.
    """

    def __init__(self, chosen: Mapping[str, Sequence[Machine]]) -> None:
        self._chosen = chosen
        self._known: dict[str, list[dict[str, str]]] = {}
        sampled = {side: _sample(machines) for side, machines in chosen.items()}
        sizes = _sizes([m for machines in sampled.values() for m in machines])
        differ = False
        start = 0
        for machines in sampled.values():
            part = sizes[start : start + len(machines)]
            start += len(machines)
            differ = differ or any(len({size.get(trait) for size in part}) > 1 for trait in _NAMES)
        if not differ:
            return
        every = [m for machines in chosen.values() for m in machines]
        every_size = iter(_sizes(every))
        self._known = {side: [next(every_size) for _ in machines] for side, machines in chosen.items()}

    def groups(self, title: str) -> list[list[Machine]]:
        """Return the machines of a side grouped by size, in one group if no side mixes sizes."""
        chosen = self._chosen.get(title, ())
        if title not in self._known:
            return [list(chosen)]
        alike: dict[tuple[tuple[str, str], ...], list[Machine]] = {}
        for machine, sizes in zip(chosen, self._known[title], strict=True):
            alike.setdefault(tuple(sorted(sizes.items())), []).append(machine)
        return list(alike.values())

    def strata(self, baseline: tuple[str, Places], candidate: tuple[str, Places]) -> Strata:
        """Return how two sides are compared: without strata, within strata, or not at all.

        A side is given as its title and the indices of its machines. If sizes do not match, only one size that both
        sides have is compared. Published results do not come from a fleet, so their numbers of sockets and accelerators
        must always match.
        """
        if not self._known:
            return NONE
        sides = (baseline, candidate)
        a, b = ([self._known[title][n] for n in sorted(places)] for title, places in sides)
        machines, other = ([self._chosen[title][n] for n in sorted(places)] for title, places in sides)
        differing = [trait for trait in _NAMES if _differs(trait, a, b)]
        matched = [trait for trait in differing if _values(trait, a) <= _values(trait, b)]
        while matched and not set(_keys(matched, a)) <= set(_keys(matched, b)):
            matched.pop()
        open_ = [t for t in differing if t not in matched and t not in _SOFT]
        is_published = any(imports.publisher(side) for side in (machines, other))
        required = _PARTS if is_published else ()  # matched even if only one side mixes them
        if both := [t for t in open_ if t in required or min(len(_values(t, sizes)) for sizes in (a, b)) > 1]:
            hard = [t for t in differing if t not in _SOFT]
            shared = _largest_shared(_keys(hard, a), _keys(hard, b))
            if shared is None:
                return Strata({}, _refusal(both[0], {baseline[0]: a, candidate[0]: b}))
            stratum = Stratum(1.0, _of_size(machines, hard, a, shared), _of_size(other, hard, b, shared))
            return Strata({_named(hard, shared): stratum}, traits=hard)
        if not matched:
            return NONE
        keys_a = _keys(matched, a)
        parts = {}
        for key, n in Counter(keys_a).most_common():
            of_a, of_b = _of_size(machines, matched, a, key), _of_size(other, matched, b, key)
            parts[_named(matched, key)] = Stratum(n / len(keys_a), of_a, of_b)
        return Strata(parts, traits=matched)


def _largest_shared(a: Sequence[Key], b: Sequence[Key]) -> Key | None:
    """Return the shared size that maximises the smaller side's number of machines; None if the sides share no size."""
    of_a, of_b = Counter(a), Counter(b)
    return max(of_a.keys() & of_b.keys(), key=lambda k: (min(of_a[k], of_b[k]), of_a[k], k), default=None)


def _of_size(
    machines: Sequence[Machine], traits: Sequence[str], sizes: Sequence[Mapping[str, str]], key: Key
) -> list[Machine]:
    return [m for m, k in zip(machines, _keys(traits, sizes), strict=True) if k == key]


def _refusal(trait: str, sides: Mapping[str, Sequence[Mapping[str, str]]]) -> Message:
    shown = [joined([side, _listed(trait, sizes)], " ") for side, sizes in sides.items()]
    return message(
        "sides mix sizes that do not match ({trait}: {sides}); compare machines of the same size",
        trait=_NAMES[trait],
        sides=joined(shown, "; "),
    )


def _sample(machines: Sequence[Machine]) -> Sequence[Machine]:
    return machines[:: max(1, -(-len(machines) // MOST_FACTS))]


def _sizes(machines: Sequence[Machine]) -> list[dict[str, str]]:
    """Return the known traits of each machine as text."""
    raw = [_of(m) for m in machines]
    amounts = sorted({m["memory"] for m in raw if "memory" in m})
    starts: list[float] = []
    for amount in amounts:  # kernels reserve different amounts, so sizes may differ by a few per cent
        if not starts or amount > ALIKE * starts[-1]:
            starts.append(amount)

    def text(trait: str, value: float) -> str:
        if trait != "memory":
            return f"{value:g}"
        return f"{max(s for s in starts if s <= value) / _GiB:.3g} GiB"

    return [{trait: text(trait, value) for trait, value in sizes.items()} for sizes in raw]


def _of(machine: Machine) -> dict[str, float]:
    """Return the sizes of a machine.

    If a machine has accelerators, only their number counts, because they do the work.
    """
    sockets: float | None
    cores: float | None
    devices: float | None
    memory: float | None
    facts = None if imports.is_imported(machine) else machine.facts()
    if facts is None:
        known = {
            imports.SIZES[name]: n
            for name, text in machine.labels.items()
            if name in imports.SIZES and (n := positive(text))
        }
        sockets, cores, devices, memory = known.get("sockets"), known.get("cores"), known.get("devices"), None
    else:
        sockets, cores = facts.cpu.sockets, facts.cpu.cores
        devices, memory = len(facts.gpus) or None, facts.memory
    if devices:
        return {"devices": float(devices)}
    sizes = {"sockets": sockets, "cores": cores / sockets if cores and sockets else None, "memory": memory}
    return {trait: float(value) for trait, value in sizes.items() if value}


def _values(trait: str, sizes: Sequence[Mapping[str, str]]) -> set[str]:
    return {size[trait] for size in sizes if trait in size}


def _differs(trait: str, a: Sequence[Mapping[str, str]], b: Sequence[Mapping[str, str]]) -> bool:
    """Return whether all machines have the trait and it differs within a side."""
    return all(trait in size for size in (*a, *b)) and max(len(_values(trait, s)) for s in (a, b)) > 1


def _keys(traits: Sequence[str], sizes: Sequence[Mapping[str, str]]) -> list[Key]:
    return [tuple(size[trait] for trait in traits) for size in sizes]


def _named(traits: Sequence[str], key: Key) -> str:
    """Return a stratum's name, for example ``2 sockets, 64 cores per socket``."""
    return joined(_size(trait, value) for trait, value in zip(traits, key, strict=True))


def _size(trait: str, value: str) -> str:
    match trait:
        case "sockets":
            return count(int(float(value)), "socket")
        case "devices":
            return count(int(float(value)), "accelerator")
        case "cores":
            return message("{n} cores per socket", n=value)
    return value


def _listed(trait: str, sizes: Sequence[Mapping[str, str]]) -> str:
    """Return each value with its number of machines, for example ``1 (5), 2 (12)``."""
    numbers = Counter(size[trait] for size in sizes)
    some = [f"{value} ({n:,})" for value, n in numbers.most_common(MOST_NAMED)]
    return joined([*some, "…" if len(numbers) > MOST_NAMED else None])
