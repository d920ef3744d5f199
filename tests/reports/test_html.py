"""The page: true figures, every status, safe whatever a host is called, small, alone with itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fleetmark.model import Better, Status
from fleetmark.results import HostInfo, Results
from reports.format import clean, fit, labels, natural
from reports.hosts import side_by_side
from reports.html import render
from tests.reports import sample

HOSTILE = {
    "ice-a": "<script>document.title='ran'</script>",
    "ice-b": "שרת\u202eevil",
    "ice-c": "h" * 300,
    "gen-a": "nul\x00\x1b[31mhost",
    "gen-b": "\"'><img src=x onerror=\"document.title='ran'\">",
    "gen-c": "{{ 7*7 }} {% x %} & a>b",
}


class Page(HTMLParser):
    """The page as elements: tags with attributes, the text, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.words = ""
        self._open: list[str] = []
        self.unclosed: list[str] = []
        self.feed(text)
        self.close()
        self.unclosed += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._open):
            return
        self.words += data
        if "tr" in self._open and self.rows[-1]:
            self.rows[-1][-1] += data

    def table_row(self, *start: str) -> list[str]:
        """The first row whose cells begin so, white space normalised."""
        for row in self.rows:
            cells = [" ".join(cell.split()) for cell in row]
            if cells[: len(start)] == list(start):
                return cells
        raise AssertionError(f"no row begins with {start}")


@pytest.fixture(scope="module")
def six() -> Page:
    return Page(render(sample.six()))


def test_one_host_by_hand() -> None:
    page = Page(render(sample.tiny({"h1": [10e9, 30e9, 20e9]})))
    assert page.table_row("stream", "2t", "triad") == [
        *("stream", "2t", "triad", "20.0", "GB/s", "10.0–30.0", "50%", "3", "higher"),
    ]
    assert "All 3 runs passed." in page.words
    assert "smallest to largest" in page.words and "95%" not in page.words


def test_generations_and_hosts_by_hand() -> None:
    generations = {"h1": "old", "h2": "old", "h3": "new"}
    page = Page(render(sample.tiny({"h1": [10e9], "h2": [30e9], "h3": [90e9]}, generations=generations)))
    assert page.table_row("stream 2t triadhigher is better", "new")[2:7] == ["90.0", "GB/s", "", "", "1"]
    assert page.table_row("old")[1:] == ["20.0", "GB/s", "10.0–30.0", "71%", "2", "10.0 h1", "30.0 h2"]
    assert page.table_row("stream 2t triad", "GB/s") == ["stream 2t triad", "GB/s", "90.0", "10.0", "30.0"]


def test_a_missing_figure_is_absent_with_its_reason() -> None:
    results = sample.tiny(
        {"h1": [10e9], "h2": [30e9]},
        ended=[("h3", Status.FAILED, "out of memory"), ("h4", Status.SKIPPED, "needs gcc")],
    )
    page = Page(render(results))
    assert page.table_row("stream 2t triad", "GB/s")[2:] == ["10.0", "30.0", "failed", "skipped"]
    assert "out of memory" in page.words and "needs gcc" in page.words


def test_every_status_is_counted_failures_first(six: Page) -> None:
    words = " ".join(six.words.split())
    assert "378 of 390 runs passed." in words
    assert "378 passed 5 failed 4 lost 2 invalid 1 skipped" in words
    reasons = ["io_uring_setup failed", "No route to host", "1.42 foreign cores", "needs lmbench: no compiler"]
    places = [words.index(reason) for reason in reasons]
    assert places == sorted(places) and places[-1] < words.index("Medians of each host's repeats")
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
    assert "unreachable: No route to host" in words


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
    assert {"fio randread-4k: read_iops against queue depth", "iperf3 tcp-8: bitrate", "stream 64t: triad"} <= names
    for said in ("L1 32 KiB", "L2 1.25 MiB", "L3 48 MiB"):  # as the hosts' facts say
        assert said in six.words


def test_hostile_names_neither_run_nor_hide() -> None:
    text = render(sample.renamed(sample.six(), HOSTILE))
    page = Page(text)
    assert page.unclosed == []
    assert sum(t == "script" for t, _ in page.tags) == 1 and not [t for t, _ in page.tags if t == "img"]
    assert not {"\x00", "\x1b", "\u202e"} & set(text)
    assert "<script>document.title='ran'</script>" in page.words
    assert "{{ 7*7 }} {% x %} & a>b" in page.words
    text.encode()


