"""planner.predict.transfer: what is known of made-up machines is recovered, intervals cover, and published results are met."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pandas as pd
import pytest

from benchmarks import transfer as published
from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.predict.transfer import LEAST_MACHINES, TOGETHER, Prediction, transfer
from fleetmark.planner.predict.votes import reach, vote
from fleetmark.planner.ratio import Verdict

Sample = tuple[pd.DataFrame, dict[str, str]]
absent = pytest.mark.skipif(
    not published.SPEC.is_dir(), reason=f"corpus absent: no {published.SPEC} (set FLEETMARK_CORPUS)"
)


def machines(
    families: int = 12,
    each: int = 4,
    factors: int = 1,
    columns: int = 5,
    common: float = 0.0,
    noise: float = 0.0,
    seed: int = 1,
    loadings: float = 0.3,
) -> Sample:
    """Figures of low rank: a machine's factors times the benchmarks' loadings. ``common``: scatter of whole families."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(families), each)
    strength = rng.normal(0, 0.5, (families * each, factors))
    loading = rng.normal(0, loadings, (factors, columns))
    loading[0] += 1
    values = 3 + np.arange(columns) + strength @ loading
    values += rng.normal(0, common, (families, columns))[family] + rng.normal(0, noise, values.shape)
    names = [f"m{i}" for i in range(len(family))]
    history = pd.DataFrame(values, index=names, columns=[f"b{i}" for i in range(columns)])
    return history, {n: f"f{f}" for n, f in zip(names, family, strict=True)}


def without(sample: Sample, machine: str, *known: str) -> tuple[pd.DataFrame, Mapping[str, str], dict[str, float]]:
    """The record less ``machine``, the families, and its known figures."""
    history, families = sample
    return history.drop(machine), families, {k: figure(history, machine, k) for k in known}


def figure(sample: Sample | pd.DataFrame, machine: str, benchmark: str) -> float:
    history = sample[0] if isinstance(sample, tuple) else sample
    return float(history[benchmark].to_dict()[machine])


def nearest(history: pd.DataFrame) -> str:
    """The machine that lies nearest the mean."""
    far = np.abs(history.to_numpy() - history.to_numpy().mean(axis=0)).max(axis=1)
    return str(history.index[int(np.argmin(far))])


def interval(p: Prediction) -> tuple[float, float, float]:
    assert p.log is not None and p.log.interval is not None, p.reason
    return p.log.value, *p.log.interval


@pytest.mark.parametrize(
    ("factors", "known"), [(1, ("b0",)), (1, ("b0", "b1")), (2, ("b0", "b1")), (3, ("b0", "b1", "b2"))]
)
def test_exact_low_rank_is_recovered(factors: int, known: tuple[str, ...]) -> None:
    sample = machines(factors=factors)
    middle = nearest(sample[0])
    predictions = transfer(*without(sample, middle, *known), ["b3", "b4"])
    for target, p in predictions.items():
        log, lo, hi = interval(p)
        assert log == pytest.approx(figure(sample, middle, target), abs=2e-3)
        assert lo <= log <= hi and hi - lo < 0.02
    if factors > 1:
        assert predictions["b3"].votes[TOGETHER] > 0.95


def test_ratios_carry_over_one_to_one_when_nothing_says_otherwise() -> None:
    sample = machines(loadings=0.0, noise=0.01)
    history, families, known = without(sample, "m5", "b0", "b1")
    p = transfer(history, families, {k: v + 0.3 for k, v in known.items()}, ["b2"], baseline="m9")["b2"]
    assert interval(p)[0] == pytest.approx(figure(sample, "m5", "b2") + 0.3, abs=0.03)
    assert p.ratio is not None
    assert p.ratio.value == pytest.approx(math.exp(interval(p)[0] - figure(history, "m9", "b2")))
    assert p.ratio.lo == pytest.approx(math.exp(interval(p)[1] - figure(history, "m9", "b2")))
    assert sum(p.votes.values()) == pytest.approx(1)


