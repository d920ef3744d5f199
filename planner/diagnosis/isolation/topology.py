"""List the borders between places (racks, switches, sites) and the uplinks of places that groups of hosts cross."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

HOSTS = 2  # minimum number of hosts on either side; otherwise a host or a link is at fault
MOST_BORDERS = 3_000  # maximum number of borders of one label; beyond it only uplinks are suspected

Labels = Mapping[str, Mapping[str, str]]  # name of a label (rack, switch) to its value by host


@dataclass(frozen=True, slots=True)
class Crossing:
    """A border between two ``places`` of a ``label``, or the uplink of one place.

    ``one`` and ``other`` are the hosts on its sides.
    """

    label: str
    places: tuple[str, ...]
    one: frozenset[str] = field(compare=False, repr=False)
    other: frozenset[str] = field(compare=False, repr=False)

    def crossed_by(self, group: Collection[str]) -> bool:
        return not (self.one.isdisjoint(group) or self.other.isdisjoint(group))


Suspects = tuple[str, ...] | Crossing  # a host, the two hosts of a link, or a border or uplink


class Topology:
    """The places of hosts, by labels: labels with the fewest places first, so sites come before racks."""

    def __init__(self, labels: Labels, hosts: Sequence[str]) -> None:
        known = {name: {h: by_host[h] for h in hosts if by_host.get(h)} for name, by_host in labels.items()}
        self.labels = dict(sorted(known.items(), key=lambda item: len(set(item[1].values()))))

    def place(self, label: str, host: str) -> str | None:
        return self.labels[label].get(host)

    def position(self, host: str) -> tuple[str, ...]:
        """Return a sort key under which hosts of a place are neighbours."""
        return tuple(by_host.get(host, "") for by_host in self.labels.values())

    def shared(self, a: str, b: str) -> int:
        """Return the number of labels that two hosts have in common."""
        return sum(a in by_host and by_host[a] == by_host.get(b) for by_host in self.labels.values())

    def crossing(self, label: str, places: Sequence[str]) -> Crossing:
        """Return the border between two places, or the uplink of one."""
        by_host = self.labels[label]
        sides = [frozenset(h for h, value in by_host.items() if value == place) for place in places]
        outside = frozenset(by_host) - sides[0] if len(sides) == 1 else sides[1]
        return Crossing(label, tuple(places), sides[0], outside)

    def crossings(self) -> list[Crossing]:
        """Return all borders and uplinks.

        If several labels divide the hosts in the same way, only those of the first label are returned.
        """
        by_sides: dict[frozenset[frozenset[str]], Crossing] = {}
        for label, by_host in self.labels.items():
            names = sorted(set(by_host.values()))
            borders = list(combinations(names, 2)) if len(names) * (len(names) - 1) // 2 <= MOST_BORDERS else []
            uplinks = [(name,) for name in names] if len(names) > 2 else []
            for crossing in (self.crossing(label, places) for places in [*borders, *uplinks]):
                if min(len(crossing.one), len(crossing.other)) >= HOSTS:
                    by_sides.setdefault(frozenset((crossing.one, crossing.other)), crossing)
        return list(by_sides.values())
