"""``fleetmark plan review`` on recorded campaigns: from a plan in JSON to the page, the next plan and its errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.common import SOME_FAILED
from fleetmark.demand import question as demand
from fleetmark.demand import saved
from fleetmark.planner.capacity.question import Plan
from fleetmark.planner.review.review import Review, Verdict
from fleetmark.reports.formats import csv, html, markdown, pdf, xlsx
from fleetmark.reports.formats import json as json_form
from fleetmark.reports.kit.language import Language, language
from fleetmark.reports.review.document import document
from fleetmark.verbs import plan as planning
from fleetmark.verbs.documents import Documents, renderers
from fleetmark.verbs.plan.review import Measuring, review
from tests.commands import run
from tests.records import MCF, TRIAD, record

HOUSE = Path(__file__).parents[1]
QUESTION = """\
currency: EUR
date: 2026-12-01
periods: {start: 2027, count: 4}
discount: 7%
energy_price: 0.16
pue: 1.3
workloads:
  web: {unit: icelake servers, demand: [60, 90, 130, 180], utilisation: 70%}
skus:
  icelake: {price: not sold, power: {idle: 200 W, peak: 500 W}, rack_units: 1, worth: {web: 1}}
  genoa:
    price: 12000
    power: {idle: 220 W, peak: 700 W}
    rack_units: 1
    worth: {web: WORTH}
sites:
  ams:
fleet:
  - {sku: icelake, site: ams, count: 90}
"""
COMPARED = "{compare: {candidate: gen=genoa, baseline: gen=icelake, benchmark: 'spec_cpu2017/*/base_ratio'}}"
EFFORT = planning.Effort(gap=0.01, draws=300)
HOSTS = (0.99, 1.0, 1.01, 0.995, 1.005, 1.0)  # levels of hosts of one type
QUIET = Console(quiet=True)


def campaign(root: Path, name: str, gen: str, level: float) -> None:
    """A campaign of six hosts of a generation."""
    hosts = {f"{name[-2:]}{n}": {"gen": gen} for n in range(len(HOSTS))}
    record(root, name, hosts, {(h, MCF): [100 * level * f] for h, f in zip(hosts, HOSTS, strict=True)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with two generations, a plan by them, and two deliveries: one slow, one as promised."""
    folder = tmp_path_factory.mktemp("review")
    campaign(folder / "rec", "20261101T000000-old", "icelake", 1.0)
    campaign(folder / "rec", "20261102T000000-new", "genoa", 1.83)
    written(folder, "plan.json", COMPARED)
    written(folder, "stated.json", "{value: 1.83, error: 5%}")
    campaign(folder / "rec", "20270301T000000-slow", "genoa", 1.71)
    campaign(folder / "rec", "20270302T000000-good", "genoa", 1.84)
    campaign(folder / "rec", "20270303T000000-else", "turin", 2.9)
    record(folder / "rec", "20270304T000000-triad", {"t1": {"gen": "genoa"}}, {("t1", TRIAD): [2e11]})
    return folder


def written(folder: Path, name: str, worth: str, text: str = QUESTION) -> None:
    """Write the plan of the question with that worth as JSON."""
    (folder / "demand.yml").write_text(text.replace("WORTH", worth))
    answer = planning.answer(demand.read(folder / "demand.yml", folder / "rec"), EFFORT, QUIET)
    assert isinstance(answer.plan, Plan)
    shown = planning.document(answer, planning.Provenance("2026-12-01"), Language())
    (folder / name).write_bytes(renderers(shown, Documents())["json"]())