def test_facts_count() -> None:
    """A rate goes with cores: without them it cannot be had from a speed."""
    history, families = machines(families=15, noise=0.01)
    cores = pd.DataFrame(
        {"cores": np.random.default_rng(2).choice(np.log([8, 16, 32, 64]), len(history))}, history.index
    )
    history["rate"] = history["b0"] + 0.9 * cores["cores"]
    args = (*without((history, families), "m7", "b0"), ["rate"])
    truth = figure(history, "m7", "rate")
    with_cores = transfer(*args, facts=cores.drop("m7"), known_facts={"cores": figure(cores, "m7", "cores")})["rate"]
    bare = transfer(*args)["rate"]
    assert interval(with_cores)[0] == pytest.approx(truth, abs=0.05)
    assert interval(with_cores)[2] - interval(with_cores)[1] < 0.1
    assert interval(bare)[2] - interval(bare)[1] > 1
    far = transfer(*args, facts=cores.drop("m7"), known_facts={"cores": math.log(1000)})["rate"]
    assert far.log is None and "cores (1000) lies more than 2 times beyond the record, 8 to 64" in far.reason


def test_a_large_family_does_not_drown_the_others() -> None:
    """400 machines of one family say one thing, 20 of as many families another: they count alike."""
    x = np.random.default_rng(1).normal(0, 0.5, 420)
    history = pd.DataFrame({"a": x, "b": x + np.repeat([0.4, 0.0], [400, 20])}, [f"m{i}" for i in range(420)])
    families = {f"m{i}": f"f{max(i, 399)}" for i in range(420)}
    assert interval(transfer(history, families, {"a": 0.0}, ["b"])["b"])[0] == pytest.approx(0.2, abs=0.05)


def test_the_better_witness_is_believed() -> None:
    history, families = machines(loadings=0.0, noise=0.01, families=20)
    rng = np.random.default_rng(3)
    history["loose"] = history["b0"] + rng.normal(0, 0.5, len(history))
    p = transfer(*without((history, families), "m3", "b0", "loose"), ["b2"])["b2"]
    assert p.votes["loose"] < 0.001
    assert p.votes["b0"] > 0.3


@pytest.mark.parametrize(
    ("families", "each", "common", "noise"),
    [(14, 6, 0.08, 0.04), (25, 1, 0.0, 0.08), (14, 12, 0.0, 0.08), (14, 6, 0.08, 0.0), (6, 6, 0.08, 0.04)],
)
def test_intervals_cover_machines_of_unseen_families(families: int, each: int, common: float, noise: float) -> None:
    """Family scatter, machine scatter, both; and so few families that Student's t takes over."""
    inside = []
    for seed in range(300):
        history, family_by_machine = machines(families + 1, each, common=common, noise=noise, seed=seed, loadings=0.1)
        new = str(history.index[-1])
        rest = history[[family_by_machine[str(m)] != family_by_machine[new] for m in history.index]]
        p = transfer(
            rest, family_by_machine, {"b0": figure(history, new, "b0"), "b1": figure(history, new, "b1")}, ["b2"]
        )["b2"]
        if p.log is not None:
            inside.append(interval(p)[1] <= figure(history, new, "b2") <= interval(p)[2])
    assert len(inside) > 280
    assert 0.86 <= np.mean(inside) <= 0.95


def test_the_level_is_the_users() -> None:
    sample = machines(noise=0.1, families=25)
    halves = [
        interval(transfer(*without(sample, "m3", "b0"), ["b2"], level=level)["b2"])[2]
        for level in (0.5, 0.8, 0.9, 0.95)
    ]
    assert halves == sorted(halves) and len(set(halves)) == 4


def test_missing_figures() -> None:
    """Machines serve with what they have; what no one has is said."""
    sample = machines(families=15, noise=0.02)
    history = sample[0].mask(np.random.default_rng(5).random(sample[0].shape) < 0.4)
    history, families, _ = without((history, sample[1]), "m3")
    known = {"b0": float(figure(sample, "m3", "b0")), "b1": float(figure(sample, "m3", "b1")), "other": 1.0}
    p = transfer(history, families, known, ["b2"])["b2"]
    assert interval(p)[1] <= figure(sample, "m3", "b2") <= interval(p)[2] and interval(p)[2] - interval(p)[1] < 0.5
    assert p.ignored == {"other": "no stored machine has it"}
    serving = history["b2"].notna() & history[["b0", "b1"]].notna().any(axis=1)
    assert list(p.machines) == list(history.index[serving])
    assert p.families == len({families[m] for m in p.machines})


