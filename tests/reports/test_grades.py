"""Operators graded by their roofs, with scores to a reference, and their picture."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pandas as pd
import pytest

from fleetmark.record.archive import Archive
from fleetmark.record.sides.titles import title_of
from fleetmark.record.view import load_results
from fleetmark.reports.campaign import grades as graded
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.grade_tables import section
from fleetmark.reports.campaign.grades import grade_of, grades
from fleetmark.reports.campaign.roofline import pictures
from fleetmark.reports.formats import html, markdown, xlsx
from fleetmark.reports.kit.document import in_json
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Tabular
from tests.records import Bench, record
from tests.reports.pages import Page
from tests.reports.rendered import shown as in_terminal
from tests.reports.shown import drawn, shown

CASES = {  # share of the roof, balance
    "basic-8t-b1/mm/bf16/x": (0.9, 12.0),
    "basic-8t-b1/mm/fp32/x": (0.4, 6.0),
    "basic-8t-b1/copy/fp32/x": (2.5, 0.0),
    "fused-8t-b1/gelu/bf16/x": (0.05, 0.1),
}


def rows() -> pd.DataFrame:
    shared = {"workload": "torch_ops", "subject": "host", "labels": "{}", "standing": ""}
    table: list[dict[str, Any]] = []
    for case, (share, balance) in CASES.items():
        table.append({**shared, "case": case, "metric": "roof_share", "value": share, "better": "none"})
        table.append({**shared, "case": case, "metric": "balance", "value": balance, "better": "none"})
        table.append({**shared, "case": case, "metric": "flops", "value": 1e9, "better": "higher"})
    return pd.DataFrame(table)


def view() -> Any:
    return SimpleNamespace(hosts=("h1",), merged=rows(), generational=rows(), title_of=str)


@pytest.mark.parametrize(
    ("share", "letter"),
    [(1.0, "A"), (0.8, "A"), (0.79, "B"), (0.6, "B"), (0.4, "C"), (0.2, "D"), (0.19, "E"), (0, "E")],
)
def test_a_grade_is_a_share_of_the_roof(share: float, letter: str) -> None:
    assert grade_of(share) == letter


def test_a_class_is_the_geometric_mean_of_shares_of_at_most_one() -> None:
    basic, fused = grades(view()).classes
    assert (basic.group, basic.n, basic.grade, basic.score) == ("basic-8t-b1", 3, "B", None)
    assert basic.share == pytest.approx((0.9 * 0.4 * 1.0) ** (1 / 3))
    assert basic.counts == {"A": 2, "B": 0, "C": 1, "D": 0, "E": 0}
    assert (fused.n, fused.grade) == (1, "E")


def test_the_worst_come_first() -> None:
    worst = grades(view()).worst
    assert [g.operator for g in worst] == ["gelu/bf16/x", "mm/fp32/x", "mm/bf16/x", "copy/fp32/x"]


def test_with_a_reference_there_are_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    records = rows().to_dict("records")
    titles = {str(r["case"]): title_of(r) for r in records if r["metric"] == "flops"}
    ratios = {"basic-8t-b1/mm/bf16/x": 2.0, "basic-8t-b1/mm/fp32/x": 0.5, "fused-8t-b1/gelu/bf16/x": 3.0}
    compared = {titles[case]: SimpleNamespace(ratio=ratio) for case, ratio in ratios.items()}
    monkeypatch.setattr(graded, "ratio_of", lambda _: lambda row: compared.get(title_of(row)))
    pinned: Any = SimpleNamespace(baseline="a100@1")
    shown = grades(view(), pinned)
    assert shown.reference == "a100@1"
    basic, fused = shown.classes
    assert basic.score == pytest.approx(1.0) and basic.scored == 2
    assert fused.score == pytest.approx(3.0)
    assert [g.score for g in shown.worst] == [0.5, 2.0, 3.0]


@pytest.mark.parametrize(("generations", "scored"), [(("",), 2), (("", "new"), 0)])
def test_hosts_of_one_generation_have_scores(
    monkeypatch: pytest.MonkeyPatch, generations: tuple[str, ...], scored: int
) -> None:
    monkeypatch.setattr(graded, "ratio_of", lambda pinned: lambda row: pinned and SimpleNamespace(ratio=2.0))
    frame = rows().assign(generation="")
    fleet: Any = SimpleNamespace(
        hosts=("h1", "h2"), generations=generations, merged=frame, generational=frame, title_of=lambda _: "all hosts"
    )
    shown = grades(fleet, SimpleNamespace(baseline="a100@1"))  # type: ignore[arg-type]
    assert [c.side for c in shown.classes] == ["all hosts"] * 2
    assert sum(c.score is not None for c in shown.classes) == scored


def test_every_operator_is_a_dot_under_the_roof() -> None:
    (chart,) = pictures(grades(view()))
    assert chart.title == "torch_ops"
    for text in ("mm/bf16/x: 90%", "copy/fp32/x: 100%", "gelu/bf16/x: 5%"):
        assert text in drawn(chart)


def test_nothing_is_graded_where_nothing_has_a_roof() -> None:
    empty: Any = SimpleNamespace(hosts=("h1",), merged=rows().head(0), generational=rows().head(0), title_of=str)
    assert grades(empty) is graded.NONE and pictures(graded.NONE) == []


def test_tables_say_what_was_graded_with_its_values() -> None:
    graded_section = section(grades(view()))
    classes, worst = (e for e in graded_section.exhibits if isinstance(e, Tabular))
    assert [c.key for c in classes.columns] == ["workload", "class", "grade", "share", "cases", *"ABCDE"]
    assert [[cell.text for cell in row] for row in classes.rows] == [
        ["torch_ops", "basic-8t-b1", "B", "71.1%", "3", "2", "0", "1", "0", "0"],
        ["torch_ops", "fused-8t-b1", "E", "5.0%", "1", "0", "0", "0", "0", "1"],
    ]
    assert [(row[2].text, row[-1].text) for row in worst.rows][:2] == [
        ("gelu/bf16/x", "memory"),
        ("mm/fp32/x", "computing"),
    ]
    assert worst.title == "The worst 4, by share" and worst.rows[0][4].value == 0.05
    doc = in_json([graded_section])[0]
    assert doc["worst"][0] | {"class": "fused-8t-b1", "share": 0.05} == doc["worst"][0]
    assert section(graded.NONE).exhibits == () and in_json([section(graded.NONE)]) == []


LAUNCHES = {  # host time over device time, time as a graph in s
    "basic-8t-b1/mm/fp32/x": (0.2, None),
    "fused-8t-b1/gelu/bf16/x": (4.0, None),
    "basic-8t-b1/mm/bf16/x": (3.0, 5e-6),
}


def test_launch_bound_operators_are_marked() -> None:
    shared = {"workload": "torch_ops", "subject": "host", "labels": "{}", "standing": "", "better": "none"}
    more = [
        {**shared, "case": case, "metric": metric, "value": value}
        for case, values in LAUNCHES.items()
        for metric, value in zip(("launch_ratio", "time_graph"), values, strict=True)
        if value is not None
    ]
    frame = pd.concat([rows(), pd.DataFrame(more)])
    fleet: Any = SimpleNamespace(hosts=("h1",), merged=frame, generational=frame, title_of=str)
    shown_section = section(grades(fleet))
    (*_, worst) = (e for e in shown_section.exhibits if isinstance(e, Tabular))
    assert [c.key for c in worst.columns][-2:] == ["bound", "launch"]
    assert {row[2].text: (row[-2].text, row[-1].value) for row in worst.rows} == {
        "gelu/bf16/x": ("launching", 4.0),
        "mm/fp32/x": ("computing", 0.2),
        "mm/bf16/x": ("computing, as a graph", 3.0),
        "copy/fp32/x": ("memory", None),
    }
    assert any("start the operator" in str(e) for e in shown_section.exhibits)
    assert not any("start the operator" in str(e) for e in section(grades(view())).exhibits)


def test_a_report_shows_them_in_every_format(tmp_path: Path) -> None:
    """A campaign of one host with graded operators; its shares read alike."""
    rows = {}
    for case, (share, balance) in CASES.items():
        for metric, value, better in (
            ("roof_share", share, "none"),
            ("balance", balance, "none"),
            ("flops", 1e9, "higher"),
        ):
            rows["h1", Bench("torch_ops", case, metric, "1", better, "gpu-compute", kind="capacity")] = [value]
    record(tmp_path, "c", {"h1": {}}, rows)
    report = document(load_results(Archive(tmp_path / "c")))
    exhibits = next(s for s in report.sections if s.key == "grades").exhibits
    page, md = Page(html.render(report, Language())), markdown.render(report, Language()).replace("\\", "")
    text = in_terminal(report, 140)
    book = openpyxl.load_workbook(io.BytesIO(xlsx.render(report, Language())))
    in_book = [
        shown(c.value, c.number_format) if isinstance(c.value, float) and c.number_format != "General" else c.value
        for sheet in book.worksheets
        for row in sheet.iter_rows()
        for c in row
    ]
    tables = [exhibit for exhibit in exhibits if isinstance(exhibit, Tabular)]
    assert len(tables) == 2
    for table in tables:
        for row in table.rows:
            texts = [str(cell.text) for cell in row]
            assert texts in [[" ".join(c.split()) for c in row_] for row_ in page.rows]
            assert f"| {' | '.join(texts)} |" in md and any(all(t in line for t in texts) for line in text.splitlines())
            assert set(texts) <= set(in_book)
