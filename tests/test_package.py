"""``pip install .`` into an empty environment, not editable: all files are installed, and it works from any folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("package")
    source = place / "source"  # a copy, so that building leaves nothing in the tree
    left_out = shutil.ignore_patterns(".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", "tests", "benchmarks")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    pip = [place / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode and ("No matching distribution" in done.stderr or "Connection" in done.stderr):
        pytest.skip("no package index to install from")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    return place / "venv" / "bin" / "fleetmark"


def test_the_self_test_runs_from_anywhere(installed: Path, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"
    }
    done = subprocess.run(
        [installed, "run", "--suite", "selftest", "--format", "json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=env,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    doc = json.loads(done.stdout)
    assert {o["status"] for o in doc["outcomes"]} == {"passed"}
    assert len(doc["measurements"]) == 6
    page = Path(doc["page"])
    assert page.is_relative_to(tmp_path)
    assert page.read_text().startswith("<!doctype html>")


def test_what_runs_here_has_the_limits_of_who_started_it(installed: Path, tmp_path: Path) -> None:
    """Ansible's worker limits its own memory before it takes a host's answer; here, tools would have inherited that."""

    def limits(pid: int | str) -> list[str]:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        return [line for line in lines if line.startswith(("Max data", "Max address", "Max stack", "Max file size"))]

    suite = tmp_path / "slow.yml"
    suite.write_text("description: slow\nrepeats: 1\nworkloads:\n  selftest: {set: {commands: 1, seconds: 3600}}\n")
    words = [installed, "run", "--suite", str(suite), "--work-dir", str(tmp_path)]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while not (tools := list(_children_in(tmp_path))):
            assert time.monotonic() < deadline and running.poll() is None, "the self-test did not begin"
            time.sleep(0.1)
        assert [limits(pid) for pid in tools] == [limits("self")] * len(tools)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(180)


def _children_in(folder: Path) -> Iterator[int]:
    """Processes that work in a folder below ``folder`` named scratch: a campaign's tools."""
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            place = entry.readlink()
            if place.is_relative_to(folder) and "scratch" in place.parts:
                yield int(entry.parent.name)


def test_manifests_suites_roles_and_templates_travel(installed: Path, tmp_path: Path) -> None:
    listed = subprocess.run([installed, "workloads", "--format", "json"], capture_output=True, text=True, cwd=tmp_path)
    names = {m["name"] for m in json.loads(listed.stdout)}
    assert names == {p.stem for p in (ROOT / "workloads").glob("*.yml")}
    (site,) = (installed.parents[1] / "lib").glob("python*/site-packages")
    for folder in ("workloads", "playbooks", "parsers", "planner", "reports"):
        assert not (site / folder).exists(), f"site-packages gains {folder}, which is no name of ours"
        ours = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts}
        assert ours and all((site / "fleetmark" / p).exists() for p in ours), f"{folder} travels incomplete"
