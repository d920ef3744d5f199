"""Lines break between characters of a script without spaces, and keep its marks where they belong."""

from __future__ import annotations

import io
import itertools

import pytest
from rich.cells import cell_len
from rich.text import Text

from fleetmark.base.lines import breaks, spaceless
from fleetmark.base.terminal import Terminal

CHINESE = "若不购买，现有服务器从 2027-Q3 起无法满足需求中位数；最坏的故障域失效时只满足其 41%（其中 370 台已到年限）。"


def lines(text: str, width: int) -> list[str]:
    ends = [0, *breaks(text, width), len(text)]
    return [text[first:last] for first, last in itertools.pairwise(ends)]


@pytest.mark.parametrize("width", [20, 33, 40, 80])
def test_lines_are_full_and_marks_stay(width: int) -> None:
    parts = lines(CHINESE, width)
    assert "".join(parts) == CHINESE
    assert max(cell_len(part.rstrip()) for part in parts) <= width
    assert min(cell_len(part.rstrip()) for part in parts[:-1]) >= width - len("2027-Q3 ")
    assert not [part for part in parts if part[0] in "，；。）%" or part.rstrip()[-1] in "（"]


def test_english_breaks_at_spaces_and_a_long_word_stays_one() -> None:
    assert lines("to be or not to be", 8) == ["to be or ", "not to ", "be"]
    assert lines("a" * 30, 8) == ["a" * 30]
    assert not spaceless("to be") and spaceless(CHINESE)


def test_the_terminal_fills_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", stream := io.StringIO())
    monkeypatch.setenv("COLUMNS", "40")
    Terminal().print(Text(CHINESE, style="bold"))
    shown = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert shown == [part.rstrip() for part in lines(CHINESE, 40)]
