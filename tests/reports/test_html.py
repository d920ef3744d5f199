"""The page: true figures, every status, safe with every host name, small, self-contained."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.record.results import HostInfo, Results
from fleetmark.reports.campaign.document import document
from fleetmark.reports.formats import html as page_format
from fleetmark.reports.hosts.columns import side_by_side
from fleetmark.reports.kit.format import clean, fit, labels, natural
from fleetmark.reports.kit.language import Language
from tests.reports import sample
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
    assert "io_uring_setup failed" in words and "No route to host" in words and "needs lmbench: no compiler" in words
    reasons = ["fio exited with status 1", "unreachable", "1.42 foreign cores", "needs lmbench"]
    places = [words.index(reason) for reason in reasons]
    assert places == sorted(places) and places[-1] < words.index("Only what passed counts")
    assert "ping -c 3 gen-c" in words
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
    gone = HostInfo(name="h2", reachable=False, reason="No route to host")
    words = " ".join(Page(render(replace(results, hosts=(*results.hosts, gone)))).words.split())
    assert "unreachable: No route to host" in words and "ping -c 3 h2" in words
    gone = replace(gone, ssh=("-p", "2222", "-l", "ops", "10.0.0.2"))
    words = " ".join(Page(render(replace(results, hosts=(*results.hosts, gone)))).words.split())
    assert "ip route get 10.0.0.2" in words


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
    ("name", "text", "line", "fault"),
    [
        ("extra.html.j2", "a\n{% if %}", 2, "Expected an expression"),
        ("extra.html.j2", "a\nb\n{{ nothing_such }}", 3, "nothing_such"),
        ("extra.html.j2", "{{ 1 / 0 }}", 1, "division by zero"),
        ("extra.html.j2", "\n{{ ''.__class__.__mro__ }}", 2, "unsafe"),
        ("hosts.html.j2", "\n\n{{ campaign.nonsense }}", 3, "nonsense"),
    ],
)
def test_an_error_in_a_template_is_named(tmp_path: Path, name: str, text: str, line: int, fault: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FleetmarkError, match=fault) as raised:
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / name} line {line}: ")


def test_a_template_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "extra.html.j2").write_text('{% include "nowhere.html.j2" %}')
    with pytest.raises(FleetmarkError, match=r"there is no template nowhere\.html\.j2"):
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path)
    with pytest.raises(FleetmarkError, match="no such folder"):
        page_format.render(document(sample.tiny({"h1": [1.0]})), Language(), templates=tmp_path / "none")
