"""The page: true figures, every status, safe with every host name, small, self-contained."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.record.results import HostInfo, Results
from reports import html, markdown
from reports.campaign.document import document
from reports.formats import html as page_format
from reports.hosts.columns import side_by_side
from reports.kit.format import clean, fit, labels, natural
from reports.kit.language import Language
from reports.report import Report
from tests import records
from tests.records import GCC, MCF, TRIAD, Bench
from tests.reports import compared, sample
from tests.reports.pages import Page


def render(results: Results) -> str:
    return page_format.render(document(results), Language())


@pytest.fixture(scope="module")
def six() -> Page:
    return Page(render(sample.six()))


def test_one_host_by_hand() -> None:
    page = Page(render(sample.tiny({"h1": [10e9, 30e9, 20e9]})))
    assert page.table_row("stream 2t triad", "18.2 GB/s", "10.0–30.0")[3:] == ["50%", "3", "higher"]
    assert "All 3 runs passed." in page.words
    assert "smallest to largest" in page.words and "95%" not in page.words


def test_generations_and_hosts_by_hand() -> None:
    generations = {"h1": "old", "h2": "old", "h3": "new"}
    page = Page(render(sample.tiny({"h1": [10e9], "h2": [30e9], "h3": [90e9]}, generations=generations)))
    assert page.table_row("stream 2t triad", "new")[2:6] == ["90.0 GB/s", "–", "–", "1"]
    row = page.table_row("stream 2t triad", "old")
    assert row[2:] == ["17.3 GB/s", "10.0–30.0", "71%", "2", "10.0 GB/s h1", "30.0 GB/s h2", "higher"]
    assert page.table_row("stream 2t triad", "90.0 GB/s", "10.0 GB/s") == [
        *("stream 2t triad", "90.0 GB/s", "10.0 GB/s", "30.0 GB/s")
    ]


def test_a_missing_figure_is_absent_with_its_reason() -> None:
    results = sample.tiny(
        {"h1": [10e9], "h2": [30e9]},
        ended=[("h3", Status.FAILED, "out of memory"), ("h4", Status.SKIPPED, "needs gcc")],
    )
    page = Page(render(results))
    assert page.table_row("stream 2t triad", "10.0 GB/s", "30.0 GB/s")[3:] == ["failed", "skipped"]
    assert "out of memory" in page.words and "needs gcc" in page.words


def test_every_status_is_counted_failures_first(six: Page) -> None:
    words = " ".join(six.words.split())
    assert "378 of 390 runs passed." in words
    counts = ["passed378", "failed5", "lost4", "invalid2", "skipped1"]
    assert "".join(counts) in "".join(words.split())
    reasons = ["io_uring_setup failed", "No route to host", "1.42 foreign cores", "needs lmbench: no compiler"]
    places = [words.index(reason) for reason in reasons]
    assert places == sorted(places) and places[-1] < words.index("Only what passed counts")
    assert "ssh gen-c true" in words
    assert "less results/2026-03-04T0912-0002/raw/ice-b/fio/randread-4k-qd1/0*/stderr" in words


def test_an_unfinished_campaign_says_how_to_go_on() -> None:
    words = Page(render(sample.tiny({"h1": [1.0]}, finished=False))).words
    assert "fleetmark run --resume results/c1" in words and "not finished" in words


@pytest.mark.parametrize("ended", [[], [("h1", Status.LOST, "the link went away")]])
def test_no_figures_at_all(ended: list[tuple[str, Status, str]]) -> None:
    words = Page(render(sample.tiny({}, ended=ended))).words
    assert "No run passed" in words
    assert ("the link went away" if ended else "Nothing was measured.") in words


def test_unreachable_host_without_any_run_is_told() -> None:
    results = sample.tiny({"h1": [1.0]})
    gone = HostInfo("h2", reachable=False, reason="No route to host")
    words = " ".join(Page(render(replace(results, hosts=(*results.hosts, gone)))).words.split())
    assert "unreachable: No route to host" in words and "ssh h2 true" in words
    gone = replace(gone, ssh=("-p", "2222", "-l", "ops", "10.0.0.2"))
    words = " ".join(Page(render(replace(results, hosts=(*results.hosts, gone)))).words.split())
    assert "ssh -p 2222 -l ops 10.0.0.2 true" in words


@pytest.mark.parametrize("make", [sample.one, sample.six, lambda: sample.many(60)])
def test_the_page_is_sound_and_alone(make: Callable[[], Results]) -> None:
    text = render(make())
    page = Page(text)
    assert page.unclosed == []
    ids = Counter(a["id"] for _, a in page.tags if "id" in a)
    assert [name for name, n in ids.items() if n > 1] == []
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "xlink:href"):
            target = attributes.get(name)
            assert target is None or (target.startswith("#") and target[1:] in ids), (tag, target)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {f"#{name}" for name in ids}
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert all("scope" in a for t, a in page.tags if t == "th")
    tables = [t for t, _ in page.tags if t in ("table", "caption")]
    assert tables.count("table") == tables.count("caption") > 0


def test_charts(six: Page) -> None:
    charts = [a for t, a in six.tags if t == "figure"]
    assert [a["aria-label"] for a in charts if "stride 1 KiB" in (a["aria-label"] or "")] == [
        "lmbench lat_mem_rd-1024: latency, size 1 GiB, stride 1 KiB",
        "lmbench lat_mem_rd-1024: latency, stride 1 KiB",
    ]
    names = {a["aria-label"] for a in charts}
    assert {
        "fio randread-4k: read_iops against queue depth",
        "iperf3 tcp-8: bitrate",
        "stream all-cores: triad",
    } <= names
    for cache in ("L1 32 KiB", "L2 1.25 MiB", "L3 48 MiB"):  # as the hosts' facts say
        assert cache in six.words


def test_hostile_names_neither_run_nor_hide() -> None:
    text = render(sample.renamed(sample.six(), sample.HOSTILE))
    page = Page(text)
    assert page.unclosed == []
    run = [a for t, a in page.tags if t == "script" and a.get("type") != "application/json"]
    assert len(run) == 1 and not [t for t, _ in page.tags if t == "img"]
    assert not {"\x00", "\x1b", "\u202e"} & set(text)
    assert "<script>document.title='ran'</script>" in page.words
    assert "{{ 7*7 }} {% x %} & a>b" in page.words
    text.encode()


def test_hosts_side_by_side() -> None:
    table = side_by_side(sample.six().hosts)
    assert [names for _, names in table.columns] == [("ice-a",), ("ice-b",), ("ice-c",), ("gen-a",), ("gen-b",)]
    rows = {row.name: row for row in table.rows}
    odd = {name: [table.columns[i][1][0] for i, c in enumerate(row.cells) if c.odd] for name, row in rows.items()}
    assert odd["Kernel"] == odd["Clock"] == ["ice-b"] and odd["Governor"] == ["ice-c"]
    assert odd["CPU"] == [] and rows["CPU"].differs  # generations differ, hosts within them don't
    assert not rows["Boost"].differs
    assert "GPUs" not in rows  # nothing to say
    assert table.unseen == (("gen-c", "ssh: connect to host 10.77.0.6 port 22: No route to host"),)


def test_hosts_alike_share_a_column() -> None:
    table = side_by_side(sample.many(60).hosts)
    assert sum(len(names) for _, names in table.columns) == 59
    assert len(table.columns) < 10
    missing = next(i for i, (_, names) in enumerate(table.columns) if names == ("n0017",))
    dimms = next(row for row in table.rows if row.name == "DIMMs")
    assert dimms.cells[missing].odd and "15 × 32 GiB DDR4 3200 MT/s; 1 slot empty" in dimms.cells[missing].text


def test_three_hundred_hosts_stay_modest() -> None:
    results = sample.many()
    text = render(results)
    assert len(text.encode()) < 2_000_000
    page = Page(text)
    assert page.table_row("n0017", "icelake")
    assert "The button at a row's end shows every host." in page.words
    every = json.loads(next(t for t in page.data if '"metrics"' in t))
    assert len(every["hosts"]) == len(every["sides"]) == 300
    assert all(len(m["v"]) == 300 for m in every["metrics"])


@pytest.mark.parametrize(
    ("figures", "unit", "bits", "shown"),
    [
        ([(2.5e9, 2.4e9, 2.6e9)], "B/s", False, "2.50 GB/s"),
        ([(2.5e9, 2.4999e9, 2.5001e9)], "B/s", False, "2.500 GB/s"),
        ([(12.5e9, float("nan"), float("nan"))], "B/s", True, "100 Gbit/s"),
        ([(3.0, 2.0, 5.0)], "1", False, "3"),
        ([(0.0, 0.0, 0.0)], "s", False, "0 s"),
        ([(9.1e-8, 9.0e-8, 9.2e-8)], "s", False, "91.0 ns"),
    ],
)
def test_digits_follow_the_spread(figures: list[tuple[float, float, float]], unit: str, bits: bool, shown: str) -> None:
    assert fit(figures, unit, bits=bits).quantity(figures[0][0]) == shown


def test_a_small_figure_never_reads_as_zero() -> None:
    column = fit([(5e9, 4e9, 6e9), (7e9, 6e9, 8e9), (2e5, 1e5, 3e5)], "B/s")
    assert float(column.number(2e5).replace(",", "")) > 0


def test_words() -> None:
    assert labels('{"size":"65536","stride":"128"}') == "size 64 KiB, stride 128 B"
    assert sorted(["h10", "h2", "h1"], key=natural) == ["h1", "h2", "h10"]
    assert clean("a\nb\x00\ud800") == "a b␀<U+D800>"


def test_lower_is_better_is_said() -> None:
    assert "lower" in Page(render(sample.tiny({"h1": [1e-6]}, unit="s", better=Better.LOWER))).table_row(
        "stream 2t triad", "1.00 µs", "–"
    )


# --- comparisons -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("results")
    compared.archives(root)
    return compared.compared_report(root)


@pytest.fixture(scope="module")
def page(three: Report) -> Page:
    return Page(html.render(three))


def two(
    root: Path, old: Mapping[Bench, list[list[float]]], new: Mapping[Bench, list[list[float]]], **options: object
) -> Page:
    """The page of ``new`` against ``old``: each benchmark's repeats, a list a host."""
    for name, figures in (("old", old), ("new", new)):
        hosts = {f"{name}{n}": {"gen": name} for n in range(max(len(v) for v in figures.values()))}
        measured = {(f"{name}{n}", b): own for b, values in figures.items() for n, own in enumerate(values)}
        records.record(root, f"20261101T00000{len(name)}-{name}", hosts, measured)
    return Page(html.render(compared.compared_report(root, "gen=old", ["gen=new"], **options)))


