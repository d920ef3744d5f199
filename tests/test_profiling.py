"""Test ``fleetmark profile`` with synthetic machines: recovered demand, predictions, refusals and invalid input."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.record import profiles as profiling
from fleetmark.reports.profile.document import as_json
from tests.commands import refused, run
from tests.profiles import FIT, RPS, record_generations, time, truth_of
from tests.records import MCF, TRIAD, record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    record_generations(tmp_path)
    return tmp_path


def test_the_demand_is_recovered(root: Path) -> None:
    document = json.loads(run(root, *FIT, "--format", "json"))
    assert (document["target"], document["unit"], len(document["machines"])) == ("nginx tls rps", "1/s", 15)
    assert document["p"] == 1 and not document["refused"] and document["errors"][0]["error"] < 0.02
    cpu, mem = document["resources"]
    truth = 3e-3 / cpu["mean"] / time(cpu["mean"], mem["mean"])
    assert cpu["lo"] < truth < cpu["hi"]
    assert cpu["lo"] < cpu["share"] < cpu["hi"] and cpu["share"] + mem["share"] == pytest.approx(1)
    more = {m["name"]: m for m in document["more"]}
    assert more["cpu"]["ratio"] == pytest.approx(1 / (1 - cpu["share"] / 6), rel=0.01)
    assert document["left_out"] == {f"turin{n}": "has no nginx tls rps" for n in range(3)}


def test_machines_are_predicted(root: Path) -> None:
    words = (*FIT, "-m", "gen=turin", "-m", "gen=genoa", "-b", "gen=icelake", "--format", "json")
    predictions = {t["machines"]: t for t in json.loads(run(root, *words))["predictions"]}
    truth = truth_of(root, "icelake") / truth_of(root, "turin")
    turin = predictions["gen=turin"]
    assert turin["lo"] < truth < turin["hi"] and turin["value"] == pytest.approx(truth, rel=0.04)
    assert turin["hosts"] == 3
    plain = json.loads(run(root, *FIT, "-m", "gen=turin", "--format", "json"))["predictions"][0]
    assert plain["lo"] < 1 / truth_of(root, "turin") < plain["hi"]


def test_a_time_is_a_target_too(root: Path) -> None:
    words = ("profile", "-t", "kernel/build/elapsed", *FIT[3:], "--format", "json")
    document = json.loads(run(root, *words))
    assert document["unit"] == "1/s" and len(document["machines"]) == 18
    assert document["resources"][1]["demand"] == pytest.approx(2e12, rel=0.1)


def test_upgrades_by_gain_per_money(root: Path) -> None:
    offered = ("--upgrade", "cpu=1.5@4000", "--upgrade", "mem=1.2@800", "--upgrade", "cpu=2,mem=2")
    upgrades = json.loads(run(root, *FIT, *offered, "--format", "json"))["upgrades"]
    assert [u["name"] for u in upgrades] == ["mem=1.2@800", "cpu=1.5@4000", "cpu=2,mem=2"]
    assert upgrades[2]["ratio"] == pytest.approx(2) and upgrades[2]["per_money"] is None
    table = " ".join(run(root, *FIT, *offered).split())
    assert {"gain", "per", "1,000"} <= set(table.split()) and "one after the other" in table


def test_what_is_unknown_is_not_claimed(root: Path) -> None:
    """Check that three identical machines give no shares, because they do not separate the resources."""
    words = (*FIT, "--limit", "gen=icelake", "-m", "gen=turin")
    document = json.loads(run(root, *words, "--format", "json"))
    assert document["refused"] and document["throttle"]["resource"] in ("cpu", "mem")
    assert [r["share"] for r in document["resources"]] == [None, None] and document["more"] == []
    (turin,) = document["predictions"]
    assert turin["value"] is None and "more than 2 times beyond" in turin["why"]
    table = " ".join(run(root, *words).split())
    assert "The bottleneck cannot be determined" in table and "throttled to 40%, 50%, 65%, 80%" in table
    assert "unknown" in table and "gen=turin: cannot tell" in table
    assert "does not show which resource limits nginx tls rps" in refused(root, *words, "--upgrade", "mem=2")


def test_rates_that_rise_and_fall_together_leave_no_interval(root: Path) -> None:
    """Check collinear rates, for which fits may agree to 1% although the share is arbitrary."""
    profiled = profiling.profile(root, FIT[2], [FIT[4], FIT[6]], None)
    alike = replace(
        profiled, profile=replace(profiled.profile, condition=35.0, refused=["they rise and fall together"])
    )
    assert [(r["lo"], r["hi"]) for r in as_json(alike, [], [])["resources"]] == [(None, None)] * 2
    assert all(r["lo"] < r["hi"] for r in as_json(profiled, [], [])["resources"])


def test_a_throttled_machine_is_one_of_its_own(root: Path) -> None:
    """Check that a throttled host counts as a separate machine, and that its figures determine the shares."""
    rng = np.random.default_rng(9)
    for part in (0.4, 0.5, 0.65, 0.8):
        cpu, mem = 200.0, 180e9 * part
        truth = {MCF: cpu, TRIAD: mem, RPS: 1 / time(cpu, mem)}
        measured = {("icelake0", b): [v * math.exp(rng.normal(0, 0.005)) for _ in range(3)] for b, v in truth.items()}
        labels = {"gen": "icelake", "throttle": f"mem-{part:.0%}"}
        record(root, f"t-{part}", {"icelake0": labels}, measured)
    document = json.loads(run(root, *FIT, "--limit", "gen=icelake", "--format", "json"))
    assert (
        not document["refused"] and "icelake0 (mem-40%)" in document["machines"] and "icelake0" in document["machines"]
    )
    assert document["resources"][1]["demand"] == pytest.approx(2e6, rel=0.1)


def test_saved_profiles_have_versions_and_stay_what_they_are(root: Path) -> None:
    assert "saved as web@1" in run(root, *FIT, "--save", "web")
    first = profiling.load(root, "web")
    run(root, *FIT, "--limit", "gen!=milan", "--save", "web")
    assert profiling.load(root, "web").version == 2
    again = profiling.load(root, "web@1")
    assert again.profile.demand == first.profile.demand and again.profile.drawn == first.profile.drawn
    assert (again.profile.rates == first.profile.rates).all() and len(again.records) == 15
    assert again.profile.errors[math.inf] == first.profile.errors[math.inf]


def test_a_worth_for_the_planner(root: Path) -> None:
    run(root, *FIT, "--save", "web")
    rate = profiling.worth(root, "web", "gen=turin")
    off = abs(math.log(rate.value * truth_of(root, "turin")))
    assert 2 < rate.df < 15 and off < 2 * rate.se < 0.1  # 15 machines - 2 resources, and 3 hosts - 1
    assert rate.source == "profile web@1: nginx tls rps of gen=turin, 3 hosts"
    ratio = profiling.worth(root, "web@1", "gen=turin", "gen=icelake")
    assert ratio.value == pytest.approx(truth_of(root, "icelake") / truth_of(root, "turin"), rel=0.04)
    assert 0 < ratio.se < 0.05
    of_itself = profiling.worth(root, "web", "gen=icelake", "gen=ice*")
    assert (of_itself.value, of_itself.se) == (1, 0)
    run(root, *FIT, "--limit", "gen=icelake", "--save", "narrow")
    with pytest.raises(FleetmarkError, match="narrow@1 cannot predict gen=turin"):
        profiling.worth(root, "narrow", "gen=turin")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-t", "nginx/*/rps", "-r", "mem=streams/*"), "--resource mem: streams/* matches no benchmark"),
        (("-t", "nothing/*", "-r", "mem=stream/*/triad"), "--target nothing/* matches no benchmark"),
        (("-t", "nginx/*/rps", "-r", "stream"), "write it as name=workload/case/metric"),
        (("-t", "nginx/*/rps", "-r", "mem=stream/*", "-r", "mem=fio/*"), "--resource mem is repeated"),
        (("-t", "*", "-r", "mem=stream/*/triad"), "is 5 benchmarks"),
        (("-t", "nginx/*/rps", "-r", "me=nginx/*"), "is the target itself"),
        (("-t", "nginx/*/rps", "-r", "x=*/*/*a*"), "narrow it to one unit"),
        ((*FIT[1:], "--limit", "gen=milan,host=milan0"), "1 machine with the target and all resources"),
        ((*FIT[1:], "--limit", "gen=turin"), "--target nginx/*/rps matches no benchmark of gen=turin"),
        ((*FIT[1:], "--save", "a/b"), "use letters, digits"),
        ((*FIT[1:], "--upgrade", "mem"), "write it as resource=factor@money"),
        ((*FIT[1:], "--upgrade", "gpu=2"), "gpu is not a resource of the profile"),
        ((*FIT[1:], "--upgrade", "mem=-2"), "a factor of -2"),
        ((*FIT[1:], "-m", "gen=naples"), "matches no machine"),
        ((*FIT[1:], "-b", "gen=icelake"), "--baseline gen=icelake without --machine"),
    ],
)
def test_bad_input_is_one_sentence(root: Path, words: tuple[str, ...], expected: str) -> None:
    assert expected in refused(root, "profile", *words)


def test_profiles_that_are_absent_or_damaged(root: Path) -> None:
    with pytest.raises(FleetmarkError, match="there is none yet"):
        profiling.load(root, "web")
    run(root, *FIT, "--save", "web")
    with pytest.raises(FleetmarkError, match=r"did you mean web\?"):
        profiling.load(root, "wbe")
    with pytest.raises(FleetmarkError, match="web has versions 1"):
        profiling.load(root, "web@7")
    file = root / "profiles" / "web.1.json"
    text = file.read_text()
    file.write_text(text[:500])
    with pytest.raises(FleetmarkError, match=r"web\.1\.json: damaged"):
        profiling.load(root, "web")
    file.write_text(text.replace('"schema": 1', '"schema": 9'))
    with pytest.raises(FleetmarkError, match="schema 9 is not supported by this version"):
        profiling.load(root, "web")
    with pytest.raises(FleetmarkError, match="no machine has all rates"):
        record(root, "bare", {"bare": {"gen": "bare"}}, {("bare", TRIAD): [1e9]})
        file.write_text(text)
        profiling.worth(root, "web", "gen=bare")
