"""Pools of servers: alike from YAML, sheets and workbook, whole in every document, and faults with their place."""

from __future__ import annotations

import io
import re
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import openpyxl
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.demand import workbook
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Plan
from fleetmark.planner.capacity.solve import solve
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.language import Language, language
from tests import sheets
from tests.demands import changed
from tests.reports import plan_sample
from tests.reports.plan_sample import document
from tests.reports.rendered import shown as printed

MORE = """\
  shop:
    unit: icelake servers
    demand: 40
    utilisation: 60%
    pool: front
  batch:
    unit: icelake servers
    demand: 30
    utilisation: 80%
    availability: preemptible
    pool: front
  db:
    unit: icelake servers
    demand: 20
    utilisation: 50%
    dedicated: yes
"""
WORTH = "worth: {web: 1.83, shop: 1.9, batch: 2.1, db: 1.7}"


def text() -> str:
    pooled = changed("    utilisation: 65%\nskus:", f"    utilisation: 65%\n{MORE}skus:")
    pooled = changed("discount: 8%", "discount: 8%\nsurvive: yes", pooled)
    pooled = changed("    lead: 4 months\n", "", pooled)
    return changed("worth: {web: 1}", "worth: {web: 1, shop: 1}", changed("worth: {web: 1.83}", WORTH, pooled))


@cache
def answer() -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "demand.yml").write_text(text())
        q = demand.read(Path(folder) / "demand.yml", Path(folder))
    plan = solve(q, gap=0.01)
    assert isinstance(plan, Plan)
    return Answer(q, plan)


def test_sheets_and_workbook_ask_the_same(tmp_path: Path) -> None:
    (tmp_path / "demand.yml").write_text(text())
    q = demand.read(tmp_path / "demand.yml", tmp_path)
    assert q.pools == {"": ["web"], "front": ["shop", "batch"], "db": ["db"]}
    (folder := tmp_path / "sheets").mkdir()
    for name, sheet in demand_csv.sheets(read_yaml(tmp_path / "demand.yml"), q.periods).items():
        (folder / name).write_text(sheet)
    assert demand.read(folder, tmp_path).workloads == q.workloads
    (tmp_path / "plan.xlsx").write_bytes(plan_sample.workbook(answer()))
    assert workbook.read(tmp_path / "plan.xlsx").pools == q.pools


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "    dedicated: yes",
            "    dedicated: yes\n    pool: back",
            "a workload with dedicated servers cannot share a pool",
        ),
        ("40\n    utilisation: 60%\n    pool: front", "40\n    utilisation: 60%\n    pool: back", "in the pool front"),
        ("60%\n    pool: front", "60%\n    pool: db", "db is a workload with dedicated servers"),
        ("60%\n    pool: front", "60%\n    pool: [a]", "pool"),
    ],
)
def test_bad_pools_name_their_place(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    file = tmp_path / "demand.yml"
    file.write_text(changed(old, new, text()))
    with pytest.raises(FleetmarkError) as caught:
        demand.read(file, tmp_path)
    assert re.search(rf"demand.yml line \d+.*{sentence}", str(caught.value)), caught.value


def test_every_cell_agrees_and_an_edit_shows(tmp_path: Path) -> None:
    book = plan_sample.workbook(answer())
    pool_cell = _cell(book, "workload_pool", 0)
    computed, edited = sheets.recalculated([book, sheets.edited(book, {pool_cell: "front"})])
    assert list(sheets.disagreements(book, computed)) == []
    assert computed["Plan"]["B6"] == "all are kept"
    assert edited["Plan"]["B6"] != "all are kept"
    pools = {v for c, v in computed["Pools"].items() if c.startswith("A")}
    assert {"front", "db"} <= pools


def _cell(book: bytes, name: str, row: int) -> tuple[str, str]:
    ((sheet, span),) = openpyxl.load_workbook(io.BytesIO(book)).defined_names[name].destinations
    first = span.replace("$", "").split(":")[0]
    column = first.rstrip("0123456789")
    return sheet, f"{column}{int(first.removeprefix(column)) + row}"


def test_every_document_says_whole_servers_and_shares() -> None:
    one, ledger = answer(), answer().ledger
    front, db = (int(ledger.pooled[name][:, -1].sum()) for name in ("front", "db"))
    assert (ledger.pooled["front"] == ledger.pooled["front"].round()).all()
    report = document(one)
    chinese = html.render(document(one, language("zh-CN")), language("zh-CN"))
    shown = (printed(report, 200), html.render(report, Language()), markdown.render(report, Language()))
    assert all(re.search(rf"\d+% of {front} in front", document) for document in shown)
    assert re.search(rf"front 中 {front} 台的 \d+%", chinese)
    doc = report.data
    pools = {pool["pool"]: pool["servers"][-1] for pool in doc["terms"]["pools"]}
    assert (pools["front"], pools["db"]) == (front, db)
    assert all(row["of"] == round(row["of"]) and 0 < row["share"] <= 1 for row in doc["plan"]["use"])


def test_every_document_begins_with_the_first_order() -> None:
    one = answer()
    assert one.plan is not None
    first = one.plan.stock[one.plan.stock["buy"] > 0]["period"].min()
    assert first == 0
    count = int(one.plan.stock[one.plan.stock["period"] == 0]["buy"].sum())
    sentence = f"Order now, in 2027-Q1: {count} genoa, in use from 2027-Q1"
    report = document(one)
    assert sentence in report.data["summary"]["now"]
    assert sentence in html.render(report, Language())
    assert sentence in markdown.render(report, Language())
    readme = sheets.values(plan_sample.workbook(one))["Readme"]
    assert any(sentence in str(value) for value in readme.values())
    later = replace(one.plan, stock=one.plan.stock.assign(buy=0))
    assert document(replace(one, plan=later)).data["summary"]["now"] == ""
