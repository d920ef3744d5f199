"""Test that a price becomes a cost in every format, and what a comparison says it did not measure."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.cost import Offer, Terms, break_even, needed
from fleetmark.record.compare import Question
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.coverage import State, commands, coverage
from fleetmark.reports.comparison.purchase.bought import price_list, years_of
from fleetmark.reports.comparison.purchase.costs import summed
from fleetmark.reports.formats import csv as csv_format
from fleetmark.reports.formats import html, markdown, pdf, xlsx
from fleetmark.reports.formats import json as json_format
from fleetmark.reports.formats.strip import embedded
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Command
from fleetmark.workloads import load_suite
from tests.commands import run
from tests.reports import compared as sample
from tests.reports import rendered
from tests.reports.compared import ENGLISH, compared, document, front_of
from tests.reports.kinds import KINDS
from tests.reports.pages import Page, on_paper
from tests.sheets import edited, recalculated

PRICES = ("icelake=9000 EUR 2026-11-01", "genoa=15500 EUR 2026-11-01", "turin=19900 EUR 2026-11-01")
ASKED: dict[str, Any] = {"prices": PRICES, "servers": 250, "term": "4y", "energy": "0.25 EUR/kWh"}
MIX = "cpu-int=0.5,mem-bw=0.5"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    sample.archives(folder)
    return folder


def test_costs_are_those_of_the_ratio(root: Path) -> None:
    seen = compared(root, mix=MIX, **ASKED)
    first = front_of(seen)
    base, *bills = first.costs.bills
    terms = Terms(servers=250, years=4, energy=0.25)
    assert base.cost.total == 250 * 9000 and len(bills) == 2
    for bill, price, watts in zip(bills, (15_500, 19_900), (550, 700), strict=True):
        head = next(c for c in seen.comparison.candidates if c.title == bill.side).classes["work mix"].headline
        assert head is not None and bill.ratio is not None and bill.ratio.value == head.value
        assert bill.cost.servers == needed(250, head.value)
        yearly = price / 4 + watts / 1000 * 8766 * 0.25
        assert bill.cost.yearly == pytest.approx(bill.cost.servers * yearly)
        even = break_even(head, Offer(price=9000, watts=400), Offer(price=price, watts=watts), terms)
        assert bill.break_even == even and even is not None and even.lo is not None and even.lo < even.value


@pytest.mark.parametrize("per", ["server", "money", "core"])
def test_every_format_has_the_costs(root: Path, tmp_path: Path, per: str) -> None:
    seen = compared(root, values=True, mix=MIX, per=per, **ASKED)
    first, report = front_of(seen), document(seen)
    whole_servers = front_of(compared(root, mix=MIX, **ASKED))
    assert [b.cost for b in first.costs.bills] == pytest.approx([b.cost for b in whole_servers.costs.bills])
    page = " ".join(Page(html.render(report, ENGLISH)).words.split())
    paper = " ".join(on_paper(pdf.render(report, ENGLISH), tmp_path).split())
    md = " ".join(markdown.render(report, ENGLISH).replace("\\", "").split())
    text = " ".join(rendered.shown(report).split())
    for document_text in (page, md, text):
        assert "250 icelake cost 2,250,000 EUR" in document_text and "2026-11-01" in document_text
    for bill in first.costs.bills:
        for document_text in (page, paper, md, text):
            assert (
                fmt.money(bill.cost.total or 0) in document_text and fmt.money(bill.cost.yearly or 0) in document_text
            )
            assert bill.break_even is None or fmt.price(bill.break_even.value) in document_text
    if per in ("server", "money"):
        assert "250 icelake become" in page and first.lines[0].cells[0].servers
    doc = json.loads(json_format.render(report))
    assert [row["total"] for row in doc["costs"]] == [b.cost.total for b in first.costs.bills]
    assert doc["costs"][1]["break_even_lo"] == first.costs.bills[1].break_even.lo  # type: ignore[union-attr]
    rows = list(csv.DictReader(io.StringIO(csv_format.render(report))))
    (head,) = [r for r in rows if r["candidate"] == "genoa" and r["class"] == "work mix" and not r["benchmark"]]
    assert float(head["cost_total"]) == first.costs.bills[1].cost.total and head["cost_unit"] == "EUR"


def test_a_candidate_without_a_price_has_a_break_even_price(root: Path) -> None:
    first = front_of(compared(root, mix=MIX, prices=PRICES[:1]))
    assert any("Break-even price of a server, in EUR: genoa 1" in sentence for sentence in first.costs.more)
    assert [b.cost.total for b in first.costs.bills] == [900_000, None, None]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"servers": 0}, "--replace 0: not a number of servers"),
        ({"term": "soon"}, "--term soon: not a time of service"),
        ({"energy": "0.25 EUR/kWh"}, "add the time of service"),
        ({"energy": "cheap", "term": "4y"}, "--energy cheap: not a price"),
        ({"energy": "0.25 USD/kWh", "term": "4y", "prices": PRICES}, "the prices of icelake are in EUR"),
        ({"watts": ("genoa=lots",)}, "--watts genoa=lots: not a power"),
        ({"watts": ("milan=500",)}, "no side is called milan"),
    ],
)
def test_wrong_terms_are_refused(root: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(FleetmarkError, match=problem):
        compared(root, **options)


def test_the_command_of_a_report_repeats_the_costs(root: Path) -> None:
    words = Question(root=root, baseline="a", candidates=["b"], watts=("b=1",), **ASKED).command()
    for option, value in (("--replace", "250"), ("--term", "4y"), ("--energy", "0.25 EUR/kWh"), ("--watts", "b=1")):
        assert words[words.index(option) + 1] == value


def test_the_title_ranks_and_has_at_most_two_figures(root: Path) -> None:
    assert front_of(compared(root)).answer == (
        "One turin replaces 1.40 (disk IOPS) to 2.53 (integer) icelake servers; next best in every class: genoa"
    )


# --- coverage --------------------------------------------------------------------------------------------------------


def test_the_coverage_is_what_is_on_record(root: Path) -> None:
    seen = compared(root)
    covered = coverage(seen.comparison, seen.sides, seen.around.hosts, seen.root)
    assert covered.cells["mem-bw"]["turin"].state is State.MEASURED and covered.cells["mem-bw"]["turin"].hosts == 3
    assert covered.cells["cpu-int"]["genoa"].state is State.ESTIMATED
    assert {c.state for c in covered.cells["cpu-fp"].values()} == {State.MISSING}
    partial = covered.cells["mem-latency"]["turin"]
    assert (partial.present, partial.known) == (1, 2)
    first = covered.gaps[0]
    assert (first.workloads, first.sides, first.is_partial) == (("mlc",), ("turin",), True)
    assert first.command == f"fleetmark run --inventory t1,t2,t3 --suite mlc --results {root}"


def test_one_command_measures_all_that_the_same_sides_lack(root: Path) -> None:
    seen = compared(root)
    gaps = coverage(seen.comparison, seen.sides, seen.around.hosts, seen.root).gaps
    assert len({(gap.sides, gap.is_partial) for gap in gaps}) == len(gaps)
    nowhere = gaps[-1]
    assert len(nowhere.workloads) > 1 and f"--suite {','.join(nowhere.workloads)} " in nowhere.command
    assert list(load_suite(",".join(nowhere.workloads)).workloads) == list(nowhere.workloads)


def test_the_command_for_a_gap_of_many_hosts_names_as_many_of_each_side(root: Path) -> None:
    seen = compared(root)
    hosts = [replace(host, name=f"{host.name}-{n}") for host in seen.around.hosts for n in range(10)]
    gap = coverage(seen.comparison, seen.sides, hosts, seen.root).gaps[-1]
    names = gap.command.split("--inventory ")[1].split(" ")[0].split(",")
    assert (len(names), gap.chosen, gap.hosts) == (39, 39, 90)
    assert sum(name.startswith("t") for name in names) == 13
    (command,) = commands([gap])
    assert isinstance(command, Command) and str(command.text).endswith("To close the gap on 39 of 90 hosts")


def test_the_first_screen_names_the_gap_and_its_command(root: Path) -> None:
    report = document(compared(root))
    for text in (" ".join(rendered.shown(report).split()), markdown.render(report, ENGLISH).replace("\\", "")):
        gap = text.index("Only partly measured on turin: memory latency")
        assert gap < text.index("Coverage by side") and "--suite mlc" in text


# --- the workbook ----------------------------------------------------------------------------------------------------


def test_the_answer_of_a_workbook_follows_its_inputs(root: Path) -> None:
    book = xlsx.render(document(compared(root, values=True, mix=MIX, **ASKED)), ENGLISH)
    changes = {"B7": 40, "B8": 5, "B9": 0.5, "C15": 12_000}
    before, after = recalculated([book, edited(book, {("Answer", cell): value for cell, value in changes.items()})])
    bills = front_of(compared(root, mix=MIX, **ASKED)).costs.bills
    for line, bill in enumerate(bills, 14):
        assert before["Answer"][f"J{line}"] == pytest.approx(bill.cost.total)
        assert before["Answer"][f"K{line}"] == pytest.approx(bill.cost.yearly)
        if bill.break_even:
            assert before["Answer"][f"M{line}"] == pytest.approx(bill.break_even.value)
    ratio = after["Answer"]["D15"]
    terms = Terms(servers=40, years=5, energy=0.5)
    even = break_even(bills[1].ratio, Offer(price=9000, watts=400), Offer(price=None, watts=550), terms)  # type: ignore[arg-type]
    assert after["Answer"]["G15"] == needed(40, ratio) and after["Answer"]["J15"] == needed(40, ratio) * 12_000
    assert even is not None and after["Answer"]["M15"] == pytest.approx(even.value)


def test_prices_at_equal_service_are_of_one_accelerator(tmp_path: Path) -> None:
    report = KINDS["comparison at equal service"](tmp_path)
    text = markdown.render(report, ENGLISH)
    assert "Break-even price of one accelerator, in USD per hour: new 6.00" in text
    assert "Break-even price of a server" not in text and "| price of one accelerator (USD per hour) |" in text
    assert report.strip is not None and report.strip.piece == "accelerator" and report.strip.command == ""
    (view, turned) = report.strip.views
    assert [side.price for side in view.sides] == [2.0, 2.0]  # servers of two accelerators, 4 USD per hour
    given, back = view.sides[1].given, turned.sides[1].given
    assert given is not None and back is not None and None not in given
    assert given[0] == pytest.approx(3.0) and back[0] == pytest.approx(1 / 3)
    assert view.sides[1].ratios == {"service": given[0]} and "accelerators to replace" in embedded(
        report.strip, ENGLISH
    )


def test_a_single_year_is_no_plural_and_prices_keep_two_decimals() -> None:
    assert [str(years_of(n)) for n in (1, 1.5, 4)] == ["1 year", "1.5 years", "4 years"]
    hosts = [
        HostInfo(name=f"h{price}", generation="a", labels={"price": price, "currency": "USD", "term": "hour"})
        for price in ("2.9", "0.92736")
    ]
    assert "a 0.92736–2.90 USD per hour" in price_list(["a"], hosts)


def test_small_sums_keep_their_cents() -> None:
    amounts = {0: "0", 0.35: "0.35", 0.0042: "0.0042", 83.064: "83.06", 99.996: "100", 673_229: "673,229"}
    assert {value: summed(value) for value in amounts} == amounts


def test_what_imported_tables_lack_can_be_run_on_such_machines(tmp_path: Path) -> None:
    report = KINDS["comparison of published runs"](tmp_path)
    assert report.brief is not None
    (step,) = [s for s in report.brief.steps if isinstance(s, Command) and "run" in s.command.split()]
    assert step.text.startswith("Imported tables lack benchmarks of ") and " more" in step.text
    assert "fleetmark run --inventory HOSTS --suite " in step.command
    words = Page(html.render(report, ENGLISH)).words  # its first screen says above what was not measured
    assert "The tables lack these benchmarks. Import others, or run them on such machines" in words


def test_tables_with_a_part_of_a_classs_benchmarks_do_not_lack_them(tmp_path: Path) -> None:
    """Publish one benchmark of a class for both systems, and another for one of them."""
    rows = [
        "machine,benchmark,value,unit,better,class,kind,gen",
        *(f"a{n},x,{n + 1},score,higher,cpu-int,capacity,old" for n in range(2)),
    ]
    rows += [f"b{n},{name},{n + 3},score,higher,cpu-int,capacity,new" for n in range(2) for name in "xy"]
    (tmp_path / "figures.csv").write_text("\n".join(rows))
    run(tmp_path, "import", "table", str(tmp_path / "figures.csv"))
    text = " ".join(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new").split())
    assert "Imported tables have some benchmarks of integer on one side only." in text
    assert "Imported tables lack benchmarks of floating point" in text
