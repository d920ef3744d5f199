"""What a run prints at its end: the right figures, every status, nothing beyond the edge of the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from fleetmark.base.measurement import Better, Status
from fleetmark.record.results import Results
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.problems import problems
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from tests.commands import run
from tests.records import TRIAD, record
from tests.reports import rendered, sample


def shown(results: Results, width: int = 80) -> str:
    return rendered.shown(document(results), width)


def words(text: str) -> str:
    return " ".join(text.split())


def test_one_host_by_hand() -> None:
    text = shown(sample.tiny({"h1": [10e9, 30e9, 20e9]}))
    assert "stream 2t triad 18.2 GB/s 10.0–30.0 50% 3" in words(text)
    assert "All 3 runs passed." in text
    assert "smallest to largest" in text


def test_generations_by_hand() -> None:
    generations = {"h1": "old", "h2": "old", "h3": "new"}
    text = words(shown(sample.tiny({"h1": [10e9], "h2": [30e9], "h3": [90e9]}, generations=generations)))
    assert "triad new 90.0 GB/s – – 1" in text
    assert "triad old 17.3 GB/s 10.0–30.0 71% 2" in text
    assert "n: hosts" in text


def test_an_interval_is_told_from_a_range() -> None:
    text = words(shown(sample.tiny({"h1": [1.0, 2, 3, 4, 5, 6]}, unit="s", better=Better.LOWER)))
    assert "2.99 s (1.49–6.00) 53% 6" in text
    assert "95%" in text


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("make", [sample.one, sample.six, lambda: sample.many(60)])
def test_fits_the_terminal(make: Callable[[], Results], width: int) -> None:
    lines = shown(make(), width).splitlines()
    assert lines
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    if width == 120:
        assert not any("…" in line for line in lines)


def test_every_status_is_counted_and_every_cause_told() -> None:
    text = shown(sample.six(), 120)
    assert "passed: 378 · failed: 5 · lost: 4 · invalid: 2 · skipped: 1" in text
    order = [text.index(f"\n{s}: ") for s in ("failed", "lost", "invalid", "skipped")]
    assert order == sorted(order)
    for cause in ("io_uring_setup failed", "No route to host", "1.42 foreign cores", "needs lmbench"):
        assert cause in text
    assert "ping -c 3 gen-c" in text


def test_many_causes_are_capped() -> None:
    ended = [("h1", Status.FAILED, f"cause {letter}") for letter in "abcdefghij"]
    text = shown(sample.tiny({"h1": [1.0]}, ended=ended))
    assert text.count("cause ") == 6
    assert "4 further causes on the page" in text


def test_many_hosts_are_capped() -> None:
    ended = [(f"h{i}", Status.LOST, "gone") for i in range(30)]
    assert "h[0-29]" in shown(sample.tiny({}, ended=ended))


def test_an_unfinished_campaign_says_how_to_go_on() -> None:
    assert "fleetmark run --resume results/c1" in shown(sample.tiny({"h1": [1.0]}, finished=False))
    assert "--resume" not in shown(sample.tiny({"h1": [1.0]}))


def test_nothing_measured() -> None:
    assert "Nothing was measured." in shown(sample.tiny({}))
    text = shown(sample.tiny({}, ended=[("h1", Status.SKIPPED, "needs gcc")]))
    assert "passed: 0 · skipped: 1" in text and "needs gcc" in text


def test_a_hosts_name_cannot_speak_to_the_terminal() -> None:
    name = "h\x1b[2J\x07[bold red]x\u202e"
    text = shown(sample.tiny({}, ended=[(name, Status.FAILED, "why\x1b]0;title\x07")]), 120)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[bold red]x" in text


@pytest.mark.parametrize("width", [40, 80, 140])
def test_commands_to_paste_are_one_line(width: int) -> None:
    results = sample.six()
    lines = shown(results, width).splitlines()
    commands = [f"  {problem.command}" for problem in problems(results)]
    assert commands
    assert [c for c in commands if c not in lines] == []


def test_the_paths_of_page_and_campaign_are_one_line_each(tmp_path: Path) -> None:
    record(tmp_path, f"c-{'x' * 90}", {"h": {}}, {("h", TRIAD): [1e11]})
    lines = run(tmp_path, "report", "last").splitlines()
    (campaign,) = (path for path in tmp_path.iterdir() if path.name.startswith("c-"))
    assert lines[-2:] == [f"report: {campaign / 'summary.html'}", f"campaign: {campaign}"]


def test_a_plot_is_apart_from_what_is_above_it() -> None:
    plot = Chart("Plot", "", "", lines=("a |  o",))
    lines = rendered.shown(
        Document(title="t", answer="", sections=(Section("s", "", (Note("Above."), plot)),)), 80
    ).splitlines()
    assert [line.rstrip() for line in lines][-4:] == ["Above.", "", "Plot", "a |  o"]


def test_a_name_in_a_heading_is_whole_if_there_is_room() -> None:
    columns = Column("class", "class", "name"), Column("ratio", "B200-SXM-180GB x8: times old", "number")
    table = Tabular("t", "t", columns, ((Cell("integer"), Cell("2.00", 2.0)),))
    report = Document(title="t", answer="t", sections=(Section("t", "", (table,)),))
    assert "B200-SXM-180GB" in rendered.shown(report, 80)
