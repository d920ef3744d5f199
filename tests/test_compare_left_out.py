"""What ``fleetmark compare`` does not compare, and what it says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import refused, run
from tests.comparisons import compared, fleet, labels, row_of
from tests.records import GCC, IOPS, MCF, TRIAD, Bench, record


def test_no_such_record_names_the_folder(tmp_path: Path) -> None:
    sentence = refused(tmp_path / "absent", "compare", "-b", "gen=old", "-c", "gen=new")
    assert sentence.startswith(f"{tmp_path / 'absent'}: no such folder")


def test_hosts_that_lack_a_benchmark_stay(tmp_path: Path) -> None:
    measured = {k: v for k, v in fleet(count=8).items() if k[0] not in ("a1", "a2", "b3") or k[1] != GCC}
    record(tmp_path, "c1", labels(measured), measured)
    row = row_of(compared(tmp_path), "cpu-int")
    assert "hosts lack figures: estimated by a mixed model" in row["note"]
    assert (row["hosts_baseline"], row["hosts_candidate"], row["verdict"]) == ("8", "8", "better")


def test_a_label_that_is_no_number_is_shown(tmp_path: Path) -> None:
    measured = fleet(count=2)
    hosts = {h: {**host_labels, "watts": "300W"} for h, host_labels in labels(measured).items()}
    record(tmp_path, "c1", hosts, measured)
    sentence = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "watt")
    assert "its label watts is 300W, which is not a number above 0" in sentence


def test_hosts_that_differ_wildly_fit_every_form(tmp_path: Path) -> None:
    figures = {"a0": 1e-90, "a1": 2e14, "b0": 1e-80, "b1": 3e14}
    measured = {(host, TRIAD): [value] for host, value in figures.items()}
    record(tmp_path, "c1", labels(measured), measured)
    ask = ("compare", "-b", "gen=old", "-c", "gen=new")
    head, single = json.loads(run(tmp_path, *ask, "--format", "json"))["rows"]
    assert single["hi"] == pytest.approx(1e300)
    assert (head["basis"], head["ratio"], head["hi"]) == ("totals", pytest.approx(1.5), None)
    assert "cannot tell" in run(tmp_path, *ask, "--html", str(tmp_path / "a.html"), "--xlsx", str(tmp_path / "a.xlsx"))


def test_sides_that_share_nothing(tmp_path: Path) -> None:
    record(tmp_path, "c", {"a": {"gen": "old"}, "b": {"gen": "new"}}, {("a", TRIAD): [1e9], ("b", IOPS): [1e5]})
    ask = ("compare", "-b", "gen=old", "-c", "gen=new")
    assert "share no benchmark" in refused(tmp_path, *ask)
    loss = Bench("iperf3", "udp", "loss", "1", "lower", "net", kind="guardrail")
    record(tmp_path, "d", {"a": {"gen": "old"}}, {("a", loss): [0.01]})
    assert "run stream all-cores triad on new, or fio randread-4k-qd32 read_iops on old" in refused(tmp_path, *ask)


def test_a_latency_that_one_side_cannot_keep_gives_no_number(tmp_path: Path) -> None:
    sla = replace(IOPS, case="randread-4k-p99-500us")
    both = {("a", TRIAD): [1e9], ("b", TRIAD): [2e9]}
    hosts = {"a": {"gen": "old"}, "b": {"gen": "new"}}
    record(tmp_path, "c1", hosts, {**both, ("b", sla): [5e5]})
    record(tmp_path, "c2", {"a": hosts["a"]}, {("a", sla): [1e4]}, status="invalid")
    row = row_of(compared(tmp_path), "disk-iops", "fio randread-4k-p99-500us read_iops")
    assert (row["ratio"], row["note"]) == ("", "not equivalent: on old every run was invalid")


def test_units_must_agree(tmp_path: Path) -> None:
    other = replace(IOPS, unit="B/s")
    measured = {("a", IOPS): [1e5], ("b", other): [1e5], ("a", TRIAD): [1e9], ("b", TRIAD): [2e9]}
    record(tmp_path, "c", {"a": {"gen": "old"}, "b": {"gen": "new"}}, measured)
    row = row_of(compared(tmp_path), "disk-iops", "fio randread-4k-qd32 read_iops")
    assert row["ratio"] == "" and row["note"] == "units clash: 1/s on the baseline, B/s on the candidate"
    assert (row["unit"], row["baseline_value"], row["candidate_value"]) == ("", "", "")


def test_directions_must_agree(tmp_path: Path) -> None:
    """Two tables that disagree on which way is better: the first word must not stand for both."""
    other = replace(IOPS, better="lower")
    hosts = {"a": {"gen": "old"}, "a2": {"gen": "old"}, "b": {"gen": "new"}, "b2": {"gen": "new"}}
    triad = {(h, TRIAD): [1e9] for h in hosts}
    record(tmp_path, "c1", hosts, {**triad, ("a", IOPS): [2.0], ("a2", IOPS): [2.1], ("b", other): [4.0]})
    record(tmp_path, "c2", hosts, {("b2", other): [4.1]})
    row = row_of(compared(tmp_path), "disk-iops", "fio randread-4k-qd32 read_iops")
    assert row["note"] == "directions clash: higher is better on the baseline, lower is better on the candidate"
    assert (row["ratio"], row["baseline_value"], row["candidate_value"]) == ("", "", "")
    assert "directions clash" in refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--only", "fio/*")
    record(tmp_path, "c3", {"a3": {"gen": "old"}}, {("a3", other): [2.2]})
    note = row_of(compared(tmp_path), "disk-iops", "fio randread-4k-qd32 read_iops")["note"]
    assert note.startswith("units clash: 1/s (higher is better), 1/s (lower is better) on the baseline, 1/s on")


def test_estimates_and_official_results_of_a_host_do_not_mix(tmp_path: Path) -> None:
    hosts, official = {"a": {"gen": "old"}, "b": {"gen": "new"}}, replace(MCF, standing="")
    measured = {("a", official): [10.0], ("a", MCF): [99.0], ("b", official): [20.0]}
    record(tmp_path, "c", hosts, measured)
    row = row_of(compared(tmp_path), "cpu-int")
    assert float(row["ratio"]) == pytest.approx(2) and row["standing"] == ""
    result = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))
    assert "old: 1 figure left out: it has no official result, but the host has one" in result["notes"]
