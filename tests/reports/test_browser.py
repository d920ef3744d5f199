"""Test the page in a real browser: it loads nothing else, and works by mouse, by keyboard and for screen readers."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fleetmark.planner.capacity.analysis.results import Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.record.diagnosis import diagnose
from fleetmark.record.diagnosis.history import history
from fleetmark.record.results import Results
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.diagnosis import document as diagnosis_of
from fleetmark.reports.diagnosis import history as history_of
from fleetmark.reports.formats import html as html_format
from fleetmark.reports.kit.language import Language
from tests.commands import run
from tests.fleets import campaign, scaled, usual
from tests.records import TRIAD, record
from tests.reports import compared, loads, plan_sample, sample

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

CLIPBOARD = "window.copied = []; navigator.clipboard.writeText = async (text) => { window.copied.push(text); };"
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined });"


@dataclass
class Opened:
    """An open page, with the errors and requests that it caused."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def texts(self, selector: str) -> list[str]:
        return [" ".join(t.split()) for t in self.page.locator(selector).all_inner_texts()]

    def unfold(self, selector: str = "details") -> None:
        self.page.locator(selector).evaluate_all("folds => folds.forEach((fold) => { fold.open = true; })")

    def status(self) -> str:
        return str(self.page.locator("#status").inner_text())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    root = folder / "results"
    root.mkdir()
    compared.archives(root)
    five = folder / "five"
    five.mkdir()
    compared.archives(five, ("rome", "sierra", "icelake", "genoa", "turin"))
    reports = {
        "five": compared.compared(five, "gen=rome", [f"gen={g}" for g in ("sierra", "icelake", "genoa", "turin")]),
        "comparison": compared.compared(root),
    }
    campaigns = {
        "campaign": sample.six(),
        "hostile": sample.renamed(sample.six(), sample.HOSTILE),
        "many": sample.many(30),
    }
    files = {}
    for name, results in campaigns.items():
        files[name] = folder / f"{name}.html"
        files[name].write_text(of_campaign(results), "utf-8")
    for name, report in reports.items():
        files[name] = folder / f"{name}.html"
        files[name].write_text(html_format.render(compared.document(report), Language()), "utf-8")
    return files | others(folder)


def of_campaign(results: Results) -> str:
    return html_format.render(campaign_report.document(results), Language())