def test_a_comparison_by_hand(tmp_path: Path) -> None:
    """ln 2 and ln 2.2 against 0 and 0: Welch on means of 0.7408 and spread of 0.0953 over two hosts (t of 12.7)."""
    page = two(tmp_path, {TRIAD: [[10e9], [10e9]]}, {TRIAD: [[20e9], [22e9]]})
    ratio = math.sqrt(2 * 2.2)
    row = page.table_row("stream all-cores triad")
    assert row[2].startswith(f"{ratio:.2f} (")
    assert row[3:] == ["10.0", "21.0", "GB/s"]
    words = " ".join(page.words.split())
    assert f"One new replaces {ratio:.2f} (1.1" in words
    assert "100 old become" in words and page.table_row("memory bandwidth")[3].startswith("48 (")


def test_the_page_of_a_comparison(three: Report, page: Page) -> None:
    text = html.render(three)
    assert page.unclosed == []
    words = " ".join(page.words.split())
    places = [
        words.index(w)
        for w in (
            "How many icelake servers does one genoa / turin replace?",
            "One genoa replaces",
            "100 icelake become",
            "Before you rely on this",
            "estimate: not a compliant",
            "Above 1, the candidate is better",
            "Percent from the median of the host's own side",
            "Value: the geometric mean over repeats",
            "What most hosts of each generation have",
            "Benchmarks not compared",
            "Welch's t interval at 95% over hosts",
            "fleetmark compare --baseline gen=icelake --candidate gen=genoa --candidate gen=turin",
            "20261103T000000-turin",
        )
    ]
    assert places == sorted(places)
    for campaign in three.campaigns:
        assert campaign.id in words
        for name, sha in campaign.hashes.items():
            assert f"{sha} {name}" in words
    ids = Counter(a["id"] for _, a in page.tags if "id" in a)
    assert [name for name, n in ids.items() if n > 1] == []
    assert "default-src 'none'" in text and "@import" not in text
    targets = {a["href"] for t, a in page.tags if t == "a"}
    assert {t.removeprefix("#") for t in targets if t} <= set(ids)


