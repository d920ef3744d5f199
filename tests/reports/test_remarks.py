"""Notes of passed runs: each once, counted, and the same sentence in every format and language."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from fleetmark.base.measurement import Status
from fleetmark.record.results import Results
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.remarks import FEW, MOST, listed, remarks
from fleetmark.reports.formats import html, markdown, pdf, xlsx
from fleetmark.reports.kit.language import Language, language
from tests.reports import rendered, sample
from tests.reports.pages import Page, on_paper

SKIPPED = "skipped mm/tf32: the device has no tf32"


def noted(*notes: str) -> Results:
    """Two hosts of two runs: the first says all of ``notes``, the second the first of them, one that failed too."""
    results = sample.tiny({"h1": [1.0, 2.0], "h2": [3.0, 4.0]}, ended=[("h1", Status.FAILED, "no")])
    said_by = {("h1", 0): list(notes), ("h2", 1): list(notes[:1]), ("h1", 90): ["of a failed run"]}
    outcomes = results.outcomes
    column = [said_by.get((h, r), []) for h, r in zip(outcomes["host"], outcomes["repeat"], strict=True)]
    return replace(results, outcomes=outcomes.assign(notes=column))


def test_alike_notes_of_passed_runs_are_one() -> None:
    shown = remarks(noted(SKIPPED, "z: 1.42 s lost", "a bit was lost", "z: 1.47 s lost"))
    assert list(map(str, listed(shown))) == [
        f"{SKIPPED} (2 runs of stream on h1, h2)",
        "z: 1.42 s lost (1 run of stream on h1)",
        "a bit was lost (1 run of stream on h1)",
    ]
    assert remarks(sample.one()).total == remarks(noted()).total == 0


@pytest.mark.parametrize("code", ["en", "zh-CN"])
def test_every_format_shows_them(code: str) -> None:
    evil = "evil <script>x</script> {0} \x1b[31m|*_ " + "x " * 150
    results, spoken = noted(SKIPPED, evil), language(code)
    shown, notes = document(results, spoken), listed(remarks(results))
    first, second = (" ".join(spoken(line).split()) for line in notes)
    assert SKIPPED in first and ("2 runs" in first) == (code == "en") and len(second) < 300 and "\x1b" not in second
    page = " ".join(Page(html.render(shown, spoken)).words.split())
    md = " ".join(markdown.render(shown, spoken).replace("\\", "").replace("&lt;", "<").split())
    text = " ".join(rendered.shown(shown, language=spoken).split())
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render(shown, spoken)))
    cells = [str(c.value) for row in book.worksheets[0].iter_rows() for c in row if c.value]
    for sentence in (first, second):
        assert sentence in page and sentence in md and sentence in text, sentence
        assert sentence in [" ".join(cell.split()) for cell in cells]
    assert "<script>x" not in html.render(shown, spoken)
    assert str(notes[0]) in rendered.in_json(shown)["remarks"][0]["notes"]


def test_paper_has_them(tmp_path: Path) -> None:
    paper = on_paper(pdf.render(document(noted(SKIPPED)), Language()), tmp_path)
    assert f"{SKIPPED} (2 runs of stream on h1, h2)" in " ".join(paper.split())


def test_more_than_a_few_are_counted() -> None:
    shown = document(noted(*(f"note {n:03d}" for n in range(MOST + 5))))
    text = rendered.shown(shown)
    assert text.count("note 0") == FEW and f"and {MOST + 5 - FEW} more" in text
    md = markdown.render(shown, Language())
    assert md.count("- note 0") == MOST and "and 5 more" in md
