"""Test that the figures of a comparison are the same in every format."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import openpyxl
import pytest

from fleetmark.reports.formats import html, markdown, pdf, xlsx
from fleetmark.reports.formats import json as json_format
from fleetmark.reports.kit import format as fmt
from tests.reports import fleet, rendered
from tests.reports.compared import ENGLISH, compared, document, front_of
from tests.reports.pages import Page, on_paper
from tests.reports.shown import shown


@pytest.fixture(scope="module")
def compared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    fleet.fleet(root)
    return root


@pytest.mark.parametrize("options", [{}, {"mix": "cpu-int=0.6,disk-iops=0.2,mem-bw=0.2"}, {"per": "money"}])
def test_a_comparisons_first_screen_reads_alike(compared_root: Path, tmp_path: Path, options: dict[str, str]) -> None:
    seen = compared(compared_root, values=True, **options)
    first, report = front_of(seen), document(seen)
    page = " ".join(Page(html.render(report, ENGLISH)).words.split())
    paper = " ".join(on_paper(pdf.render(report, ENGLISH), tmp_path).split())
    md = " ".join(markdown.render(report, ENGLISH).replace("\\", "").split())
    text = " ".join(rendered.shown(report).split())
    doc = json.loads(json_format.render(report))["answer"]
    workbook = openpyxl.load_workbook(io.BytesIO(xlsx.render(report, ENGLISH)), data_only=True)
    readme = " ".join(str(c.value) for row in workbook.worksheets[0].iter_rows() for c in row if c.value)
    sentences = [first.answer, first.basis, first.bought, *first.worse, *(r.text for r in first.before), *first.legend]
    for sentence in filter(None, sentences):
        for form in (page, md, text, readme):
            assert " ".join(sentence.split()) in form, sentence
    slow = next(r.text for r in first.before if "slower than its peers" in r.text)
    assert page.index(slow) < page.index("class of work")  # on the first screen
    assert " ".join(first.answer.split()) in paper and first.answer == doc["sentence"]
    assert all(w in doc["gets_worse"] for w in first.worse)
    assert len(first.lines) == 5 + ("mix" in options)
    for line, entry in zip(first.lines, doc["classes"], strict=True):
        assert entry["title"] == line.title
        for candidate, cell in zip(first.candidates, line.cells, strict=True):
            for form in (page, md, text):
                assert cell.amount in form, (line.title, candidate)
                assert not cell.needed or cell.needed in form
            assert cell.ratio in paper and cell.interval in paper and cell.servers in paper
            assert entry["candidates"][candidate]["ratio"] == cell.ratio
    in_book = {
        shown(c.value, c.number_format)
        for row in workbook["Conversion"].iter_rows()
        for c in row
        if isinstance(c.value, int | float) and re.fullmatch(r"(\[>=[\d.]+\])?[#0,.%]+(;.*)?", c.number_format)
    }
    for line in first.lines:
        for cell in line.cells:
            assert cell.ratio in in_book, line.title
            # The tab divides by what the ratio is per; servers of a ratio per money are in the tab Answer.
            assert not cell.servers or "per" in options or cell.servers in in_book, line.title


@pytest.mark.parametrize("ratio", [0.0042, 0.0321, 0.835, 1.0, 3.985, 99.996, 999.4, 1234.5])
def test_a_ratio_and_its_form_round_alike(ratio: float) -> None:
    assert fmt.ratio(ratio) == shown(ratio, fmt.RATIO_FORM)
    assert float(fmt.ratio(ratio).replace(",", "")) == pytest.approx(ratio, rel=0.02)