def test_every_ratio_is_on_the_page(three: Report, page: Page) -> None:
    candidates = [c.title for c in three.comparison.candidates] if three.comparison else []
    for row in three.rows:
        if row.benchmark and row.ratio is not None:
            lines = [c for c in page.rows if c and " ".join(c[0].split()).startswith(row.benchmark) and len(c) == 8]
            assert len(lines) == 1, row
            cell = " ".join(lines[0][2 + candidates.index(row.candidate)].split())
            assert cell.startswith(f"{row.ratio:.2f} ({row.lo:.2f}–{row.hi:.2f})") and cell.endswith(row.verdict)


def test_left_out_is_told_with_its_reason(page: Page) -> None:
    assert page.table_row("not measured on turin", "turin", "1", "mlc idle latency")
    words = " ".join(page.words.split())
    assert "1 benchmark not compared" in words and "ran on both" in words


def test_a_share_reads_in_percent_in_a_comparison(tmp_path: Path) -> None:
    loss = Bench("iperf3", "udp", "loss", "1", "lower", "net", kind="guardrail")
    two(tmp_path, {TRIAD: [[10e9]], loss: [[0.001]]}, {TRIAD: [[20e9]], loss: [[0.00245]]})
    report = compared.compared_report(tmp_path, "gen=old", ["gen=new"])
    assert report.comparison
    for text in (html.render(report), markdown.render(report)):
        guards = next(line for line in text.splitlines() if "iperf3 udp loss" in line and "cannot tell" in line)
        assert "0.100%" in guards and "0.245%" in guards and "0.00245" not in re.sub(r"<[^>]*>", "", guards)


