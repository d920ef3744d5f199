"""Test that a damaged campaign among others is reported in one line and stops nothing else. Also test a full disk."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleetmark import cli
from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.cli.app import app
from fleetmark.cli.common import SOME_FAILED
from fleetmark.record import archive as archives
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns
from tests.drives import save_step
from tests.records import IOPS, TRIAD, record

FLEETMARK = Path(sys.executable).parent / "fleetmark"


def garbage(file: Path) -> None:
    file.write_bytes(b"\x00\xff\x85\n" + os.urandom(400))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def holds(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text)


WAYS: dict[str, Callable[[Path], object]] = {
    "empty list": holds("[]"),
    "list line": holds('[1]\n{"t": "2026-11-01T00:00:00Z", "e": "ended", "owed": 0}\n'),
    "empty object": holds('{}\n{"t": "2026-11-01T00:00:00Z", "e": "ended", "owed": 0}\n'),
    "deep": holds("[" * 50_000 + "\n{}\n"),
    "garbage": garbage,
    "cut": cut,
    "empty": holds(""),
    "gone": lambda file: file.unlink(),
    "folder": lambda file: (file.unlink(), file.mkdir()),
    "link": lambda file: (file.unlink(), file.symlink_to("/etc/hosts")),
}
# Each file of a campaign, and the kinds of damage that do not make it invalid.
FILES: dict[str, tuple[str, ...]] = {
    "campaign.json": (),
    "journal.jsonl": ("cut", "empty", "gone"),  # as after a crash
    "jobs/a1.json": ("empty object",),  # its last line is valid; --resume reports the damage
    "facts/a1.json": ("empty object",),
    "measurements.parquet": ("gone",),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with three campaigns of the same two generations."""
    root = tmp_path_factory.mktemp("sound")
    for name in ("c0", "c1", "c2"):
        hosts = {f"{g}{n}": {"gen": g} for g in "ab" for n in range(3)}
        figures = {
            (h, b): [1e9 * (1 + n / 50 + (h[0] == "b")), 1.01e9] for n, h in enumerate(hosts) for b in (TRIAD, IOPS)
        }
        archive = record(root, name, hosts, figures).writable()
        for host in hosts:
            archive.save_job(host, json.dumps({"host": host, "steps": [], "deploy": [], "skipped": {}}))
            for b in (TRIAD, IOPS):
                run = {"host": host, "workload": b.workload, "case": b.case, "repeat": 0, "subject": "host"}
                archive.note("outcome", **run, status="passed", reason="", started="2026-11-01T00:00:00Z")
        archive.note("ended", owed=0)
        doc = archive.campaign()
        archive.save_campaign({**doc, "jobs": dict.fromkeys(hosts, "")})
        archive.close()
    return root


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    """Return a copy of the three campaigns. Tests damage the second one, c1."""
    return Path(shutil.copytree(sound, tmp_path / "record"))


def invoke(root: Path, *words: str) -> Any:
    return CliRunner().invoke(app, [*words, "--results", str(root)])


def ended_well(done: Any) -> None:
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_campaign_is_one_line_and_the_others_go_on(root: Path, file: str) -> None:
    """Damage one copy of a campaign in each way, and run the commands over all of them."""
    damaged = {name.replace(" ", "-"): damage for name, damage in WAYS.items() if name not in FILES[file]}
    for name, damage in damaged.items():
        shutil.copytree(root / "c1", root / name)
        damage(root / name / file)
    done = invoke(root, "campaigns", "--format", "json")
    ended_well(done)
    lines = {line["campaign"]: line for line in json.loads(done.stdout)}
    assert set(lines) == {"c0", "c1", "c2", *damaged}
    for name in damaged:
        assert lines[name]["damaged"] and "\n" not in lines[name]["damaged"], name
        assert Path(file).name in lines[name]["damaged"] or file == "campaign.json", name
    for name in ("c0", "c1", "c2"):
        assert lines[name]["damaged"] is None and lines[name]["statuses"] == {"passed": 12}
    table = invoke(root, "campaigns")
    ended_well(table)
    assert table.output.count("damaged") >= len(damaged)
    done = invoke(root, "compare", "-b", "gen=a", "-c", "gen=b", "--per", "core", "--html", str(root.parent / "x.html"))
    ended_well(done)
    for name in damaged:
        if file in ("campaign.json", "measurements.parquet"):
            assert f"fleetmark: {name} is left out: " in done.output
        alone = invoke(root, "report", name)
        assert alone.exception is None or "\n" not in str(alone.exception), name
        assert alone.exit_code == 0 or isinstance(alone.exception, FleetmarkError), f"{name}: {alone.exception}"
    ended_well(invoke(root, "report", "c0"))


