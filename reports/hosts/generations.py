"""Show hosts by generation: a column with the facts of most of its hosts, and a line for every deviation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from fleetmark.base.text import message
from fleetmark.record.results import HostInfo
from fleetmark.reports.hosts.columns import ROWS, texts_of

MOST = 12  # maximum generations side by side


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: its value on most hosts of each generation, and whether generations differ in it."""

    name: str
    cells: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class Deviation:
    """Record that ``hosts`` of ``generation`` have ``text`` although most of the generation have ``usual``."""

    name: str
    generation: str
    text: str
    usual: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Generations:
    """The facts of all generations.

    ``columns``: generation and its number of hosts with facts. ``unseen``: each reason with the hosts that have no
    facts because of it. ``left_out``: generations beyond MOST.
    """

    columns: tuple[tuple[str, int], ...]
    rows: tuple[Fact, ...]
    deviations: tuple[Deviation, ...]
    unseen: tuple[tuple[str, tuple[str, ...]], ...]
    left_out: int = 0


def by_generation(hosts: Sequence[HostInfo]) -> Generations:
    """Return the facts of ``hosts``, which are already in their final order."""
    written: list[dict[Hashable, str]] = [{} for _ in ROWS]  # facts that hosts share are formatted once
    members: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    unseen: dict[str, list[str]] = defaultdict(list)
    for host in hosts:
        if host.facts is None:
            unseen[host.reason or message("no facts were collected")].append(host.name)
        else:
            members[host.generation or ""].append((host.name, tuple(texts_of(host.facts, written))))
    shown = list(members)[:MOST]
    rows, deviations = [], []
    for i, name in enumerate(row[0] for row in ROWS):
        usual = {g: Counter(texts[i] for _, texts in entries).most_common(1)[0][0] for g, entries in members.items()}
        cells = tuple(usual[g] for g in shown)
        if any(cells):
            rows.append(Fact(name, cells, len(set(cells)) > 1))
        for generation, entries in members.items():
            others: dict[str, list[str]] = defaultdict(list)
            for host_name, texts in entries:
                if texts[i] != usual[generation]:
                    others[texts[i]].append(host_name)
            deviations += [Deviation(name, generation, t, usual[generation], tuple(h)) for t, h in others.items()]
    return Generations(
        tuple((g, len(members[g])) for g in shown),
        tuple(rows),
        tuple(deviations),
        tuple((reason, tuple(names)) for reason, names in unseen.items()),
        len(members) - len(shown),
    )
