"""The tabs that explain: the answer and its provenance, charts, and the worths at the time of the plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.text import Message, message
from fleetmark.demand import tables
from fleetmark.demand.columns import AMOUNT, INTEGER, PRICE
from fleetmark.planner.capacity.question import KINDS
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.workbook import COLOURS, Book, Head, Sheet, wide
from fleetmark.reports.plan.front import Front
from fleetmark.reports.plan.xlsx.inputs import quoted
from fleetmark.reports.plan.xlsx.layout import TABS, Block, Places, named
from fleetmark.reports.plan.xlsx.numbers import BAND, Numbers, quantile

_WIDE = 110
_LINES = 19  # rows per chart, with the space below it
_GRID = {"visible": True, "line": {"color": "#D9D9D9", "width": 0.75}}
_SERIES: Mapping[str, Message] = {
    "below": message("below 5% of demand"),
    "band": message("demand, 5% to 95%"),
    "median": message("median demand"),
    "planned": message("planned demand"),
    "power": message("power"),
    "limit": message("limit"),
}


_GUIDE: Sequence[tuple[Message, Message, str]] = (
    (
        message("input: edit it"),
        message(
            "Prices, demands, equivalences, limits. Each cell says what it accepts. All results follow, in Excel and "
            "in LibreOffice."
        ),
        "input",
    ),
    (
        message("decided by the solver"),
        message(
            "Orders, retirements, active servers, allocation, margins. They stay as solved when inputs change; "
            "Checks says whether they still hold. Change them to try a plan of your own."
        ),
        "solver",
    ),
    (message("live"), message("Formulas. Select one and trace its precedents."), "text"),
    (
        message("rounding"),
        message("Servers are rounded up after rounding at 6 decimals, so that rounding noise never adds a server."),
        "strong",
    ),
)
_AGAIN: Sequence[tuple[Message, Message]] = (
    (
        message("what is read"),
        message(
            "The inputs of this workbook, and nothing else. Save it in Excel or LibreOffice before, so that inputs "
            "which are formulas have a value."
        ),
    ),
    (
        message("new rows"),
        message(
            "A SKU, a site, a cohort of servers or an equivalence goes in the empty coloured rows of SKU & TCO, Sites, "
            "Fleet and Equivalence, or in rows inserted there. A new SKU needs its equivalences, a new site its "
            "columns may run. A workload goes below the others in Utilisation, with its demand in the empty rows of "
            "Demand and its equivalences; a period below the others in Inputs, with its demand to the right of the "
            "others. They take part after the next solve. To leave one out, empty its cells there."
        ),
    ),
    (
        message("what to leave"),
        message(
            "Do not delete columns or tabs. Tabs may be renamed: every input is found by its name (Formulas, Name "
            "Manager)."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Time (ISO 8601), command line and version that made the workbook."""

    created: str
    command: str
    version: str


def benchmarks(book: Book, at: Places, n: Numbers) -> None:
    """The worth of each SKU at the time of the plan. Nobody edits it, so edits of Equivalence show."""
    block, sheet = at.benchmarks, at.benchmarks.sheet
    heads = [
        Head(message("SKU"), width=20),
        Head(message("workload"), width=20),
        Head(message("unit"), width=16),
        Head(message("E: what one server serves at full use"), message("unit of the workload"), 24),
        Head(message("standard error of ln E"), width=16),
        Head(message("degrees of freedom"), width=14),
        Head(message("source"), width=80),
        Head(message("utilisation"), width=14),
        Head(message("why this utilisation"), width=60),
    ]
    sheet.heads(block.row - 1, heads)
    for i, (s, w) in enumerate(at.pairs_of_worth):
        row, worth = block.row + i, n.question.skus[s].worth[w]
        for col, text in ((0, s), (1, w), (2, n.question.workloads[w].unit), (6, worth.source), (8, worth.why)):
            sheet.text(row, col, text, "text" if col >= 6 else "value")
        if worth.utilisation is not None:
            sheet.number(row, 7, worth.utilisation, "0.0%", "value")
        for col, number in ((3, worth.value), (4, worth.se), (5, worth.df)):
            if not math.isinf(number):
                sheet.number(row, col, number, tables.worths()[col - 1].form, "value")
    names = ("sku", "workload", "unit", "value", "se", "df", "source", "utilisation", "why")
    for j, name in enumerate(names):
        named(book, f"planned_{name}", Block(sheet, block.row, j, block.rows))
    sheet.filtered(block.row - 1, block.row + block.rows - 1, len(heads), frozen_columns=2)


