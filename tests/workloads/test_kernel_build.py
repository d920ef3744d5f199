"""The build program on a small project, and what is refused before any host is touched."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.resolve import resolve
from fleetmark.campaign.schedule import settings_of
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.workloads import Choice, Suite, load
from tests.schedules import facts

BUILD = PLAYBOOKS / "roles" / "kernel_build" / "files" / "build.py"
TOOLS = {"make": "/usr/bin/make", "gcc": "/usr/bin/gcc"}


def built(folder: Path, configure: str = "true", build: str = "echo >built; true") -> subprocess.CompletedProcess[str]:
    (folder / "tree").mkdir()
    (folder / "tree" / "source").write_text("x")
    words = [sys.executable, str(BUILD), "tree", "2", configure, build]
    return subprocess.run(words, capture_output=True, text=True, cwd=folder)


def test_a_copy_is_built_and_removed(tmp_path: Path) -> None:
    ran = built(tmp_path, "test -s source && touch configured", "test -e configured; sleep 0.01; true")
    assert ran.returncode == 0, ran.stderr
    assert {m.metric for m in parsers.parse("kernel_build", ran.stdout.encode()).measurements} >= {"build_rate", "jobs"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["build.log", "tree"]
    assert [p.name for p in (tmp_path / "tree").iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (("echo no flex; exit 3", "true"), "configuring failed with exit status 3: no flex"),
        (("true", "exit 2;"), "the build failed with exit status 2: it printed nothing"),
    ],
)
def test_a_failure_is_its_last_line(tmp_path: Path, commands: tuple[str, str], words: str) -> None:
    ran = built(tmp_path, *commands)
    assert ran.returncode == 1 and ran.stderr.strip() == words


@pytest.mark.parametrize(
    ("host", "settings", "words"),
    [
        ({"tools": {}}, {}, "needs make and gcc on this host"),
        ({"tools": TOOLS}, {}, "needs flex, bison and bc to configure Linux"),
        ({"tools": TOOLS, "work_free": 1 << 30}, {"configure": "true"}, "needs 8.0 GiB of free disk under"),
    ],
)
def test_what_a_host_lacks_is_one_sentence(
    tmp_path: Path, host: dict[str, Any], settings: dict[str, Any], words: str
) -> None:
    archive = tmp_path / "linux.tar"
    archive.write_bytes(b"x")
    source = {"source": str(archive), "source_sha256": hashlib.sha256(b"x").hexdigest()}
    resolved = resolve(load("kernel_build"), {**source, **settings}, facts(**host), "c1")
    assert isinstance(resolved, str) and words in resolved


def test_sources_and_their_checksum_are_asked_for(tmp_path: Path) -> None:
    archive = tmp_path / "linux.tar"
    archive.write_bytes(b"x")
    for settings, words in (
        ({}, r"kernel_build.source \(linux"),
        ({"source": str(archive), "source_sha256": "0" * 64}, "has sha256 2d711642"),
    ):
        suite = Suite(name="s", description="x", workloads={"kernel_build": Choice(set=settings)})
        with pytest.raises(FleetmarkError, match=words):
            settings_of(suite, {})


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(BUILD)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