@pytest.mark.parametrize("words", [["predict", "-m", "host=a1"], ["reference", "save", "x", "--from", "gen=a"]])
def test_other_verbs_say_what_they_left_out(root: Path, words: list[str]) -> None:
    (root / "c1" / "campaign.json").write_text("[]")
    done = subprocess.run([FLEETMARK, *words, "--results", root], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert f"fleetmark: c1 is left out: {root}/c1/campaign.json: damaged" in done.stderr


def test_where_all_is_damaged_the_reason_is_said(root: Path) -> None:
    for name in ("c0", "c1", "c2"):
        (root / name / "campaign.json").write_text("{")
    done = invoke(root, "compare", "-b", "gen=a", "-c", "gen=b")
    assert "c0/campaign.json: cannot be read" in str(done.exception)


def test_facts_that_are_damaged_cost_what_they_tell_alone(root: Path) -> None:
    (root / "c1" / "facts" / "a1.json").write_text("{")
    done = invoke(root, "compare", "-b", "gen=a", "-c", "gen=b", "--per", "core")
    ended_well(done)
    assert f"fleetmark: the identity of a1 in c1 is left out: {root}/c1/facts/a1.json: not facts" in done.output


# --- a disk that is full ---------------------------------------------------------------------------------------------


def no_room(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


WRITES: dict[str, tuple[str, Callable[[Archive], object]]] = {
    "journal": ("write", lambda a: a.note("ended", owed=0)),
    "journal's sync": ("fsync", lambda a: a.note("ended", owed=0)),
    "step": (
        "mkdir",
        lambda a: save_step(a, "h", {"workload": "w", "case": "c", "repeat": 0, "subject": "host"}, {"stdout": b"x"}),
    ),
    "measurements": ("fsync", lambda a: a.write_measurements([])),
    "page": ("fsync", lambda a: a.write_page("x")),
    "job": ("fsync", lambda a: a.save_job("h", "{}")),
}


@pytest.mark.parametrize("kind", WRITES)
def test_a_full_disk_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    archive = Archive.create(tmp_path / "a disk", "c1", {"hosts": []}).writable()
    archive.note("launched", host="h")
    call, write = WRITES[kind]
    with monkeypatch.context() as patch:
        patch.setattr(os, call, no_room)
        with pytest.raises(CannotKeep) as error:
            write(archive)
    message = str(error.value)
    assert "No space left on device; hosts continue and keep their results" in message and "\n" not in message
    assert message.endswith(f"fleetmark run --resume '{tmp_path}/a disk/c1'")
    assert [e["e"] for e in archive.journal()] == ["launched"], "no half line, nothing glued to it"
    archive.note("ended", owed=0)
    assert [e["e"] for e in archive.journal()] == ["launched", "ended"]
    assert not list(archive.path.rglob(".*")), "nothing half written takes the room that is left"


def test_a_full_disk_is_nobodys_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive.create(tmp_path, "c1", {"hosts": [], "created": "2026-11-01T00:00:00Z"})
    monkeypatch.setattr(sys, "argv", ["fleetmark", "rebuild", str(archive.path)])
    monkeypatch.setattr(archives, "replace_inside", no_room)
    assert cli.status() == SOME_FAILED
    assert f"disk space, then fleetmark run --resume {archive.path}" in capsys.readouterr().err


def test_somebody_elses_campaign_is_listed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "20261101T000000-quick-abcd"
    Archive.create(tmp_path, name, {"hosts": []})
    real = Path.iterdir

    def closed(folder: Path) -> Any:
        if folder.name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    assert [a.id for a in campaigns(tmp_path)] == [name]
