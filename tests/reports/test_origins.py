"""Test what is behind a ratio: hosts, repeats, raw files and commands, as far as a page has room."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetmark.record import origins as record
from fleetmark.record.archive import Archive
from fleetmark.reports.comparison.document import document
from fleetmark.reports.formats import html
from fleetmark.reports.kit.language import Language
from tests.reports import compared, papers
from tests.reports.pages import Page


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> compared.Compared:
    root = tmp_path_factory.mktemp("origins")
    compared.archives(root, ("icelake", "genoa"))
    return compared.compared(root, candidates=["gen=genoa"])


def test_every_benchmark_with_a_ratio_has_its_hosts_and_repeats(seen: compared.Compared) -> None:
    assert seen.shown is not None
    rows, omitted = record.chosen(seen.shown.of_hosts, seen.comparison.benchmarks)
    assert omitted == [] and set(rows["title"]) == set(seen.comparison.benchmarks.index)
    root = seen.shown.results.campaign.path
    runs = dict(record.runs(root, seen.shown.results.values, seen.shown.of_hosts, rows))
    triad = {r.host: r for r in runs["stream all-cores triad"]}
    assert sorted(triad) == ["g1", "g2", "g3", "i1", "i2", "i3"]
    assert all(len(r.repeats) == 4 == len(r.files) for r in triad.values())
    assert triad["i1"].files[0] == "20261101T000000-icelake/raw/x"
    curve = runs["lmbench lat_mem_rd latency stride=128"]  # the largest size of each host stands for it
    assert len(curve) == 6 and all(len(r.repeats) == 3 and r.value == pytest.approx(9.5e-8, rel=0.1) for r in curve)
    pairs = runs["iperf3 tcp-1 bitrate (pairs)"]
    assert len(pairs) == 12 and {r.subject for r in pairs if r.host == "i1"} == {"i1>i2", "i1>i3"}


def test_what_has_no_room_is_left_out_and_said(seen: compared.Compared) -> None:
    assert seen.shown is not None
    benchmarks = seen.comparison.benchmarks
    rows, omitted = record.chosen(seen.shown.of_hosts, benchmarks, limit=60)
    assert 0 < len(set(rows["title"])) < len(benchmarks) == len({*rows["title"], *omitted})
    assert rows["n"].sum() <= 60


def test_a_command_is_read_from_the_raw_files_else_from_the_campaign(tmp_path: Path) -> None:
    archive = Archive.create(tmp_path, "c1", {"hosts": [], "suite": "x", "created": "", "seed": 1, "command": []})
    step = {"id": "s", "workload": "stream", "case": "all", "repeat": 0, "argv": ["./stream", "a b"], "env": {}}
    step |= {"expect_s": 1.0, "timeout_s": 2.0, "subject": "host", "host": "h1", "output": "stdout"}
    folder = archive.raw_dir("h1", step)
    folder.mkdir(parents=True)
    (folder / "step.json").write_text(json.dumps(step))
    file = f"c1/{archive.named(folder / 'stdout')}"
    campaigns = {"c1": ("fleetmark", "run"), "imports/spec": ("fleetmark", "import", "spec", "t.csv")}
    assert record.command(tmp_path, file, campaigns) == ("./stream", "a b")
    (folder / "step.json").write_text("{")
    assert record.command(tmp_path, file, campaigns) == ("fleetmark", "run")
    assert record.command(tmp_path, "imports/spec: line 3", campaigns) == campaigns["imports/spec"]
    assert record.command(tmp_path, "c2/raw/h1/x", campaigns) == ()


def test_only_a_page_on_a_screen_has_them(tmp_path: Path) -> None:
    report = document(papers.compared(tmp_path, sides=("old", "new")), Language())
    text = html.render(report, Language())
    (origins,) = [json.loads(data) for tag, data in _scripts(text) if tag == "per-benchmark"]
    assert [o["t"] for o in origins] == sorted(o["t"] for o in origins)
    buttons = [a for _, a in Page(text).tags if a.get("class") == "figure-link"]
    assert {int(a["data-o"] or -1) for a in buttons} == set(range(len(origins)))
    assert "figure-link" not in html.render(report, Language(), medium="paper").partition("<main")[2]


def _scripts(text: str) -> list[tuple[str, str]]:
    parts = text.split('<script type="application/json" id="')[1:]
    return [(part.partition('"')[0], part.partition(">")[2].partition("</script>")[0]) for part in parts]
