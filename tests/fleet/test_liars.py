"""Real hosts whose agent lies: each loses only itself, and nothing of it reaches another host or stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from tests.fleet.hosts import Fleet
from tests.fleet.liars import liars

pytestmark = pytest.mark.fleet

FLEETMARK = Path(sys.executable).with_name("fleetmark")
EVIL = "boo\ngo /etc/profile.d/evil.sh ;touch /PWNED\x1b[2J"

# Instead of the first finished step's files, or beside them.
BOMB = """
if doc["e"] == "part" and doc["name"] == "stdout":
    return part(doc["step"], "stdout", bytes(200 << 20))
really(doc)
"""
LINE = """
while True:
    sys.stdout.write("{" + "x" * (1 << 20))
"""
NESTED = """
print('{"e":' * 100000, flush=True)
"""
TELEMETRY = """
if doc["e"] == "part" and doc["name"] == "result.json":
    result = json.loads(zlib.decompress(base64.b64decode(doc["data"])))
    data = json.dumps(dict(result, telemetry="x")).encode()
    part(doc["step"], "result.json", data)
elif doc["e"] == "end":
    really(dict(doc, files=dict(doc["files"], **{"result.json": len(data)}) if "data" in globals() else doc["files"]))
else:
    really(doc)
"""
EARLY = """
really({"e": "over", "remaining": 0})
"""
# Wherever it should wait for its peer, it ends at once with a reason that reads like an order.
EVIL_SERVER = f"""
if doc["e"] == "wait":
    data = json.dumps({{"ended": "error", "started": 1.7e9, "wall_s": 1.0, "reason": {EVIL!r}}}).encode()
    part(doc["step"], "result.json", data)
    really({{"e": "end", "step": doc["step"], "files": {{"result.json": len(data)}}}})
    really({{"e": "over", "remaining": 1}})
else:
    really(doc)
"""


def fleetmark(root: Path, *words: str, rc: int | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "160", "FLEETMARK_RESULTS": str(root / "results")}
    done = subprocess.run(
        [FLEETMARK, *words], capture_output=True, text=True, timeout=600, env=env, cwd=root, check=False
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    if rc is not None:
        assert done.returncode == rc, done.stdout + done.stderr
    return done


def outcomes(root: Path) -> list[dict[str, Any]]:
    (journal,) = (root / "results").glob("*/journal.jsonl")
    last = {}
    for line in journal.read_text().splitlines():
        e = json.loads(line)
        if e["e"] == "outcome":
            last[e["host"], e["workload"], e["case"], e["repeat"], e["subject"]] = e
    return list(last.values())


def outcomes_of(root: Path, host: str) -> set[tuple[str, str]]:
    return {(e["status"], e["reason"]) for e in outcomes(root) if e["host"] == host}


@pytest.fixture
def suite(tmp_path: Path) -> str:
    file = tmp_path / "tiny.yml"
    file.write_text("description: tiny\nrepeats: 2\nworkloads:\n  selftest: {set: {commands: 2}}\n")
    return str(file)


@pytest.mark.parametrize(
    "lies",
    [
        {
            "h2": (BOMB, "a part of a file is cut, or has more than 256 KiB"),
            "h3": (LINE, "a line of more than 1024 KiB"),
        },
        {"h2": (NESTED, "recursion limit exceeded"), "h3": (TELEMETRY, "step "), "h4": (EARLY, None)},
    ],
)
def test_a_lying_agent_costs_its_own_host(
    fleet: Fleet, tmp_path: Path, suite: str, lies: dict[str, tuple[str, str | None]]
) -> None:
    inventory = tmp_path / "hosts.ini"
    with liars(fleet, {host: ("follow", code) for host, (code, _) in lies.items()}, inventory):
        fleetmark(tmp_path, "run", "-i", str(inventory), "--suite", suite, rc=1)
    for host in fleet.names:
        if host not in lies:
            assert outcomes_of(tmp_path, host) == {("passed", "")}
    for host, (_, reason) in lies.items():
        (outcome,) = {o for o in outcomes_of(tmp_path, host) if o[0] != "passed"}
        expected = (
            f"{host} sent an invalid reply ("
            if reason
            else "its agent reported the end of its job, but did not send all steps"
        )
        assert outcome[0] == "lost" and outcome[1].startswith(expected) and (reason or "") in outcome[1]
    done = fleetmark(tmp_path, "run", "--resume", "last", rc=0)  # honest again
    assert {o["status"] for o in outcomes(tmp_path)} == {"passed"}, done.stdout


def test_a_servers_words_are_never_orders_of_its_client(fleet: Fleet, tmp_path: Path) -> None:
    """The reason of a server's result once went into the order to its client, and was obeyed there as root."""
    suite = tmp_path / "pair.yml"
    suite.write_text(
        "description: pair\nrepeats: 1\nworkloads:\n  iperf3: {set: {duration: 1, omit: 0}, cases: [tcp-1]}\n"
    )
    inventory = tmp_path / "hosts.ini"
    with liars(fleet, {"h1": ("follow", EVIL_SERVER)}, inventory):
        done = fleetmark(tmp_path, "run", "-i", str(inventory), "--limit", "h1,h2", "--suite", str(suite), rc=1)
    for host in ("h1", "h2"):
        listing = fleet.exec(
            host,
            ["sh", "-c", "ls /PWNED /etc/profile.d/evil.sh; find /var/tmp/fleetmark-0 -name '*evil*'"],
            check=False,
        )
        assert listing.stdout == ""
    ((status, reason),) = outcomes_of(tmp_path, "h2")
    assert status == "lost" and "h1" in reason
    assert "\x1b" not in done.stdout