def test_one_host_a_side_has_no_interval(tmp_path: Path) -> None:
    page = two(tmp_path, {TRIAD: [[10e9]]}, {TRIAD: [[20e9]]})
    assert page.table_row("stream all-cores triad")[2] == "2.00 ? cannot tell"
    assert "One new replaces 2.00 old servers for memory bandwidth" in " ".join(page.words.split())


def test_one_host_a_side_has_an_interval_of_its_repeats(tmp_path: Path) -> None:
    page = two(tmp_path, {TRIAD: [[10e9, 10.1e9]]}, {TRIAD: [[20e9, 20.1e9]]})
    assert "its interval is of this machine, not of its kind" in " ".join(page.words.split())
    assert page.table_row("stream all-cores triad")[2].endswith("? cannot tell")


def test_both_intervals_have_names(tmp_path: Path) -> None:
    xalan = replace(MCF, case="523.xalancbmk_r")  # an own program needs three families of benchmarks
    old = {b: [[100.0], [101.0], [99.0]] for b in (MCF, GCC, xalan)}
    new = {MCF: [[150.0], [151.0], [149.0]], GCC: [[160.0], [161.0], [159.0]], xalan: [[170.0], [171.0], [169.0]]}
    words = " ".join(two(tmp_path, old, new).words.split())
    assert re.search(r"[\d.]+ \([\d.]+–[\d.]+\) better ?own program [\d.]+–[\d.]+", words)
    assert "In brackets: 95% confidence intervals of the average, across hosts" in words
    assert "Own program: where a program of yours" in words


