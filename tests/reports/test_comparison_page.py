"""Test the page of a comparison: its first screen, every ratio, exclusions, hostile names and languages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.model import rows
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.language import Language
from tests import records
from tests.records import GCC, MCF, TRIAD, Bench
from tests.reports.compared import ENGLISH, archives, compared, document
from tests.reports.pages import Page


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    root = tmp_path_factory.mktemp("results")
    archives(root)
    return compared(root)


@pytest.fixture(scope="module")
def page(three: Compared) -> Page:
    return Page(html.render(document(three), ENGLISH))


def two(
    root: Path, old: Mapping[Bench, list[list[float]]], new: Mapping[Bench, list[list[float]]], **options: object
) -> Page:
    """The page of ``new`` against ``old``: each benchmark's repeats, a list a host."""
    for name, figures in (("old", old), ("new", new)):
        hosts = {f"{name}{n}": {"gen": name} for n in range(max(len(v) for v in figures.values()))}
        measured = {(f"{name}{n}", b): repeats for b, values in figures.items() for n, repeats in enumerate(values)}
        records.record(root, f"20261101T00000{len(name)}-{name}", hosts, measured)
    return Page(html.render(document(compared(root, "gen=old", ["gen=new"], **options)), ENGLISH))


def test_a_comparison_by_hand(tmp_path: Path) -> None:
    """ln 2 and ln 2.2 against 0 and 0: Welch on means of 0.7408 and spread of 0.0953 over two hosts (t of 12.7)."""
    page = two(tmp_path, {TRIAD: [[10e9], [10e9]]}, {TRIAD: [[20e9], [22e9]]})
    ratio = math.sqrt(2 * 2.2)
    row = page.table_row("stream all-cores triad")
    assert row[2].startswith(f"{ratio:.2f} (")
    assert row[3:5] == ["21.0 GB/s", "10.0 GB/s"]
    words = " ".join(page.words.split())
    assert f"One new replaces {ratio:.2f} (1.1" in words
    assert "100 old become" in words and page.table_row("memory bandwidth")[3].startswith("48 (")


def test_the_page_of_a_comparison(three: Compared, page: Page) -> None:
    text = html.render(document(three), ENGLISH)
    assert page.unclosed == []
    words = " ".join(page.words.split())
    words = words[words.index("theme: system") :]  # without the title and the links to sections
    places = [
        words.index(w)
        for w in (
            "One turin replaces",
            "100 icelake become",
            "Before you rely on this",
            "estimate: not a compliant",
            "Above 1, the candidate is better",
            "Percent from the median of the host's own side",
            "Value: ",
            "Facts of most hosts of each generation",
            "Benchmarks not compared",
            "Welch's t interval at 95% over hosts",
            "fleetmark compare --baseline gen=icelake --candidate gen=genoa --candidate gen=turin",
            "20261103T000000-turin",
        )
    ]
    assert places == sorted(places)
    for part in three.parts:
        assert part.campaign.id in words
        for name, sha in part.campaign.hashes.items():
            assert page.table_row(sha, name)
    ids = Counter(a["id"] for _, a in page.tags if "id" in a)
    assert [name for name, n in ids.items() if n > 1] == []
    assert "default-src 'none'" in text and "@import" not in text
    targets = {a["href"] for t, a in page.tags if t == "a"}
    assert {t.removeprefix("#") for t in targets if t} <= set(ids)


def test_every_ratio_is_on_the_page(three: Compared, page: Page) -> None:
    candidates = [candidate.title for candidate in three.comparison.candidates]
    checked = 0
    for row in rows(three.comparison):
        if row.benchmark and row.ratio is not None:
            lines = [c for c in page.rows if c and " ".join(c[0].split()).startswith(row.benchmark) and len(c) == 7]
            assert len(lines) == 1, row
            cell = " ".join(lines[0][2 + 2 * candidates.index(row.candidate)].split())
            assert cell.startswith(f"{row.ratio:.2f} ({row.lo:.2f}–{row.hi:.2f})")
            assert cell.endswith(")" if row.verdict == "better" else row.verdict)
            checked += 1
    assert checked > 15


def test_left_out_is_told_with_its_reason(page: Page) -> None:
    assert page.table_row("not measured on turin", "turin", "1", "mlc idle")
    words = " ".join(page.words.split())
    assert "1 benchmark not compared" in words and "ran on both" in words


