"""Test documents in brief: one page each, nothing beyond the margins, every part, and the figures of the document."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetmark.base.text import message
from fleetmark.cli.app import app
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.comparison.document import document as comparison_document
from fleetmark.reports.formats import brief
from fleetmark.reports.kit import drawing
from fleetmark.reports.kit.document import Brief, Command, Document
from fleetmark.reports.kit.language import Language, language
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from tests.commands import run
from tests.fleets import sick
from tests.reports import plan_sample, sample
from tests.reports.kinds import KINDS
from tests.reports.papers import compared

pytestmark = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs poppler-utils")
_PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">')
_WORD = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">')
SIZES: dict[brief.Sheet, tuple[int, int]] = {"page": (595, 842), "slide": (720, 405)}  # points: A4, 16:9
MARGIN = 20.0  # points


def _long() -> Document:
    """Return a document whose every text is too long for a page."""
    text = message(
        "a sentence about a very-long-host-name-without-any-space-in-it-0123456789012345678901234567890 " * 9
    )
    column = [Column(f"c{n}", f"a candidate with a long name {n}", "number" if n else "name") for n in range(17)]
    rows = tuple(tuple(Cell(f"{n}.25 (12,345.67–23,456.78)") for n in range(17)) for _ in range(60))
    parts = (text,) * 30
    return Document(
        title=text,
        answer=text,
        sections=(),
        details=parts,
        brief=Brief(
            question=text,
            table=Tabular("t", "t", tuple(column), rows),
            cost=parts,
            worse=parts,
            missing=parts,
            certainty=parts,
            steps=(Command(text, str(text)),) * 9,
        ),
    )


def _eight_sides(root: Path) -> Document:
    sides = tuple(f"a-generation-with-a-long-name-{n}" for n in range(8))
    return comparison_document(compared(root, "{gen}-{n}", sides), Language())


DOCUMENTS: dict[str, Callable[[Path], Document]] = {
    "too long": lambda _: _long(),
    "eight sides": _eight_sides,
    "three sides": KINDS["comparison of three sides"],
    "campaign": lambda _: campaign_report.document(sample.renamed(sample.six(), sample.HOSTILE)),
    "diagnosis": KINDS["diagnosis"],
    "plan": KINDS["plan"],
    "no plan": KINDS["plan refused"],
}


def faults(document: bytes, sheet: brief.Sheet, folder: Path) -> list[str]:
    """Return how a file differs from one page of the sheet's size with all words within its margins."""
    path = folder / "brief.pdf"
    path.write_bytes(document)
    out = subprocess.run(["pdftotext", "-bbox", path, "-"], check=True, capture_output=True, text=True).stdout
    sizes = [(round(float(w)), round(float(h))) for w, h in _PAGE.findall(out)]
    matches = [] if sizes == [SIZES[sheet]] else [f"pages {sizes}"]
    width, height = SIZES[sheet]
    for box in _WORD.findall(out):
        left, top, right, bottom = map(float, box)
        if left < MARGIN or top < MARGIN / 2 or right > width - MARGIN or bottom > height - MARGIN / 4:
            matches.append(f"a word at {left:.0f}, {top:.0f} to {right:.0f}, {bottom:.0f}")
    return matches


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_and_a_slide_hold_everything(name: str, tmp_path: Path) -> None:
    document = DOCUMENTS[name](tmp_path)
    for code in ("en", "zh-CN") if name == "eight sides" else ("en",):
        for sheet in SIZES:
            assert faults(brief.render(document, sheet, language(code)), sheet, tmp_path) == [], (code, sheet)


def test_the_measure_sees_a_second_page_and_a_wide_table(tmp_path: Path) -> None:
    from fleetmark.reports.formats import pdf

    page = "<style>@page{size:A4;margin:15mm}</style><p style='break-after:page'>one</p><p>two</p>"
    assert faults(pdf.of_html(page), "page", tmp_path)
    wide = "<style>@page{size:A4;margin:15mm}</style><p style='white-space:nowrap'>" + "a wide line " * 40
    assert faults(pdf.of_html(wide), "page", tmp_path)


