"""Report the coverage of a comparison: each class and side is measured, estimated, excluded or missing.

Each gap has the command that closes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any

from fleetmark.base.kinds import PEAK
from fleetmark.base.measurement import Kind, Standing
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import WORK_MIX, Candidate, Comparison, Side
from fleetmark.record.commands import command_for
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.areas import expected
from fleetmark.reports.comparison.titles import class_title, spaced
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Command, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, Tone
from fleetmark.workloads.manifest import names as all_workloads

MOST_GAPS = 6  # maximum number of commands
MOST_TITLES = 6  # maximum number of classes named in a sentence
_LONGEST_REASON = 30  # maximum number of characters of a reason in a cell
_MOST_HOSTS = 40  # maximum number of hosts named in a command


_ReasonKey = tuple[str, str]


class State(StrEnum):
    """How far a class is measured on a side."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    EXCLUDED = "excluded"
    MISSING = "missing"


_TITLE = message("Coverage by side")
_SHAPES: Mapping[State, str] = {
    State.MEASURED: "●",
    State.ESTIMATED: "◇",
    State.EXCLUDED: "✕",
    State.MISSING: "○",
}
_WORDS: Mapping[State, Message] = {
    State.MEASURED: message("measured"),
    State.ESTIMATED: message("estimated"),
    State.EXCLUDED: message("excluded"),
    State.MISSING: message("missing"),
}
_TONES: Mapping[State, Tone] = {State.MISSING: "bad", State.EXCLUDED: "unsure", State.ESTIMATED: "unsure"}


@dataclass(frozen=True, slots=True)
class Covered:
    """The coverage of a class on a side.

    ``present``: its benchmarks on this side, out of ``known`` benchmarks on all sides. ``label``: the label that counts
    as one host in results without hosts.
    """

    state: State
    hosts: int = 0
    present: int = 0
    known: int = 0
    _: KW_ONLY
    reason: str = ""
    label: str = ""

    @property
    def counts(self) -> str:
        """Return the number of hosts and benchmarks."""
        hosts: str | None = count(self.hosts, "host") if self.hosts else None
        if self.hosts and self.label:
            hosts = message("{n} (one per {label})", n=self.hosts, label=word(self.label))
        some = message("{n} of {all} benchmarks", n=self.present, all=self.known) if self.present < self.known else None
        return joined([hosts, some if self.present else None])