def test_a_family_never_trains_on_itself() -> None:
    """Whatever its machines show, their predictions stay the same, and so does what calibrates the interval."""
    history, families = machines(noise=0.05, each=3)
    spoilt = history.copy()
    family = [m for m in history.index if families[str(m)] == "f4"]
    spoilt.loc[family, "b2"] += np.array([3.0, -2.0, 5.0])
    args = (families, ["b2"], lambda k, t: k in ("b0", "b1"))
    a, b = (published.leave_family_out(h, *args).set_index("machine") for h in (history, spoilt))
    columns = ["log", "lo", "hi"]
    assert a.loc[family, columns].equals(b.loc[family, columns])
    assert not a.drop(family)[columns].equals(b.drop(family)[columns])  # the others do learn from it
    codes = np.array([int(families[str(m)][1:]) for m in history.index])
    x, none = history[["b0"]].to_numpy(), np.empty((len(history), 0))
    votes = [vote(h["b2"].to_numpy(), x, none, codes, x[0], np.empty(0)) for h in (history, spoilt)]
    assert votes[0] is not None and votes[1] is not None
    np.testing.assert_allclose(votes[0].on_record[codes == 4], votes[1].on_record[codes == 4], rtol=1e-9)


def test_a_targets_own_figure_is_not_used_for_it() -> None:
    sample = machines(noise=0.05)
    history, families, known = without(sample, "m3", "b0", "b1", "b2")
    few = {k: known[k] for k in ("b0", "b1")}
    assert transfer(history, families, known, ["b2"]) == transfer(history, families, few, ["b2"])


def test_units_and_order_do_not_matter() -> None:
    sample = machines(noise=0.05)
    history, families, known = without(sample, "m3", "b0", "b1")
    plain = transfer(history, families, known, ["b2"], baseline="m8")["b2"]
    shift = pd.Series({"b0": 2.0, "b1": -7.0, "b2": 0.5, "b3": 0.0, "b4": 0.0})
    moved = transfer(history + shift, families, {k: v + shift[k] for k, v in known.items()}, ["b2"], baseline="m8")[
        "b2"
    ]
    turned = transfer(history.iloc[::-1, ::-1], families, dict(reversed(known.items())), ["b2"], baseline="m8")["b2"]
    assert plain.ratio is not None
    for other in (moved, turned):
        assert other.ratio is not None
        assert (other.ratio.value, other.ratio.lo) == pytest.approx((plain.ratio.value, plain.ratio.lo), rel=1e-6)


class TestCannotTell:
    def test_too_few_families_or_machines(self) -> None:
        for families, each, expected in ((4, 10, "39 machines of 4 families"), (7, 1, "6 machines of 6 families")):
            p = transfer(*without(machines(families, each), "m0", "b0"), ["b2"])["b2"]
            assert p.log is None and p.ratio is None and not p.machines
            assert expected in p.reason and p.verdict == f"cannot tell: {p.reason}"
            assert f"{LEAST_MACHINES} machines of 5 families are needed" in p.reason

    def test_out_of_range(self) -> None:
        history, families, known = without(machines(noise=0.05), "m3", "b0", "b1")
        top = float(history["b0"].max())
        near = transfer(history, families, {"b0": top + 0.6}, ["b2"])["b2"]
        far = transfer(history, families, {"b0": top + 0.8}, ["b2"])["b2"]
        partly = transfer(history, families, known | {"b0": top + 0.8}, ["b2"])["b2"]
        assert near.log is not None and far.log is None and "beyond the record" in far.reason
        assert list(partly.votes) == ["b1"] and "b0" in partly.ignored

    def test_an_extrapolation_is_wider(self) -> None:
        history, families, _ = without(machines(noise=0.05, families=20), "m3")
        middle, top = float(history["b0"].mean()), float(history["b0"].max())
        inner, outer = (interval(transfer(history, families, {"b0": x}, ["b2"])["b2"]) for x in (middle, top + 0.6))
        assert outer[2] - outer[1] > 1.1 * (inner[2] - inner[1])

    def test_nothing_to_go_by(self) -> None:
        history, families, known = without(machines(), "m3", "b0")
        assert "no stored machine has x" in transfer(history, families, known, ["x"])["x"].reason
        for nothing in ({}, {"y": 1.0}, {"b2": 1.0}):
            assert "has any of the known figures" in transfer(history, families, nothing, ["b2"])["b2"].reason
        empty = transfer(history.assign(e=np.nan), families, known, ["e"])["e"]
        assert "0 machines of 0 families" in empty.reason
        assert "0 machines" in transfer(history.iloc[:0], families, known, ["b2"])["b2"].reason
        apart = history.copy()
        apart.loc[apart.index[:24], "b0"] = np.nan
        apart.loc[apart.index[24:], "b2"] = np.nan
        assert "0 machines" in transfer(apart, families, known, ["b2"])["b2"].reason

    def test_a_baseline_without_the_target_costs_only_the_ratio(self) -> None:
        history, families, known = without(machines(noise=0.05), "m3", "b0")
        history.loc["m8", "b2"] = np.nan
        p = transfer(history, families, known, ["b2"], baseline="m8")["b2"]
        assert p.log is not None and p.ratio is None and p.reason == "no ratio: the baseline m8 has no b2"

    def test_a_constant_or_repeated_column_does_no_harm(self) -> None:
        history, families = machines(noise=0.05)
        history = history.assign(flat=1.0, again=history["b0"])
        p = transfer(*without((history, families), "m3", "flat", "b0", "again"), ["b2", "flat"])
        assert interval(p["b2"])[1] <= figure(history, "m3", "b2") <= interval(p["b2"])[2]
        assert interval(p["flat"])[0] == pytest.approx(1.0, abs=0.1)


