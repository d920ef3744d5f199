"""Describe mixed sides: one sentence for each property, such as CPU, memory or software, that differs within a side.

Each sentence ends with a condition that selects one part of the side, if a single condition can.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Side
from fleetmark.record import imports
from fleetmark.record.naming import tidy
from fleetmark.record.select import Machine, Term
from fleetmark.record.sides.titles import is_of_mixed_standing

MOST_VALUES = 3
MOST_FACTS = 200  # maximum hosts of a side whose facts are read, evenly spread, because a large fleet has thousands
ALIKE = 1.05  # maximum ratio of memory sizes that count as equal, because kernels reserve different amounts
_GiB = 1 << 30
_SENTENCES: Mapping[str, Message] = {
    "processor": message("{side} mixes processors: {values}"),
    "sockets": message("{side} mixes numbers of sockets: {values}"),
    "accelerator": message("{side} mixes accelerators: {values}"),
    "count": message("{side} mixes numbers of accelerators: {values}"),
    "memory": message("{side} mixes memory populations: {values}"),
    "nodes": message("{side} mixes numbers of nodes: {values}"),
    "threads": message("{side} mixes sizes, as threads: {values}"),
    "power": message("{side} mixes runs with measured power and without: {values}"),
    "software": message("{side} mixes software: {values}"),
}
_POWER = {"true": message("with"), "false": message("without")}
_FACTS = {  # fact paths to select campaign hosts by; memory is handled separately
    "processor": ("cpu.model",),
    "sockets": ("cpu.sockets",),
    "accelerator": ("gpus.name",),
    "memory": ("dimms.configured_mts", "dimms.size", "memory"),
    "software": ("os", "software.cuda", "software.nccl", "software.rocm", "software.rccl", "software.mpi"),
}
_POPULATION = re.compile(r"([0-9]+) x [0-9]+ [GMT]B\b[^(),+]*?\b(PC[0-9]\w?-[0-9]+|DDR[0-9]-[0-9]+)")
_RUNNING = re.compile(r"running at ([0-9]+)")


@dataclass(slots=True)
class _Part:
    """The machines of a side that are alike in one respect, and the labels of their hosts."""

    machines: list[Machine] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A sentence about one respect in which the machines of a ``side`` differ.

    ``rest``: the names of the machines outside the most frequent kind; without them the side is uniform.
    """

    text: Message
    side: str
    rest: frozenset[str] = frozenset()


def mixtures(
    title: str, chosen: Sequence[Machine], side: Side, names: Mapping[tuple[str, str], str]
) -> Iterator[Message]:
    """Yield the sentences of ``parted``."""
    yield from (mixture.text for mixture in parted(title, chosen, side, names))


def parted(
    title: str, chosen: Sequence[Machine], side: Side, names: Mapping[tuple[str, str], str]
) -> Iterator[Mixture]:
    """Yield a sentence for each respect in which the machines of ``side`` differ, with a count for each value.

    Campaign hosts are described by facts, imported machines by labels. ``names``: the names of hosts.
    """
    parts: dict[str, dict[str, _Part]] = {}
    spellings: dict[str, str] = {}  # published tables spell processor names in several ways
    traits_of = list(_traits(chosen))
    read = [machine for machine, _ in traits_of]
    for machine, traits in traits_of:
        for trait, value in traits.items():
            part = parts.setdefault(trait, {}).setdefault(spellings.setdefault(value.casefold(), value), _Part())
            part.machines.append(machine)
            part.hosts.add(names[machine.campaign, machine.host])
    for trait, template in _SENTENCES.items():
        of_value = parts.get(trait, {})
        if len(of_value) > 1:
            mixed = Message(template.template, {"side": title, "values": _listed(trait, of_value)})
            value, largest = max(of_value.items(), key=lambda item: len(item[1].hosts))
            term = _term(trait, value, largest, read)
            text = message("{mixed}; to select one, add {term}", mixed=mixed, term=_written(term)) if term else mixed
            rest = {names[m.campaign, m.host] for p in of_value.values() if p is not largest for m in p.machines}
            yield Mixture(text, title, frozenset(rest) - largest.hosts)
    if standings := _standings(side):
        listed = joined(word(s) or message("an official result") for s in standings)
        text = message("{side} mixes results of different status: {standings}", side=title, standings=listed)
        yield Mixture(text, title)


def under_shares(title: str, chosen: Sequence[Machine]) -> Iterator[Message]:
    """Yield a sentence if machines of a side were held to shares of their hosts."""
    held = list(dict.fromkeys(machine.shares for machine in chosen if machine.shares))
    if held:
        part = sum(1 for machine in chosen if machine.shares)
        yield message(
            "{side}: {n} of {hosts} were limited to shares of the host: {shares}",
            side=title,
            n=part,
            hosts=count(len(chosen), "host"),
            shares=joined(held[:MOST_VALUES], "; "),
        )


def is_of_size(warning: str) -> bool:
    """Return whether a warning is about machine sizes, which are numbers of parts."""
    if not isinstance(warning, Message):
        return False
    mixed = warning.values.get("mixed", warning)
    templates = {_SENTENCES[trait].template for trait in ("sockets", "count", "nodes")}
    return warning.values.get("key") in imports.SIZES or (isinstance(mixed, Message) and mixed.template in templates)