@dataclass(frozen=True, slots=True)
class Gap:
    """The workloads that ``sides`` lack, for ``classes``.

    ``command``: runs them; empty if no host of a side can run them. ``is_partial``: the sides measured other benchmarks
    of these classes. ``chosen``: the number of hosts that the command names, out of ``hosts`` hosts of the sides.
    ``elsewhere``: what to run on such machines if no host here can. ``titles``: the titles of the classes.
    """

    workloads: tuple[str, ...]
    classes: tuple[str, ...]
    sides: tuple[str, ...]
    command: str
    is_partial: bool
    _: KW_ONLY
    chosen: int = 0
    hosts: int = 0
    elsewhere: str = ""
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The ``cells`` by class and side, and the ``gaps``, starting with those that other sides measured.

    ``titles``: the titles of the classes.
    """

    sides: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Covered]]
    gaps: tuple[Gap, ...]
    titles: Mapping[str, str]


def coverage(
    comparison: Comparison,
    sides: Mapping[str, Side],
    hosts: Sequence[HostInfo],
    results: str,
    families: Sequence[Family] = (),
) -> Coverage:
    """Return the coverage of all classes that a side measured or that belong to the suite.

    ``results``: the record's name. ``families``: the load curves of servers.
    """
    titles = (comparison.baseline, *(c.title for c in comparison.candidates))
    scored = comparison.benchmarks[comparison.benchmarks["kind"].isin([Kind.CAPACITY, Kind.RESPONSIVENESS])]
    by_class = {str(name): [str(t) for t in group.index] for name, group in scored.groupby("class")}
    suite = expected(comparison)
    names = [*by_class, *(name for name in suite if not {name, f"{name}{PEAK}"} & by_class.keys())]
    cells = {
        name: {side: _covered(comparison, sides.get(side), side, name, by_class.get(name, [])) for side in titles}
        for name in names
    }
    for family in families:
        by_side = cells.get("gpu-server" if family.per_device else "cpu-server", {})
        for side, machines in family.sides.items():
            if side in by_side and by_side[side].state is State.MISSING:
                by_side[side] = Covered(State.MEASURED, hosts=len(machines))
    names_shown = {name: comparison.called.get(name) or class_title(name) for name in cells}
    return Coverage(titles, cells, tuple(_gaps(comparison, cells, suite, hosts, results, names_shown)), names_shown)


def _covered(comparison: Comparison, side: Side | None, title: str, name: str, known: Sequence[str]) -> Covered:
    present = [t for t in known if t in comparison.figures[title]]
    if not present:
        reason = _failure(comparison, side, known)
        return Covered(State.EXCLUDED if reason else State.MISSING, known=len(known), reason=reason)
    hosts, standings = 0, set[str]()
    if side is not None:
        measured = [t for t in present if t in side.means]
        hosts = int(side.means[measured].notna().any(axis=1).sum())
        standings = {str(side.benchmarks.at[t, "standing"]) for t in measured if t in side.benchmarks.index}
    label = comparison.grouped.get(title, "")
    counts = (hosts, len(present), len(known))
    for candidate in comparison.candidates:
        if candidate.title == title and (reason := _exclusion(comparison, candidate, name, present)):
            return Covered(State.EXCLUDED, *counts, reason=reason, label=label)
    if standings and all(Standing.ESTIMATE in text.split(", ") for text in standings):
        return Covered(State.ESTIMATED, *counts, label=label)
    return Covered(State.MEASURED, *counts, label=label)


def _failure(comparison: Comparison, side: Side | None, known: Sequence[str]) -> str:
    """Return how the runs of a class failed on a side, or nothing if there were none."""
    for title in known if side is not None else ():
        run = " ".join(str(comparison.benchmarks.at[title, key]) for key in ("workload", "case"))
        if side is not None and run in side.failed:
            return message("every run was {how}", how=word(side.failed[run]))
    return ""


def _exclusion(comparison: Comparison, candidate: Candidate, name: str, present: Sequence[str]) -> str:
    """Return why a candidate's figures of a class are not compared although the baseline has the same benchmarks."""
    shared = [t for t in present if t in comparison.figures[comparison.baseline]]
    e = candidate.classes.get(name)
    if not shared or (e is not None and e.each):
        return ""
    reasons = (candidate.excluded.get(t) or (e.left_out.get(t, "") if e else "") for t in shared)
    return next(filter(None, reasons), "")


# --- gaps ------------------------------------------------------------------------------------------------------------


def _gaps(
    comparison: Comparison,
    cells: Mapping[str, Mapping[str, Covered]],
    suite: Mapping[str, str],
    hosts: Sequence[HostInfo],
    results: str,
    titles: Mapping[str, str],
) -> Iterator[Gap]:
    """Yield a gap for the workloads that the same sides lack. ``suite``: the workload that measures a class."""
    lacking: dict[tuple[bool, tuple[str, ...], bool], dict[str, str]] = {}
    for name, by_side in cells.items():
        alone = all(c.state is State.MISSING for c in by_side.values())
        sides = tuple(s for s, c in by_side.items() if c.state is State.MISSING or c.present < c.known)
        if sides and (workload := _workload(comparison, name, by_side, sides, suite)):
            some = all(by_side[s].present for s in sides)
            lacking.setdefault((alone, sides, some), {})[name] = workload
    for (_, sides, some), of_classes in sorted(lacking.items(), key=lambda item: item[0][0]):
        own_hosts = [h for h in hosts if h.generation in sides and h.facts is not None]
        known = {h.generation for h in own_hosts}
        chosen = _first(own_hosts, sides)
        addresses = [h.name.removesuffix(f" ({h.generation})") for h in chosen]
        workloads = tuple(dict.fromkeys(of_classes.values()))
        line = elsewhere = ""
        if known == set(sides):
            inventory = ",".join(addresses) if len(addresses) > 1 else f"{addresses[0]},"  # a comma marks a list
            words = ("run", "--inventory", inventory, "--suite", ",".join(workloads))
            line = fmt.typed(command_for(results, *words))
        elif runnable := [w for w in workloads if w in all_workloads()]:
            elsewhere = fmt.typed(command_for(results, "run", "--inventory", "HOSTS", "--suite", ",".join(runnable)))
        yield Gap(
            workloads,
            tuple(of_classes),
            sides,
            line,
            some,
            chosen=len(chosen),
            hosts=len(own_hosts),
            elsewhere=elsewhere,
            titles=tuple(titles[name] for name in of_classes),
        )


