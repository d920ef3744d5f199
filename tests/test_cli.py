"""Test the command line: an error is one sentence on stderr, and JSON output contains only JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli import status
from fleetmark.cli.app import app
from fleetmark.cli.common import INTERRUPTED, OK, SOME_FAILED, USAGE
from fleetmark.record.archive import Archive
from fleetmark.verbs import ended
from fleetmark.verbs.ended import is_passed

FLEETMARK = Path(sys.executable).with_name("fleetmark")


def fleetmark(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [FLEETMARK, *words], capture_output=True, text=True, cwd=cwd, env={**os.environ, **env}, timeout=120
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--suite", "quik"], "did you mean quick"),
        (["run", "--suite", "none.yml"], "none.yml: No such file"),
        (["run", "--set", "fio"], "write it as workload.parameter=value"),
        (["run", "--set", "fio.iodepht=3"], "fio has no parameter 'iodepht'"),
        (["run", "--set", "stream.ntimes=often"], "'often' is not a whole number"),
        (["run", "--set", "foi.size=1"], "did you mean fio"),
        (["run", "--set", "fio.device=/dev/sdb"], "fio.erase=yes"),
        (["run", "--set", "stream.source=https://x/stream.c"], "stream.source_sha256"),
        (["run", "-i", "absent.ini"], "absent.ini"),
        (["run", "--resume", "last"], "no campaign 'last'"),
        (["run", "--resume", "last", "--seed", "1"], "--seed with --resume: a resumed campaign keeps its options"),
        (["run", "--resume", "last", "--suite", "quick"], "--suite with --resume"),
        (["run", "--retry-failed"], "--retry-failed without --resume"),
        (["run", "--set", "stream.source=stream.c"], "is not a file on this machine or a URL"),
        (["workloads", "strem"], "did you mean stream"),
        (["report", "nothing"], "no campaign 'nothing'"),
        (["parse", "foi", "x"], "no parser for 'foi'"),
        (["parse", "fio", "absent.json"], "absent.json: No such file"),
        (["parse", "fio"], "parse fio: no file; give the tool's output, or - for stdin"),
        (["parse", "last"], "to parse a campaign again: fleetmark rebuild last"),
        (["hosts", "--suite", "nope"], "no suite 'nope'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fleetmark", *words])
    for stream in ("stdout", "stderr"):  # which it replaces
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    assert status() == USAGE
    out, error = capfd.readouterr()
    assert sentence in error
    assert error.count("\n") == 1
    assert out == ""
    assert not list(tmp_path.iterdir()), "nothing is begun"


@pytest.mark.parametrize(
    "words",
    [["report", "last", "--html", "closed/a.html"], ["plan", "closed/d.yml"], ["campaigns", "--results", "closed/x"]],
)
def test_a_folder_of_somebody_else_is_named(tmp_path: Path, words: list[str]) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    bare: list[str] = []
    if os.geteuid() == 0:  # root, but without the right to bypass permissions
        os.chown(closed, 65534, 65534)
        bare = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run([*bare, FLEETMARK, *words], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "permission denied" in done.stderr.lower() and "closed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_malformed_inventory_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n   h1: [\n")
    done = fleetmark("run", "-i", "hosts.yml", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "hosts.yml" in done.stderr


def test_results_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = fleetmark("run", "--suite", "selftest", "--results", "file/below", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "choose a folder with --results" in done.stderr


@pytest.mark.job
def test_this_machine_without_an_inventory(tmp_path: Path) -> None:
    done = fleetmark("run", "--suite", "selftest", "--set", "selftest.commands=2", "--format", "json", cwd=tmp_path)
    assert done.returncode == OK, done.stderr
    doc = json.loads(done.stdout)
    assert [m["metric"] for m in doc["measurements"]] == ["uptime", "uptime"]
    assert doc["finished"]
    listed = fleetmark("campaigns", "--format", "json", cwd=tmp_path)
    (line,) = json.loads(listed.stdout)
    assert (line["campaign"], line["statuses"]) == (doc["campaign"], {"passed": 2})
    again = fleetmark("rebuild", "last", "--format", "json", cwd=tmp_path)
    assert json.loads(again.stdout)["changed"] == 0
    shown = fleetmark("report", "last", cwd=tmp_path, COLUMNS="80")
    assert shown.returncode == OK
    assert "All 2 runs passed." in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines() if "/" not in line)


def test_parsing_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "up").write_text("12.50 20.00\n")
    (tmp_path / "down").write_text("no idea\n")
    done = fleetmark("parse", "selftest", "up", "--format", "json", cwd=tmp_path)
    assert done.returncode == OK
    (row,) = json.loads(done.stdout)
    keys = ("workload", "case", "subject", "metric", "value", "unit", "better", "labels")
    assert [row[k] for k in keys] == ["selftest", "uptime", "host", "uptime", 12.5, "s", "none", {}]
    both = fleetmark("parse", "selftest", "down", "up", "--format", "json", cwd=tmp_path)
    assert both.returncode == SOME_FAILED
    assert "down: selftest line 1: expected one line of /proc/uptime" in both.stderr
    assert len(json.loads(both.stdout)) == 1


def test_facts_tools_parse_too(tmp_path: Path) -> None:
    (tmp_path / "lscpu").write_bytes(subprocess.run(["lscpu", "-J"], capture_output=True, check=True).stdout)
    done = fleetmark("parse", "lscpu", "lscpu", "--format", "json", cwd=tmp_path)
    assert done.returncode == OK
    assert json.loads(done.stdout)["cpus"] == os.cpu_count()


def test_hosts_says_what_this_machine_is(tmp_path: Path) -> None:
    done = fleetmark("hosts", "--format", "json", cwd=tmp_path)
    (entry,) = json.loads(done.stdout)
    assert entry["reachable"]
    assert entry["facts"]["cpu"]["threads"] == os.cpu_count()
    assert not list(tmp_path.iterdir())


def test_the_catalogue_shows_every_parameter(tmp_path: Path) -> None:
    done = fleetmark("workloads", "fio", cwd=tmp_path, COLUMNS="100")
    doc = json.loads(fleetmark("workloads", "fio", "--format", "json", cwd=tmp_path).stdout)
    assert all(f"fio.{name}" in done.stdout for name in doc["parameters"])
    assert all(name in done.stdout for name in doc["metrics"])


@pytest.mark.parametrize(
    ("statuses", "strict", "passed"),
    [
        (["passed", "passed"], False, True),
        (["passed", "skipped"], False, True),
        (["passed", "skipped"], True, False),
        (["skipped"], False, False),
        ([], False, False),
        (["passed", "failed"], False, False),
        (["passed", "invalid"], False, False),
        (["passed", "lost"], False, False),
    ],
)
def test_a_campaign_passes_if_some_steps_passed_and_no_other_was_worse_than_skipped(
    statuses: list[str], strict: bool, passed: bool
) -> None:
    assert is_passed(statuses, strict) == passed


@pytest.mark.job
@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (FleetmarkError("the page is broken"), USAGE, "fleetmark: the page is broken"),
        (KeyboardInterrupt(), INTERRUPTED, "fleetmark: interrupted; the results are stored: fleetmark report "),
        (MemoryError(), SOME_FAILED, "fleetmark: the results cannot be shown (MemoryError:); the results are stored"),
        (
            ValueError("x"),
            SOME_FAILED,
            "fleetmark: the results cannot be shown (ValueError: x); the results are stored",
        ),
    ],
)
def test_an_error_of_showing_keeps_the_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, sentence: str
) -> None:
    def fail(archive: Archive, *_: object, **__: object) -> None:
        stored.append((archive.path / "measurements.parquet").stat().st_size)
        raise error

    stored: list[int] = []
    monkeypatch.setattr(ended.report, "campaign", fail)
    done = CliRunner().invoke(app, ["run", "--suite", "selftest", "--results", str(tmp_path)])
    assert done.exit_code == status
    assert sentence in done.stderr
    (size,) = stored
    (campaign,) = tmp_path.glob("*-selftest-*")
    assert (campaign / "measurements.parquet").stat().st_size == size > 0
    assert Archive(campaign).writable(), "the lock is free"
    events = [event["e"] for event in Archive(campaign).journal()]
    assert events[-1] == "ended"


def test_ctrl_c_while_the_program_loads_ends_it_without_a_word(tmp_path: Path) -> None:
    code = (
        "import sys; from fleetmark import cli; sys.argv = ['fleetmark', 'run']\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        "cli.status = interrupted; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
