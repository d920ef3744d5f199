"""The documentation is short: pages, sentences and table cells have limits (`tests/documentation/text.py` counts)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.text import DOCS, HOUSE, PAGES, cells, prose, sentences

REFERENCE = DOCS / "reference"
MOST_WORDS, README_WORDS, SENTENCE_WORDS, CELL_CHARACTERS = 1500, 400, 35, 200


def name(page: Path) -> str:
    return str(page.relative_to(HOUSE))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sentences_and_cells_are_short(page: Path) -> None:
    text = page.read_text("utf-8")
    long = [sentence for sentence in sentences(text) if len(sentence.split()) > SENTENCE_WORDS]
    wide = [cell for cell in cells(text) if len(cell) > CELL_CHARACTERS]
    assert not long and not wide, "\n".join([*long, *wide])


@pytest.mark.parametrize("page", [p for p in PAGES if not p.is_relative_to(REFERENCE)], ids=name)
def test_pages_that_are_read_from_top_to_bottom_are_short(page: Path) -> None:
    words = len(prose(page.read_text("utf-8")).split())
    assert words <= (README_WORDS if page.name == "README.md" else MOST_WORDS)


def test_the_changelog_fits_on_a_page() -> None:
    text = (HOUSE / "CHANGELOG.md").read_text("utf-8")
    entries = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(entries) <= 70 and all(len(entry) <= 200 for entry in entries)


def test_what_is_long_is_seen() -> None:
    text = (
        "One `a b c` two. Three\nfour.\n\n- five\n- six. Seven\n\n| a | b c |\n|-|-|\n| d. E | f |\n\n    code. More\n"
    )
    assert sentences(text) == [
        *("One `code` two.", "Three four.", "- five", "- six.", "Seven"),
        *("a", "b c", "d.", "E", "f"),
    ]
    assert list(cells("| a | `b \\| c` |\n|-|-|\n")) == ["a", "`b \\| c`"]
    assert len(sentences(" ".join(["word"] * 36) + ".")[0].split()) == 36
