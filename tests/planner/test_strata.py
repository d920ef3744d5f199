"""Test ratios within strata, joined by the baseline's shares, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.planner.clustered import Clusters
from fleetmark.planner.comparison import Candidate
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.equivalence import Basis, Equivalence
from fleetmark.planner.estimate import Estimate, deviate
from fleetmark.planner.guardrail import Guardrail, Held, guardrail
from fleetmark.planner.ratio import Ratio, two_sided
from fleetmark.planner.remarks import of_hosts
from fleetmark.planner.strata import Part, hosts_of, join, joined_parts, refused


def ratio(log: float, error: float, df: float = 4.0, df_many: float | None = None) -> Ratio:
    """Return exp(``log``) with Student's t interval."""
    half = deviate(0.95, df) * error
    return Ratio(math.exp(log), math.exp(log - half), math.exp(log + half), df=df, n=(3, 3), p=0.01, df_many=df_many)


def class_of(each: dict[str, Ratio], head: Ratio | None, **values: Any) -> Equivalence:
    """Return a class whose benchmarks have equal weights, in order of their ratios."""
    names = list(each)
    low, high = each[names[0]], each[names[-1]]
    e = Equivalence(
        ratio=head,
        reason="",
        work=None,
        each=each,
        weights=dict.fromkeys(names, 1 / len(names)),
        lowest=low.value,
        highest=high.value,
        left_out={},
        hosts_out={},
    )
    intervals = {"lowest_interval": low.interval, "highest_interval": high.interval}
    return replace(e, lowest_title=names[0], highest_title=names[-1], **{**intervals, **values})


def candidate(e: Equivalence) -> Candidate:
    return Candidate(title="new", classes={"cpu-int": e}, excluded={}, standing={})


def within(pooled: Equivalence, *parts: Equivalence | None) -> Equivalence:
    """Return the class within strata of equal shares."""
    named = [Part(f"size {n}", 1 / len(parts), None if e is None else candidate(e)) for n, e in enumerate(parts)]
    return joined_parts(candidate(pooled), named).classes["cpu-int"]


def three(shift: float) -> dict[str, Ratio]:
    return {name: ratio(log + shift, 0.1) for name, log in (("x", 0.0), ("y", 0.2), ("z", 0.4))}


def test_both_ends_have_the_interval_within_strata() -> None:
    """Two strata, half each: logs 0.0 and 0.2 give 0.1 with the error sqrt(2 x 0.05^2) = 0.0707 of 4 + 4 degrees.

    Two picks of three have the level 1 - 0.05 x 2 / 3 = 0.9667.
    """
    pooled = class_of(three(-1.0), ratio(-0.8, 0.1))
    e = within(pooled, class_of(three(0.0), ratio(0.2, 0.1)), class_of(three(0.2), ratio(0.4, 0.1)))
    half = deviate(1 - 0.05 * 2 / 3, 8.0) * math.sqrt(0.005)
    assert e.basis is Basis.STRATA and e.lowest == pytest.approx(math.exp(0.1))
    assert e.lowest_interval == pytest.approx((math.exp(0.1 - half), math.exp(0.1 + half)))
    assert e.highest_interval == pytest.approx((math.exp(0.5 - half), math.exp(0.5 + half)))


def test_without_a_figure_neither_end_has_an_interval() -> None:
    pooled = class_of(three(0.0), ratio(0.2, 0.1))
    for e in (
        within(pooled, class_of(three(0.0), ratio(0.2, 0.1)), None),
        refused(candidate(pooled), message("sides mix sizes")).classes["cpu-int"],
    ):
        assert e.headline is None and e.basis is Basis.STRATA
        assert e.lowest is e.highest is e.lowest_interval is e.highest_interval is None


def test_a_mix_is_sensitive_by_what_is_within_strata() -> None:
    """Within strata the mix gives exp(0.10), the geometric mean exp(0.11): 1% apart. Over all hosts it is exp(0.40)."""
    mixed = {"work": ratio(0.10, 0.01)}
    parts = [class_of(three(0.0), ratio(0.11, 0.01), **mixed) for _ in range(2)]
    e = within(class_of(three(0.0), ratio(0.11, 0.01), work=ratio(0.40, 0.01)), *parts)
    assert e.work and e.equal_work is e.work and e.work.value == pytest.approx(math.exp(0.10))
    assert not e.mix_sensitive


def test_one_of_many_has_the_ceiling_of_its_strata() -> None:
    """Two strata, half each, with equal errors: degrees add up. An interval has 20 + 20, one of many tests 3 + 3."""
    parts = [class_of({"x": ratio(0.2, 0.1, 20.0, 3.0)}, ratio(0.2, 0.1, 20.0, 3.0)) for _ in range(2)]
    joined = within(parts[0], *parts).each["x"]
    assert joined.df == pytest.approx(40.0) and joined.df_many == pytest.approx(6.0)
    t = 0.2 / math.sqrt(2 * 0.05**2)
    assert joined.p == pytest.approx(two_sided(t, 40.0)) and joined.p_of_many == pytest.approx(two_sided(t, 6.0))
    without = ratio(0.2, 0.1, 20.0)  # one stratum has no ceiling: its degrees stay 20
    assert join([(0.5, without), (0.5, ratio(0.2, 0.1, 20.0, 3.0))]).df_many == pytest.approx(4 / (1 / 20 + 1 / 3))