def test_a_difference_that_is_none_is_not_claimed() -> None:
    sample = machines(noise=0.1, families=20)
    history, families, known = without(sample, "m3", "b0")
    close = str((history["b2"] - figure(sample, "m3", "b2")).abs().idxmin())
    low = str(history["b2"].idxmin())
    verdicts = []
    for baseline in (close, low):
        ratio = transfer(history, families, known, ["b2"], baseline=baseline)["b2"].ratio
        assert ratio is not None
        verdicts.append(ratio.verdict)
    assert verdicts == [Verdict.CANNOT_TELL, Verdict.BETTER]


def test_what_is_no_record_is_refused() -> None:
    history, families, known = without(machines(), "m3", "b0")
    endless = history.copy()
    endless.iloc[0, 0] = math.inf
    cases: list[tuple[Callable[[], object], str]] = [
        (
            lambda: transfer(endless, families, known, ["b2"]),
            "b0 of m0 is infinite",
        ),
        (lambda: transfer(pd.concat([history, history]), families, known, ["b2"]), "machine 'm0' is recorded twice"),
        (lambda: transfer(history[["b0", "b0"]], families, known, ["b2"]), "benchmark 'b0' is recorded twice"),
        (lambda: transfer(history, {"m0": "f"}, known, ["b2"]), "46 stored machines have no family, m1 among them"),
        (lambda: transfer(history, families, {"b0": math.nan}, ["b2"]), "b0 is not a finite logarithm"),
        (lambda: transfer(history, families, known, ["b2"], baseline="m3"), "'m3' is not among the 47 stored machines"),
        (lambda: transfer(history, families, known, ["b2"], level=1.0), "level 1 cannot be made"),
    ]
    for spoil, expected in cases:
        with pytest.raises(FleetmarkError, match=expected):
            spoil()


class TestReach:
    def test_one_machine_a_family_is_the_plain_conformal_quantile(self) -> None:
        errors = np.arange(1.0, 20.0) * np.where(np.arange(19) % 2, 1, -1)
        assert reach(errors, np.arange(19), 0.9) == pytest.approx(18)  # ceil(0.9 x 20) th of 19
        assert reach(errors, np.arange(19), 0.5) == pytest.approx(10)

    def test_repeats_of_a_family_are_no_evidence(self) -> None:
        rng = np.random.default_rng(1)
        family, errors = np.repeat(np.arange(15), 50), rng.normal(size=15)
        assert (
            reach(np.repeat(errors, 50), family, 0.9) == np.sort(np.abs(errors))[13]
        )  # 14 of 15: nearest to 90% of 16
        assert reach(rng.normal(size=750), family, 0.9) == pytest.approx(1.645, abs=0.2)

    def test_a_large_family_does_not_drown_the_others(self) -> None:
        """It counts as the square root of its machines: 400 good ones as 20 of the other families' single ones."""
        errors = np.concatenate([np.full(400, 0.01), np.linspace(1, 2, 20)])
        family = np.concatenate([np.zeros(400, dtype=int), np.arange(1, 21)])
        assert 1.7 < reach(errors, family, 0.9) < 1.9

    def test_few_families_take_students_t(self) -> None:
        errors = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        assert reach(errors, np.arange(5), 0.9) == pytest.approx(2.1318, abs=1e-4)
        assert reach(np.zeros(5), np.arange(5), 0.9) == 0


