"""Test frontiers in reports: load points, pairs counted for the serving host, and equivalence in every format."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.record import compare as comparing
from fleetmark.record import evidence
from fleetmark.record.archive import Archive
from fleetmark.record.results import HostInfo, Results
from fleetmark.record.view import load_results
from fleetmark.reports.campaign import document as campaign_report
from fleetmark.reports.campaign.view import view
from fleetmark.reports.comparison.compared import Compared, with_evidence
from fleetmark.reports.formats import html as page_format
from fleetmark.reports.formats import markdown as marks_format
from fleetmark.reports.frontier import amounts
from fleetmark.reports.frontier.pictures import pictures
from fleetmark.reports.frontier.points import families
from fleetmark.reports.kit import charts
from fleetmark.reports.kit.document import Note, Section, in_json
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Tabular
from fleetmark.verbs import report as reporting
from fleetmark.verbs.documents import Documents
from tests.commands import run
from tests.parsers.reading import FIXTURES
from tests.records import Bench, record
from tests.reports import rendered
from tests.reports.compared import ENGLISH, compared, document
from tests.reports.loads import LOADS, PRICE, measured
from tests.reports.pages import Page


def power(metric: str, source: str, watts: float, host: str = "a") -> dict[tuple[str, Bench], list[float]]:
    benches = [
        Bench("llm_serve", f"p512-o128-c{n}", metric, "W", "lower", "gpu-server", (("source", source),)) for n in LOADS
    ]
    return {(host, bench): [watts] for bench in benches}


def two(root: Path) -> Compared:
    """Return a comparison of three old and three new hosts."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    record(root, "c-old", {h: {"gen": "old", **PRICE} for h in old}, measured(old, 1.0))
    record(root, "c-new", {h: {"gen": "new"} for h in new}, measured(new, 3.0))
    return compared(root, "gen=old", ["gen=new"])


def answers(host: str, metric: str, better: str, value: float | None) -> dict[tuple[str, Bench], list[float]]:
    """Return a metric of the answers' quality of one host; nothing if it has none."""
    labels = (("model", "m"),)
    bench = Bench("llm_serve", "p512-o128-c1", metric, "1", better, "gpu-server", labels, kind="guardrail")
    return {(host, bench): [value]} if value is not None else {}


@pytest.mark.parametrize(
    ("metric", "better", "old", "new", "is_equal"),
    [
        ("perplexity", "lower", 10.0, 10.1, True),
        ("perplexity", "lower", 10.0, 10.4, False),
        ("perplexity", "lower", 10.0, 9.0, True),
        ("retrieval", "higher", 1.0, 0.95, True),
        ("retrieval", "higher", 1.0, 0.6, False),
        ("exact_match", "higher", 0.9, 0.0, False),
        ("logprob_difference", "lower", 0.01, 0.05, True),
        ("logprob_difference", "lower", 0.01, 0.07, False),
        ("logprob_difference", "lower", 0.0, 0.06, False),
        ("logprob_difference", "lower", 0.2, 0.01, True),
    ],
)
def test_equal_service_needs_equal_answers(
    tmp_path: Path, metric: str, better: str, old: float, new: float, is_equal: bool
) -> None:
    record(tmp_path, "c-old", {"o1": {"gen": "old"}}, measured(["o1"], 1.0) | answers("o1", metric, better, old))
    rows = measured(["n1", "n2"], 3.0) | answers("n1", metric, better, old) | answers("n2", metric, better, new)
    record(tmp_path, "c-new", {h: {"gen": "new"} for h in ("n1", "n2")}, rows)
    (block,) = compared(tmp_path, "gen=old", ["gen=new"]).frontiers
    at_50 = block.family.equal_service("old", "new", 50)
    assert (at_50.ratio is not None) is is_equal
    if not is_equal:
        assert at_50.reason == f"not equivalent: answers are worse ({metric} {new:.3g}, baseline {old:.3g})"
        assert {row["note"] for row in rows_of(block.section, "equal_service")} == {at_50.reason}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (None, 0.04, ""),
        (None, 0.06, "not equivalent: answers are worse (logprob_difference 0.06, baseline 0)"),
        (0.01, None, "not equivalent: the candidate has no logprob_difference, which the baseline has"),
        (None, None, ""),
    ],
)
def test_a_baseline_that_was_not_compared_is_the_reference(
    tmp_path: Path, old: float | None, new: float | None, reason: str
) -> None:
    for side, value, factor in (("old", old, 1.0), ("new", new, 3.0)):
        rows = measured([side], factor) | answers(side, "logprob_difference", "lower", value)
        record(tmp_path, f"c-{side}", {side: {"gen": side}}, rows)
    (block,) = compared(tmp_path, "gen=old", ["gen=new"]).frontiers
    at_50 = block.family.equal_service("old", "new", 50)
    assert (at_50.reason, at_50.ratio is None) == (reason, bool(reason))
    stated = "exact_match 10%, retrieval 10%, perplexity 2%, logprob_difference 0.05" in str(block.section)
    assert stated is (old is not None or new is not None)


