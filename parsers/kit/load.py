"""Read the marks around a client's output.

The marks show which run counts, its number of connections, and its latency limit.

A client that was run by hand prints no marks, so its whole output is one run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import number, numbered

_BEGIN = re.compile(r"fleetmark: (probe|run) of ([0-9]{1,7}) clients(?:, limit ([0-9.e+-]{1,20}) s)?")
_END = re.compile(r"fleetmark: end of (probe|run), exit status (-?[0-9]{1,5})")
_BROKEN = re.compile(r"fleetmark: the limit of ([0-9.e+-]{1,20}) s is not kept")
_LONGEST = 10_000  # maximum characters of a line that is read
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(slots=True)
class Section:
    """One run of a client.

    ``lines``: its numbered lines. ``clients``: its connections. ``limit``: its limit of the 99th percentile in s.
    """

    title: str = ""
    clients: int | None = None
    limit: float | None = None
    lines: list[tuple[int, str]] = field(default_factory=list)
    status: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


@dataclass(frozen=True, slots=True)
class Load:
    """The run that counts. ``broken``: the limit in s that no number of connections met."""

    section: Section
    marked: bool
    broken: float | None
    cut: str | None

    def invalid(self, p99: float | None) -> str | None:
        """Return why the run is not valid, given ``p99``, its 99th percentile in s; empty if it is valid."""
        limit = self.broken or (self.section.limit if p99 is not None else None)
        if limit is not None and (self.broken or (p99 or 0) > limit):
            took = f": 99% took {p99:g} s with {self.section.clients} connections" if p99 is not None else ""
            return f"the limit of {limit:g} s is not kept{took}"
        if self.cut:
            return self.cut
        if self.section.status:
            return f"the client ended with exit status {self.section.status}"
        if self.marked and self.section.title != "run":
            return cut("the search has no last run")
        return cut("the last run has no end") if self.marked and self.section.status is None else None

    def clients(self, tool: str, case: str) -> Iterator[Measurement]:
        """Return a measurement of the number of connections, if the output gives it."""
        if self.section.clients:
            yield Measurement(tool, case, "clients", float(self.section.clients), "1", better=Better.NONE)


def last(text: str) -> Load:
    """Return the run that counts in ``text``: the last one, which is a probe if no limit was met. Never raise."""
    sections = [Section()]
    broken = None
    for n, line in numbered(text):
        if len(line) > _LONGEST:
            continue
        if match := _BEGIN.fullmatch(line):
            sections.append(Section(match[1], int(match[2]), number(match[3] or "")))
        elif match := _END.fullmatch(line):
            sections[-1].status = int(match[2])
        elif match := _BROKEN.fullmatch(line):
            broken = number(match[1])
        elif sections[-1].status is None or not line.startswith("fleetmark: "):
            sections[-1].lines.append((n, line))
    return Load(sections[-1], len(sections) > 1, broken, cut_in_line(text))


def latencies(tool: str, case: str, figures: Mapping[str, float | None]) -> Iterator[Measurement]:
    """Return latencies in s by the text after ``latency_``; 0 is below the tool's precision and is omitted."""
    for name, seconds in figures.items():
        if seconds:
            yield Measurement(tool, case, f"latency_{name}", seconds, "s", better=Better.LOWER)


def seconds(text: str) -> float | None:
    """Return a time with a unit (``196.00us``) in s; None for anything else."""
    match = re.fullmatch(r"([0-9.]{1,18})(us|ms|s|m|h)", text)
    value = number(match[1]) if match else None
    return value * _SECONDS[match[2]] if match and value is not None else None
