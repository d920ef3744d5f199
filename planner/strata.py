"""Compare sides within strata, weighted by the baseline's shares, to avoid Simpson's paradox."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.comparison import Candidate, among_many
from fleetmark.planner.equivalence import ENDS, Basis, Equivalence
from fleetmark.planner.estimate import Estimate, of_log
from fleetmark.planner.guardrail import Guardrail, Held, held_by, judged_together
from fleetmark.planner.ratio import Mean, Ratio, satterthwaite, student
from fleetmark.planner.remarks import of_hosts

_NO_CLUSTERS = (None, None)  # ``hosts_of`` names the clusters of each stratum instead
_NO_HALVES: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] = ((), ())


@dataclass(frozen=True, slots=True)
class Part:
    """One stratum.

    ``share`` is its share of the baseline's machines. ``candidate`` is the comparison within the stratum, or None if
    the sides have no common benchmark in this stratum. ``hosts`` are the names of both sides' hosts.
    """

    name: str
    share: float
    candidate: Candidate | None
    hosts: tuple[Sequence[str], Sequence[str]] = ((), ())


def refused(candidate: Candidate, reason: Message) -> Candidate:
    """Return ``candidate`` without headlines, benchmark ratios and verdicts on guardrails without a limit.

    ``why`` is the reason why its sides cannot be matched.
    """
    classes = {
        name: replace(
            e, ratio=None, work=None, reason=reason, each={}, lowest=None, highest=None, workload=None, workload_why="",
            resampled=None,
            lowest_interval=None, highest_interval=None, left_out={**e.left_out, **dict.fromkeys(e.each, reason)},
            basis=Basis.STRATA, clusters=_NO_CLUSTERS, halves=_NO_HALVES,
        )
        for name, e in candidate.classes.items()
    }  # fmt: skip
    guards = {
        title: g
        if g.limit is not None or g.held is None
        else replace(g, held=Held.CANNOT_TELL, change=None, reason=reason)
        for title, g in candidate.guardrails.items()
    }
    return replace(candidate, classes=classes, guardrails=guards, arithmetic={})


def joined_parts(pooled: Candidate, parts: Sequence[Part]) -> Candidate:
    """Return ``pooled`` with every ratio replaced by the share-weighted geometric mean over the strata.

    Guardrails without a limit get the share-weighted mean of the changes. If a stratum lacks a class or benchmark,
    there is no ratio, and the reason names the stratum.
    """
    classes = {name: _class(name, e, parts) for name, e in pooled.classes.items()}
    guards = judged_together({title: _guardrail(title, g, parts) for title, g in pooled.guardrails.items()})
    return replace(pooled, classes=among_many(classes), guardrails=guards, arithmetic={})


def _guardrail(title: str, pooled: Guardrail, parts: Sequence[Part]) -> Guardrail:
    if pooled.limit is not None or pooled.held is None:
        return pooled
    pairs = [(p, None if p.candidate is None else p.candidate.guardrails.get(title)) for p in parts]
    known = [(p.share, g.a, g.b, g.change) for p, g in pairs if g is not None and g.a is not None and g.b is not None]
    if len(known) < len(parts):
        lacking = joined(p.name for p, g in pairs if g is None or g.held is None)
        reason = message("not measured on both sides in {strata}", strata=lacking)
        return replace(pooled, held=None, change=None, reason=reason)
    total = sum(share for share, *_ in known)
    a, b = sum(share * a for share, a, _, _ in known) / total, sum(share * b for share, _, b, _ in known) / total
    unchanged = Ratio(1.0, 1.0, 1.0, p=1.0)  # all figures of a stratum are zero
    change = join([(share, change or unchanged) for share, _, _, change in known])
    reason = message("no limit: compared with the baseline size by size")
    return replace(pooled, a=a, b=b, change=change, held=held_by(change), reason=reason)


def _class(name: str, pooled: Equivalence, parts: Sequence[Part]) -> Equivalence:
    pairs = [(p, None if p.candidate is None else p.candidate.classes.get(name)) for p in parts]
    each: dict[str, Ratio] = {}
    left_out = dict(pooled.left_out)
    for title in pooled.each:
        ratios = [(p.share, e.each[title]) for p, e in pairs if e is not None and title in e.each]
        if len(ratios) == len(parts):
            each[title] = join(ratios)
        else:
            lacking = [p.name for p, e in pairs if e is None or title not in e.each]
            left_out[title] = message("not measured on both sides in {strata}", strata=joined(lacking))
    before = pooled.headline
    matches = [(p.share, e) for p, e in pairs if e is not None and e.headline is not None]
    if before is None or len(matches) < len(parts):
        without = [p.name for p, e in pairs if e is None or e.headline is None]
        reason = message("no result in {strata}: measure it on both sides there", strata=joined(without))
        return replace(
            pooled, ratio=None, work=None, reason=pooled.reason or reason, each=each, left_out=left_out, lowest=None,
            highest=None, lowest_interval=None, highest_interval=None, workload=None, workload_why="",
            resampled=None,
            clusters=_NO_CLUSTERS, halves=_NO_HALVES, basis=pooled.basis if before is None else Basis.STRATA,
        )  # fmt: skip
    ratio = join([(s, e.ratio) for s, e in matches if e.ratio is not None])
    work = join([(s, e.work) for s, e in matches if e.work is not None]) if pooled.work else None
    workload = _workload([(s, e.workload) for s, e in matches])
    inside = sorted((t for t in each if t in pooled.weights), key=lambda t: each[t].value)
    ends = (each[inside[0]], each[inside[-1]]) if inside else None
    return replace(
        pooled,
        ratio=ratio,
        work=work,
        each=each,
        left_out=left_out,
        lowest=ends[0].value if ends else None,
        highest=ends[1].value if ends else None,
        lowest_interval=ends[0].selected(ENDS, len(inside)) if ends else None,
        highest_interval=ends[1].selected(ENDS, len(inside)) if ends else None,
        lowest_title=inside[0] if inside else "",
        highest_title=inside[-1] if inside else "",
        resampled=None,
        workload=workload,
        workload_why="" if workload else next((e.workload_why for _, e in matches if not e.workload), ""),
        basis=Basis.STRATA,
        strata=[(p.share, *p.hosts) for p in parts],
        size=parts[0].name if len(parts) == 1 else "",
        geometric=before,
        clusters=_NO_CLUSTERS,
        halves=_NO_HALVES,
    )


def join(ratios: Sequence[tuple[float, Ratio]]) -> Ratio:
    """Return exp(sum of share x ln ratio) with Student's t interval, or without one if a stratum has none.

    The variances add. The degrees of freedom are Satterthwaite's, for an interval and for one of many tests.
    """
    total = sum(share for share, _ in ratios)
    log = sum(share * math.log(r.value) for share, r in ratios) / total
    n = (sum(r.n[0] for _, r in ratios), sum(r.n[1] for _, r in ratios))
    if any(r.interval is None or r.of_repeats for _, r in ratios):
        return Ratio(of_log(log), n=n)
    errors = [share / total * (r.log_error or 0.0) for share, r in ratios]

    def degrees(dfs: Iterable[float | None]) -> float:
        return satterthwaite([Mean(0.0, error**2, df or math.inf) for error, df in zip(errors, dfs, strict=True)])

    df, df_many = degrees(r.df for _, r in ratios), degrees(r.df_many or r.df for _, r in ratios)
    ratio = student(log, sum(error**2 for error in errors), df, ratios[0][1].level, n)
    return replace(ratio, df_many=df_many, clusters=any(r.clusters for _, r in ratios))


def _workload(ends: Sequence[tuple[float, Estimate | None]]) -> Estimate | None:
    """Return the share-weighted prediction interval for another workload, or None if a stratum has no interval."""
    known = [(s, e) for s, e in ends if e is not None and e.lo is not None and e.hi is not None]
    if len(known) < len(ends):
        return None
    total = sum(s for s, _ in known)

    def weighted(values: Sequence[tuple[float, float]]) -> float:
        return of_log(sum(s * math.log(v) for s, v in values) / total)

    lo, hi = weighted([(s, e.lo or 1.0) for s, e in known]), weighted([(s, e.hi or 1.0) for s, e in known])
    return Estimate(weighted([(s, e.value) for s, e in known]), lo, hi, n=known[0][1].n)


def named(parts: Sequence[Part], class_: str) -> Mapping[str, float]:
    """Return the ratio of the class in each stratum, by the stratum's name."""
    matches = {}
    for part in parts:
        e = None if part.candidate is None else part.candidate.classes.get(class_)
        if e is not None and e.headline is not None:
            matches[part.name] = e.headline.value
    return matches


def hosts_of(
    baseline: str, candidate: str, classes: Mapping[str, Equivalence], parts: Sequence[Part]
) -> Iterator[Message]:
    """Yield the sentences of ``planner.remarks`` for each stratum of the ``classes`` that have a figure."""
    shown = [name for name, e in classes.items() if e.basis is Basis.STRATA and e.headline is not None]
    for part in parts:
        within = {} if part.candidate is None else {n: part.candidate.classes[n] for n in shown}
        one, other = (joined([side, f"({part.name})"], " ") for side in (baseline, candidate))
        yield from of_hosts(one, other, within)