class _Lines:
    """Lines of a label and a text, one below the other."""

    def __init__(self, sheet: Sheet, row: int) -> None:
        self.sheet, self.row = sheet, row

    def heading(self, text: Message) -> None:
        """A heading below an empty line."""
        self.sheet.text(self.row + 1, 0, text, "heading")
        self.row += 2

    def line(self, label: object, text: object, role: str = "wrap", label_role: str = "strong") -> None:
        """A label and its text, in a row of the height that the text needs."""
        self.sheet.text(self.row, 0, label, label_role)
        self.sheet.text(self.row, 1, text, role)
        self.sheet.inner.set_row(self.row, 15 * max(1, -(-wide(self.sheet.book.words(text)) // (_WIDE + 5))))
        self.row += 1

    def live(self, label: Message, formula: str, value: float | str, form: str = "General") -> None:
        """A label and a formula."""
        self.sheet.text(self.row, 0, label, "strong")
        self.sheet.formula(self.row, 1, formula, value, form, "answer")
        self.row += 1


def readme(book: Book, at: Places, n: Numbers, broken: int, provenance: Provenance, shown: Front) -> None:
    """The first tab; ``broken``: the number of checks that do not hold; ``shown``: the plan as solved, in words."""
    q, sheet = n.question, at.sheets["readme"]
    sheet.width(0, 34)
    sheet.width(1, _WIDE)
    lines = _Lines(sheet, 2)
    _answer(book, at, n, broken, lines)
    _in_words(shown, lines)
    lines.heading(message("Going on with it"))
    for label, text, role in _GUIDE:
        lines.line(label, text, label_role=role)
    money = message(
        "All money is {money} of {date}, undiscounted except where it says present value.",
        money=q.currency,
        date=q.date,
    )
    lines.line(message("money"), money)
    lines.heading(message("Solving again"))
    lines.line(message("command"), "fleetmark plan --from plan.xlsx --xlsx new.xlsx", "code")
    for label, text in _AGAIN:
        lines.line(label, text)
    lines.heading(message("Tabs"))
    for title, _, what in TABS.values():
        lines.line(title, what)
    lines.heading(message("Where it is from"))
    lines.line(
        message("made"),
        message("{when} by fleetmark {version}", when=fmt.moment(provenance.created), version=provenance.version),
    )
    if provenance.command:
        lines.line(message("command"), provenance.command, "code")
    sheet.text(lines.row, 0, message("sources"), "strong")
    named(book, "question_source", Block(sheet, lines.row, 0, len(q.source) + 1, 2))
    lines.row += 1
    for name, origin in q.source.items():
        lines.line(name, origin, "code", "wrap")
    sheet.inner.set_portrait()


def _in_words(shown: Front, lines: _Lines) -> None:
    lines.heading(message("Summary, as solved"))
    lines.line(message("plan"), shown.answer, "answer")
    if shown.now:
        lines.line(message("first order"), shown.now)
    lines.line(message("cost"), shown.cost)
    lines.line(message("otherwise"), shown.nothing)
    for label, texts in (
        (message("how sure"), shown.sure),
        (message("Largest risks"), shown.risks),
        (message("What limits it"), shown.limits),
    ):
        for i, text in enumerate(texts):
            lines.line(label if i == 0 else "", text)


def _answer(book: Book, at: Places, n: Numbers, broken: int, lines: _Lines) -> None:
    q, plan = n.question, n.plan
    lines.heading(message("The plan now"))
    lines.live(message("present value, {money}", money=q.currency), f"={at.total.at(0)}", n.total, PRICE)
    lines.live(message("servers to order"), f"=SUM({at.buy.all})", float(n.buy.sum()), INTEGER)
    lines.live(message("servers to retire"), f"=SUM({at.retire.all})", float(n.retire.sum()), INTEGER)
    yes, no = book.words(message("all are kept")), book.words(message("are not kept: see Checks"))
    lines.live(
        message("limits"),
        f'=IF({at.verdict.at(0)},{quoted(yes)},{at.broken.at(0)}&" "&{quoted(no)})',
        f"{broken} {no}" if broken else yes,
    )
    lines.sheet.paint(f"B{lines.row}", {yes: "ok"})
    lines.line(message("solved in"), fmt.duration(plan.seconds))
    span = message(
        "{first} to {last}, {n} periods of {years} years",
        first=q.periods[0],
        last=q.periods[-1],
        n=n.periods,
        years=f"{q.years:g}",
    )
    lines.line(message("horizon"), span)


def charts(book: Book, at: Places, n: Numbers) -> None:
    """Demand and capacity by workload, cost by year, power by site; below them the cells that only charts use."""
    sheet = at.sheets["charts"]
    number = 1 + len(n.workloads) + len(n.sites)
    row = 3 + _LINES * -(-number // 2) + 1
    sheet.text(row, 0, message("Data of the charts"), "heading")
    names: dict[str, str] = {}
    capacities = {
        "capacity": message("capacity, all sites up"),
        "counted": message("capacity"),
    }
    for key, label in {**_SERIES, **capacities}.items():
        row += 1
        sheet.text(row, 0, label, "note")
        names[key] = f"={sheet.at(row, 0)}"
    band = Block(sheet, row + 1, 4, len(n.workloads), n.periods)
    limit = Block(sheet, row + 1 + len(n.workloads), 4, len(n.sites), n.periods)
    for i, w in enumerate(n.workloads):
        sheet.text(band.row + i, 0, message("width of the band: {workload}", workload=w), "note")
    band.live(lambda i, t: f"={at.high.at(i, t)}-{at.low.at(i, t)}", lambda i, t: _width(n, i, t), AMOUNT)
    for k, site in enumerate(n.sites):
        sheet.text(limit.row + k, 0, message("power limit: {site}", site=site), "note")
    source = [at.power.sheet.at(at.power.row + k, 2) for k in range(len(n.sites))]
    limit.live(lambda k, _: f"={source[k]}", lambda k, _: n.question.sites[n.sites[k]].power_w, INTEGER)
    charts = [
        _by_year(book, at, n),
        *(_demand(book, at, n, i, names, band) for i in range(len(n.workloads))),
        *(_power(book, at, n, k, names, limit) for k in range(len(n.sites))),
    ]
    sheet.inner.set_h_pagebreaks([3 + 2 * _LINES * page for page in range(1, len(charts) // 4 + 1)])
    sheet.width(0, 9)
    for place, chart in enumerate(charts):
        sheet.place(chart, 3 + _LINES * (place // 2), 10 * (place % 2), 610, 20 * (_LINES - 1))


def _width(n: Numbers, i: int, t: int) -> float:
    low, high = (quantile(n.point[i, t], n.sigma[i, t], share) for share in BAND)
    return high - low


def _periods(at: Places) -> str:
    return f"={at.period.down(1)}"


def _demand(book: Book, at: Places, n: Numbers, i: int, names: Mapping[str, str], band: Block) -> Any:
    work = n.question.workloads[n.workloads[i]]
    chart = book.chart("area", message("{workload}: demand and capacity", workload=work.name), subtype="stacked")
    periods = _periods(at)
    hidden: dict[str, Any] = {"fill": {"none": True}, "border": {"none": True}}
    light: dict[str, Any] = {"fill": {"color": COLOURS[0], "transparency": 84}, "border": {"none": True}}
    for key, block, look in (("below", at.low, hidden), ("band", band, light)):
        chart.add_series({"name": names[key], "categories": periods, "values": f"={block.line(i)}", **look})
    lines = book.chart("line", "")
    for key, block, colour, dash in (
        ("median", at.median, COLOURS[0], "dash"),
        ("planned", at.planned, COLOURS[1], "solid"),
        *((("capacity", at.delivered, COLOURS[2], "round_dot"),) if n.question.survives(work.name) else ()),
        ("counted", at.counted, COLOURS[2], "solid"),
    ):
        look = {"line": {"color": colour, "width": 2.25, "dash_type": dash}, "marker": {"type": "none"}}
        lines.add_series({"name": names[key], "categories": periods, "values": f"={block.line(i)}", **look})
    chart.combine(lines)
    chart.set_legend({"position": "bottom", "delete_series": [0]})
    chart.set_y_axis(
        {
            "name": book.words(work.unit).lstrip("="),
            "min": 0,
            "num_format": "#,##0",
            "name_font": {"bold": False},
            "major_gridlines": _GRID,
        }
    )
    return chart


def _by_year(book: Book, at: Places, n: Numbers) -> Any:
    chart = book.chart("column", message("Cost by year, undiscounted"), subtype="stacked")
    sheet, block = at.by_year.sheet, at.by_year
    heads = f"={sheet.span(block.row - 1, block.col, block.row - 1, block.col + block.cols - 1)}"
    for i in range(len(KINDS)):
        label = f"={sheet.at(block.row + i, 0)}"
        fill = {"fill": {"color": COLOURS[i]}, "gap": 80}
        chart.add_series({"name": label, "categories": heads, "values": f"={block.line(i)}", **fill})
    money = {"name": n.question.currency, "num_format": "#,##0", "name_font": {"bold": False}, "major_gridlines": _GRID}
    chart.set_y_axis(money)
    return chart


def _power(book: Book, at: Places, n: Numbers, k: int, names: Mapping[str, str], limit: Block) -> Any:
    site = n.question.sites[n.sites[k]]
    chart = book.chart("column", message("{site}: power at peak of what is installed", site=site.name))
    periods = _periods(at)
    fill = {"fill": {"color": COLOURS[5]}, "gap": 60}
    chart.add_series({"name": names["power"], "categories": periods, "values": f"={at.power.line(k)}", **fill})
    if site.power_w is not None:
        lines = book.chart("line", "")
        look = {"line": {"color": COLOURS[1], "width": 2.25}, "marker": {"type": "none"}}
        lines.add_series({"name": names["limit"], "categories": periods, "values": f"={limit.line(k)}", **look})
        chart.combine(lines)
    chart.set_y_axis(
        {"name": "kW", "min": 0, "num_format": "#,##0,", "name_font": {"bold": False}, "major_gridlines": _GRID}
    )
    return chart