def test_benchmarks_that_disagree_come_with_their_ends(tmp_path: Path) -> None:
    old = {MCF: [[100.0], [101.0], [99.0]], GCC: [[50.0], [50.0], [51.0]]}
    new = {MCF: [[300.0], [301.0], [298.0]], GCC: [[60.0], [60.0], [61.0]]}
    words = " ".join(two(tmp_path, old, new).words.split())
    assert "One new replaces 1.9" in words and "servers for integer" in words and "benchmarks 1.20–3.00" in words


def test_an_interval_without_bounds_worth_having(tmp_path: Path) -> None:
    """Two hosts that differ a millionfold: neither a false 0 nor a row of digits."""
    page = two(tmp_path, {TRIAD: [[1e3], [1e6]]}, {TRIAD: [[1e9], [1e3]]})
    assert re.match(r"31\.62 \([\d.]+e-\d+–[\d.]+e\+\d+\)", page.table_row("stream all-cores triad")[2])


def test_nothing_left_out_is_said(tmp_path: Path) -> None:
    words = two(tmp_path, {TRIAD: [[1e9], [1e9]]}, {TRIAD: [[2e9], [2e9]]}, only=("stream/*",)).words
    assert "All measured benchmarks ran on both sides." in words


def test_a_mix_is_the_first_answer(tmp_path: Path) -> None:
    old = {TRIAD: [[10e9], [10.1e9], [9.9e9]], MCF: [[100.0], [101.0], [99.0]], GCC: [[50.0], [50.0], [51.0]]}
    new = {TRIAD: [[20e9], [20.2e9], [19.9e9]], MCF: [[400.0], [404.0], [398.0]], GCC: [[60.0], [60.0], [61.0]]}
    words = " ".join(two(tmp_path, old, new, mix="mem-bw=0.5,cpu-int=0.5").words.split())
    assert re.search(r"One new replaces 1\.9\d \(1\.\d\d–\d\.\d\d\) old servers", words)
    assert "Your mix: memory bandwidth 50%, integer 50%" in words or "Your mix: integer 50%, memory" in words
    assert "Shares are of server-hours" in words


def test_what_gets_worse_stands_without_a_class_figure(tmp_path: Path) -> None:
    old = {TRIAD: [[10e9]] * 2, MCF: [[100.0]] * 2, GCC: [[50.0], [50.1]]}
    page = two(tmp_path, old, {TRIAD: [[10e9]] * 2, GCC: [[40.0], [40.1]]}, panel=("505.mcf_r",))
    words = " ".join(page.words.split())
    assert "There is no overall figure: too few benchmarks ran on both sides." in words
    assert "Gets worse: integer: spec_cpu2017 502.gcc_r base_ratio: new 0.80" in words
    assert "gets-worse" in [a.get("class") for t, a in page.tags if t == "p"]