def results(root: Path, rows: Mapping[tuple[str, Bench], list[float]], *hosts: str) -> Results:
    record(root, "c", {h: {"gen": "x"} for h in hosts}, dict(rows))
    return load_results(Archive(root / "c"))


def table_of(section: Section, key: str) -> Tabular:
    (table,) = [e for e in section.exhibits if isinstance(e, Tabular) and e.key == key]
    return table


def notes_of(section: Section) -> list[str]:
    return [e.text for e in section.exhibits if isinstance(e, Note)]


def rows_of(section: Section, key: str) -> list[dict[str, Any]]:
    """Return the rows of a table of ``section`` as text by column."""
    table = table_of(section, key)
    return [{c.key: cell.text for c, cell in zip(table.columns, row, strict=True)} for row in table.rows]


SLOWER = {1: (80.0, 0.05), 16: (45.0, 0.3), 64: (20.0, 0.8), 128: (18.0, 4.0)}


def test_the_answer_without_a_slow_host_is_at_equal_service_too(tmp_path: Path) -> None:
    """Three new hosts do 3 times the work at every speed, and a fourth is slower. Its latency alone gives 1.32."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    record(tmp_path, "c-old", {h: {"gen": "old"} for h in old}, measured(old, 1.0))
    rows = {**measured(new, 3.0), **measured(["n4"], 3.0, loads=SLOWER)}
    record(tmp_path, "c-new", {h: {"gen": "new"} for h in (*new, "n4")}, rows)
    doc = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--format", "json"))
    assert doc["answer"]["sentence"].startswith("At 50 tokens/s per user, one new accelerator replaces 2.58 (")
    (sentence,) = [s for s in doc["answer"]["before_you_rely_on_this"] if s.startswith("n4 is ")]
    assert "slower than its peers" in sentence and "; excluding it: new 3.00 (" in sentence


@pytest.mark.parametrize("per", ["server", "money"])
def test_prices_of_servers_give_the_cost_at_equal_service(tmp_path: Path, per: str) -> None:
    """Each server has two accelerators: 100 old ones cost 100 x 4 / 2 = 200 USD, ceil(100 / 3) new ones 34 x 9 / 2 = 153."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    record(tmp_path, "c-old", {h: {"gen": "old", **PRICE} for h in old}, measured(old, 1.0))
    record(tmp_path, "c-new", {h: {"gen": "new", **PRICE, "price": "9"} for h in new}, measured(new, 3.0))
    doc = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", per, "--format", "json"))
    assert doc["answer"]["totals"] == [
        "34 new accelerators serve as much as 100 old accelerators and cost 153 USD per hour; "
        "100 old accelerators cost 200 USD per hour"
    ]


def test_the_first_screen_has_the_cost_of_a_million_tokens(tmp_path: Path) -> None:
    """An accelerator of an old host costs 2 USD an hour and one of a new host 4.5 USD for three times the work."""
    labels = {"old": PRICE, "new": {**PRICE, "price": "9"}}
    for gen, factor in (("old", 1.0), ("new", 3.0)):
        hosts = [f"{gen}{n}" for n in range(3)]
        record(tmp_path, f"c-{gen}", {h: {"gen": gen, **labels[gen]} for h in hosts}, measured(hosts, factor))
    seen = compared(tmp_path, "gen=old", ["gen=new"])
    report = document(seen)
    (first,) = [s for s in report.sections if s.key == "classes"]
    (text,) = [str(e.text) for e in first.exhibits if isinstance(e, Note) and "million tokens" in e.text]
    work = float(rows_of(seen.frontiers[0].section, "equal_service")[1]["baseline_work"])
    old = 2 / (work * 3600) * 1e6
    assert text.startswith("Cost of a million tokens at 50 tokens/s per user, in USD: old ")
    shown = [float(word.rstrip(",")) for word in text.split() if word[0].isdigit()][1:]
    assert shown == [pytest.approx(old, rel=5e-3), pytest.approx(old * 4.5 / 2 / 3, rel=5e-3)]
    states = {c["state"] for c in report.data["coverage"] if c["class"] == "gpu-server"}
    assert states == {"measured"}


