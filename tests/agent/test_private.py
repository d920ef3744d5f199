"""Test the check of folders: it refuses a folder if another user can replace any folder above it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fleetmark.hosts.agent import agent_module
from tests.agent.job import Job, step

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


@pytest.fixture
def private() -> ModuleType:
    return agent_module("private")


def opened(private: ModuleType, path: Path, create: bool = True) -> os.stat_result:
    handle = private.open_private(str(path), create)
    try:
        return os.fstat(handle)
    finally:
        os.close(handle)


def test_missing_folders_are_created_the_last_one_for_this_user_alone(private: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    with pytest.raises(FileNotFoundError):
        opened(private, path, create=False)
    assert not path.parent.exists()
    assert stat.S_IMODE(opened(private, path).st_mode) == 0o700
    assert not path.parent.stat().st_mode & 0o022
    assert opened(private, path, create=False).st_ino == path.stat().st_ino


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "its group can write above it": (
        lambda above: above.chmod(0o770),
        "{above}: every member of its group can replace {above}/work; run `chmod g-w {above}` or `chmod +t {above}`",
    ),
    "everybody can write above it": (
        lambda above: above.chmod(0o777),
        "{above}: every user can replace {above}/work; run `chmod go-w {above}`",
    ),
    "its group can write in it": (
        lambda above: (above / "work").chmod(0o770),
        "{above}/work: other users can write in it; run `chmod go-w {above}/work`",
    ),
}
GIVEN_AWAY: dict[str, tuple[Callable[[Path], None], str]] = {
    "another user owns the folder above": (give_away, "{above}: uid 65534 owns it and can replace {above}/work"),
    "another user owns the sticky folder above": (
        lambda above: (above.chmod(0o1777), give_away(above))[1],
        "{above}: uid 65534 owns it and can replace {above}/work",
    ),
    "another user owns it": (lambda above: give_away(above / "work"), "{above}/work: it belongs to uid 65534"),
    "another user was first in a sticky folder": (
        lambda above: (above.chmod(0o1777), give_away(above / "work"))[1],
        "{above}/work: it belongs to uid 65534",
    ),
}


def refuses(private: ModuleType, path: Path, message: str) -> None:
    with pytest.raises(private.NotPrivate) as error:
        opened(private, path)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("way", REFUSED)
def test_a_folder_that_others_can_change_is_refused(private: ModuleType, tmp_path: Path, way: str) -> None:
    spoil, message = REFUSED[way]
    above = tmp_path / "above"
    opened(private, above / "work")
    spoil(above)
    refuses(private, above / "work", message.format(above=above))


@needs_root
@pytest.mark.parametrize("way", GIVEN_AWAY)
def test_a_folder_of_another_user_is_refused(private: ModuleType, tmp_path: Path, way: str) -> None:
    spoil, message = GIVEN_AWAY[way]
    above = tmp_path / "above"
    opened(private, above / "work")
    spoil(above)
    refuses(private, above / "work", message.format(above=above))


def test_the_whole_path_is_checked_not_only_the_folder_above(private: ModuleType, tmp_path: Path) -> None:
    opened(private, tmp_path / "open" / "a" / "b" / "work")
    (tmp_path / "open").chmod(0o775)
    refuses(private, tmp_path / "open" / "a" / "b" / "work", f"{tmp_path}/open: every member of its group can replace")


def test_a_sticky_folder_keeps_others_from_replacing_ours(private: ModuleType, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert stat.S_IMODE(opened(private, tmp_path / "work").st_mode) == 0o700


def test_links_above_are_followed_where_nobody_else_can_change_them(private: ModuleType, tmp_path: Path) -> None:
    real = tmp_path / "real"
    opened(private, real / "work")
    (tmp_path / "link").symlink_to("other/../real")
    (tmp_path / "other").symlink_to(tmp_path / "real")
    (tmp_path / "round").symlink_to("round")
    assert opened(private, tmp_path / "link" / "work").st_ino == (real / "work").stat().st_ino
    refuses(private, tmp_path / "other", f"{tmp_path}/other: not a folder")
    with pytest.raises(OSError, match="symbolic links"):
        opened(private, tmp_path / "round" / "work")
    (tmp_path / "file").touch()
    refuses(private, tmp_path / "file" / "work", f"{tmp_path}/file: not a folder")
    real.chmod(0o770)
    refuses(private, tmp_path / "link" / "work", f"{real}: every member of its group can replace")


@needs_root
def test_a_link_of_another_user_is_not_followed(private: ModuleType, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    opened(private, tmp_path / "real" / "work")
    (tmp_path / "link").symlink_to("real")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    refuses(private, tmp_path / "link" / "work", f"{tmp_path}/link: it belongs to uid 65534")


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    private: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the folder is opened relative to its parent's descriptor, so that the kernel refuses the symlink."""
    opened(private, tmp_path / "work")
    look = os.stat

    def swapped(path: str, **options: object) -> os.stat_result:
        info = look(path, **options)  # type: ignore[call-overload]
        if path == "work":
            (tmp_path / "work").rename(tmp_path / "moved")
            (tmp_path / "work").symlink_to("moved")
        return info  # type: ignore[no-any-return]

    monkeypatch.setattr(os, "stat", swapped)
    with pytest.raises(OSError, match="Not a directory|symbolic links"):
        opened(private, tmp_path / "work")


@pytest.mark.job
def test_a_job_in_a_folder_that_its_group_can_replace_is_not_started(tmp_path: Path) -> None:
    above = tmp_path / "project"
    above.mkdir()
    above.chmod(0o770)
    answer = Job(above / "work", [step(0, ["true"])]).start()
    assert answer["state"] == "error"
    assert answer["error"].startswith(f"{above}: every member of its group can replace {above}/work; run `chmod g-w")
    assert not (above / "work" / "jobs").exists()
