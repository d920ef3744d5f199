"""Test the data behind a report: campaigns as tables, several sides, old, damaged and large files, and telemetry."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.comparison import record as large
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.record import compare as comparing
from fleetmark.record import evidence, journal
from fleetmark.record.archive import Archive
from fleetmark.record.results import Results
from fleetmark.record.values import Values
from fleetmark.record.view import load_results, read_values
from fleetmark.reports.campaign.conditions import conditions
from fleetmark.reports.campaign.telemetry import table as conditions_table
from fleetmark.reports.campaign.view import View, view
from fleetmark.reports.comparison.compared import with_evidence
from fleetmark.reports.comparison.document import document
from fleetmark.reports.formats import html, markdown, xlsx
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import reference
from tests.drives import save_step
from tests.records import IOPS, MCF, TRIAD, Bench, record

WHEN = "2026-11-21T00:00:00Z"
HOSTS = {"a1": {"gen": "old"}, "a2": {"gen": "old"}, "b1": {"gen": "new"}, "b2": {"gen": "new"}}
SPEED = {"a1": 1.0, "a2": 1.01, "b1": 2.0, "b2": 2.02}


def campaign(root: Path, name: str = "c1", benches: tuple[Bench, ...] = (TRIAD, IOPS)) -> Archive:
    measured = {(h, b): [SPEED[h] * 1e9 * (1 + r / 100) for r in range(3)] for h in HOSTS for b in benches}
    return record(root, name, HOSTS, measured)


def compared(root: Path, **changes: Any) -> comparing.Answer:
    options: dict[str, Any] = {"baseline": "gen=old"} | changes
    return comparing.compare(comparing.Question(root=root, candidates=["gen=new"], **options))


def gathered(root: Path, **changes: Any) -> tuple[Results, tuple[Results, ...]]:
    return evidence.gather(root, compared(root, **changes), ["fleetmark", "compare"], WHEN)


def rewritten(archive: Archive, change: Any) -> None:
    """Rewrite the measurements of a campaign with the function ``change``."""
    file = archive.path / "measurements.parquet"
    pq.write_table(change(pq.read_table(file)), file)


def ran(archive: Archive, outcomes: list[Mapping[str, Any]]) -> None:
    usual = {
        "workload": "stream",
        "case": "all-cores",
        "repeat": 0,
        "subject": "host",
        "status": "passed",
        "reason": "",
    }
    usual |= {"started": "2026-11-01T00:00:00Z", "wall_s": 9.0, "foreign_cores": 0.01, "notes": []}
    held = archive.writable()
    for outcome in outcomes:
        held.note("outcome", sync=False, **{**usual, **outcome})
    held.note("ended", owed=0)
    held.close()


# --- sides -----------------------------------------------------------------------------------------------------------


def seen(answer: comparing.Answer, together: Results, parts: Sequence[Results]) -> View:
    """Return the view of the evidence."""
    shown = with_evidence(answer, together, parts).shown
    assert shown is not None
    return shown


def test_sides_are_generations_and_the_baseline_stands_first(tmp_path: Path) -> None:
    campaign(tmp_path)
    answer = compared(tmp_path)
    together, parts = evidence.gather(tmp_path, answer, ["fleetmark", "compare"], WHEN)
    assert {h.name: h.generation for h in together.hosts} == {
        "a1": "old",
        "a2": "old",
        "b1": "new",
        "b2": "new",
    }
    shown = seen(answer, together, parts)
    assert shown.generations == ("old", "new")
    assert shown.results.campaign.created == WHEN
    values = shown.generational.set_index(["metric", "generation"])["value"]
    assert values["triad", "new"] == pytest.approx(1e9 * (2.0 * 2.02) ** 0.5 * (1.01 * 1.02) ** (1 / 3))


def test_a_host_before_and_after_is_two(tmp_path: Path) -> None:
    campaign(tmp_path, "before"), campaign(tmp_path, "after")
    answer = comparing.compare(
        comparing.Question(root=tmp_path, baseline="campaign=before", candidates=["campaign=after"], paired=True)
    )
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    assert sorted(h.name for h in together.hosts)[:2] == ["a1 (after)", "a1 (before)"]
    assert set(together.values.frame["host"]) == {h.name for h in together.hosts}
    assert len(together.values.frame) == sum(len(p.values.frame) for p in parts) == 48


def test_a_host_that_two_candidates_have_stands_on_both_sides(tmp_path: Path) -> None:
    campaign(tmp_path)
    answer = comparing.compare(comparing.Question(root=tmp_path, baseline="gen=old", candidates=["gen=new", "host=b1"]))
    together, (part,) = evidence.gather(tmp_path, answer, [], WHEN)
    sides = {h.name: h.generation for h in together.hosts}
    assert sides["b1 (new)"] == "new" and sides["b1 (b1)"] == "b1" and sides["b2"] == "new"
    assert together.values.frame.groupby("host", observed=True).size().to_dict() == dict.fromkeys(sides, 6)
    assert part.campaign.id == "c1"


def test_pairs_follow_their_hosts_names(tmp_path: Path) -> None:
    link = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net", subject="a1>a2")
    back = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net", subject="a2>a1")
    for name in ("before", "after"):
        record(tmp_path, name, HOSTS, {("a1", link): [1e9] * 3, ("a2", back): [1e9] * 3})
    answer = comparing.compare(
        comparing.Question(root=tmp_path, baseline="campaign=before", candidates=["campaign=after"], paired=True)
    )
    together, _ = evidence.gather(tmp_path, answer, [], WHEN)
    assert "a1 (after)>a2 (after)" in set(together.values.frame["subject"])
    assert set(seen(answer, together, ()).merged["subject"]) == {"to before", "to after"}


def test_a_pinned_reference_has_no_machines_and_says_where_it_is_from(tmp_path: Path) -> None:
    campaign(tmp_path)
    reference.pin(tmp_path, "ref", "gen=old")
    answer = compared(tmp_path, baseline=None, reference="ref")
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    assert {h.generation for h in together.hosts} == {"new"}
    pinned = evidence.pinned(tmp_path, "ref")
    both = with_evidence(answer, together, (*parts, pinned))
    assert both.shown is not None and both.shown.generations == ("new",)
    campaigns = [part.campaign for part in both.parts]
    assert [c.id for c in campaigns] == ["c1", "ref@1"]
    file = tmp_path / "references" / "ref.1.json"
    assert campaigns[1].hashes == {"ref.1.json": hashlib.sha256(file.read_bytes()).hexdigest()}
    assert "gen=old" in campaigns[1].notes[0]


def test_figures_have_the_hash_of_their_file(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    file = archive.path / "campaign.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "sha256": {"stream.yml": "ab" * 32}}))
    _, (part,) = gathered(tmp_path)
    data = (archive.path / "measurements.parquet").read_bytes()
    assert part.campaign.hashes == {"measurements.parquet": hashlib.sha256(data).hexdigest(), "stream.yml": "ab" * 32}


# --- older and damaged files -----------------------------------------------------------------------------------------


def test_campaigns_of_several_schema_versions_go_together_and_it_is_said(tmp_path: Path) -> None:
    campaign(tmp_path, "new")
    old = campaign(tmp_path, "old", (MCF,))
    rewritten(old, lambda t: t.drop_columns(["standing", "members", "tool_version"]))
    together, parts = gathered(tmp_path)
    assert len(together.values.frame) == 36
    (note,) = [n for p in parts for n in p.campaign.notes]
    assert "old" in note and "without standing" in note and "fleetmark rebuild" in note
    assert set(together.values.frame.loc[together.values.frame["workload"] == "spec_cpu2017", "standing"]) == {""}


def test_missing_values_of_text_are_empty_not_nan(tmp_path: Path) -> None:
    archive = campaign(tmp_path)

    def blank(table: Any) -> Any:
        frame = table.to_pandas().astype({"labels": object})
        frame.loc[0, "labels"] = None
        return table.set_column(table.schema.get_field_index("labels"), "labels", [frame["labels"].tolist()])

    rewritten(archive, blank)
    assert set(read_values(archive).select("true")["labels"]) == {"{}"}


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("campaign.json", "{", "campaign.json: cannot be read"),
        ("campaign.json", '{"schema": 1, "hosts": []}', "campaign.json: lacks created, suite"),
        ("campaign.json", '{"schema": 7}', "schema 7 is not supported by this version"),
        ("journal.jsonl", '{"t": "2026-11-01T00:00:00Z"}\n{"t": 1}\n', "is not an event"),
        ("journal.jsonl", '{"t": "2026-11-01", "e": "outcome", "host": "a1"}\n', "an outcome lacks"),
        ("journal.jsonl", '{"t": "soon", "e": "ended", "owed": 0}\n', "ends at 'soon', which is not a time"),
        ("journal.jsonl", 'nonsense\n{"t": "x", "e": "ended", "owed": 0}\n', "journal.jsonl line 1: not JSON"),
        ("facts/a1.json", "{}", "facts/a1.json: not facts of this version"),
        ("measurements.parquet", "PAR1", "not a complete Parquet file"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    archive = campaign(tmp_path)
    (archive.path / file).write_text(text)
    with pytest.raises(FleetmarkError) as refused:
        load_results(archive)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_host_list_of_another_shape_is_one_sentence(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    file = archive.path / "campaign.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "hosts": ["a1"]}))
    with pytest.raises(FleetmarkError, match="damaged"):
        load_results(archive)


def test_a_file_without_its_figures_is_refused(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    rewritten(archive, lambda t: t.drop_columns(["value", "unit"]))
    with pytest.raises(FleetmarkError, match=r"lacks the columns unit, value; `fleetmark rebuild`"):
        load_results(archive)


def test_a_damaged_import_is_one_sentence(tmp_path: Path) -> None:
    campaign(tmp_path)
    answer = compared(tmp_path)
    file = tmp_path / "c1" / "import.json"  # marks an imported file
    file.write_text('{"kind": "table"}')
    with pytest.raises(FleetmarkError, match=r"import.json: damaged .* import again"):
        evidence.gather(tmp_path, answer, [], WHEN)


# --- the journal -----------------------------------------------------------------------------------------------------


def test_the_last_word_on_a_run_counts(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": "a1", "status": "lost"}, {"host": "a2"}, {"host": "a1", "notes": ["again"]}])
    frame, others, last = journal.read(archive)
    assert frame.set_index("host")["status"].to_dict() == {"a1": "passed", "a2": "passed"}
    assert frame.set_index("host")["notes"].map(list).to_dict() == {"a1": ["again"], "a2": []}
    assert [e["e"] for e in others] == ["ended"] and last == others[-1]["t"]


def test_both_ways_of_reading_a_journal_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = campaign(tmp_path)
    skipped = {"host": "b1", "case": "*", "status": "skipped", "reason": "needs gcc", "started": "", "wall_s": None}
    ran(archive, [{"host": "a1"}, skipped | {"foreign_cores": None}, {"host": "a2", "foreign_cores": 2}])
    quick = journal.read(archive)
    monkeypatch.setattr(journal, "_at_once", lambda _: None)
    slow = journal.read(archive)
    assert quick[1:] == slow[1:]
    pd.testing.assert_frame_equal(quick[0], slow[0], check_dtype=False)


def test_a_line_cut_off_by_a_crash_is_passed_over(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": "a1"}])
    file = archive.path / "journal.jsonl"
    file.write_text(file.read_text() + '{"t": "2026-11-01T00:0')
    assert journal.read(archive)[0]["host"].tolist() == ["a1"]


# --- telemetry -------------------------------------------------------------------------------------------------------


def sampled(
    archive: Archive,
    host: str,
    workload: str,
    case: str,
    repeat: int,
    seconds: int = 300,
    gpus: dict[str, Any] | None = None,
) -> None:
    """Write the agent's telemetry of a run that heats up."""
    t = list(range(1, seconds + 1))
    columns: dict[str, list[Any]] = {
        "t": t,
        "clock_hz_mean": [3e9 - s * 1e6 for s in t],
        "temp_c_max": [40.0 + s / 10 for s in t],
    }
    columns |= {
        "power_w:package-0": [100.0] * seconds,
        "power_w:package-1": [101.0] * seconds,
        "cpu_steal": [0.25] * seconds,
    }
    columns["load1"] = [None] * seconds
    ends = {
        n: {"min": min(v), "mean": sum(v) / seconds, "max": max(v)}
        for n, v in columns.items()
        if n not in ("t", "load1")
    }
    step = {"workload": workload, "case": case, "repeat": repeat, "subject": "host"}
    doc = {"telemetry": {"samples": columns, "summary": ends} | ({"gpus": gpus} if gpus else {})}
    save_step(archive, host, step, {"result.json": json.dumps(doc).encode()})


