"""Test acceptance rules: their meaning, that missing data does not pass, and that all formats agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Dimm
from fleetmark.base.units import parse_quantity
from fleetmark.cli.app import app
from fleetmark.planner.diagnosis.gate import CheckVerdict, Result, Severity
from fleetmark.record.diagnosis.gate import hold, read_rules
from fleetmark.reports.diagnosis import gate
from fleetmark.reports.diagnosis.gate import verdict_text
from tests.fleets import campaign, scaled, usual
from tests.records import IOPS, NULL, TRIAD
from tests.schedules import facts


def rules(folder: Path, *listed: dict[str, Any]) -> Path:
    path = folder / "rules.yml"
    path.write_text(yaml.safe_dump({"description": "x", "rules": [*listed]}))
    return path


BANDWIDTH = {"name": "bandwidth", "metric": "stream/*/triad", "at_least": "250 GB/s"}


def verdicts(folder: Path, values: Any, *listed: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    archive = campaign(folder, values)
    acceptance = hold(archive, read_rules(rules(folder, *listed)), "rules.yml")
    return {
        (r.host, r.rule, r.benchmark): str(r.verdict)
        for r in acceptance.results
        if r.verdict is not CheckVerdict.PASSED
    }


def test_bounds_shares_and_peers(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    scaled(values, "n05", NULL, 1.2)
    broken = verdicts(
        tmp_path,
        values,
        BANDWIDTH,
        {"name": "share", "metric": "stream/*/triad", "at_least": "90%", "reference": "281 GB/s"},
        {"name": "latency", "metric": "lmbench/*/null", "at_most": "100 ns"},
        {"name": "peers", "metric": "*/*/*", "within": "10%"},
        {"name": "fast", "metric": "fio/*/read_iops", "at_most": "200%", "reference": "cohort"},
    )
    triad, null = "stream all-cores triad", "lmbench lat_syscall-null null"
    assert broken == {
        ("n03", "bandwidth", triad): "failed",
        ("n03", "share", triad): "failed",
        ("n03", "peers", triad): "failed",
        ("n05", "latency", null): "failed",
        ("n05", "peers", null): "failed",
    }


def test_what_a_rule_says_of_many_hosts_stands_once(tmp_path: Path) -> None:
    campaign(tmp_path, usual())
    path = rules(tmp_path, {"name": "ghost", "metric": "nothing/*/*", "at_least": 1})
    done = CliRunner().invoke(app, ["gate", str(path), "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 1 and done.stdout.count("nothing/*/*: not measured") == 1
    assert "16 hosts: n00, n01, n02, n03, …" in " ".join(done.stdout.split())


def test_a_rule_that_nearly_names_a_benchmark_says_which(tmp_path: Path) -> None:
    rule = rules(tmp_path, {"name": "ghost", "metric": "stram/all-cores/triad", "at_least": "1 B/s"})
    results = hold(campaign(tmp_path, usual()), read_rules(rule), "rules.yml").results
    assert {verdict_text(r) for r in results} == {"not measured (did you mean stream/all-cores/triad?)"}


def test_what_is_broken_names_its_worst_run(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    acceptance = hold(campaign(tmp_path, values), read_rules(rules(tmp_path, BANDWIDTH)), "rules.yml")
    assert {(r.host, r.evidence) for r in acceptance.results if r.evidence} == {("n03", "raw/x")}
    checks = gate.as_json(acceptance)["checks"]
    assert [c["evidence"] for c in checks if c["evidence"]] == ["raw/x"]
    assert ">raw/x</failure>" in gate.junit(acceptance)


def test_missing_data_is_no_pass(tmp_path: Path) -> None:
    values = usual(repeats=3)
    del values["n02", TRIAD]
    values["n04", IOPS] = values["n04", IOPS][:2]
    missing = verdicts(
        tmp_path,
        values,
        BANDWIDTH,
        {"name": "all", "metric": "*/*/*", "at_least": 0.001, "hosts": "host=n0[0-4]"},
        {"name": "thrice", "metric": "fio/*/*", "at_least": "1/s", "repeats": 3},
        {"name": "ghost", "metric": "nothing/*/*", "at_least": "1 B/s", "hosts": "host=n00"},
    )
    assert missing["n02", "bandwidth", "stream/*/triad"] == "missing"
    assert missing["n02", "all", "stream all-cores triad"] == "missing"
    assert missing["n00", "all", "fio randread-4k-qd32 read_iops"] == "missing"  # another unit
    assert missing["n04", "thrice", "fio randread-4k-qd32 read_iops"] == "missing"
    assert missing["n00", "ghost", "nothing/*/*"] == "missing"


def test_a_share_of_the_peak(tmp_path: Path) -> None:
    """Check 281 GB/s against 461 GB/s of 12 modules at 4,800 MT/s: triad moves a third more than it counts, so 81%."""
    archive = campaign(tmp_path, usual(("a", "b")))
    dimms = tuple(Dimm(slot=f"d{n}", size=32 << 30, type="DDR5", configured_mts=4800) for n in range(12))
    archive.save_facts("a", facts(dimms=dimms), {})
    rule = {"name": "peak", "metric": "stream/*/triad", "reference": "peak", "at_least": "75%"}
    answers = hold(archive, read_rules(rules(tmp_path, rule)), "rules.yml").results
    (warning,) = (r for r in answers if r.rule != "peak")  # 12 modules may be half of what the machine should have
    assert warning.host == "a" and verdict_text(warning).startswith(
        "not judged: nothing states how many memory modules"
    )
    results = {r.host: r for r in answers if r.rule == "peak"}
    assert results["a"].verdict is CheckVerdict.PASSED
    assert results["a"].limit == pytest.approx(0.75 * 12 * 4800e6 * 8 / 1.3333)
    assert (
        results["b"].verdict is CheckVerdict.MISSING
        and verdict_text(results["b"]) == "no peak of this machine is known for it"
    )
    other = rule | {"metric": "lmbench/*/null", "at_most": "90%"}
    results = {r.host: r for r in hold(archive, read_rules(rules(tmp_path, other)), "rules.yml").results}
    assert results["a"].verdict is CheckVerdict.MISSING


def test_too_few_peers_are_no_pass(tmp_path: Path) -> None:
    missing = verdicts(tmp_path, usual(("a", "b", "c")), {"name": "p", "metric": "stream/*/*", "within": "5%"})
    assert missing == {(h, "p", "stream all-cores triad"): "missing" for h in "abc"}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"name": "x", "metric": "a"}, "rule 'x': needs a bound: at_least, at_most or within"),
        ({"name": "", "metric": "a", "at_least": 1}, "is empty; name at least one"),
        ({"name": "x", "metric": "a", "at_least": "fast"}, "'fast' is not an amount with a unit"),
        ({"name": "x", "metric": "a", "within": "5 GB/s"}, "within: 5 GB/s is not a share"),
        ({"name": "x", "metric": "a", "within": "5%", "at_least": 1}, "within: refers to the cohort's median"),
        ({"name": "x", "metric": "a", "at_least": 1, "eval": "__import__('os')"}, "rules.0.eval: is not a valid key"),
        ({"name": "x", "metrc": "a", "at_least": 1}, "rules.0.metrc: is not a valid key (did you mean metric?)"),
        ({"name": "x", "metric": 5, "at_least": 1}, "rules.0.metric: must be text; put it in quotes"),
        ({"name": "x", "metric": "a", "at_least": 1, "severity": "fatal"}, "rules.0.severity"),
    ],
)
def test_a_bad_rule_is_refused(tmp_path: Path, rule: dict[str, Any], sentence: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        read_rules(rules(tmp_path, rule))
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_no_rules_two_of_a_name_and_no_host_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="rules: is empty; add at least one"):
        read_rules(rules(tmp_path))
    with pytest.raises(FleetmarkError, match="two rules are named 'bandwidth'"):
        read_rules(rules(tmp_path, BANDWIDTH, BANDWIDTH))
    file = rules(tmp_path, BANDWIDTH | {"hosts": "gen=none"})
    with pytest.raises(FleetmarkError, match="rule 'bandwidth': selector 'gen=none' matches no machine"):
        hold(campaign(tmp_path, usual()), read_rules(file), "rules.yml")


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["gate", *words, "--results", str(root)], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_every_form_and_the_exit_status(tmp_path: Path) -> None:
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    campaign(tmp_path, values)
    warned = {"name": "warned", "metric": "lmbench/*/*", "at_most": "1 ns", "severity": "warn", "hosts": "host=n01"}
    file = str(rules(tmp_path, BANDWIDTH, warned))
    status, table = run(tmp_path, file)
    assert status == 1 and "Not accepted: 1 of 17 checks failed, on n03." in table
    assert re.search(r"n03 +bandwidth +stream all-cores triad: 22\d GB/s is below 250 GB/s", table)
    _, text = run(tmp_path, file, "--format", "json")
    document = json.loads(text)
    assert document["accepted"] is False and len(document["checks"]) == 17
    out = tmp_path / "gate.xml"
    run(tmp_path, file, "--format", "junit", "-o", str(out))
    suites = ElementTree.fromstring(out.read_text("utf-8"))
    failures = {s.get("name"): s.get("failures") for s in suites}
    assert failures["n03"] == "1" and failures["n00"] == failures["n01"] == "0"
    _, metrics = run(tmp_path, file, "--format", "prometheus")
    assert 'fleetmark_gate_accepted{host="n03"} 0' in metrics and 'fleetmark_gate_accepted{host="n01"} 1' in metrics
    assert all(re.fullmatch(r'(# (HELP|TYPE) .*|\w+\{(\w+="[^"]*",?)+\} \S+)', line) for line in metrics.splitlines())
    status, table = run(tmp_path, file, "--limit", "n01")
    assert status == 0 and "Accepted: 2 checks passed or gave only a warning." in table and "warning" in table


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("600 GB/s", 6e11, "B/s"),
        ("25 Gbit/s", 3.125e9, "B/s"),
        ("120 ns", 1.2e-7, "s"),
        ("900 k/s", 9e5, "1/s"),
        ("5%", 0.05, "1"),
        (0.97, 0.97, "1"),
        ("64 GiB", 64 * 2**30, "B"),
        ("2 MB", 2e6, "B"),
        ("3 min", None, ""),
        ("GB/s", None, ""),
        ("1 k", None, ""),
    ],
)
def test_amounts(text: str | float, value: float | None, unit: str) -> None:
    if value is None:
        with pytest.raises(FleetmarkError, match="not an amount with a unit"):
            parse_quantity(text)
    else:
        assert parse_quantity(text) == (pytest.approx(value), unit)


def test_a_share_reads_in_percent_and_a_rate_of_networks_in_bits() -> None:
    loss = Result(
        "loss",
        Severity.FAIL,
        "n01",
        "udp",
        CheckVerdict.FAILED,
        value=0.012,
        limit=0.001,
        unit="1",
        least=False,
        percent=True,
    )
    assert str(verdict_text(loss)) == "1.20% is above 0.100%"
    rate = Result("rate", Severity.FAIL, "n01", "tcp", CheckVerdict.FAILED, value=1e9, limit=3e9, unit="B/s", bits=True)
    assert str(verdict_text(rate)) == "8.00 Gbit/s is below 24.0 Gbit/s"
