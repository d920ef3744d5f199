"""The PDF as a reader meets it: pages, text, fonts and pictures, looked at with Poppler's tools."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from PIL import Image

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.record.results import Results
from fleetmark.reports.campaign.document import document
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.document import document as comparison_document
from fleetmark.reports.formats import html as page_format
from fleetmark.reports.formats import pdf as pdf_format
from fleetmark.reports.kit.language import Language, language
from tests.reports import sample
from tests.reports.papers import compared

pytestmark = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs poppler-utils")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pdf")


@pytest.fixture(scope="module")
def report(folder: Path) -> Compared:
    return compared(folder / "record")


@pytest.fixture(scope="module")
def file(folder: Path, report: Compared) -> Path:
    path = folder / "report.pdf"
    path.write_bytes(pdf_format.render(comparison_document(report, Language()), Language()))
    return path


def tool(*words: str | Path) -> str:
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout


@cache
def pages(path: Path) -> list[str]:
    return tool("pdftotext", "-layout", path, "-").split("\f")[:-1]


def fonts(path: Path) -> Iterator[tuple[str, str]]:
    """Each font: its name, and whether it is embedded."""
    for line in tool("pdffonts", path).splitlines()[2:]:
        yield line.split()[0], line[58:].split()[-5]


def test_page_one_answers(file: Path) -> None:
    text = pages(file)
    first = re.sub(r"\s+", " ", text[0])
    for phrase in ("One newer replaces", "2026-11-21", "newer: 3 hosts", "old servers", "Before you rely on this"):
        assert phrase in first
    places = [
        n
        for title in ("Benchmarks", "Hosts", "Method", "Provenance")
        for n, page in enumerate(text)
        if re.search(rf"^\s*{title}\s*$", page, re.M)
    ]
    assert len(places) >= 4 and places == sorted(places)
    assert not any("All metrics" in page for page in text)


def test_pages_are_numbered_and_titled(file: Path) -> None:
    text = pages(file)
    assert 3 <= len(text) <= 12
    for n, page in enumerate(text[1:], 2):
        assert f"Page {n} of {len(text)}" in page
        assert "One newer replaces" in page.lstrip().splitlines()[0]
    assert any(page.lstrip().splitlines()[0].rstrip().endswith("Provenance") for page in text[2:])


def test_the_appendix_has_every_metric(report: Compared, tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(pdf_format.render(comparison_document(report, Language(), has_appendix=True), Language()))
    text = pages(path)
    metrics = r"metric\s+case\s+(host\s+)?side\s+value\s+spread\s+CV\s+n"
    assert any(re.search(metrics, p) for p in text)
    for page in text:  # a table that goes on begins with its head, and none is left alone at a page's end
        lines = [line for line in page.splitlines() if line.strip()]
        assert not re.match(r"\s*metric\s+case\s+(host|side|generation)", lines[-2]), lines[-3:]
        is_chart = len(lines) > 2 and "A dot per repeat" in lines[2]  # below its title
        if len(lines) > 2 and not is_chart and re.match(r"\s*(fio|latency, size|lmbench)\b.*\d", lines[1]):
            raise AssertionError(f"rows without a head: {lines[1]}")


def edges_are_clean(file: Path, folder: Path) -> None:
    """No ink in the outermost 8 mm of any page, which the margins leave free."""
    pictures = folder / f"{file.stem}-pages"
    pictures.mkdir()
    tool("pdftoppm", "-r", "40", "-gray", file, pictures / "page")
    for picture in sorted(pictures.iterdir()):
        with Image.open(picture) as page:
            edge = round(8 / 25.4 * 40)
            w, h = page.size
            for box in ((0, 0, edge, h), (w - edge, 0, w, h), (0, 0, w, edge), (0, h - edge, w, h)):
                assert page.crop(box).getextrema() == (255, 255), (picture.name, box)


def test_nothing_is_cut_off(file: Path, folder: Path) -> None:
    edges_are_clean(file, folder)


def test_fonts_are_embedded(file: Path) -> None:
    used = list(fonts(file))
    assert used and all(embedded == "yes" for _, embedded in used)


def test_charts_are_drawings_and_no_pictures(folder: Path, report: Compared) -> None:
    path = folder / "appendix.pdf"
    path.write_bytes(pdf_format.render(comparison_document(report, Language(), has_appendix=True), Language()))
    assert len(tool("pdfimages", "-list", path).splitlines()) == 2  # the head alone
    assert any("stream all-cores: triad" in page and "higher is better" in page for page in pages(path))


def test_a_colour_scale_is_drawn_whole(folder: Path, report: Compared) -> None:
    """Poppler shows a scale in units of its own shape as a dot; ours is blue at one end and vermilion at the other."""
    svg = re.findall(
        r"<svg[^>]*>(?:(?!</svg>).)*linearGradient.*?</svg>",
        page_format.render(comparison_document(report, Language(), has_appendix=True), Language(), medium="paper"),
        re.S,
    )
    legend = re.search(r"<linearGradient.*?</linearGradient>", svg[0], re.S)
    assert legend is not None
    name = re.search(r'id="([^"]+)"', legend[0])
    assert name is not None
    drawn = (
        "<style>@page{size:60px 120px;margin:0}body{margin:0}svg{display:block}</style><svg width='60' height='120'>"
        f'<path d="M0,0h60v120h-60Z" fill="url(#{name[1]})"/><defs>{legend[0]}</defs></svg>'
    )
    (folder / "scale.pdf").write_bytes(pdf_format.of_html(drawn))
    tool("pdftoppm", "-r", "96", "-singlefile", folder / "scale.pdf", folder / "scale")
    with Image.open(folder / "scale.ppm") as page:
        left, right = (page.getpixel((x, 60)) for x in (1, 58))
    assert isinstance(left, tuple) and isinstance(right, tuple)
    assert right[0] < 60 and right[2] > 150 and left[0] > 180 and left[2] < 60


def test_metadata_and_bookmarks(file: Path) -> None:
    info = tool("pdfinfo", file)
    assert "One newer replaces" in info and "Fleetmark" in info
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", file.read_bytes(), re.S)
    assert any(b"/Lang (en)" in zlib.decompressobj().decompress(s) for s in streams if s[:1] == b"x")
    marks = re.findall(r"<item page=\"(\d+)\">([^<]+)</item>", tool("pdftohtml", "-xml", "-i", "-stdout", file))
    assert [t for _, t in marks if t in ("Benchmarks", "Hosts", "Provenance")] == ["Benchmarks", "Hosts", "Provenance"]
    assert any(re.search(r"^\s*Benchmarks\s*$", pages(file)[int(n) - 1], re.M) for n, t in marks if t == "Benchmarks")


def test_the_same_report_gives_the_same_bytes_in_another_process(folder: Path) -> None:
    shown, page = document(small()), folder / "page.html"
    page.write_text(page_format.render(shown, Language(), medium="paper"), "utf-8")
    code = (
        "import hashlib, sys; from pathlib import Path; from reports.formats import pdf; "
        "print(hashlib.sha256(pdf.of_html(Path(sys.argv[1]).read_text('utf-8'))).hexdigest())"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(page)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
    )
    assert process.stdout.strip() == hashlib.sha256(pdf_format.render(shown, Language())).hexdigest()


def test_chinese(folder: Path, report: Compared) -> None:
    path = folder / "zh.pdf"
    path.write_bytes(pdf_format.render(comparison_document(report, language("zh-CN")), language("zh-CN")))
    text = pages(path)
    assert "台old服务器" in re.sub(r"\s+", "", text[0])
    assert f"第 2 页，共 {len(text)} 页" in text[1]
    words = "".join(text)
    assert not re.search(r"\b(the|hosts|Ratios|value|higher is better)\b", words)
    used = list(fonts(path))
    assert all(embedded == "yes" for _, embedded in used)
    assert any("CJK-SC" in name for name, _ in used), "needs fonts-noto-cjk"
    assert not any("CJK-JP" in name for name, _ in used)


def small() -> Results:
    """Six hosts of two generations; a run that failed."""
    hosts = {h: [1e9 * (1 + n / 9), 1.02e9 * (1 + n / 9)] for n, h in enumerate("abcdef")}
    kinds = {h: "old" if h < "d" else "new" for h in hosts}
    return sample.tiny(hosts, generations=kinds, ended=[("a", Status.FAILED, "it ended with status 1")])


def all_failed() -> Results:
    return sample.tiny({"a": []}, ended=[("a", Status.FAILED, "it ended with status 1")])


def empty() -> Results:
    return replace(sample.tiny({"a": []}), hosts=())


@pytest.mark.parametrize(
    ("results", "phrase"),
    [
        (small, "12 of 13 runs passed"),
        (all_failed, "it ended with status 1"),
        (empty, "Nothing was measured."),
    ],
)
def test_campaigns(results: Callable[[], Results], phrase: str, folder: Path) -> None:
    path = folder / f"{results.__name__}.pdf"
    path.write_bytes(pdf_format.render(document(results()), Language()))
    text = pages(path)
    assert 1 <= len(text) <= 12
    words = re.sub(r"\s+", " ", " ".join(text))
    assert phrase in " ".join(text[0].split()), "the first page answers"
    assert "Contents" not in words and "Provenance" in words and f"Page 1 of {len(text)}" in words
    assert phrase in words


def test_hostile_names_are_shown_and_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("socket.create_connection", lambda *a, **_: calls.append(str(a)))
    long = "x" * 300
    results = small()
    names = dict(
        zip(
            [h.name for h in results.hosts],
            ['<img src="http://x.test/a.png">', "=cmd()|'/c calc'!A0", "\u202eesrever", "🚀" * 5, long, "a\x00b"],
            strict=True,
        )
    )
    path = tmp_path / "hostile.pdf"
    path.write_bytes(pdf_format.render(document(sample.renamed(results, names)), Language()))
    words = re.sub(r"\s+", "", "".join(pages(path)))
    for seen in ('<imgsrc="http://x.test/a.png">', "=cmd()|'/ccalc'!A0", "<U+202E>esrever", "a␀b"):
        assert seen in words
    assert long in re.sub(r"\s+", "", tool("pdftotext", "-raw", path, "-"))
    edges_are_clean(path, tmp_path)
    assert not calls


def test_what_a_template_refers_to_outside_is_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.css"
    secret.write_text("body::after { content: 'leaked' }")
    page = (
        f'<link rel="stylesheet" href="{secret.as_uri()}"><p>kept</p><img src="{tmp_path.as_uri()}/x.png">'
        '<img src="data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 width=%229%22 height=%229%22/%3E">'
    )
    path = tmp_path / "out.pdf"
    path.write_bytes(pdf_format.of_html(page))
    assert tool("pdftotext", path, "-").split() == ["kept"]


def test_without_pango_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "weasyprint":
                raise OSError("cannot load library 'libpango-1.0-0'\nmore")

    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(FleetmarkError, match=r"needs Pango.*libpango-1.0-0'\): install") as error:
        pdf_format.of_html("<p>x")
    assert "\n" not in str(error.value)


def test_no_rule_searches_a_table_again_for_each_of_its_cells() -> None:
    """WeasyPrint would take minutes for a table of 600 rows."""
    css = (files("fleetmark.reports.kit") / "templates/paper.css").read_text("utf-8")
    selectors = [selector.strip() for selector in re.split(r"[{},]", css) if ":has(" in selector]
    assert selectors and not [selector for selector in selectors if re.search(r"\)\s+\S", selector)]
