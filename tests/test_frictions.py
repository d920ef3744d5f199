"""Test what a newcomer meets on the first day: running campaigns, commands to paste, names of sides, self-tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetmark.demand.csv import SHEETS
from fleetmark.record import naming
from fleetmark.verbs import plan, skeleton
from tests.commands import run
from tests.fleets import campaign, usual
from tests.records import TRIAD

FLEETMARK = Path(sys.executable).with_name("fleetmark")
HOME = "/usr/bin:/bin"


def typed(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, "COLUMNS": "80", "FLEETMARK_RESULTS": "r", **env}
    return subprocess.run([FLEETMARK, *words], cwd=folder, env=full, capture_output=True, text=True, timeout=300)


@pytest.mark.job
def test_a_running_campaign_shows_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    skeleton.write("slow_one", tmp_path / "slow")
    manifest = tmp_path / "slow" / "slow_one.yml"
    text = manifest.read_text().replace("echo requests/s", "sleep 1; echo requests/s")
    assert "sleep 1" in text
    manifest.write_text(text)
    run_slowly = ["run", "--workloads", "slow", "-s", "slow_one", "--repeats", "500"]
    words = ["env", "--default-signal=INT", FLEETMARK, *run_slowly]
    env = {**os.environ, "FLEETMARK_RESULTS": "r"}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as going:
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("r/*/raw/*/*/*/*/result.json")) and time.monotonic() < deadline:
            time.sleep(0.2)
        shown = typed(tmp_path, "report", "last", "--workloads", "slow")
        if "No such option" in shown.stderr:
            shown = typed(tmp_path, "report", "last", FLEETMARK_WORKLOADS="slow")
        still = going.poll() is None
        going.send_signal(signal.SIGINT)  # so that the job ends, which holds this machine for later tests
    assert still, "it ended before the report"
    assert "campaign is not finished" in shown.stdout and "slow_one" in shown.stdout
    assert "requests" in shown.stdout or "rate" in shown.stdout


@pytest.mark.job
def test_commands_can_be_pasted_where_the_program_is_not_on_the_path(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.ini"
    inventory.write_text("here ansible_connection=local\nn1 ansible_host=127.0.0.1 ansible_port=1\n")
    shown = typed(tmp_path, "run", "-i", "hosts.ini", "-s", "selftest", "--repeats", "1", PATH=HOME).stdout
    lines = [line for line in shown.splitlines() if line.startswith("  ") and "--resume" in line]
    assert {line.split()[0] for line in lines} == {str(FLEETMARK)}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fleetmark").symlink_to(FLEETMARK)
    again = typed(tmp_path, "report", "last", PATH=f"{tmp_path}/bin:{HOME}").stdout
    lines = [line for line in again.splitlines() if line.startswith("  ") and "--resume" in line]
    assert {line.split()[0] for line in lines} == {"fleetmark"}


@pytest.mark.job
def test_a_self_test_recommends_nothing_to_compare(tmp_path: Path) -> None:
    done = typed(tmp_path, "run", "-s", "selftest", "--repeats", "1")
    assert "uptime-1" in done.stdout and "reference save" not in done.stdout and "compare" not in done.stdout
    document = json.loads(typed(tmp_path, "report", "last", "--format", "json").stdout)
    assert "reference save" not in json.dumps(document)


def test_campaigns_as_sides_have_readable_names(tmp_path: Path) -> None:
    values = usual(("a", "b"))
    campaign(tmp_path, values, name="20261124T193326-selftest-1227")
    campaign(tmp_path, values, name="20261125T080000-standard-0a0b")
    words = ("-b", "campaign=20261124T193326-selftest-1227", "-c", "campaign=20261125T080000-standard-0a0b")
    compared = json.loads(run(tmp_path, "compare", *words, "--format", "json"))
    assert compared["baseline"] == "selftest 2026-11-24 19:33"
    assert compared["candidates"] == ["standard 2026-11-25 08:00"]
    campaigns = [f"campaign=20261124T1933{s:02}-x-000{s}" for s in (1, 2)]
    assert set(naming.names({name: [] for name in campaigns}).short.values()) == set(campaigns)


@pytest.mark.parametrize("width", ["80", "140"])
def test_dates_of_campaigns_are_not_broken(width: str, tmp_path: Path) -> None:
    campaign(tmp_path / "r", {("a", TRIAD): [1e9]}, name="20261124T193326-standard-on-all-hosts-1227")
    shown = typed(tmp_path, "campaigns", COLUMNS=width).stdout
    (stored,) = json.loads(typed(tmp_path, "campaigns", "--format", "json").stdout)
    assert stored["created"][:16] in shown.split()


def test_parsed_rates_are_in_bits_and_counts_are_whole(tmp_path: Path) -> None:
    corpus = Path(os.environ.get("FLEETMARK_CORPUS", "../shared/corpus")) / "iperf3"
    files = [p for p in sorted(corpus.rglob("*.json")) if b"retransmits" in p.read_bytes()]
    if not files:
        pytest.skip("no corpus")
    shown = run_plain("parse", "iperf3", str(files[0]))
    rates = [line for line in shown.splitlines() if "sent_bitrate" in line]
    counts = [line for line in shown.splitlines() if " retransmits " in line]
    assert rates and all("bit/s" in line for line in rates)
    assert counts and all(line.split()[-1].replace(",", "").isdigit() for line in counts)


def run_plain(*words: str) -> str:
    done = subprocess.run(
        [FLEETMARK, *words], capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "140"}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_old_heads_of_a_sheet_name_the_new_ones(tmp_path: Path) -> None:
    plan.init(tmp_path / "sheets")
    assert "supply.csv" in SHEETS
    (tmp_path / "sheets" / "supply.csv").write_text("of,most\nx,1\n")
    faults = typed(tmp_path, "plan", "sheets").stderr
    assert "supply.csv line 1, column of: this column is now called item; rename it" in faults
    assert "column most: this column is now called maximum; rename it" in faults
    assert "missing" not in faults and "has no column" not in faults


def test_the_example_workload_is_indented(tmp_path: Path) -> None:
    skeleton.write("acme_bench", tmp_path)
    lines = (tmp_path / "acme_bench.yml").read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines) if "# Replace" in line]
    assert lines[number].index("#") == lines[number + 1].index("argv")
    assert shutil.which("sh")
