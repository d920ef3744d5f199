"""Files inside a folder: which of them are opened, and what a link out of it, or no file at all, ends in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fleetmark.base.inside import create_inside, open_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("password")
    campaign = tmp_path / "campaign"
    (campaign / "raw").mkdir(parents=True)
    (campaign / "raw" / "stdout").write_text("1.5")
    return campaign


def read(file: Path, root: Path) -> bytes:
    with open_inside(file, root) as source:
        return source.read()


def test_links_are_followed_as_long_as_they_stay_inside(root: Path) -> None:
    (root / "raw" / "link").symlink_to("stdout")
    (root / "folder").symlink_to("raw")
    assert read(root / "raw" / "stdout", root) == b"1.5"
    assert read(root / "raw" / "link", root) == b"1.5"
    assert read(root / "folder" / "link", root) == b"1.5"


def test_the_folder_may_itself_be_reached_by_a_link(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = root.with_name("last")
    last.symlink_to(root)
    assert read(last / "raw" / "stdout", last) == b"1.5"
    assert read(root / "raw" / "stdout", last) == b"1.5"
    monkeypatch.chdir(root)
    assert read(Path("raw/stdout"), Path()) == b"1.5"


def test_a_name_of_any_bytes_is_opened(root: Path) -> None:
    name = os.fsdecode(b"out\xff (deleted)")
    (root / "raw" / name).write_text("2.5")
    assert read(root / "raw" / name, root) == b"2.5"


@pytest.mark.parametrize("link", ["raw/link", "folder/secret", "raw/dots"])
def test_a_link_that_leads_out_is_not_followed(root: Path, link: str) -> None:
    (root / "raw" / "link").symlink_to(root.parent / "secret")
    (root / "folder").symlink_to(root.parent)
    (root / "raw" / "dots").symlink_to("../../secret")
    with pytest.raises(OSError, match="a symlink leads out of the campaign"):
        open_inside(root / link, root)


def test_a_folder_whose_name_begins_as_the_roots_is_outside(root: Path) -> None:
    other = root.with_name("campaign2")
    other.mkdir()
    (other / "stdout").touch()
    with pytest.raises(OSError, match="leads out"):
        open_inside(other / "stdout", root)


def test_what_is_no_plain_file_is_never_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")  # to open it for reading would wait for a writer
    (root / "null").symlink_to("/dev/null")
    for name in ("pipe", "raw"):
        with pytest.raises(OSError, match="it is not a regular file"):
            open_inside(root / name, root)
    with pytest.raises(OSError, match="leads out"):
        open_inside(root / "null", root)
    with pytest.raises(FileNotFoundError):
        open_inside(root / "absent", root)
    (root / "dangling").symlink_to("/nonexistent")
    with pytest.raises(OSError, match="a symlink in its path is broken"):  # it is not as if there were none
        open_inside(root / "dangling", root)
    left_open = [os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()]
    assert not [place for place in left_open if place.startswith(str(root))]


def test_a_new_file_is_its_owners_and_takes_no_place_of_another(tmp_path: Path) -> None:
    create_inside(tmp_path / "new", tmp_path, "text")
    assert (tmp_path / "new").read_text() == "text" and (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    for name in ("new", "dangling"):
        with pytest.raises(FileExistsError):
            create_inside(tmp_path / name, tmp_path, b"other")
    assert (tmp_path / "new").read_text() == "text" and not (tmp_path / "elsewhere").exists()
