"""Archives of every version since 0.1.0 are read, rebuilt and compared; those of newer versions are refused.

``tests/archives/VERSION.tar.xz`` was recorded by that version: ``0.1.0-first`` by its first commit that ran campaigns,
``0.1.0`` by its last one. A release adds its own.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fleetmark.record.archive import Archive
from tests.commands import refused, run

HOUSE = Path(__file__).parents[1]
FILES = sorted((HOUSE / "tests" / "archives").glob("*.tar.xz"))
# STREAM's two triad rates (MB/s) in the raw output, and the number of values that the version stored.
RECORDED = {
    "0.1.0-first": ([250357.3, 234757.9], 32),
    "0.1.0": ([72377.4, 46992.4], 34),
    "0.2.0": ([64465.0, 68348.2], 34),
}


def unpacked(name: str, root: Path) -> Archive:
    shutil.unpack_archive(HOUSE / "tests" / "archives" / f"{name}.tar.xz", root)
    (campaign,) = root.glob("*/campaign.json")
    return Archive(campaign.parent)


def values(archive: Archive) -> pd.DataFrame:
    frame = pd.read_parquet(archive.path / "measurements.parquet")
    keys = ["host", "workload", "case", "metric", "labels", "repeat", "value", "unit"]
    return frame[keys].sort_values(keys[:-2]).reset_index(drop=True)


def test_every_released_version_has_an_archive() -> None:
    names = {file.name.removesuffix(".tar.xz") for file in FILES}
    assert names == RECORDED.keys()
    released = re.findall(r"^## (\d+\.\d+\.\d+)", (HOUSE / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert set(released) <= names, "record an archive with the new version, and add it here"


@pytest.mark.parametrize("name", RECORDED)
def test_an_archive_is_read_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    archive = unpacked(name, tmp_path)
    assert archive.campaign()["versions"]["fleetmark"] == name.partition("-")[0]
    rates, count = RECORDED[name]
    recorded = values(archive)
    triad = recorded[(recorded["workload"] == "stream") & (recorded["metric"] == "triad")]
    assert sorted(triad["value"] / 1e6) == pytest.approx(sorted(rates), rel=1e-12) and len(recorded) == count
    assert archive.id in run(tmp_path, "campaigns")
    report = json.loads(run(tmp_path, "report", "last", "--format", "json"))
    assert report["campaign"] == archive.id and report["finished"]
    run(tmp_path, "rebuild", "last")
    pd.testing.assert_frame_equal(values(archive), recorded)


def test_versions_are_compared_with_each_other(tmp_path: Path) -> None:
    old, new = (unpacked(name, tmp_path / name) for name in ("0.1.0", "0.2.0"))
    for archive in (old, new):
        archive.path.rename(tmp_path / archive.id)
    text = run(tmp_path, "compare", "-b", f"campaign={old.id}", "-c", f"campaign={new.id}")
    ratio = (64465.0 * 68348.2 / (72377.4 * 46992.4)) ** 0.5
    assert f"{ratio:.2f}" == "1.14" and "is 1.14 (" in " ".join(text.split())


@pytest.mark.parametrize(
    "words",
    [["report", "last"], ["verify", "last"], ["rebuild", "last"], ["diagnose", "last"], ["run", "--resume", "last"]],
)
def test_a_newer_archive_is_refused_with_a_sentence(words: list[str], tmp_path: Path) -> None:
    archive = unpacked("0.2.0", tmp_path)
    file = archive.path / "campaign.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 2}))
    before = {path: path.read_bytes() for path in archive.path.rglob("*") if path.is_file()}
    assert "schema 2 is not supported by this version of Fleetmark (1); update Fleetmark" in refused(tmp_path, *words)
    assert {path: path.read_bytes() for path in archive.path.rglob("*") if path.is_file()} == before