def test_hosts_side_by_side() -> None:
    found = side_by_side(sample.six().hosts)
    assert [names for _, names in found.columns] == [("ice-a",), ("ice-b",), ("ice-c",), ("gen-a",), ("gen-b",)]
    rows = {row.name: row for row in found.rows}
    odd = {name: [found.columns[i][1][0] for i, c in enumerate(row.cells) if c.odd] for name, row in rows.items()}
    assert odd["Kernel"] == odd["Clock"] == ["ice-b"] and odd["Governor"] == ["ice-c"]
    assert odd["CPU"] == [] and rows["CPU"].differs  # generations differ, hosts within them don't
    assert not rows["Boost"].differs
    assert "GPUs" not in rows  # nothing to say
    assert found.unseen == (("gen-c", "ssh: connect to host 10.77.0.6 port 22: No route to host"),)


def test_hosts_alike_share_a_column() -> None:
    found = side_by_side(sample.many(60).hosts)
    assert sum(len(names) for _, names in found.columns) == 59
    assert len(found.columns) < 10
    missing = next(i for i, (_, names) in enumerate(found.columns) if names == ("n0017",))
    dimms = next(row for row in found.rows if row.name == "DIMMs")
    assert dimms.cells[missing].odd and "15 × 32 GiB DDR4 3200 MT/s; 1 slot empty" in dimms.cells[missing].text


def test_three_hundred_hosts_stay_modest() -> None:
    results = sample.many()
    began = time.perf_counter()
    text = render(results)
    took = time.perf_counter() - began
    assert len(text.encode()) < 2_000_000
    assert took < 30, f"{took:.1f} s"  # about 1.5 s on an idle core
    page = Page(text)
    assert page.table_row("n0017", "icelake")
    assert "figures of single hosts are too many for a page" in page.words


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
    assert "lower" in Page(render(sample.tiny({"h1": [1e-6]}, unit="s", better=Better.LOWER))).table_row("stream")


DRIVE = """
const out = {};
const button = (t, i) => t.tHead.rows[0].cells[i].querySelector("button");
const first = (t) => t.tBodies[0].rows[0].cells[0].textContent.trim();
const hosts = document.querySelector("#headlines table.sortable");
const n = hosts.tHead.rows[0].cells.length - 1;
button(hosts, n).click();
out.up = first(hosts); out.aria = hosts.tHead.rows[0].cells[n].getAttribute("aria-sort");
button(hosts, n).click();
out.down = first(hosts); out.last = [...hosts.tBodies[0].rows].at(-1).cells[n].textContent.trim();
const box = document.getElementById("filter");
box.value = "TRIAD old"; box.dispatchEvent(new Event("input"));
setTimeout(() => {
  out.found = document.getElementById("found").textContent;
  out.open = document.querySelectorAll("#metrics details[open]").length;
  document.title = "driven " + JSON.stringify(out);
}, 400);
"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_in_a_browser(tmp_path: Path) -> None:
    values = {f"h{i}": [float(100 + (i * 7) % 12)] for i in range(12)}
    generations = {h: "old" if i % 2 else "new" for i, h in enumerate(values)}
    results = sample.tiny(values, generations=generations, ended=[("h99", Status.FAILED, "it broke")])
    # The page lets only its own script run: the driver comes in as part of it.
    text = render(results)
    policy = re.search(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", text)
    assert policy
    driven = dom(tmp_path, text.replace(policy[0], "").replace("</body>", f"<script>{DRIVE}</script></body>"))
    assert "<title>driven" not in dom(tmp_path, text.replace("</body>", f"<script>{DRIVE}</script></body>"))
    title = re.search(r"<title>driven (.*?)</title>", driven)
    assert title, driven[:500]
    # 100 + 7 i mod 12: h0 gives the least, h5 the most; h99 has no figure and stays last either way.
    assert title[1] == ('{"up":"h0","aria":"ascending","down":"h5","last":"failed","found":"6 of 12 rows","open":1}')


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_hostile_names_in_a_browser(tmp_path: Path) -> None:
    found = dom(tmp_path, render(sample.renamed(sample.six(), HOSTILE)))
    assert "<title>6 hosts, standard suite" in found


def dom(folder: Path, page: str) -> str:
    file = folder / "page.html"
    file.write_text(page, "utf-8")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", f"--user-data-dir={folder / 'profile'}"]
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        *quiet,
        "--virtual-time-budget=3000",
        "--dump-dom",
        file.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
