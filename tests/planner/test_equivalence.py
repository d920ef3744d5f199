"""Equivalence against hand-worked oracles, its invariances, and the truth of simulated fleets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from planner.equivalence import Pairing, clusters, compare
from planner.ratio import Verdict


def side(rows: Sequence[Sequence[float]], names: str = "abcdefgh", first: int = 1) -> pd.DataFrame:
    """Raw values, a row per host, as oriented logs of rates."""
    index = [f"h{first + i}" for i in range(len(rows))]
    return pd.DataFrame(np.log(np.array(rows, dtype=float)), index=index, columns=list(names[: len(rows[0])]))


def test_speedups_of_four_and_one() -> None:
    """Arithmetic 2.5, geometric 2, harmonic 1.6: the class's is the geometric, equal work the harmonic."""
    a, b = side([[1, 1], [1, 1]]), side([[4, 1], [4, 1]], first=3)
    result = compare(a, b, mix={"a": 0.5, "b": 0.5})
    assert result.ratio and result.work
    assert result.ratio.value == pytest.approx(2)
    assert result.work.value == pytest.approx(1.6)
    assert result.mix_sensitive
    assert (result.lowest, result.highest) == pytest.approx((1, 4))


def test_times_by_hand() -> None:
    """Times (3, 2, 4) to (1, 1, 2): geometric 2.2894."""
    a, b = -side([[3, 2, 4], [3, 2, 4]]), -side([[1, 1, 2], [1, 1, 2]], first=3)
    result = compare(a, b)
    assert result.ratio and result.ratio.value == pytest.approx(12 ** (1 / 3), abs=1e-9)
    assert pytest.approx(2.2894, abs=1e-4) == 12 ** (1 / 3)


def test_equal_work_is_the_ratio_of_server_hours() -> None:
    """v jobs a day of t server-seconds: sum v t_A / sum v t_B, whatever the units of the benchmarks."""
    jobs, t_a, t_b = np.array([1000, 50, 3]), np.array([2.0, 30.0, 700.0]), np.array([1.1, 21.0, 240.0])
    hours = jobs * t_a / (jobs * t_a).sum()
    a, b = -side([t_a, t_a]), -side([t_b, t_b], first=3)
    result = compare(a, b, mix=dict(zip("abc", hours, strict=True)))
    assert result.work and result.work.value == pytest.approx((jobs * t_a).sum() / (jobs * t_b).sum())


def test_speedups_beyond_a_float_stay_finite() -> None:
    a, b = side([[1e-290, 1e290], [1e-290, 1e290]]), side([[1e290, 1e-290], [1e290, 1e-290]], first=3)
    result = compare(a, b, mix={"a": 0.5, "b": 0.5})
    assert result.ratio and result.work
    assert (result.lowest, result.highest) == pytest.approx((1e-300, 1e300))
    assert result.ratio.value == pytest.approx(1)
    assert result.work.value == pytest.approx(2e-300, rel=1e-6)
    assert result.work.lo == result.work.hi == pytest.approx(1e-300)  # the share of the slower one is all there is


def test_the_reference_machine_and_units_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    a, b = (pd.DataFrame(rng.normal(m, 0.02, (4, 3)), [f"{m}{i}" for i in range(4)], list("abc")) for m in (0, 1))
    shift = pd.Series([3.0, -7.0, 0.5], list("abc"))
    plain, moved = compare(a, b), compare(a + shift, b + shift)
    forth, back = compare(a, b), compare(b, a)
    assert plain.ratio and moved.ratio and forth.ratio and back.ratio
    assert moved.ratio.value == pytest.approx(plain.ratio.value)
    assert moved.ratio.lo == pytest.approx(plain.ratio.lo)
    assert forth.ratio.value * back.ratio.value == pytest.approx(1)


def test_correlated_benchmarks_keep_their_correlation() -> None:
    """A host that is slow in everything widens the class's interval; independent noise would average out."""
    rng = np.random.default_rng(2)
    slow = rng.normal(0, 0.05, (6, 1))
    together, apart, other = (
        pd.DataFrame(values, columns=list("abcd"))
        for values in (
            slow + rng.normal(0, 0.001, (6, 4)),
            rng.normal(0, 0.05, (6, 4)),
            rng.normal(0, 0.001, (6, 4)),
        )
    )
    wide, narrow = compare(together, other).ratio, compare(apart, other).ratio
    assert wide and narrow and wide.lo and wide.hi and narrow.lo and narrow.hi
    assert math.log(wide.hi / wide.lo) > 1.3 * math.log(narrow.hi / narrow.lo)