def test_the_lines_of_drawings_fit(tmp_path: Path) -> None:
    for name, document in (("long", _long()), ("plan", KINDS["plan"](tmp_path))):
        for file, svg in brief.drawings(document, Language()).items():
            root = ET.fromstring(svg)
            assert root.get("width") == str(drawing.WIDTH), (name, file)
            height = float(root.get("height") or 0)
            for line in root.iter("{http://www.w3.org/2000/svg}text"):
                size, x = float(line.get("font-size") or 0), float(line.get("x") or 0)
                length = drawing.width(line.text or "") * size
                end = line.get("text-anchor") == "end"
                assert (x - length if end else 0) >= -1 and (x if end else x + length) <= drawing.WIDTH, line.text
                assert 0 < float(line.get("y") or 0) <= height


def test_every_text_of_a_drawing_is_complete() -> None:
    text = "words 中文 and a-very-long-name-0123456789012345678901234567890123456789012345678901234567890123456789"
    lines = drawing.wrapped(text, 15, 200)
    assert "".join("".join(lines).split()) == "".join(text.split()) and len(lines) > 2
    assert all(drawing.width(line) * 15 <= 200 for line in lines)


def test_a_brief_answers_the_questions(tmp_path: Path) -> None:
    document = KINDS["comparison of three sides"](tmp_path)
    shown = document.brief
    assert shown is not None
    assert shown.question == "How many icelake servers does one server of each replace: genoa, turin?"
    assert any("EUR" in line for line in shown.cost)
    assert any("memory latency" in line for line in shown.worse)
    assert "power" in " ".join(shown.missing) and shown.certainty and shown.steps
    path = tmp_path / "page.pdf"
    path.write_bytes(brief.render(document, "page", Language()))
    text = subprocess.run(["pdftotext", "-layout", path, "-"], check=True, capture_output=True, text=True).stdout
    squeezed = "".join(text.split())
    for part in (document.answer, *shown.cost[:3], shown.worse[0], *shown.missing):
        assert "".join(str(part).split()) in squeezed, part


def test_without_prices_the_brief_says_how_to_get_costs(tmp_path: Path) -> None:
    shown = comparison_document(compared(tmp_path), Language()).brief
    assert shown is not None and shown.cost[0].startswith("No prices were given")


def test_a_plan_names_its_first_order(tmp_path: Path) -> None:
    document = KINDS["plan"](tmp_path)
    assert document.brief is not None
    assert "Nothing to order before 2027-Q2" in document.brief.steps[0].text
    q = plan_sample.question()
    assert q.currency in document.brief.cost[0]
    assert document.brief.missing[0].endswith(" worth values not measured")


def test_commands_write_the_files(tmp_path: Path) -> None:
    sick(tmp_path)
    folder = tmp_path / "brief"
    for words in (["report", "last"], ["diagnose", "last"]):
        done = CliRunner().invoke(app, [*words, "--brief", str(folder), "--results", str(tmp_path)])
        assert done.exit_code in (0, 1) and f"wrote {folder / 'page.pdf'}" in done.output, done.output
        assert {"page.pdf", "slide.pdf", "answer.svg", "next-step.svg"} <= {p.name for p in folder.iterdir()}
        assert not (tmp_path / "20260101T000000-x" / "summary.html").exists()
    assert "page.pdf" in run(tmp_path, "report", "last", "--brief", str(folder))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    sick(tmp_path)
    (tmp_path / "brief.pdf").write_text("")
    words = ["report", "last", "--brief", str(tmp_path / "brief.pdf"), "--results", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert "choose a folder" in str(done.exception or done.output)


def test_a_document_without_a_brief_is_its_answer(tmp_path: Path) -> None:
    document = replace(_long(), brief=None, title="a title", answer="an answer")
    assert faults(brief.render(document, "page", Language()), "page", tmp_path) == []
    assert "an answer" in brief.drawings(document, Language())["answer.svg"]
