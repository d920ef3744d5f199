"""Limit how many hosts work at a time, in total and by label, to protect power supplies and switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.steps import Exchange


@dataclass(frozen=True, slots=True)
class Turns:
    """Limit how many hosts work at a time.

    ``limit`` applies to all hosts; None means no limit. ``of_label`` limits the number of hosts that share a label's
    value. ``labels`` has the labels of each host. Hosts without a label share the empty value.
    """

    limit: int | None = None
    of_label: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Parse limits such as ``8`` and ``rack=4``. Raise FleetmarkError if one is invalid."""
        limit, of_label = None, {}
        for word in words:
            label, equals, number = word.rpartition("=")
            if not number.isdecimal() or int(number) < 1 or (equals and not label):
                raise FleetmarkError(f"--at-once {word}: write a number of hosts, or LABEL=NUMBER, such as rack=4")
            if equals:
                of_label[label] = int(number)
            else:
                limit = int(number)
        return cls(limit, of_label)

    @property
    def bounded(self) -> bool:
        """Return whether any host may have to wait."""
        return self.limit is not None or bool(self.of_label)

    def with_labels(self, labels: Mapping[str, Mapping[str, str]]) -> Turns:
        """Return the same limits for hosts with these labels."""
        return replace(self, labels=labels)

    def refuse_unknown(self, hosts: Sequence[Mapping[str, str]]) -> None:
        """Raise FleetmarkError if no host has a limited label, because all hosts would then share one limit."""
        known = {label for labels in hosts for label in labels}
        if hosts and (unknown := [label for label in self.of_label if label not in known]):
            raise FleetmarkError(
                f"--at-once {unknown[0]}={self.of_label[unknown[0]]}: no host has this label; there "
                f"{'are ' + ', '.join(sorted(known)) if known else 'is none'} (fleetmark_labels in the inventory)"
            )

    def next(self, waiting: Sequence[str], busy: Sequence[str]) -> list[str]:
        """Return the ``waiting`` hosts that may start while the ``busy`` hosts work, in order."""
        chosen: list[str] = []
        counts = {label: Counter(self._value(host, label) for host in busy) for label in self.of_label}
        for host in waiting:
            if self.limit is not None and len(busy) + len(chosen) >= self.limit:
                break
            if all(counts[label][self._value(host, label)] < limit for label, limit in self.of_label.items()):
                chosen.append(host)
                for label, counter in counts.items():
                    counter[self._value(host, label)] += 1
        return chosen

    def refuse_together(self, exchanges: Sequence[Exchange]) -> None:
        """Raise FleetmarkError if hosts run steps together, because they would wait for a host that has no turn yet."""
        if self.bounded and exchanges:
            raise FleetmarkError(
                "--at-once: this suite has tests on several hosts, which need all hosts at the same time; remove "
                "--at-once, or move these tests to a separate suite"
            )

    def _value(self, host: str, label: str) -> str:
        return self.labels.get(host, {}).get(label, "")
