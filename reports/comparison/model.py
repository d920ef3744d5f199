"""Represent a comparison as flat rows, which all forms of the report share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.measurement import Kind, Standing
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import CLASH, WORK_MIX, Candidate, Comparison
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.equivalence import Basis, Equivalence
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Ratio
from fleetmark.reports.comparison import headline
from fleetmark.reports.kit import format as fmt

MOST_NAMED = 4  # maximum hosts that a note names per reason
MOST_REASONS = 4
_KINDS = [Kind.CAPACITY.value, Kind.RESPONSIVENESS.value, Kind.GUARDRAIL.value]  # in the order of the report


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioRow:
    """One row of the comparison: a class's headline (``benchmark`` is empty) or a single benchmark.

    - ``baseline_value``, ``candidate_value``: geometric means in ``unit`` (a base unit)
    - ``ratio``: the normalised ratio, oriented so that above 1 means the candidate is better; None if unknown, and
      ``note`` gives the reason
    - ``lowest``, ``highest``: the extreme benchmark ratios behind a headline, with their titles
    - ``disagree``: True if they differ so much that the mean alone misleads
    - ``work``: for a mix, the ratio for equal work, as in ``ratio``
    - ``geometric``: the geometric mean over all hosts, if ``ratio`` is computed differently
    - ``resampled_lo``, ``resampled_hi``: a headline's bootstrap interval over hosts, for large enough fleets
    - ``p_adjusted``: p adjusted for all of the candidate's benchmarks or classes (Benjamini-Hochberg); it determines
      the verdict
    - ``verdict_raw``: the verdict from the unadjusted p
    - ``interval_of``: ``fleet``, or ``repeats`` if a side has a single host; ``lo`` and ``hi`` then describe these
      machines and not their types
    - ``your_workload_lo``, ``your_workload_hi``: the prediction interval for another workload of the class; if unknown,
      ``your_workload_why`` gives the reason
    - ``lowest_lo`` to ``highest_hi``: intervals of the extreme benchmarks, widened to correct for selection by value
    - ``basis``: the method behind the headline, a Basis; ``size``: the only size of machine that it covers, if any
    - ``benchmarks``, ``one_sided``: the number of benchmarks in a headline, and of those that only one side ran
    - ``headline``: the whole headline as a sentence
    - ``ends``: a short form of its range, with names
    - ``kind``: a Kind
    - ``verdict``: for a guardrail, which has no ratio, whether it was kept or broken (``Held``); ``limit`` is its limit
      in ``unit``
    - ``arithmetic``: a benchmark's ratio of arithmetic means over hosts, with Fieller's interval, which is unbounded
      and omitted if ``fieller_g`` is 1 or more
    """

    candidate: str
    class_: str
    kind: str = ""
    benchmark: str = ""
    unit: str = ""
    better: str = ""
    baseline_value: float | None = None
    candidate_value: float | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None
    hosts_baseline: int = 0
    hosts_candidate: int = 0
    verdict: str = ""
    lowest: float | None = None
    highest: float | None = None
    work: float | None = None
    weight: float | None = None
    standing: str = ""
    note: str = ""
    resampled_lo: float | None = None
    resampled_hi: float | None = None
    p_adjusted: float | None = None
    verdict_raw: str = ""
    your_workload_lo: float | None = None
    your_workload_hi: float | None = None
    geometric: float | None = None
    lowest_title: str = ""
    highest_title: str = ""
    disagree: bool = False
    interval_of: str = ""
    benchmarks: int = 0
    one_sided: int = 0
    headline: str = ""
    ends: str = ""
    limit: float | None = None
    arithmetic: float | None = None
    arithmetic_lo: float | None = None
    arithmetic_hi: float | None = None
    fieller_g: float | None = None
    your_workload_why: str = ""
    lowest_lo: float | None = None
    lowest_hi: float | None = None
    highest_lo: float | None = None
    highest_hi: float | None = None
    basis: str = ""
    size: str = ""

    @property
    def guardrail(self) -> bool:
        """Return whether the row is a guardrail, which has no ratio."""
        return self.kind == Kind.GUARDRAIL and bool(self.verdict)

    @property
    def left_out(self) -> bool:
        """Return whether the row is a benchmark that was not compared."""
        return bool(self.benchmark) and self.ratio is None and not self.guardrail

    @property
    def estimate(self) -> Estimate | None:
        """Return the ratio with its interval; None if there is no ratio."""
        if self.ratio is None:
            return None
        return Estimate(self.ratio, self.lo, self.hi, n=(self.hosts_baseline, self.hosts_candidate))


def rows(comparison: Comparison) -> list[RatioRow]:
    """Return the rows of each candidate: classes with their benchmarks, then benchmarks not compared, then guardrails.

    A mix of work comes first, then classes of capacity. A reason is recorded for each benchmark that was not compared.
    """
    return [row for candidate in comparison.candidates for row in _of(comparison, candidate)]


def _of(comparison: Comparison, candidate: Candidate) -> Iterator[RatioRow]:
    class_of = comparison.benchmarks["class"].to_dict()
    of_one = lone(comparison, candidate)
    for name, e in sorted(candidate.classes.items(), key=lambda c: _place(comparison, c[0])):
        yield replace(_headline(comparison, candidate, name, e), kind=comparison.kind(name))
        for title, ratio in e.each.items():
            if name != class_of[title]:
                continue  # a work mix, whose benchmarks are listed under their classes
            note = "" if title in e.weights else e.left_out.get(title, message("no weight"))
            note = joined([note, of_one.get(title, "")], "; ")
            yield _benchmark(comparison, candidate, title, ratio, e.weights.get(title), note)
        for title, reason in e.left_out.items():
            if title not in e.each and name == class_of.get(title):
                yield _benchmark(comparison, candidate, title, None, None, reason)
    for title, reason in candidate.excluded.items():
        row = _benchmark(comparison, candidate, title, None, None, reason)
        if reason.startswith(CLASH):  # its values cannot be shown side by side
            row = replace(row, unit="", baseline_value=None, candidate_value=None)
        yield row
    for title, guard in candidate.guardrails.items():
        row = _benchmark(comparison, candidate, title, None, None, guard.reason)
        row = replace(row, baseline_value=guard.a, candidate_value=guard.b, limit=guard.limit)
        if guard.change is not None:
            row = replace(row, p=guard.change.p, p_adjusted=guard.change.p_adjusted)
        yield replace(row, verdict=str(guard.held or ""), hosts_baseline=guard.n[0], hosts_candidate=guard.n[1])


def lone(comparison: Comparison, candidate: Candidate) -> dict[str, Message]:
    """Return the benchmarks that only one of several hosts ran, with a note on their interval."""
    each = {title: r for e in candidate.classes.values() for title, r in e.each.items()}
    notes: dict[str, Message] = {}
    for place, side in enumerate((comparison.baseline, candidate.title)):
        largest = max((r.n[place] for r in each.values()), default=0)
        for title, ratio in each.items():
            if ratio.n[place] == 1 < largest:
                notes[title] = (
                    message("one host of {side} ran it: the interval comes from its repeats", side=side)
                    if ratio.interval is not None
                    else message("one host of {side} ran it, with too few repeats: no interval", side=side)
                )
    return notes


def _place(comparison: Comparison, class_: str) -> tuple[bool, int]:
    return class_ != WORK_MIX, _KINDS.index(comparison.kind(class_))


def _headline(comparison: Comparison, candidate: Candidate, name: str, e: Equivalence) -> RatioRow:
    remarks = [e.reason, headline.based(e)]
    if e.ratio and e.gaps and e.basis is Basis.MEAN:
        remarks.append(message("hosts lack figures: estimated by a mixed model"))
    lo, hi = (e.resampled.lo, e.resampled.hi) if e.resampled else (None, None)
    if lo is not None and hi is not None:
        remarks.append(message("{lo} to {hi} by the bootstrap over hosts", lo=fmt.ratio(lo), hi=fmt.ratio(hi)))
    if e.hosts_out:
        reasons: dict[str, list[str]] = {}
        for host, reason in e.hosts_out.items():
            reasons.setdefault(reason, []).append(host)
        names = [_out(joined(_some(hosts, MOST_NAMED)), reason) for reason, hosts in reasons.items()]
        remarks.append(message("without {hosts}", hosts=joined(_some(names, MOST_REASONS))))
    standings = {s for t in e.weights for s in candidate.standing.get(t, "").split(", ") if s}
    row = RatioRow(
        candidate=candidate.title, class_=name, weight=1.0 if e.ratio else None, lowest=e.lowest, highest=e.highest
    )
    row = replace(row, resampled_lo=lo, resampled_hi=hi, disagree=e.disagree)
    row = replace(row, standing=", ".join(sorted(standings)), note=joined(remarks, "; "))
    row = replace(row, lowest_title=e.lowest_title, highest_title=e.highest_title)
    row = replace(row, headline=headline.sentence(comparison, candidate, name, e))
    row = replace(row, ends=headline.ends(comparison, e) if len(e.weights) > 1 and e.ratio else "")
    row = replace(row, benchmarks=headline.counted(comparison, e.weights) if e.ratio else 0)
    row = replace(row, one_sided=headline.one_sided(comparison, candidate, name, e))
    if e.workload:
        row = replace(row, your_workload_lo=e.workload.lo, your_workload_hi=e.workload.hi)
    row = replace(row, your_workload_why=e.workload_why)
    if len(e.weights) > 1:
        (low, low_hi), (high, high_hi) = (
            (None, None) if i is None else i for i in (e.lowest_interval, e.highest_interval)
        )
        row = replace(row, lowest_lo=low, lowest_hi=low_hi, highest_lo=high, highest_hi=high_hi)
    if e.work and e.ratio:
        row = replace(row, work=e.work.value, geometric=e.ratio.value)
    elif e.geometric:
        row = replace(row, geometric=e.geometric.value)
    row = replace(row, basis=e.basis.value, size=e.size)
    return _with(row, e.headline)


def _out(host: str, reason: str) -> str:
    return message("{host} ({why})", host=host, why=reason)


def _some(names: Sequence[str], limit: int) -> list[str]:
    more = [message("and {n} more", n=len(names) - limit)] if len(names) > limit else []
    return [*names[:limit], *more]


def _benchmark(
    comparison: Comparison, candidate: Candidate, title: str, ratio: Ratio | None, weight: float | None, note: str
) -> RatioRow:
    benchmark = comparison.benchmarks.loc[title]
    a, b = (comparison.figures[side].get(title) for side in (comparison.baseline, candidate.title))
    row = RatioRow(
        candidate=candidate.title,
        class_=str(benchmark["class"]),
        kind=str(benchmark["kind"]),
        benchmark=title,
        unit=str(benchmark["unit"]),
        better=str(benchmark["better"]),
        baseline_value=a,
        candidate_value=b,
        weight=weight,
        standing=candidate.standing.get(title, ""),
        note=note,
    )
    if raw := candidate.arithmetic.get(title):
        row = replace(row, arithmetic=raw.value, arithmetic_lo=raw.lo, arithmetic_hi=raw.hi, fieller_g=raw.g)
    return _with(row, ratio)


def _with(row: RatioRow, ratio: Ratio | None) -> RatioRow:
    if ratio is None:
        return row
    return replace(
        row,
        ratio=ratio.value,
        lo=ratio.lo,
        hi=ratio.hi,
        p=ratio.p,
        p_adjusted=ratio.p_adjusted,
        interval_of="" if ratio.interval is None else "repeats" if ratio.of_repeats else "fleet",
        verdict=str(ratio.verdict),
        verdict_raw=str(replace(ratio, p_adjusted=None).verdict),
        hosts_baseline=ratio.n[0],
        hosts_candidate=ratio.n[1],
    )


def footnotes(comparison: Comparison) -> list[str]:
    """Return the footnotes that owners of benchmarks and publishers of results require."""
    names = {name for text in comparison.benchmarks["standing"] for name in str(text).split(", ") if name}
    return [*(Standing(name).footnote for name in sorted(names)), *comparison.credits]


def question(comparison: Comparison) -> str:
    """Return the question that the comparison answers, in one line."""
    values = {
        "baseline": comparison.baseline,
        "candidates": " / ".join(c.title for c in comparison.candidates),
        "per": word(comparison.per),
    }
    if not any(comparison.kind(name) == Kind.CAPACITY for c in comparison.candidates for name in c.classes):
        return message("How fast is {candidates} compared with {baseline}?", **values)
    if comparison.per != "server":
        return message("How much work does {candidates} do per {per}, compared with {baseline}?", **values)
    if comparison.pairing is Pairing.SAME_HOSTS:
        return message(
            "How many {baseline} servers does one {candidates} replace, the same hosts before and after?", **values
        )
    return message("How many {baseline} servers does one {candidates} replace?", **values)
