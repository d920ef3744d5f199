"""Every document's PDF is tagged as PDF/UA-1 asks: read from its structure tree, and by a checker of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest

from fleetmark.planner.capacity.analysis.results import Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.reports.campaign.document import document
from fleetmark.reports.formats import pdf as pdf_format
from fleetmark.reports.kit.language import Language, language
from tests.reports import compared, plan_sample, sample, tagged

pdfua = pytest.importorskip("pdfua", reason="needs pdfua")


def campaign(_: Path) -> bytes:
    return pdf_format.render(document(sample.six()), Language())


def chinese(_: Path) -> bytes:
    return pdf_format.render(document(sample.one(), language("zh-CN")), language("zh-CN"))


def comparison(folder: Path) -> bytes:
    compared.archives(folder)
    return pdf_format.render(compared.document(compared.compared(folder)), Language())


def plan(_: Path) -> bytes:
    q = plan_sample.question()
    bindings = [Binding("power at ams", "W", 520.5, 1.234)]
    effects = [Effect("demand of web", 0.8, 1.25, True, -200_000.4, at_high=412_345.6)]
    answer = Answer(q, plan_sample.plan(q), bindings=bindings, tornado=effects)
    return pdf_format.render(plan_sample.document(answer), Language())


@pytest.mark.parametrize("document", [campaign, chinese, comparison, plan])
def test_a_pdf_is_tagged(document: Callable[[Path], bytes], tmp_path: Path) -> None:
    file = document(tmp_path)
    assert tagged.faults(file) == []
    path = tmp_path / "document.pdf"
    path.write_bytes(file)
    with pikepdf.open(path) as opened:
        texts = [str(e.Alt) for e in tagged.below(opened.Root.StructTreeRoot) if e.S == "/Figure"]
    assert texts or document is comparison
    assert [f for outcome in pdfua.validate(str(path)).outcomes for f in outcome.findings] == []


def test_headings_of_any_template_skip_no_level() -> None:
    page = "<!doctype html><html lang='en'><title>t</title><h1>a</h1><h3>b</h3><h4>c</h4><h3>d</h3><h2>e</h2>"
    assert tagged.faults(pdf_format.of_html(page)) == []


def test_the_checks_see_faults() -> None:
    import weasyprint

    page = (
        "<!doctype html><title>t</title><style>@page { @top-left { content: 'x' } } i { opacity: 0.5 }</style>"
        "<h1>a</h1><h3>b</h3><table><tr><th>c</th></tr></table><p><i>d</i></p><svg width='9' height='9'><rect width='9' height='9'/></svg>"
    )
    untagged = weasyprint.HTML(string=page).write_pdf(pdf_variant="pdf/ua-1")
    seen = " ".join(tagged.faults(untagged))
    for fault in ("no language", "stands below", "no place in the tree", "has no text", "of which cells"):
        assert fault in seen
