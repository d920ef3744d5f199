"""Test a resumed campaign in a results root that others can write to. Only one job runs on this machine at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.selftests import CAMPAIGN, measured_here
from tests.watch import content


@pytest.mark.job
def test_a_resumed_campaign_writes_through_no_link(tmp_path: Path) -> None:
    """Make the step due again, so that each folder above the raw files is created and filled again."""
    root = tmp_path / "root"
    measured_here(root)
    campaign = root / CAMPAIGN
    for name in ("raw", "raw/localhost", "raw/localhost/selftest", "journal.jsonl", "controller.lock", "judged.jsonl"):
        copy = tmp_path / "copy" / CAMPAIGN
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(campaign, copy, symlinks=True)
        victim = tmp_path / "victim"
        shutil.rmtree(victim, ignore_errors=True)
        victim.mkdir()
        (victim / "file").write_text("precious\n")
        for path in (copy / "raw", copy / "journal.jsonl"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).unlink(missing_ok=True)
        (copy / name).symlink_to(victim / ("" if name.startswith("raw") else "file"))
        held = content(victim)
        words = [sys.executable, "-c", "from fleetmark.cli import main; main()", "run", "--resume", str(copy)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert content(victim) == held, name
        assert [path.name for path in victim.iterdir()] == ["file"], name
        assert "Traceback" not in done.stderr
