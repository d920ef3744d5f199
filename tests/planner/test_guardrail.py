"""Test guardrails without a limit against the baseline, by hand and among many."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fleetmark.base.measurement import Better
from planner.contrast import Pairing
from planner.guardrail import Guardrail, Held, guardrail, judged_together


def losses(values: list[float], first: int = 1) -> pd.Series:
    """Return the oriented logarithms of figures where lower is better."""
    return pd.Series(-np.log(values), [f"h{n}" for n in range(first, first + len(values))])


def beside(old: list[float], new: list[float], pairing: Pairing = Pairing.APART) -> Guardrail:
    return guardrail(losses(old), losses(new), Better.LOWER, None, pairing)


def test_a_change_by_hand() -> None:
    """Compare means 10 and 12 of three hosts each, both with variance 1.

    The figure worsens by 20%: t = 2 / sqrt(1 / 3 + 1 / 3) = 2.449 with 4 degrees of freedom, p = 0.0705.
    """
    guard = beside([9, 10, 11], [11, 12, 13])
    assert guard.change is not None and guard.change.p == pytest.approx(2 * stats.t.sf(2 / math.sqrt(2 / 3), 4))
    assert math.log(guard.change.value) == pytest.approx(-0.2)
    assert guard.held is Held.CANNOT_TELL
    assert beside([9, 10, 11], [14, 15, 16]).held is Held.BROKEN  # t = 6.12, p = 0.0036
    assert beside([14, 15, 16], [9, 10, 11]).held is Held.KEPT


def test_one_of_twenty_counts_as_one_of_twenty() -> None:
    """Check p = 0.0036 among 20 guardrails, 19 of them unchanged: the adjusted p is 20 x 0.0036 = 0.072."""
    same = beside([9, 10, 11], [9.001, 10, 11.001])
    guards = {f"g{n}": same for n in range(19)} | {"broken": beside([9, 10, 11], [14, 15, 16])}
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
            guards[f"g{n}"] = beside(a, b)
        one_by_one += any(g.held is Held.BROKEN for g in guards.values())
        together += any(g.held is Held.BROKEN for g in judged_together(guards).values())
    assert one_by_one / tables > 0.5
    assert together / tables <= 0.05


def test_a_pinned_host_does_not_stand_for_its_kind() -> None:
    assert beside([10], [14, 15, 16], Pairing.PINNED).held is Held.CANNOT_TELL
