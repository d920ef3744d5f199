"""Test a dry run over real hosts: it changes nothing, and its forecast matches the run, with pairs and variants."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.command import Command

pytestmark = pytest.mark.fleet

SUITE = """description: Pairs, a variant, a condition that holds on no host, and one that holds on all.
repeats: 2
where: facts.cpu.threads > 0
workloads:
  selftest: {set: {commands: 1}}
  iperf3: {set: {duration: 1, omit: 0, streams: 1}, cases: [tcp-1]}
  iperf3@two: {set: {duration: 1, omit: 0, streams: 2, pairs: 1}, cases: [tcp-2], repeats: 1}
  nccl_tests: {where: has_nvidia}
"""


def counted(runs: list[dict[str, Any]], host: str) -> Counter[tuple[str, str]]:
    return Counter((r["workload"], r["case"]) for r in runs if r["host"] == host)


def test_what_a_dry_run_lists_is_what_runs(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "pairs.yml"
    file.write_text(SUITE)
    words = ("--suite", str(file), "--seed", "3")
    dry = command.run(*words, "--dry-run", "--format", "json", "-o", str(tmp_path / "plan.md"))
    assert dry.returncode == 0, dry.stderr
    assert not command.campaign.exists()
    listed = {host["host"]: host for host in json.loads(dry.stdout)["hosts"]}
    assert set(listed) == {"h1", "h2", "h3", "h4"}
    assert "tcp-2@two" in (tmp_path / "plan.md").read_text()
    command.passes(*words)
    ran = command.outcomes()
    for name, host in listed.items():
        expected = {(c["workload"], c["case"]): c["runs"] for c in host["cases"]}
        assert counted(ran, name) == expected
        assert host["network_seconds"] > 0 and host["unmet"] == {
            "nccl_tests": "(facts.cpu.threads > 0) and (has_nvidia)"
        }
    assert sum(counted(ran, name)["iperf3", "tcp-2@two"] for name in listed) == 4, "each host meets one other"
    assert not [o for o in ran if o["workload"] == "nccl_tests"]
    again = json.loads(command.run(*words, "--dry-run", "--format", "json").stdout)
    assert {case["source"] for host in again["hosts"] for case in host["cases"]} == {"record"}


def test_a_campaign_with_variants_goes_on_after_a_kill(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "variants.yml"
    file.write_text(
        "description: x\nrepeats: 2\nworkloads:\n  selftest: {set: {commands: 2, seconds: 0.2}}\n"
        "  selftest@slow: {set: {commands: 3, seconds: 0.4}}\n"
    )
    controller = command.begin("--suite", str(file))
    command.until(lambda: len(command.outcomes()) > 2)
    controller.kill()
    controller.wait()
    file.unlink()
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("h1", "h2", "h3", "h4"):
        assert counted(command.outcomes(), name) == {
            ("selftest", case): 2
            for case in ("uptime-1", "uptime-2", "uptime-1@slow", "uptime-2@slow", "uptime-3@slow")
        }
    assert command.count() == {"passed": 40}
