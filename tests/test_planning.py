"""Test ``fleetmark plan`` from end to end: output, documents and exit statuses."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from fleetmark.cli.common import OK, SOME_FAILED
from fleetmark.demand import question as demand
from fleetmark.planner.capacity.analysis.alternatives import alternatives
from fleetmark.planner.capacity.analysis.results import Conflict, Limit
from fleetmark.planner.capacity.analysis.tornado import tornado
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.question import Question
from fleetmark.reports.formats import html as html_format
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan.model import view
from fleetmark.verbs import plan as planning
from tests.demands import SMALL, changed
from tests.reports.rendered import shown as printed

EFFORT = planning.Effort(gap=0.0, seconds=600, draws=200)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["plan", *words])


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Solve the example of `plan init`, and write every document."""
    folder = tmp_path_factory.mktemp("example")
    file = folder / "demand.yml"
    assert run("init", str(file)).exit_code == OK
    documents = ["--xlsx", str(folder / "plan.xlsx"), "--html", str(folder / "plan.html"), "--date", "2026-12-24"]
    return folder, run(str(file), "--format", "json", "--draws", "500", "--seconds", "600", *documents)


@pytest.fixture(scope="module")
def doc(example: tuple[Path, Result]) -> Any:
    _, result = example
    assert result.exit_code == OK, result.output
    return json.loads(result.stdout)


def test_the_example_keeps_every_limit(doc: Any) -> None:
    plan, q = doc["plan"], doc["question"]
    assert 0 <= plan["gap"] <= 0.01
    assert plan["bound"] <= plan["objective"]
    assert sum(row["present"] for row in plan["costs"]) == pytest.approx(plan["objective"])
    assert all(row["capacity"] >= row["planned"] * (1 - 1e-6) for row in doc["capacity"])
    assert all(row["planned"] >= row["demand"] * (1 - 1e-9) for row in doc["capacity"])
    assert all(row["power_w"] <= row["power_limit_w"] * (1 + 1e-9) for row in doc["sites"])
    assert all(row["ports"] <= row["port_limit"] and row["rack_units"] <= row["rack_limit"] for row in doc["sites"])
    old = [r for r in plan["stock"] if (r["sku"], r["site"], r["period"]) == ("icelake", "ams", q["periods"][7])]
    assert not [r for r in old if r["installed"]]  # they are 13 quarters old at the start, and retire at 20
    assert all(row["count"] >= 8 for row in plan["buy"])
    assert {row["sku"] for row in plan["buy"]} <= {"genoa", "turin"}


def test_the_example_is_worth_reading(doc: Any) -> None:
    """Check results that do not depend on the speed of the machine, because these analyses have no time limit."""
    assert doc["futures"]["seed"] == 3  # a different seed than that of the futures that chose the margins
    assert doc["futures"]["shortfall"] <= 0.06  # the target is 5% of 2000 futures; these are 500
    last = doc["futures"]["table"][-1]
    assert last["servers_p50"] <= last["servers_p90"] <= last["servers_p95"]
    q = demand.read(demand.EXAMPLE, Path())
    plan = best(q, gap=0.01, seconds=3600, margin=doc["plan"]["margin"])
    assert plan is not None
    (other,) = alternatives(q, plan, limit=1, clock=Clock(3600))
    assert other.extra >= -plan.objective * 0.01
    weighty = tornado(q, plan, limit=6, clock=Clock(3600))
    assert {e.name for e in weighty[:2]} == {"demand of web", "utilisation of web"}
    demand_of_web = next(e for e in weighty if e.name == "demand of web")
    assert demand_of_web.at_high is not None and demand_of_web.at_low is not None  # a plan exists for this demand
    assert demand_of_web.at_high > 0 > demand_of_web.at_low


def test_costs_follow_from_what_is_bought_and_runs(doc: Any) -> None:
    q, plan = doc["question"], doc["plan"]
    by_kind: dict[str, float] = {}
    for row in plan["costs"]:
        by_kind[row["kind"]] = by_kind.get(row["kind"], 0) + row["money"]
    assert by_kind["purchase"] == pytest.approx(sum(q["skus"][b["sku"]]["price"] * b["count"] for b in plan["buy"]))
    support = sum(q["skus"][r["sku"]]["support"] * r["installed"] * q["years"] for r in plan["stock"])
    assert by_kind["support"] == pytest.approx(support)