def test_a_share_reads_in_percent_in_a_comparison(tmp_path: Path) -> None:
    loss = Bench("iperf3", "udp", "loss", "1", "lower", "net", kind="guardrail")
    two(tmp_path, {TRIAD: [[10e9]], loss: [[0.001]]}, {TRIAD: [[20e9]], loss: [[0.00245]]})
    seen = document(compared(tmp_path, "gen=old", ["gen=new"]))
    for text in (html.render(seen, ENGLISH), markdown.render(seen, ENGLISH)):
        guards = next(line for line in text.splitlines() if "iperf3 udp loss" in line and "cannot tell" in line)
        assert "0.100%" in guards and "0.245%" in guards and "0.00245" not in re.sub(r"<[^>]*>", "", guards)


def test_one_host_a_side_has_no_interval(tmp_path: Path) -> None:
    page = two(tmp_path, {TRIAD: [[10e9]]}, {TRIAD: [[20e9]]})
    assert page.table_row("stream all-cores triad")[2] == "2.00"
    words = " ".join(page.words.split())
    assert "One new replaces 2.00 old servers on memory bandwidth benchmarks" in words
    assert words.count("No interval, so no verdict: a difference may be chance.") == 1


def test_one_host_a_side_has_an_interval_of_its_repeats(tmp_path: Path) -> None:
    page = two(tmp_path, {TRIAD: [[10e9, 10.1e9]]}, {TRIAD: [[20e9, 20.1e9]]})
    assert "its interval describes this machine, not its kind" in " ".join(page.words.split())
    assert page.table_row("stream all-cores triad")[2].endswith(") cannot tell")


def test_both_intervals_have_names(tmp_path: Path) -> None:
    xalan = replace(MCF, case="523.xalancbmk_r")  # a similar program needs three families of benchmarks
    old = {b: [[100.0], [101.0], [99.0]] for b in (MCF, GCC, xalan)}
    new = {MCF: [[150.0], [151.0], [149.0]], GCC: [[160.0], [161.0], [159.0]], xalan: [[170.0], [171.0], [169.0]]}
    words = " ".join(two(tmp_path, old, new).words.split())
    assert re.search(r"[\d.]+ \([\d.]+–[\d.]+\) similar program [\d.]+–[\d.]+", words)
    assert "In brackets: 95% confidence intervals of the average, across hosts" in words
    assert "Similar program: 95% prediction range" in words


def test_benchmarks_that_disagree_come_with_their_ends(tmp_path: Path) -> None:
    old = {MCF: [[100.0], [101.0], [99.0]], GCC: [[50.0], [50.0], [51.0]]}
    new = {MCF: [[300.0], [301.0], [298.0]], GCC: [[60.0], [60.0], [61.0]]}
    words = " ".join(two(tmp_path, old, new).words.split())
    assert (
        "One new replaces 1.9" in words and "servers on integer benchmarks" in words and "benchmarks 1.20–3.00" in words
    )


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
    assert "bad" in [a.get("class") for t, a in page.tags if t == "p"]


def test_hostile_sides_and_benchmarks(tmp_path: Path) -> None:
    bad = "<script>document.title='ran'</script>"
    evil = Bench(bad, "</template><img src=x>", "{{ 7*7 }}\u202e" + "x" * 300, "B/s", "higher", "</script>&\x00")
    text = ""
    for name, value in (("old", 1e9), (bad, 2e9)):
        hosts = {f"{name}{n}": {"gen": name} for n in range(2)}
        records.record(
            tmp_path, f"20261101T000000-{len(name)}", hosts, {(h, evil): [value, value * 1.01] for h in hosts}
        )
    text = html.render(document(compared(tmp_path, "gen=old", [f"gen={bad}"])), ENGLISH)
    page = Page(text)
    assert page.unclosed == []
    assert not [t for t, _ in page.tags if t == "img"]
    assert len([a for t, a in page.tags if t == "script" and a.get("type") != "application/json"]) == 1
    assert not {"\x00", "\u202e"} & set(text)
    assert f"One {bad} replaces" in " ".join(page.words.split())


def test_only_paper_has_neither_script_nor_folds(three: Compared) -> None:
    page = Page(html.render(document(three), ENGLISH, medium="paper"))
    assert page.unclosed == []
    assert not {"script", "details", "button", "template", "dialog", "select"} & {t for t, _ in page.tags}
    assert "100 icelake become" in page.words and "spec_cpu2017 505.mcf_r" in page.words


def test_a_language(three: Compared) -> None:
    texts = {
        "Benchmarks": "基准测试",
        "One {candidate} replaces {amount} {baseline} servers": "<{baseline}> {amount}: {candidate}",
    }
    chinese = Language("zh-CN", texts)
    text = html.render(document(three, chinese), chinese)
    words = " ".join(Page(text).words.split())
    assert '<html lang="zh-CN">' in text
    assert "基准测试" in words
    assert re.search(r"<icelake> 1\.\d+ .* to 2\.\d+ .*: turin", words)  # in the order of the translation, and escaped