def reviewed(folder: Path, *delivered: str, plan: str = "plan.json", **more: object) -> Review:
    return review(folder / plan, delivered, folder / "rec", EFFORT, QUIET, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def slow(folder: Path) -> Review:
    return reviewed(folder, "genoa@2028=20270301T000000-slow")


def test_a_plan_is_read_back_as_it_was(folder: Path) -> None:
    (folder / "demand.yml").write_text(QUESTION.replace("WORTH", COMPARED))
    question, plan = saved.read(folder / "plan.json")
    worth = question.skus["genoa"].worth["web"]
    assert worth.origin is not None
    assert (worth.origin.select, worth.origin.baseline, worth.origin.hosts) == ("gen=genoa", "gen=icelake", (6, 6))
    assert question.skus["icelake"].worth["web"].df == float("inf")
    assert plan.costs["present"].sum() == pytest.approx(plan.objective, rel=1e-6)
    stated = saved.read(folder / "stated.json")[0]
    fresh = demand.read(_question(folder, "{value: 1.83, error: 5%}"), folder / "rec")
    assert replace(stated, source={}) == replace(fresh, source={})


def _question(folder: Path, worth: str) -> Path:
    file = folder / "again.yml"
    file.write_text(QUESTION.replace("WORTH", worth))
    return file


def test_a_slow_lot_owes_servers_and_the_plan_buys_more(slow: Review) -> None:
    finding = slow.findings[0]
    assert finding.verdict is Verdict.BELOW
    assert finding.promised == pytest.approx(1.83)
    assert finding.measured.value == pytest.approx(1.71)
    assert finding.servers == -(-finding.delivery.lot.count * 12 // 171)
    after = slow.updates[0].after
    assert after.value == pytest.approx(1.71)  # too slow to be the servers that were compared
    assert slow.plan is not None and slow.futures is not None
    assert slow.kept_futures.shortfall.value > 0.5
    assert slow.futures.shortfall.value < 0.06
    assert slow.plan.objective > slow.kept.objective
    assert not slow.is_sound


def test_a_lot_as_promised_changes_little(folder: Path) -> None:
    good = reviewed(folder, "genoa@2028=20270302T000000-good")
    assert [f.verdict for f in good.findings] == [Verdict.KEPT]
    assert good.is_sound
    assert good.plan is not None
    assert good.plan.objective == pytest.approx(good.kept.objective, rel=0.02)
    assert document(good, "", "").answer == "Every delivered lot performs as promised."


def test_worths_given_as_figures_are_measured_as_the_user_says(folder: Path) -> None:
    measuring = Measuring("gen=icelake", benchmark="spec_cpu2017/*/base_ratio")
    done = reviewed(folder, "genoa@2028=20270301T000000-slow", plan="stated.json", measuring=measuring)
    assert done.findings[0].measured.value == pytest.approx(1.71)
    assert 1.71 < done.updates[0].after.value < 1.72
    assert done.updates[0].after.promised == 1.83


def test_every_format_says_what_is_owed(slow: Review) -> None:
    shown = document(slow, "2027-03-05T00:00:00Z", "fleetmark plan review")
    owed = f"{slow.findings[0].servers} more servers"
    assert owed in shown.answer
    spoken = Language()
    assert owed in html.render(shown, spoken)
    assert owed in markdown.render(shown, spoken)
    assert "1.71" in csv.render(shown)
    assert pdf.render(shown, spoken).startswith(b"%PDF")
    assert xlsx.render(shown, spoken).startswith(b"PK")
    assert "批次" in html.render(shown, language("zh-CN"))
    data = json.loads(json_form.render(shown))
    schema = json.loads((HOUSE / "docs" / "reference" / "schemas" / "plan-review.schema.json").read_text())
    jsonschema.validate(data, schema)
    assert data["deliveries"][0]["owed"]["servers"] == slow.findings[0].servers
    assert sum(row["now"] - row["planned"] for row in data["purchases"]) > 0
    assert data["shortfall"]["planned"]["value"] > data["shortfall"]["now"]["value"]


REFUSED: Mapping[str, tuple[list[str], str]] = {
    "never planned": (["genoa@2035=last"], "lot 'genoa@2035' was never planned"),
    "twice": (["genoa@2028=last", "genoa@2028=last"], "name a lot once"),
    "a circle": (["genoa@2028=genoa@2029", "genoa@2029=genoa@2028"], "in a circle"),
    "no campaign": (["genoa@2028=20280101"], "no campaign '20280101'"),
    "another benchmark": (["genoa@2028=20270304T000000-triad"], "does not measure the worth for web"),
    "other servers": (["genoa@2028=20270303T000000-else"], "none of its hosts is gen=genoa"),
    "nothing": ([], "needs a delivered lot"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_in_a_sentence(folder: Path, case: str) -> None:
    delivered, sentence = REFUSED[case]
    with pytest.raises(FleetmarkError) as error:
        reviewed(folder, *delivered)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_options_that_are_refused(folder: Path) -> None:
    lot = "genoa@2028=20270301T000000-slow"
    with pytest.raises(FleetmarkError, match="how to measure it: --baseline gen=icelake --class cpu-int"):
        reviewed(folder, lot, plan="stated.json")
    with pytest.raises(FleetmarkError, match="lot genoa@2028 counts from 2029 on; name that period or a later one"):
        reviewed(folder, lot, now="2027")
    with pytest.raises(FleetmarkError, match="nothing remains to be planned"):
        reviewed(folder, "genoa@2030=20270301T000000-slow")
    with pytest.raises(FleetmarkError, match="the plan has no such period"):
        reviewed(folder, lot, now="2040")
    with pytest.raises(FleetmarkError, match="--baseline goes with one of --class and --benchmark"):
        reviewed(folder, lot, measuring=Measuring("gen=icelake"))


@pytest.mark.parametrize(
    "changes",
    [
        {"mix": "/etc/shares.yml", "benchmark": ""},
        {"mix": "/etc/a=1.yaml", "benchmark": ""},
        {"mix": None, "benchmark": ""},
        {"class_": "cpu-int"},
        {"benchmark": ""},
        {"unit": 0},
    ],
)
def test_a_saved_origin_chooses_no_file_and_one_thing(folder: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    worth = plan["question"]["skus"]["genoa"]["worth"]["web"]
    assert worth["origin"]["benchmark"]
    worth["origin"] |= changes
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    with pytest.raises(FleetmarkError, match="is a plan of another version"):
        saved.read(file)


def test_files_that_are_no_plan(folder: Path, tmp_path: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    broken: dict[str, list[object]] = {
        "is a plan of another version of Fleetmark": [
            {**plan, "schema": 2},
            {**plan, "question": {"source": "x"}},
            {**plan, "question": {**plan["question"], "discount": -1}},
            {**plan, "question": {**plan["question"], "colour": "red"}},
            {**plan, "question": {**plan["question"], "carbon_by_year": {"1999": 5.0}}},
            {**plan, "question": {k: v for k, v in plan["question"].items() if k != "skus"}},
            {**plan, "plan": {**plan["plan"], "stock": [{"sku": "x"}]}},
        ],
        "is JSON, but not a plan": [[1], {"schema": 1}],
        "contains no feasible plan": [{**plan, "plan": None}],
        "does not match its question": [{**plan, "plan": {**plan["plan"], "use": []}}],
    }
    file = tmp_path / "plan.json"
    for sentence, documents in broken.items():
        for doc in documents:
            file.write_text(json.dumps(doc))
            with pytest.raises(FleetmarkError, match=sentence):
                saved.read(file)
    for text in ("currency: EUR", '{"question": {"pue": NaN}}', '{"schema": ' + "9" * 400 + "}", '{"pue": 1e300}'):
        file.write_text(text)
        with pytest.raises(FleetmarkError, match="is not a plan in JSON"):
            saved.read(file)
    with pytest.raises(FleetmarkError, match="no such file"):
        saved.read(tmp_path / "absent.json")


def test_the_command_writes_the_next_plan(folder: Path) -> None:
    """Its exit status tells of the slow lot, and the next plan can be reviewed against the first promise."""
    words = ["plan", "review", str(folder / "plan.json"), "--delivered", "genoa@2028=20270301T000000-slow"]
    words += ["--draws", "300", "--new", str(folder / "next.json"), "-o", str(folder / "review.md")]
    printed = run(folder / "rec", *words, status=SOME_FAILED)
    assert "To keep the promise takes" in " ".join(printed.split())
    assert "What changes" in (folder / "review.md").read_text()
    again = reviewed(folder, "genoa@2029=20270302T000000-good", plan="next.json")
    assert again.question.periods == ("2030",)
    assert again.findings[0].promised == pytest.approx(1.83)
    assert again.findings[0].verdict is Verdict.KEPT
    assert again.updates[0].before.value < 1.83


def test_reviews_that_the_question_announces_divide_its_promise(folder: Path) -> None:
    """With one review to come, plan and review have their parts of the 5% that may fail; a second needs --quantile."""
    text = QUESTION.replace("WORTH", COMPARED) + "reviews: 1\nquantile: 90%\n"
    written(folder, "once.json", COMPARED, text)
    question, plan = saved.read(folder / "once.json")
    assert (question.reviews, question.reviewed, plan.stopped) == (1, 0, False)
    words = ["plan", "review", str(folder / "once.json"), "--delivered", "genoa@2028=20270302T000000-good"]
    run(folder / "rec", *words, "--draws", "300", "--new", str(folder / "reviewed.json"))
    after, _ = saved.read(folder / "reviewed.json")
    assert (after.reviews, after.reviewed, after.quantile) == (1, 1, 0.9)
    assert (1 - question.promise) + (1 - after.promise) == pytest.approx(0.1)
    lot = "genoa@2029=20270302T000000-good"
    with pytest.raises(FleetmarkError, match=r"all reviews of its question were made \(reviews: 1\)"):
        reviewed(folder, lot, plan="reviewed.json")
    assert reviewed(folder, lot, plan="reviewed.json", quantile=0.9).question.promise == 0.9
