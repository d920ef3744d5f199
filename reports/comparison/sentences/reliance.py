"""List what to check before relying on a comparison: unusual hosts, differing settings, standing and gaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.peers import Outlier
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.model import RatioRow, footnotes
from fleetmark.reports.comparison.titles import class_title, spaced
from fleetmark.reports.hosts.generations import by_generation
from fleetmark.reports.kit import format as fmt

MOST_HOSTS = 3
MOST_SETTINGS = 3
MOST_WARNINGS = 3
_UNKNOWN = 0.01  # assumed effect of a finding whose effect is unknown
MOST_NAMED = 2  # maximum number of benchmarks named that were not compared
# Settings that should be the same on all hosts of a comparison.
_SETTINGS = (
    "Governor",
    "Boost",
    "SMT",
    "Transparent huge pages",
    "Mitigations",
    "PCIe below its best",
    "BIOS",
    "Kernel",
)
_OF_A_SIDE = (*_SETTINGS, "CPU", "Cores", "Memory", "DIMMs", "Microcode", "Clock source")
_SIZES = ("Cores", "Memory", "DIMMs")
_TUNED = _SETTINGS[:5]


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence. ``details``: the section with details (``excluded``, ``hosts``, ``peers``), or nothing."""

    text: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason to doubt the answer.

    ``effect`` is the log ratio by which the answer changes without its cause, or None if unknown. ``details`` is
    defined as in Remark.
    """

    text: str
    effect: float | None = None
    details: str = ""


def remarks(
    comparison: Comparison, rows: Sequence[RatioRow], hosts: Sequence[HostInfo], findings: Iterable[Finding]
) -> Iterator[Remark]:
    """Yield remarks on reliability: first the findings with the largest effect, then standings and gaps."""
    ranked = sorted(findings, key=lambda f: -(_UNKNOWN if f.effect is None else f.effect))
    yield from (Remark(f.text, f.details) for f in ranked[:MOST_WARNINGS])
    if len(ranked) > MOST_WARNINGS:
        yield Remark(count(len(ranked) - MOST_WARNINGS, "more warning"), "excluded")
    notes = footnotes(comparison)
    yield from (Remark(note) for note in notes)
    if comparison.grouped and not any(comparison.benchmarks["standing"]):
        yield Remark(message("Published results; none is an estimate or unverified."))
    yield from _gaps(comparison, rows)
    if comparison.pairing is Pairing.PINNED:
        yield Remark(
            message("The pinned reference is a single figure, treated as exact; other machines of its type may differ.")
        )


def some(names: Sequence[str], limit: int = MOST_HOSTS) -> str:
    """Return the first of ``names`` and the number of other names."""
    listed = joined([fmt.clean(n) for n in names[:limit]])
    return message("{hosts} and {n} more", hosts=listed, n=f"{len(names) - limit:,}") if len(names) > limit else listed


def odd_hosts(outliers: Sequence[Outlier], without: str) -> str:
    """Return a sentence on hosts that differ from their peers, with the answer without these hosts."""
    named = joined([_outlier(o) for o in outliers[:MOST_HOSTS]])
    if len(outliers) > MOST_HOSTS:
        named = message("{hosts} and {n} more", hosts=named, n=len(outliers) - MOST_HOSTS)
    if not without:
        return named
    if len(outliers) == 1:
        return message("{hosts}; excluding it: {answer}", hosts=named, answer=without)
    return message("{hosts}; excluding them: {answer}", hosts=named, answer=without)


def _outlier(o: Outlier) -> str:
    values = {"host": fmt.clean(o.host), "part": fmt.share(abs(o.deviation), 0), "class_": class_title(o.class_)}
    if o.deviation < 0:
        slow = message("{host} is {part} slower than its peers", **values)
        return message("{host} is {part} slower than its peers in {class_}", **values) if o.class_ else slow
    return (
        message("{host} is {part} faster than its peers in {class_}", **values)
        if o.class_
        else message("{host} is {part} faster than its peers", **values)
    )


def settings(hosts: Sequence[HostInfo], *, sizes: bool = True) -> Iterator[tuple[Message, Mapping[str, Sequence[str]]]]:
    """Yield settings that differ between hosts of one side, with these hosts by side.

    ``sizes``: also check hardware sizes.
    """
    known = by_generation(hosts)
    side_of = {h.name: h.generation or "" for h in hosts}
    differing: dict[tuple[str, str], list[str]] = {}
    for d in known.deviations:
        if d.name in _OF_A_SIDE and (sizes or d.name not in _SIZES):
            differing.setdefault((d.name, d.text), []).extend(d.hosts)
    ranked = sorted(differing.items(), key=lambda item: _OF_A_SIDE.index(item[0][0]))
    shown = [
        message("{fact} {value} on {hosts}", fact=name, value=_short(text), hosts=some(names))
        for (name, text), names in ranked[:MOST_SETTINGS]
    ]
    if len(ranked) > MOST_SETTINGS:
        shown.append(message("and {n} more", n=len(ranked) - MOST_SETTINGS))
    if shown:
        by_side: dict[str, list[str]] = {}
        for host in dict.fromkeys(h for _, names in ranked for h in names):
            by_side.setdefault(side_of.get(host, ""), []).append(host)
        yield (
            message("Settings that differ from the rest of their side: {settings}", settings=joined(shown, "; ")),
            by_side,
        )


def sides_set_apart(hosts: Sequence[HostInfo]) -> Iterator[Message]:
    """Yield the settings that differ between whole sides."""
    known = by_generation(hosts)
    sides = [generation for generation, _ in known.columns]
    for row in known.rows:
        if row.name in _TUNED and row.differs:
            parts = [spaced(fmt.clean(s), _short(text)) for s, text in zip(sides, row.cells, strict=True)]
            yield message("{fact} differs: {sides}", fact=row.name, sides=joined(parts[:4]))


def threads(hosts: Sequence[HostInfo]) -> Iterator[Finding]:
    """Yield a warning if only some sides use SMT.

    A thread is then a whole core on one side and half a core on another.
    """
    by_side: dict[str, set[float]] = {}
    for host in hosts:
        cpu = host.facts.cpu if host.facts else None
        label = host.labels.get("threads_per_core", "")
        each = (
            cpu.threads / cpu.cores if cpu and cpu.threads and cpu.cores else float(label) if label.isdigit() else 0.0
        )
        if each:
            by_side.setdefault(host.generation or "", set()).add(each)
    shared = [fmt.clean(side) for side, counts in by_side.items() if max(counts) > 1]
    if shared and len({n for counts in by_side.values() for n in counts}) > 1:
        text = message("A thread is half a core on {sides} only (SMT): compare per core instead", sides=joined(shared))
        yield Finding(text, math.log(2), "hosts")


def mix(comparison: Comparison) -> Iterator[Finding]:
    """Yield a warning if the result depends on the mix."""
    ratios = [
        (c.title, e.ratio.value, e.equal_work.value)
        for c in comparison.candidates
        if (e := c.classes.get(WORK_MIX)) and e.ratio and e.equal_work and e.mix_sensitive
    ]
    if ratios:
        shown = joined([spaced(title, fmt.ratio(ratio)) for title, ratio, _ in ratios[:MOST_HOSTS]])
        text = message("The result depends on the mix: the geometric mean of its benchmarks is {ratios}", ratios=shown)
        yield Finding(text, max(abs(math.log(ratio / work)) for _, ratio, work in ratios))


def _short(text: str) -> str:
    shown = text or message("not known")
    return shown if len(shown) <= 48 else f"{shown[:47]}…"


def _gaps(comparison: Comparison, rows: Sequence[RatioRow]) -> Iterator[Remark]:
    """Yield a summary of the benchmarks that were not measured on both sides."""
    left = {row.benchmark for row in rows if row.left_out}
    if left:
        some_left = len({row.benchmark for row in rows if row.benchmark and not row.left_out} & left)
        benchmarks = count(len(left), "benchmark")
        text = message("{benchmarks} not compared: run on one side only, or not comparable", benchmarks=benchmarks)
        if len(left) <= MOST_NAMED:
            names = some(sorted(left))
            text = message(
                "{benchmarks} not compared: {names} (run on one side only, or not comparable)",
                benchmarks=benchmarks,
                names=names,
            )
        if some_left and len(comparison.candidates) > 1:
            text = message("{sentence}; {n} compared with other candidates", sentence=text, n=some_left)
        yield Remark(text, "excluded")
    else:
        yield Remark(message("All measured benchmarks ran on both sides."))
    out = {host for c in comparison.candidates for e in c.classes.values() for host in e.hosts_out}
    if out:
        hosts = count(len(out), "publisher") if comparison.grouped else count(len(out), "host")
        yield Remark(message("Excluded, without shared benchmarks: {hosts}", hosts=hosts), "excluded")
