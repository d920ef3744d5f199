"""The first screen of a comparison: the answer, server counts, regressions, a table of classes, and caveats.

Every format shows this text for these figures, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.kinds import PEAK
from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.planner.equivalence import Basis
from fleetmark.planner.guardrail import Held
from fleetmark.planner.peers import Outlier
from fleetmark.planner.ratio import SAME, Verdict
from fleetmark.record.results import HostInfo
from fleetmark.record.sides.matching import Drop, moved
from fleetmark.reports.comparison.areas import not_measured
from fleetmark.reports.comparison.bought import bought, currency, totals
from fleetmark.reports.comparison.cell import SERVERS, Cell, Line
from fleetmark.reports.comparison.headline import no_interval
from fleetmark.reports.comparison.legend import legend
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.reports.comparison.model import rows as rows_of
from fleetmark.reports.comparison.reliance import (
    Finding,
    Remark,
    mix,
    odd_hosts,
    remarks,
    settings,
    sides_set_apart,
    some,
    threads,
)
from fleetmark.reports.comparison.service import Service, distance, services, unserved, without
from fleetmark.reports.comparison.titles import basis_title, class_title, labelled, spaced, titled
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.frontier.section import unit_of
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads.declared import frontier

MOST_SIDES = 4  # maximum number of candidates in the sentence and in a plot
MOST_WORSE = 6
MOST_BENCHMARKS = 2  # maximum number of benchmarks named per class that gets worse
MOST_AGAIN = 8  # maximum number of warnings for which the answer is recomputed without their cause
_GUARDRAILS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The context of the figures.

    ``hosts``: the hosts of all sides (``generation`` is the side). ``outliers``: hosts unlike their peers. ``without``:
    by baseline, the comparison without outliers. ``families``: server loads to compare at equal service. ``powered``:
    sides with recorded power.

    See ``fleetmark.record.compare.Answer`` for ``causes``, ``effects`` and ``again``.
    """

    hosts: Sequence[HostInfo] = ()
    outliers: Sequence[Outlier] = ()
    without: Mapping[str, Comparison] = field(default_factory=dict)
    families: Sequence[Family] = ()
    powered: Collection[str] = ()
    causes: Mapping[str, Drop] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)
    again: Callable[[str, Drop], Comparison | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The sentences and the table of the first screen.

    ``answer``: the main result. ``basis``: its benchmarks. ``bought``: prices or amounts for ``--per``. ``totals``:
    cost of replacing SERVERS of the baseline. ``worse``, ``unsure``: what gets worse, or may. ``guardrails``: broken
    ones. ``not_measured``: missing areas. ``capacity``, ``speed``: lines by kind. ``becomes``, ``times``: headings of
    their columns. ``before``: remarks to read first. ``legend``: explanations of the intervals.
    """

    answer: str
    sides: str
    basis: str
    bought: str
    totals: tuple[str, ...]
    candidates: tuple[str, ...]
    worse: tuple[str, ...]
    unsure: str
    guardrails: str
    broken: bool
    not_measured: str
    capacity: tuple[Line, ...]
    speed: tuple[Line, ...]
    becomes: str
    times: str
    before: tuple[Remark, ...]
    legend: tuple[str, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """Return the lines of all classes."""
        return (*self.capacity, *self.speed)


def front(comparison: Comparison, rows: Sequence[RatioRow], around: Around | None = None) -> Front:
    """Return the first screen of ``comparison``; ``rows`` is its flat form."""
    around = around or Around()
    served = services(comparison, around.families)
    lines = [*(s.line for s in served), *_lines(comparison, rows)]
    capacity = tuple(line for line in lines if line.kind == Kind.CAPACITY)
    speed = tuple(line for line in lines if line.kind == Kind.RESPONSIVENESS)
    worse = list(_worse(comparison, rows, lines))
    guards, broken = _guardrails(rows)
    servers = any(cell.servers for line in capacity for cell in line.cells)
    return Front(
        answer=_answer(comparison, capacity, speed, served, currency(around.hosts)),
        sides=_sides(comparison, around.hosts),
        basis=_basis(comparison, lines),
        bought=bought(comparison, around.hosts),
        totals=totals(comparison, around.hosts, _lead(capacity), served),
        candidates=tuple(c.title for c in comparison.candidates),
        worse=(
            *worse[:MOST_WORSE],
            *([message("and {n} more", n=len(worse) - MOST_WORSE)] if len(worse) > MOST_WORSE else []),
        ),
        unsure=_unsure(comparison, lines),
        guardrails=guards,
        broken=broken,
        not_measured=not_measured(comparison, around.powered),
        capacity=capacity,
        speed=speed,
        becomes=message("{n} {baseline} become", n=SERVERS, baseline=comparison.baseline) if servers else "",
        times=message("times {baseline}", baseline=comparison.baseline),
        before=tuple(remarks(comparison, rows, around.hosts, _findings(comparison, around))),
        legend=tuple(legend(lines, bool(comparison.grouped))),
    )


# --- the table --------------------------------------------------------------------------------------------------------


def _lines(comparison: Comparison, rows: Sequence[RatioRow]) -> list[Line]:
    heads = {(r.candidate, r.class_): r for r in rows if not r.benchmark}
    lines = []
    for name in dict.fromkeys(r.class_ for r in rows if not r.benchmark):
        heads_of_class = [heads.get((c.title, name)) for c in comparison.candidates]
        present = [r for r in heads_of_class if r is not None]
        cells = tuple(_cell(comparison, r) for r in heads_of_class)
        if any(cell.ratio for cell in cells):
            counted = max(r.benchmarks for r in present)
            kind = comparison.kind(name)
            lines.append(
                Line(
                    class_=name,
                    title=comparison.called.get(name) or class_title(name),
                    kind=kind,
                    benchmarks=counted,
                    remark=_remark(comparison, present),
                    cells=cells,
                )
            )
    return lines


def _cell(comparison: Comparison, row: RatioRow | None) -> Cell:
    if row is None or row.ratio is None:
        return Cell(reason=row.note if row is not None else "")
    replaced = comparison.per == "server" and row.kind == Kind.CAPACITY
    several = row.disagree and row.work is None
    servers = fmt.servers(SERVERS / row.ratio) if replaced else ""
    both = replaced and row.lo is not None and row.hi is not None and row.lo > 0
    (compared,) = [c for c in comparison.candidates if c.title == row.candidate]
    reason = no_interval(comparison, compared, compared.classes[row.class_]) or ""
    far = bool(reason) and row.lo is not None
    both = both and not far
    ends = (fmt.servers(SERVERS / row.hi), fmt.servers(SERVERS / row.lo)) if both and row.hi and row.lo else ()
    return Cell(
        ratio=fmt.ratio(row.ratio),
        interval="" if far else fmt.interval(row.lo, row.hi),
        workload=fmt.interval(row.your_workload_lo, row.your_workload_hi),
        spread=fmt.interval(row.lowest, row.highest) if several else "",
        servers=servers,
        servers_range="–".join(ends) if len(set(ends)) > 1 else "",
        verdict=row.verdict,
        repeats=row.interval_of == "repeats",
        estimate=row.estimate,
        remark=reason if far else "",
        workload_why=row.your_workload_why,
        interval_why=reason,
    )


def _remark(comparison: Comparison, heads: Sequence[RatioRow]) -> str:
    standing = next((r.standing for r in heads if r.standing), "")
    shared, alone = max(r.benchmarks for r in heads), max(r.one_sided for r in heads)
    counts = message("{n} of {all} benchmarks ran on both", n=shared, all=shared + alone) if alone else None
    based = basis_title({r.candidate: r.basis for r in heads if r.ratio is not None})
    return joined([word(standing) if standing else None, counts, based])


# --- sentences --------------------------------------------------------------------------------------------------------


def _answer(
    comparison: Comparison, capacity: Sequence[Line], speed: Sequence[Line], served: Sequence[Service], unit: str
) -> str:
    lead, at_service = _leading(comparison, [*capacity, *speed], served)
    if not lead:
        return _none(comparison)
    amounts = [(c.title, _amount(lead, k)) for k, c in enumerate(comparison.candidates)]
    (title, amount), *others = [(title, amount) for title, amount in amounts if amount]
    opening: str = _opening(comparison, bool(capacity), unit, title, amount)
    if at_service:
        opening = _at_service(comparison, served, unit, title, amount)
    elif len(lead) == 1 and lead[0].class_ != WORK_MIX:
        opening = message("{sentence} for {class_}", sentence=opening, class_=lead[0].title)
    limit = MOST_SIDES - 1
    if capacity and comparison.per == "server":
        tail: list[str] = [message("one {candidate} {amount}", candidate=t, amount=a) for t, a in others[:limit]]
    else:
        tail = [spaced(t, a) for t, a in others[:limit]]
    if len(others) > limit:
        tail.append(message("and {n} more, below", n=len(others) - limit))
    if lacking := [t for t, a in amounts if not a]:
        tail.append(message("no overall figure for {candidates}", candidates=some(lacking, limit)))
    for k, candidate in enumerate(comparison.candidates[: limit + 1]):
        tail += dict.fromkeys(labelled(candidate.title, c.remark) for line in lead if (c := line.cells[k]).remark)
    return joined([opening, *tail], "; ")


def _leading(comparison: Comparison, lines: Sequence[Line], served: Sequence[Service]) -> tuple[Sequence[Line], bool]:
    """Return the lines for the answer, and whether they compare at equal service."""
    lead = _lead([x for x in lines if x.kind == Kind.CAPACITY]) or _lead(lines)
    if not served or not all(_is_of_servers(comparison, line) for line in lead):
        return lead, False
    return [line for line in lead if line.service], True


def _opening(comparison: Comparison, work: bool, unit: str, candidate: str, amount: str) -> Message:
    values = {"candidate": candidate, "baseline": comparison.baseline, "amount": amount}
    if not work:
        return message("{candidate} is {amount} times as fast as {baseline}", **values)
    match comparison.per:
        case "server":
            return message("One {candidate} replaces {amount} {baseline} servers", **values)
        case "money":
            values["unit"] = unit
            return message(
                "1 {unit} spent on {candidate} buys {amount} times the work of 1 {unit} spent on {baseline}", **values
            )
        case "watt":
            return message("1 watt of {candidate} does {amount} times the work of {baseline}", **values)
    return message(
        "One {per} of {candidate} does {amount} times the work of one of {baseline}", per=word(comparison.per), **values
    )


def _none(comparison: Comparison) -> Message:
    """Return the reason why there is no overall figure."""
    refused = [e.reason for c in comparison.candidates for e in c.classes.values() if e.basis is Basis.STRATA]
    if refused:
        return message("There is no overall figure: {why}", why=refused[0])
    return message("There is no overall figure: too few benchmarks ran on both sides.")


def _is_of_servers(comparison: Comparison, line: Line) -> bool:
    """Return whether all workloads of a line have load curves, so that they can be compared at equal service."""
    benchmarks = comparison.benchmarks
    workloads = benchmarks.loc[benchmarks["class"] == line.class_, "workload"].unique()
    return line.service or (line.class_ != WORK_MIX and all(frontier(str(w)) for w in workloads))


def _at_service(comparison: Comparison, served: Sequence[Service], unit: str, candidate: str, amount: str) -> str:
    """Return a sentence such as ``At 50 tokens/s per user, one b200 accelerator replaces 5.08 h200 accelerators``."""
    first = served[0]
    values = {"candidate": candidate, "baseline": comparison.baseline, "amount": amount, "unit": unit}
    values |= {"speed": f"{first.speed:g}", "piece": first.family.frontier.piece}
    if comparison.per == "money":
        return message(
            "At {speed} {piece}s/s per user, 1 {unit} spent on {candidate} buys {amount} times the work of 1 {unit} "
            "spent on {baseline}",
            **values,
        )
    values["unit"] = unit_of(first.family)
    if len({s.speed for s in served}) > 1:
        return message("At equal service, one {candidate} {unit} replaces {amount} {baseline} {unit}s", **values)
    return message(
        "At {speed} {piece}s/s per user, one {candidate} {unit} replaces {amount} {baseline} {unit}s", **values
    )


def _lead(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines for the sentence: the mix if there is one, else all classes, without peak variants of a base."""
    names = {line.class_ for line in lines}
    mix = [line for line in lines if line.class_ == WORK_MIX]
    return mix or [x for x in lines if not (x.class_.endswith(PEAK) and x.class_.removesuffix(PEAK) in names)]


def _amount(lead: Sequence[Line], k: int) -> str:
    """Return the ratio of candidate ``k``, such as ``2.32 (2.21–2.44)``, or the lowest and highest of its classes."""
    known = [(e.value, line, line.cells[k]) for line in lead if (e := line.cells[k].estimate) is not None]
    if not known:
        return ""
    ranked = sorted(known, key=lambda item: item[0])
    (_, low, first), (_, high, last) = ranked[0], ranked[-1]
    if len(ranked) == 1 and len(lead) == 1:
        return first.amount
    if len(ranked) == 1:
        return message("{amount} ({class_})", amount=first.figure, class_=low.title)
    if first.ratio == last.ratio:
        return message("{amount} (every class)", amount=first.figure)
    return message(
        "{low} ({class_}) to {high} ({other})", low=first.figure, class_=low.title, high=last.figure, other=high.title
    )


def _sides(comparison: Comparison, hosts: Sequence[HostInfo]) -> str:
    """Return how many machines each side has."""
    numbers = Counter(h.generation for h in hosts)
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    known = [labelled(t, _hosts(comparison, t, numbers[t])) for t in titles[: 2 * MOST_SIDES] if numbers[t]]
    more = len(titles) - 2 * MOST_SIDES
    return joined([*known, message("and {n} more", n=more) if more > 0 else None], " · ")


def _hosts(comparison: Comparison, side: str, number: int) -> Message:
    """Return the size of a side, such as ``6 hosts``. For published results, name the label that counts as one host."""
    label = comparison.grouped.get(side)
    if label is None:
        return count(number, "host")
    return message("{results}, one figure per {label}", results=count(number, "result"), label=word(label))


def _basis(comparison: Comparison, lines: Sequence[Line]) -> str:
    """Return which benchmarks the answer covers, and their weights."""
    weights = next((c.classes[WORK_MIX].weights for c in comparison.candidates if WORK_MIX in c.classes), {})
    shares: dict[str, float] = {}
    for title, share in weights.items():
        name = str(comparison.benchmarks.loc[title, "class"])
        shares[name] = shares.get(name, 0.0) + share
    parts = [spaced(class_title(c), fmt.share(s, 0)) for c, s in sorted(shares.items(), key=lambda x: -x[1])]
    if parts:
        return message("Your mix: {parts}", parts=joined(parts))
    classes = [line for line in lines if not line.service]
    numbers = [spaced(line.title, str(line.benchmarks)) for line in classes]
    if not numbers:
        return ""
    total = count(sum(line.benchmarks for line in classes), "benchmark")
    over = message("Over {benchmarks} of the panel", benchmarks=total)
    if comparison.panel is None:
        over = message("Over {benchmarks} that both ran", benchmarks=total)
    return labelled(over, joined(numbers))


# --- what gets worse --------------------------------------------------------------------------------------------------


def _worse(comparison: Comparison, rows: Sequence[RatioRow], lines: Sequence[Line]) -> Iterator[str]:
    """Yield the classes that get worse, then single benchmarks that get worse in other classes."""
    for line in lines:
        bad = [(c.title, cell) for c, cell in zip(comparison.candidates, line.cells, strict=True) if cell.worse]
        if bad:
            parts = [_lower(line.kind, t, cell) for t, cell in bad[:MOST_SIDES]]
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


def _lower(kind: str, candidate: str, cell: Cell) -> Message:
    """Return how much worse a candidate is, such as ``genoa 17% slower: 0.83 (0.80–0.86)``."""
    part = fmt.share(1 - (cell.estimate.value if cell.estimate else 1.0), 0)
    values = {"candidate": candidate, "part": part, "ratio": cell.text}
    if kind == Kind.RESPONSIVENESS:
        return message("{candidate} {part} slower, {ratio}", **values)
    return message("{candidate} {part} less work, {ratio}", **values)


def _benchmark(title: str, rows: Sequence[RatioRow]) -> Message:
    figures = [spaced(r.candidate, fmt.ratio(r.ratio or 0.0)) for r in rows[:MOST_SIDES]]
    return labelled(fmt.clean(title), joined(figures))


def _unsure(comparison: Comparison, lines: Sequence[Line]) -> str:
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


def _guardrails(rows: Sequence[RatioRow]) -> tuple[str, bool]:
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
        undecided = message("{n} of {all} cannot be told", n=unclear, all=len(guards))
        return message("No guardrail is broken; {undecided}", undecided=undecided), False
    return (message("All {n} guardrails kept", n=len(guards)) if guards else ""), False


def _findings(comparison: Comparison, around: Around) -> Iterator[Finding]:
    """Yield the reasons to doubt the answer, each with the answer without its cause if it can be computed."""
    if around.outliers:
        odd = {o.side: [other.host for other in around.outliers if other.side == o.side] for o in around.outliers}
        answer, effect = _compared(comparison, around.without.get(comparison.baseline), odd, around.families)
        yield Finding(odd_hosts(around.outliers, answer), effect, "peers")
    matched = any(e.basis is Basis.STRATA for c in comparison.candidates for e in c.classes.values())
    for text, drop in settings(around.hosts, sizes=not matched):
        answer, effect = _again(comparison, around, drop)
        sentence = message("{sentence}; excluding them: {answer}", sentence=text, answer=answer) if answer else text
        yield Finding(sentence, effect, "hosts")
    yield from (Finding(text, None, "hosts") for text in sides_set_apart(around.hosts))
    if comparison.per == "thread":
        yield from threads(around.hosts)
    if reason := unserved(comparison, around.families):
        yield Finding(reason)
    yield from mix(comparison)
    for n, warning in enumerate(comparison.warnings):
        cause = around.causes.get(warning, {})
        answer, effect = _again(comparison, around, cause) if cause and n < MOST_AGAIN else ("", None)
        known = around.effects.get(warning, effect)
        shown: str = fmt.clean(titled(warning))
        if answer and effect and effect > SAME:
            shown = message("{sentence}; without this difference: {answer}", sentence=shown, answer=answer)
        yield Finding(shown, known)


def _again(comparison: Comparison, around: Around, drop: Drop) -> tuple[str, float | None]:
    """Return the answer without the machines in ``drop``, and its distance from the answer with them."""
    drop = {side: hosts for side, hosts in drop.items() if hosts}
    if around.again is None or not drop:
        return "", None
    return _compared(comparison, around.again(comparison.baseline, drop), drop, around.families)


def _compared(
    comparison: Comparison, other: Comparison | None, drop: Drop, families: Sequence[Family]
) -> tuple[str, float | None]:
    """Return the answer of ``other``, made without the machines in ``drop``, and how far it moves.

    The answer covers the affected candidates. There is none if ``other`` compares on another basis or at another level
    of service, because its figures then have another meaning.
    """
    if other is None or _sized(comparison) != _sized(other):
        return "", None
    before = services(comparison, families)
    served = services(other, [without(family, drop) for family in families])
    if [s.line.class_ for s in before] != [s.line.class_ for s in served]:
        return "", None
    lead, at_service = _leading(other, [*(s.line for s in served), *_lines(other, rows_of(other))], served)
    amounts = [
        spaced(c.title, _amount(lead, k) or message("no figure"))
        for k, c in enumerate(other.candidates)
        if comparison.baseline in drop or c.title in drop
    ]
    return joined(amounts[:MOST_SIDES]), distance(before, served) if at_service else moved(comparison, other)


def _sized(comparison: Comparison) -> set[tuple[str, str]]:
    """Return the candidates and classes that are compared size by size."""
    return {(c.title, name) for c in comparison.candidates for name, e in c.classes.items() if e.basis is Basis.STRATA}
