"""Suspects measured again: what is scheduled on whom, and what the repeats say of each finding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from fleetmark.campaign.schedule import make_schedule
from fleetmark.cli.app import app
from fleetmark.hosts.inventory import Host
from fleetmark.planner.diagnosis.confirm import Verdict, settle, settle_tail
from fleetmark.planner.diagnosis.finding import Kind
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import diagnose
from fleetmark.record.diagnosis.reruns import FOLDER, Rerun, rerun, settled, unfinished
from fleetmark.workloads import Suite
from tests.commands import refused
from tests.fleets import Values, campaign, ring, scaled, usual
from tests.records import IOPS, TRIAD
from tests.schedules import facts

AGAIN = "20260102T000000-confirm"


def again_of(archive: Archive) -> Rerun:
    return rerun(archive, diagnose(archive))


def confirmed(archive: Archive, values: Values) -> Archive:
    (archive.path / FOLDER).mkdir()
    return campaign(archive.path / FOLDER, values, name=AGAIN)


def test_a_suspects_failing_case_runs_again_beside_ordinary_peers(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    scaled(values, "n07", IOPS, 0.8)
    again = again_of(campaign(tmp_path, values))
    of_stream = again.suite["workloads"]["stream"]["hosts"]["all-cores"]
    assert of_stream[0] == ["n03"] and ["n07"] not in of_stream and len(of_stream) == 5
    assert again.suite["workloads"]["fio"]["hosts"]["randread-4k-qd32"][0] == ["n07"]
    assert set(again.suite["workloads"]) == {"stream", "fio"} and {"n03", "n07"} <= set(again.hosts)
    assert len(again.hosts) == 6 and again.suite["workloads"]["stream"]["repeats"] == 5


def test_a_link_runs_again_with_both_ends_and_others(tmp_path: Path) -> None:
    again = again_of(campaign(tmp_path, ring("n04", ("n10", "n11"))))
    pairs = again.suite["workloads"]["iperf3"]["hosts"]["tcp"]
    assert ["n10", "n11"] in pairs and not any({"n04"} < set(p) and {"n10", "n11"} & set(p) for p in pairs)
    assert sum("n04" in p for p in pairs) == 4 and len(pairs) == len({frozenset(p) for p in pairs})


def test_only_the_named_hosts_get_the_case() -> None:
    suite = Suite.model_validate(
        {
            "name": "x",
            "description": "",
            "repeats": 2,
            "workloads": {
                "iperf3": {"cases": ["tcp-1"], "hosts": {"tcp-1": [["a", "c"], ["b"]]}},
                "selftest": {"cases": ["uptime-2"], "hosts": {"uptime-2": [["b"]]}},
            },
        }
    )
    hosts = [(Host(n, n, n), facts(tools={"iperf3": "/usr/bin/iperf3"})) for n in "abc"]
    schedule = make_schedule(hosts, suite, {}, campaign="x", seed=1, repeats=None)
    run = {n: sorted({(s.case, s.subject) for s in h.steps}) for n, h in schedule.hosts.items()}
    assert run == {
        "a": [("tcp-1", "a>c"), ("tcp-1", "c>a")],
        "b": [("tcp-1", "lo"), ("uptime-2", "host")],
        "c": [("tcp-1", "a>c"), ("tcp-1", "c>a")],
    }


def test_the_repeat_settles_each_finding(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    scaled(values, "n07", TRIAD, 0.9)
    archive = campaign(tmp_path, values)
    repeat = usual(("n03", "n07", "n00", "n01", "n02", "n04"), seed=9)
    scaled(repeat, "n03", TRIAD, 0.9)
    confirmed(archive, repeat)
    result = settled(archive, diagnose(archive))
    by_host = {f.host: f.settled for f in result.findings}
    assert by_host["n03"] and by_host["n03"].verdict is Verdict.CONFIRMED
    assert by_host["n03"].deficit == pytest.approx(0.1, abs=0.02) and by_host["n03"].n == 4
    assert by_host["n07"] and by_host["n07"].verdict is Verdict.CLEARED
    assert list(result.suspects()) == ["n03"] and not result.healthy
    done = CliRunner().invoke(app, ["diagnose", "--results", str(tmp_path), "--format", "json"])
    assert done.exit_code == 1
    verdicts = {f["host"]: f["settled"]["verdict"] for f in json.loads(done.stdout)["findings"]}
    assert verdicts == {"n03": "confirmed", "n07": "cleared"}


def test_a_cleared_campaign_is_healthy_and_every_form_says_so(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    archive = campaign(tmp_path, values)
    confirmed(archive, usual(("n03", "n00", "n01", "n02", "n04"), seed=9))
    page = tmp_path / "d.html"
    done = CliRunner().invoke(app, ["diagnose", "--results", str(tmp_path), "--html", str(page)])
    assert done.exit_code == 0 and "a repeat cleared what was suspect" in done.stdout
    assert "Cleared by a repeat" in done.stdout and "Cleared by a repeat" in page.read_text("utf-8")
    done = CliRunner().invoke(app, ["diagnose", "--results", str(tmp_path), "--format", "md", "--lang", "zh-CN"])
    assert "经重测排除" in done.stdout


def test_nodes_and_links_are_settled_by_pairs(tmp_path: Path) -> None:
    archive = campaign(tmp_path, ring("n04", ("n10", "n11")))
    pairs = {frozenset(p) for p in again_of(archive).suite["workloads"]["iperf3"]["hosts"]["tcp"]}
    rng = np.random.default_rng(4)
    (bench,) = {b for (_, b) in ring("", ("", "")) if b.subject == "n00>n01"}
    repeat = {}
    for pair in pairs:
        a, b = sorted(pair)
        factor = 0.8 if "n04" in pair else 1.0
        pair_bench = type(bench)(
            **{**{n: getattr(bench, n) for n in bench.__dataclass_fields__}, "subject": f"{a}>{b}"}
        )
        repeat[a, pair_bench] = list(1e9 * factor * np.exp(rng.normal(0, 0.01, 5)))
        repeat.setdefault((b, TRIAD), [1e9])  # a host of pairs alone is on record too
    confirmed(archive, repeat)
    by_kind = {f.kind: f.settled for f in settled(archive, diagnose(archive)).findings}
    node, link = by_kind[Kind.NODE], by_kind[Kind.LINK]
    assert node and node.verdict is Verdict.CONFIRMED and link and link.verdict is Verdict.CLEARED


def test_an_interrupted_confirmation_goes_on(tmp_path: Path) -> None:
    archive = campaign(tmp_path, usual())
    assert unfinished(archive) is None
    begun = confirmed(archive, usual(("n00",))).writable()
    begun.note("ended", owed=3)
    assert (left := unfinished(archive)) and left.id == AGAIN
    begun.note("ended", owed=0)
    begun.close()
    assert unfinished(archive) is None


def test_nothing_to_confirm_is_no_error(tmp_path: Path) -> None:
    campaign(tmp_path, usual())
    done = CliRunner().invoke(app, ["diagnose", "--confirm", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and "no host or link is suspect, so there is nothing to confirm" in done.stdout
    assert "No host of 16 hosts is slower than its peers." in done.stdout


def test_bad_requests(tmp_path: Path) -> None:
    campaign(tmp_path, usual())
    assert "--inventory without --confirm" in refused(tmp_path, "diagnose", "-i", "x,")
    with pytest.raises(ValueError, match="no healthy value"):
        settle(0.0, np.array([]), 0.01, 0.03, 5)


def test_what_is_neither_is_left_open() -> None:
    sound = np.zeros(4)
    assert settle(-0.03, sound, 0.01, 0.03, 5).verdict is Verdict.OPEN
    assert settle(-0.20, sound, 0.01, 0.03, 5).verdict is Verdict.CONFIRMED
    assert settle(0.0, sound, 0.01, 0.03, 5).verdict is Verdict.CLEARED
    assert settle(0.0, sound, 0.10, 0.03, 5).verdict is Verdict.OPEN


def test_a_tail_needs_twice_the_runs_to_be_cleared() -> None:
    rng = np.random.default_rng(1)
    sound = rng.normal(0, 0.01, (4, 20))
    heavy = rng.normal(0, 0.01, 20)
    heavy[:4] -= 0.3
    seen = settle_tail(heavy, sound, 10)
    assert seen and seen.verdict is Verdict.CONFIRMED and seen.high > 0.2
    calm = rng.normal(0, 0.01, 20)
    for before, verdict in ((10, Verdict.CLEARED), (20, Verdict.OPEN)):
        seen = settle_tail(calm, sound, before)
        assert seen and seen.verdict is verdict
    assert settle_tail(calm[:3], sound, 10) is None


def test_the_suite_of_a_repeat_is_a_suite(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    archive = campaign(tmp_path, values)
    archive.save_campaign({**archive.campaign(), "suite_as_read": {"workloads": {"stream": {"in_container": "x"}}}})
    again = again_of(archive)
    suite = Suite.model_validate(yaml.safe_load(yaml.safe_dump(again.suite)))
    assert suite.chosen()["stream"].in_container == "x"
    assert suite.chosen()["stream"].is_for("all-cores", "n03") and not suite.chosen()["stream"].is_for("all-cores", "x")
