"""No table of a PDF is wider than its page: the boxes of all words, as Poppler finds them."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.planner.capacity.answer import Answer
from fleetmark.reports.campaign.document import document as campaign_document
from fleetmark.reports.comparison.document import document as comparison_document
from fleetmark.reports.formats import pdf
from fleetmark.reports.formats.html import contents
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.paper import pieces
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from tests.reports import plan_sample, sample
from tests.reports.papers import compared

NARROW = Tabular("t", "t", tuple(Column(f"c{n}", "n", "number") for n in range(12)), ((Cell("1", 1.0),) * 12,))
BROAD = Tabular("t", "t", tuple(Column(f"c{n}", "n") for n in range(12)), ((Cell("a" * 20),) * 12,))


@pytest.mark.parametrize(("table", "wide"), [(NARROW, False), (BROAD, True)])
def test_a_table_that_fits_stays_upright_and_provenance_needs_no_page_of_its_own(table: Tabular, wide: bool) -> None:
    sections = [Section("a", "a", (table,)), Section("provenance", "p", (Note("x"),))]
    assert [content.wide for content in contents(sections, "pdf")] == [wide, wide]
    assert not any(content.wide for content in contents(sections, "html"))


pytestmark = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs poppler-utils")

MARGIN = 30.0  # points; 13 mm are 36.8
Word = tuple[float, float, float, float, str]
_PAGE = re.compile(r'<page width="([\d.]+)"[^>]*>(.*?)</page>', re.S)
_WORD = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>')


def words(document: bytes, folder: Path) -> Iterator[tuple[int, float, list[Word]]]:
    """Number, width and words of each page."""
    path = folder / "document.pdf"
    path.write_bytes(document)
    out = subprocess.run(["pdftotext", "-bbox", path, "-"], check=True, capture_output=True, text=True).stdout
    for number, (width, content) in enumerate(_PAGE.findall(out), 1):
        boxes = [(float(a), float(b), float(c), float(d), html.unescape(t)) for a, b, c, d, t in _WORD.findall(content)]
        yield number, float(width), boxes


def faults(document: bytes, folder: Path) -> list[str]:
    """Words beyond the margins, and words printed over each other by more than four points."""
    overlaps = []
    for number, width, boxes in words(document, folder):
        for n, (left, top, right, bottom, text) in enumerate(boxes):
            if left < MARGIN or right > width - MARGIN:
                overlaps.append(f"page {number}: {text} from {left:.0f} to {right:.0f} of {width:.0f}")
            for x, y, end, below, other in boxes[n + 1 :]:
                shared, height = min(right, end) - max(left, x), min(bottom, below) - max(top, y)
                if shared > 4 and height > 0.5 * min(bottom - top, below - y):
                    overlaps.append(f"page {number}: {text} over {other}")
    return overlaps


def rendered(document: Document) -> bytes:
    return pdf.render(document, Language())


def test_the_measure_sees_a_table_that_is_too_wide(tmp_path: Path) -> None:
    cells = "".join(f"<td style='white-space:nowrap'>a wide cell {n}</td>" for n in range(40))
    page = f"<style>@page{{size:A4;margin:13mm}}</style><table><tr>{cells}</tr></table>"
    assert faults(pdf.of_html(page), tmp_path)


def test_names_of_facts_are_not_broken_within_a_word(tmp_path: Path) -> None:
    """Render one host whose mitigations are long: the names of facts keep their width beside them."""
    document = campaign_document(sample.one())
    (hosts,) = [s for s in document.sections_for("pdf") if s.key == "hosts"]
    names = {
        word for t in hosts.exhibits if isinstance(t, Tabular) for row in t.rows for word in str(row[0].text).split()
    }
    assert {"Microcode", "Transparent"} <= names
    printed = {word[4] for _, _, page in words(rendered(document), tmp_path) for word in page}
    assert names - printed == set()


def test_words_of_headings_and_periods_are_not_broken(tmp_path: Path) -> None:
    q = plan_sample.question()
    document = plan_sample.document(Answer(q, plan_sample.plan(q)))
    tables = [e for s in document.sections_for("pdf") for e in s.exhibits if isinstance(e, Tabular)]
    numbers = {word for t in tables for c in t.for_format("pdf").columns if c.right for word in c.title.split()}
    expected = {word for word in numbers if len(word) <= 12 and "," not in word} | set(map(str, q.periods))
    assert {"servers", "capacity"} <= expected
    printed = {word[4] for _, _, page in words(rendered(document), tmp_path) for word in page}
    assert expected - printed == set()


def test_a_comparison_with_eight_sides(tmp_path: Path) -> None:
    sides = tuple(f"generation-{n}" for n in range(8))
    report = comparison_document(compared(tmp_path, "{gen}-{n}", sides), Language(), has_appendix=True)
    assert faults(rendered(report), tmp_path) == []


def test_a_plan_with_long_names_and_large_figures(tmp_path: Path) -> None:
    q = plan_sample.question()
    long = {name: f"{name}-checkout-and-recommendations" for name in q.workloads}
    workloads = {
        long[name]: replace(work, name=long[name], point=tuple(1e3 * x for x in work.point))
        for name, work in q.workloads.items()
    }
    skus = {
        name: replace(
            sku, worth={long[w]: replace(x, value=1e3 * x.value) for w, x in sku.worth.items()}, price=sku.price
        )
        for name, sku in q.skus.items()
    }
    p = plan_sample.plan(q)
    plan = replace(p, use=p.use.replace({"workload": long}), margin={long[w]: x for w, x in p.margin.items()})
    report = plan_sample.document(Answer(replace(q, workloads=workloads, skus=skus), plan))
    assert faults(rendered(report), tmp_path) == []


def wide(columns: int) -> Tabular:
    """A table like one of published results: names, then columns of figures with intervals in groups of two."""
    heads = [Column("host", "host", "name"), Column("side", "side", "side")]
    heads += [Column(f"c{n}", f"scenario {n}", "number", group=f"group {n // 2}") for n in range(columns)]
    cells = [Cell(f"1,23{n % 10}.5 samples/s", 1.0, ends="1,200-1,300") for n in range(columns)]
    rows = tuple((Cell(f"submitter-{n}-of-a-long-name"), Cell("NVIDIA H200-SXM-141GB x8"), *cells) for n in range(3))
    return Tabular("published", "Published", tuple(heads), rows)


@pytest.mark.parametrize("columns", [4, 8, 30])
def test_a_wide_table_of_published_results(columns: int, tmp_path: Path) -> None:
    table = wide(columns)
    report = Document(title="published", answer="", sections=(Section("published", "Published", (table,)),))
    written = rendered(report)
    assert faults(written, tmp_path) == []
    seen = " ".join(text for _, _, boxes in words(written, tmp_path) for *_, text in boxes)
    assert all(f"{n}" in seen for n in range(columns))


def test_pieces_have_every_column_once_and_the_names_each_time() -> None:
    parts = list(pieces(wide(30)))
    assert len(parts) > 1
    assert all([c.key for c in part.columns[:2]] == ["host", "side"] for part in parts)
    assert [c.key for part in parts for c in part.columns[2:]] == [f"c{n}" for n in range(30)]
    groups = [{c.group for c in part.columns[2:]} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert list(pieces(wide(2))) == [wide(2)]
