"""Read published tables: MLCommons', SPEC's, Spare Cores', and tidy tables that the user provides.

``mlperf``, ``spec``, ``sparecores`` and ``table`` each have ``read(raw, name) -> Table``, a pure function of a file's
bytes; ``name`` is the file name, for information that only it contains. ``read`` raises FleetmarkError,
without the file name, if the file is not such a table.

Each module defines the roles of its machine labels:

- ``TRAITS``: labels to show if two sides differ in them.
- ``MODEL``: labels that may name the model of a machine; the first one present counts.
- ``KIND``: labels that describe the machine type that a selector means.
- ``COUNTS``: labels with a number of components, mapped to the component type.
- ``UNIFORM``: labels that must be equal within a side, mapped to their subject.
- ``PUBLISHER``: the label that names the publisher; rows of one publisher are not independent.
- ``SIZES``: labels that give the size of a machine, mapped to the unit counted (sockets, cores, devices).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind, Measurement, Standing
from fleetmark.parsers.kit.text import number
from fleetmark.parsers.published.files import words

_LARGEST_FIGURE = 1e290  # stays finite when multiplied by any unit factor
ZERO = "zero"  # the reason for excluding a zero


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one machine.

    ``place`` is its position in the file, ``version`` the release or round of the benchmark. ``invalid`` gives the
    reason if it must not be compared. ``kind`` is None if the file does not declare it.
    """

    machine: str
    measurement: Measurement
    class_: str
    kind: Kind | None
    place: str
    _: KW_ONLY
    repeat: int = 0
    headline: bool = True
    standing: Standing | None = None
    version: str = ""
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The contents of a file.

    ``machines`` maps names to the labels that select them. ``read`` is the number of rows, and ``left_out`` counts the
    rows without a figure by reason.
    """

    machines: Mapping[str, Mapping[str, str]]
    rows: Sequence[Row]
    read: int
    left_out: Mapping[str, int]
    notes: Sequence[str] = ()


class Collector:
    """Collect machines and results while a table is read.

    A machine is identified by its name and further fields (``identity``), which are added to the name only if machines
    of the same name differ in them. Different values of a label are joined: ``fp16+fp8``.
    """

    def __init__(self) -> None:
        self._machines: dict[tuple[str, tuple[str, ...]], tuple[Mapping[str, str], dict[str, set[str]]]] = {}
        self._rows: list[tuple[tuple[str, tuple[str, ...]], Row]] = []
        self._repeats: Counter[tuple[Any, ...]] = Counter()
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []

    def leave(self, reason: str, count: int = 1) -> None:
        self.left_out[reason] += count

    def add(self, name: str, identity: Mapping[str, str], labels: Mapping[str, str | Iterable[str]], row: Row) -> None:
        """Add ``row`` to the machine ``name`` and number it among that machine's repeats."""
        key = (name, tuple(identity.values()))
        if key not in self._machines:
            self._machines[key] = (identity, {})
        labels_of_machine = self._machines[key][1]
        for label, value in labels.items():
            labels_of_machine.setdefault(label, set()).update(
                filter(None, [value] if isinstance(value, str) else value)
            )
        m = row.measurement
        point = (key, m.workload, m.case, m.metric, tuple(sorted(m.labels.items())))
        self._rows.append((key, replace(row, repeat=self._repeats[point])))
        self._repeats[point] += 1

    def table(self, read: int) -> Table:
        """Return the table. Raise FleetmarkError if no row has a figure."""
        if not self._rows:
            reasons = "; ".join(f"{reason} ({n})" for reason, n in self.left_out.most_common(4))
            raise FleetmarkError(
                f"none of its {read} rows has a figure to import" + (f": {reasons}" if reasons else "")
            )
        names = self._names()
        machines = {
            names[key]: {label: "+".join(sorted(values)) for label, values in labels.items() if values}
            for key, (_, labels) in self._machines.items()
        }
        rows = [replace(row, machine=names[key]) for key, row in self._rows]
        if several := sum(n > 1 for n in self._repeats.values()):
            subject = "benchmark of a machine has" if several == 1 else "benchmarks of a machine have"
            self.notes.append(f"{several:,} {subject} several results, which count as repeats")
        return Table(machines, rows, read, dict(self.left_out), tuple(self.notes))

    def _names(self) -> dict[tuple[str, tuple[str, ...]], str]:
        alike: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for key in self._machines:
            alike.setdefault(key[0], []).append(key)
        names = {}
        for name, keys in alike.items():
            differs = [i for i, values in enumerate(zip(*(k[1] for k in keys), strict=True)) if len(set(values)) > 1]
            for key in keys:
                differences = [f"{label}={key[1][i]}" for i, label in enumerate(self._machines[key][0]) if i in differs]
                names[key] = " ".join([name, *differences])
        return names


def figure(value: object) -> tuple[float, str]:
    """Return a cell as a positive number, or 0 and the reason why it is not one."""
    if not words(value):
        return 0.0, "no value"
    result = number(value)
    if result is None or result > _LARGEST_FIGURE:
        return 0.0, "not a number"
    return (result, "") if result > 0 else (0.0, ZERO if result == 0 else "negative")
