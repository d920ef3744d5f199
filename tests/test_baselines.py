"""What became slower since a baseline: one host, all of them; and what cannot be compared is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.planner.diagnosis import changes
from fleetmark.planner.diagnosis.finding import Kind
from fleetmark.record.diagnosis import Diagnosis, baselines, diagnose
from tests.commands import refused, run
from tests.fleets import HOSTS, Values, campaign, older_baseline, scaled, usual
from tests.records import IOPS, TRIAD, Bench

FEW = HOSTS[:4]


def compared(root: Path, then: Values, now: Values) -> Diagnosis:
    campaign(root, then, name="20260101T000000-then")
    run(root, "reference", "save", "b", "--from", "last")
    return diagnose(campaign(root, now, name="20260201T000000-now"), against=baselines.load(root, "b"))


def test_a_host_that_lost_is_named_in_a_fleet_too_small_for_peers(tmp_path: Path) -> None:
    now = usual(FEW, seed=2)
    scaled(now, "n02", TRIAD, 0.92)
    result = compared(tmp_path, usual(FEW), now)
    (finding,) = result.findings
    assert (finding.kind, finding.host, finding.members, finding.cohort) == (Kind.REGRESSION, "n02", (), "b@1")
    assert finding.deficit == pytest.approx(0.08, abs=0.02) and finding.evidence == ("raw/x",)
    assert not result.healthy and result.judged == 24


def test_what_all_hosts_lost_is_one_finding(tmp_path: Path) -> None:
    now = usual(seed=2)
    for host in HOSTS:
        scaled(now, host, IOPS, 0.85)
    result = compared(tmp_path, usual(), now)
    (finding,) = result.findings
    assert finding.host == "" and len(finding.members) == 16 and finding.deficit == pytest.approx(0.15, abs=0.02)
    assert result.everywhere() == [finding] and result.suspects() == {}


def test_no_change_is_no_finding(tmp_path: Path) -> None:
    for seed in range(2, 6):
        result = compared(tmp_path / str(seed), usual(FEW), usual(FEW, seed=seed))
        assert result.findings == ()


def test_a_baseline_of_other_benchmarks_is_no_pass(tmp_path: Path) -> None:
    then = {(h, Bench("w", "c", "m", "1", "higher", "x")): [1.0, 1.0, 1.0] for h in HOSTS}
    result = compared(tmp_path, then, usual())
    assert result.judged == 48 and not result.findings and not result.healthy
    assert "No result could be compared with the reference b@1." in map(str, result.notes)


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    other = Bench("stream", "all-cores", "triad", "1", "higher", "mem-bw")
    then = {(h, b if b is not TRIAD else other): v for (h, b), v in usual(FEW[:3]).items()}
    now = usual(FEW)
    now |= {(h, Bench("w", "c", "m", "1", "higher", "x")): [1.0, 1.0, 1.0] for h in FEW}
    for host in FEW:
        now[host, IOPS] = now[host, IOPS][:2]
    notes = compared(tmp_path, then, now).notes
    assert notes[1:] == (
        "Not in the reference b@1: 1 host (n03).",
        "fio randread-4k-qd32 read_iops: fewer than 3 repeats then or now on 3 hosts, so a change may be chance.",
        "stream all-cores triad is in B/s here and in 1 in the reference b@1: not compared.",
        "The reference b@1 lacks w c m.",
    )


def test_the_command_line(tmp_path: Path) -> None:
    campaign(tmp_path, usual(FEW), name="20260101T000000-then")
    saved = run(tmp_path, "reference", "save", "b", "--from", "last")
    assert saved.startswith("saved b@1: 3 benchmarks of 4 hosts (campaign=20260101T000000-then)")
    assert f"fleetmark diagnose --reference b --results {tmp_path}" in saved
    (listed,) = json.loads(run(tmp_path, "reference", "list", "--format", "json"))
    assert (listed["hosts"], listed["compare"], listed["diagnose"]) == (4, True, True)
    assert "compare," in run(tmp_path, "reference", "list")
    assert "not enough" not in run(tmp_path, "diagnose", "last", "--reference", "b")
    assert "no reference 'c'" in refused(tmp_path, "diagnose", "last", "--reference", "c")
    assert "use letters" in refused(tmp_path, "reference", "save", "../b")


def test_one_saved_reference_serves_compare_and_diagnose(tmp_path: Path) -> None:
    values = usual(FEW)
    campaign(tmp_path, values, name="20260101T000000-then")
    run(tmp_path, "reference", "save", "b")
    scaled(values, "n02", TRIAD, 0.9)
    campaign(tmp_path, values, name="20260201T000000-now")
    compared = json.loads(
        run(tmp_path, "compare", "-c", "campaign=20260201T000000-now", "--reference", "b", "--format", "json")
    )
    assert compared["baseline"] == "b@1"
    done = CliRunner().invoke(app, ["diagnose", "last", "--reference", "b", "--results", str(tmp_path)])
    assert done.exit_code == 1 and "worse than in b@1" in " ".join(done.stdout.split())


def test_baselines_of_earlier_versions_are_read(tmp_path: Path) -> None:
    campaign(tmp_path, usual(FEW), name="20260101T000000-then")
    older_baseline(tmp_path, "b")
    assert baselines.load(tmp_path, "b").hosts == FEW
    assert "fleetmark reference save b --from last" in refused(
        tmp_path, "compare", "-c", "campaign=*", "--reference", "b"
    )
    run(tmp_path, "reference", "save", "b")  # the next version, so a name means one thing
    listed = json.loads(run(tmp_path, "reference", "list", "--format", "json"))
    assert [(r["version"], r["compare"], r["diagnose"]) for r in listed] == [(1, False, True), (2, True, True)]
    assert [baselines.load(tmp_path, name).version for name in ("b", "b@1", "b@2")] == [2, 1, 2]


def test_published_figures_cannot_be_held_against_hosts(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("machine,benchmark,value,unit,better\nx,triad,1e11,B/s,higher\n")
    run(tmp_path, "import", "table", str(table))
    run(tmp_path, "reference", "save", "vendor", "--from", "host=x")
    campaign(tmp_path, usual(FEW))
    assert "has no runs of single hosts" in refused(tmp_path, "diagnose", "last", "--reference", "vendor")


def test_a_reference_of_another_schema_or_damaged_is_refused(tmp_path: Path) -> None:
    campaign(tmp_path, usual(FEW))
    path = older_baseline(tmp_path, "b")
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"schema": 99}))
    with pytest.raises(FleetmarkError, match="schema 99 is not supported by this version of Fleetmark"):
        baselines.load(tmp_path, "b")
    path.write_text(json.dumps(document | {"values": [[1.0]]}))
    with pytest.raises(FleetmarkError, match="damaged"):
        baselines.load(tmp_path, "b")


def test_changes_within_what_repeats_vary_are_none() -> None:
    rng = np.random.default_rng(1)
    runs = np.full(200, 3.0)
    spread = np.full(200, 0.02)
    before = changes.Runs(rng.normal(0, 0.02 / 3**0.5, 200), spread, runs)
    after = changes.Runs(rng.normal(0, 0.02 / 3**0.5, 200), spread, runs)
    assert changes.judge(before, after, 0.03).columns == ()
    after.values[7] -= 0.15
    judged = changes.judge(before, after, 0.03)
    assert judged.columns == (7,) and not judged.everywhere and judged.compared == 200


def test_a_reference_of_a_generation(tmp_path: Path) -> None:
    values = usual(("a", "b"), repeats=3)
    campaign(tmp_path, values, labels={"a": {"gen": "old"}, "b": {"gen": "old"}})
    run(tmp_path, "reference", "save", "old", "--from", "gen=old")
    saved = baselines.load(tmp_path, "old")
    assert saved.hosts == ("a", "b") and saved.campaign == "gen=old" and saved.runs.min() == 3
    scaled(values, "b", TRIAD, 0.8)
    archive = campaign(tmp_path, values, name="20260201T000000-x")
    shutil.rmtree(tmp_path / "20260101T000000-x")  # the reference holds what it needs
    slower = [f for f in diagnose(archive, against=saved).findings if f.kind is Kind.REGRESSION]
    assert [(f.host, f.benchmark["metric"]) for f in slower] == [("b", "triad")]
