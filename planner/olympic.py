"""Compute MLPerf Training's result of a benchmark: the mean of its runs without the fastest and the slowest.

The source is the training rules (training_rules.adoc, Benchmark Results and Scoring) of rounds v0.7 to v6.0, and the
HPC rules of v3.0. A benchmark requires a number of runs. Runs that did not converge may count as the slowest, up to the
number that is dropped at one end. With one more such run, there is no result.

If there are more runs than required, every set of that many consecutive runs is scored, and the median set is the
result. The rules do not specify which of two middle sets is used; this module uses the slower one.

Whether convergence was plausible (the reference convergence points) is not checked here, because it does not follow
from times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LONGEST = 1e12  # seconds; longer times cannot be times to train


@dataclass(kw_only=True, frozen=True, slots=True)
class Olympic:
    """The olympic mean of the runs of a benchmark, if there is one.

    ``mean`` is in seconds, or None if the rules give no mean; ``reason`` then says what is missing. ``required`` is
    None for a benchmark that the rules do not contain. ``scored`` has the positions (from 0) of the runs in the scored
    set, in the given order. ``dropped`` has the positions that the mean leaves out.
    """

    benchmark: str
    mean: float | None
    required: int | None
    count: int
    scored: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    reason: str = ""


def olympic_mean(
    benchmark: str, times: Sequence[float | None], runs: Mapping[str, int], dropped: Mapping[str, int]
) -> Olympic:
    """Return the result of ``times`` to train, in seconds and in launch order; None for a run that did not converge.

    ``benchmark`` is its name in logs (``llama2_70b_lora``). ``runs`` has the number of runs that each benchmark
    requires, and ``dropped`` the number that is dropped at each end if it is not one. There is no mean if there are too
    few runs, or too many that did not converge.
    """
    required, count = runs.get(benchmark), len(times)
    ends = dropped.get(benchmark, 1)
    reason = _unfit(benchmark, times, required)
    if required is None or reason:
        return Olympic(benchmark=benchmark, mean=None, required=required, count=count, reason=reason)
    starts = range(count - required + 1)
    ranked = sorted(starts, key=lambda start: (_score(times[start : start + required], ends), start))
    middle = ranked[len(ranked) // 2]
    mean = _score(times[middle : middle + required], ends)
    if math.isinf(mean):
        return Olympic(
            benchmark=benchmark,
            mean=None,
            required=required,
            count=count,
            reason=_lost(times, required, len(ranked), ends),
        )
    scored = tuple(range(middle, middle + required))
    order = sorted(scored, key=lambda place: (_or_inf(times[place]), place))
    outer = tuple(sorted((*order[:ends], *order[-ends:])))
    reason = "" if count == required else f"runs {middle + 1} to {middle + required} of {count}: the middle set"
    return Olympic(
        benchmark=benchmark, mean=mean, required=required, count=count, scored=scored, dropped=outer, reason=reason
    )


def _unfit(benchmark: str, times: Sequence[float | None], required: int | None) -> str:
    """Return why the runs have no score, or an empty string if they have one."""
    if required is None:
        return f"the training rules do not specify a number of runs for {benchmark!r}"
    for place, time in enumerate(times):
        if time is not None and not 0 < time < _LONGEST:
            return f"{time!r} s (run {place + 1}) is not a time to train"
    if len(times) < required:
        return f"{required} runs are needed, {len(times)} {'was' if len(times) == 1 else 'were'} given"
    return ""


def _lost(times: Sequence[float | None], required: int, sets: int, ends: int) -> str:
    """Return why the scored set has no mean."""
    if sets == 1:
        return f"{times.count(None)} runs did not converge, at most {ends} may"
    return (
        f"of the {sets} sets of {required} consecutive runs, the middle one has more than {ends} that did not converge"
    )


def _score(times: Sequence[float | None], ends: int) -> float:
    """Return the olympic mean of a set; infinite if too many of its runs did not converge."""
    inner = sorted(map(_or_inf, times))[ends:-ends]
    return math.fsum(inner) / len(inner)


def _or_inf(time: float | None) -> float:
    return math.inf if time is None else time
