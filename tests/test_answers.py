"""Test whole comparisons against manually computed answers: mixed fleets, strata, prices and missing areas."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.commands import refused, run
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record

Values = Mapping[str, tuple[str, float]]  # maps each host to its side and figure


def fleet(
    root: Path,
    hosts: Values,
    benches: Sequence[Bench] = (TRIAD,),
    labels: Mapping[str, str] | None = None,
    name: str = "c1",
    cores: Mapping[str, int] | None = None,
) -> None:
    """Write a campaign in which each host's repeats are 0.1% below, at and above its figure."""
    measured = {
        (host, bench): [value * f if bench.better == "higher" else f / value for f in (0.999, 1.0, 1.001)]
        for host, (_, value) in hosts.items()
        for bench in benches
    }
    record(root, name, {h: {"gen": gen, **(labels or {})} for h, (gen, _) in hosts.items()}, measured, cores)


def answer_of(root: Path, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        run(root, "compare", "-b", "gen=old", "-c", "gen=new", *words, "--format", "json")
    )
    return answer


def test_totals_of_a_mixed_fleet_are_sums(tmp_path: Path) -> None:
    """Check ten hosts of 100 and ten of 400: 5,000 is 12.5 hosts of 400, so 100 become 62.5, not 50."""
    small = {f"s{n}": ("old", 100.0) for n in range(10)}
    large = {f"l{n}": ("old", 400.0) for n in range(10)}
    fleet(tmp_path, small | large | {f"n{n}": ("new", 400.0) for n in range(10)})
    doc = answer_of(tmp_path)
    assert doc["answer"]["sentence"].startswith("One new replaces 1.60 (")
    (line,) = doc["answer"]["classes"]
    assert line["candidates"]["new"]["servers"] == "63" and line["remark"] == "based on totals"
    (row,) = [r for r in doc["rows"] if not r["benchmark"]]
    assert row["basis"] == "totals" and row["geometric"] == pytest.approx(2.0)
    assert "based on totals, since the hosts of a side differ; the geometric mean is 2.00" in row["headline"]


def test_totals_of_a_mix_stand_beside_those_of_hosts_one_by_one(tmp_path: Path) -> None:
    """Give each class half of the hours. Old hosts do 100 and 400 of both, 250 on average; new ones 400 and 1,600.

    Totals: 1 / (0.5 x 250 / 400 + 0.5 x 250 / 1600) = 2.56. One by one they are 200: 1 / (0.25 + 0.0625) = 3.2. The
    ratios 2 and 8 have the geometric mean 4.
    """
    old = {f"o{n}": ("old", 100.0 if n % 2 else 400.0) for n in range(8)}
    fleet(tmp_path, old | {f"n{n}": ("new", 400.0) for n in range(8)}, (TRIAD,))
    fleet(tmp_path, old | {f"n{n}": ("new", 1600.0) for n in range(8)}, (MCF,), name="c2")
    doc = answer_of(tmp_path, "--mix", "mem-bw=0.5,cpu-int=0.5")
    assert doc["answer"]["sentence"].startswith("One new replaces 2.56 (")
    (row,) = [r for r in doc["rows"] if r["class"] == "work mix" and not r["benchmark"]]
    head = row["headline"]
    assert (
        head.startswith("2.56x (95% ") and ") for the same jobs over 2 benchmarks of the mix; based on totals" in head
    )
    assert "host by host it is 3.20" in head and "geometric mean is" not in head
    assert "geometric mean 4.00x (95% " in head and head.endswith(", depends on the mix")
    mixed = "The result depends on the mix: the geometric mean of its benchmarks is new 4.00"
    assert mixed in doc["answer"]["before_you_rely_on_this"]


