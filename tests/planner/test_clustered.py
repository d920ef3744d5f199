"""Test clustered hosts: the intraclass correlation by hand, the intervals by clusters, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fleetmark.planner.clustered import correlation, halves, strongest
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.equivalence import Equivalence, compare
from fleetmark.planner.remarks import of_hosts


def codes(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_the_correlation_by_hand() -> None:
    """Check the correlation of two clusters of two hosts by hand.

    The mean squares are 1 between clusters (1 degree of freedom) and 0.02 within them (2), so F = 50.
    The median of F(1, 2) is the square of the third quartile of Student's t: 2 / 3. The ratio is 50 / (2 / 3) = 75,
    and the correlation is (75 - 1) / (75 + 2 - 1).
    """
    scores = np.array([1, 1.2, 2, 2.2])
    assert float(stats.t.ppf(0.75, 2)) ** 2 == pytest.approx(2 / 3)
    assert correlation(scores, codes(0, 0, 1, 1)) == pytest.approx(74 / 76)
    # The means are 1.5 and 1.7; the mean squares are 0.04 between and 0.5 within; F is 0.08 / (2 / 3) = 0.12.
    assert correlation(scores, codes(0, 1, 0, 1)) == pytest.approx((0.12 - 1) / (0.12 + 2 - 1))


def test_what_no_correlation_can_be_known_of() -> None:
    scores = np.array([1.0, 2, 3, 4])
    assert correlation(scores, codes(0, 0, 0, 0)) is None  # one cluster
    assert correlation(scores, codes(0, 1, 2, 3)) is None  # each host is its own cluster
    assert correlation(scores, codes(0, 0, 1, 2)) is None  # only one pair of hosts
    assert correlation(np.array([1.0, 1, 2, 2]), codes(0, 0, 1, 1)) == 1.0
    assert correlation(np.ones(4), codes(0, 0, 1, 1)) == 0.0


def test_the_strongest_grouping_counts() -> None:
    scores = np.array([1.0, 1.1, 2.0, 2.1, np.nan])
    groups = pd.DataFrame({"rack": [*"abab", "c"], "batch": [*"xxyy", "z"], "bios": ["1", "1", None, "2", "2"]})
    strongest_grouping = strongest(scores, groups)
    assert strongest_grouping is not None and (strongest_grouping.kind, strongest_grouping.number) == ("batch", 2)
    assert strongest(scores, groups[["rack", "bios"]]) is None  # racks have no effect, and one host's BIOS is unknown


def fleet(batches: int, hosts: int, icc: float, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate 4 benchmarks on hosts in ``batches``: variance 0.03 squared, the share ``icc`` of it between batches."""
    batch = np.arange(hosts) % batches
    effect = rng.normal(0, 0.03 * math.sqrt(icc), batches)[batch] + rng.normal(0, 0.03 * math.sqrt(1 - icc), hosts)
    y = effect[:, None] + rng.normal(0, 0.005, (hosts, 4))
    return pd.DataFrame(y, columns=list("abcd")), pd.DataFrame({"batch": batch.astype(str)})


def apart(
    frames: tuple[pd.DataFrame, pd.DataFrame], groups: tuple[pd.DataFrame, pd.DataFrame] | None = None
) -> Equivalence:
    a, b = frames
    return compare(a, b.set_axis([f"b{h}" for h in b.index]), groups=_named(groups) if groups else (None, None))


