"""Test the decision strip in a browser: its figures are Python's, its state is in the address, and it is accessible."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetmark.planner.comparison import WORK_MIX
from fleetmark.planner.cost import Offer, Terms, break_even, cost, needed
from fleetmark.planner.ratio import Ratio
from fleetmark.reports.formats import html
from tests.reports import compared as sample
from tests.reports.compared import ENGLISH, compared, document

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

PRICES = ("icelake=9000 EUR", "genoa=15500 EUR", "turin=19900 EUR")
OPTIONS: dict[str, Any] = {"prices": PRICES, "term": "4y", "energy": "0.25 EUR/kWh"}
GIVEN = "cpu-int=0.6,disk-iops=0.2,mem-bw=0.2"
OTHER = {"cpu-int": 0.25, "disk-iops": 0.65, "mem-bw": 0.1}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    sample.archives(folder)
    return folder


@pytest.fixture(scope="module")
def file(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "comparison.html"
    path.write_text(html.render(document(compared(root, mix=GIVEN, **OPTIONS)), ENGLISH), "utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Any, file: Path, fragment: str = "") -> Any:
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(file.as_uri() + fragment)
    return page


def fill(page: Any, values: dict[str, str]) -> None:
    for name, value in values.items():
        page.fill(f'#strip input[data-name="{name}"]', value)


def shown(page: Any, side: int, name: str) -> float:
    return float(page.locator(f'#strip tr[data-side="{side}"] [data-out="{name}"]').get_attribute("data-v"))


def headline(root: Path, side: str, mix: str) -> Ratio:
    (candidate,) = [c for c in compared(root, mix=mix).comparison.candidates if c.title == side]
    head = candidate.classes[WORK_MIX].headline
    assert head is not None
    return head


def test_the_strip_begins_with_the_figures_of_python(browser: Any, root: Path, file: Path) -> None:
    page = opened(browser, file)
    for side, (title, price, watts) in enumerate((("genoa", 15_500, 550), ("turin", 19_900, 700)), 1):
        head = headline(root, title, GIVEN)
        terms = Terms(years=4, energy=0.25)
        spent = cost(Offer(price=price, watts=watts), needed(100, head.value), terms)
        even = break_even(head, Offer(price=9000, watts=400), Offer(price=price, watts=watts), terms)
        assert shown(page, side, "ratio") == pytest.approx(head.value, rel=1e-9)
        assert shown(page, side, "yearly") == pytest.approx(spent.yearly, rel=1e-9)
        assert even is not None and shown(page, side, "even") == pytest.approx(even.value, rel=1e-9)
        assert f"({head.lo:.2f}–{head.hi:.2f})" in page.locator(f'#strip tr[data-side="{side}"]').inner_text()


def test_other_inputs_give_the_figures_that_python_gives(browser: Any, root: Path, file: Path) -> None:
    page = opened(browser, file)
    fill(page, {f"s-mix.{name}": str(share * 100) for name, share in OTHER.items()})
    fill(page, {"s-servers": "340", "s-years": "6", "s-energy": "0.31", "s-price.genoa": "14100"})
    fill(page, {"s-watts.turin": "820", "s-units.turin": "2"})
    mix = ",".join(f"{name}={share}" for name, share in OTHER.items())
    terms = Terms(servers=340, years=6, energy=0.31)
    base = Offer(price=9000, watts=400)
    for side, (title, offer) in enumerate(
        (("genoa", Offer(price=14_100, watts=550)), ("turin", Offer(price=19_900, watts=820, rack_units=2))), 1
    ):
        head = headline(root, title, mix)
        spent = cost(offer, needed(340, head.value), terms)
        even = break_even(head, base, offer, terms)
        assert shown(page, side, "ratio") == pytest.approx(head.value, rel=1e-6)
        assert shown(page, side, "needed") == spent.servers
        assert shown(page, side, "total") == pytest.approx(spent.total, rel=1e-6)
        assert shown(page, side, "yearly") == pytest.approx(spent.yearly, rel=1e-6)
        assert shown(page, side, "power") == pytest.approx((spent.power or 0) / 1000, rel=1e-6)
        assert even is not None and shown(page, side, "even") == pytest.approx(even.value, rel=1e-6)
    assert shown(page, 2, "units") == 2 * needed(340, headline(root, "turin", mix).value)
    note = page.locator("#strip .strip-note").inner_text()
    assert "No interval for this mix" in note and "--mix cpu-int=0.25,disk-iops=0.65,mem-bw=0.1" in note
    assert GIVEN not in note


def test_the_address_keeps_the_inputs_and_reset_forgets_them(browser: Any, file: Path) -> None:
    page = opened(browser, file)
    before = shown(page, 1, "ratio")
    fill(page, {"s-mix.cpu-int": "90", "s-price.genoa": "12345"})
    ratio = shown(page, 1, "ratio")
    again = opened(browser, file, page.evaluate("location.hash"))
    assert shown(again, 1, "ratio") == ratio != before
    assert again.input_value('#strip input[data-name="s-price.genoa"]') == "12345"
    again.evaluate("location.hash = '#method'")
    again.wait_for_function("location.hash.startsWith('#method?')")
    again.click("#strip button:has-text('reset')")
    assert shown(again, 1, "ratio") == before and again.evaluate("location.hash") == "#method"


def test_a_wrong_input_is_marked_and_has_no_effect(browser: Any, file: Path) -> None:
    page = opened(browser, file)
    fill(page, {"s-price.genoa": "<b>cheap</b>"})
    field = page.locator('#strip input[data-name="s-price.genoa"]')
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator('#strip tr[data-side="1"] [data-out="total"]').inner_text() == "–"
    assert opened(browser, file, page.evaluate("location.hash")).locator("#strip b").count() == 0


def test_another_baseline_changes_the_strip(browser: Any, root: Path, file: Path) -> None:
    page = opened(browser, file)
    page.select_option("#baseline", label="turin")
    assert page.locator('#strip tr[data-side="0"] th').inner_text() == "turin"
    head = compared(root, "gen=turin", ["gen=icelake"], mix=GIVEN).comparison.candidates[0].classes[WORK_MIX].headline
    assert head is not None and shown(page, 1, "ratio") == pytest.approx(head.value, rel=1e-6)


def test_the_strip_is_reached_by_keyboard_and_is_accessible(browser: Any, file: Path) -> None:
    page = opened(browser, file)
    fields = page.locator("#strip input")
    assert all(field.get_attribute("aria-label") for field in fields.all()) and fields.count() == 15
    fields.first.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.name") == "s-years"
    violations = axe.Axe().run(page, context={"include": [["#strip"]]}).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in violations] == []