def _first(hosts: Sequence[HostInfo], sides: Sequence[str]) -> list[HostInfo]:
    """Return the hosts that a command names: all, or equally many of each side if there are too many."""
    limit = len(hosts) if len(hosts) <= _MOST_HOSTS else max(1, _MOST_HOSTS // len(sides))
    return [host for side in sides for host in [h for h in hosts if h.generation == side][:limit]]


def _workload(
    comparison: Comparison,
    name: str,
    by_side: Mapping[str, Covered],
    sides: Collection[str],
    suite: Mapping[str, str],
) -> str:
    """Return the workload that closes a gap: one that another side ran, or the suite's workload."""
    benchmarks = comparison.benchmarks
    of_class = benchmarks[benchmarks["class"] == name]
    lacked = [t for t in of_class.index if any(t not in comparison.figures[side] for side in sides)]
    if lacked:
        return str(of_class.at[lacked[0], "workload"])
    return suite.get(name, "")


# --- exhibits --------------------------------------------------------------------------------------------------------


def section(known_coverage: Coverage) -> Section:
    """Return the matrix with the commands that close its gaps."""
    marks = _marks(known_coverage)
    notes = (Note(spaced(mark, reason), quiet=True) for mark, reason in marks.values())
    gaps = known_coverage.gaps
    exhibits = (matrix(known_coverage, marks), *notes, *commands(gaps[:MOST_GAPS]))
    return Section("coverage", _TITLE, exhibits, ("html", "pdf", "xlsx", "markdown", "terminal"))


def matrix(known_coverage: Coverage, marks: Mapping[_ReasonKey, tuple[str, str]]) -> Tabular:
    """Return classes by sides, each cell with its state in words and as a shape, and with the mark of its reason."""
    columns = [Column("class", message("class of work"), "name")]
    columns += [Column(f"side_{n}", fmt.clean(side)) for n, side in enumerate(known_coverage.sides)]
    rows = tuple(
        (Cell(known_coverage.titles[name]), *_cells({side: by_side[side] for side in known_coverage.sides}, marks))
        for name, by_side in known_coverage.cells.items()
        if name != WORK_MIX
    )
    shapes = joined([spaced(_SHAPES[s], _WORDS[s]) for s in State], "; ")
    return Tabular("coverage", _TITLE, tuple(columns), rows, notes=(shapes,))


def _marks(known_coverage: Coverage) -> dict[_ReasonKey, tuple[str, str]]:
    """Return a mark for each reason that is long or appears in several cells, with the full reason."""
    cells = [cell for by_side in known_coverage.cells.values() for cell in by_side.items()]
    reasons = [(_reason_key(side, covered.reason), covered.reason) for side, covered in cells if covered.reason]
    number = Counter(key for key, _ in reasons)
    marks: dict[_ReasonKey, tuple[str, str]] = {}
    for key, reason in reasons:
        if number[key] > 1 or len(reason) > _LONGEST_REASON:
            marks.setdefault(key, (f"[{len(marks) + 1}]", reason))
    return marks


def _reason_key(side: str, reason: str) -> _ReasonKey:
    """Return a key that is equal for equal reasons: the text, or for mismatched sizes the side and the kind of size."""
    if isinstance(reason, Message) and "trait" in reason.values:
        return side, str(reason.values["trait"])
    return "", str(reason)


def _cells(row: Mapping[str, Covered], marks: Mapping[_ReasonKey, tuple[str, str]]) -> Iterator[Cell]:
    """Yield the cells of a class. Classes that no side measured have no tone, because the sides do not differ."""
    is_nowhere = all(covered.state is State.MISSING for covered in row.values())
    for side, covered in row.items():
        text = spaced(_SHAPES[covered.state], _WORDS[covered.state])
        mark, _ = marks.get(_reason_key(side, covered.reason), ("", ""))
        details = joined([covered.counts, "" if mark else covered.reason])
        yield Cell(spaced(joined([text, details]), mark), tone="" if is_nowhere else _TONES.get(covered.state, ""))


def _imported(is_partial: bool, classes: str) -> Message:
    if is_partial:
        return message(
            "Imported tables have some benchmarks of {classes} on one side only. Import tables with them, or run them "
            "on such machines",
            classes=classes,
        )
    return message(
        "Imported tables lack benchmarks of {classes}. Import tables with them, or run them on such machines",
        classes=classes,
    )


def commands(gaps: Sequence[Gap], known_sides: Collection[str] = ()) -> Iterator[Command | Note]:
    """Yield the command for each gap. No run here can close the gaps of imported tables.

    ``known_sides``: the text above names what none of these sides measured, so that the command does not repeat it.
    """
    for gap in gaps:
        classes = _some(gap.titles)
        if known_sides and set(gap.sides) == set(known_sides) and not gap.is_partial and (gap.command or gap.elsewhere):
            text = message("Measure what is missing")
            if not gap.command:
                text = message("The tables lack these benchmarks. Import others, or run them on such machines")
            yield Command(_on_some(text, gap), gap.command or gap.elsewhere)
            continue
        if not gap.command:
            text = _imported(gap.is_partial, classes)
            yield Command(text, gap.elsewhere) if gap.elsewhere else Note(message("{sentence}.", sentence=text))
            continue
        sides = joined([fmt.clean(side) for side in gap.sides])
        text = message("Not measured on {sides}: {classes}. To close the gap", classes=classes, sides=sides)
        if gap.is_partial:
            text = message("Only partly measured on {sides}: {classes}. To close the gap", classes=classes, sides=sides)
        yield Command(_on_some(text, gap), gap.command)


def _on_some(text: Message, gap: Gap) -> Message:
    """Return ``text`` with the number of hosts that the command names, if it does not name all."""
    if gap.chosen < gap.hosts:
        return message("{gap} on {chosen} of {hosts} hosts", gap=text, chosen=gap.chosen, hosts=gap.hosts)
    return text


def _some(titles: Sequence[str]) -> str:
    """Return the first titles, and the number of others."""
    named = joined(titles[:MOST_TITLES])
    more = len(titles) - MOST_TITLES
    return message("{names} and {n} more", names=named, n=more) if more > 0 else named


def record(known_coverage: Coverage) -> dict[str, Any]:
    """Return the matrix and the gaps for programs."""
    cells = [
        {
            "class": name,
            "side": side,
            "state": covered.state.value,
            "hosts": covered.hosts,
            "benchmarks": covered.present,
            "known_benchmarks": covered.known,
            "reason": covered.reason,
        }
        for name, by_side in known_coverage.cells.items()
        for side, covered in by_side.items()
    ]
    gaps = [
        {
            "workloads": list(gap.workloads),
            "classes": list(gap.classes),
            "sides": list(gap.sides),
            "command": gap.command,
        }
        for gap in known_coverage.gaps
    ]
    return {"coverage": cells, "gaps": gaps}