@cache
def scores() -> dict[str, published.TransferScore]:
    tasks = [t for t in published.tasks() if "architecture" not in t.name]
    return {t.name: published.run(t) for t in tasks}


# Task: the greatest error of machines that is let pass (the goal is 10%).
SPEC = {
    "rate from speed, cores, threads, L3, memory": 0.08,
    "speed from rate, cores, threads, L3, memory": 0.09,
    "peak rate from base rate": 0.02,
    "peak speed from base speed": 0.012,
    "fp from int, GCC 12": 0.10,
    "fp from int, GCC 14": 0.10,
    "fp -march=native from int and fp, GCC 12": 0.055,
    "fp -march=native from int and fp, GCC 14": 0.045,
    "int -flto -ljemalloc from int and fp, GCC 12": 0.03,
    "int -flto -ljemalloc from int and fp, GCC 14": 0.025,
    "int 2026 from int and fp 2017": 0.06,
    "fp 2026 from int and fp 2017": 0.05,
}


@absent
class TestPublished:
    @pytest.mark.parametrize("name", SPEC)
    def test_spec_within_ten_per_cent(self, name: str) -> None:
        score = scores()[name]
        assert score.error[0] <= SPEC[name]
        assert score.cases["log"].notna().all()
        assert score.gains["geometric mean"][1] > 0  # against a baseline machine: a win on every task
        assert score.gains["geometric mean over all"][0] > -0.001

    def test_spec_intervals_cover(self) -> None:
        """One task has some 20 families: its coverage is known to 7 points. Their mean is held to the goal."""
        coverage = [s.coverage for name, s in scores().items() if not name.startswith("MLPerf")]
        assert 0.88 <= np.mean([by_family for _, by_family in coverage]) <= 0.935
        assert min(by_family for _, by_family in coverage) >= 0.85
        for covered in scores()["rate from speed, cores, threads, L3, memory"].coverage:
            assert 0.88 <= covered <= 0.935

    def test_peak_specifications_are_no_substitute(self) -> None:
        score = scores()["rate from speed, cores and threads"]
        assert score.error[0] < 0.13
        assert score.rivals["cores x clock"][0] > 0.28

    def test_mlperf_beats_the_geometric_mean(self) -> None:
        scenarios = scores()["MLPerf: from other scenarios of the model, chip left out"]
        models = scores()["MLPerf: from other models, chip left out"]
        for score, maximum in ((scenarios, 0.21), (models, 0.24)):
            assert score.error[0] <= maximum
            assert score.gains["geometric mean"][1] > 0.04
            assert score.error[0] < score.rivals["geometric mean over all"][0] - 0.03
            assert 0.88 <= score.coverage[0] <= 0.935
            assert 0.86 <= score.coverage[1] <= 0.93
        assert scenarios.gains["geometric mean over all"][1] > 0
        assert len(models.cases) > 3500

    def test_units_and_families_of_the_tables(self) -> None:
        chips = published.accelerators()
        assert {"gptj Offline samples", "gptj Offline tokens"} <= set(chips.history.columns)
        assert chips.history[["gptj Offline samples", "gptj Offline tokens"]].notna().all(axis=1).sum() == 0
        assert {"H100", "H200", "B200", "MI300X", "L40S", "A100", "TPU v5e"} <= set(chips.families.values())
        assert not any("MIG" in m for m in chips.history.index)
        cpus = published.systems()
        assert {"AMD EPYC - 5th Gen", "Intel Xeon - 2nd Gen Scalable", "Sierra Forest"} <= set(cpus.families.values())
        assert not any("Unknown" in f for f in cpus.families.values())
