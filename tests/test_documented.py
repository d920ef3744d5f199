"""The commands that the docs show exist: every verb, option, suite and workload's parameter that is named there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typed import refused

HOUSE = Path(__file__).parents[1]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
# Not those that are shown with what they are refused for.
COMMAND = re.compile(r"(?:^(?: {4})?(?:\$ )?|`)(fleetmark \S[^`\n]*)(?:`|$)(?!\n(?: {4})?fleetmark: )", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name if page.parent.name != "workloads" else page.stem)
def test_what_a_page_tells_to_type_exists(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    wrong = [f"{line}: {reason}" for line in COMMAND.findall(text) if (reason := refused(line))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("fleetmark run -w stream", "run has no option -w"),
        ("fleetmark hosts -s nosuch", "no suite nosuch"),
        ("fleetmark run --set fio.siez=1", "fio has no parameter siez"),
        ("fleetmark plan init --bad", "init has no option --bad"),
        ("fleetmark plan demand.yml --xlsx plan.xlsx", ""),
    ],
)
def test_what_does_not_exist_is_seen(line: str, reason: str) -> None:
    assert refused(line) == reason