def others(folder: Path) -> dict[str, Path]:
    """Return the pages of other commands: a plan, a diagnosis and a history."""
    q = plan_sample.question()
    effects = [Effect("demand of web", 0.8, 1.25, True, -200_000.4, at_high=412_345.6)]
    answer = Answer(q, plan_sample.plan(q), bindings=[Binding("power at ams", "W", 520.5, 1.234)], tornado=effects)
    values = usual()
    scaled(values, "n03", TRIAD, 0.9)
    (folder / "diagnosed").mkdir()
    diagnosis = diagnose(campaign(folder / "diagnosed", values))
    (folder / "history").mkdir()
    for day in range(1, 11):
        slower = {
            k: [v * (0.9 if day > 6 and k[1] == TRIAD else 1) for v in vs] for k, vs in usual(("a",), seed=day).items()
        }
        archive = record(folder / "history", f"202601{day:02}T000000-x", {"a": {}}, slower)
        archive.save_campaign(archive.campaign() | {"created": f"2026-01-{day:02}T00:00:00Z"})
    pages = {
        "plan": html_format.render(plan_sample.document(answer), Language()),
        "diagnosis": html_format.render(
            diagnosis_of.document(diagnosis, (), "", "fleetmark diagnose", Language()), Language()
        ),
        "history": html_format.render(
            history_of.document(history(folder / "history", []), "", "fleetmark history"), Language()
        ),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, "utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """Return the browser, and close the test's pages, which would take time from later ones."""
    yield chromium
    for context in chromium.contexts:
        context.close()


def opened(browser: Any, file: Path, anchor: str = "", script: str = "", **options: Any) -> Opened:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    page = context.new_page()
    result = Opened(page)
    page.on("console", lambda m: result.errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: result.errors.append(str(e)))
    page.on("request", lambda r: result.requests.append(r.url))
    if script:
        page.add_init_script(script)
    page.goto(file.as_uri() + anchor)
    return result


@pytest.mark.parametrize("name", ["comparison", "campaign", "hostile", "many"])
@pytest.mark.parametrize("width", [1280, 390])
def test_loads_alone_and_fits(browser: Any, pages: dict[str, Path], name: str, width: int) -> None:
    tab = opened(browser, pages[name], viewport={"width": width, "height": 800})
    tab.unfold()
    assert tab.errors == []
    assert [r for r in tab.requests if not r.startswith(("file:", "data:"))] == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert "ran" not in tab.page.title()


def test_nor_do_the_answers_for_four(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["five"])
    ends = tab.page.locator("#classes table").bounding_box()
    assert ends["y"] + ends["height"] <= 950
    sides = tab.page.locator("#baseline option").all_inner_texts()
    assert sides == ["rome", "sierra", "icelake", "genoa", "turin"]
    tab.page.select_option("#baseline", label="turin")
    assert tab.page.locator("#b4-classes thead tr:last-child th").count() == 10


def test_the_answer_needs_no_scrolling(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    ends = tab.page.locator("#classes").bounding_box()
    assert ends["y"] + ends["height"] <= 800
    answer = " ".join(tab.page.locator("#main").inner_text().split())
    assert re.search(r"One turin replaces 1\.\d\d \(.*\) to 2\.\d\d \(.*\) icelake servers; next best", answer)
    assert "100 icelake become" in answer
    assert "1 benchmark not compared" in answer


def test_sorting(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    head = tab.page.locator("#ratios thead tr:last-child th.num").first
    ratios = "#class-disk-iops tr:not(.head) td:nth-of-type(2)"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = [float(t.split()[0]) for t in tab.texts(ratios)]
    assert up == sorted(up) and len(up) == 2
    head.get_by_role("button").click()
    assert [float(t.split()[0]) for t in tab.texts(ratios)] == up[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    assert tab.status() == "sorted by ratio, descending"
    assert tab.page.locator("#class-disk-iops tr").first.get_attribute("class") == "head"  # the class stays first


def test_values_sort_by_size_whatever_their_unit(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["campaign"])
    head = tab.page.locator("#headlines table").first.locator("thead th", has_text="value")
    head.get_by_role("button").click()
    cells = tab.page.locator("#headlines table >> nth=0 >> tbody td:nth-child(3)")
    values = [float(v) for v in cells.evaluate_all("cells => cells.map((c) => c.dataset.v)")]
    assert values == sorted(values) and len(set(values)) > 5


def test_filtering(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    rows = tab.page.locator("#ratios tbody tr:not(.head):visible")
    every = rows.count()
    tab.page.fill("#filter", "FIO qd16")
    sync_api.expect(tab.page.locator("#status")).not_to_be_empty()
    assert rows.count() == 1 < every
    assert not tab.page.locator("#class-os").is_visible()
    assert tab.page.locator("#metrics details[open]").count() == 1
    n = (
        rows.count()
        + tab.page.locator(".figures tbody tr:visible, .tabular tbody tr:not(.head):visible").count()
        - rows.count()
    )
    assert tab.status().startswith(f"{n} of ")
    tab.page.fill("#filter", "")
    sync_api.expect(tab.page.locator("#status")).to_be_empty()
    assert rows.count() == every
    assert tab.page.locator("#metrics details[open]").count() == 0


def test_another_baseline(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    before = tab.texts("#class-mem-bw .head td:nth-of-type(2)")
    title = tab.page.title()
    tab.page.select_option("#baseline", label="genoa")
    assert tab.page.locator("h1").inner_text().startswith("One turin replaces")
    assert tab.page.title() != title and "genoa servers" in tab.page.title()
    assert tab.status() == "The baseline is now genoa."
    after = tab.texts("#b1-class-mem-bw .head td:nth-of-type(2)")
    forward, back = (float(t[0].split()[0]) for t in (before, after))
    assert abs(forward * back - 1) < 0.02  # the ratio and its inverse agree
    assert tab.page.locator("#b1-excluded").count() == 1 and tab.page.locator("#excluded").count() == 0
    for link in tab.page.locator("nav a").all():
        assert tab.page.locator(link.get_attribute("href")).count() == 1
    tab.page.locator("#b1-ratios thead tr:last-child th.num").first.get_by_role(
        "button"
    ).click()  # sorting works here, too
    tab.page.select_option("#baseline", "0")
    assert tab.texts("#class-mem-bw .head td:nth-of-type(2)") == before and tab.page.title() == title
    assert tab.errors == []


def test_a_link_brings_its_baseline(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], "#b2-class-net-flow")
    assert tab.page.locator("#baseline").input_value() == "2"
    assert tab.page.locator("#b2-class-net-flow").bounding_box()["y"] < 800
    tab.page.evaluate("location.hash = '#class-net-flow'")
    sync_api.expect(tab.page.locator("#baseline")).to_have_value("0")


def test_folding_a_class(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    row = tab.page.locator("#class-cpu-int tr:not(.head)", has_text="gcc")
    fold = tab.page.locator("#class-cpu-int .fold")
    assert row.is_visible() and fold.get_attribute("aria-expanded") == "true"
    fold.click()
    assert not row.is_visible() and tab.page.locator("#class-cpu-int .head").is_visible()
    tab.page.locator("#filter").fill("gcc")
    sync_api.expect(row).to_be_visible()  # a search result unfolds


def test_only_what_is_worse_or_in_doubt(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.select_option("#doubt", "doubt")
    rows = tab.page.locator("#ratios tbody tr:not(.head):visible")
    assert 0 < rows.count() < tab.page.locator("#ratios tbody tr:not(.head)").count()
    assert all("worse" in t or "cannot tell" in t for t in rows.all_inner_texts())
    tab.page.select_option("#doubt", "")
    assert tab.page.locator("#ratios tbody tr:not(.head):visible").count() > 8


STOPS = "[...document.querySelectorAll('a[href], button, summary, select, input, [tabindex]')].filter((e) => e.checkVisibility() && e.tabIndex >= 0)"


def test_few_tab_stops(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    assert tab.page.evaluate(f"{STOPS}.filter((e) => !e.closest('main')).length") < 20
    assert tab.page.evaluate(f"{STOPS}.length") < 60  # 23 of them are inputs of the decision strip


def test_units(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    row = tab.page.locator("#class-mem-bw tr:not(.head)").first
    cells = [" ".join(t.split()) for t in row.locator("td").all_inner_texts()]
    scaled, unit = cells[2].split()
    assert unit == "GB/s"
    tab.page.select_option("#units", "base")
    in_base = [" ".join(t.split()) for t in row.locator("td").all_inner_texts()]
    value, unit = in_base[2].split()
    assert unit == "B/s" and float(value) == pytest.approx(float(scaled) * 1e9, rel=1e-9)
    assert in_base[1] == cells[1]  # a ratio has no unit
    tab.page.select_option("#baseline", "1")  # tables that are shown later use the same units
    assert tab.page.locator("#b1-class-mem-bw tr:not(.head) td >> nth=2").inner_text().endswith(" B/s")
    tab.page.select_option("#baseline", "0")
    tab.page.select_option("#units", "scaled")
    assert [" ".join(t.split()) for t in row.locator("td").all_inner_texts()] == cells


def test_units_of_columns_and_ranges(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["many"])
    tab.unfold("#headlines-hosts details")
    table = tab.page.locator("#headlines-hosts table")
    place = [t.split("\n")[-1] for t in table.locator("thead th").all_inner_texts()].index("GB/s")
    cell = table.locator("tbody tr").first.locator("th, td").nth(place)
    head = table.locator("thead th").nth(place).locator("small")
    before = cell.inner_text()
    tab.page.select_option("#units", "base")
    assert head.inner_text() == "B/s"
    first, base = (float(t.split()[0].replace(",", "")) for t in (before, cell.inner_text()))
    assert base == pytest.approx(first * 1e9)
    tab.page.select_option("#units", "scaled")
    assert cell.inner_text() == before
    # A comma within a number does not separate the ends of a range.
    assert tab.page.evaluate("baseText('(210–1,220)', 2)") == "(420–2440)"


def test_copying_a_table(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], script=CLIPBOARD)
    tab.page.locator("#classes .copy-table").click()
    text = tab.page.evaluate("window.copied")[0]
    assert "integer" in text
    tab.page.locator("#ratios .copy-table").first.click()
    rows = [line.split("\t") for line in tab.page.evaluate("window.copied")[1].strip("\n").split("\n")]
    heads = ["benchmark", "note", "genoa: ratio", "low", "high", "note", "genoa: value", "unit"]
    assert rows[0][: len(heads)] == heads
    assert len({len(row) for row in rows}) == 1
    gcc = next(row for row in rows if "502.gcc_r" in row[0])
    assert float(gcc[3]) < float(gcc[2]) < float(gcc[4])
    tab.page.locator("#ratios h2 .anchor").click()
    assert tab.page.evaluate("window.copied")[2].endswith("comparison.html#ratios")
    assert tab.page.url.endswith("#ratios")


def test_copying_where_a_page_may_not(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], script=NO_CLIPBOARD)
    button = tab.page.locator("#classes .copy-table").first
    button.click()
    assert button.inner_text() in ("copied", "selected: press Ctrl-C")
    assert tab.errors == []


def test_no_formula_is_copied(browser: Any, tmp_path: Path) -> None:
    names = {"=cmd|'/c calc'!A1": [10e9], "@sum": [11e9]}
    file = tmp_path / "page.html"
    file.write_text(of_campaign(sample.tiny(names)), "utf-8")
    tab = opened(browser, file, script=CLIPBOARD)
    tab.unfold()
    tab.page.locator("#metrics .copy-table").first.click()
    cells = tab.page.evaluate("window.copied")[0].replace("\n", "\t").split("\t")
    assert "'=cmd|'/c calc'!A1" in cells and "'@sum" in cells


def test_theme(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = tab.page.evaluate(colour)
    button = tab.page.locator("#theme")
    button.click()
    assert button.inner_text() == "theme: light" and tab.page.evaluate(colour) == "rgb(255, 255, 255)"
    button.click()
    assert button.inner_text() == "theme: dark" and tab.page.evaluate(colour) == dark
    button.click()
    assert button.inner_text() == "theme: system" and tab.page.evaluate(colour) == dark


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext")
def test_printing(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.emulate_media(media="print")
    assert not tab.page.locator("#tools").is_visible() and not tab.page.locator("nav").is_visible()
    tab.page.pdf(path=tmp_path / "page.pdf", format="A4", prefer_css_page_size=True)
    text = subprocess.run(["pdftotext", "-layout", tmp_path / "page.pdf", "-"], capture_output=True, text=True).stdout
    for words in ("spec_cpu2017 505.mcf_r", "Method", "Provenance", "not compared"):
        assert words in text
    assert "copy table" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["comparison", "campaign", "many", "plan", "diagnosis", "history"])
def test_accessible(browser: Any, pages: dict[str, Path], name: str, scheme: str) -> None:
    tab = opened(browser, pages[name], color_scheme=scheme)
    tab.unfold("details:not(#metrics details), #metrics details:first-of-type")
    violations = axe.Axe().run(tab.page, context={"exclude": [["figure svg"]]}).response["violations"]
    assert [(v["id"], v["impact"], v["nodes"][0]["html"][:200]) for v in violations] == []


@pytest.mark.parametrize("name", ["campaign", "plan", "diagnosis", "history"])
def test_all_that_acts_is_reached_by_keyboard(browser: Any, pages: dict[str, Path], name: str) -> None:
    """Check that what is no tab stop is in a box that has one, whose arrow keys lead to it."""
    tab = opened(browser, pages[name])
    acts = "[...document.querySelectorAll('a[href]:not(.anchor), button, summary, select, input')]"
    boxes = "nav, .tabled, .charts"
    shown = f"{acts}.filter((e) => e.checkVisibility())"
    is_reached = f"(e) => !e.disabled && (e.tabIndex === 0 || e.closest('{boxes}').querySelector('[tabindex=\"0\"]'))"
    assert tab.page.evaluate(f"{shown}.every({is_reached})")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.className") == "skip"
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.tagName") == "A"
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_by_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.page.evaluate(outline) != "none"
    tab.page.keyboard.press("Enter")
    tab.page.locator("#ratios thead button").first.focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.locator("#ratios thead tr:last-child th").first.get_attribute("aria-sort") == "ascending"


def test_hosts_on_demand(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["many"])
    tab.unfold()
    button = tab.page.locator("#metrics .more").first
    row = [" ".join(t.split()) for t in button.locator("xpath=ancestor::tr").locator("td").all_inner_texts()]
    button.click()
    rows = tab.page.locator("#detail tbody tr")
    n = rows.count()
    assert tab.page.locator("#detail caption").inner_text().startswith(f"{n} hosts")
    assert 25 < n <= 30
    sides = tab.texts("#detail tbody td:nth-child(2)")
    assert sides.count(row[1]) == int(row[5])
    values = [float(t.replace(",", "")) for t in tab.texts("#detail tbody td:nth-child(3)")]
    assert values == sorted(values, reverse=True)
    assert tab.page.evaluate("document.activeElement.id") == "detail-h"
    tab.page.locator("#detail thead th", has_text="host").get_by_role("button").click()
    names = tab.texts("#detail tbody th")
    assert names[:2] == ["n0000", "n0002"] or names[0] < names[1]
    tab.page.keyboard.press("Escape")
    assert not tab.page.locator("#detail").is_visible()
    assert tab.page.evaluate("document.activeElement.className") == "more"
    assert tab.errors == []


def test_without_script(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], java_script_enabled=False)
    assert tab.page.locator("#class-mem-bw").is_visible()
    assert not tab.page.locator("#tools").is_visible()
    assert tab.page.get_by_role("heading", name="Provenance").is_visible()


# --- files, the address, and what is behind a ratio ------------------------------------------------------------------


def downloaded(tab: Opened, button: Any) -> tuple[str, str]:
    """Return the name and the text of the file that a button saves."""
    with tab.page.expect_download() as saved:
        button.click()
    return saved.value.suggested_filename, Path(saved.value.path()).read_text("utf-8")


def test_the_front_table_is_copied_in_columns(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], script=CLIPBOARD)
    tab.page.locator("#classes .copy-table").click()
    text = tab.page.evaluate("window.copied")[0]
    lines = [line.split("\t") for line in text.rstrip("\n").split("\n")]
    assert lines[0][:5] == ["class of work", "note", "genoa: times icelake", "low", "high"]
    assert {len(line) for line in lines} == {len(lines[0])}
    bandwidth = next(line for line in lines if line[0] == "memory bandwidth")
    ratio, low, high = map(float, bandwidth[2:5])
    assert low < ratio < high and bandwidth[5] == str(math.ceil(100 / ratio))


def test_a_table_is_saved_as_csv(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    button = tab.page.locator("#ratios .save-table").first
    assert button.get_attribute("aria-label") == "save as CSV: Ratios of every benchmark, class by class"
    name, text = downloaded(tab, button)
    assert name == "Ratios-of-every-benchmark-class-by-class.csv"
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))
    assert len({len(row) for row in rows}) == 1 and len(rows) == tab.page.locator("#ratios tbody tr").count() + 1
    triad = dict(zip(rows[0], next(row for row in rows if row[0] == "stream all-cores triad"), strict=True))
    assert float(triad["genoa: ratio"]) == pytest.approx(float(triad["genoa: value"]) / float(triad["icelake"]), 0.01)
    assert triad["unit"] == "GB/s"


def test_charts_are_saved_as_svg(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.locator("details.chart summary").first.click()
    plots = tab.page.locator("#ratios .save-chart").first, tab.page.locator("figure .save-chart:visible").first
    for button in plots:
        assert str(button.get_attribute("aria-label")).startswith("save as SVG: ")
        name, text = downloaded(tab, button)
        root = ElementTree.fromstring(text)
        assert name.endswith(".svg") and root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert tab.errors == []


def test_the_address_keeps_what_the_reader_chose(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.fill("#filter", "fio")
    sync_api.expect(tab.page.locator("#status")).not_to_be_empty()
    tab.page.select_option("#baseline", label="turin")
    tab.page.locator("#b2-ratios thead th.num button").nth(1).click()
    tab.page.locator("#b2-ratios thead th.num button").nth(1).click()
    rows = tab.texts("#b2-ratios tbody tr:not(.head):visible th")
    address = tab.page.evaluate("location.hash")
    assert "baseline=turin" in address and "filter=fio" in address
    again = opened(browser, pages["comparison"], address)
    assert again.page.locator("#filter").input_value() == "fio"
    assert again.page.locator("h1").inner_text() == tab.page.locator("h1").inner_text()
    assert again.texts("#b2-ratios tbody tr:not(.head):visible th") == rows
    assert again.page.locator("#b2-ratios th[aria-sort='descending']").count() == 1
    wrong = opened(browser, pages["comparison"], "#?baseline=none&sort=no:99:up,classes-table:x&units=%E0&rows=1")
    assert wrong.errors == [] and wrong.page.locator("#baseline").input_value() == "0"


def test_a_ratio_opens_its_hosts_repeats_files_and_command(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    tab.page.locator("#class-mem-bw .figure-link").first.click()
    dialog = tab.page.locator("#detail")
    assert dialog.locator("h2").inner_text() == "stream all-cores triad"
    rows = [
        [" ".join(t.split()) for t in row.locator("th, td").all_inner_texts()]
        for row in dialog.locator("tbody tr").all()
    ]
    assert [row[0] for row in rows] == ["i1", "i2", "i3", "g1", "g2", "g3", "t1", "t2", "t3"]
    for row in rows:
        repeats = [float(x) for x in row[3].split("; ")]
        assert len(repeats) == 4 and math.exp(statistics.fmean(map(math.log, repeats))) == pytest.approx(
            float(row[2]), 1e-3
        )
    assert rows[0][4] == "20261101T000000-icelake/raw/x"
    link = dialog.locator("tbody a").first.get_attribute("href")
    assert str(link).startswith("file:///") and str(link).endswith("/20261101T000000-icelake/raw/x")
    assert dialog.locator(".commands").inner_text().split("\n")[0] == "icelake: fleetmark run"
    violations = axe.Axe().run(tab.page, context="#detail").response["violations"]
    assert violations == []
    tab.page.keyboard.press("Escape")
    assert tab.page.evaluate("document.activeElement.className") == "figure-link"
    tab.page.select_option("#baseline", label="genoa")  # the same from every baseline
    tab.page.locator("#b1-class-mem-bw .figure-link").first.click()
    assert dialog.locator("tbody tr").count() == 9 and tab.errors == []


def test_arrow_keys_move_within_a_table(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    focused = "[document.activeElement.className, document.activeElement.textContent.trim()]"
    tab.page.locator("#ratios thead button").first.focus()
    assert tab.page.locator("#ratios .tabled [tabindex='0']").count() == 1
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.evaluate(focused)[0] == "fold"
    tab.page.keyboard.press("End")
    assert tab.page.evaluate(focused)[0] == "figure-link"
    tab.page.keyboard.press("Home")
    assert tab.page.evaluate(focused) == ["copy-table", "copy table"]
    tab.page.keyboard.press("Tab")
    assert not tab.page.evaluate("document.querySelector('#ratios .tabled').contains(document.activeElement)")


def test_nothing_scrolls_within_the_page_and_links_stop_below_the_bar(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"], "#class-os", viewport={"width": 700, "height": 500})
    boxes = "[...document.querySelectorAll('.scroll')].filter((e) => e.checkVisibility() && e.scrollHeight > e.clientHeight + 1)"
    assert tab.page.evaluate(f"{boxes}.filter((e) => getComputedStyle(e).overflowY !== 'hidden').length") == 0
    bar = tab.page.locator("#tools").bounding_box()
    assert tab.page.locator("#class-os").bounding_box()["y"] >= bar["y"] + bar["height"]


def test_a_narrow_screen_shows_names_and_ratios_of_benchmarks(browser: Any, pages: dict[str, Path]) -> None:
    """Names that a width of 390 px breaks end a line after an underscore, and nothing lies over what is next to it."""
    tab = opened(browser, pages["comparison"], viewport={"width": 390, "height": 844})
    row = tab.page.locator("#class-mem-bw tr:not(.head)").first
    name, ratio = row.locator("th").bounding_box(), row.locator(".figure-link").first.bounding_box()
    assert name["x"] + name["width"] <= ratio["x"] and ratio["x"] + ratio["width"] <= 390
    assert tab.page.locator("#ratios th bdi wbr").count()
    ends = "(head) => [head.querySelector('.name').getBoundingClientRect().right, head.querySelector('td.num').getBoundingClientRect().left]"
    for right, left in (tab.page.locator("#ratios .head").nth(n).evaluate(ends) for n in range(3)):
        assert right <= left


def test_no_name_lies_over_a_plot(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    name = tab.page.locator("#ratios tr:not(.head) > th bdi").first
    name.evaluate(
        "(name) => { name.textContent = 'mlperf_inference llama3.1-405b Interactive tokens_per_second '.repeat(3); }"
    )
    words = "(name) => [name.getBoundingClientRect().right, name.closest('tr').querySelector('.plot').getBoundingClientRect().left]"
    right, left = name.evaluate(words)
    assert right <= left


@pytest.fixture(scope="module")
def frontier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a comparison of prices at equal service."""
    folder = tmp_path_factory.mktemp("frontier")
    hosts = {"old": (["o1", "o2", "o3"], "4", 1.0), "new": (["n1", "n2", "n3"], "9", 3.0)}
    for side, (names, price, factor) in hosts.items():
        labels = {"gen": side, **loads.PRICE, "price": price}
        record(folder, f"c-{side}", dict.fromkeys(names, labels), loads.measured(names, factor))
    report = compared.document(compared.compared(folder, "gen=old", ["gen=new"]))
    file = folder / "frontier.html"
    file.write_text(html_format.render(report, Language()), "utf-8")
    return file


def test_a_frontier_is_read_point_by_point_and_machine_by_machine(browser: Any, frontier: Path) -> None:
    tab = opened(browser, frontier)
    chart = tab.page.locator("#frontier figure[data-series]")
    assert tab.errors == [] and tab.texts("#frontier figure b")[0].startswith("Cost against speed")
    point = chart.locator("path:has(title)", has_text="new n1: c16, 60.00 tokens/s of one user, 0.965 USD").first
    assert point.locator("title").text_content().endswith("wait 200 ms")
    marks, shown = "svg path:has(title)", "svg path:has(title):visible"
    every = chart.locator(shown).count()
    assert every == chart.locator(marks).count() > 20
    chart.locator("select.series").select_option("old o2")
    assert {t.split(":")[0] for t in chart.locator(shown).locator("title").all_text_contents()} == {"old o2"}
    assert tab.status() == "old o2"
    chart.locator("select.series").select_option("new n1")
    point.hover()  # no mark of another machine lies over it
    chart.locator("select.series").select_option("")
    assert chart.locator(shown).count() == every
    below = tab.page.locator("#frontier table", has=tab.page.locator("caption", has_text="Loads")).bounding_box()
    assert chart.bounding_box()["y"] < below["y"]  # the loads follow the picture that is made of them


def test_a_frontier_is_accessible(browser: Any, frontier: Path) -> None:
    tab = opened(browser, frontier)
    violations = axe.Axe().run(tab.page, context={"exclude": [["figure svg"]]}).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in violations] == []


def test_every_logarithmic_axis_is_called_one(browser: Any, pages: dict[str, Path]) -> None:
    tab = opened(browser, pages["comparison"])
    assert tab.texts("#ratios thead .axis-title") == ["ratio and 95% interval, log scale"]
    titles = tab.page.locator("figure svg text").all_text_contents()
    assert "size (log)" in titles and "queue depth (log)" in titles


# --- published results: one submitter -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a comparison of two accelerators from two submitters each, one of which both sides have."""
    folder = tmp_path_factory.mktemp("published")
    lines = [
        f"{submitter}/{side} {system},{side},{submitter},{benchmark},{value + system},requests/s,higher,capacity,app"
        for side, submitters in {"h200": ("Dell", "HPE"), "b200": ("Dell", "Nebius")}.items()
        for number, submitter in enumerate(submitters)
        for benchmark, value in {"llama": 100 + number, "whisper": 90 + number}.items()
        if submitter != "Nebius" or benchmark == "llama"
        for system in (1, 2)
    ]
    head = "machine,accelerator,submitter,benchmark,value,unit,better,kind,class"
    (folder / "table.csv").write_text("\n".join([head, *lines]))
    run(folder, "import", "table", str(folder / "table.csv"))
    report = compared.compared(folder, "accelerator=h200", ["accelerator=b200"], host_label="submitter")
    file = folder / "published.html"
    file.write_text(html_format.render(compared.document(report), Language()), "utf-8")
    return file


def test_one_submitter_is_chosen_and_kept_in_the_address(browser: Any, published: Path) -> None:
    tab = opened(browser, published)
    submitter = tab.page.locator("#group")
    assert submitter.locator("option").all_inner_texts() == ["all", "Dell", "HPE", "Nebius"]
    ratios, metrics = "#ratios tbody tr:not(.head):visible", "#metrics tbody tr:visible"
    assert tab.page.locator(ratios).count() == 2
    submitter.select_option("Nebius")
    assert "group=Nebius" in tab.page.url
    for _ in range(2):
        assert len(tab.texts(ratios)) == 1 and "llama" in tab.texts(ratios)[0]
        tab.unfold()
        assert tab.texts(metrics) and all("Nebius/b200" in text for text in tab.texts(metrics))
        assert tab.page.locator("#coverage tbody tr:visible").count()  # a table without submitters is left alone
        tab.page.reload()
        assert submitter.input_value() == "Nebius"
    submitter.select_option("")
    assert "group" not in tab.page.url and tab.page.locator(ratios).count() == 2
    assert tab.errors == []


def test_a_page_of_hosts_has_no_choice_of_submitters(browser: Any, pages: dict[str, Path]) -> None:
    assert opened(browser, pages["comparison"]).page.locator("#group").count() == 0


def test_the_address_keeps_the_series_of_a_chart(browser: Any, frontier: Path) -> None:
    tab = opened(browser, frontier)
    marks = "#frontier figure[data-series] svg path:has(title):visible"
    every = tab.page.locator(marks).count()
    tab.page.locator("select.series").select_option("old o2")
    assert "series" in tab.page.url
    shown = tab.page.locator(marks).count()
    tab.page.reload()
    assert tab.page.locator("select.series").input_value() == "old o2"
    assert tab.page.locator(marks).count() == shown < every
    tab.page.locator("select.series").select_option("")
    assert "series" not in tab.page.url and tab.errors == []
