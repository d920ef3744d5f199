"""Sides that are not one thing: of several processors, memory populations or software, a sentence for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.record import imports
from fleetmark.record.naming import tidy
from fleetmark.record.select import Machine
from fleetmark.record.sides.titles import is_of_mixed_standing
from planner.comparison import Side

MOST_VALUES = 3
MOST_FACTS = 200  # hosts of a side whose facts are read, evenly spread: a large fleet has thousands
ALIKE = 1.05  # times one size of memory another, below which they are the same: kernels reserve different amounts
_GiB = 1 << 30
_NAMES: Mapping[str, Message] = {
    "processor": message("processor"),
    "accelerator": message("accelerator"),
    "memory": message("memory"),
    "nodes": message("number of nodes"),
    "power": message("runs with power measured"),
    "software": message("software"),
}
_MODELS = ("processor", "accelerator")


def mixtures(
    title: str, chosen: Sequence[Machine], side: Side, names: Mapping[tuple[str, str], str]
) -> Iterator[Message]:
    """A sentence for each respect in which the machines of ``side`` differ, with the values and how many have each.

    Facts tell of the hosts of campaigns, labels of imported machines. ``names``: what hosts go by.
    """
    tally: dict[str, dict[str, set[str]]] = {}
    spellings: dict[str, str] = {}  # published tables write a processor in several ways
    for machine, traits in _traits(chosen):
        for trait, value in traits.items():
            spelled = spellings.setdefault(value.casefold(), value)
            tally.setdefault(trait, {}).setdefault(spelled, set()).add(names[machine.campaign, machine.host])
    for trait, name in _NAMES.items():
        values = Counter({value: len(hosts) for value, hosts in tally.get(trait, {}).items()})
        if len(values) > 1:
            yield _sentence(title, name, values)
    if standings := _standings(side):
        listed = joined(word(s) or message("an official result") for s in standings)
        yield message("{side} is not one thing: its figures are {standings}", side=title, standings=listed)


def _standings(side: Side) -> list[str]:
    """What figures of one workload are called, where that is not one thing; empty for an official result."""
    of_workload: dict[str, set[str]] = {}
    for workload, text in zip(side.benchmarks["workload"], side.benchmarks["standing"], strict=True):
        of_workload.setdefault(str(workload), set()).update(str(text).split(", "))
    mixed = any(map(is_of_mixed_standing, side.notes))
    several = {s for names in of_workload.values() if mixed or len(names) > 1 for s in names}
    return sorted(several | ({""} if mixed else set()))


def _sentence(title: str, trait: Message, values: Counter[str]) -> Message:
    some: list[str] = [message("{value} ({n})", value=value, n=n) for value, n in values.most_common(MOST_VALUES)]
    if len(values) > MOST_VALUES:
        some.append(message("and {n} more", n=len(values) - MOST_VALUES))
    return message(
        "{side} is not one thing: its {trait} is {values}", side=title, trait=trait, values=joined(some, "; ")
    )


def _traits(chosen: Sequence[Machine]) -> Iterator[tuple[Machine, dict[str, str]]]:
    published = [m for m in chosen if imports.is_imported(m)]
    for machine in published:
        labels = {about: machine.labels[x] for x, about in imports.UNIFORM.items() if x in machine.labels}
        yield machine, labels | {trait: tidy(labels[trait]) for trait in _MODELS if trait in labels}
    own = [m for m in chosen if not imports.is_imported(m)]
    step = max(1, -(-len(own) // MOST_FACTS))
    facts = [(m, f) for m in own[::step] if (f := m.facts()) is not None]
    memory = _memory([f for _, f in facts])
    for (machine, f), size in zip(facts, memory, strict=True):
        traits = {
            "processor": tidy(f.cpu.model or ""),
            "accelerator": _gpus(f),
            "memory": size,
            "software": _software(f),
        }
        yield machine, {trait: value for trait, value in traits.items() if value}


def _gpus(facts: Facts) -> str:
    return joined(f"{name} x{n}" for name, n in sorted(Counter(g.name for g in facts.gpus).items()))


def _software(facts: Facts) -> str:
    return joined([facts.os, *(f"{name} {version}" for name, version in sorted(facts.software.items()))])


def _memory(hosts: Sequence[Facts]) -> list[str]:
    """The memory of each host: its modules where every host tells them, else its size; nothing where sizes agree."""
    modules = [_modules(f) for f in hosts]
    if all(modules):
        return modules
    sizes = [f.memory or 0 for f in hosts]
    present = [size for size in sizes if size]
    if not present or max(present) <= ALIKE * min(present):
        return ["" for _ in hosts]
    return [f"{size / _GiB:.4g} GiB" if size else "" for size in sizes]


def _modules(facts: Facts) -> str:
    """``16 x 64 GiB DDR5-4800``; empty where the host does not tell."""
    kinds: Counter[str] = Counter()
    for d in facts.dimms:
        if d.size:
            speed = f"-{d.configured_mts}" if d.configured_mts else ""
            kinds[f"{d.size / _GiB:.3g} GiB {d.type or ''}{speed}".strip()] += 1
    return joined(f"{n} x {kind}" for kind, n in sorted(kinds.items()))
