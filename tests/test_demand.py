"""The planner's input: the question of a YAML file or a folder of sheets, and the faults of invalid ones."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import periods
from fleetmark.demand import question as demand
from fleetmark.demand.series import spread
from fleetmark.planner.capacity.question import Question
from tests.commands import run
from tests.demands import SMALL, changed
from tests.profiles import FIT, record_generations, truth_of
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record


def read(tmp_path: Path, text: str, root: Path | None = None) -> Question:
    file = tmp_path / "demand.yml"
    file.write_text(text)
    return demand.read(file, root or tmp_path / "results")


def refused(tmp_path: Path, text: str, root: Path | None = None) -> list[str]:
    with pytest.raises(FleetmarkError) as error:
        read(tmp_path, text, root)
    return str(error.value).splitlines()


def line(text: str, part: str) -> int:
    return next(n for n, row in enumerate(text.splitlines(), 1) if part in row)


def test_everything_arrives_in_the_planners_units(tmp_path: Path) -> None:
    q = read(tmp_path, SMALL)
    assert (q.currency, q.date, q.discount, q.energy_price, q.pue) == ("EUR", "2026-12-01", 0.08, 0.2, 1.3)
    assert list(q.periods) == ["2027-Q1", "2027-Q2", "2027-Q3", "2027-Q4"]
    assert q.years == 0.25
    web = q.workloads["web"]
    assert (list(web.point), list(web.sigma), web.utilisation) == ([100, 110, 120, 130], [0, 0, 0, 0], 0.65)
    genoa = q.skus["genoa"]
    assert (genoa.price, genoa.idle_w, genoa.peak_w) == (12000, 220, 700)
    assert (genoa.lead, genoa.age_limit) == (2, 20)  # 4 months are 1.33 quarters, rounded up
    assert q.skus["icelake"].price is None
    assert (q.skus["icelake"].peak_w, q.skus["icelake"].worth["web"].value) == (500, 1)
    assert (q.sites["ams"].power_w, q.sites["fra"].power_w) == (120_000, None)
    assert [(c.sku, c.site, c.count, c.age) for c in q.fleet] == [("icelake", "ams", 200, 10)]
    assert len(q.source["demand.yml"]) == 64


def test_growth_compounds_and_its_doubt_widens_with_time(tmp_path: Path) -> None:
    text = changed("[100, 110, 120, 130]", "{start: {p50: 100, p90: 110}, growth: {p50: 30%, p90: 50%}}")
    web = read(tmp_path, text).workloads["web"]
    assert web.point == pytest.approx([100 * 1.3 ** (n / 4) for n in range(4)])
    z = 1.2815515655446004
    first, a_year = math.log(1.1) / z, math.log(1.5 / 1.3) / z
    assert web.sigma == pytest.approx([math.hypot(first, a_year * n / 4) for n in range(4)])


def test_quantiles_give_median_and_sigma(tmp_path: Path) -> None:
    text = changed("[100, 110, 120, 130]", "{p50: [100, 110, 120, 130], p90: 150}")
    web = read(tmp_path, text).workloads["web"]
    assert list(web.point) == [100, 110, 120, 130]
    assert web.sigma == pytest.approx([math.log(150 / p) / 1.2815515655446004 for p in web.point])
    outer = changed("[100, 110, 120, 130]", "{p10: 80, p90: 125}")
    web = read(tmp_path, outer).workloads["web"]
    assert web.point == pytest.approx([100] * 4)
    assert web.sigma == pytest.approx([math.log(1.25) / 1.2815515655446004] * 4)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({0.5: 100.0, 0.9: 90.0}, "p90 (90) is below p50 (100)"),
        ({0.9: 90.0}, "single quantile"),
        ({0.5: 0.0, 0.9: 90.0}, "one quantile is 0 and another is not"),
    ],
)
def test_quantiles_that_are_none(values: dict[float, float], sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        spread(values)
    assert spread({0.1: 0.0, 0.9: 0.0}) == (0.0, 0.0)


def test_a_latency_sets_the_utilisation(tmp_path: Path) -> None:
    slo = "slo: {p99: 50ms, service_time: 8ms, service_cv: 1.3, arrival_cv: 1.1, slots: 8}"
    web = read(tmp_path, changed("utilisation: 65%", slo)).workloads["web"]
    assert 0.5 < web.utilisation < 0.85
    assert "50" in web.reason
    faults = refused(tmp_path, changed("utilisation: 65%", slo.replace("50ms", "5ms")))
    assert faults[0].startswith("demand.yml line 11: workloads.web.slo: ")
    assert "cannot be met" in faults[0]


@pytest.mark.parametrize(
    ("old", "new", "line_of", "sentence"),
    [
        ("price: 12000", "price: -3", "price: -3", "skus.genoa.price: -3 is below 0"),
        ("price: 12000", "price: 12,000 EUR", "price: 12", "skus.genoa.price: '12,000 EUR' is not a price"),
        ("price: 12000", "price:", "price:\n", "skus.genoa.price: is empty"),
        ("    price: 12000\n", "", "  genoa:", "skus.genoa: price is missing"),
        ("price: 12000", "prise: 12000", "prise", "skus.genoa.prise: is not a valid key (did you mean price?)"),
        ("rack_units: 2", "rack_units: .nan", ".nan", "skus.genoa.rack_units: nan is not a finite number"),
        ("rack_units: 2", "rack_units: yes", "rack_units: yes", "skus.genoa.rack_units: True is not a number"),
        ("peak: 700 W", "peak: 700 V", "700 V", "skus.genoa.power.peak: '700 V' is not a power"),
        ("peak: 700 W", "peak: 100 W", "100 W", "skus.genoa.power: peak (100 W) is below idle (220 W)"),
        ("lead: 4 months", "lead: soon", "soon", "skus.genoa.lead: 'soon' is not a duration"),
        ("web: 1.83", "wbe: 1.83", "wbe", "no workload 'wbe' (did you mean web?); there are web"),
        ("web: 1.83", "web: 0", "web: 0", "skus.genoa.worth.web: 0 is not above 0"),
        ("web: 1.83", "web: 1.83 requests/s", "requests/s", "is in requests/s, the demand in icelake servers"),
        ("web: 1.83", "web: {value: 1.83, lo: 1.9, hi: 2}", "1.9", "1.83 is not within 1.9 to 2"),
        ("web: 1.83", "web: {value: 1.83, lo: 1.8}", "1.8}", "lo and hi are both needed"),
        ("web: 1.83", "web: {}", "{}}", "skus.genoa.worth.web: give one of value"),
        ("sku: icelake,", "sku: iceleak,", "iceleak", "fleet[1].sku: no SKU 'iceleak' (did you mean icelake?)"),
        ("site: ams,", "site: lhr,", "lhr", "fleet[1].site: no site 'lhr'; there are ams, fra"),
        ("count: 200", "count: 1.5", "count: 1.5", "fleet[1].count: 1.5 is not a whole number"),
        ("[100, 110, 120, 130]", "[100, 110, 120]", "110, 120]", "has 3 figures for 4 periods (2027-Q1 to 2027-Q4)"),
        ("[100, 110, 120, 130]", "[100, 110, -1, 130]", "110, -1", "workloads.web.demand[3]: -1 is below 0"),
        ("[100, 110, 120, 130]", "[100, 110, ~, 130]", "~", "workloads.web.demand[3]: is empty"),
        ("[100, 110, 120, 130]", "{strat: 100, growth: 3%}", "strat", "workloads.web.demand.strat: is not a valid key"),
        ("[100, 110, 120, 130]", "{growth: 3%}", "growth", "start is missing"),
        ("[100, 110, 120, 130]", "{start: 9, growth: 30}", "growth", "30 is 3,000% a year: write 30%, or 3000% if you mean that"),
        ("{idle: 220, peak: 700 W}", "{idle: 0.22, peak: 0.7}", "idle: 0.22", "genoa.power.peak: is 0.7 W, less than any server"),
        ("{idle: 220, peak: 700 W}", "{idle: 220 kW, peak: 700 kW}", "idle: 220 kW", "genoa.power.peak: is 700,000 W in 2 rack units, more than any server draws: write 700 W if you mean that"),
        ("power: 120 kW", "power: 120", "power: 120,", "sites.ams.power: is 120 W, less than one server draws: write 120 kW"),
        ("    rack_units: 1\n", "    rack_units: 1\n    age_limit: 2 quarters\n", "age: 10", "is 10 periods, above the age limit of icelake (2)"),
        ("[100, 110, 120, 130]", "{2027-Q1: 1, 2028-Q2: 2}", "2028", "'2028-Q2' is not one of the periods"),
        ("[100, 110, 120, 130]", "{2027-Q1: 1, 2027-Q2: 2}", "2027-Q2: 2", "has no figure for 2027-Q3, 2027-Q4"),
        ("[100, 110, 120, 130]", "{p50: 9, p90: 3}", "p90", "2027-Q1: p90 (3) is below p50 (9)"),
        ("[100, 110, 120, 130]", "12 requests/s", "requests", "is in requests/s, the unit of the workload is icelake servers"),
        ("utilisation: 65%", "utilisation: 90%", "90%", "workloads.web.utilisation: 0.9 is above 0.85"),
        ("    utilisation: 65%\n", "", "  web:", "workloads.web: give utilisation (above 0, up to 85%) or slo"),
        ("currency: EUR", "currency: euros", "euros", "currency: 'euros' is not a currency"),
        ("date: 2026-12-01", "date: December", "December", "date: 'December' is not a date: write 2027-01-31"),
        ("{start: 2027-Q1, count: 4}", "{start: 2027-Q5, count: 4}", "Q5", "periods: '2027-Q5' is not a period"),
        ("{start: 2027-Q1, count: 4}", "[2027-Q1, 2027-Q3, 2027-Q2, 2027-Q4]", "Q3", "2027-Q3 is out of order: 2027-Q2 comes after"),
        ("{start: 2027-Q1, count: 4}", "[2027-Q1, 2027-Q1]", "Q1,", "period 2027-Q1 is there twice"),
        ("{start: 2027-Q1, count: 4}", "[2027-Q1, 2027-02]", "02]", "2027-02 is a month, 2027-Q1 a quarter"),
        ("{start: 2027-Q1, count: 4}", "[a, b, c, d]", "[a", "'a' is not a period"),
        ("pue: 1.3", "pue: 0.9", "0.9", "pue: 0.9 is below 1"),
        ("pue: 1.3", "pue: 1.3\npue: 1.4", "pue: 1.4", "pue: is repeated, at line 6 and line 7"),
        ("pue: 1.3", "pue: 1.3\nbudget: [1, none]", "budget", "budget: has 2 figures for 4 periods"),
        ("pue: 1.3", "pue: 1.3\nsurvive: perhaps", "survive", "survive: 'perhaps' is neither yes, no nor 2"),
        ("skus:\n", "skus:\n  no: {}\n", "no:", "'no' is False in YAML: put the key in quotes"),
        ("    worth: {web: 1}", "    worth: {}", "worth: {}", "skus.icelake.worth: is empty: no workload runs on this SKU"),
    ],
)  # fmt: skip
def test_bad_input_names_line_and_key(tmp_path: Path, old: str, new: str, line_of: str, sentence: str) -> None:
    text = changed(old, new)
    faults = refused(tmp_path, text)
    [mine] = [t for t in faults if sentence in t]
    assert len(faults) <= 2, faults  # a misspelt key is missing, too
    place, _, _ = mine.partition(": ")
    assert place == f"demand.yml line {text[: text.index(line_of)].count(chr(10)) + 1}"


def test_a_demand_that_nothing_can_run(tmp_path: Path) -> None:
    text = changed("worth: {web: 1.83}", "worth: {batch: 2}").replace("worth: {web: 1}", "worth: {batch: 1}")
    text = changed("skus:\n", "  batch: {unit: icelake servers, demand: 5, utilisation: 0.5}\nskus:\n", text)
    assert refused(tmp_path, text) == [
        "demand.yml line 8: workloads.web: no SKU has a worth for it: nothing can run it"
    ]
    text = changed("price: 12000", "price: not sold").replace("count: 200", "count: 0")
    assert "neither sold nor in the fleet" in refused(tmp_path, text)[0]
    text = changed("price: 12000", "price: not sold").replace("utilisation: 65%", "utilisation: 65%\n    sites: [fra]")
    expected = "neither sold nor in the fleet at fra, where it may run"
    assert [sentence for sentence in refused(tmp_path, text) if "workloads.web" in sentence and expected in sentence]


def test_what_is_missing_is_one_fault(tmp_path: Path) -> None:
    text = changed("[100, 110, 120, 130]", "{p50: [100, 110, 120], p90: [120, 130, 140, 150]}")
    (sentence,) = refused(tmp_path, text)
    assert sentence.endswith("workloads.web.demand.p50: has 3 figures for 4 periods (2027-Q1 to 2027-Q4)")


def test_all_faults_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = changed(
        "count: 200", "count: 200, age: x", changed("age: 10 quarters", "b: 1", changed("pue: 1.3", "pue: 0"))
    )
    faults = refused(tmp_path, text)
    assert [t.partition(":")[0] for t in faults] == [f"demand.yml line {n}" for n in (6, 29, 29)]
    many = changed("[100, 110, 120, 130]", "[" + ", ".join(["-1"] * 14) + "]")
    assert len(faults := refused(tmp_path, many)) == 11
    assert faults[-1] == "and 4 more faults"


def test_survival_needs_somewhere_to_survive(tmp_path: Path) -> None:
    one = changed("  fra: {}\n", "  fra: {domain: ams}\n", changed("pue: 1.3", "pue: 1.3\nsurvive: yes"))
    assert "only one failure domain (ams)" in refused(tmp_path, one)[0]
    text = changed(
        "utilisation: 65%", "utilisation: 65%\n    sites: [ams]", changed("pue: 1.3", "pue: 1.3\nsurvive: yes")
    )
    assert "all in one failure domain (ams)" in refused(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "keys and values are expected"),
        ("- 1", "keys and values are expected"),
        ("a: [1", "demand.yml line 1: not YAML"),
        ("a: &x [*x]", "the alias *x refers to itself"),
        (
            "date: 2027-13-45",
            "demand.yml line 1: not YAML: '2027-13-45' is not a valid timestamp: month must be in 1..12",
        ),
        ("? [1, 2]\n: 3", "a key is one word"),
        ("[" * 2000, "more than 100 levels"),
    ],
)
def test_what_is_no_document(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refused(tmp_path, text)[0]


def test_aliases_that_multiply_are_stopped(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    assert "too many aliases" in refused(tmp_path, bomb)[0]


def test_a_merged_mapping_keeps_its_direct_keys(tmp_path: Path) -> None:
    text = changed("  genoa:\n", "  turin:\n    <<: *g\n    price: 20000\n  genoa: &g\n")
    assert "not YAML" in refused(tmp_path, text)[0]  # an alias before its anchor
    text = changed("sites:\n", "  turin:\n    <<: *g\n    price: 20000\nsites:\n", changed("genoa:\n", "genoa: &g\n"))
    q = read(tmp_path, text)
    assert (q.skus["turin"].price, q.skus["turin"].peak_w, q.skus["genoa"].price) == (20000, 700, 12000)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="nothing.yml: No such file"):
        demand.read(tmp_path / "nothing.yml", tmp_path)
    (tmp_path / "demand.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FleetmarkError, match="not UTF-8"):
        demand.read(tmp_path / "demand.yml", tmp_path)


# Worths from the record


@pytest.fixture
def on_record(tmp_path: Path) -> Path:
    root = tmp_path / "results"
    for gen, factor in (("icelake", 1.0), ("genoa", 1.83)):
        hosts = {f"{gen}{n}": {"gen": gen} for n in range(3)}
        values = {
            (h, b): [base * factor ** (1 if b is not NULL else -1) * (1 + 0.01 * n)]
            for n, h in enumerate(hosts)
            for b, base in ((TRIAD, 2e11), (MCF, 200.0), (IOPS, 9000.0), (NULL, 1e-7))
        }
        record(root, f"20261101T000000-{gen}", hosts, values)
    record(root, "20261102T000000-one", {"t1": {"gen": "turin"}}, {("t1", MCF): [500.0]})
    return root


COMPARED = "{compare: {candidate: gen=genoa, baseline: gen=icelake, class: cpu-int}}"


def test_a_comparison_by_name(tmp_path: Path, on_record: Path) -> None:
    q = read(tmp_path, changed("web: 1.83", f"web: {COMPARED}"), on_record)
    worth = q.skus["genoa"].worth["web"]
    assert worth.value == pytest.approx(1.83)
    assert worth.df == pytest.approx(4)
    spread_ = [math.log(1 + 0.01 * n) for n in range(3)]
    mean = sum(spread_) / 3
    variance = sum((x - mean) ** 2 for x in spread_) / 2
    assert worth.se == pytest.approx(math.sqrt(2 * variance / 3))
    assert worth.source == "compared with gen=icelake: gen=genoa, cpu-int; 3+3 hosts"
    assert q.source["campaigns"] == "20261101T000000-genoa, 20261101T000000-icelake"


X264 = replace(GCC, case="525.x264_r")


@pytest.mark.parametrize(
    ("more", "spread", "reason"),
    [
        ((GCC, X264), 1.1, ""),
        (
            (GCC, X264),
            3.0,
            "its 3 benchmarks cannot predict your workload's gain (the benchmark ratios differ too much",
        ),
        (
            (GCC,),
            1.1,
            "its 2 benchmarks cannot predict your workload's gain (fewer than 3 families of benchmarks were measured)",
        ),
    ],
)
def test_a_class_has_the_interval_of_your_workload(
    tmp_path: Path, on_record: Path, more: Sequence[Bench], spread: float, reason: str
) -> None:
    """The work is none of the benchmarks: how far these lie apart counts, not only how sure their mean is."""
    measured = {
        (f"{gen}{n}", bench): [100.0 * factor * (spread**k if gen == "genoa" else 1) * (1 + 0.01 * n)]
        for k, bench in enumerate(more, 1)
        for gen, factor in (("icelake", 1.0), ("genoa", 1.83))
        for n in range(3)
    }
    record(on_record, "20261103T000000-more", {h: {"gen": h[:-1]} for h, _ in measured}, measured)
    text = changed("web: 1.83", f"web: {COMPARED}")
    if reason:
        with pytest.raises(FleetmarkError, match=re.escape(reason)):
            read(tmp_path, text, on_record)
        return
    worth = read(tmp_path, text, on_record).skus["genoa"].worth["web"]
    assert worth.value == pytest.approx(1.83 * spread)
    assert worth.se > math.log(spread) and worth.df < 4
    assert worth.source.endswith("3+3 hosts, which covers a workload like its benchmarks")


@pytest.mark.parametrize(
    ("worth", "value"),
    [
        ("{compare: {candidate: gen=genoa, baseline: gen=icelake, benchmark: stream/*/triad}}", 1.83),
        ("{compare: {candidate: gen=genoa, baseline: gen=icelake, mix: 'cpu-int=0.5,disk-iops=0.5'}}", 1.83),
        ("{reference: {name: icelake-2026, candidate: gen=genoa, class: cpu-int}}", 1.83),
    ],
)
def test_other_forms_of_a_reference(tmp_path: Path, on_record: Path, worth: str, value: float) -> None:
    from fleetmark.verbs import reference

    reference.pin(on_record, "icelake-2026", "gen=icelake")
    got = read(tmp_path, changed("web: 1.83", f"web: {worth}"), on_record).skus["genoa"].worth["web"]
    assert got.value == pytest.approx(value)
    assert got.se > 0


def test_a_measured_rate_in_the_unit_of_the_demand(tmp_path: Path, on_record: Path) -> None:
    text = SMALL.replace("icelake servers", "GB/s").replace("{web: 1}", "{web: 200 GB/s}")
    text = changed("web: 1.83", "web: {measured: {select: gen=genoa, benchmark: stream/*/triad}}", text)
    worth = read(tmp_path, text, on_record).skus["genoa"].worth["web"]
    assert worth.value == pytest.approx(366 * (1.01 * 1.02) ** (1 / 3))
    assert worth.df == 2
    assert "3 hosts" in worth.source


@pytest.mark.parametrize(
    ("worth", "unit", "sentence"),
    [
        (COMPARED, "requests/s", "a worth in servers, but the demand is in requests/s"),
        (COMPARED, "skylake servers", "in servers of gen=icelake, the demand in skylake servers"),
        (COMPARED.replace("cpu-int", "cpu-itn"), "icelake servers", "no class 'cpu-itn' (did you mean cpu-int?)"),
        (COMPARED.replace("gen=genoa", "gen=geona"), "icelake servers", "matches no machine"),
        (COMPARED.replace("gen=genoa", "gen=turin"), "icelake servers", "one host per side"),
        ("{compare: {candidate: gen=genoa, class: cpu-int}}", "icelake servers", "the comparison has no baseline"),
        ("{reference: {name: nix, candidate: gen=genoa, class: cpu-int}}", "icelake servers", "no reference 'nix'"),
        ("{measured: {select: gen=genoa, benchmark: stream/*/triad}}", "requests/s", "is in B/s, the demand is in requests/s"),
        ("{measured: {select: gen=genoa, benchmark: stream/*/triad}}", "icelake servers", "is in B/s, the demand is in icelake"),
        ("{measured: {select: gen=genoa, benchmark: '*'}}", "GB/s", "narrow it to one"),
        ("{measured: {select: gen=genoa, benchmark: 'lmbench/*'}}", "GB/s", "is not a rate"),
        (COMPARED.replace("cpu-int", "os"), "icelake servers", "os is responsiveness, which is not worth servers: name one of capacity (cpu-int, disk-iops, mem-bw)"),
        (COMPARED.replace("cpu-int", "disk"), "icelake servers", "the class 'disk' is now disk-iops, disk-bw or disk-latency: use one of them"),
        (COMPARED.replace("class: cpu-int", "benchmark: lmbench/*"), "icelake servers", "is responsiveness, which is not worth servers"),
        (COMPARED.replace("class: cpu-int", "mix: 'cpu-int=0.5,os=0.5'"), "icelake servers", "only capacity is an amount of work"),
    ],
)  # fmt: skip
def test_worths_that_do_not_fit(tmp_path: Path, on_record: Path, worth: str, unit: str, sentence: str) -> None:
    text = changed("web: 1.83", f"web: {worth}").replace("unit: icelake servers", f"unit: {unit}")
    faults = refused(tmp_path, text, on_record)
    assert len(faults) == 1
    assert faults[0].startswith(f"demand.yml line {line(text, worth[:12])}: skus.genoa.worth.web: ")
    assert sentence in faults[0]


@pytest.mark.parametrize(
    ("written", "demanded", "factor"),
    [("MB/s", "GB/s", 1e-3), ("Gbit/s", "GB/s", 1 / 8), ("GiB/s", "B/s", 2.0**30), ("k jobs/s", "jobs/min", 6e4), ("jobs/h", "jobs/min", 1 / 60)],
)  # fmt: skip
def test_units_of_a_rate_are_converted(tmp_path: Path, written: str, demanded: str, factor: float) -> None:
    text = SMALL.replace("unit: icelake servers", f"unit: {demanded}")
    text = changed("web: 1.83", f"web: {{value: 12 {written}, lo: 11, hi: 13}}", text)
    worth = read(tmp_path, text).skus["genoa"].worth["web"]
    assert worth.value == pytest.approx(12 * factor)
    assert worth.se == pytest.approx(math.log(13 / 11) / 2 / 1.959963984540054)


def test_requests_are_no_jobs(tmp_path: Path) -> None:
    text = changed("web: 1.83", "web: 12 requests/s", SMALL.replace("unit: icelake servers", "unit: jobs/s"))
    assert "the worth is in requests/s, the demand in jobs/s: they do not match" in refused(tmp_path, text)[0]


def test_a_reference_says_which_machines_the_unit_means(tmp_path: Path, on_record: Path) -> None:
    other = "unit: our old servers\n    reference: gen=icelake"
    text = changed("web: 1.83", "web: {compare: {candidate: gen=genoa, class: cpu-int}}").replace(
        "unit: icelake servers", other
    )
    assert read(tmp_path, text, on_record).skus["genoa"].worth["web"].value == pytest.approx(1.83)
    text = text.replace("candidate: gen=genoa", "candidate: gen=genoa, baseline: gen=turin")
    assert (
        "in servers of gen=turin, the demand in our old servers (gen=icelake)" in refused(tmp_path, text, on_record)[0]
    )


def test_one_host_needs_a_standard_error(tmp_path: Path, on_record: Path) -> None:
    worth = COMPARED.replace("gen=genoa", "gen=turin")[:-1] + ", error: 5%}"
    got = read(tmp_path, changed("web: 1.83", f"web: {worth}"), on_record).skus["genoa"].worth["web"]
    assert (got.se, got.df) == (0.05, math.inf)


@pytest.fixture
def profiled(tmp_path: Path) -> Path:
    """Machines on record whose workload has a demand vector."""
    record_generations(tmp_path)
    return tmp_path


def test_a_worth_predicted_by_a_profile(tmp_path: Path, profiled: Path) -> None:
    run(profiled, *FIT, "--save", "web")
    predicted = "{profile: {name: web, select: gen=turin}}"
    against = predicted.replace("gen=turin", "gen=turin, baseline: gen=icelake")
    ratio = read(tmp_path, changed("web: 1.83", f"web: {against}"), profiled).skus["genoa"].worth["web"]
    truth = truth_of(profiled, "icelake") / truth_of(profiled, "turin")
    assert ratio.value == pytest.approx(truth, rel=0.05)
    assert ratio.se > 0
    text = SMALL.replace("icelake servers", "GB/s").replace("{web: 1}", "{web: 10}")
    faults = refused(tmp_path, changed("web: 1.83", f"web: {predicted}", text), profiled)
    assert "profile web is in 1/s, the demand is in GB/s" in faults[0]
    text = SMALL.replace("icelake servers", "requests/min").replace("{web: 1}", "{web: 10}")
    rate = read(tmp_path, changed("web: 1.83", f"web: {predicted}", text), profiled).skus["genoa"].worth["web"]
    assert rate.value == pytest.approx(60 / truth_of(profiled, "turin"), rel=0.05)
    missing = predicted.replace("name: web", "name: wbe")
    assert "skus.genoa.worth.web: " in refused(tmp_path, changed("web: 1.83", f"web: {missing}"), profiled)[0]


# Periods


def test_names_of_periods() -> None:
    assert periods.sequence("2027-Q3", 3) == (["2027-Q3", "2027-Q4", "2028-Q1"], 0.25)
    assert periods.sequence("2027-11", 3) == (["2027-11", "2027-12", "2028-01"], 1 / 12)
    assert periods.sequence("2027-H2", 2) == (["2027-H2", "2028-H1"], 0.5)
    assert periods.sequence("2027", 2) == (["2027", "2028"], 1.0)
    assert periods.in_order(["pilot", "launch"], "half") == 0.5


@pytest.mark.parametrize(
    ("text", "years", "up", "count"),
    [
        ("2 quarters", 0.25, True, 2),
        ("4 months", 0.25, True, 2),
        ("4 months", 0.25, False, 1),
        ("10 weeks", 0.25, True, 1),
        ("5 years", 1 / 12, False, 60),
        (3, 1 / 12, True, 3),
        ("2 halves", 0.25, True, 4),
        ("0 days", 0.25, True, 0),
    ],
)
def test_durations_in_periods(text: object, years: float, up: bool, count: int) -> None:
    assert periods.in_periods(periods.duration(text), years, up=up) == count


SPEED = "{value: 1.83, speed: {compare: {candidate: gen=genoa, baseline: gen=icelake, class: %s}}}"
LATENCY = "slo: {mean: 16ms, service_time: 8ms, slots: 1}"


def test_how_fast_a_slot_is_comes_from_the_record(tmp_path: Path, on_record: Path) -> None:
    """Genoa answers 1.83 times as fast and is worth 1.83: one slot, as the reference has, and M/M/1 by hand."""
    text = changed("utilisation: 65%", LATENCY)
    q = read(tmp_path, changed("web: 1.83", f"web: {SPEED % 'os'}", text), on_record)
    assert q.utilisation("icelake", "web") == pytest.approx(0.5, abs=1e-3)
    assert q.utilisation("genoa", "web") == pytest.approx(1 - 8 / 1.83 / 16, abs=1e-3)


def test_capacity_does_not_tell_how_fast_a_slot_is(tmp_path: Path, on_record: Path) -> None:
    text = changed("utilisation: 65%", LATENCY)
    (error,) = refused(tmp_path, changed("web: 1.83", f"web: {SPEED % 'cpu-int'}", text), on_record)
    assert (
        "cpu-int does not measure the speed of one slot; choose a class or benchmark of responsiveness; there are os"
        in error
    )
