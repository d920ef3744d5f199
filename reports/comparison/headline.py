"""Describe the headline of a class in sentences: the ratio, its benchmarks, their spread, and both intervals.

The *fleet* interval shows how precise the mean over these benchmarks is. The *your workload* interval shows where
another workload of this class is likely to lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.comparison import WORK_MIX, Candidate, Comparison
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.equivalence import Basis, Equivalence
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Ratio
from fleetmark.planner.remarks import numbered
from fleetmark.reports.kit import format as fmt

FAR = 10  # an interval by clusters that reaches beyond this multiple of the ratio is too wide to be useful


def sentence(comparison: Comparison, candidate: Candidate, name: str, e: Equivalence) -> str:
    """Return the headline as a sentence; empty if there is none.

    For example: ``2.11x (95% 2.04-2.17) over 4 benchmarks that both ran (range 1.28-2.98); 3 more ran on one side
    only``. If the benchmarks disagree, their range and its ends come first.
    """
    if e.headline is None:
        return ""
    sides = (comparison.baseline, candidate.title)
    ratio = _times(e.headline, comparison, sides)
    if e.work and e.ratio:
        return joined([_of_mix(comparison, e, ratio), based(e), _range(comparison, e), _beside(e, e.ratio)], "; ")
    if e.basis is not Basis.MEAN:
        over = message("{ratio} {over}", ratio=ratio, over=_benchmarks(comparison, e))
        return joined([over, based(e), _range(comparison, e)], "; ")
    parts = [_over(comparison, e, ratio), *_kinds(e.headline, comparison, sides)]
    more = one_sided(comparison, candidate, name, e)
    return joined([*parts, message("{n} more ran on one side only", n=more) if more else ""], "; ")


def based(e: Equivalence) -> Message | None:
    """Return the basis of a headline, or None if it is the mean over all hosts."""
    if e.basis is Basis.MEAN or e.geometric is None:
        return None
    mean = fmt.ratio(e.geometric.value)
    if e.basis is Basis.TOTALS and e.work:
        return message("based on totals, since the hosts of a side differ; host by host it is {ratio}", ratio=mean)
    if e.basis is Basis.TOTALS:
        return message("based on totals, since the hosts of a side differ; the geometric mean is {ratio}", ratio=mean)
    if e.size:
        return message("compared at {size} only; over all sizes it is {ratio}", size=e.size, ratio=mean)
    return message("compared size by size, weighted by the baseline's shares; over all hosts it is {ratio}", ratio=mean)


def no_interval(comparison: Comparison, candidate: Candidate, e: Equivalence) -> Message | None:
    """Return why a headline has no interval, or one from too few clusters to be useful; otherwise None."""
    ratio = e.headline
    if ratio is None:
        return None
    far = ratio.lo is None or ratio.hi is None or max(ratio.hi / ratio.value, ratio.value / ratio.lo) > FAR
    if ratio.interval is not None and not (far and ratio.clusters):
        return None
    sides = zip(e.clusters, (comparison.baseline, candidate.title), strict=True)
    clusters = [(c, side) for c, side in sides if c is not None]
    if clusters:
        fewest, side = min(clusters, key=lambda item: item[0].number)
        return message("{number} of {side} are too few for an interval", number=numbered(fewest)[0], side=side)
    reasons = (
        (ratio.clusters, message("the hosts of a size form too few clusters for an interval")),
        (e.basis is Basis.STRATA, message("a side has a single host in one of the sizes")),
        (min(ratio.n, default=1) < 2, message("a side is one machine or publisher, measured once")),
        (e.basis is Basis.TOTALS, message("hosts of a side differ too much for an interval of their totals")),
    )
    return next((reason for holds, reason in reasons if holds), message("its figures do not show its uncertainty"))


def one_sided(comparison: Comparison, candidate: Candidate, name: str, e: Equivalence) -> int:
    """Return how many benchmarks of a class ran on one side only; a mix counts its own benchmarks."""
    if name == WORK_MIX:
        return 0
    a, b = (comparison.figures[side] for side in (comparison.baseline, candidate.title))
    return sum((title in a) != (title in b) for title in e.left_out)


def short_titles(titles: Iterable[str], metrics: Iterable[str] = ()) -> Mapping[str, str]:
    """Return each title shortened to the words that distinguish it from the others.

    For example: ``505.mcf_r`` for ``spec_cpu2017 505.mcf_r base_ratio``. The metric is omitted if the other words are
    enough.
    """
    words = {title: title.split() for title in titles}
    shared = set.intersection(*(set(tokens) for tokens in words.values())) if len(words) > 1 else set()
    for needless in (shared | set(metrics), shared):
        short = {title: " ".join(w for w in tokens if w not in needless) for title, tokens in words.items()}
        if all(short.values()) and len(set(short.values())) == len(short):
            return short
    return {title: title for title in words}


def span(lo: float | None, hi: float | None) -> str:
    """Return an interval, such as ``2.04–2.17``; empty without ends."""
    return fmt.interval(lo, hi)


FLEET = message("fleet: 95% interval of the mean of these benchmarks, over hosts")
WORKLOAD = message("your workload: where, at 95%, work of this class lies that is none of these benchmarks")


# --- parts of the sentence --------------------------------------------------------------------------------------------


def _times(ratio: Ratio, comparison: Comparison, sides: tuple[str, str]) -> Message:
    """Return the ratio with its interval and hosts, such as ``2.11x (95% 2.04-2.17, 2 hosts per side)``."""
    value = fmt.ratio(ratio.value)
    if ratio.interval is None:
        return message("{ratio}x", ratio=value)
    level = f"{ratio.level:.0%}"
    if ratio.of_repeats:
        return message("{ratio}x ({level} by repeats {interval})", ratio=value, level=level, interval=_of(ratio))
    few = _few(ratio, comparison, sides)
    if few:
        return message("{ratio}x ({level} {interval}, {few})", ratio=value, level=level, interval=_of(ratio), few=few)
    return message("{ratio}x ({level} {interval})", ratio=value, level=level, interval=_of(ratio))


def _of(estimate: Estimate) -> str:
    return span(estimate.lo, estimate.hi)


def _few(ratio: Ratio, comparison: Comparison, sides: tuple[str, str]) -> Message | str | None:
    """Return a note on sides with only two hosts, or two groups of hosts such as vendors; otherwise None."""
    if comparison.pairing is not Pairing.APART:
        return message("2 hosts") if ratio.n[1] == 2 else None
    two = [side for n, side in zip(ratio.n, sides, strict=True) if n == 2]
    if len(two) == 2 and not comparison.grouped.keys() & set(two):
        return message("2 hosts per side")
    return joined([_two(side, comparison.grouped.get(side)) for side in two]) or None


def _two(side: str, label: str | None) -> Message:
    if label is None:
        return message("2 hosts of {side}", side=side)
    return message("2 hosts of {side}, each all of one {label}", label=label, side=side)


def counted(comparison: Comparison, titles: Iterable[str]) -> int:
    """Return the number of benchmarks behind a headline; those that measure the same quantity count once."""
    quantity = comparison.benchmarks["quantity"]
    return len({str(quantity.get(title) or title) for title in titles})


def _benchmarks(comparison: Comparison, e: Equivalence) -> Message:
    benchmarks = count(counted(comparison, e.weights), "benchmark")
    if comparison.panel is not None:
        return message("over {benchmarks} of the panel", benchmarks=benchmarks)
    return message("over {benchmarks} that both ran", benchmarks=benchmarks)


def _over(comparison: Comparison, e: Equivalence, ratio: Message) -> Message:
    over = _benchmarks(comparison, e)
    if counted(comparison, e.weights) < 2 or e.lowest is None or e.highest is None:
        return message("{ratio} {over}", ratio=ratio, over=over)
    if not e.disagree:
        return message("{ratio} {over} (range {range})", ratio=ratio, over=over, range=span(e.lowest, e.highest))
    return message("{ends}; mean {ratio} {over}", ends=ends(comparison, e), ratio=ratio, over=over)


def ends(comparison: Comparison, e: Equivalence) -> Message:
    """Return the range of the benchmark ratios with names: ``1.28 (whisper, 1.24–1.33) to 2.98 (llama3.1-405b)``.

    The intervals of both ends are adjusted for selection by value.
    """
    short = short_titles(e.weights, comparison.benchmarks.loc[list(e.weights), "metric"])
    low, high = ("" if value is None else fmt.ratio(value) for value in (e.lowest, e.highest))
    one = _end(short.get(e.lowest_title, e.lowest_title), e.lowest_interval)
    other = _end(short.get(e.highest_title, e.highest_title), e.highest_interval)
    return message("{low} ({one}) to {high} ({other})", low=low, one=one, high=high, other=other)


def _end(name: str, interval: tuple[float, float] | None) -> str:
    return joined([name, span(*interval) if interval else ""])


def _kinds(ratio: Ratio, comparison: Comparison, sides: tuple[str, str]) -> list[Message]:
    """Return the remarks for sides with a single host; a pair of hosts counts as one."""
    single = [side for n, side in zip(ratio.n, sides, strict=True) if n == 1]
    single = [sides[1]] if comparison.pairing is Pairing.SAME_HOSTS and single else single
    if not single or (ratio.interval is not None and not ratio.single):
        return []
    if len(single) == 2 and not comparison.grouped.keys() & set(single):
        return [message("these two machines, not their kinds")]
    return [_one(side, comparison.grouped.get(side)) for side in single]


def _one(side: str, label: str | None) -> Message:
    if label is None:
        return message("one machine of {side}, not its kind", side=side)
    return message("one {label} of {side} alone", label=label, side=side)


def _of_mix(comparison: Comparison, e: Equivalence, ratio: Message) -> Message:
    return message(
        "{ratio} for the same jobs over {benchmarks} of the mix",
        ratio=ratio,
        benchmarks=count(counted(comparison, e.weights), "benchmark"),
    )


def _range(comparison: Comparison, e: Equivalence) -> Message | None:
    return message("range {ends}", ends=ends(comparison, e)) if len(e.weights) > 1 else None


def _beside(e: Equivalence, geometric: Ratio) -> Message:
    interval = _of(geometric)
    value = fmt.ratio(geometric.value)
    level = f"{geometric.level:.0%}"
    mean = message("{ratio}x ({level} {interval})", ratio=value, level=level, interval=interval)
    shown = mean if interval else message("{ratio}x", ratio=value)
    if e.mix_sensitive:
        return message("geometric mean {ratio}, depends on the mix", ratio=shown)
    return message("geometric mean {ratio}", ratio=shown)