def test_a_benchmark_on_one_side_only_costs_its_weight() -> None:
    a, b = side([[1, 1, 1]] * 3), side([[2, 3, 4]] * 3, first=4)
    result = compare(a, b.drop(columns="c"), mix={"a": 0.5, "b": 0.4, "c": 0.1})
    assert result.covered == pytest.approx(0.9)
    assert result.left_out == {"c": "measured on the baseline only"}
    complete = compare(a, b, mix={"a": 0.5, "b": 0.4, "c": 0.1})
    assert result.ratio and complete.ratio and result.ratio.lo and complete.ratio.lo
    assert result.ratio.lo < result.ratio.value and complete.ratio.lo == pytest.approx(complete.ratio.value)


def test_below_four_fifths_there_is_no_headline() -> None:
    a, b = side([[1, 1, 1]] * 3), side([[2, 3, 4]] * 3, first=4)
    result = compare(a, b.drop(columns="c"))
    assert result.ratio is None
    assert result.why == "only 67% of the weight is measured on both sides"
    assert set(result.each) == {"a", "b"}


def test_no_overlap_says_so() -> None:
    result = compare(side([[1, 1]] * 2), side([[2, 3]] * 2, names="xy", first=3))
    assert (result.ratio, result.why) == (None, "no benchmark on both sides")


def test_a_host_with_a_gap_is_left_out_of_the_class() -> None:
    a, b = side([[1, 1]] * 4), side([[2, 2]] * 4, first=5)
    b.loc["h6", "b"] = np.nan
    result = compare(a, b)
    assert result.hosts_out == {"h6": "has no b"}
    assert result.ratio and result.ratio.n == (4, 3)
    assert result.each["a"].n == (4, 4)


def test_a_benchmark_that_most_hosts_lack_is_left_out_instead() -> None:
    a, b = side([[1] * 6] * 4), side([[2] * 6] * 4, first=5)
    b.loc[["h5", "h6", "h7"], "f"] = np.nan
    result = compare(a, b, mix={"a": 0.9, "f": 0.1})
    assert result.left_out == {"f": "missing on 75% of the hosts of a side"}
    assert result.ratio and result.ratio.n == (4, 4)


def test_one_host_a_side_makes_no_claim() -> None:
    result = compare(side([[1, 1]]), side([[2, 3]], first=2))
    assert result.ratio and result.ratio.lo is None
    assert result.ratio.verdict is Verdict.CANNOT_TELL


def test_the_same_hosts_before_and_after() -> None:
    before = side([[1, 10], [2, 20], [4, 40]])
    after = before + np.log(1.1) + pd.Series({"h1": 0.001, "h2": -0.001, "h3": 0.0}).to_numpy()[:, None]
    assert compare(before, after).ratio != compare(before, after, pairing=Pairing.SAME_HOSTS).ratio
    result = compare(before, after, pairing=Pairing.SAME_HOSTS).ratio
    assert result and result.lo and result.hi and 1.09 < result.lo < result.value < result.hi < 1.11


def test_a_pinned_reference_has_no_spread_of_its_own() -> None:
    hosts = side([[2.0, 3.0], [2.1, 3.1], [1.9, 2.9]], first=2)
    result = compare(side([[1, 1]]), hosts, pairing=Pairing.PINNED).ratio
    assert result and result.lo and result.hi and result.df == 2
    more = compare(side([[1, 1]]), pd.concat([hosts, hosts + 0.001]), pairing=Pairing.PINNED).ratio
    assert more and more.value == pytest.approx(result.value, rel=1e-3)


def test_benchmarks_that_rank_machines_alike_share_one_weight() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 12)
    machines = pd.DataFrame({"copy": base, "triad": base + rng.normal(0, 0.01, 12), "fio": rng.normal(0, 1, 12)})
    assert sorted(map(sorted, clusters(machines))) == [["copy", "triad"], ["fio"]]
    a, b = side([[1, 1, 1]] * 2, "ctf"), side([[4, 4, 1]] * 2, "ctf", first=3)
    a.columns = b.columns = pd.Index(["copy", "triad", "fio"])
    result = compare(a, b, machines=machines)
    assert result.weights == pytest.approx({"copy": 0.25, "triad": 0.25, "fio": 0.5})
    assert result.ratio and result.ratio.value == pytest.approx(2)