def _standings(side: Side) -> list[str]:
    """Return the result types of a side if one workload mixes them; the empty string is an official result."""
    of_workload: dict[str, set[str]] = {}
    for workload, text in zip(side.benchmarks["workload"], side.benchmarks["standing"], strict=True):
        of_workload.setdefault(str(workload), set()).update(str(text).split(", "))
    mixed = any(map(is_of_mixed_standing, side.notes))
    several = {s for names in of_workload.values() if mixed or len(names) > 1 for s in names}
    return sorted(several | ({""} if mixed else set()))


def _listed(trait: str, parts: Mapping[str, _Part]) -> str:
    """Return the values with their counts, the most frequent first: ``EPYC 9654 (12); EPYC 9554 (3)``."""
    numbers = Counter({value: len(part.hosts) for value, part in parts.items()})
    some: list[str] = []
    for value, n in numbers.most_common(MOST_VALUES):
        shown = _POWER.get(value, value) if trait == "power" else value
        some.append(joined([shown, f"({n})"], " "))
    if len(numbers) > MOST_VALUES:
        some.append(message("and {n} more", n=len(numbers) - MOST_VALUES))
    return joined(some, "; ")


# --- conditions that select one part
# -------------------------------------------------------------------------------------------


def _term(trait: str, value: str, part: _Part, everyone: Sequence[Machine]) -> Term | None:
    """Return one condition that holds for all machines of ``part`` and for no other, if there is one."""
    inside = {(m.campaign, m.host) for m in part.machines}
    for term in _candidates(trait, value, part.machines[0]):
        if all(term.matches(m) == ((m.campaign, m.host) in inside) for m in everyone):
            return term
    return None


def _candidates(trait: str, value: str, example: Machine) -> Iterator[Term]:
    labels = [label for label, described in imports.UNIFORM.items() if described == trait]
    for key in (*labels, *_FACTS.get(trait, ())):
        for text in example.values(key):
            yield Term(key, "=", text)
            if key == "memory" and text.isdecimal():  # equal sizes differ by the memory that kernels reserve
                yield Term(key, ">=", f"{int(int(text) / ALIKE)}")
                yield Term(key, "<=", f"{int(int(text) * ALIKE)}")
    for key in labels:
        yield Term(key, "=", f"*{'*'.join(value.split())}*")


def _written(term: Term) -> str:
    return f"{term.key}{term.operator}{term.value}"


# --- properties in which machines differ
# -----------------------------------------------------------------------------------------


def _traits(chosen: Sequence[Machine]) -> Iterator[tuple[Machine, dict[str, str]]]:
    for machine in filter(imports.is_imported, chosen):
        labels = {trait: machine.labels[x] for x, trait in imports.UNIFORM.items() if x in machine.labels}
        yield machine, {trait: _tidied(trait, value) for trait, value in labels.items()}
    measured = [m for m in chosen if not imports.is_imported(m)]
    step = max(1, -(-len(measured) // MOST_FACTS))
    facts = [(m, f) for m in measured[::step] if (f := m.facts()) is not None]
    memory = _memory([f for _, f in facts])
    for (machine, f), size in zip(facts, memory, strict=True):
        traits = {
            "processor": tidy(f.cpu.model or ""),
            "sockets": str(f.cpu.sockets or ""),
            "accelerator": _gpus(f),
            "memory": size,
            "software": _software(f),
        }
        yield machine, {trait: value for trait, value in traits.items() if value}


def _tidied(trait: str, value: str) -> str:
    if trait == "memory":
        return joined(dict.fromkeys(population(part) for part in value.split(")+(")), "+")
    return tidy(value) if trait in ("processor", "accelerator") else value


def population(text: str) -> str:
    """Return the number and speed of modules: ``(16 x 64 GB 2Rx4 PC4-3200AA-R)`` becomes ``16 x PC4-3200``. Other texts
    are returned unchanged.

    The module size is omitted, because larger modules are as fast, but fewer modules are not.
    """
    modules = _POPULATION.findall(text)
    if not modules:
        return text
    running = _RUNNING.search(text)
    speed = f" at {running[1]}" if running and not modules[0][1].endswith(f"-{running[1]}") else ""
    return " + ".join(f"{n} x {kind}" for n, kind in modules) + speed


def _gpus(facts: Facts) -> str:
    return _counted(Counter(tidy(g.name) for g in facts.gpus), "{name} x{n}")


def _software(facts: Facts) -> str:
    return joined([facts.os, *(f"{name} {version}" for name, version in sorted(facts.software.items()))])


def _memory(hosts: Sequence[Facts]) -> list[str]:
    """Return the memory of each host: its modules if every host lists them, else its size; empty if all sizes are
    equal.
    """
    modules = [_modules(f) for f in hosts]
    if all(modules):
        return modules
    sizes = [f.memory or 0 for f in hosts]
    present = [size for size in sizes if size]
    if not present or max(present) <= ALIKE * min(present):
        return ["" for _ in hosts]
    return [f"{size / _GiB:.4g} GiB" if size else "" for size in sizes]


def _modules(facts: Facts) -> str:
    """Return the memory modules of a host, such as ``16 x 64 GiB DDR5-4800``; empty if they are unknown."""
    kinds: Counter[str] = Counter()
    for d in facts.dimms:
        if d.size:
            speed = f"-{d.configured_mts}" if d.configured_mts else ""
            kinds[f"{d.size / _GiB:.3g} GiB {d.type or ''}{speed}".strip()] += 1
    return _counted(kinds, "{n} x {name}")


def _counted(numbers: Mapping[str, int], form: str) -> str:
    kinds: Iterable[str] = (form.format(name=name, n=n) for name, n in sorted(numbers.items()))
    return ", ".join(kinds)
