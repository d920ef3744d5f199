"""The version follows from the tag and the commit; an sdist keeps that of the source it was made from."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("version_script", ROOT / "scripts" / "version.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(folder, "rev-parse", "--short=8", "HEAD")


def test_the_version_follows_from_tag_and_commit(script: ModuleType, tmp_path: Path) -> None:
    assert script.version(tmp_path) == "0.2.0.dev0"
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: fleetmark\nVersion: 0.3.1\n\nVersion: 9\n")
    assert script.version(tmp_path) == "0.3.1"
    git(tmp_path, "init", "-q")
    first = commit(tmp_path)
    assert script.version(tmp_path) == f"0.2.0.dev0+g{first}"
    git(tmp_path, "tag", "v0.2.0rc1")
    assert script.version(tmp_path) == "0.2.0rc1"
    later = commit(tmp_path)
    assert script.version(tmp_path) == f"0.2.0.dev1+g{later}"
    git(tmp_path, "tag", "v0.2.0")
    assert script.version(tmp_path) == "0.2.0"
    later = commit(tmp_path)
    assert script.version(tmp_path) == f"0.2.1.dev1+g{later}"
    git(tmp_path, "tag", "v3-old-name")
    with pytest.raises(ValueError, match="v3-old-name is not a version"):
        script.version(tmp_path)