def test_telemetry_of_headlines_is_read_and_summarised(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": h, "repeat": r, "foreign_cores": 1.5 * (h == "b2")} for h in HOSTS for r in range(3)])
    for host in HOSTS:
        for repeat in range(3):
            sampled(archive, host, "stream", "all-cores", repeat)
    answer = compared(tmp_path)
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    readings = together.telemetry
    assert (readings.read, readings.available, readings.damaged) == (12, 12, ())
    assert set(readings.samples["column"]) == {"clock_hz_mean", "temp_c_max", "power_w", "cpu_steal"}
    assert readings.samples.groupby(["host", "repeat", "column"]).size().max() <= 120
    assert set(readings.samples.loc[readings.samples["column"] == "power_w", "value"]) == {201.0}
    old, new = conditions(seen(answer, together, parts))
    assert (old.generation, old.workload, old.runs, old.read) == ("old", "stream", 6, 6)
    assert (old.clock_hz, old.hottest_c, old.power_w, old.steal) == (pytest.approx(3e9 - 150.5e6), 70.0, 201.0, 0.25)
    assert (old.lowest_clock_hz, old.foreign_cores, new.foreign_cores) == (None, 0.0, 1.5)
    assert "at most 1.5" in parts[0].campaign.notes[0]


def test_accelerators_have_columns_of_their_own(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": h, "repeat": 0} for h in HOSTS])
    samples = {
        "t": [0.5, 1.5, 2.5],  # times of a separate sampler
        "gpu_power_w": [4000.0, 5000.0, None],
        "gpu_clock_hz_mean": [1.9e9, 1.8e9, 1.7e9],
        "gpu_clock_hz_min": [1.8e9, 1.2e9, 1.7e9],
        "gpu_temp_c_max": [60.0, 88.0, 84.0],
        "gpu_slowed": [0.0, 0.25, 0.125],
    }
    for host in HOSTS:
        sampled(archive, host, "stream", "all-cores", 0, gpus={"source": "nvml", "samples": samples})
    answer = compared(tmp_path)
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    old = conditions(seen(answer, together, parts))[0]
    assert (old.gpu_power_w, old.gpu_clock_hz, old.gpu_lowest_clock_hz) == (4500.0, pytest.approx(1.8e9), 1.2e9)
    assert (old.gpu_hottest_c, old.gpu_slowed, old.hottest_c) == (88.0, 0.125, 70.0)
    table = conditions_table(view(together), [old], message("side"))
    assert table is not None
    titles = [column.title for column in table.columns]
    assert "hottest accelerator" in titles and "accelerators: mean power, median run" in titles


def test_telemetry_is_read_of_some_runs_spread_over_all_hosts(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": h, "repeat": r} for h in HOSTS for r in range(30)])
    for host in HOSTS:
        for repeat in range(30):
            sampled(archive, host, "stream", "all-cores", repeat, seconds=5)
    readings = load_results(archive, telemetry_runs=20).telemetry
    assert (readings.read, readings.available) == (20, 120)
    assert readings.extremes.drop_duplicates(["host", "repeat"]).groupby("host").size().tolist() == [5, 5, 5, 5]


def test_a_damaged_result_is_said_and_a_missing_one_is_not_there(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": h} for h in HOSTS])
    sampled(archive, "a1", "stream", "all-cores", 0)
    folder = archive.path / "raw" / "a2" / "stream" / "all-cores" / "0"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text('{"telemetry": {"samples": []')
    results = load_results(archive)
    assert (results.telemetry.read, results.telemetry.available) == (1, 4)
    (note,) = results.campaign.notes
    assert str(folder / "result.json") in note


def test_without_telemetry_there_is_none(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    ran(archive, [{"host": "a1", "foreign_cores": None}])
    results = load_results(archive)
    assert results.telemetry.samples.empty
    (condition,) = conditions(view(results))
    assert (condition.runs, condition.read, condition.clock_hz, condition.foreign_cores) == (1, 0, None, None)


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sides", [("gen=old", "gen=new"), ("campaign=c1", "campaign=c2")])
def test_a_comparisons_documents_never_hold_all_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: tuple[str, str]
) -> None:
    link = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net", subject="a1>a2")
    for name in ("c1", "c2"):
        record(tmp_path, name, HOSTS, {("a1", link): [1e9] * 3, **{(h, TRIAD): [1e11, 2e11] for h in HOSTS}})
    answer = comparing.compare(comparing.Question(root=tmp_path, baseline=sides[0], candidates=[sides[1]]), values=True)
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    in_order = list(pd.concat(list(together.values.parts()))[["host", "subject"]].itertuples(index=False, name=None))
    assert {host for host, _ in in_order} == {h.name for h in together.hosts}
    by_query = together.values.select("true")[["host", "subject"]].astype(object)
    assert list(by_query.itertuples(index=False, name=None)) == in_order
    monkeypatch.setattr(Values, "frame", property(lambda _: pytest.fail("all values were read")))
    rendered = document(with_evidence(answer, together, parts), Language())
    for render in (html.render, markdown.render, xlsx.render):
        assert render(rendered, Language())


def test_three_hundred_thousand_rows_take_little_room(tmp_path: Path) -> None:
    large(tmp_path, 200, 300, 5)
    answer = comparing.compare(comparing.Question(root=tmp_path, baseline="gen=a", candidates=["gen=b"]))
    together, parts = evidence.gather(tmp_path, answer, [], WHEN)
    shown = seen(answer, together, parts)
    values = together.values.select("true")
    assert len(values) == 300_000 and len(shown.stats) == 60_000
    assert values.memory_usage(deep=True).sum() < 300_000 * 50
    row = shown.generational.iloc[0]
    mine = values[(values["host"] == "h0") & (values["workload"] == row["workload"]) & (values["case"] == row["case"])]
    stats = shown.stats.set_index(["host", "workload", "case", "metric"])["value"]
    expected = mine.loc[mine["metric"] == row["metric"], "value"]
    centre = math.exp(np.log(expected).mean()) if row["rule"] != "median" else expected.median()
    assert math.isclose(stats["h0", row["workload"], row["case"], row["metric"]], centre, rel_tol=1e-12)
