"""Test reports in Markdown with a Markdown parser: their content, and that names are not read as markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from fleetmark.base.measurement import Status
from fleetmark.record import compare as comparing
from fleetmark.record import evidence
from fleetmark.record.results import Results
from fleetmark.reports.campaign.document import document
from fleetmark.reports.comparison.compared import with_evidence
from fleetmark.reports.comparison.document import document as comparison_document
from fleetmark.reports.formats import markdown as marks_format
from fleetmark.reports.kit import marks
from fleetmark.reports.kit.language import Language, language
from tests.records import GCC, IOPS, MCF, TRIAD, record
from tests.reports import sample

HOSTILE = (
    "<script>alert(1)</script>",
    "[x](http://x.test) ![y](z)",
    "a|b",
    "**bold** _x_ `code` ~~no~~ $x$",
    "# head",
    "1. one",
    "\u202eRTL\x00",
    "&lt; &amp;",
    "🚀" + "x" * 300,
)


def read(text: str) -> str:
    """Convert Markdown to HTML. Raw HTML passes through, as in wikis."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of every table, row by row, as a reader sees them."""
    return [
        [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr>(.*?)</tr>", table, re.S)]
        for table in re.findall(r"<table>(.*?)</table>", read(text), re.S)
    ]


def compared(root: Path, noun: str = "{side}{n}", spoken: Language = Language()) -> str:  # noqa: B008
    names = {(s, n): noun.format(side=s, n=n) for s in ("old", "new") for n in range(3)}
    factor = {"old": 1.0, "new": 2.0}
    measured = {
        (name, bench): [value * factor[s] * (1 + n / 100)] * 2
        for (s, n), name in names.items()
        for bench, value in ((TRIAD, 1e11), (GCC, 5.0))
    }
    measured |= {(names["old", n], MCF): [4.0] for n in range(3)} | {(names["new", n], IOPS): [1e5] for n in range(3)}
    record(root, "20261101T000000-a", {name: {"gen": s} for (s, _), name in names.items()}, measured)
    answer = comparing.compare(comparing.Question(root=root, baseline="gen=old", candidates=["gen=new"]))
    command = ["fleetmark", "compare", "-b", "gen=old", "-c", "gen=new"]
    together, parts = evidence.gather(root, answer, command, "2026-11-21T00:00:00Z")
    return marks_format.render(comparison_document(with_evidence(answer, together, parts), spoken), spoken)


def marked(results: Results) -> str:
    return marks_format.render(document(results), Language())


def test_a_comparison_has_a_table_per_class_and_says_where_it_is_from(tmp_path: Path) -> None:
    text = compared(tmp_path)
    html = read(text)
    assert "<h1>One new replaces 2.00 (every class) old servers</h1>" in html
    first, below, *_ = tables(text)
    assert first[0] == ["class of work", "new: times old", "new: 100 old become"]
    bandwidth = next(row for row in first if row[0] == "memory bandwidth")
    assert re.fullmatch(r"2\.00 \(1\.\d\d–2\.\d\d\)", bandwidth[1]) and bandwidth[2].startswith("50 (")
    assert below[0] == ["benchmark", "new: ratio", "new: value", "old"]
    stream = next(row for row in below if row[0].startswith("stream"))
    assert stream == ["stream all-cores triad", bandwidth[1], "202 GB/s", "101 GB/s"]
    gaps = next(table for table in tables(text) if table[0][0] == "reason")
    assert ["not measured on new", "new", "1", "spec_cpu2017 505.mcf_r"] in gaps
    assert "not comparable with published SPEC results" in html
    assert "<code>fleetmark compare -b gen=old -c gen=new</code>" in html
    assert "Campaign 20261101T000000-a" in html and "SHA-256" in html
    assert "95% confidence intervals of the average" in html
    assert text.endswith("\n") and "\n\n\n" not in text


def test_a_campaign_says_how_it_went_and_what_to_do() -> None:
    text = marked(sample.six())
    html = read(text)
    assert "390 runs on 6 hosts: 378 passed, 5 failed, 4 lost, 2 invalid, 1 skipped" in html
    headlines = next(table for table in tables(text) if table[0][0] == "benchmark")
    assert headlines[0] == ["benchmark", "generation", "value", "of peak", "spread", "CV", "hosts", "better"]
    row = next(r for r in headlines if r[0] == "stream all-cores triad")
    assert row[1] == "genoa" and row[2:4] == ["601.0 GB/s", "87%"] and row[-1] == "higher"
    assert "io_uring_setup failed: Operation not permitted" in html
    assert "<code>ping -c 3 gen-c</code>" in html
    assert "<code>fleetmark run -i hosts.yml --suite standard --seed 2</code>" in html


def test_one_host_has_no_generations() -> None:
    headlines, *_ = tables(marked(sample.one()))
    assert headlines[0][:3] == ["benchmark", "value", "of peak"]
    assert "Spread: (a–b), 95% confidence interval" in read(marked(sample.one()))


def test_nothing_and_nothing_but_failures() -> None:
    empty = replace(sample.tiny({"a": []}), hosts=())
    assert "0 runs on 0 hosts" in marked(empty)
    failed = sample.tiny({"a": []}, ended=[("a", Status.FAILED, "status 1")], finished=False)
    text = marked(failed)
    assert "No run passed, so there is no figure to show." in text and "1 failed" in text
    assert "run failed and invalid steps again: `fleetmark run --resume" in text


def test_it_speaks_the_readers_language(tmp_path: Path) -> None:
    zh = language("zh-CN")
    for text in (compared(tmp_path, spoken=zh), marks_format.render(document(sample.six(), zh), zh)):
        assert "来源" in text and ("可替代" in text or "关键指标" in text)
        prose = re.sub(r"`[^`]*`", "", text)
        assert not re.search(r"\b(baseline|better|verdict|Provenance|hosts|runs|measured)\b", prose)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(name: str) -> None:
    results = sample.tiny(
        {name: [], "b": [1.0, 2.0]},
        generations={name: name, "b": "x"},
        ended=[(name, Status.FAILED, name)],
    )
    html = read(marked(results))
    assert not re.search(r"<(script|a|img|del|em)\b", html)
    assert html.count("<h1>") == 1 and html.count("<table>") == 2  # runs by host and workload, and headlines
    shown = name.replace("\u202e", "<U+202E>").replace("\x00", "␀")
    for plain, coded in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(plain, coded)
    assert re.search(rf"<(li|p)>{re.escape(shown)}</\1>", html)  # as the reason
    assert re.sub(r"\s+", " ", html).count(shown) >= 2  # and as the host


def test_hostile_names_in_a_comparison(tmp_path: Path) -> None:
    text = compared(tmp_path, "<b>|`{side}{n}")
    assert "<b>" not in read(text)
    assert {len(row) for table in tables(text)[:2] for row in table} == {3, 4}


def test_commands_with_backticks_stay_whole() -> None:
    assert marks.code("echo `date`") == "`` echo `date` ``"
    assert "<code>a `` b</code>" in read(marks.code("a `` b"))
