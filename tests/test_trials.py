"""``fleetmark tune`` over campaigns on record: what is measured again, what the pairs show, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import IdleState, Nic
from fleetmark.planner.diagnosis.trial import Gain, change, sides
from fleetmark.planner.diagnosis.tuning.rules import rule_named
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import trials
from fleetmark.record.steps import Trial
from tests.commands import refused, run
from tests.fleets import campaign, ring, usual
from tests.records import NULL, TRIAD, Bench, record
from tests.schedules import facts

KNOB = {"path": "/sys/kernel/mm/transparent_hugepage/enabled", "value": "madvise"}


def test_a_block_has_both_sides_in_turns() -> None:
    assert sides(4, 0) == (False, True, True, False, False, True, True, False)
    assert sides(3, 1) == (True, False, False, True, True, False)
    for blocks in range(1, 9):
        order = sides(blocks, blocks)
        assert all({order[2 * n], order[2 * n + 1]} == {False, True} for n in range(blocks))


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(18)
    inside = false = 0
    for _ in range(2000):
        drift = rng.normal(0, 0.05, 6)  # what both runs of a block share
        before = np.exp(drift + rng.normal(0, 0.01, 6))
        after = 1.03 * np.exp(drift + rng.normal(0, 0.01, 6))
        measured = change("x", list(zip(before, after, strict=True)), lower_is_better=False)
        assert measured and measured.ratio.lo and measured.ratio.hi
        inside += measured.ratio.lo <= 1.03 <= measured.ratio.hi
        none = change("x", list(zip(before, after / 1.03, strict=True)), lower_is_better=False)
        false += none is not None and none.gain is not Gain.NEITHER
    assert 0.93 < inside / 2000 < 0.97 and false / 2000 < 0.07


def test_pairs_of_a_latency_and_too_few() -> None:
    measured = change("x", [(2.0, 1.0), (2.2, 1.1), (2.0, 1.0)], lower_is_better=True)
    assert (
        measured and measured.ratio.value == pytest.approx(2.0) and measured.gain is Gain.FASTER and measured.pairs == 3
    )
    worse = change("x", [(1.0, 2.0)] * 2, lower_is_better=True)
    assert worse and worse.gain is Gain.SLOWER
    assert change("x", [(1.0, 2.0)], lower_is_better=False) is None
    assert change("x", [(0.0, 2.0), (1.0, math.inf), (1.0, 2.0)], lower_is_better=False) is None


# --- what is measured again


def test_the_rule_chooses_what_its_host_measured(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual(("a", "b")))
    every = trials.suite(archive, "a", rule_named("governor"), (), 12)["workloads"]
    assert {w: list(settings["hosts"].items()) for w, settings in every.items()} == {
        "stream": [("all-cores", [["a"]])],
        "fio": [("randread-4k-qd32", [["a"]])],
        "lmbench": [("lat_syscall-null", [["a"]])],
    }
    assert {settings["repeats"] for settings in every.values()} == {12}
    assert list(trials.suite(archive, "a", rule_named("disk-scheduler"), (), 4)["workloads"]) == ["fio"]
    assert list(trials.suite(archive, "a", rule_named("governor"), ("stream/*",), 4)["workloads"]) == ["stream"]


def test_a_case_between_hosts_runs_with_one_partner(tmp_path: Path) -> None:
    archive = campaign(tmp_path, ring("", ("", "")))
    suite = trials.suite(archive, "n03", rule_named("mtu"), (), 4)
    (pair,) = suite["workloads"]["iperf3"]["hosts"]["tcp"]
    assert len(pair) == 2 and "n03" in pair
    assert trials.hosts_of(suite, archive.host_names()) == tuple(sorted(pair))


# --- what a trial shows


def trial(
    parent: Archive, values: dict[Bench, Sequence[float]], turned: Sequence[bool | None], reason: str = ""
) -> Archive:
    """A trial of ``hugepages`` on host a on record: of each run its values, and the side that its read-back showed."""
    (parent.path / trials.FOLDER).mkdir(exist_ok=True)
    archive = record(
        parent.path / trials.FOLDER, "20260102T000000-trial", {"a": {}}, {("a", b): list(v) for b, v in values.items()}
    ).writable()
    tried = Trial("a", "hugepages", [KNOB], sides(len(turned) // 2, 0))
    archive.save_campaign({**archive.campaign(), "trial": {**vars_of(tried)}})
    for bench in values:
        for repeat, is_on in enumerate(turned):
            step = {"workload": bench.workload, "case": bench.case, "repeat": repeat, "subject": "host", "id": "00000"}
            step |= {"argv": [], "env": {}, "expect_s": 1.0, "timeout_s": 1.0, "output": "stdout", "serves": False}
            folder = archive.raw_dir("a", step)
            folder.mkdir(parents=True)
            setting = None if is_on is None else {"on": is_on, "values": ["madvise" if is_on else "always"]}
            result = {"ended": "exit", "started": 1.0, "wall_s": 1.0, "setting": setting, "reason": reason or None}
            (folder / "step.json").write_text(json.dumps({**step, "host": "a"}))
            (folder / "result.json").write_text(json.dumps(result))
    archive.note("ended", owed=0)
    return archive


def vars_of(tried: Trial) -> dict[str, Any]:
    return {"host": tried.host, "rule": tried.rule, "items": list(tried.items), "sides": list(tried.sides)}


@pytest.fixture
def parent(tmp_path: Path) -> Archive:
    archive = campaign(tmp_path, usual(("a", "b", "c")))
    for host in "abc":
        archive.save_facts(host, facts(thp="always", idle_states=()), {})
    return archive


def test_changes_are_those_of_pairs_whose_setting_was_read_back(parent: Archive) -> None:
    sides_ = [False, True, True, False, False, True, True, False]
    triad = [100e9, 110e9, 112e9, 101e9, 99e9, 110e9, 500e9, 100e9]
    null = [90e-9, 90e-9, 91e-9, 91e-9, 90e-9, 90e-9, 89e-9, 90e-9]
    archive = trial(parent, {TRIAD: triad, NULL: null}, [*sides_[:6], None, False])  # one run lacks its read-back
    tried = trials.of_trial(archive)
    first, second = tried.changes
    assert (first.title, first.pairs, first.gain) == ("stream all-cores triad", 3, Gain.FASTER)
    assert first.ratio.value == pytest.approx((1.1 * 112 / 101 * 110 / 99) ** (1 / 3))
    assert second.gain is Gain.NEITHER
    assert (tried.before, tried.after, tried.left, tried.refused) == (("always",), ("madvise",), "", "")


def test_a_trial_is_shown_where_its_host_is(parent: Archive, tmp_path: Path) -> None:
    trial(parent, {TRIAD: [100e9, 110e9, 112e9, 101e9]}, [False, True, True, False])
    words = ("tune", "a", "hugepages")
    assert "would set: /sys/kernel/mm/transparent_hugepage/enabled = madvise" in " ".join(run(tmp_path, *words).split())
    shown = json.loads(run(tmp_path, "tune", "a", "--format", "json"))
    assert next(r for r in shown["rules"] if r["name"] == "hugepages")["trial"] == "trials/20260102T000000-trial"
    assert "可试验" in run(tmp_path, "tune", "--list", "--lang", "zh-CN")
    listed = {r["name"]: r["try"] for r in json.loads(run(tmp_path, "tune", "--list", "--format", "json"))}
    assert listed["governor"] and not listed["acs"]


def test_a_gain_that_was_measured_is_told_by_the_rules(parent: Archive, tmp_path: Path) -> None:
    archive = trial(
        parent, {TRIAD: [100e9, 110e9, 112e9, 101e9, 100e9, 111e9]}, [False, True, True, False, False, True]
    )
    doc = archive.campaign()
    archive.save_campaign({**doc, "trial": {**doc["trial"], "rule": "smt"}})
    advice = json.loads(run(tmp_path, "tune", "--format", "json"))["advice"]
    (smt,) = [a for a in advice if a["name"] == "smt"]
    assert smt["hosts"] == ["a"] and smt["measured"] and "1.11 times as good" in smt["evidence"]


def test_advice_says_what_a_trial_of_it_showed(parent: Archive, tmp_path: Path) -> None:
    trial(parent, {TRIAD: [100e9, 110e9, 112e9, 101e9]}, [False, True, True, False])
    for host in "abc":
        parent.save_facts(host, facts(thp="never"), {})
    text = " ".join(run(tmp_path, "tune").split())
    assert "transparent hugepages are off: 3 hosts (a, b, c); tried. a: stream all-cores triad: 10.4% better" in text


def test_what_could_not_be_set_or_put_back_is_said(parent: Archive) -> None:
    reason = "nothing was changed: /sys/x cannot be set to 1 (Read-only file system)"
    refused_ = trials.of_trial(trial(parent, {TRIAD: [1.0, 1.0, 1.0, 1.0]}, [None] * 4, reason))
    assert refused_.refused == "/sys/x cannot be set to 1 (Read-only file system)" and not refused_.changes


def test_left_and_cleared(parent: Archive) -> None:
    archive = trial(parent, {TRIAD: [1.0, 1.1, 1.1, 1.0]}, [False, True, True, False])
    archive.note("left", host="a", what="x was 1 and could not be restored: no")
    assert trials.of_trial(archive).left.startswith("x was 1")
    archive.note("cleared", host="a", what="put back")
    assert (trials.of_trial(archive).left, trials.of_trial(archive).cleared) == ("", "put back")


def test_what_is_damaged_is_a_sentence(parent: Archive, tmp_path: Path) -> None:
    archive = trial(parent, {TRIAD: [1.0, 1.1, 1.1, 1.0]}, [False, True, True, False])
    document = archive.campaign()
    for items in ([{}], [{"path": "/x"}], [{"value": "1", "read": ["x"], "match": "(x)", "write": "x"}]):
        archive.save_campaign({**document, "trial": {**document["trial"], "items": items}})
        with pytest.raises(FleetmarkError, match="damaged: the tried setting is missing"):
            trials.of_trial(archive)
    archive.save_campaign(document)
    (archive.path / "measurements.parquet").write_bytes(b"PAR1")
    with pytest.raises(FleetmarkError, match="not a complete Parquet file"):
        trials.of_trial(archive)


def test_a_trial_of_what_ran_in_a_container_runs_in_it(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual(("a", "b")))
    read = {"workloads": {"stream": {"in_container": "podman:x"}, "fio": None}}
    archive.save_campaign({**archive.campaign(), "suite_as_read": read})
    every = trials.suite(archive, "a", rule_named("governor"), (), 12)["workloads"]
    assert {name: settings.get("in_container") for name, settings in every.items()} == {
        "stream": "podman:x",
        "fio": None,
        "lmbench": None,
    }


def test_an_unfinished_trial_goes_on_only_with_the_same_setting(parent: Archive) -> None:
    archive = trial(parent, {TRIAD: [1.0, 1.1]}, [False, True])
    assert trials.unfinished(parent, "a", "hugepages", [KNOB]) is None
    archive.note("ended", owed=2)
    begun = trials.unfinished(parent, "a", "hugepages", [KNOB])
    assert begun and begun.id == archive.id and not trials.of_trial(archive).finished
    assert trials.unfinished(parent, "a", "hugepages", [{**KNOB, "value": "never"}]) is None
    assert trials.unfinished(parent, "b", "hugepages", [KNOB]) is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("tune", "--try"), "--try: needs a host and a rule"),
        (("tune", "z"), "no host 'z'"),
        (("tune", "a", "hugepage"), "did you mean hugepages?"),
        (("tune", "a", "acs"), "acs cannot be tried: it changes no setting at run time"),
        (("tune", "a", "mtu"), "mtu cannot be tried on a: the facts of this host show no setting to change"),
        (("tune", "a", "--try"), "--try: needs a rule"),
        (("tune", "a", "hugepages", "--try"), "--try changes a setting of a as root: add --become"),
        (("tune", "a", "hugepages", "--to", "x y"), "x y: not a valid value"),
        (("tune", "a", "hugepages", "--on", "eth9"), "the rule sets nothing on this device"),
        (("tune", "a", "--to", "x"), "--to: needs a rule"),
        (("tune", "--list", "a"), "remove the host and --try"),
        (("tune", "a", "nic-rings"), "the facts of this host show no setting to change"),
        (("tune", "a", "hugepages", "--case", "none/*"), "measured no headline of none/* on a"),
    ],
)
def test_bad_requests(parent: Archive, tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    assert parent.id and reason in refused(tmp_path, *words)


def test_a_value_that_nothing_says_has_to_be_named(parent: Archive, tmp_path: Path) -> None:
    nic = Nic(name="eth0", state="up", addresses=("10.0.0.1/24",), mtu=1500)
    idle = IdleState(number=2, name="C6", latency_s=1e-4, share=0.5)
    parent.save_facts("a", facts(nics=(nic,), idle_states=(idle,)), {})
    assert "give it with --to" in refused(tmp_path, "tune", "a", "mtu", "--case", "stream/*")
    shown = " ".join(run(tmp_path, "tune", "a", "mtu", "--to", "9000", "--case", "stream/*").split())
    assert "would set: ip link set dev eth0 mtu 9000" in shown
    assert "6 times without and with it, alternately: stream/all-cores" in shown