def _named(groups: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    return groups[0], groups[1].set_axis([f"b{h}" for h in groups[1].index])


def test_an_interval_by_two_batches_by_hand() -> None:
    """Compare batches of two at 0 and 0.1 with batches of two at 0.3 and 0.3.

    The means are 0.05 and 0.3. Their variances are 2 x (0.05 / 2)^2 / (1 / 2) = 0.0025 and 0.
    With one degree of freedom, t = 12.706.
    """
    rows = np.array([-0.001, 0.001, 0.099, 0.101])
    a = pd.DataFrame(dict.fromkeys("ab", rows))
    b = pd.DataFrame(dict.fromkeys("ab", np.full(4, 0.3)))
    batch = pd.DataFrame({"batch": list("xxyy")})
    result = apart((a, b), (batch, batch))
    assert result.ratio and result.ratio.hi and result.ratio.clusters
    assert math.log(result.ratio.value) == pytest.approx(0.25)
    assert math.log(result.ratio.hi) == pytest.approx(0.25 + 12.7062 * 0.05, rel=1e-5)
    assert result.ratio.df == pytest.approx(1) and result.ratio.n == (4, 4)
    assert [c and (c.kind, c.number) for c in result.clusters] == [("batch", 2), None]
    assert result.resampled is None
    (sentence,) = of_hosts("old", "new", {"cpu-int": result})
    assert sentence == (
        "cpu-int: the interval counts 2 batches of old; hosts with the same batch are similar (ICC 1.0)"
    )


def test_clusters_of_hosts_with_gaps_and_of_pairs() -> None:
    rng = np.random.default_rng(5)
    (a, batch), (b, other) = (fleet(4, 12, 0.9, rng) for _ in range(2))
    gaps = a.copy()
    gaps.iloc[0, 1] = gaps.iloc[5, 2] = np.nan
    complete, part = apart((a, b), (batch, other)), apart((gaps, b), (batch, other))
    assert complete.ratio and part.ratio and complete.ratio.log_error and part.ratio.log_error and part.gaps
    assert part.ratio.log_error == pytest.approx(complete.ratio.log_error, rel=0.1)
    pairs = compare(a, a + b, pairing=Pairing.SAME_HOSTS, groups=(None, other))
    assert pairs.ratio and pairs.ratio.clusters and pairs.ratio.df == pytest.approx(3)


@pytest.mark.parametrize(("batches", "hosts"), [(2, 4), (2, 10), (4, 20)])
def test_intervals_cover_fleets_of_few_batches(batches: int, hosts: int) -> None:
    """Put 80% of the variance between batches. By hosts, 2 batches of 2, 5 and 10 hosts cover only 82, 56 and 41%."""
    rng = np.random.default_rng(20261124)
    held = by_hosts = 0
    for _ in range(100):
        (a, batch), (b, other) = (fleet(batches, hosts, 0.8, rng) for _ in range(2))
        ends = [apart((a, b), groups).ratio for groups in ((batch, other), None)]
        assert all(e and e.lo and e.hi for e in ends)
        held, by_hosts = (
            n + (e.lo <= 1 <= e.hi) for n, e in zip((held, by_hosts), ends, strict=True) if e and e.lo and e.hi
        )
    assert held / 100 >= 0.93 and by_hosts / 100 < 0.93


def test_hosts_without_batches_that_matter_keep_their_interval() -> None:
    rng = np.random.default_rng(3)
    (a, batch), (b, other) = (fleet(5, 20, 0.0, rng) for _ in range(2))
    assert apart((a, b), (batch, other)).ratio == apart((a, b)).ratio


def test_halves_of_a_class() -> None:
    """Let hosts 1 and 2 run a and b, and hosts 3 and 4 run c and d."""
    nan = math.nan
    y = pd.DataFrame(
        [[0, 0.1, nan, nan], [0.1, 0.2, nan, nan], [nan, nan, 0.1, 0], [nan, nan, 0, 0.2]], columns=list("abcd")
    )
    assert halves(y.notna().to_numpy()) == [[0, 1], [2, 3]]
    complete = pd.DataFrame(np.arange(16).reshape(4, 4) / 100, [f"n{h}" for h in range(4)], list("abcd"))
    result = compare(y, complete)
    assert result.halves == ([["a", "b"], ["c", "d"]], [["a", "b", "c", "d"]])
    (sentence,) = of_hosts("old", "new", {"cpu-int": result})
    assert sentence == ("cpu-int: no host of old ran both a, b and c, d; run one of them on a host that ran the other")
    y.iloc[0, 2] = 0.1  # one host runs benchmarks of both groups
    assert list(of_hosts("old", "new", {"cpu-int": compare(y, complete)})) == []
