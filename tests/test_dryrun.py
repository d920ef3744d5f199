"""Test the dry run: its cases match the run; also its times, its requirements, and the plan as a document."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleetmark.base.facts import Nic
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare.dryrun import MANIFEST, RECORD, DryRun, plan
from fleetmark.campaign.prepare.makespan import GAP_S, MEETING_S, START_S, finish_times
from fleetmark.campaign.prepare.past import Past, kind_of, read
from fleetmark.campaign.schedule import make_schedule
from fleetmark.campaign.turns import Turns
from fleetmark.cli.app import app
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.record.steps import Exchange, HostSchedule, Step
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.language import Language, language
from fleetmark.reports.testplan import document
from fleetmark.workloads import load_suite
from tests.commands import refused
from tests.records import TRIAD, record
from tests.schedules import facts, suite


def step(id_: str, seconds: float, **more: Any) -> Step:
    usual = {"workload": "w", "case": "c", "repeat": 0, "argv": (), "env": {}, "timeout_s": 60.0}
    return Step(id=id_, expect_s=seconds, **{**usual, **more})


def ends(
    hosts: dict[str, list[Step]], exchanges: tuple[Exchange, ...] = (), turns: Turns | None = None
) -> dict[str, float]:
    """Return the finish time of each host without the constant overheads."""
    schedules = {name: HostSchedule(host=name, steps=steps) for name, steps in hosts.items()}
    return finish_times(schedules, exchanges, lambda _, s: s.expect_s, turns or Turns())


# --- durations --------------------------------------------------------------------------------------------------------


def test_hosts_work_side_by_side() -> None:
    assert ends({"a": [step("0", 5), step("1", 7)], "b": [step("0", 3)]}) == {
        "a": pytest.approx(START_S + 12 + 2 * GAP_S),
        "b": pytest.approx(START_S + 3 + GAP_S),
    }


def test_partners_wait_for_each_other() -> None:
    hosts = {"a": [step("0", 10), step("1", 4)], "b": [step("0", 1), step("1", 4, serves=True), step("2", 2)]}
    met = START_S + 10 + 2 * GAP_S + MEETING_S + 4
    assert ends(hosts, (Exchange("b", "1", "a", "1"),)) == {
        "a": pytest.approx(met),
        "b": pytest.approx(met + 2 + GAP_S),
    }


def test_a_group_begins_when_all_of_it_are_there() -> None:
    hosts = {
        "a": [step("0", 6)],
        "b": [step("0", 9), step("1", 6, serves=True)],
        "c": [step("0", 6, serves=True), step("1", 1)],
    }
    gang = (Exchange("b", "1", "a", "0"), Exchange("c", "0", "a", "0"))
    met = START_S + 9 + 2 * GAP_S + MEETING_S + 6
    assert ends(hosts, gang) == {n: pytest.approx(met + (1 + GAP_S if n == "c" else 0)) for n in hosts}


def test_hosts_that_take_turns_begin_one_after_another() -> None:
    start = START_S + GAP_S
    hosts = {"a": [step("0", 10)], "b": [step("0", 4)], "c": [step("0", 3)]}
    two = ends(hosts, turns=Turns(limit=2))
    assert two == {"a": pytest.approx(start + 10), "b": pytest.approx(start + 4), "c": pytest.approx(2 * start + 7)}
    racks = Turns(of_label={"rack": 1}, labels={"a": {"rack": "1"}, "b": {"rack": "1"}, "c": {"rack": "2"}})
    assert ends(hosts, turns=racks) == {
        "a": pytest.approx(start + 10),
        "b": pytest.approx(2 * start + 14),
        "c": pytest.approx(start + 3),
    }


def test_no_schedule_of_ours_is_left_unfinished(tmp_path: Path) -> None:
    text = suite(tmp_path, "  stream:\n  iperf3: {set: {pairs: all}}\n")
    hosts = [(Host(f"h{n}", f"h{n}", f"h{n}"), facts()) for n in range(7)]
    made_of = make_schedule(hosts, load_suite(text), {}, campaign="c", seed=3, repeats=2)
    begun: list[tuple[str, str]] = []

    def seconds(host: str, planned_step: Step) -> float:
        begun.append((host, planned_step.id))
        return 1.0

    finish_times(made_of.hosts, made_of.exchanges, seconds, Turns())
    measuring = [(h, s.id) for h, host_plan in made_of.hosts.items() for s in host_plan.steps if not s.serves]
    assert sorted(begun) == sorted(measuring)


# --- estimates from earlier runs --------------------------------------------------------------------------------------


def test_times_and_spreads_come_from_hosts_of_the_same_kind(tmp_path: Path) -> None:
    archive = record(tmp_path, "20260101T000000-x", {"h1": {}, "h2": {}}, {("h1", TRIAD): [90e9, 100e9, 110e9]})
    known_facts, stream_step = archive.facts_of("h1"), step("00000", 4.4, workload="stream", case="all-cores")
    assert known_facts
    job = {"host": "h1", "steps": [stream_step.as_json()], "deploy": [], "skipped": {}}
    archive.writable().save_job("h1", json.dumps(job))
    run = {"host": "h1", "workload": "stream", "case": "all-cores", "subject": "host", "repeat": 0}
    archive.note("outcome", **run, status="passed", reason="", started="2026-01-01T00:00:00Z", wall_s=1.5)
    archive.close()
    (tmp_path / "20260102T000000-broken").mkdir()
    (tmp_path / "20260102T000000-broken" / "campaign.json").write_text("{")
    other = facts(product="another")
    past = read(tmp_path, {"h1": known_facts, "new": known_facts, "other": other})
    kind, key = kind_of(known_facts), ("stream", "all-cores", 4.4)
    assert past.seconds("h1", kind, key) == past.seconds("new", kind, key) == 1.5
    assert past.seconds("other", kind_of(other), key) is None
    assert past.seconds("h1", kind, ("stream", "all-cores", 9.9)) is None, "runs with other settings give no estimate"
    assert past.spread(kind, "stream", "all-cores") == pytest.approx(0.1)


def planned(tmp_path: Path, text: str, past: Past | None = None, hosts: int = 1, **options: Any) -> DryRun:
    chosen = Options(suite=suite(tmp_path, text), **options)
    named = [Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}") for n in range(1, hosts + 1)]
    host_facts = facts(nics=(Nic(name="eth0", speed=1.25e9),))
    checked = [Checked(host=host, reach=None, facts=host_facts, raw={}) for host in named]
    schedule = make_schedule(
        [(h, host_facts) for h in named],
        load_suite(chosen.suite),
        {},
        campaign="dry-run",
        seed=1,
        repeats=chosen.rounds,
    )
    return plan(chosen, load_suite(chosen.suite), checked, schedule, past or Past(), 1)


def test_the_manifest_stands_in_for_the_record(tmp_path: Path) -> None:
    (host,) = planned(tmp_path, "  stream:\n").hosts
    (case,) = host.cases
    assert (case.repeats, case.runs, case.source) == (2, 2, MANIFEST)
    assert host.seconds == pytest.approx(START_S + 2 * (case.seconds + GAP_S))
    # With two repeats and the manifest's 3%, the half-width of the mean is 27%: t with one degree of freedom is 12.706.
    assert case.half_width == pytest.approx(12.706 * 0.03 / 2**0.5, rel=1e-4)
    assert case.spread_source == MANIFEST


def test_the_record_comes_before_the_manifest(tmp_path: Path) -> None:
    (expected,) = planned(tmp_path, "  stream:\n").hosts[0].cases
    kind = planned(tmp_path, "  stream:\n").hosts[0].kind
    key = (kind, "stream", "all-cores")
    past = Past({"h1": {("stream", "all-cores", expected.seconds): [1.0, 3.0]}}, {}, {key: {"triad": [0.03, 0.04]}})
    (host,) = planned(tmp_path, "  stream:\n", past, repeats=5).hosts
    (case,) = host.cases
    assert (case.seconds, case.source) == (2.0, RECORD)
    assert case.half_width == pytest.approx(2.7764 * (0.0025 / 2) ** 0.5 / 5**0.5, rel=1e-4)


def test_what_is_used_and_installed_is_listed(tmp_path: Path) -> None:
    dry = planned(
        tmp_path, "  fio: {set: {size: 2GiB}}\n  iperf3: {set: {duration: 3, omit: 0, streams: 1}}\n  mlc:\n", hosts=2
    )
    first = dry.hosts[0]
    assert first.disk == 2 << 30
    runs = sum(case.runs for case in first.cases if case.workload == "iperf3")
    lasts = next(case.seconds for case in first.cases if case.workload == "iperf3")
    assert first.network_s == pytest.approx(2 * runs * lasts), "each host is client and server equally often"
    assert first.network == pytest.approx(1.25e9 * first.network_s)
    assert first.skipped and first.skipped["mlc"].startswith("needs mlc.tarball")
    assert not [i for i in first.installs if i.workload in ("fio", "iperf3")], "both tools are already on the host"
    (host,) = planned(tmp_path, "  redis_benchmark:\n  stream:\n").hosts
    assert {i.workload: i.packages for i in host.installs} == {
        "redis_benchmark": ("redis-server",),
        "stream": ("gcc", "libc6-dev"),
    }
    (host,) = planned(tmp_path, "  redis_benchmark: {set: {path: /opt/redis}}\n").hosts
    assert [i.packages for i in host.installs] == [()], "nothing is installed if the user names the programs"


def test_with_until_ci_there_is_a_least_and_a_most(tmp_path: Path) -> None:
    dry = planned(tmp_path, "  stream:\n", until=Until(0.02, 6, 50))
    (case,) = dry.hosts[0].cases
    assert case.repeats == 50 and case.half_width == 0.02
    assert dry.seconds_least == pytest.approx(START_S + 6 * (case.seconds + GAP_S))
    assert dry.seconds == pytest.approx(START_S + 50 * (case.seconds + GAP_S))
    assert "It takes" in markdown.render(document.document(dry, "2026-01-01T00:00:00Z"), Language())


# --- documents --------------------------------------------------------------------------------------------------------


def test_a_plan_says_the_same_in_every_format(tmp_path: Path) -> None:
    dry = planned(tmp_path, "  stream:\n  fio:\n  mlc:\n  nccl_tests: {where: has_nvidia}\n", hosts=3)
    written = markdown.render(document.document(dry, "2026-01-01T00:00:00Z"), Language())
    page = html.render(document.document(dry, "2026-01-01T00:00:00Z"), Language())
    for heading in (
        "Machines",
        "Workloads",
        "Repeats and stop rules",
        "Skipped",
        "Matrix",
        "Resources",
    ):
        assert f"## {heading}" in written and f">{heading}</h2>" in page
    for case in {case.case for host in dry.hosts for case in host.cases}:
        assert case in written and case in page
    assert "needs mlc.tarball" in written and "needs mlc.tarball" in page
    assert "| nccl_tests | h1, h2, h3 | has_nvidia |" in written.replace("\\_", "_")
    assert "测试计划" in markdown.render(document.document(dry, "2026-01-01T00:00:00Z"), language("zh-CN"))
    listed = document.as_json(dry)
    assert [host["seconds"] for host in listed["hosts"]] == [host.seconds for host in dry.hosts]


def test_hosts_that_differ_stand_apart_and_silent_ones_are_named(tmp_path: Path) -> None:
    text = suite(tmp_path, "  stream:\n")
    host_facts = [facts(), facts(product="another"), facts()]
    named = [Host(f"h{n}", f"h{n}", f"h{n}") for n in range(3)]
    checked = [Checked(host=h, reach=None, facts=f, raw={}) for h, f in zip(named, host_facts, strict=True)]
    gone = Checked(host=Host("gone", "gone", "gone"), reach=None, facts=None, raw=None, reason="no route")
    schedule = make_schedule(
        list(zip(named, host_facts, strict=True)), load_suite(text), {}, campaign="x", seed=1, repeats=None
    )
    dry = plan(Options(suite=text), load_suite(text), [*checked, gone], schedule, Past(), 1)
    written = markdown.render(document.document(dry, "2026-01-01T00:00:00Z"), Language())
    assert "| 1 | h0, h2 | 2 |" in written and "| 2 | h1 | 1 |" in written
    assert "gone does not answer: no route" in written


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.job
def test_every_case_of_a_dry_run_then_runs_and_none_more(tmp_path: Path) -> None:
    text = "description: x\nrepeats: 2\nworkloads:\n  selftest: {set: {commands: 2}}\n  selftest@three: {set: {commands: 3}}\n"
    (tmp_path / "mine.yml").write_text(f"{text}  mlc: {{where: is_root}}\n  nccl_tests: {{where: has_nvidia}}\n")
    words = ["run", "--suite", str(tmp_path / "mine.yml"), "--seed", "5", "--results", str(tmp_path / "kept")]
    before = CliRunner().invoke(app, [*words, "--dry-run", "--format", "json"], catch_exceptions=False)
    assert before.exit_code == 0, before.output
    assert not (tmp_path / "kept").exists(), "a dry run creates no campaign"
    (host,) = json.loads(before.stdout)["hosts"]
    done = CliRunner().invoke(app, [*words, "--format", "json"], catch_exceptions=False)
    (campaign,) = (tmp_path / "kept").glob("*/journal.jsonl")
    events = [json.loads(line) for line in campaign.read_text().splitlines()]
    ran = Counter((e["workload"], e["case"]) for e in events if e["e"] == "outcome" and e["status"] == "passed")
    assert ran == {(case["workload"], case["case"]): case["runs"] for case in host["cases"]}, done.output
    assert sum(ran.values()) == 10
    skipped = {e["workload"]: e["reason"] for e in events if e["e"] == "outcome" and e["status"] == "skipped"}
    assert skipped == host["skipped"]
    assert host["unmet"].keys() <= {"mlc", "nccl_tests"}
    after = CliRunner().invoke(app, [*words, "--dry-run", "--format", "json"], catch_exceptions=False)
    assert {case["source"] for case in json.loads(after.stdout)["hosts"][0]["cases"]} == {RECORD}


@pytest.mark.job
def test_a_plan_is_written_by_its_name(tmp_path: Path) -> None:
    words = ["run", "--suite", "selftest", "--results", str(tmp_path / "kept"), "--dry-run"]
    for name, begins in (("plan.md", b"# Test plan"), ("plan.pdf", b"%PDF"), ("plan.html", b"<!DOCTYPE html>")):
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / name)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes().lower().startswith(begins.lower())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--plan", "plan.md"], "run --plan is called -o now"),
        (
            ["--dry-run", "-o", "plan.docx"],
            "--output plan.docx: unknown document type; use the extension .html, .pdf, .xlsx, .md, .json, .csv",
        ),
        (["--dry-run", "-o", "none/plan.md"], "--output none/plan.md: there is no folder none"),
        (["--dry-run", "--resume", "last"], "--dry-run with --resume"),
        (["--dry-run", "--slurm"], "--dry-run with --slurm: nodes answer only within a job"),
        (["--format", "md"], "--format md without --dry-run"),
    ],
)
def test_bad_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(tmp_path, "run", *words)


@pytest.mark.parametrize("more", [["--dry-run"], []])
def test_a_suite_that_selects_nothing_leaves_nothing(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "mine.yml").write_text("description: x\nwhere: facts.cpu.threads > 1000000\nworkloads:\n  selftest:\n")
    sentence = refused(tmp_path / "kept", "run", "--suite", str(tmp_path / "mine.yml"), *more)
    assert sentence.startswith("suite mine: no host meets its conditions (facts.cpu.threads > 1000000); choose")
    assert not list((tmp_path / "kept").glob("*/campaign.json"))
