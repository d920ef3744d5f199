"""``fleetmark diagnose`` over campaigns on record: who is named, with what evidence, and what is said if nothing is."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fleetmark.base.facts import Cpu
from fleetmark.base.terminal import Terminal
from fleetmark.cli.app import app
from fleetmark.planner.diagnosis.finding import Kind
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import Diagnosis, diagnose
from fleetmark.verbs.diagnose import brief
from tests.commands import refused
from tests.fleets import HOSTS, Values, campaign, ring, scaled, usual
from tests.records import IOPS, NULL, TRIAD, row
from tests.schedules import facts


def diagnosed(root: Path, values: Values, **more: Any) -> Diagnosis:
    return diagnose(campaign(root, values, **more))


def test_a_sound_fleet(tmp_path: Path) -> None:
    result = diagnosed(tmp_path, usual())
    assert result.findings == () and result.notes == () and result.healthy
    assert (result.hosts, result.benchmarks, result.judged) == (16, 3, 48)
    text = " ".join(run(tmp_path)[1].split())
    assert f"Smallest losses that are found {result.power[0]}" in text and "--repeats" not in text


def test_single_runs_say_what_they_hide(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    once = {key: [1e9 * float(np.exp(rng.normal(0, 0.03 if key[1] == TRIAD else 0.001)))] for key in usual()}
    result = diagnosed(tmp_path, once)
    assert "stream all-cores triad varies most: " in result.power[0]
    assert result.power[1] == (
        "32 CPUs: with one run per host, one bad run looks like a slow host, and populations without a known cause are "
        "found only if they are large and dense. Measure with --repeats 3."
    )


def test_a_slow_host_is_named_with_its_evidence(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    scaled(values, "n07", NULL, 1.08)  # a latency: higher is worse
    first, second = diagnosed(tmp_path, values).findings
    assert (first.kind, first.host, first.benchmark["metric"], first.n) == (Kind.SLOW, "n03", "triad", 15)
    assert first.deficit == pytest.approx(0.1, abs=0.01) and first.expected == pytest.approx(281e9, rel=0.02)
    assert first.sure and first.z < -5 and first.evidence == ("raw/x",)
    assert (second.host, second.benchmark["metric"]) == ("n07", "null")
    assert second.value > second.expected and second.deficit == pytest.approx(1 - 1 / 1.08, abs=0.01)


def test_evidence_begins_with_the_worst_run(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", NULL, 1.2)
    archive = campaign(tmp_path, values)
    rows = [
        row(
            **{"class": b.class_},
            **{name: getattr(b, name) for name in ("workload", "case", "metric", "unit", "better")},
            host=host,
            repeat=repeat,
            value=value,
            raw=f"raw/{host}/{repeat}",
        )
        for (host, b), each in values.items()
        for repeat, value in enumerate(each)
    ]
    archive.write_measurements(rows)
    (finding,) = diagnose(archive).findings
    assert finding.evidence[0] == f"raw/n03/{int(np.argmax(values['n03', NULL]))}" and len(finding.evidence) == 3


def test_a_heavy_tail_is_named(tmp_path: Path) -> None:
    values = usual(repeats=12)
    for position in (2, 7, 9):
        values["n05", TRIAD][position] *= 0.8
    result = diagnosed(tmp_path, values)
    (finding,) = [f for f in result.findings if f.kind is Kind.TAIL]
    assert finding.host == "n05" and finding.worst > 0.15 and finding.usual < 0.05


def test_hosts_that_share_a_fact_are_the_first_finding(tmp_path: Path) -> None:
    values = usual()
    for host in HOSTS[:6]:
        scaled(values, host, TRIAD, 0.7)
    scaled(values, "n02", TRIAD, 0.8)  # slow even within its group
    archive = campaign(tmp_path, values, labels={host: {"rack": f"r{n % 4}"} for n, host in enumerate(HOSTS)})
    for number, host in enumerate(HOSTS):
        archive.save_facts(host, facts(governor="powersave" if number < 6 else "performance"), {})
    result = diagnose(archive)
    group, single = result.findings
    assert group.kind is Kind.GROUPS and sorted(group.members) == list(HOSTS[:6]) and group.members[0] == "n02"
    assert group.because == (("governor", "powersave", "performance"),) and not result.healthy
    assert group.interval is not None and group.interval[0] < 0.3 < group.interval[1]
    assert (single.kind, single.host, single.deficit) == (Kind.SLOW, "n02", pytest.approx(0.2, abs=0.02))
    status, table = run(tmp_path)
    text = " ".join(table.split())
    assert status == 1 and "6 of 16 hosts are 30% slower and share governor powersave. 1 of 16 hosts slower" in text
    assert "They share governor powersave (others: performance): the clearest of 6 facts and labels" in text


def test_populations_without_a_fact_are_said_and_are_no_pass(tmp_path: Path) -> None:
    values = usual()
    for number, host in enumerate(HOSTS):
        for bench in (TRIAD, IOPS):
            scaled(values, host, bench, (1.0, 1.6, 2.5)[number % 3])
    status, table = run(campaign(tmp_path, values).path.parent)
    text = " ".join(table.split())
    assert status == 1 and "Two populations, unexplained" in text and "3 populations of hosts" in text
    assert "Nothing to do" not in text and "reference (--reference)" in text


@pytest.mark.parametrize(("hosts", "slow"), [(32, 20), (32, 28), (3, 2)])
def test_a_fast_minority_is_no_pass(tmp_path: Path, hosts: int, slow: int) -> None:
    names = tuple(f"n{number:02d}" for number in range(hosts))
    values = usual(names)
    for number, host in enumerate(names[:slow]):
        scaled(values, host, TRIAD, 0.9 if slow == 28 else 0.75 + 0.2 * (number % 20) / 20)
    status, table = run(campaign(tmp_path, values).path.parent)
    assert status == 1
    assert f"Two populations, unexplained: {slow} of {hosts} hosts are" in " ".join(table.split())


def test_a_fact_that_only_slow_hosts_have_is_said(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    archive = campaign(tmp_path, values)
    for host in HOSTS:
        archive.save_facts(host, facts(kernel="6.2" if host == "n03" else "6.1"), {})
    (finding,) = diagnose(archive).findings
    assert finding.because == (("kernel", "6.2", "6.1"),)
    assert "Only slow hosts have kernel 6.2 (others: 6.1)." in " ".join(run(tmp_path)[1].split())


def test_a_rack_is_one_finding(tmp_path: Path) -> None:
    values = usual()
    for host in HOSTS[4:8]:
        scaled(values, host, TRIAD, 0.88)
    racks = {host: {"rack": f"r{n // 4}"} for n, host in enumerate(HOSTS)}
    (finding,) = diagnosed(tmp_path, values, labels=racks).findings
    assert finding.place == "rack r1" and sorted(finding.members) == list(HOSTS[4:8])


def test_one_of_three_hosts_is_judged(tmp_path: Path) -> None:
    values = usual(("a", "b", "c"))
    scaled(values, "c", TRIAD, 0.8)
    result = diagnosed(tmp_path, values)
    (finding,) = result.findings
    assert finding.host == "c" and not finding.sure and not result.healthy
    assert result.notes[0].startswith("Only 3 hosts of 32 CPUs: judged for losses of 10% or more.")
    assert diagnose(Archive.open(result.path), least={"": 0.2}).notes[0].count("losses of 20% or more") == 1
    ignored = diagnose(Archive.open(result.path), least={"mem-bw": 0.03}).notes[1]
    assert ignored == (
        "--least 3% has no effect for 32 CPUs: with fewer than 8 hosts, smaller losses than 10% may be normal variation."
    )


@pytest.mark.parametrize("hosts", [4, 7])
def test_a_small_fleet_of_which_many_hosts_are_slow_is_no_pass(tmp_path: Path, hosts: int) -> None:
    names = [f"n{number}" for number in range(hosts)]
    values = usual(names)
    for host in names[: hosts // 2]:
        scaled(values, host, TRIAD, 0.7)
    status, table = run(campaign(tmp_path, values).path.parent)
    text = " ".join(table.split())
    assert status == 1 and f"Two populations, unexplained: {hosts // 2} of {hosts} hosts are 30% slower." in text
    assert "Nothing to do" not in text and "reference (--reference)" in text


def test_the_least_loss_is_a_setting(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.95)
    campaign(tmp_path, values)
    assert run(tmp_path)[0] == 1
    assert run(tmp_path, "--least", "8%")[0] == 0 and run(tmp_path, "--least", "mem-bw=8%")[0] == 0
    assert run(tmp_path, "--least", "os=8%")[0] == 1
    (rack := tmp_path / "racks").mkdir()
    pairs, labels = ring("n03", ("", "")), {host: {"rack": f"r{n % 2}"} for n, host in enumerate(HOSTS)}
    campaign(rack, pairs, labels=labels)  # n03 loses 20% with all
    assert run(rack)[0] == 1 and run(rack, "--least", "30%")[0] == run(rack, "--least", "net=30%")[0] == 0
    assert "no class 'mem' (did you mean mem-bw?)" in refused(tmp_path, "diagnose", "--least", "mem=8%")
    assert "write a share between 0.5% and 90%" in refused(tmp_path, "diagnose", "--least", "8")


def test_small_cohorts_and_single_hosts_are_not_judged_and_said_so(tmp_path: Path) -> None:
    values = usual(("a", "b", "c"))
    scaled(values, "c", TRIAD, 0.5)
    result = diagnosed(tmp_path, values, labels={"c": {"gen": "new"}})
    assert result.findings == () and result.judged == 0
    pair, single = result.notes
    assert pair.startswith("Only 2 hosts of 32 CPUs: at least 8 are needed")
    assert single == "c is the only one of its kind (new, 32 CPUs), so there are no peers to compare it with."


def test_odd_firmware_is_held_against_its_kind_and_said_so(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    archive = campaign(tmp_path, values)
    for host in HOSTS:
        bios = "1.0" if host == "n03" else "1.1"
        archive.save_facts(host, facts(bios=bios, cpu=Cpu(model="EPYC", sockets=2)), {})
    result = diagnose(archive)
    (finding,) = result.findings
    assert finding.host == "n03" and finding.mixed
    assert {(c.firmware, len(c.hosts), len(c.peers)) for c in result.cohorts} == {
        ("BIOS 1.1", 15, 15),
        ("BIOS 1.0", 1, 16),
    }


def test_missing_and_constant_metrics_are_said(tmp_path: Path) -> None:
    values = usual()
    for host in HOSTS[:8]:
        del values[host, IOPS]
    for host in HOSTS:
        values[host, TRIAD] = [1e9]
    constant, missing = diagnosed(tmp_path, values).notes
    assert constant == ("Equal on every host, so there is nothing to compare: stream all-cores triad.")
    assert missing == (
        "Not measured on 8 of 16 hosts (n00, n01, n02, n03, n04, n05, …), so not judged there: "
        "fio randread-4k-qd32 read_iops."
    )


def test_nodes_and_links(tmp_path: Path) -> None:
    result = diagnosed(tmp_path, ring("n04", ("n10", "n11")))
    (node,) = result.suspects()["n04"]
    (link,) = result.links()
    assert node.kind is Kind.NODE and node.n == 8
    assert (link.host, link.other) == ("n10", "n11") and link.deficit == pytest.approx(0.5, abs=0.03)
    assert not result.healthy and list(result.suspects()) == ["n04"]


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["diagnose", *words, "--results", str(root)], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_every_form_names_the_same(tmp_path: Path) -> None:
    values = usual() | ring("", ("n10", "n11"))
    scaled(values, "n03", TRIAD, 0.9)
    campaign(tmp_path, values)
    status, table = run(tmp_path, "last", "--html", str(tmp_path / "d.html"))
    assert status == 1
    assert "1 of 16 hosts slower than expected: n03." in table and "n10 to n11" in table
    page = (tmp_path / "d.html").read_text("utf-8")
    assert "stream all-cores triad: " in page and "n10 to n11" in page and "raw/x" in page
    _, text = run(tmp_path, "--format", "md")
    assert "### n03" in text and "`raw/x`" in text
    _, document = run(tmp_path, "--format", "json")
    findings = json.loads(document)["findings"]
    assert {(f["kind"], f["host"]) for f in findings} == {("slow", "n03"), ("link", "n10")}
    _, chinese = run(tmp_path, "--lang", "zh-CN")
    assert "16 台主机中有 1 台比预期慢" in chinese


def test_a_healthy_campaign_ends_with_0(tmp_path: Path) -> None:
    campaign(tmp_path, usual())
    status, table = run(tmp_path)
    assert status == 0 and "No host of 16 hosts is slower than its peers." in table


def test_sound_pairs_alone_are_judged_too(tmp_path: Path) -> None:
    campaign(tmp_path, ring("", ("", "")))
    status, table = run(tmp_path)
    assert status == 0 and "No host of 16 hosts is slower than its peers." in table


def test_nobody_judged_is_no_pass(tmp_path: Path) -> None:
    campaign(tmp_path, usual(("a", "b")))
    status, table = run(tmp_path)
    assert status == 1 and "No host could be judged" in table and "fleetmark gate acceptance" in table


@pytest.mark.parametrize(("least", "status", "words"), [
    ("1 GB/s", 0, "Accepted: 2 checks passed"),
    ("900 GB/s", 1, "Not accepted: 2 of 2 checks failed, on a, b."),
])  # fmt: skip
def test_rules_judge_hosts_that_have_no_peers(tmp_path: Path, least: str, status: int, words: str) -> None:
    campaign(tmp_path, usual(("a", "b")))
    rules = tmp_path / "rules.yml"
    rules.write_text(f"description: x\nrules:\n  - {{name: bandwidth, metric: 'stream/*/triad', at_least: {least}}}\n")
    ended, table = run(tmp_path, "last", "--rules", str(rules))
    assert ended == status and words in " ".join(table.split())
    assert ("is below 900 GB/s" in table) == (status == 1)
    ended, document = run(tmp_path, "last", "--rules", str(rules), "--format", "json")
    acceptance = json.loads(document)["acceptance"]
    assert acceptance["accepted"] == (status == 0) and len(acceptance["checks"]) == 2
    _, metrics = run(tmp_path, "last", "--rules", str(rules), "--format", "openmetrics")
    assert f'fleetmark_gate_accepted{{host="a"}} {1 - status}' in metrics and "fleetmark_diagnosis_hosts 2" in metrics


def test_a_slow_host_among_accepted_ones_is_still_found(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    campaign(tmp_path, values)
    rules = tmp_path / "rules.yml"
    rules.write_text("description: x\nrules:\n  - {name: any, metric: 'stream/*/triad', at_least: 1 GB/s}\n")
    status, table = run(tmp_path, "last", "--rules", str(rules))
    assert status == 1 and "n03" in table and "Accepted: 16 checks passed" in table


def test_a_campaign_without_measurements_is_refused(tmp_path: Path) -> None:
    Archive.create(tmp_path, "20260101T000000-x", {"hosts": [{"name": "a"}], "suite": "x", "created": ""})
    assert "no measurements, so no host can be diagnosed" in refused(tmp_path, "diagnose", "last")
    running = Archive(tmp_path / "20260101T000000-x").writable()
    running.note("launched", host="a")
    assert "it is still running, or was interrupted" in refused(tmp_path, "diagnose", "last")
    running.close()


def test_a_run_ends_with_the_suspects_in_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    brief(campaign(tmp_path, values), Terminal())
    lines = capsys.readouterr().out.splitlines()
    assert "1 of 16 hosts slower than expected: n03." in lines[1] and len(lines) < 9
    assert lines[-1] == f"fleetmark diagnose 20260101T000000-x --results {tmp_path}"


def test_the_commands_to_type_next_work_wherever_they_are_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "the results"
    root.mkdir()
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    brief(campaign(root, values), Terminal())
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(capsys.readouterr().out.splitlines()[-1])
    done = CliRunner().invoke(app, [*words, "--format", "json"])
    steps = [shlex.split(step["command"]) for step in json.loads(done.stdout)["next"] if step["command"]]
    assert program == "fleetmark" and [step[1] for step in steps] == ["diagnose", "tune"]
    assert all(step[-2:] == ["--results", str(root)] for step in steps)
    assert CliRunner().invoke(app, steps[1][1:]).exit_code == 0


def test_a_run_whose_hosts_cannot_be_judged_ends_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brief(campaign(tmp_path, usual(("a", "b"))), Terminal())
    assert capsys.readouterr().out == ""


def test_a_slow_border_between_racks_is_one_finding_with_the_command_that_confirms_it(tmp_path: Path) -> None:
    values = ring("", ("", ""))
    racks = {host: {"rack": f"r{n // 4}"} for n, host in enumerate(HOSTS)}
    for host, bench in values:
        if {racks[end]["rack"] for end in bench.subject.split(">")} == {"r1", "r2"}:
            scaled(values, host, bench, 0.85)
    archive = campaign(tmp_path, values, labels=racks)
    (finding,) = diagnose(archive).findings
    assert (finding.kind, finding.place, finding.uplink) == (Kind.BORDER, "rack r1 to r2", False)
    assert finding.deficit == pytest.approx(0.15, abs=0.02) and finding.evidence
    status, table = run(tmp_path)
    text = " ".join(table.split())
    assert (
        status == 1
        and "Slow borders or uplinks: rack r1 to r2." in text
        and "--isolate iperf3/tcp --border rack" in text
        and "--least" not in text
    )


@pytest.mark.parametrize("racks", [2, 3])
def test_a_rack_whose_pairs_are_slow_is_one_finding_and_no_border(tmp_path: Path, racks: int) -> None:
    values = ring("", ("", ""))
    labels = {host: {"rack": f"r{n * racks // len(HOSTS)}"} for n, host in enumerate(HOSTS)}
    for host, bench in values:
        if "r1" in {labels[end]["rack"] for end in bench.subject.split(">")}:
            scaled(values, host, bench, 0.85)
    (finding,) = diagnosed(tmp_path, values, labels=labels).findings
    assert (finding.kind, finding.place) == (Kind.GROUPS, "rack r1")
    assert finding.deficit == pytest.approx(0.15, abs=0.02)
    assert set(finding.members) == {host for host in HOSTS if labels[host]["rack"] == "r1"}


def test_the_command_that_confirms_a_small_border_looks_for_small_losses(tmp_path: Path) -> None:
    values = ring("", ("", ""))
    racks = {host: {"rack": f"r{n // 4}"} for n, host in enumerate(HOSTS)}
    for host, bench in values:
        if {racks[end]["rack"] for end in bench.subject.split(">")} == {"r1", "r2"}:
            scaled(values, host, bench, 0.93)
    campaign(tmp_path, values, labels=racks)
    assert "--isolate iperf3/tcp --border rack --least" in " ".join(run(tmp_path)[1].split())
