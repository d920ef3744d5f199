"""The mixed model of a side with gaps: against statsmodels, against what is exact without gaps, and its own symmetries."""

from __future__ import annotations

import time
import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from fleetmark.planner import mixed

Floats = npt.NDArray[np.float64]


def figures(hosts: int, benchmarks: int, missing: float, seed: int, host_sd: float = 0.03, sd: float = 0.015) -> Floats:
    rng = np.random.default_rng(seed)
    y: Floats = rng.normal(0, 0.5, benchmarks) + rng.normal(0, host_sd, (hosts, 1))
    y = y + rng.normal(0, sd, (hosts, benchmarks))
    y[rng.random(y.shape) < missing] = np.nan
    return y


@pytest.mark.parametrize(
    ("hosts", "missing", "seed"), [(6, 0.3, 1), (6, 0.5, 2), (12, 0.3, 3), (12, 0.7, 4), (30, 0.5, 5)]
)
def test_it_agrees_with_statsmodels(hosts: int, missing: float, seed: int) -> None:
    """REML of y ~ 0 + benchmark with a random intercept per host: the class mean, as a ratio, to 0.1%."""
    formula = pytest.importorskip("statsmodels.formula.api")
    y = figures(hosts, 5, missing, seed)
    rows = pd.DataFrame(y).rename_axis("host").reset_index().melt("host", var_name="benchmark", value_name="y").dropna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = formula.mixedlm("y ~ 0 + C(benchmark)", rows, groups=rows["host"]).fit(reml=True)
    ours = mixed.fit(y)
    assert ours.means == pytest.approx(theirs.fe_params.to_numpy(), abs=1e-3)
    weights = np.full(5, 0.2)
    assert np.exp(ours.mean(weights).value) == pytest.approx(np.exp(float(weights @ theirs.fe_params)), rel=1e-3)
    seen = ~np.isnan(y)
    covariance = float(theirs.cov_re.to_numpy()[0, 0])
    information = np.zeros((5, 5))
    for host in seen:
        inverse = np.linalg.inv(theirs.scale * np.eye(host.sum()) + covariance)
        information[np.ix_(host, host)] += inverse
    variance = float(weights @ np.linalg.solve(information, weights))
    assert ours.mean(weights).variance >= variance * 0.99  # the larger of this and the cluster-robust one


def test_without_gaps_it_is_the_mean_of_hosts() -> None:
    y, weights = figures(5, 4, 0, 1), np.array([0.4, 0.3, 0.2, 0.1])
    scores = y @ weights
    mean = mixed.fit(y).mean(weights)
    assert mean.value == pytest.approx(scores.mean())
    assert mean.variance == pytest.approx(scores.var(ddof=1) / 5)
    assert mean.df == 4


def test_a_gap_says_little_where_hosts_differ_most() -> None:
    """One cell of 48 missing: near to what is exact without."""
    y = figures(6, 8, 0, 2)
    gap = y.copy()
    gap[3, 5] = np.nan
    weights = np.full(8, 1 / 8)
    complete, with_gap = mixed.fit(y).mean(weights), mixed.fit(gap).mean(weights)
    assert with_gap.value == pytest.approx(complete.value, abs=0.002)
    assert with_gap.variance == pytest.approx(complete.variance, rel=0.2)
    assert with_gap.df == pytest.approx(complete.df, rel=0.02)


def test_of_two_hosts_their_difference_counts() -> None:
    """With a gap as without one: 0.2%, though single benchmarks differ by 3% either way."""
    apart = 0.002 + 0.03 * np.array([1, -1, 1, -1, 1, -1, 0, 0])
    y = np.array([apart / 2, -apart / 2])
    gap = y.copy()
    gap[1, 7] = np.nan
    weights = np.full(8, 1 / 8)
    assert mixed.fit(y).mean(weights).variance == pytest.approx(0.001**2)
    assert mixed.fit(gap).mean(weights).variance == pytest.approx(0.001**2, rel=0.3)


def test_units_shift_the_mean_alone() -> None:
    y, weights = figures(6, 4, 0.3, 6), np.full(4, 0.25)
    shift = np.array([20.0, -7.0, 3.0, 0.0])
    before, after, turned = (mixed.fit(z).mean(weights) for z in (y, y + shift, -y))
    assert after.value == pytest.approx(before.value + float(weights @ shift))
    assert turned.value == pytest.approx(-before.value)
    assert after.variance == pytest.approx(before.variance, rel=1e-6) == turned.variance


def test_hosts_that_are_all_alike_have_no_variance() -> None:
    y = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan]])
    mean = mixed.fit(y).mean(np.array([0.5, 0.5]))
    assert mean.value == pytest.approx(1.5) and mean.variance == pytest.approx(0, abs=1e-20)


def test_hosts_without_any_figure_widen_the_interval() -> None:
    """They are often the slow ones; they do so only beside hosts that lack some."""
    y, weights = figures(6, 4, 0.3, 6), np.full(4, 0.25)
    none = np.full((2, 4), np.nan)
    alone, widened = mixed.fit(y).mean(weights), mixed.fit(np.vstack([y, none])).mean(weights)
    assert widened.value == pytest.approx(alone.value) and widened.df == pytest.approx(alone.df)
    assert widened.variance == pytest.approx(alone.variance * 1.25)
    complete = figures(6, 4, 0, 6)
    assert mixed.fit(np.vstack([complete, none])).mean(weights) == mixed.fit(complete).mean(weights)


def test_too_few_figures() -> None:
    gap = np.nan
    for y in ([[1.0, 2.0]], [[1.0, gap], [gap, 2.0]], [[1.0, gap], [2.0, gap]], [[1.0, gap], [gap, 2.0], [3.0, gap]]):
        with pytest.raises(mixed.TooFewError):
            mixed.fit(np.array(y))
    assert mixed.needed(3, 8) == 10 and mixed.needed(100, 8) == 12


def test_ten_thousand_hosts_take_a_second() -> None:
    y = figures(10_000, 50, 0.3, 9)
    start = time.process_time()
    mean = mixed.fit(y).mean(np.full(50, 0.02))
    assert time.process_time() - start < 2
    assert mean.variance**0.5 == pytest.approx(0.03 / 100, rel=0.05)
