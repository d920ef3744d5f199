"""Test slow borders and uplinks of racks among pairs of hosts, beside slow hosts and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fleetmark.planner.diagnosis import links, outliers, places
from fleetmark.planner.diagnosis.isolation.partners import Pair, Reason, isolate

HOSTS, RACKS, STEPS = 32, 4, (1, 3, 7, 9, 12)
PLACE = np.arange(HOSTS) // (HOSTS // RACKS)
A = np.repeat(np.arange(HOSTS), len(STEPS))
B = (A + np.tile(STEPS, HOSTS)) % HOSTS


def rates(seed: int, border: tuple[int, ...] = (), loss: float = 0.0, node: int = -1) -> np.ndarray:
    """Return logarithms of pairs' rates; between racks 10% less. ``border``: two racks, or the one with the uplink."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.01, len(A)) + rng.normal(0, 0.003, HOSTS)[A] + np.where(PLACE[A] != PLACE[B], -0.1, 0.0)
    sides = np.stack([np.minimum(PLACE[A], PLACE[B]), np.maximum(PLACE[A], PLACE[B])])
    if len(border) == 2:
        hit = (sides[0] == border[0]) & (sides[1] == border[1])
    else:
        hit = (sides[0] != sides[1]) & np.isin(sides, border).any(axis=0)
    return (
        values + np.where(hit, np.log1p(-loss), 0.0) + np.where(np.isin(A, node) | np.isin(B, node), np.log(0.8), 0.0)
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("border", [(1, 2), (0, 3), (2,)])
def test_a_border_and_an_uplink_are_named_and_blame_no_host(seed: int, border: tuple[int, ...]) -> None:
    for loss in (0.05, 0.08, 0.15):
        values = rates(seed, border, loss)
        (fault,) = places.slow_borders(A, B, values, PLACE)
        assert fault.places == border and -np.expm1(-fault.shift) == pytest.approx(loss, abs=0.02)
        values[fault.pairs] += fault.shift
        nodes, slow = links.judge(frame(values), HOSTS, outliers.LARGE)
        assert nodes.empty and slow.empty


def frame(values: np.ndarray):  # type: ignore[no-untyped-def]
    import pandas as pd

    return pd.DataFrame({"a": A, "b": B, "value": values})


@pytest.mark.parametrize("seed", range(20))
def test_sound_racks_and_a_slow_host_have_no_slow_border(seed: int) -> None:
    assert places.slow_borders(A, B, rates(seed), PLACE) == []
    assert places.slow_borders(A, B, rates(seed, node=5), PLACE) == []
    nodes, _ = links.judge(frame(rates(seed, node=5)), HOSTS, outliers.LARGE)
    assert nodes["host"].tolist() == [5]


def test_two_racks_are_held_against_pairs_within_them() -> None:
    few = np.flatnonzero((PLACE[A] < 2) & (PLACE[B] < 2))
    values = rates(1)[few] + np.where(PLACE[A[few]] != PLACE[B[few]], 0.1 + np.log(0.9), 0.0)
    (fault,) = places.slow_borders(A[few], B[few], values, PLACE)
    assert fault.places == (0, 1)
    assert places.slow_borders(A[few], B[few], values, PLACE, two=False) == []


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("within", "loss"), [(True, 0.2), (False, 0.2), (True, 0.05), (False, 0.05)])
def test_isolation_names_the_uplink_and_no_host_behind_it(seed: int, within: bool, loss: float) -> None:
    rng = np.random.default_rng(seed)
    racks = {f"n{h:02}": f"r{PLACE[h]}" for h in range(HOSTS)}

    def rate(pair: Pair) -> float:
        sides = {racks[host] for host in pair}
        return float(rng.normal(0, 0.01)) + (np.log1p(-loss) if len(sides) > 1 and "r2" in sides else 0.0)

    def together(pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        return {pair: rate(pair) for pair in pairs}

    measured = [frozenset((f"n{a:02}", f"n{b:02}")) for a, b in zip(A, B, strict=True)]
    measured = [pair for pair in measured if within or len({racks[h] for h in pair}) > 1]
    answer = isolate(
        together(measured),
        lambda hosts: dict.fromkeys(hosts, 0.0),
        together,
        deficit=min(0.1, 0.8 * loss),
        noise=0.01,
        labels={"site": dict.fromkeys(racks, "a"), "rack": racks},
    )
    assert [(f.kind, f.members, f.reason) for f in answer.faults] == [("border", ("r2",), Reason.UPLINK)]