def test_the_page_is_complete_and_fetches_nothing(example: tuple[Path, Result], doc: Any) -> None:
    page = (example[0] / "plan.html").read_text()
    assert f"{doc['plan']['objective']:,.0f} EUR" in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    for part in ("answer", "purchases", "capacity", "costs", "sites", "limits", "futures", "inputs", "provenance"):
        assert f'<section id="{part}"' in page
    assert page.count("<svg") >= 2 + 1 + 2 + 1  # demand, costs, power and cost drivers
    assert "2026-12-24" in page
    assert 'id="units"' in page and 'id="filter"' in page  # power in kW or in W
    assert doc["question"]["source"]["demand.yml"] in page


def test_progress_stays_off_stdout(example: tuple[Path, Result]) -> None:
    _, result = example
    assert result.stdout.startswith("{")
    assert "solving for 95.0% of futures" in result.stderr
    assert "wrote" in result.stderr


# Small questions


def question(tmp_path: Path, text: str) -> Question:
    file = tmp_path / "demand.yml"
    file.write_text(text)
    return demand.read(file, tmp_path / "results")


def answered(q: Question) -> planning.Answer:
    return planning.answer(q, EFFORT, Console(quiet=True))


def shown(answer: planning.Answer, width: int = 80) -> str:
    return printed(document(answer), width)


def document(answer: planning.Answer) -> Document:
    return planning.document(answer, planning.Provenance("2026-12-24T00:00:00Z", command="fleetmark plan"), Language())


def test_a_workbook_asks_again(tmp_path: Path) -> None:
    file, workbook = tmp_path / "demand.yml", tmp_path / "plan.xlsx"
    file.write_text(changed("[100, 110, 120, 130]", "[100, 110, 140, 140]"))
    first, again = (
        run(*words, "--format", "json", "--gap", "0", "--draws", "100")
        for words in ((str(file), "--xlsx", str(workbook)), ("--from", str(workbook)))
    )
    assert (first.exit_code, again.exit_code) == (OK, OK), again.output
    plans = [json.loads(r.stdout)["plan"] for r in (first, again)]
    assert plans[0]["buy"]
    assert plans[0]["buy"] == plans[1]["buy"]
    assert plans[0]["objective"] == pytest.approx(plans[1]["objective"])


def test_what_is_certain_is_planned_without_margin(tmp_path: Path) -> None:
    answer = answered(question(tmp_path, SMALL))
    assert answer.plan is not None
    # 200 icelake servers at 65% serve exactly 130, so nothing has to be bought.
    assert answer.plan.stock["buy"].sum() == 0
    text = shown(answer)
    assert text.startswith("Buy nothing")
    assert "planned for more than the median demand" not in text


def test_more_demand_buys_just_enough(tmp_path: Path) -> None:
    answer = answered(question(tmp_path, changed("[100, 110, 120, 130]", "[100, 110, 140, 140]")))
    assert answer.plan is not None
    # 140 - 130 = 10 more in the third quarter: 10 / (1.83 x 0.65) = 8.4; ordered 2 quarters ahead.
    buys = answer.plan.stock[answer.plan.stock["buy"] > 0]
    assert (buys["sku"].iloc[0], buys["period"].iloc[0]) == ("genoa", 0)
    assert "2027-Q1" in shown(answer)


def test_a_demand_that_comes_before_any_server_can(tmp_path: Path) -> None:
    text = changed("[100, 110, 120, 130]", "[100, 400, 400, 400]")
    answer = answered(question(tmp_path, text))
    assert answer.plan is None
    output = shown(answer)
    assert output.startswith("No plan is possible")
    assert "web" in output
    result = run(str(tmp_path / "demand.yml"), "--format", "json")
    assert result.exit_code == SOME_FAILED
    conflict = json.loads(result.stdout)["conflict"]
    assert conflict["limits"]


def test_without_a_plan_no_document_is_written(tmp_path: Path) -> None:
    (tmp_path / "demand.yml").write_text(changed("[100, 110, 120, 130]", "[400, 400, 400, 400]"))
    page = tmp_path / "plan.html"
    result = run(str(tmp_path / "demand.yml"), "--html", str(page))
    assert result.exit_code == SOME_FAILED and "no document was written" in result.stderr
    assert not page.exists()


HOSTILE = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", "\u202egnol" + "x" * 300)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.scripts += tag == "script"


