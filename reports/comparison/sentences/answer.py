"""Write the title of a comparison: the best candidate with its ratio or range, and the rank of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fleetmark.base.kinds import PEAK
from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.planner.equivalence import Basis
from fleetmark.reports.comparison.cell import Line
from fleetmark.reports.comparison.sentences.reliance import some
from fleetmark.reports.comparison.service import Service
from fleetmark.reports.comparison.titles import labelled, per_title, spaced
from fleetmark.reports.frontier.section import unit_of
from fleetmark.workloads.declared import frontier

MOST_FIGURES = 2  # maximum number of candidates with a figure in the title
MOST_NAMED = 3  # maximum number of other candidates named in the title; of more, only the next best one


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A candidate with its text in the title, whether the text is a range, and the mean of its log ratios."""

    title: str
    amount: str
    is_range: bool
    mean: float
    number: int


def answer(
    comparison: Comparison, capacity: Sequence[Line], speed: Sequence[Line], served: Sequence[Service], unit: str
) -> str:
    """Return the title. ``unit``: the currency of prices."""
    lead, at_service = leading(comparison, [*capacity, *speed], served)
    if not lead:
        return _none(comparison)
    listed = [_Ranked(c.title, *_amount(lead, k), k) for k, c in enumerate(comparison.candidates)]
    ranked = sorted((r for r in listed if r.amount), key=lambda r: -r.mean)
    first = ranked[0]
    opening: str = _opening(comparison, bool(capacity), unit, first.title, first.amount)
    if at_service:
        opening = _at_service(comparison, served, unit, first.title, first.amount)
    elif len(lead) == 1 and lead[0].class_ != WORK_MIX:
        opening = message("{sentence} on {class_} benchmarks", sentence=opening, class_=lead[0].title)
    if size := _size(comparison, lead, first.number):
        opening = message("{sentence}, at {size}", sentence=opening, size=size)
    with_figures = ranked[:1] if any(r.is_range for r in ranked) else ranked[:MOST_FIGURES]
    if capacity and comparison.per == "server":
        tail: list[str] = [
            message("one {candidate} {amount}", candidate=r.title, amount=r.amount) for r in with_figures[1:]
        ]
    else:
        tail = [spaced(r.title, r.amount) for r in with_figures[1:]]
    if rest := ranked[len(with_figures) :]:
        tail.append(_rest(lead, ranked, [r.title for r in rest]))
    if lacking := [r.title for r in listed if not r.amount]:
        tail.append(message("no overall figure for {candidates}", candidates=some(lacking, MOST_NAMED)))
    for r in with_figures:
        tail += dict.fromkeys(labelled(r.title, c.remark) for line in lead if (c := line.cells[r.number]).remark)
    return joined([opening, *tail], "; ")


def _size(comparison: Comparison, lead: Sequence[Line], number: int) -> str:
    """Return the only size at which a candidate is compared, or nothing."""
    classes = comparison.candidates[number].classes
    sizes = {e.size for line in lead if (e := classes.get(line.class_)) is not None and e.size}
    return sizes.pop() if len(sizes) == 1 else ""


def leading(comparison: Comparison, lines: Sequence[Line], served: Sequence[Service]) -> tuple[Sequence[Line], bool]:
    """Return the lines for the answer, and whether they compare at equal service."""
    lead = leaders([x for x in lines if x.kind == Kind.CAPACITY]) or leaders(lines)
    if not served or not all(_is_of_servers(comparison, line) for line in lead):
        return lead, False
    return [line for line in lead if line.service], True


def leaders(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines for the sentence: the mix if there is one, otherwise all classes without peak variants."""
    names = {line.class_ for line in lines}
    mix = [line for line in lines if line.class_ == WORK_MIX]
    return mix or [x for x in lines if not (x.class_.endswith(PEAK) and x.class_.removesuffix(PEAK) in names)]


def amount(lead: Sequence[Line], k: int) -> str:
    """Return the ratio of candidate ``k``, such as ``2.32 (2.21–2.44)``, or its lowest and highest class ratios."""
    return _amount(lead, k)[0]


def _amount(lead: Sequence[Line], k: int) -> tuple[str, bool, float]:
    """Return the amount of candidate ``k``, whether it is a range, and the mean of its log ratios."""
    known = [(e.value, line, line.cells[k]) for line in lead if (e := line.cells[k].estimate) is not None]
    if not known:
        return "", False, -math.inf
    mean = sum(math.log(value) for value, _, _ in known) / len(known)
    ordered = sorted(known, key=lambda item: item[0])
    (_, low, first), (_, high, last) = ordered[0], ordered[-1]
    if len(ordered) == 1 and len(lead) == 1:
        return first.amount, False, mean
    if len(ordered) == 1:
        return message("{amount} ({class_})", amount=first.figure, class_=low.title), False, mean
    if first.ratio == last.ratio:
        return message("{amount} (every class)", amount=first.figure), False, mean
    ends = {"low": first.figure, "class_": low.title, "high": last.figure, "other": high.title}
    return message("{low} ({class_}) to {high} ({other})", **ends), True, mean


def _rest(lead: Sequence[Line], ranked: Sequence[_Ranked], names: Sequence[str]) -> Message:
    """Return the other candidates in order, and whether all classes agree on the order."""
    values = {"candidates": some(names, MOST_NAMED if len(names) <= MOST_NAMED else 1)}
    if len(lead) == 1:
        return message("next best: {candidates}", **values)
    orders = [[line.cells[r.number].estimate for r in ranked] for line in lead]
    agree = all(x is not None and y is not None and x.value >= y.value for order in orders for x, y in pairwise(order))
    if agree:
        return message("next best in every class: {candidates}", **values)
    return message("next best by the mean of the classes: {candidates}", **values)


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
        "One {per} of {candidate} does {amount} times the work of one of {baseline}",
        per=per_title(comparison.per),
        **values,
    )


def _none(comparison: Comparison) -> Message:
    """Return the reason why there is no overall figure."""
    refused = [e.reason for c in comparison.candidates for e in c.classes.values() if e.basis is Basis.STRATA]
    sizes = [reason.values["trait"] for reason in refused if isinstance(reason, Message) and "trait" in reason.values]
    if sizes:
        return message("There is no overall figure: the sides share no size ({trait})", trait=sizes[0])
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
