"""Build the first screen of a comparison: the answer, server counts, regressions, a table of classes, and caveats.

Every format shows the same text for these figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.planner.cost import SERVERS, Terms, needed
from fleetmark.planner.equivalence import Basis
from fleetmark.planner.peers import LEAST, Outlier
from fleetmark.planner.ratio import SAME
from fleetmark.record.results import HostInfo
from fleetmark.record.sides.matching import Drop, moved
from fleetmark.record.sides.mixtures import is_of_size
from fleetmark.reports.comparison.areas import not_measured
from fleetmark.reports.comparison.cell import Cell, Line
from fleetmark.reports.comparison.headline import no_interval
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.reports.comparison.model import rows as rows_of
from fleetmark.reports.comparison.purchase.bought import Pieces, bought, currency
from fleetmark.reports.comparison.purchase.costs import Costs, costs
from fleetmark.reports.comparison.sentences.answer import amount, answer, leaders, leading
from fleetmark.reports.comparison.sentences.legend import legend
from fleetmark.reports.comparison.sentences.reliance import (
    Finding,
    Remark,
    mix,
    odd_hosts,
    remarks,
    settings,
    sides_set_apart,
    threads,
)
from fleetmark.reports.comparison.sentences.worse import MOST_WORSE, guardrails, unsure, worse
from fleetmark.reports.comparison.service import Service, distance, services, unserved, without
from fleetmark.reports.comparison.titles import basis_title, class_title, labelled, spaced, titled
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.frontier.section import unit_of
from fleetmark.reports.kit import format as fmt

MOST_SIDES = 4  # maximum number of candidates in the sentence and in a plot
MOST_AGAIN = 8  # maximum number of warnings for which the answer is recomputed without their cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The context of the figures.

    ``hosts``: the hosts of all sides (``generation`` is the side). ``outliers``: hosts that differ from their peers.
    ``without``: by baseline, the comparison without outliers. ``families``: server loads to compare at equal service.
    ``powered``: sides with recorded power.

    See ``fleetmark.record.compare.Answer`` for ``causes``, ``effects``, ``again``, ``terms``, ``whole_servers`` and
    ``same_size``. ``counted``: the number of hosts, or publishers, behind the figures of each side.
    """

    hosts: Sequence[HostInfo] = ()
    outliers: Sequence[Outlier] = ()
    without: Mapping[str, Comparison] = field(default_factory=dict)
    families: Sequence[Family] = ()
    powered: Collection[str] = ()
    causes: Mapping[str, Drop] = field(default_factory=dict)
    effects: Mapping[str, float] = field(default_factory=dict)
    again: Callable[[str, Drop], Comparison | None] | None = None
    terms: Terms = field(default_factory=Terms)
    whole_servers: Mapping[str, Comparison] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    same_size: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The sentences and the table of the first screen.

    ``answer``: the main result. ``basis``: the benchmarks behind it. ``bought``: prices or amounts for ``--per``.
    ``costs``: the costs of replacing servers of the baseline. ``worse``, ``unsure``: what gets worse, and what may get
    worse. ``guardrails``: broken ones. ``not_measured``: missing areas. ``peers``: whether hosts differ from their
    peers, if none does. ``capacity``, ``speed``: lines by kind.
    ``becomes``, ``times``: headings of their columns. ``before``: remarks to read first. ``legend``: explanations of
    the intervals.
    """

    answer: str
    sides: str
    basis: str
    bought: str
    costs: Costs
    candidates: tuple[str, ...]
    worse: tuple[str, ...]
    unsure: str
    guardrails: str
    broken: bool
    not_measured: str
    peers: str
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
    number = around.terms.servers
    served = services(comparison, around.families, number)
    lines = [*(s.line for s in served), *_lines(comparison, rows, number)]
    whole_servers, of_servers, whole_served = _whole(comparison, around, lines, served)
    if comparison.per == "money":
        lines = [_counted(line, of_servers) for line in lines]
    capacity = tuple(line for line in lines if line.kind == Kind.CAPACITY)
    speed = tuple(line for line in lines if line.kind == Kind.RESPONSIVENESS)
    listed = list(worse(comparison, rows, lines))
    guards, broken = guardrails(rows)
    servers = any(cell.servers for line in capacity for cell in line.cells)
    return Front(
        answer=answer(comparison, capacity, speed, served, currency(around.hosts)),
        sides=_sides(comparison, around),
        basis=joined([_loads(served), _basis(comparison, lines)], " · "),
        bought=bought(comparison, around.hosts, _pieces(whole_served)),
        costs=costs(
            whole_servers,
            around.hosts,
            leaders([x for x in of_servers if x.kind == Kind.CAPACITY]),
            whole_served,
            around.terms,
        ),
        candidates=tuple(c.title for c in comparison.candidates),
        worse=(
            *listed[:MOST_WORSE],
            *([message("and {n} more", n=len(listed) - MOST_WORSE)] if len(listed) > MOST_WORSE else []),
        ),
        unsure=unsure(comparison, lines),
        guardrails=guards,
        broken=broken,
        not_measured=not_measured(comparison, around.powered),
        peers=_peers(comparison, around),
        capacity=capacity,
        speed=speed,
        becomes=message("{n} {baseline} become", n=f"{number:,}", baseline=comparison.baseline) if servers else "",
        times=message("times {baseline}", baseline=comparison.baseline),
        before=tuple(remarks(comparison, rows, around.hosts, _findings(comparison, around))),
        legend=tuple(legend(lines, bool(comparison.grouped))),
    )


def _peers(comparison: Comparison, around: Around) -> str:
    """Return a sentence if no host differs from its peers, or if no host has peers; empty for published results."""
    counts = around.counted.values()
    if not counts or around.outliers or comparison.grouped:
        return ""
    if max(counts) == 1:
        return message("No side has several hosts, so an unusual host cannot be detected")
    return message("No host differs from its peers") if min(counts) >= LEAST else ""


# --- the table --------------------------------------------------------------------------------------------------------


def _whole(
    comparison: Comparison, around: Around, lines: Sequence[Line], served: Sequence[Service]
) -> tuple[Comparison, Sequence[Line], Sequence[Service]]:
    """Return the comparison of whole servers, with its lines and services.

    If no figure is divided, these are the ones of the given comparison.
    """
    whole_servers = around.whole_servers.get(comparison.baseline)
    if whole_servers is None:
        return comparison, lines if comparison.per == "server" else [], served
    whole_served = services(whole_servers, around.families, around.terms.servers)
    of_classes = _lines(whole_servers, rows_of(whole_servers), around.terms.servers)
    return whole_servers, [*(s.line for s in whole_served), *of_classes], whole_served


def _counted(line: Line, of_servers: Sequence[Line]) -> Line:
    """Return a line of ``--per money`` with the numbers of servers that do the same work."""
    other = next((x for x in of_servers if (x.class_, len(x.cells)) == (line.class_, len(line.cells))), None)
    if other is None:
        return line
    cells = (
        replace(cell, servers=like.servers, servers_range=like.servers_range, needed_servers=like.needed_servers)
        for cell, like in zip(line.cells, other.cells, strict=True)
    )
    return replace(line, cells=tuple(cells))


def _lines(comparison: Comparison, rows: Sequence[RatioRow], number: int = SERVERS) -> list[Line]:
    heads = {(r.candidate, r.class_): r for r in rows if not r.benchmark}
    lines = []
    for name in dict.fromkeys(r.class_ for r in rows if not r.benchmark):
        heads_of_class = [heads.get((c.title, name)) for c in comparison.candidates]
        present = [r for r in heads_of_class if r is not None]
        cells = tuple(_cell(comparison, r, number) for r in heads_of_class)
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


def _cell(comparison: Comparison, row: RatioRow | None, number: int) -> Cell:
    if row is None or row.ratio is None:
        return Cell(reason=row.note if row is not None else "")
    replaced = comparison.per == "server" and row.kind == Kind.CAPACITY
    several = row.disagree and row.work is None
    servers = fmt.servers(number / row.ratio) if replaced else ""
    both = replaced and row.lo is not None and row.hi is not None and row.lo > 0
    (compared,) = [c for c in comparison.candidates if c.title == row.candidate]
    reason = no_interval(comparison, compared, compared.classes[row.class_]) or ""
    far = bool(reason) and row.lo is not None
    both = both and not far
    ends = (fmt.servers(number / row.hi), fmt.servers(number / row.lo)) if both and row.hi and row.lo else ()
    return Cell(
        ratio=fmt.ratio(row.ratio),
        interval="" if far else fmt.interval(row.lo, row.hi),
        workload=fmt.interval(row.your_workload_lo, row.your_workload_hi),
        spread=fmt.interval(row.lowest, row.highest) if several else "",
        servers=servers,
        servers_range="–".join(ends) if len(set(ends)) > 1 else "",
        needed_servers=needed(number, row.ratio) if replaced else None,
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
    based = basis_title({r.candidate: r.size or r.basis for r in heads if r.ratio is not None})
    return joined([word(standing) if standing else None, counts, based])


# --- sentences --------------------------------------------------------------------------------------------------------


def _sides(comparison: Comparison, around: Around) -> str:
    """Return how many machines each side has."""
    numbers = Counter(h.generation for h in around.hosts)
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    known = [
        labelled(t, _hosts(comparison, t, numbers[t], around.counted.get(t)))
        for t in titles[: 2 * MOST_SIDES]
        if numbers[t]
    ]
    more = len(titles) - 2 * MOST_SIDES
    return joined([*known, message("and {n} more", n=more) if more > 0 else None], " · ")


def _hosts(comparison: Comparison, side: str, number: int, counted: int | None) -> Message:
    """Return the size of a side, such as ``6 hosts``. For published results, name the label that counts as one host."""
    label = comparison.grouped.get(side)
    if label is None:
        return count(number, "host")
    if counted is not None:
        values = {"results": count(number, "result"), "n": counted, "label": word(label)}
        return message("{results}, {n} figures (one per {label})", **values)
    return message("{results}, one figure per {label}", results=count(number, "result"), label=word(label))


def _pieces(served: Sequence[Service]) -> Pieces:
    """Return the number of accelerators in each machine if loads of servers are compared."""
    by_host = {host: size for service in served for host, size in service.family.sizes.items()}
    return Pieces(unit_of(served[0].family), by_host) if by_host else Pieces()


def _loads(served: Sequence[Service]) -> str:
    """Return which load curves the figures at equal service come from."""
    names = joined(dict.fromkeys(fmt.clean(f"{s.family.workload} {s.family.name}") for s in served))
    return message("Load curves of {names}", names=names) if names else ""


def _basis(comparison: Comparison, lines: Sequence[Line]) -> str:
    """Return the benchmarks behind the answer, and their weights."""
    weights = next((c.classes[WORK_MIX].weights for c in comparison.candidates if WORK_MIX in c.classes), {})
    shares: dict[str, float] = {}
    for title, share in weights.items():
        name = str(comparison.benchmarks.loc[title, "class"])
        shares[name] = shares.get(name, 0.0) + share
    parts = [spaced(class_title(c), fmt.share(s, 0)) for c, s in sorted(shares.items(), key=lambda x: -x[1])]
    if parts:
        return message("Your mix: {parts}", parts=joined(parts))
    classes = [line for line in lines if not line.service]
    counts = Counter[str]()
    for line in classes:
        counts[line.title] += line.benchmarks
    numbers = [spaced(title, str(n)) for title, n in counts.items()]
    if not numbers:
        return ""
    total = count(sum(line.benchmarks for line in classes), "benchmark")
    over = message("Over {benchmarks} of the panel", benchmarks=total)
    if comparison.panel is None:
        several = len(comparison.candidates) > 1
        over = message("Over {benchmarks} that both ran", benchmarks=total)
        over = message("Over {benchmarks} that all sides ran", benchmarks=total) if several else over
    return labelled(over, joined(numbers))


# --- reasons to doubt the answer --------------------------------------------------------------------------------------


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
    for n, warning in enumerate(_one_per_size(comparison.warnings, bool(around.same_size))):
        cause = around.causes.get(warning, {})
        answer, effect = _again(comparison, around, cause) if cause and n < MOST_AGAIN else ("", None)
        known = around.effects.get(warning, effect)
        shown: str = fmt.clean(titled(warning))
        if answer and effect and effect > SAME:
            shown = message("{sentence}; without this difference: {answer}", sentence=shown, answer=answer)
        yield Finding(shown, known, "hosts" if cause else "")


def _one_per_size(warnings: Sequence[str], is_narrowed: bool) -> Iterator[str]:
    """Yield the warnings, but only the first warning about different sizes for each candidate and kind of size.

    ``is_narrowed``: a command narrows the sides to one size, which makes warnings about numbers of parts redundant.
    """
    seen = set()
    for warning in warnings:
        values = warning.values if isinstance(warning, Message) else {}
        if is_narrowed and is_of_size(warning):
            continue
        if "size" in values and "candidate" in values:
            if (key := (values["candidate"], "size", values["size"])) in seen:
                continue
            seen.add(key)
        if isinstance(reason := values.get("what"), Message) and "trait" in reason.values:
            key = (values.get("name"), reason.template, reason.values["trait"])
            if key in seen:
                continue
            seen.add(key)
        yield warning


def _again(comparison: Comparison, around: Around, drop: Drop) -> tuple[str, float | None]:
    """Return the answer without the machines in ``drop``, and its distance from the answer with them."""
    drop = {side: hosts for side, hosts in drop.items() if hosts}
    if around.again is None or not drop:
        return "", None
    return _compared(comparison, around.again(comparison.baseline, drop), drop, around.families)


def _compared(
    comparison: Comparison, other: Comparison | None, drop: Drop, families: Sequence[Family]
) -> tuple[str, float | None]:
    """Return the answer of ``other``, which excludes the machines in ``drop``, and how far the answer moves.

    The answer covers the affected candidates. There is no answer if ``other`` compares on another basis or at another
    level of service, because its figures then have another meaning.
    """
    if other is None or _sized(comparison) != _sized(other):
        return "", None
    before = services(comparison, families)
    served = services(other, [without(family, drop) for family in families])
    if [s.line.class_ for s in before] != [s.line.class_ for s in served]:
        return "", None
    lead, at_service = leading(other, [*(s.line for s in served), *_lines(other, rows_of(other))], served)
    amounts = [
        spaced(c.title, amount(lead, k) or message("no figure"))
        for k, c in enumerate(other.candidates)
        if comparison.baseline in drop or c.title in drop
    ]
    return joined(amounts[:MOST_SIDES]), distance(before, served) if at_service else moved(comparison, other)


def _sized(comparison: Comparison) -> set[tuple[str, str, str]]:
    """Return the candidates and classes that are compared size by size or at one size, with that size."""
    return {
        (c.title, name, e.size)
        for c in comparison.candidates
        for name, e in c.classes.items()
        if e.basis is Basis.STRATA
    }