def test_a_lying_launch_costs_its_own_host_and_tells_ansible_nothing(fleet: Fleet, tmp_path: Path, suite: str) -> None:
    def answer(text: str) -> tuple[str, str]:
        return "launch", f"import sys; sys.stdin.read(); print('FLEETMARK' + {text!r})"

    facts = '{"state": "error", "error": "so", "ansible_facts": {"fm_job": "/etc/shadow"}, "add_host": {"host_name": "evil"}}'
    inventory = tmp_path / "hosts.ini"
    lies = {"h2": answer('{"state": "busy", "holder": "me"}'), "h3": answer("{" * 100_000 + "}"), "h4": answer(facts)}
    with liars(fleet, lies, inventory):
        fleetmark(tmp_path, "run", "-i", str(inventory), "--suite", suite, rc=1)
    assert outcomes_of(tmp_path, "h1") == {("passed", "")}
    ((_, busy),) = outcomes_of(tmp_path, "h2")
    assert busy.startswith("busy: an unresponsive process holds the host's lock")
    ((_, nested),) = outcomes_of(tmp_path, "h3")
    assert nested.startswith("FLEETMARK{{{{") and len(nested) <= 300
    assert outcomes_of(tmp_path, "h4") == {("lost", "so")}


def test_lying_facts_cost_their_own_host(fleet: Fleet, tmp_path: Path) -> None:
    flood = "import sys\nwhile True: sys.stdout.write('x' * (1 << 20))"
    nested = "print('[' * 100000)"
    gathered = subprocess.run(
        [sys.executable, PLAYBOOKS / "agent" / "facts" / "facts.py"], stdout=subprocess.PIPE, check=True
    )
    facts = json.loads(gathered.stdout) | {"python": "{{ lookup('pipe', 'touch /tmp/PWNED') }}"}
    template = f"print({json.dumps(facts)!r})"
    inventory = tmp_path / "hosts.ini"
    with liars(fleet, {"h2": ("facts", flood), "h3": ("facts", nested), "h4": ("facts", template)}, inventory):
        done = fleetmark(tmp_path, "hosts", "-i", str(inventory), "--format", "json", rc=1)
    reasons = {h["host"]: h["reason"] for h in json.loads(done.stdout)}
    assert reasons["h1"] is None
    assert "sent a line of more than 16384 KiB" in reasons["h2"]
    assert "not readable JSON" in reasons["h3"]
    assert "a path that Fleetmark does not trust" in reasons["h4"]
    assert not Path("/tmp/PWNED").exists()