def two_sizes(root: Path, gain: float = 1.5) -> None:
    """Compare 2 hosts of 32 cores (100) and 8 of 64 (400) with 8 of 32 and 2 of 64, each ``gain`` times as fast."""
    hosts = {f"os{n}": ("old", 100.0) for n in range(2)} | {f"ol{n}": ("old", 400.0) for n in range(8)}
    hosts |= {f"ns{n}": ("new", 100.0 * gain) for n in range(8)} | {f"nl{n}": ("new", 400.0 * gain) for n in range(2)}
    fleet(root, hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})


def test_sides_that_mix_sizes_are_compared_within_them(tmp_path: Path) -> None:
    """Check a gain of 1.50 in each size, although the mean falls from 303 to 198 and the total from 340 to 240."""
    two_sizes(tmp_path)
    doc = answer_of(tmp_path)
    assert doc["answer"]["sentence"].startswith("One new replaces 1.50 (")
    (line,) = doc["answer"]["classes"]
    assert line["remark"] == "size by size" and line["candidates"]["new"]["servers"] == "67"
    assert line["candidates"]["new"]["verdict"] == "better" and doc["answer"]["gets_worse"] == []
    assert [r["ratio"] for r in doc["rows"]] == [pytest.approx(1.5)] * 2
    sentences = "new is compared with old size by size, weighted by the baseline's shares: "
    assert doc["warnings"][0] == sentences + "32 cores per socket (80%): 1.50; 16 cores per socket (20%): 1.50"


def test_the_price_of_sizes_is_that_of_the_fleet_replaced(tmp_path: Path) -> None:
    """Replace 100 old hosts, 20% small and 80% large, by 67 new ones of the same shares, at 1.50 each.

    Small new hosts cost 1,000 and large ones 3,000 EUR: 0.2 x 1,000 + 0.8 x 3,000 = 2,600 each, 174,200 for 67. The new
    fleet itself has 80% small hosts, 1,400 EUR on average. Old ones cost 0.2 x 500 + 0.8 x 2,000 = 1,700.
    """
    two_sizes(tmp_path)
    for host, price in (("os", "500"), ("ol", "2000"), ("ns", "1000"), ("nl", "3000")):
        for n in range(2 if host in ("os", "nl") else 8):
            _labelled(tmp_path / "c1", f"{host}{n}", {"price": price, "currency": "EUR"})
    sentence = "67 new replace 100 old and cost 174,200 EUR; 100 old cost 170,000 EUR"
    assert answer_of(tmp_path)["answer"]["totals"] == [sentence]
    per_money = answer_of(tmp_path, "--per", "money")
    assert per_money["answer"]["totals"] == [sentence]
    gain = 1.5 * math.exp(0.2 * math.log(500 / 1000) + 0.8 * math.log(2000 / 3000))
    assert per_money["rows"][0]["ratio"] == pytest.approx(gain)


def test_tables_name_the_candidates_of_each_basis(tmp_path: Path) -> None:
    """Give new hosts both sizes of the old ones. Later hosts have one size, so they are compared by totals."""
    two_sizes(tmp_path)
    fleet(tmp_path, {f"l{n}": ("later", 500.0) for n in range(4)}, name="c2", cores={f"l{n}": 64 for n in range(4)})
    words = ("-b", "gen=old", "-c", "gen=new", "-c", "gen=later")
    doc = json.loads(run(tmp_path, "compare", *words, "--format", "json"))
    assert doc["answer"]["classes"][0]["remark"] == "based on totals (later), size by size (new)"
    terminal = run(tmp_path, "compare", *words).split("Benchmarks\n")[1]
    assert "based on totals (later), size by size (new)" in " ".join(terminal.split())


def test_a_guardrail_makes_no_host_unlike_its_peers(tmp_path: Path) -> None:
    """Let one host of six lose ten times as many packets at the same speed."""
    loss = Bench("iperf3", "udp", "loss", "1", "lower", "net", kind="guardrail")
    hosts = {f"{side[0]}{n}": (side, 100.0) for side in ("old", "new") for n in range(6)}
    fleet(tmp_path, hosts)
    fleet(tmp_path, {h: (side, 10.0 if h == "n0" else 1.0) for h, (side, _) in hosts.items()}, (loss,), name="c2")
    assert answer_of(tmp_path)["outliers"] == []


