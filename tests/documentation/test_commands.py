"""Every command of the tutorials runs as it is written (`tests/documentation/stage.py` says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation import stage
from tests.documentation.text import HOUSE

JUDGED = {"diagnose", "gate", "history"}  # they end with 1 if something is slow, broken or changed


@pytest.mark.job
@pytest.mark.parametrize("page", [p for p in stage.PAGES if list(stage.commands(p))], ids=lambda p: p.stem)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    for command, status, output in stage.perform(page, tmp_path):
        assert "Traceback" not in output, f"{command.line}\n{output}"
        assert status in ((0, 1) if command.words[0] in JUDGED else (0,)), f"{command.line}\n{output}"


def test_commands_that_are_left_out_run_elsewhere() -> None:
    assert [place for place in stage.ELSEWHERE.values() if not list(HOUSE.glob(place))] == []


def test_commands_are_found_and_made_small() -> None:
    lines = [command.line for page in stage.PAGES for command in stage.commands(page)]
    assert len(lines) > 20 and "fleetmark diagnose last" in lines
    assert stage.small(["run", "-i", "h.yml", "--suite", "standard", "--set", "fio.size=1GiB", "--become"]) == [
        *("run", "-i", "h.yml", "--suite", "openssl_speed"),
        *stage.SMALL_RUN,
    ]
