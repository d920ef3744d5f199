"""Equivalence against hand-worked oracles, its invariances, and the truth of simulated fleets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fleetmark.planner.contrast import Pairing, Repeats
from fleetmark.planner.equivalence import compare
from fleetmark.planner.ratio import Verdict
from fleetmark.planner.redundant import clusters, families


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


def test_what_one_side_lacks_is_listed_and_takes_nothing_away() -> None:
    """It used to cost its weight, and below 80% the headline."""
    a, b = side([[1, 1, 1]] * 3), side([[2, 3, 4]] * 3, first=4)
    result, without = compare(a, b.drop(columns="c")), compare(a.drop(columns="c"), b.drop(columns="c"))
    assert result.left_out == {"c": "measured on the baseline only"}
    assert result.ratio == without.ratio and result.ratio is not None
    assert result.ratio.value == pytest.approx(math.sqrt(6))
    assert result.weights == {"a": 0.5, "b": 0.5} and set(result.each) == {"a", "b"}


def test_no_overlap_says_what_would_be_one() -> None:
    result = compare(side([[1, 1]] * 2), side([[2, 3]] * 2, names="xy", first=3))
    assert result.ratio is None
    assert result.reason == "no benchmark on both sides: run a on the candidate, or x on the baseline"
    nothing = compare(side([[1, 1]] * 2), side([[2, 3]] * 2, first=3) * np.nan)
    assert nothing.reason == "none of it was measured on the candidate: run a, b there"


def test_a_panel_is_what_the_headline_is_over() -> None:
    a, b = side([[1, 1, 1]] * 3), side([[2, 3, 4]] * 3, first=4)
    result = compare(a, b, panel=["a", "c"])
    assert result.ratio and result.ratio.value == pytest.approx(math.sqrt(8))
    assert set(result.each) == {"a", "b", "c"} and set(result.weights) == {"a", "c"}
    lacking = compare(a, b.drop(columns="c"), panel=["a", "c"])
    assert lacking.ratio is None and lacking.reason.startswith("the panel names c, not measured on both sides: measure")
    assert "add one of a, b, c" in compare(a, b, panel=[]).reason


def test_a_mix_of_what_one_side_lacks_has_no_headline() -> None:
    """The user says how much of the work it is: leaving it out would be another mix."""
    a, b = side([[1, 1, 1]] * 3), side([[2, 3, 4]] * 3, first=4)
    result = compare(a, b.drop(columns="c"), mix={"a": 0.5, "b": 0.4, "c": 0.1})
    assert result.headline is None and result.reason.startswith("the mix names c, not measured on both sides")
    assert result.weights == {"a": 0.5, "b": 0.4, "c": 0.1}


def test_a_host_with_a_gap_stays_in_the_class() -> None:
    """It used to be left out, with all that it measured."""
    a, b = side([[1, 1]] * 4), side([[2, 2]] * 4, first=5)
    b["a"] += [0.02, -0.02, 0.01, -0.01]
    b["b"] += [0.03, -0.03, 0.02, -0.02]
    b.loc["h6", "b"] = np.nan
    result = compare(a, b)
    assert result.hosts_out == {} and result.gaps
    assert result.ratio and result.ratio.n == (4, 4) and result.ratio.interval
    assert result.each["b"].n == (4, 3)
    # h6 is slow by its figure of a: so the b that it lacks would have been slow too
    assert result.ratio.value < math.sqrt(result.each["a"].value * result.each["b"].value)


def test_a_host_without_any_benchmark_of_both_sides_is_named() -> None:
    a, b = side([[1, 1]] * 3), side([[2, 2]] * 3, first=4)
    a["c"] = a.loc["h1", ["a", "b"]] = np.nan
    a.loc["h1", "c"] = 0.0
    result = compare(a, b)
    assert result.hosts_out == {"h1": "lacks all benchmarks that both sides measured"}
    assert result.ratio and result.ratio.n == (2, 3) and not result.gaps


def test_too_few_figures_say_how_many_more() -> None:
    a, b = side([[1, 1, 1]] * 3), side([[2, 2, 2]] * 3, first=4)
    b.iloc[0, 1:] = b.iloc[1, [0, 2]] = b.iloc[2, :2] = np.nan  # a host for each benchmark
    result = compare(a, b)
    assert result.ratio is None and len(result.each) == 3
    assert result.reason.startswith("3 hosts of the candidate with 3 figures over 3 benchmarks do not separate")
    assert "measure 2 more of the missing figures" in result.reason


def test_the_workload_lies_where_the_benchmarks_do() -> None:
    """Check logs 0, 0.1 and 0.2 of hosts without spread: the interval is 0.1 ± t(2) 0.1 sqrt(1 + 1/3)."""
    a, b = side([[1, 1, 1]] * 3), side([list(np.exp([0.0, 0.1, 0.2]))] * 3, first=4)
    result = compare(a, b)
    assert result.ratio and result.workload and result.workload.interval
    assert result.ratio.interval == pytest.approx((math.exp(0.1), math.exp(0.1)))
    assert math.log(result.workload.interval[1]) == pytest.approx(0.1 + 0.430265 * math.sqrt(4 / 3), abs=1e-5)
    assert result.workload.df == pytest.approx(2) and result.workload_why == ""
    assert compare(a, b, mix={"a": 0.5, "b": 0.5}).workload is None  # the mix is the workload


def test_a_workload_takes_three_benchmarks_two_fleets_and_a_bounded_interval() -> None:
    a, b = side([[1, 1, 1]] * 3), side([list(np.exp([0.0, 0.1, 0.2]))] * 3, first=4)
    two = compare(a[["a", "b"]], b[["a", "b"]])
    assert two.workload is None and two.workload_why == "fewer than 3 families of benchmarks were measured"
    family = compare(a, b, family={"a": "llama", "b": "llama", "c": "bert"})
    assert family.workload is None and family.workload_why == "fewer than 3 families of benchmarks were measured"
    single = "a side has only one host, too few to represent its type"
    lone, error = b.iloc[:1], repeats(b.iloc[:1], 0.01, 5)
    assert compare(a, lone, repeats=(None, error)).workload_why == single
    assert compare(a, lone).workload_why == single
    assert compare(a.iloc[:1], b, pairing=Pairing.PINNED).workload_why == single
    # Logs 0, 0.25 and 0.5 give a half-width of 4.303 x 0.25 x sqrt(4 / 3) = 1.24, a factor of 3.5.
    far = compare(a, side([list(np.exp([0.0, 0.25, 0.5]))] * 3, first=4))
    assert far.workload is None
    assert far.workload_why == "the benchmark ratios differ too much: the interval exceeds a factor of 3 either way"


def test_redundant_benchmarks_are_one_for_the_workload() -> None:
    """Check logs 0.3, 0.3, 0 and 0.15: they form three groups (0.3, 0 and 0.15), so 2 degrees of freedom."""
    a, b = side([[1, 1, 1, 1]] * 3), side([list(np.exp([0.3, 0.3, 0.0, 0.15]))] * 3, first=4)
    workload = compare(a, b).workload  # a and b are the same figures
    assert workload and workload.df == pytest.approx(2) and workload.n == (3,)
    assert workload.value == pytest.approx(math.exp(0.15))


def test_redundant_benchmarks_of_pinned_weights_are_one_for_the_workload() -> None:
    a, b = side([[1, 1, 1, 1]] * 3), side([[1.2, 1.21, 1, 1.1]] * 3, first=4)
    pinned = {"a": 1 / 6, "b": 1 / 6, "c": 1 / 3, "d": 1 / 3}
    workload = compare(a, b, weights=pinned, quantity={"a": "model", "b": "model", "c": ""}).workload
    assert workload and workload.df == pytest.approx(2) and workload.n == (3,)


def test_the_named_ends_have_wider_intervals() -> None:
    """Select two of eight by their values: the level is 1 - 0.05 x 2 / 8 = 0.9875, with 4 degrees of freedom."""
    spread = np.array([[-0.02], [0.0], [0.02]])
    a, b = (pd.DataFrame(spread + gain, columns=list("abcdefgh")) for gain in (np.zeros(8), np.arange(8) / 10))
    b.index = pd.Index([3, 4, 5])
    result = compare(a, b)
    half = float(stats.t.ppf(1 - 0.0125 / 2, 4)) * math.sqrt(2 * 4e-4 / 3)
    assert (result.lowest_title, result.highest_title) == ("a", "h")
    assert result.lowest_interval == pytest.approx((math.exp(-half), math.exp(half)))
    assert result.highest_interval == pytest.approx((math.exp(0.7 - half), math.exp(0.7 + half)))


def test_your_workload_is_never_narrower_than_the_fleet() -> None:
    """Two hosts per side leave two degrees of freedom; benchmarks that agree would add more than they widen."""
    a, b = side([[1.0] * 8, [1.1] * 8]), side([[2.0] * 8, [2.3] * 8], first=3)
    b += np.linspace(0, 0.001, 8)
    result = compare(a, b)
    assert result.ratio and result.ratio.interval and result.workload and result.workload.interval
    assert result.workload.interval[0] <= result.ratio.interval[0]
    assert result.workload.interval[1] >= result.ratio.interval[1]


def test_benchmarks_that_disagree_are_named() -> None:
    a = side([[1, 1, 1]] * 2)
    apart, signs, near = (
        compare(a, side([row] * 2, first=3)) for row in ([1.3, 2, 3], [0.95, 1.1, 1.2], [2, 2.2, 2.5])
    )
    assert (apart.disagree, signs.disagree, near.disagree) == (True, True, False)
    assert (apart.lowest_title, apart.highest_title) == ("a", "c")
    assert not compare(a, side([[0.995, 1.0, 1.02]] * 2, first=3)).disagree  # within what is the same


def test_equal_work_carries_the_verdict() -> None:
    """A geometric 1.26 stood over an equal-work 0.951 once."""
    rng = np.random.default_rng(4)
    a = side([[1, 1]] * 6) + rng.normal(0, 0.002, (6, 2))
    b = side([[3, 0.53]] * 6, first=7) + rng.normal(0, 0.002, (6, 2))
    result = compare(a, b, mix={"a": 0.5, "b": 0.5})
    assert result.ratio and result.ratio.verdict is Verdict.BETTER
    assert result.headline is result.work and result.work is not None
    assert result.work.value == pytest.approx(2 / (1 / 3 + 1 / 0.53), rel=0.01)
    assert result.work.verdict is Verdict.WORSE


def repeats(side: pd.DataFrame, error: float, runs: int) -> Repeats:
    return Repeats(side * 0 + error, side * 0 + runs - 1)


def test_one_host_a_side_speaks_of_these_machines() -> None:
    a, b = side([[1, 1]]), side([[2, 3]], first=2)
    result = compare(a, b, repeats=(repeats(a, 0.01, 5), repeats(b, 0.01, 5))).ratio
    assert result and result.interval and result.of_repeats and result.single
    assert result.log_error == pytest.approx(0.01)  # sqrt(2 sides * 2 benchmarks * (0.5 * 0.01)^2)
    assert result.df == pytest.approx(16)
    assert (result.p, result.verdict) == (None, Verdict.CANNOT_TELL)
    once = compare(a, b, repeats=(repeats(a, 0.01, 5), repeats(b, 0.01, 1))).ratio
    assert once and once.interval is None and not once.of_repeats


def test_one_host_beside_a_fleet_has_the_error_of_both() -> None:
    a, b = side([[1, 1]]), side([[2, 3], [2.1, 3.2], [1.9, 2.9]], first=2)
    result = compare(a, b, repeats=(repeats(a, 0.01, 5), None)).ratio
    assert result and result.interval and result.of_repeats and result.n == (1, 3)
    pinned = compare(a, b, pairing=Pairing.PINNED).ratio
    assert pinned and pinned.interval and not pinned.of_repeats
    assert result.log_error is not None and pinned.log_error is not None and result.log_error > pinned.log_error


def test_gaps_of_pairs_and_of_pinned_references() -> None:
    rng = np.random.default_rng(8)
    before = side([[1, 2, 3]] * 6) + rng.normal(0, 0.3, (6, 1))
    after = before + math.log(1.1) + rng.normal(0, 0.004, (6, 1)) + rng.normal(0, 0.002, (6, 3))
    after.iloc[0, 1] = after.iloc[3, 2] = before.iloc[4, 0] = np.nan
    pairs = compare(before, after, pairing=Pairing.SAME_HOSTS)
    assert pairs.gaps and pairs.ratio and pairs.ratio.lo and pairs.ratio.hi
    assert 1.09 < pairs.ratio.lo < 1.1 < pairs.ratio.hi < 1.11
    pinned = compare(before.iloc[[0]] * 0, after, pairing=Pairing.PINNED)
    assert pinned.gaps and pinned.ratio and pinned.ratio.interval and pinned.ratio.n == (1, 6)


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


@pytest.mark.parametrize("hosts", [3, 6])
@pytest.mark.parametrize("missing", [0.3, 0.5])
def test_intervals_cover_the_truth_where_figures_are_missing(hosts: int, missing: float) -> None:
    """300 fleets of 8 benchmarks; a host drawn slow is slow in all of them. benchmarks/headline.py has the full grid."""
    rng = np.random.default_rng(hosts * 100 + round(missing * 10))
    fleet_hits, workload_hits, answers = 0, 0, 0
    for _ in range(300):
        gain = rng.normal(math.log(2), 0.25, 9)  # the ninth is the user's own, which nobody measured
        sides = []
        for n, truth in enumerate((np.zeros(8), gain[:8])):
            logs = truth + rng.normal(0, 0.03, (hosts, 1)) + rng.normal(0, 0.015, (hosts, 8))
            logs[rng.random(logs.shape) < missing] = np.nan
            sides.append(pd.DataFrame(logs, [f"{n}{h}" for h in range(hosts)], list("abcdefgh")))
        result = compare(*sides)
        if result.ratio is None or result.workload is None or not (result.ratio.interval and result.workload.interval):
            continue
        answers += 1
        (lo, hi), (low, high) = result.ratio.interval, result.workload.interval
        truth = float(np.mean([gain["abcdefgh".index(t)] for t in result.weights]))
        fleet_hits += math.log(lo) <= truth <= math.log(hi)
        workload_hits += math.log(low) <= gain[8] <= math.log(high)
    assert answers >= (0.95 if missing == 0.3 else 0.7) * 300
    assert 0.93 <= fleet_hits / answers <= 0.99
    assert 0.90 <= workload_hits / answers <= 0.99


def test_benchmarks_without_a_host_on_both_sides_are_left_out_of_pairs() -> None:
    a, b = side([[1, 1], [1, 2], [1, 3]]), side([[2, 2], [2, 4], [2, 6]])
    a.loc["h1", "b"] = b.loc[["h2", "h3"], "b"] = np.nan
    b.loc["h9"] = 0.0
    result = compare(a, b, weights={"a": 0.9, "b": 0.1, "c": 0.0}, pairing=Pairing.SAME_HOSTS)
    assert set(result.each) == {"a"} and result.each["a"].value == pytest.approx(2)
    assert result.left_out["b"] == "no host has a figure on both sides"
    assert result.hosts_out == {"h9": "is on one side only"}


def test_a_benchmark_that_few_have_does_not_switch_clustering_off() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 12)
    machines = pd.DataFrame({"copy": base, "triad": base + rng.normal(0, 0.01, 12), "rare": base})
    machines.loc[4:, "rare"] = np.nan
    assert sorted(map(sorted, clusters(machines))) == [["copy", "triad"], ["rare"]]


def test_families_go_by_the_name_with_which_cases_begin() -> None:
    cases = ["llama2-70b-99", "llama3.1-405b", "bert-99", "505.mcf_r", "525.x264_r"]
    keys = pd.DataFrame({"workload": "w", "case": cases}, index=cases)
    assert list(families(keys).values()) == ["w llama", "w llama", "w bert", "505.mcf_r", "525.x264_r"]