def test_tables_say_what_a_class_rests_on(tmp_path: Path) -> None:
    two_sizes(tmp_path / "sizes")
    mixed = {f"o{n}": ("old", 100.0 if n % 2 else 400.0) for n in range(8)}
    fleet(tmp_path / "totals", mixed | {f"n{n}": ("new", 400.0) for n in range(8)})
    for name, basis in (("sizes", "size by size"), ("totals", "based on totals")):
        words = ("compare", "-b", "gen=old", "-c", "gen=new")
        terminal = run(tmp_path / name, *words)
        assert " ".join(terminal.split("Benchmarks\n")[1].split()).count(basis.rpartition(" ")[0]) >= 1
        md = run(tmp_path / name, *words, "--format", "md").split("## Benchmarks")[1]
        assert re.search(rf"memory bandwidth, mem-bw [^|]*, {basis} \|", md)
        page = tmp_path / f"{name}.html"
        run(tmp_path / name, *words, "--html", str(page))
        assert f"<small>{basis}</small>" in page.read_text()


def test_weights_of_a_class_within_strata_are_values(tmp_path: Path) -> None:
    """Each size gains 1.50, but formulas over all hosts would give 0.65."""
    two_sizes(tmp_path)
    book = tmp_path / "c.xlsx"
    run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--xlsx", str(book))
    sheet = openpyxl.load_workbook(book)["Weights"]
    (row,) = [r for r in sheet.iter_rows(values_only=True) if "mem-bw" in r]
    assert row[3:6] == (1, 1, 1) and row[6:8] == (pytest.approx(math.log(1.5)), pytest.approx(1.5))
    assert not sheet.data_validations.dataValidation


