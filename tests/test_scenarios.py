"""Scenarios: what a file changes in a question, the table of differences in every format, and files that change nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner, Result

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.cli.app import app
from fleetmark.cli.common import OK
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.demand import workbook
from fleetmark.planner.capacity.answer import Answer, Scenario
from fleetmark.reports.formats import html
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan import scenarios
from tests.demands import changed
from tests.reports import plan_sample
from tests.reports.rendered import shown as printed


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["plan", *words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "demand.yml").write_text(changed("[100, 110, 120, 130]", "[100, 110, 140, 140]"))
    return tmp_path


def test_a_scenario_changes_what_it_names_and_nothing_else(folder: Path) -> None:
    file = folder / "slow.yml"
    file.write_text(
        "energy_price: 0.4\nworkloads: {web: {demand: {start: 90, growth: 0}, slo: {mean: 1s, service_time: 8ms, slots: 8}}}\n"
    )
    before = demand.read(folder / "demand.yml", folder)
    after = demand.read(folder / "demand.yml", folder, file)
    assert (after.energy_price, after.workloads["web"].point) == (0.4, (90.0,) * 4)
    assert after.utilisation("genoa", "web") == 0.85  # the objective replaces the utilisation
    assert (after.sites, after.fleet, after.periods) == (before.sites, before.fleet, before.periods)
    assert set(after.source) >= {"demand.yml", "slow.yml"}
    sheets = folder / "sheets"
    sheets.mkdir()
    for name, text in demand_csv.sheets(read_yaml(folder / "demand.yml"), before.periods).items():
        (sheets / name).write_text(text)
    assert demand.read(sheets, folder, file).workloads == after.workloads


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "the scenario changes nothing"),
        ("pue: 1.3", "the scenario changes nothing"),
        ("workloads: {wbe: {utilisation: 50%}}", "line 1: no workload 'wbe' (did you mean web?); a new one needs unit"),
        ("skus: {gnoa: {price: 9000}}", "line 1: no SKU 'gnoa' (did you mean genoa?); a new one needs price and power"),
        ("sites: {frra: {power: 90 kW}}", "line 1: no site 'frra' (did you mean fra?); a new one needs domain"),
        ("peu: 1.4", "other.yml line 1: peu: is not a valid key (did you mean pue?)"),
        ("workloads:\n  web:\n    utilisation: 95%", "other.yml line 3: workloads.web.utilisation: 0.95 is above 0.85"),
        (
            "workloads: {web: {utilisation: 50%, slo: {mean: 1s, service_time: 8ms, slots: 8}}}",
            "give utilisation (above 0, up to 85%) or slo, one of them",
        ),
        ("skus: {genoa: {worth: {wbe: 2}}}", "no workload 'wbe' (did you mean web?)"),
    ],
)
def test_a_wrong_scenario_ends_in_a_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "other.yml").write_text(text)
    with pytest.raises(FleetmarkError) as error:
        demand.read(folder / "demand.yml", folder, folder / "other.yml")
    assert sentence in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_scenario_of_a_workbook(tmp_path: Path) -> None:
    q = plan_sample.question()
    (tmp_path / "plan.xlsx").write_bytes(plan_sample.workbook(Answer(q, plan_sample.plan(q))))
    (tmp_path / "cheap.yml").write_text("energy_price: 0.05")
    assert workbook.read(tmp_path / "plan.xlsx", scenario=tmp_path / "cheap.yml").energy_price == 0.05


def test_plans_are_solved_side_by_side(folder: Path) -> None:
    (folder / "dear.yml").write_text("skus: {genoa: {price: 24000}}")
    (folder / "full.yml").write_text("sites: {ams: {rack_units: 1}, fra: {rack_units: 1}}")
    options = ["--scenario", str(folder / "dear.yml"), "--scenario", str(folder / "full.yml")]
    result = run(str(folder / "demand.yml"), *options, "--format", "json", "--seconds", "600", "--draws", "200")
    assert result.exit_code == OK, result.output
    doc = json.loads(result.stdout)
    dear, full = doc["scenarios"]
    assert (dear["name"], full["name"], full["figures"]) == ("dear", "full", {})
    extra = dear["figures"]["purchases"] / sum(r["present"] for r in doc["plan"]["costs"] if r["kind"] == "purchase")
    assert extra == pytest.approx(2.0)
    assert dear["figures"]["cost"] > doc["plan"]["objective"]


def test_every_format_has_the_table_of_differences() -> None:
    q = plan_sample.question()
    plan = plan_sample.plan(q)
    more = plan_sample.decided(q, {("new", "ams", 1): 30}, {}, {}, {})
    answer = Answer(q, plan, scenarios=[Scenario("more <new>", q, more), Scenario("none", q, None)])
    table = {str(row.name): row for row in scenarios.rows(answer)}
    assert table["new to buy"].differences == [30 - 77, None]
    cost = table["present value"].differences[0]
    assert cost is not None and cost == pytest.approx(more.objective - plan.objective)
    words = f"{cost:+,.0f}".replace("-", "−")
    report = plan_sample.document(answer)
    page, text = html.render(report, Language()), printed(report, 120)
    assert words in text and words in page
    assert "more &lt;new&gt;" in page and "no plan" in page and "no plan" in text
    cells = openpyxl.load_workbook(io.BytesIO(plan_sample.workbook(answer)), data_only=True)["Sensitivity"]
    values = [c.value for row in cells.iter_rows() for c in row]
    assert any(isinstance(v, int | float) and v == pytest.approx(cost) for v in values)
    assert scenarios.rows(Answer(q, plan)) == []
