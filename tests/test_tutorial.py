"""The tutorial for Python: every block runs, in order, and prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook import BLOCK, PAGE, printed, refreshed


def test_every_block_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert len(BLOCK.findall(page)) == page.count("```python") > 10 and page.count("```text") > 10
    assert refreshed(page, tmp_path) == page, "write it anew: python -m tests.notebook"
    assert (tmp_path / "genoa.html").stat().st_size > 100_000 and (tmp_path / "genoa.xlsx").exists()


def test_another_output_and_a_failing_block_are_seen(tmp_path: Path) -> None:
    shown = "```python\nx = 2\nx * 3\n```\n\n```text\n6\n```\n"
    assert refreshed(shown, tmp_path / "a") == shown != refreshed(shown.replace("* 3", "* 4"), tmp_path / "b")
    assert printed("x = 2", {}) == printed("None", {}) == ""
    with pytest.raises(NameError):
        printed("nothing_of_that_name", {})
