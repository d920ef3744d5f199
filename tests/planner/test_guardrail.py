"""Test guardrails without a limit against the baseline, by hand and among many."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fleetmark.base.measurement import Better
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.guardrail import Guardrail, Held, guardrail, judged_together


def losses(values: list[float], first: int = 1) -> pd.Series:
    """Return the oriented logarithms of figures where lower is better."""
    return pd.Series(-np.log(values), [f"h{n}" for n in range(first, first + len(values))])


def guarded(old: list[float], new: list[float], pairing: Pairing = Pairing.APART) -> Guardrail:
    return guardrail(losses(old), losses(new), Better.LOWER, None, pairing)


def test_a_change_by_hand() -> None:
    """Compare means 10 and 12 of three hosts each, both with variance 1.

    The figure worsens by 20%: t = 2 / sqrt(1 / 3 + 1 / 3) = 2.449 with 4 degrees of freedom, p = 0.0705.
    """
    guard = guarded([9, 10, 11], [11, 12, 13])
    assert guard.change is not None and guard.change.p == pytest.approx(2 * stats.t.sf(2 / math.sqrt(2 / 3), 4))
    assert math.log(guard.change.value) == pytest.approx(-0.2)
    assert guard.held is Held.CANNOT_TELL
    assert guarded([9, 10, 11], [14, 15, 16]).held is Held.BROKEN  # t = 6.12, p = 0.0036
    assert guarded([14, 15, 16], [9, 10, 11]).held is Held.KEPT


def test_one_of_twenty_counts_as_one_of_twenty() -> None:
    """Check p = 0.0036 among 20 guardrails, 19 of them unchanged: the adjusted p is 20 x 0.0036 = 0.072."""
    unchanged = guarded([9, 10, 11], [9.001, 10, 11.001])
    guards = {f"g{n}": unchanged for n in range(19)} | {"broken": guarded([9, 10, 11], [14, 15, 16])}
    result = judged_together(guards)
    assert guards["broken"].held is Held.BROKEN and result["broken"].held is Held.CANNOT_TELL
    assert result["broken"].change is not None
    p = 2 * stats.t.sf(5 / math.sqrt(2 / 3), 4)
    assert result["broken"].change.p_adjusted == pytest.approx(20 * p)
    alone = {
        "broken": guards["broken"],
        "limited": guardrail(losses([9]), losses([11]), Better.LOWER, 10, Pairing.APART),
    }
    assert [g.held for g in judged_together(alone).values()] == [Held.BROKEN, Held.BROKEN]


@pytest.mark.parametrize(("old", "new"), [(6, 6), (3, 20)])
def test_tables_of_equal_guardrails_have_few_broken(old: int, new: int) -> None:
    """Simulate 100 unchanged guardrails. Tested one by one, at least one would break in 77-90% of such tables."""
    rng = np.random.default_rng(20261124)
    tables, one_by_one, together = 20, 0, 0
    for _ in range(tables):
        guards = {}
        for n in range(100):
            a, b = (rng.normal(1, 0.03, k).tolist() for k in (old, new))
            guards[f"g{n}"] = guarded(a, b)
        one_by_one += any(g.held is Held.BROKEN for g in guards.values())
        together += any(g.held is Held.BROKEN for g in judged_together(guards).values())
    assert one_by_one / tables > 0.5
    assert together / tables <= 0.05


def test_a_pinned_host_does_not_stand_for_its_kind() -> None:
    assert guarded([10], [14, 15, 16], Pairing.PINNED).held is Held.CANNOT_TELL


def test_similar_hosts_count_as_their_batches() -> None:
    """Batches of three hosts lose 8, 10, 12, 14 (mean 11) before and 12, 14, 16, 18 (mean 15) after, 0.1 apart.

    By clusters the variance of each mean is 6.667 / 4, so t = 4 / sqrt(3.333) = 2.19 with 6 degrees, p = 0.071. Over
    12 hosts it would be 4 / sqrt(2 x 5.46 / 12) = 4.19 with 22 degrees, p = 0.0004.
    """
    old = [m + d for m in (8, 10, 12, 14) for d in (-0.1, 0, 0.1)]
    a, b = losses(old), losses([x + 4 for x in old])
    groups = pd.DataFrame({"batch": [name for name in "pqrs" for _ in range(3)]}, a.index)
    alone = guardrail(a, b, Better.LOWER, None, Pairing.APART)
    assert alone.held is Held.BROKEN and alone.change and alone.change.p == pytest.approx(0.0004, abs=0.00005)
    guard = guardrail(a, b, Better.LOWER, None, Pairing.APART, (groups, groups))
    assert guard.held is Held.CANNOT_TELL and guard.change is not None
    assert guard.change.p == pytest.approx(2 * stats.t.sf(4 / math.sqrt(2 * 20 / 3 / 4), 6), rel=1e-6)
    assert guard.reason == "no limit: compared with the baseline; similar hosts count as 4 batches, 4 batches"
