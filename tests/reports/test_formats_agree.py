"""Test that a figure is the same in every format: HTML, PDF, terminal, Markdown, workbook and JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import pytest

from fleetmark.planner.capacity.analysis.results import Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import Results
from fleetmark.reports.campaign.deviation import title
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.view import View, headlines
from fleetmark.reports.campaign.view import view as view_of
from fleetmark.reports.formats import html as html_format
from fleetmark.reports.formats import html as page_format
from fleetmark.reports.formats import markdown as markdown_format
from fleetmark.reports.formats import markdown as marks_format
from fleetmark.reports.formats import pdf as pdf_format
from fleetmark.reports.formats import terminal as terminal_format
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit import tabular
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell
from fleetmark.reports.plan.front import front
from fleetmark.reports.plan.model import view
from tests.reports import plan_sample, rendered, sample
from tests.reports.pages import Page, on_paper
from tests.reports.shown import printed, shown

CREATED, ENGLISH = "2027-01-20T10:00:00Z", Language()


# --- a campaign ------------------------------------------------------------------------------------------------------


def figures(view_: View) -> list[tuple[Metric, str, str, str, str]]:
    """Return every headline figure: metric, generation, number, unit and coefficient of variation as text."""
    one = len(view_.hosts) == 1
    frame = headlines(view_.merged if one else view_.generational)
    result = []
    for metric, rows, scale in view_.by_metric(frame):
        for value, cv, *side in rows[["value", "cv", *([] if one else ["generation"])]].itertuples(index=False):
            result.append((metric, "".join(side), scale.number(value), scale.unit, fmt.percent(cv)))
    return result


def base_values(view_: View) -> Iterator[tuple[Metric, str, float]]:
    """Yield every headline figure in its base unit."""
    for metric, rows, _ in view_.by_metric(headlines(view_.summed)):
        sides = rows["generation"].tolist() if len(view_.hosts) > 1 else [""] * len(rows)
        yield from ((metric, side, value) for side, value in zip(sides, rows["value"], strict=True))


@pytest.mark.parametrize("make", [sample.one, sample.six, lambda: sample.many(14)])
def test_a_campaigns_figures_read_alike(make: Callable[[], Results], tmp_path: Path) -> None:
    results = make()
    seen, report = view_of(results), document(results)
    expected = figures(seen)
    assert len(expected) >= 6
    page = Page(page_format.render(report, Language()))
    rows = {tuple(" ".join(cell.split()) for cell in row) for row in page.rows}
    md = marks_format.render(report, Language()).replace("\\", "")
    text = rendered.shown(report)
    paper = " ".join(on_paper(pdf_format.render(report, Language()), tmp_path).split())
    cells = rendered.in_workbook(report, data_only=True)["Headlines"]
    heads = [str(c.value) for c in cells[4]]
    in_book = {}
    for row in cells.iter_rows(min_row=5):
        line = dict(zip(heads, row, strict=True))
        name = tuple(str(c.value or "") for c in row[:6])
        side = str(line["generation"].value) if "generation" in line else ""
        cv = line["CV"]
        in_book[name, side] = (line["value"].value, "" if cv.value is None else shown(cv.value, cv.number_format))
    values = {(m, side): value for m, side, value in base_values(seen)}
    for metric, side, number, unit, cv in expected:
        # The first screen of the page, and its table of headlines.
        assert any(title(metric) in row[0] and number in " ".join(row) for row in rows if row), (metric, number)
        quantity = f"{number} {unit}".strip()
        if side:
            assert any(side in row and quantity in row for row in rows), (metric, side, number)
        assert f"| {quantity} |" in md, (metric, number)
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d.,]) +{re.escape(unit)}", text), (metric, number)
        assert number in paper, (metric, number)
        point = (*metric[:4], fmt.labels(metric.labels), metric.standing)
        written, variation = in_book[point, str(seen.title_of(side)) if side else ""]
        factor = 8 if unit.endswith("bit/s") else 1  # no number format multiplies by 8
        assert written == pytest.approx(factor * values[metric, side], rel=1e-12), (metric, side)
        if cv and side:
            assert variation == cv, (metric, side)


# --- a plan ----------------------------------------------------------------------------------------------------------


EFFECTS = [
    Effect("demand of web", 0.8, 1.25, True, -200_000.4, at_high=412_345.6),
    Effect("utilisation of web", 0.9, 1.1, False, None, at_high=-1),
]


@pytest.fixture(scope="module")
def plan() -> Answer:
    q = plan_sample.question()
    bindings = [
        Binding("power at ams", "W", 520.5, 1.234),
        Binding("demand of web in 2027-Q4", "requests/s", 9, 987.6, demand=True),
    ]
    return Answer(q, plan_sample.plan(q), bindings=bindings, tornado=EFFECTS)


def test_a_plans_figures_read_alike(plan: Answer, tmp_path: Path) -> None:
    q, p, v = plan.question, plan.plan, view(plan)
    assert p is not None
    report = plan_sample.document(plan)
    page = " ".join(Page(html_format.render(report, ENGLISH)).words.split())
    paper = " ".join(on_paper(pdf_format.render(report, ENGLISH), tmp_path).split())
    text = " ".join(printed(list(terminal_format.render(report, ENGLISH))).split())
    workbook = openpyxl.load_workbook(io.BytesIO(plan_sample.workbook(plan, created=CREATED)), data_only=True)
    cells = [
        shown(c.value, c.number_format)
        for sheet in workbook
        for row in sheet.iter_rows()
        for c in row
        if isinstance(c.value, int | float) and re.fullmatch(r"(\[>=[\d.]+\])?[#0,.%]+(;.*)?", c.number_format)
    ]
    readme = " ".join(str(c.value) for row in workbook.worksheets[0].iter_rows() for c in row if c.value)
    marked = markdown_format.render(report, ENGLISH).replace("\\", "").replace("&amp;", "&")
    first = front(v)
    for sentence in (first.answer, first.cost, first.nothing, *first.risks, *first.limits):
        for form in (page, text, readme, marked):
            assert str(sentence) in form, sentence
        assert str(sentence) in paper or sentence.split()[0] in paper
    money = [fmt.money(p.objective), *(cost for _, cost in first.years), *(fmt.money(o.money) for o in v.orders)]
    for figure in money[: 1 + len(first.years)]:
        assert figure in page and figure in text and figure in paper and figure in cells, figure
    for figure in money:
        assert figure in page and figure in text, figure
    last = [s for s in v.supply if s.period == len(q.periods) - 1]
    for supply in last:
        for value in (supply.planned, supply.capacity):
            assert fmt.figure(value) in text and fmt.figure(value) in page and fmt.figure(value) in cells, supply
        assert fmt.servers(supply.servers) in text
    assert report.data["plan"]["objective"] == p.objective


def test_capacity_is_one_figure(plan: Answer) -> None:
    """Check that page and workbook use "capacity" for the capacity that remains if the worst domain is lost."""
    workbook = openpyxl.load_workbook(io.BytesIO(plan_sample.workbook(plan, created=CREATED)), data_only=True)
    rows = [row for sheet in workbook for row in sheet.iter_rows(values_only=True)]
    named = [n for n, row in enumerate(rows) if row[0] == "capacity"]
    block = next(row for n in named for row in rows[n : n + 12] if row[0] == "web")
    expected = [s.capacity for s in view(plan).supply_of("web")]
    assert [x for x in block if isinstance(x, float | int)] == pytest.approx(expected)
    assert [s.all_up for s in view(plan).supply_of("web")] != pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,234"), (999.6, "1,000"), (365.0, "365.0"), (9.96, "10.0"), (5.256, "5.26"), (0.0, "0.00")],
)
def test_a_figure_and_its_form_round_alike(value: float, text: str) -> None:
    assert fmt.figure(value) == text == shown(value, fmt.FIGURE_FORM)


@pytest.mark.parametrize("value", [0.0, 0.0123, 0.694, 5.256, 47.82, 432.0, 1234.5, 12_345_678.0, -52.5])
def test_a_cell_of_a_table_has_the_one_rounding(value: float) -> None:
    cell = tabular.figure(value)
    assert cell.text == fmt.figure(value) == shown(value, cell.text_form)


def test_a_negative_z_has_a_minus_sign_and_a_form() -> None:
    cell = Cell(fmt.z_score(-52.51), -52.51)
    assert (cell.text, cell.text_form) == ("−52.5", "#,##0.0")