def test_duplicates_count_once() -> None:
    a, b = side([[1, 1, 1]] * 2), side([[4, 4, 1]] * 2, first=3)
    result = compare(a, b)
    assert result.ratio and result.ratio.value == pytest.approx(2)  # a and b are the same figures


@pytest.mark.parametrize("hosts", [3, 6, 20])
@pytest.mark.parametrize("sd", [0.01, 0.05])
def test_intervals_cover_the_truth(hosts: int, sd: float) -> None:
    """500 synthetic fleets: hosts differ by ``sd`` as a whole and half of it by benchmark; runs by 1%."""
    rng = np.random.default_rng(hosts * 1000 + round(sd * 100))
    truth = rng.normal(math.log(1.83), 0.2, 8)
    covered = 0
    for _ in range(500):

        def fleet(mean: object, host_sd: float) -> pd.DataFrame:
            effects = rng.normal(0, host_sd, (hosts, 1)) + rng.normal(0, host_sd / 2, (hosts, 8))
            runs = rng.normal(0, 0.01, (hosts, 8, 5)).mean(axis=2)
            return pd.DataFrame(np.asarray(mean) + effects + runs, columns=list("abcdefgh"))

        result = compare(fleet(0.0, sd), fleet(truth, sd * 0.7)).ratio
        assert result and result.lo and result.hi
        covered += result.lo <= math.exp(truth.mean()) <= result.hi
    assert 0.93 <= covered / 500 <= 0.97


@pytest.mark.parametrize("pairing", [Pairing.APART, Pairing.SAME_HOSTS])
def test_a_gap_widens_the_interval_by_the_spread_of_what_is_known(pairing: Pairing) -> None:
    """Only a (90%) is in the headline, but b tells how far benchmarks lie apart."""
    rng = np.random.default_rng(5)
    a, b = (pd.DataFrame(rng.normal(m, 0.01, (4, 2)), [f"h{i}" for i in range(4)], list("ab")) for m in (0, 1))
    b["b"] += 1
    b.loc[["h1", "h2", "h3"], "b"] = np.nan
    wide = compare(a, b, mix={"a": 0.9, "b": 0.1}, pairing=pairing).ratio
    narrow = compare(a[["a"]], b[["a"]], mix={"a": 1.0}, pairing=pairing).ratio
    assert wide and narrow and wide.lo and wide.hi and narrow.lo and narrow.hi
    assert wide.value == pytest.approx(narrow.value)
    assert math.log(wide.hi / wide.lo) > 2 * math.log(narrow.hi / narrow.lo)


def test_one_benchmark_does_not_stand_for_a_class_it_is_not_all_of() -> None:
    a, b = side([[1, 1]] * 3), side([[2, 3]] * 3, first=4)
    result = compare(a, b.drop(columns="b"), mix={"a": 0.9, "b": 0.1})
    assert result.ratio is None and result.why.startswith("90% of the weight is in one benchmark")


def test_benchmarks_without_a_host_on_both_sides_are_left_out_of_pairs() -> None:
    a, b = side([[1, 1], [1, 2], [1, 3]]), side([[2, 2], [2, 4], [2, 6]])
    a.loc["h1", "b"] = b.loc[["h2", "h3"], "b"] = np.nan
    b.loc["h9"] = 0.0
    result = compare(a, b, mix={"a": 0.9, "b": 0.1, "c": 0.0}, pairing=Pairing.SAME_HOSTS)
    assert set(result.each) == {"a"} and result.each["a"].value == pytest.approx(2)
    assert result.left_out["b"] == "no host has a figure on both sides"
    assert result.hosts_out == {"h9": "is on one side only"}


def test_a_benchmark_that_few_have_does_not_switch_clustering_off() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 12)
    machines = pd.DataFrame({"copy": base, "triad": base + rng.normal(0, 0.01, 12), "rare": base})
    machines.loc[4:, "rare"] = np.nan
    assert sorted(map(sorted, clusters(machines))) == [["copy", "triad"], ["rare"]]
