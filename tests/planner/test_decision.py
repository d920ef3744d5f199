"""Decisions from few benchmarks: levels by hand, calibrated errors, the next benchmark, and few wrong decisions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.predict.decision import Level, Lines, Panel, best_of, is_decided, learned, level, order, planned

TITLES = tuple("abcdefgh")


def record(seed: int, machines: int = 60, families: int = 30) -> tuple[pd.DataFrame, dict[str, str]]:
    """Machines whose benchmarks follow two hidden traits, ``a`` and ``b`` the first, the others a mixture."""
    random = np.random.default_rng(seed)
    mixture = np.array([[1, 0], [0, 1], *([0.5, 0.5] for _ in range(6))])
    traits = random.normal(0, 0.2, (families, 2)).repeat(machines // families, axis=0)
    speed = random.normal(0, 0.5, (machines, 1))
    logs = speed + traits @ mixture.T + random.normal(0, 0.03, (machines, len(TITLES)))
    names = [f"m{n}" for n in range(machines)]
    return pd.DataFrame(logs, names, TITLES), {name: f"f{n * families // machines}" for n, name in enumerate(names)}


def flat(variance: float = 0.04, count: int = 4) -> Panel:
    """Benchmarks that are all alike: their distances from the mean add up to zero."""
    covariance = variance * (np.eye(count) - 1 / count)
    lines = Lines(np.zeros(count), np.ones(count), 0.0)
    return Panel(
        titles=TITLES[:count], lines=lines, covariance=covariance, scale=np.ones(count), families=21, machines=21
    )


def test_benchmarks_that_are_alike_are_a_sample_of_the_panel() -> None:
    """The variance of a mean over m of n is that of a sample without replacement: s2 / m (1 - m / n)."""
    for m in (1, 2, 3):
        known = level(flat(), dict.fromkeys(TITLES[:m], 1.0))
        assert known.log == pytest.approx(1.0) and known.df == 20
        assert known.se**2 == pytest.approx(0.04 / m * (1 - m / 4), rel=1e-6)


def test_all_benchmarks_leave_the_noise_of_hosts_alone() -> None:
    noise = dict(zip(TITLES, (0.01, 0.02, 0.03, 0.04), strict=False))
    known = level(flat(), dict(zip(TITLES, (1.0, 2.0, 3.0, 4.0), strict=False)), noise, host=0.005)
    assert known.log == pytest.approx(2.5) and known.df == math.inf
    assert known.se**2 == pytest.approx(0.1 / 16 + 0.005)


def test_probabilities_by_hand() -> None:
    assert Level(0.1, 0.05, math.inf).above(0.0) == pytest.approx(0.9772, abs=1e-4)
    assert Level(0.1, 0.0, math.inf).above(0.1) == 1.0 and Level(0.1, 0.0, math.inf).above(0.2) == 0.0
    best, doubt = best_of([Level(0.0, 0.1, math.inf), Level(0.3, 0.1, math.inf), Level(-9.0, 0.1, math.inf)])
    assert best == 1 and doubt == pytest.approx(1 - 0.98305, abs=1e-4)  # 0.3 over 0.1 times the root of 2


def test_the_first_benchmark_is_the_most_telling() -> None:
    panel = learned(*record(1))
    steps = list(order(panel))
    assert {title for title, _ in steps} == {*TITLES} and steps[0][0] not in ("a", "b")
    errors = [se for _, se in steps]
    assert errors == sorted(errors, reverse=True) and errors[0] < 0.1 and errors[-1] < 1e-3
    assert [title for title, _ in order(panel, known=[t for t, _ in steps[:3]])] == [t for t, _ in steps[3:]]


def test_errors_of_unseen_families_are_as_large_as_said() -> None:
    history, families = record(2)
    panel = learned(history, families)
    first = [title for title, _ in order(panel)][:2]
    unseen, _ = record(3)
    distances = []
    for _, figures in unseen.iterrows():
        known = level(panel, {title: float(figures[title]) for title in first})
        distances.append((known.log - figures.mean()) / known.se)
    assert 0.6 < np.std(distances) < 1.5


@pytest.mark.parametrize("distance", [0.02, 0.1, 0.3, None])
def test_as_many_decisions_are_wrong_as_said_and_few_runs_are_needed(distance: float | None) -> None:
    """Machines at a distance from the threshold, on either side, or within 0.5 of it: the share of wrong decisions is
    within the allowed error, and it is the one that the decisions state.
    """
    panel = learned(*record(4, machines=120, families=60))
    steps = [title for title, _ in order(panel)]
    unseen, _ = record(5, machines=400, families=200)
    random = np.random.default_rng(9)
    wrong, runs, stated = 0, 0, 0.0
    for n, (_, figures) in enumerate(unseen.iterrows()):
        far = random.uniform(-0.5, 0.5) if distance is None else distance if n % 2 else -distance
        for count in range(1, len(steps) + 1):
            known = level(panel, {title: float(figures[title]) for title in steps[:count]})
            above = known.above(figures.mean() + far)
            if is_decided(doubt := min(above, 1 - above), 0.05):
                break
        runs += count
        wrong += (above > 0.5) == (far > 0)
        stated += doubt
    error = max(stated / len(unseen), 0.001)
    assert error <= 0.05
    assert wrong / len(unseen) <= error + 3 * math.sqrt(error / len(unseen))
    if distance == 0.3:
        assert runs / len(unseen) / len(steps) <= 0.25


def test_benchmarks_that_grow_less_than_others_are_read_as_such() -> None:
    """Without scatter, one figure of a benchmark of any slope gives the mean of all, also far outside the record."""
    means = np.linspace(-1, 1, 24)
    slopes = np.array([0.7, 0.9, 1.1, 1.3])
    history = pd.DataFrame(means[:, None] * slopes + np.array([0.2, -0.2, 0.1, -0.1]), columns=list(TITLES[:4]))
    history.index = pd.Index([f"m{n}" for n in range(24)])
    panel = learned(history, {str(name): f"f{n}" for n, name in enumerate(history.index)})
    assert panel.lines.slope == pytest.approx(slopes, abs=1e-6)
    for title, slope, start in zip(TITLES, slopes, (0.2, -0.2, 0.1, -0.1), strict=False):
        assert level(panel, {title: 3.0 * slope + start}).log == pytest.approx(3.0, abs=1e-6)


def test_the_plan_has_as_many_hosts_and_benchmarks_as_it_takes() -> None:
    panel = flat()
    plan = planned(panel, 0.28, 0.05)
    assert (plan.hosts, len(plan.steps), plan.is_enough, plan.runs) == (1, 2, True, 2)  # t(20) asks for 1.72 errors
    assert plan.steps[-1][1] == pytest.approx(math.sqrt(0.04 / 2 / 2), rel=1e-6)
    noisy = planned(panel, 0.19, 0.05, host=0.02)  # 0.14 is the error of one host, whatever it runs
    assert (noisy.hosts, len(noisy.steps), noisy.is_enough) == (2, 4, True)
    assert 1.645 * noisy.steps[-1][1] < 0.19
    hopeless = planned(panel, 0.001, 0.05, host=0.02)
    assert not hopeless.is_enough and (hopeless.hosts, len(hopeless.steps)) == (8, 4)


def test_too_little_on_record() -> None:
    history, families = record(6, machines=4, families=4)
    with pytest.raises(FleetmarkError, match="4 families of stored machines have all of these benchmarks, at least 5"):
        learned(history, families)
    history, families = record(6)
    with pytest.raises(FleetmarkError, match="2 benchmarks: at least 3"):
        learned(history[["a", "b"]], families)
    with pytest.raises(FleetmarkError, match="no benchmark of the panel has been run"):
        level(flat(), {"other": 1.0})
