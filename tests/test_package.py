"""``pip install .`` into an empty environment, not editable: everything travels, and it works anywhere on the disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("package")
    source = place / "source"  # a copy, so that building leaves nothing in the tree
    kept = shutil.ignore_patterns(".git", ".venv", "*.egg-info", "__pycache__", ".*_cache", "tests", "benchmarks")
    shutil.copytree(ROOT, source, ignore=kept)
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
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    doc = json.loads(done.stdout)
    assert {o["status"] for o in doc["outcomes"]} == {"passed"}
    assert len(doc["measurements"]) == 6
    page = Path(doc["page"])
    assert page.is_relative_to(tmp_path)
    assert page.read_text().startswith("<!doctype html>")


def test_manifests_suites_roles_and_templates_travel(installed: Path, tmp_path: Path) -> None:
    listed = subprocess.run([installed, "workloads", "--format", "json"], capture_output=True, text=True, cwd=tmp_path)
    names = {m["name"] for m in json.loads(listed.stdout)}
    assert names == {p.stem for p in (ROOT / "workloads").glob("*.yml")}
    (site,) = (installed.parents[1] / "lib").glob("python*/site-packages")
    for folder in ("fleetmark", "workloads", "playbooks", "parsers", "planner", "reports"):
        ours = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts}
        assert all((site / p).exists() for p in ours), f"{folder} travels incomplete"
