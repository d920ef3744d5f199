"""List what gets worse, what may get worse, and which guardrails are broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.planner.comparison import Comparison
from fleetmark.planner.guardrail import Held
from fleetmark.planner.ratio import SAME, Verdict
from fleetmark.reports.comparison.cell import Cell, Line
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.reports.comparison.sentences.reliance import some
from fleetmark.reports.comparison.titles import class_title, labelled, per_title, spaced
from fleetmark.reports.kit import format as fmt

MOST_SIDES = 4  # maximum number of candidates named
MOST_WORSE = 6
MOST_BENCHMARKS = 2  # maximum number of benchmarks named per class that gets worse
_GUARDRAILS = 3


def worse(comparison: Comparison, rows: Sequence[RatioRow], lines: Sequence[Line]) -> Iterator[str]:
    """Yield the classes that get worse, then single benchmarks that get worse in other classes."""
    for line in lines:
        bad = [(c.title, cell) for c, cell in zip(comparison.candidates, line.cells, strict=True) if cell.worse]
        if bad:
            parts = [_lower(comparison, line.kind, t, cell) for t, cell in bad[:MOST_SIDES]]
            if len(bad) > MOST_SIDES:
                parts.append(message("and {n} more", n=len(bad) - MOST_SIDES))
            sentence = labelled(line.title, joined(parts))
            yield joined([sentence, line.remark], "; ")
    counted = {
        (c.title, line.class_)
        for line in lines
        for c, x in zip(comparison.candidates, line.cells, strict=True)
        if x.worse
    }
    single: dict[str, dict[str, list[RatioRow]]] = {}
    for row in rows:
        if row.benchmark and row.verdict == Verdict.WORSE and (row.candidate, row.class_) not in counted:
            single.setdefault(row.class_, {}).setdefault(row.benchmark, []).append(row)
    for name, by_benchmark in single.items():
        ranked = sorted(by_benchmark.items(), key=lambda item: min(r.ratio or 1.0 for r in item[1]))
        parts = [_benchmark(title, ranked_rows) for title, ranked_rows in ranked[:MOST_BENCHMARKS]]
        if len(ranked) > MOST_BENCHMARKS:
            parts.append(message("and {n} more", n=len(ranked) - MOST_BENCHMARKS))
        yield labelled(comparison.called.get(name) or class_title(name), joined(parts, "; "))


def _lower(comparison: Comparison, kind: str, candidate: str, cell: Cell) -> Message:
    """Return how much worse a candidate is, such as ``genoa 17% slower: 0.83 (0.80–0.86)``."""
    part = fmt.share(1 - (cell.estimate.value if cell.estimate else 1.0), 0)
    values = {"candidate": candidate, "part": part, "ratio": cell.text}
    if kind == Kind.RESPONSIVENESS:
        return message("{candidate} {part} slower, {ratio}", **values)
    if comparison.per != "server":
        return message("{candidate} {part} less work per {per}, {ratio}", per=per_title(comparison.per), **values)
    return message("{candidate} {part} less work, {ratio}", **values)


def _benchmark(title: str, rows: Sequence[RatioRow]) -> Message:
    figures = [spaced(r.candidate, fmt.ratio(r.ratio or 0.0)) for r in rows[:MOST_SIDES]]
    return labelled(fmt.clean(title), joined(figures))


def unsure(comparison: Comparison, lines: Sequence[Line]) -> str:
    """Return the classes that may get worse: their ratio is below 1, but not significantly."""
    parts = []
    for line in lines:
        low = [
            spaced(c.title, cell.text)
            for c, cell in zip(comparison.candidates, line.cells, strict=True)
            if cell.verdict == Verdict.CANNOT_TELL and cell.estimate and cell.estimate.value < 1 - SAME
        ]
        if low:
            parts.append(labelled(line.title, joined(low[:MOST_SIDES])))
    more = [message("and {n} more", n=len(parts) - MOST_WORSE)] if len(parts) > MOST_WORSE else []
    return joined([*parts[:MOST_WORSE], *more], "; ")


def guardrails(rows: Sequence[RatioRow]) -> tuple[str, bool]:
    guards = [r for r in rows if r.guardrail]
    broken = [r for r in guards if r.verdict == Held.BROKEN]
    if broken:
        names = list(dict.fromkeys(r.benchmark for r in broken))
        return message(
            "{n} of {all} guardrails broken: {benchmarks}",
            n=len(broken),
            all=len(guards),
            benchmarks=some(names, _GUARDRAILS),
        ), True
    unclear = sum(r.verdict == Held.CANNOT_TELL for r in guards)
    if unclear:
        undecided = message("{n} of {all} are undecided", n=unclear, all=len(guards))
        return message("No guardrail is broken; {undecided}", undecided=undecided), False
    return (message("All {n} guardrails kept", n=len(guards)) if guards else ""), False