def test_a_comparison_says_what_one_replaces_at_equal_service(tmp_path: Path) -> None:
    (block,) = two(tmp_path).frontiers
    section = block.section
    assert section.title == "Frontier of llm_serve p512-o128 model=m" and block.unit == "accelerator"
    rows = {row["speed"]: row for row in rows_of(section, "equal_service")}
    assert rows["50"]["ratio"] == "3.00" and rows["50"]["hosts"] == "3+3"
    assert float(rows["50"]["lo"]) < 3 < float(rows["50"]["hi"])
    assert rows["20"]["ratio"] == ""
    assert rows["20"]["note"].startswith("not measured: every load of both sides is faster")
    assert rows["100"]["ratio"] == "3.00"
    loads = rows_of(section, "loads")
    assert {p["load"] for p in loads if p["dominated"]} == {"c128"}
    first = next(p for p in loads if p["host"] == "o1" and p["load"] == "c16")
    assert first["work"] == "432.0"  # 0.9 x 16 x 60 on two accelerators
    assert first["cost"] == "1.29"  # 2 USD an hour for 432 x 3600 tokens
    assert first["per_megawatt"] == "432,000"  # 432 on 1,000 W
    assert [c.title for c in table_of(section, "loads").columns if c.key == "cost"] == ["USD per million tokens"]
    assert "energy" not in first
    assert next(p for p in loads if p["host"] == "n1")["cost"] == ""


def answered(root: Path, *words: str, hosts: Mapping[str, float], loads: Mapping[int, tuple[float, float]]) -> Any:
    """Return the JSON of three old hosts against ``hosts`` (name to factor of work), measured at ``loads``."""
    old = {f"o{n}": {"gen": "old"} for n in range(3)}
    record(root, "c-old", old, measured(list(old), 1.0, spread=0.0))
    rows: dict[tuple[str, Bench], list[float]] = {}
    for host, factor in hosts.items():
        rows |= measured([host], factor, loads=loads if factor else SLOW_LOADS)
    record(root, "c-new", {h: {"gen": "new"} for h in hosts}, rows)
    return json.loads(run(root, "compare", "-b", "gen=old", "-c", "gen=new", *words, "--format", "json"))


SLOW_LOADS = {1: (15.0, 0.05), 16: (9.0, 0.2)}  # slower than every speed at which sides are compared


def test_the_first_sentence_is_the_one_at_equal_service(tmp_path: Path) -> None:
    """Give each new host three times the work at every speed; at a fixed concurrency users see the same speed."""
    doc = answered(tmp_path, hosts={"n1": 3.0, "n2": 3.0, "n3": 3.0}, loads=LOADS)
    first = doc["answer"]
    assert (
        first["sentence"] == "At 50 tokens/s per user, one new accelerator replaces 3.00 (3.00–3.00) old accelerators"
    )
    (service,) = [c for c in first["classes"] if c["kind"] == "capacity"]
    assert service["title"] == "serving at 50 tokens/s per user"
    assert service["candidates"]["new"]["servers"] == "34"
    kinds = {r["benchmark"].split()[2]: r["kind"] for r in doc["rows"] if r["benchmark"]}
    assert kinds["output_tokens_per_second"] == kinds["interactivity"] == "responsiveness"


def test_hosts_that_miss_the_service_count_as_no_work(tmp_path: Path) -> None:
    """Let two of four hosts do 5.9 times the work and two do none: 2 x 5.9 / 4 = 2.95, and 100 / 2.95 = 33.9."""
    doc = answered(tmp_path, hosts={"n1": 5.9, "n2": 5.9, "n3": 0.0, "n4": 0.0}, loads=LOADS)
    words = "At 50 tokens/s per user, one new accelerator replaces about 2.95 old accelerators; new: 2 of 4 hosts miss the target"
    assert doc["answer"]["sentence"] == words
    assert doc["answer"]["classes"][0]["candidates"]["new"]["servers"] == "34"
    (at_50,) = [e for e in doc["frontiers"][0]["equal_service"] if e["speed"] == 50]
    assert at_50["bound"] == "about" and at_50["note"] == "2 of 4 hosts miss the target"