def test_clusters_are_those_of_each_stratum() -> None:
    """Over all hosts there are two batches; within strata only hosts of size 0 form clusters."""
    two = Clusters("batch", 2, 0.8, np.array([0, 0, 1, 1]))
    in_clusters = replace(ratio(0.2, 0.1), clusters=True)
    pooled = class_of(three(0.0), in_clusters, clusters=(two, None), halves=([["x"], ["y", "z"]], ()))
    parts = [
        class_of(three(0.0), in_clusters, clusters=(replace(two, icc=0.5), None)),
        class_of(three(0.0), ratio(0.2, 0.1)),
    ]
    e = within(pooled, *parts)
    assert e.ratio and e.ratio.clusters and e.clusters == (None, None) and e.halves == ((), ())
    assert list(of_hosts("old", "new", {"cpu-int": e})) == []
    named = [Part(f"size {n}", 0.5, candidate(part)) for n, part in enumerate(parts)]
    (sentence,) = hosts_of("old", "new", {"cpu-int": e}, named)
    assert "the interval counts 2 batches of old (size 0)" in sentence and "ICC 0.5" in sentence


def test_an_own_workload_that_a_stratum_does_not_know_has_its_reason() -> None:
    """Over all hosts it was known to lie from 1 to 2."""
    pooled = class_of(three(0.0), ratio(0.2, 0.1), workload=Estimate(1.4, 1.0, 2.0))
    knows = class_of(three(0.0), ratio(0.2, 0.1), workload=Estimate(1.4, 1.0, 2.0))
    single = class_of(three(0.0), ratio(0.2, 0.1), workload_why="a side is a single host")
    e = within(pooled, knows, single)
    assert e.workload is None and e.workload_why == "a side is a single host"
    both = within(replace(pooled, workload_why="too few"), knows, knows)
    assert both.workload and both.workload.interval == pytest.approx((1.0, 2.0)) and both.workload_why == ""


def losing(old: list[float], new: list[float]) -> Guardrail:
    """Return a guardrail without a limit; lower figures are better."""
    a, b = (-np.log(pd.Series(side, [f"h{n}" for n in range(len(side))])) for side in (old, new))
    return guardrail(a, b, Better.LOWER, None, Pairing.APART)


def test_a_guardrail_is_compared_size_by_size() -> None:
    """Small hosts lose 1%, large ones 4%, before and after: the baseline has more large ones, the candidate more small.

    Over all hosts the loss falls from 3.4% to 1.6%. Within sizes it rises by half: to 1.5% and to 6%. The shares are
    20% and 80%: 0.2 x 1 + 0.8 x 4 = 3.4 becomes 0.2 x 1.5 + 0.8 x 6 = 5.1.
    """
    small = [0.99, 1.0, 1.01]
    large = [3.96, 4.0, 4.04]
    parts = [
        Part(
            "small",
            0.2,
            Candidate(
                title="new",
                classes={},
                excluded={},
                standing={},
                guardrails={"loss": losing(small, [1.5 * x for x in small])},
            ),
        ),
        Part(
            "large",
            0.8,
            Candidate(
                title="new",
                classes={},
                excluded={},
                standing={},
                guardrails={"loss": losing(large, [1.5 * x for x in large])},
            ),
        ),
    ]
    pooled = losing([*small[:2], *large, *large, *large[:2]], [*small, *small, *small[:2], *large[:2]])
    assert pooled.held is Held.KEPT or pooled.held is Held.CANNOT_TELL
    limited = replace(pooled, limit=5.0, change=None)
    joined = joined_parts(
        Candidate(title="new", classes={}, excluded={}, standing={}, guardrails={"loss": pooled, "limited": limited}),
        parts,
    ).guardrails
    guard = joined["loss"]
    assert guard.held is Held.BROKEN and guard.change and math.log(guard.change.value) == pytest.approx(-0.5)
    assert (guard.a, guard.b) == (pytest.approx(3.4), pytest.approx(5.1))
    assert guard.reason == "no limit: compared with the baseline size by size" and joined["limited"] == limited
    alone = joined_parts(
        Candidate(title="new", classes={}, excluded={}, standing={}, guardrails={"loss": pooled}),
        [parts[0], Part("large", 0.8, None)],
    )
    assert alone.guardrails["loss"].held is None
    assert alone.guardrails["loss"].reason == "not measured on both sides in large"


def test_sizes_that_do_not_match_leave_guardrails_open() -> None:
    worse = losing([0.99, 1.0, 1.01], [1.5, 1.51, 1.52])
    limited = replace(worse, limit=1.2, change=None)
    assert worse.held is Held.BROKEN
    guards = refused(
        Candidate(title="new", classes={}, excluded={}, standing={}, guardrails={"loss": worse, "limited": limited}),
        message("no"),
    ).guardrails
    assert guards["loss"].held is Held.CANNOT_TELL and guards["loss"].reason == "no" and guards["limited"] == limited