def test_hostile_names_show_and_do_nothing(tmp_path: Path) -> None:
    workload, sku, site = (json.dumps(name) for name in HOSTILE)
    text = SMALL.replace("  web:\n", f"  {workload}:\n").replace("{web: 1}", f"{{{workload}: 1}}")
    text = text.replace("web: 1.83", f"{workload}: 1.83").replace("icelake:\n", f"{sku}:\n")
    text = (
        text.replace("sku: icelake", f"sku: {sku}")
        .replace("  ams:", f"  {site}:")
        .replace("site: ams", f"site: {site}")
    )
    answer = answered(question(tmp_path, text))
    assert answer.plan is not None
    page = html_format.render(document(answer), Language())
    tags = _Tags()
    tags.feed(page)
    plain = html_format.render(document(answered(question(tmp_path, SMALL))), Language())
    expected = _Tags()
    expected.feed(plain)
    assert tags.scripts == expected.scripts
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\u202e" not in shown(answer)
    assert document(answer).data["plan"]["stock"][0]["sku"] == HOSTILE[1]


def test_it_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    text = shown(answered(question(tmp_path, changed("[100, 110, 120, 130]", "[100, 110, 140, 140]"))))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_a_note_says_that_next_best_plans_are_missing(tmp_path: Path) -> None:
    answer = answered(question(tmp_path, changed("[100, 110, 120, 130]", "[100, 110, 140, 140]")))
    assert answer.plan is not None and answer.plan.stock["buy"].any()
    for few in (0, 1):
        assert "  No other plan was found that buys less" in shown(
            replace(answer, alternatives=answer.alternatives[:few])
        )


def test_a_conflict_in_words(tmp_path: Path) -> None:
    q = question(tmp_path, SMALL)
    limits = [Limit("power at ams", 42_000.0, "W", 3.1e6), Limit("demand of web in 2027-Q2", None, "servers")]
    conflict = Conflict([*limits, Limit("budget of ams", 12_345_678.0, "EUR")])
    text = shown(Answer(q, None, conflict), 200)
    assert "3 limits cannot be met together" in text
    assert "power at ams: alone it must be relaxed by 42 kW; the plan then costs 3,100,000 EUR" in text
    assert "budget of ams: alone it must be relaxed by 12,345,678 EUR" in text
    assert "changing it alone does not help" in text
    assert "a smaller set" in text


def test_years_are_the_calendars_or_counted(tmp_path: Path) -> None:
    answer = answered(question(tmp_path, changed("{start: 2027-Q1, count: 4}", "{start: 2027-Q3, count: 4}")))
    assert answer.plan is not None
    assert view(answer).years == ("2027", "2028")
    named = changed("{start: 2027-Q1, count: 4}", "{names: [pilot, launch, grow, hold], length: half}")
    answer = answered(question(tmp_path, named))
    assert answer.plan is not None
    assert view(answer).years == ("year 1", "year 2")


# Wrong use


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "plan needs a question"),
        (["{d}/demand.yml", "--from", "{d}/plan.xlsx"], "one of them"),
        (["{d}/nothing.yml"], "no such file; `fleetmark plan init"),
        (["{d}/plan.xlsx"], "a workbook is read by --from"),
        (["{d}/demand.yml", "--html", "{d}"], "is a folder"),
        (["{d}/demand.yml", "--xlsx", "{d}/no/plan.xlsx"], "there is no folder"),
        (["{d}/demand.yml", "--lang", "tlh"], "no language 'tlh'"),
        (["init", "{d}/demand.yml"], "exists already"),
        (["init", "{d}/no/demand.yml"], "there is no folder"),
    ],
)
def test_wrong_use_ends_in_a_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "demand.yml").write_text(SMALL)
    (tmp_path / "plan.xlsx").write_bytes(b"")
    result = run("solve" if not words else words[0].format(d=tmp_path), *[w.format(d=tmp_path) for w in words[1:]])
    assert isinstance(result.exception, FleetmarkError)
    assert sentence in str(result.exception)


def test_init_writes_sheets_that_solve_the_same(tmp_path: Path) -> None:
    result = run("init", str(tmp_path / "sheets"))
    assert result.exit_code == OK
    assert {p.name for p in (tmp_path / "sheets").iterdir()} == {
        "settings.csv", "demand.csv", "skus.csv", "sites.csv", "worth.csv", "fleet.csv",
    }  # fmt: skip
    sheets = planning.question(tmp_path / "sheets", None, tmp_path)
    assert sheets.skus == demand.read(demand.EXAMPLE, tmp_path).skus