def test_a_baseline_that_misses_the_service_gives_a_lower_bound(tmp_path: Path) -> None:
    """Check the highest speeds: old hosts do 0.9 x 100 / 2 = 45 tokens/s per accelerator at 100/s, new ones 3 x 45."""
    doc = answered(tmp_path, hosts={"n1": 3.0, "n2": 3.0}, loads={1: (400.0, 0.05), 16: (200.0, 0.2)})
    (at_100,) = [e for e in doc["frontiers"][0]["equal_service"] if e["speed"] == 100]
    work = 3 * 0.9 * 16 * 200 / 2
    assert at_100["candidate_work"] == pytest.approx(work) and at_100["bound"] == "at least"
    assert at_100["ratio"] == pytest.approx(work / 45)


def test_a_price_of_the_command_line_goes_before_that_of_the_inventory(tmp_path: Path) -> None:
    two(tmp_path)
    question = comparing.Question(
        root=tmp_path, baseline="gen=old", candidates=["gen=new"], prices=["old=8 USD/hour", "gen=new=1,461 EUR/month"]
    )
    answer = comparing.compare(question)
    (block,) = with_evidence(answer, *evidence.gather(tmp_path, answer, [], "2026-11-02T00:00:00Z")).frontiers
    cost = {p["host"]: p["cost"] for p in rows_of(block.section, "loads") if p["load"] == "c16"}
    assert cost["o1"] == "2.57 USD" and cost["n1"] == "0.214 EUR"  # 4 USD and 1 EUR an hour for one accelerator
    assert {h.labels["price"] for h in evidence.hosts(answer)} == {"8", "1461"}
    assert question.command()[6:10] == ["--price", "old=8 USD/hour", "--price", "gen=new=1,461 EUR/month"]


def inferencex(root: Path) -> None:
    """Import points of two kinds of accelerators: loads on one of them and on four."""
    (point, *_) = json.loads((FIXTURES / "inferencex" / "agg_schema.json").read_text())
    points = [
        point | {"hw": hw, "tp": tp, "conc": 16 * tp, "output_tput_per_gpu": factor * 1000 / tp}
        | {"median_intvty": 60.0 + 20 * tp, "median_ttft": 0.2}
        for hw, factor in (("h200", 1), ("b200", 3))
        for tp in (1, 4)
    ]  # fmt: skip
    file = root / "agg.json"
    file.write_text(json.dumps(points))
    run(root, "import", "inferencex", str(file))


def test_prices_of_inferencex_are_of_one_accelerator_however_many_a_load_takes(tmp_path: Path) -> None:
    """An h200 costs 3.6 USD an hour: 1,000 tokens/s on one then cost 1 USD per million, 250 each on four 4 USD."""
    inferencex(tmp_path)
    answer = [
        "compare",
        "-b",
        "hw=h200",
        "-c",
        "hw=b200",
        "--price",
        "h200=3.6 USD/hour",
        "--price",
        "b200=7.2 USD/hour",
    ]
    doc = json.loads(run(tmp_path, *answer, "--format", "json"))
    costs = {(p["side"], p["load"]): p["cost"] for p in doc["frontiers"][0]["loads"]}
    assert costs["h200", "c16-tp1-ep1"] == pytest.approx(1) and costs["h200", "c64-tp4-ep1"] == pytest.approx(4)
    assert costs["b200", "c16-tp1-ep1"] == pytest.approx(2 / 3)
    text = run(tmp_path, *answer)
    assert "Price of one accelerator: h200 3.60 USD per hour, b200 7.20 USD per hour" in " ".join(text.split())
    assert "100 h200 accelerators cost 360 USD per hour" in " ".join(text.split())
    assert "Price of a server" not in text


def test_a_label_says_how_many_accelerators_a_price_is_of(tmp_path: Path) -> None:
    """A server of eight accelerators costs 4 USD an hour, and its loads take two: one costs 0.50 USD."""
    archive = record(tmp_path, "c", {"o1": {"gen": "old", **PRICE, "gpus": "8"}}, measured(["o1"], 1.0))
    (block,) = campaign_report.frontiers(view(load_results(archive)))
    assert block.family.prices == {"old": (0.5, "USD")} and block.family.sizes == {"o1": 8}


@pytest.mark.parametrize(
    ("price", "words"),
    [("old=cheap", "write NAME=15500 EUR"), ("old=0 EUR", "write NAME"), ("other=5 EUR", "no side is called other")],
)
def test_what_is_no_price_is_refused(tmp_path: Path, price: str, words: str) -> None:
    two(tmp_path)
    with pytest.raises(FleetmarkError, match=words):
        comparing.compare(comparing.Question(root=tmp_path, baseline="gen=old", candidates=["gen=new"], prices=[price]))