def test_the_ratios_of_sizes_name_their_class(tmp_path: Path) -> None:
    """Each size gains 1.5 in memory bandwidth and 2.0 in integer work."""
    two_sizes(tmp_path)
    hosts = {f"os{n}": ("old", 100.0) for n in range(2)} | {f"ol{n}": ("old", 400.0) for n in range(8)}
    hosts |= {f"ns{n}": ("new", 200.0) for n in range(8)} | {f"nl{n}": ("new", 800.0) for n in range(2)}
    fleet(tmp_path, hosts, (MCF,), name="c2", cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    doc = answer_of(tmp_path)
    sentence = "new is compared with old size by size, weighted by the baseline's shares; integer: "
    sentence += "32 cores per socket (80%): 2.00; 16 cores per socket (20%): 2.00"
    assert sentence in doc["warnings"] and sentence in doc["answer"]["before_you_rely_on_this"]


def test_shares_are_those_of_the_baseline(tmp_path: Path) -> None:
    """Check gains of 1.5 and 3.0 where a quarter of the baseline is small: exp(0.25 ln 1.5 + 0.75 ln 3) = 2.523."""
    hosts = {"os0": ("old", 100.0), **{f"ol{n}": ("old", 400.0) for n in range(3)}}
    hosts |= {f"ns{n}": ("new", 150.0) for n in range(4)} | {f"nl{n}": ("new", 1200.0) for n in range(4)}
    fleet(tmp_path, hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    assert answer_of(tmp_path)["answer"]["sentence"].startswith("One new replaces 2.52")


def test_a_size_that_the_baseline_lacks_has_no_part_in_it(tmp_path: Path) -> None:
    hosts = {f"ol{n}": ("old", 400.0) for n in range(3)}
    hosts |= {f"ns{n}": ("new", 150.0) for n in range(4)} | {f"nl{n}": ("new", 800.0) for n in range(3)}
    fleet(tmp_path, hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    assert answer_of(tmp_path)["answer"]["sentence"].startswith("One new replaces 2.00")


def test_sizes_without_a_match_leave_no_headline(tmp_path: Path) -> None:
    """Compare 16 and 32 cores per socket with 24 and 48: no stratum exists on both sides."""
    hosts = {f"os{n}": ("old", 100.0) for n in range(3)} | {f"ol{n}": ("old", 200.0) for n in range(3)}
    hosts |= {f"ns{n}": ("new", 150.0) for n in range(3)} | {f"nl{n}": ("new", 50.0) for n in range(3)}
    cores = {"os": 32, "ol": 64, "ns": 48, "nl": 96}
    fleet(tmp_path, hosts, cores={h: cores[h[:2]] for h in hosts})
    doc = answer_of(tmp_path)
    reason = (
        "sides mix sizes that do not match "
        "(cores per socket: old 16 (3), 32 (3); new 24 (3), 48 (3)); compare machines of the same size"
    )
    short = "the sides share no size (cores per socket)"
    assert doc["answer"]["sentence"] == f"There is no overall figure: {short}"
    assert doc["answer"]["classes"] == [] and doc["answer"]["gets_worse"] == []
    assert doc["warnings"][0] == f"new: {reason}"
    assert "memory" not in doc["answer"]["not_measured"], "which both sides measured"
    for extra in ((), ("--format", "md")):
        text = run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", *extra)
        assert "\nBenchmarks\n" not in text and "## Benchmarks\n" not in text, "an empty table"


def test_sizes_that_match_in_part_are_compared_at_the_one_on_both_sides(tmp_path: Path) -> None:
    """Compare 16 and 32 cores per socket with 32 and 48: only 32 is on both sides, and 300 is 1.5 times 200."""
    hosts = {f"os{n}": ("old", 100.0) for n in range(3)} | {f"ol{n}": ("old", 200.0) for n in range(3)}
    hosts |= {f"nl{n}": ("new", 300.0) for n in range(3)} | {f"nx{n}": ("new", 900.0) for n in range(4)}
    cores = {"os": 32, "ol": 64, "nl": 64, "nx": 96}
    fleet(tmp_path, hosts, cores={h: cores[h[:2]] for h in hosts})
    doc = answer_of(tmp_path)
    assert doc["answer"]["sentence"].endswith(" on memory bandwidth benchmarks, at 32 cores per socket")
    assert doc["answer"]["classes"][0]["remark"] == "32 cores per socket only"
    assert doc["warnings"][0] == "new is compared with old at 32 cores per socket only: 3 against 3 machines"
    shown = run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new")
    (line,) = [row.strip() for row in shown.splitlines() if row.startswith("  fleetmark compare")]
    assert shlex.split(line)[1:6] == ["compare", "--baseline", "gen=old,cpu.cores=64", *line.split()[4:6]]
    again = json.loads(run(tmp_path, *shlex.split(line)[1:], "--format", "json"))
    assert again["rows"][0]["ratio"] == doc["rows"][0]["ratio"] and again["answer"]["classes"][0]["remark"] == ""


def test_one_mixed_side_alone_is_a_sum(tmp_path: Path) -> None:
    """Compare hosts of 100 and 400 with hosts of 400 only: the ratio is 400 / 250, as for any mixed fleet."""
    hosts = {f"os{n}": ("old", 100.0) for n in range(5)} | {f"ol{n}": ("old", 400.0) for n in range(5)}
    hosts |= {f"nl{n}": ("new", 400.0) for n in range(5)}
    fleet(tmp_path, hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    assert answer_of(tmp_path)["answer"]["sentence"].startswith("One new replaces 1.60 (")


def test_the_first_screen_says_what_was_not_measured(tmp_path: Path) -> None:
    """Let two hosts run only memory bandwidth and integer out of the suite ``server``."""
    fleet(
        tmp_path,
        {f"o{n}": ("old", 100.0) for n in range(3)} | {f"n{n}": ("new", 200.0) for n in range(3)},
        (TRIAD, MCF),
    )
    doc = answer_of(tmp_path)
    lacking = "floating point, operating system, storage, network, applications, power"
    assert doc["answer"]["not_measured"] == lacking
    assert f"Not measured: {lacking}" in " ".join(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new").split())
    assert "All measured benchmarks ran on both sides." in doc["answer"]["before_you_rely_on_this"]


def test_power_is_measured_where_it_is_on_record(tmp_path: Path) -> None:
    hosts = {f"o{n}": ("old", 100.0) for n in range(3)} | {f"n{n}": ("new", 200.0) for n in range(3)}
    fleet(tmp_path, hosts, (TRIAD, MCF, GCC, IOPS, NULL), {"watts": "500"})
    assert answer_of(tmp_path)["answer"]["not_measured"] == "floating point, network, applications"


def test_an_area_that_some_candidates_lack_stands_with_their_names(tmp_path: Path) -> None:
    fleet(
        tmp_path,
        {f"o{n}": ("old", 100.0) for n in range(3)} | {f"n{n}": ("new", 200.0) for n in range(3)},
        (TRIAD, IOPS),
    )
    fleet(tmp_path, {f"t{n}": ("turin", 300.0) for n in range(3)}, (TRIAD,), name="c2")
    assert "storage (turin)" in answer_of(tmp_path, "-c", "gen=turin")["answer"]["not_measured"]


def test_accelerators_are_held_against_the_suite_of_accelerators(tmp_path: Path) -> None:
    matmul = Bench("torch_ops", "fp32", "rate", "FLOP/s", "higher", "gpu-compute", kind="capacity")
    fleet(tmp_path, {f"o{n}": ("old", 1e12) for n in range(3)} | {f"n{n}": ("new", 2e12) for n in range(3)}, (matmul,))
    lacking = answer_of(tmp_path)["answer"]["not_measured"]
    assert "GPU training, GPU inference, GPU collectives, power" in lacking and "GPU compute" not in lacking


ICELAKE, GENOA = {f"o{n}": ("old", 100.0) for n in range(3)}, {f"n{n}": ("new", 298.0) for n in range(3)}


def test_prices_give_totals_with_and_without_per_money(tmp_path: Path) -> None:
    """Check that one new host replaces 2.98: 100 / 2.98 = 33.6, so 34 hosts at 19,000 EUR cost 646,000 EUR."""
    fleet(tmp_path, ICELAKE | GENOA)
    prices = ("--price", "old=9000 EUR", "--price", "new=19000 EUR")
    sentence = "34 new replace 100 old and cost 646,000 EUR; 100 old cost 900,000 EUR"
    assert answer_of(tmp_path, *prices)["answer"]["totals"] == [sentence]
    of_money = answer_of(tmp_path, *prices, "--per", "money")["answer"]
    assert of_money["totals"] == [sentence]
    assert of_money["sentence"].startswith("1 EUR spent on new buys 1.41 ")
    assert answer_of(tmp_path, "--price", "new=19000 EUR")["answer"]["totals"] == [
        "34 new replace 100 old and cost 646,000 EUR"
    ]
    assert answer_of(tmp_path)["answer"]["totals"] == []
    rented = answer_of(tmp_path, "--price", "old=1 USD/hour", "--price", "new=2.5 USD/hour")["answer"]
    assert rented["totals"] == ["34 new replace 100 old and cost 85.00 USD per hour; 100 old cost 100 USD per hour"]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("9000 USD", "19000 EUR", "old USD; new EUR"),
        ("1 USD/hour", "2 USD/month", "old USD per hour; new USD per month"),
        ("9000 USD", "2 USD/month", "old USD; new USD per month"),
    ],
)
def test_prices_of_several_currencies_or_terms_are_refused(tmp_path: Path, old: str, new: str, shown: str) -> None:
    fleet(tmp_path, ICELAKE | GENOA)
    words = ("--price", f"old={old}", "--price", f"new={new}")
    error = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "money", *words)
    assert f"prices have several currencies or terms ({shown})" in " ".join(error.split())
    (sentence,) = answer_of(tmp_path, *words)["answer"]["totals"]
    assert sentence.startswith(f"No total cost: prices have several currencies or terms ({shown}); ")


def test_a_side_without_one_price_is_named(tmp_path: Path) -> None:
    """Old hosts cost 9,000 EUR. One new host is priced in USD, two in EUR; of the later ones, two have no price."""
    fleet(tmp_path, ICELAKE | GENOA, labels={"price": "9000", "currency": "EUR"})
    fleet(tmp_path, {f"l{n}": ("later", 298.0) for n in range(3)}, name="c2")
    _labelled(tmp_path / "c1", "n0", {"currency": "USD"})
    _labelled(tmp_path / "c2", "l0", {"price": "9000", "currency": "EUR"})
    assert answer_of(tmp_path, "-c", "gen=later")["answer"]["totals"] == [
        "No total cost: prices of new have several currencies or terms (EUR, USD); give it one price with --price, "
        "or convert a currency with --rate",
        "No total cost: 2 of 3 hosts of later have no price",
    ]
    _labelled(tmp_path / "c1", "o0", {"currency": "USD"})
    first, second = answer_of(tmp_path, "--price", "new=19000 EUR")["answer"]["totals"]
    assert first == "34 new replace 100 old and cost 646,000 EUR"
    assert second.startswith("No total cost: prices of old have several currencies or terms (EUR, USD); ")


def _labelled(campaign: Path, host: str, labels: Mapping[str, str]) -> None:
    """Change the labels of a host in a campaign."""
    path = campaign / "campaign.json"
    doc = json.loads(path.read_text())
    (host_entry,) = [h for h in doc["hosts"] if h["name"] == host]
    host_entry["labels"] |= labels
    path.write_text(json.dumps(doc))


def test_a_rate_with_its_date_makes_one_currency(tmp_path: Path) -> None:
    """Convert 10,000 USD at 0.9 to 9,000 EUR: a euro buys 2.98 x 9,000 / 19,000 = 1.41."""
    fleet(tmp_path, ICELAKE | GENOA)
    prices = ("--price", "old=10000 USD", "--price", "new=19000 EUR", "--per", "money")
    answer = answer_of(tmp_path, *prices, "--rate", "USD=0.9 EUR 2026-11-01")["answer"]
    assert answer["sentence"].startswith("1 EUR spent on new buys 1.41 ")
    assert answer["totals"] == ["34 new replace 100 old and cost 646,000 EUR; 100 old cost 900,000 EUR"]
    assert "1 USD = 0.9 EUR on 2026-11-01" in answer["bought"]
    undated = refused(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", *prices, "--rate", "USD=0.9 EUR")
    assert "not an exchange rate with a date; write USD=0.92 EUR 2026-11-01" in " ".join(undated.split())


def test_a_range_of_classes_gives_a_range_of_money(tmp_path: Path) -> None:
    """Check memory at 2.98 times (34 servers) and integer at 4 times (25): 25 to 34 servers of 1,000 EUR each."""
    rows = {f"o{n}": ("old", 100.0) for n in range(3)}
    fleet(tmp_path, rows | GENOA, (TRIAD,))
    fleet(tmp_path, rows | {f"n{n}": ("new", 400.0) for n in range(3)}, (MCF,), name="c2")
    (sentence,) = answer_of(tmp_path, "--price", "new=1000 EUR")["answer"]["totals"]
    assert sentence == "25–34 new replace 100 old and cost 25,000–34,000 EUR"


def test_warnings_are_ordered_by_what_they_do_to_the_answer(tmp_path: Path) -> None:
    """Compare ten hosts of 16 GiB (100) and two of 32 GiB (130) with hosts of 200.

    Without the two, one new host replaces 200 / 100 = 2.00 instead of 200 / 104.5.
    The different kernel on three of the candidates has no effect.
    """
    hosts = {f"o{n}": ("old", 130.0 if n > 9 else 100.0) for n in range(12)}
    hosts |= {f"n{n}": ("new", 200.0) for n in range(6)}
    fleet(tmp_path, hosts)
    for host in hosts:
        path = tmp_path / "c1" / "facts" / f"{host}.json"
        doc = json.loads(path.read_text())
        doc["facts"]["memory"] = (32 if host in ("o10", "o11") else 16) << 30
        doc["facts"]["os"] = "Debian 12" if host in ("n0", "n1", "n2") else "Debian 13"
        path.write_text(json.dumps(doc))
    doc = answer_of(tmp_path)
    second, third, *rest = doc["answer"]["before_you_rely_on_this"]
    assert (
        second
        == "Settings that differ from the rest of their side: Memory 32 GiB on o10, o11; excluding them: new 2.00 (2.00–2.00)"
    )
    assert third.startswith("old mixes memory populations: 16 GiB (10); 32 GiB (2)")
    assert third.endswith("without this difference: new 2.00 (2.00–2.00)")
    assert [w for w in doc["warnings"] if "mixes software" in w] and "1 warning more" not in rest
    assert rest[0].startswith("new mixes software: "), "the software difference has no effect"


def test_a_thread_is_half_a_core_on_one_side_only(tmp_path: Path) -> None:
    """Give both sides 16 cores, with two threads per core on the old side and one on the new side."""
    fleet(tmp_path, ICELAKE | GENOA)
    for host in GENOA:
        path = tmp_path / "c1" / "facts" / f"{host}.json"
        doc = json.loads(path.read_text())
        doc["facts"]["cpu"]["threads"] = doc["facts"]["cpu"]["cores"]
        path.write_text(json.dumps(doc))
    sentences = answer_of(tmp_path, "--per", "thread")["answer"]["before_you_rely_on_this"]
    assert sentences[0] == "A thread is half a core on old only (SMT): compare per core instead"


def test_seconds_per_job_are_work_in_a_class_of_work(tmp_path: Path) -> None:
    """Reduce the time per job from 60 s to 20 s, without a declared kind: one host does the work of 3."""
    file = tmp_path / "t.csv"
    rows = [
        f"{side}{n},{side},render,{60 if side == 'old' else 20},s,lower,app"
        for side in ("old", "new")
        for n in range(3)
    ]
    file.write_text("\n".join(["machine,gen,benchmark,value,unit,better,class", *rows]))
    run(tmp_path, "import", "table", str(file))
    answer = answer_of(tmp_path)["answer"]
    assert answer["sentence"].startswith("One new replaces 3.00 ") and answer["guardrails"] == ""


def test_the_peers_of_a_host_are_those_of_its_size(tmp_path: Path) -> None:
    """Treat a small host at a quarter of the work as normal, and a large host at 80% as an outlier."""
    hosts = {f"os{n}": ("old", 100.0) for n in range(4)} | {f"ol{n}": ("old", 400.0) for n in range(7)}
    hosts |= {"ol7": ("old", 320.0)} | {f"ns{n}": ("new", 200.0) for n in range(4)}
    hosts |= {f"nl{n}": ("new", 800.0) for n in range(4)}
    fleet(tmp_path, hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    doc = answer_of(tmp_path)
    assert [o["host"] for o in doc["outliers"]] == ["ol7"]
    sentences = doc["answer"]["before_you_rely_on_this"]
    assert [t for t in sentences if t.startswith("ol7 is 20% slower than its peers; excluding it: new 2.00 (")]
    assert not [t for t in sentences if "Cores" in t]


@pytest.mark.parametrize("benches", [(TRIAD,), (TRIAD, NULL)])
def test_a_size_without_power_is_left_out_per_watt(tmp_path: Path, benches: Sequence[Bench]) -> None:
    """Large hosts of 500 W go from 400 to 800: a watt does 2.00 times the work. Small ones have no wattmeter."""
    large = {f"ol{n}": ("old", 400.0) for n in range(3)} | {f"nl{n}": ("new", 800.0) for n in range(3)}
    small = {f"os{n}": ("old", 100.0) for n in range(3)} | {f"ns{n}": ("new", 150.0) for n in range(3)}
    fleet(tmp_path, large, benches, {"watts": "500"}, cores=dict.fromkeys(large, 64))
    fleet(tmp_path, small, benches, name="c2", cores=dict.fromkeys(small, 32))
    doc = answer_of(tmp_path, "--per", "watt")
    assert doc["answer"]["sentence"].startswith("1 watt of new does 2.00 (")
    assert any("left out, because the amount is unknown: os0 (c2)" in note for note in doc["notes"])


def in_batches(root: Path, old: Sequence[float]) -> None:
    """Record two batches of three old hosts each, and six new hosts of 1,000. Hosts of a batch differ by 1%."""
    labels, measured = {}, {}
    for n, mean in enumerate(old):
        for h in range(3):
            labels[f"o{n}{h}"] = {"gen": "old", "batch": f"b{n}"}
            measured[f"o{n}{h}", TRIAD] = [mean * (1 + 0.01 * (h - 1))] * 3
    for h in range(6):
        labels[f"n{h}"] = {"gen": "new"}
        measured[f"n{h}", TRIAD] = [1000.0 + h] * 3
    record(root, "c1", labels, measured)


def test_two_batches_are_too_few_to_tell(tmp_path: Path) -> None:
    """Check batches of 100 and 400, whose mean of 250 does not differ significantly from 0.

    Batches of 100 and 145 have a geometric mean of 120.4, with an interval of a factor of
    exp(12.7 x ln(1.45) / 2) = 10.6 either way.
    """
    in_batches(tmp_path / "far", (100.0, 400.0))
    answer = answer_of(tmp_path / "far")["answer"]
    assert answer["sentence"].startswith("One new replaces 4.01 old servers on memory bandwidth benchmarks")
    assert "No interval for memory bandwidth: 2 batches of old are too few for an interval." in answer["legend"]
    in_batches(tmp_path / "near", (100.0, 145.0))
    answer = answer_of(tmp_path / "near")["answer"]
    few = "2 batches of old are too few for an interval"
    assert answer["sentence"] == f"One new replaces 8.33 old servers on memory bandwidth benchmarks; new: {few}"
    assert f"No interval for memory bandwidth: {few}." in answer["legend"]


def test_the_legend_says_why_each_class_has_no_interval(tmp_path: Path) -> None:
    """Check a stratum with a single host, and a comparison with one host per side."""
    hosts = {"os0": ("old", 100.0)} | {f"ol{n}": ("old", 400.0) for n in range(3)}
    hosts |= {f"ns{n}": ("new", 150.0) for n in range(4)} | {f"nl{n}": ("new", 1200.0) for n in range(4)}
    fleet(tmp_path / "strata", hosts, cores={h: 32 if h[1] == "s" else 64 for h in hosts})
    legend = answer_of(tmp_path / "strata")["answer"]["legend"]
    assert "No interval for memory bandwidth: a side has a single host in one of the sizes." in legend
    record(tmp_path / "one", "c1", {"o": {"gen": "old"}, "n": {"gen": "new"}}, {(h, TRIAD): [1.0] for h in "on"})
    legend = answer_of(tmp_path / "one")["answer"]["legend"]
    assert "No interval for memory bandwidth: a side is one machine or publisher, measured once." in legend
