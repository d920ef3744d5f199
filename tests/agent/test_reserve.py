"""The room that a job keeps for itself on the disk: taken at once, also where a file system cannot reserve any."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).parents[2] / "playbooks" / "agent"
SIZE = 1 << 16


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(AGENT))
    import files  # type: ignore[import-not-found]

    return files


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refused(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refused)


@pytest.mark.parametrize("number", [None, errno.EOPNOTSUPP, errno.EINVAL])
def test_room_is_taken(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    if number:
        refuse(monkeypatch, number)
    file = tmp_path / "reserve"
    with file.open("wb") as reserve:
        files.hold(reserve, SIZE)
    assert file.stat().st_size == SIZE
    if not number:  # zeros that are written may be packed, or wait for a sync
        assert file.stat().st_blocks * 512 >= SIZE


def test_a_full_disk_is_said(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, errno.ENOSPC)
    with (tmp_path / "reserve").open("wb") as reserve, pytest.raises(OSError, match="No space left"):
        files.hold(reserve, SIZE)