def test_a_comparisons_documents_show_it(tmp_path: Path) -> None:
    """``test_documents`` compares the figures of its tables."""
    seen = two(tmp_path)
    report = document(seen)
    (block,) = seen.frontiers
    doc = rendered.in_json(report)["frontiers"]
    assert [list(part) for part in doc] == [["title", "notes", "equal_service", "loads"]]
    marks, text = marks_format.render(report, ENGLISH).replace("\\", ""), rendered.shown(report)
    page, book = page_format.render(report, ENGLISH), rendered.in_workbook(report)
    assert "Work against speed" in page and {"Equivalence at equal service", "Loads"} <= set(book.sheetnames)
    for sentence in (block.section.title, *notes_of(block.section)):
        assert sentence in marks and sentence in text and sentence in " ".join(Page(page).words.split())


def test_the_terminal_needs_no_document_to_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the data read for the terminal and for JSON equals that of a document."""
    sections = [block.section for block in two(tmp_path).frontiers]
    question = comparing.Question(root=tmp_path, baseline="gen=old", candidates=["gen=new"])
    reporting.comparison(question, "json", Console(file=io.StringIO()), Documents())
    doc = json.loads(capsys.readouterr().out)
    assert doc["frontiers"] == json.loads(json.dumps(in_json(sections)))


def test_energy_is_of_runs_that_had_the_host_to_themselves(tmp_path: Path) -> None:
    seen = results(tmp_path, measured(["a"], 1.0) | power("power", "meter", 600), "a")
    (block,) = campaign_report.frontiers(view(seen))
    energy = {p["load"]: p["energy"] for p in rows_of(block.section, "loads")}
    assert energy["c16"] == "0.69"  # 600 W for 864 tokens/s
    assert "Power: by meter." in notes_of(block.section)


@pytest.mark.parametrize(("source", "energy"), [("rapl", "0.87"), ("psys", "0.23")])
def test_accelerators_count_where_the_source_of_power_leaves_them_out(tmp_path: Path, source: str, energy: str) -> None:
    drawn = power("power", source, 200) | power("accelerator_power", "nvml", 550)
    (block,) = campaign_report.frontiers(view(results(tmp_path, measured(["a"], 1.0) | drawn, "a")))
    assert {p["load"]: p["energy"] for p in rows_of(block.section, "loads")}["c16"] == energy
    assert ("Power: by nvml, rapl." in notes_of(block.section)) == (source == "rapl")


@pytest.mark.parametrize(
    ("speeds", "numbers"),
    [
        ([24.0, 100.0], [30, 40, 50, 60, 70, 80, 90, 100]),
        ([3.0, 800.0], [5, 10, 20, 50, 100, 200, 500]),
        ([0.02, 900.0], [0.1, 1, 10, 100]),
    ],
)
def test_speed_is_drawn_as_it_is_interpolated(speeds: list[float], numbers: list[float]) -> None:
    """Check that the axis is logarithmic and has round numbers."""
    points = [(speed, 10.0, math.nan, math.nan) for speed in speeds]
    spec: Any = charts.curve([charts.Line("x", "#000", 0, points)], "x", "y", charts.Across.SPEED)
    x = spec["layer"][-1]["encoding"]["x"]
    assert x["scale"]["type"] == "log" and x["axis"]["values"] == pytest.approx(numbers)


def test_a_campaigns_documents_show_it(tmp_path: Path) -> None:
    document = campaign_report.document(results(tmp_path, measured(["a"], 1.0), "a"))
    page = page_format.render(document, Language())
    assert 'id="frontier"' in page and "Work against speed" in page and "dominated" in page
    text = rendered.shown(document, 80)
    assert "Frontier of llm_serve p512-o128" in text and "dominated" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(" ")) <= 80  # commands are one line
    assert "### Loads" in marks_format.render(document, Language())
    book = rendered.in_workbook(document)
    assert "Frontier of llm_serve p512-o128" in book.sheetnames


def test_of_a_pair_the_point_is_of_the_host_that_serves(tmp_path: Path) -> None:
    seen = results(tmp_path, measured(["a"], 1.0, "a>b"), "a", "b")
    (family,) = families(seen.values.frame, seen.hosts)
    assert {machine for machines in family.sides.values() for machine in machines} == {"b"}
    assert families(schema.frame(), seen.hosts) == []


@pytest.mark.parametrize(
    ("term", "hours"),
    [
        ("hour", 1),
        ("h", 1),
        ("hourly", 1),
        ("per month", 730.5),
        ("monthly", 730.5),
        ("5 years", 43830),
        ("3y", 26298),
        ("0.5 day", 12),
        ("", None),
        ("on-demand", None),
        ("0 h", None),
    ],
)
def test_a_price_is_for_a_time(term: str, hours: float | None) -> None:
    assert amounts.hours(term) == hours


def test_a_side_has_a_price_where_every_host_has_one_in_one_currency() -> None:
    def host(name: str, **labels: str) -> HostInfo:
        return HostInfo(name=name, generation="x", labels=labels)

    bought = host("a", price="87660", currency="EUR", term="5 years")
    rented = host("b", price="4", currency="EUR", term="hour")
    assert amounts.price([bought, rented], {"b": 4.0}) == (pytest.approx(1.5), "EUR")
    assert amounts.price([bought, host("c", price="1", currency="USD", term="h")], {}) is None
    assert amounts.price([bought, host("c", price="nan", currency="EUR", term="h")], {}) is None
    assert amounts.price([bought, host("c")], {}) is None and amounts.price([], {}) is None
    assert amounts.provisioned([host("a", provisioned_w="8000"), host("b")], {"a": 8.0}) == {"a": 1000.0}


def priced(root: Path) -> Compared:
    """Return a comparison of three old and three new hosts, all with prices in one currency."""
    old, new = ["o1", "o2", "o3"], ["n1", "n2", "n3"]
    record(root, "c-old", {h: {"gen": "old", **PRICE} for h in old}, measured(old, 1.0))
    record(root, "c-new", {h: {"gen": "new", **PRICE, "price": "9"} for h in new}, measured(new, 3.0))
    return compared(root, "gen=old", ["gen=new"])


def spots(spec: Any, layer: int) -> list[dict[str, Any]]:
    """Return the points of a layer of a scatter chart: the band of the best, the lines, or all points."""
    values: list[dict[str, Any]] = spec["layer"][layer]["data"]["values"]
    return values


def test_prices_turn_work_into_cost(tmp_path: Path) -> None:
    """A new host costs 9 USD an hour for two accelerators: 4.5 USD for 3 x 432 tokens/s at 60 tokens/s of one user."""
    (block,) = priced(tmp_path).frontiers
    (chart, _) = pictures([block], ENGLISH)[0]
    assert str(chart.title) == "Cost against speed: p512-o128 model=m" and chart.spec and chart.native
    spec = chart.spec()
    cost = 4.5 / (3 * 432 * 3600) * 1e6
    (point,) = [p for p in spots(spec, 2) if p["s"] == "new n1" and p["x"] == 60.0]
    assert point["y"] == pytest.approx(cost) and point["best"]
    assert point["d"] == f"new n1: c16, 60.00 tokens/s of one user, {cost:.3f} USD per million tokens, 1,296 tokens/s per accelerator, wait 200 ms"  # fmt: skip
    assert [p["x"] for p in spots(spec, 2) if p["s"] == "new n1" and not p["best"]] == [24.0]  # the overloaded one
    best = spots(spec, 0)
    assert [p["y"] for p in best] == sorted(p["y"] for p in best) and len({p["y"] for p in best}) == len(best)
    assert chart.series == ("old o1", "old o2", "old o3", "new n1", "new n2", "new n3")
    assert chart.native.values == ("cost",) and [rows for _, rows, _ in chart.native.groups] == [4] * 6


def test_without_a_price_of_every_side_it_is_work(tmp_path: Path) -> None:
    (block,) = two(tmp_path).frontiers  # only the old hosts have a price
    (chart, _) = pictures([block], ENGLISH)[0]
    assert str(chart.title).startswith("Work against speed") and chart.native and chart.native.values == ("work",)


def test_every_format_draws_it(tmp_path: Path) -> None:
    report = document(priced(tmp_path))
    text = rendered.shown(report)
    assert "Cost against speed" in text and "USD per million tokens (log)" in text and "o old o1" in text
    book = rendered.in_workbook(report)
    assert any("Loads" in sheet.title and sheet._charts for sheet in book)
    page = page_format.render(report, ENGLISH)
    assert "tokens/s of one user (log)" in page and "data-series=" in page
    assert "old o1: c16, 60.00 tokens/s of one user" in page