def test_hostile_sides_and_benchmarks(tmp_path: Path) -> None:
    bad = "<script>document.title='ran'</script>"
    evil = Bench(bad, "</template><img src=x>", "{{ 7*7 }}\u202e" + "x" * 300, "B/s", "higher", "</script>&\x00")
    text = ""
    for name, value in (("old", 1e9), (bad, 2e9)):
        hosts = {f"{name}{n}": {"gen": name} for n in range(2)}
        records.record(
            tmp_path, f"20261101T000000-{len(name)}", hosts, {(h, evil): [value, value * 1.01] for h in hosts}
        )
    text = html.render(compared.compared_report(tmp_path, "gen=old", [f"gen={bad}"]))
    page = Page(text)
    assert page.unclosed == []
    assert not [t for t, _ in page.tags if t == "img"]
    assert len([a for t, a in page.tags if t == "script" and a.get("type") != "application/json"]) == 1
    assert not {"\x00", "\u202e"} & set(text)
    assert f"One {bad} replaces" in " ".join(page.words.split())


def test_only_paper_has_neither_script_nor_folds(three: Report) -> None:
    page = Page(html.render(three, medium="paper"))
    assert page.unclosed == []
    assert not {"script", "details", "button", "template", "dialog", "select"} & {t for t, _ in page.tags}
    assert "100 icelake become" in page.words and "spec_cpu2017 505.mcf_r" in page.words


def test_a_language(three: Report) -> None:
    texts = {
        "Benchmarks": "基准测试",
        "One {candidate} replaces {amount} {baseline} servers": "<{baseline}> {amount}: {candidate}",
    }
    text = html.render(replace(three, language=Language("zh-CN", texts)))
    words = " ".join(Page(text).words.split())
    assert '<html lang="zh-CN">' in text
    assert "基准测试" in words
    assert re.search(r"<icelake> 1\.2\d .* to 1\.\d+ .*: genoa", words)  # in the order of the translation, and escaped


# --- a folder of the user's own --------------------------------------------------------------------------------------


def test_logo_colours_and_extra_sections(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (tmp_path / "colours.css").write_text(":root { --link: #123456; } /* </style><script> */")
    (tmp_path / "extra.html.j2").write_text(
        '<section id="mine"><h2>{{ _("Hosts") }} of ours</h2>{{ campaign.id }}</section>'
    )
    text = page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    page = Page(text)
    logo = next(a for t, a in page.tags if t == "img")
    assert (logo["src"] or "").startswith("data:image/svg+xml;base64,") and "alert(1)" not in text
    assert "--link: #123456" in text and text.count("</style>") == 1
    assert "Hosts of ours" in page.words and page.unclosed == []


def test_a_template_of_ours_extended_or_replaced(tmp_path: Path) -> None:
    (tmp_path / "document.html.j2").write_text(
        '{% extends "fleetmark/document.html.j2" %}{% block title %}Mine{% endblock %}'
    )
    (tmp_path / "hosts.html.j2").write_text("<p>No hosts here</p>")
    (tmp_path / "provenance.html.j2").write_text("<p>Ask {{ campaign.id }}</p>")
    text = page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    words = Page(text).words
    assert "<title>Mine</title>" in text
    assert "No hosts here" in words and "Ask c1" in words and "Run it again" not in words and "Headlines" in words


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("extra.html.j2", "a\n{% if %}", 2, "Expected an expression"),
        ("extra.html.j2", "a\nb\n{{ nothing_such }}", 3, "nothing_such"),
        ("extra.html.j2", "{{ 1 / 0 }}", 1, "division by zero"),
        ("extra.html.j2", "\n{{ ''.__class__.__mro__ }}", 2, "unsafe"),
        ("hosts.html.j2", "\n\n{{ campaign.nonsense }}", 3, "nonsense"),
    ],
)
def test_an_error_in_a_template_is_named(tmp_path: Path, name: str, text: str, line: int, what: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FleetmarkError, match=what) as raised:
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / name} line {line}: ")


def test_a_template_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "extra.html.j2").write_text('{% include "nowhere.html.j2" %}')
    with pytest.raises(FleetmarkError, match=r"there is no template nowhere\.html\.j2"):
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    with pytest.raises(FleetmarkError, match="no such folder"):
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path / "none")
