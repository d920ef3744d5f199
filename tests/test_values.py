"""Test that a report of values read from a file in parts equals a report of the same values in memory."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.record import values as values_module
from fleetmark.record.figures import hosts as figures
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.results import Results
from fleetmark.record.values import PASSED, DamagedFileError, Values, source
from fleetmark.reports.campaign import data
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.view import view
from fleetmark.reports.formats import html
from fleetmark.reports.formats import json as json_format
from fleetmark.reports.kit.language import Language
from tests.records import plain
from tests.reports import sample


def filed(results: Results, folder: Path) -> Results:
    """Return ``results`` with measurements in a file that has small row groups."""
    file = folder / "measurements.parquet"
    rows = plain(results.values.frame)[list(schema.NAMES)]
    pq.write_table(pa.Table.from_pandas(rows, schema.arrow(), preserve_index=False), file, row_group_size=100)
    return replace(results, values=Values(schema.frame(), source(file, results.campaign.id)))


def rounded(text: str) -> str:
    """Remove drawings, and the digits that depend on the order of summation."""
    return re.sub(r"(\d\.\d{6})\d+", r"\1", re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))


@pytest.mark.parametrize("make", [sample.six, lambda: sample.many(30)], ids=["six", "many"])
def test_a_report_of_a_file_is_that_of_a_frame(make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    results = make()
    before, expected = view(results), document(results)
    monkeypatch.setattr(figures, "_SIZES", ((200, 7),))
    monkeypatch.setattr(values_module, "_PART", 70)
    in_file = filed(results, tmp_path)
    after, seen = view(in_file), document(in_file)
    for name in ("stats", "merged", "generational"):
        shown, as_before = (plain(getattr(view_, name)) for view_ in (after, before))
        pd.testing.assert_frame_equal(shown, as_before, check_dtype=False, rtol=1e-12)
    assert rounded(json_format.render(seen)) == rounded(json_format.render(expected))
    if make is sample.six:
        assert rounded(html.render(seen, Language())) == rounded(html.render(expected, Language()))


def test_json_is_what_the_whole_document_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ""
    for rows in (3, 10_000):
        monkeypatch.setattr(values_module, "_PART", rows)
        monkeypatch.setattr(data, "_RUNS", rows)
        monkeypatch.setattr(json_format, "_AT_ONCE", rows)
        text = json_format.render(document(sample.six()))
        assert text.endswith("}\n") and (rows == 3 or text == before)
        before = text
    read = json.loads(text)
    assert len(read["measurements"]) == len(sample.six().values.frame) > 10
    assert len(read["outcomes"]) == len(sample.six().outcomes)


def test_values_of_a_file_and_of_a_frame_are_one_row_behind_the_other(tmp_path: Path) -> None:
    every = sample.six().values.frame
    first = filed(replace(sample.six(), values=Values(every.iloc[:500])), tmp_path).values
    both = first.with_rows(every.iloc[500:])
    assert len(both) == len(every)
    for frame in (both.frame, both.select("true"), pd.concat(list(both.parts()))):
        pd.testing.assert_frame_equal(
            plain(frame).reset_index(drop=True), plain(every).reset_index(drop=True), check_dtype=False
        )
    known = every[["workload", "metric"]].drop_duplicates().astype(object).reset_index(drop=True)
    pd.testing.assert_frame_equal(both.distinct("workload", "metric"), known, check_dtype=False)


def test_summaries_and_values_are_asked_for_in_any_order(tmp_path: Path) -> None:
    values = filed(sample.six(), tmp_path).values
    keys, hosts = values.distinct(*METRIC), values.distinct("host")["host"].tolist()
    first = figures.per_host(values).frame
    parts = pd.concat(list(values.host_by_host(hosts, keys, PASSED)))
    assert len(parts) == len(values.select(PASSED)) > 0
    pd.testing.assert_frame_equal(figures.per_host(values).frame, first)


def test_only_the_hosts_that_are_named_are_read(tmp_path: Path) -> None:
    results = sample.six()
    host = results.hosts[1].name
    filed(results, tmp_path)
    only = Values(schema.frame(), source(tmp_path / "measurements.parquet", "c", {host: host}))
    expected = plain(results.values.frame[results.values.frame["host"] == host]).reset_index(drop=True)
    for frame in (only.frame, only.select("true"), pd.concat(list(only.parts()))):
        pd.testing.assert_frame_equal(plain(frame).reset_index(drop=True), expected, check_dtype=False)


def test_a_file_that_breaks_off_is_named(tmp_path: Path) -> None:
    broken = filed(sample.six(), tmp_path)
    file = tmp_path / "measurements.parquet"
    raw = bytearray(file.read_bytes())
    raw[100:-2000] = bytes(len(raw) - 2100)
    file.write_bytes(raw)
    with pytest.raises(
        FleetmarkError, match=r"measurements.parquet: not a complete Parquet file .* `fleetmark rebuild`"
    ):
        view(broken)


def test_the_damaged_one_of_several_files_is_named(tmp_path: Path) -> None:
    sources = []
    for name in ("sound", "broken"):
        (tmp_path / name).mkdir()
        filed(sample.six(), tmp_path / name)
        sources.append(source(tmp_path / name / "measurements.parquet", name))
    raw = bytearray(sources[1].file.read_bytes())
    raw[100:-2000] = bytes(len(raw) - 2100)
    sources[1].file.write_bytes(raw)
    with pytest.raises(DamagedFileError, match=r"broken/measurements.parquet: not a complete Parquet file") as error:
        Values(schema.frame(), *sources).select("true")
    assert error.value.campaign == "broken"


def test_another_tool_reads_many_campaigns_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for campaign in ("c1", "c2"):
        rows = plain(sample.six().values.frame)[list(schema.NAMES)].assign(campaign=campaign)
        folder = tmp_path / "fleetmark-results" / campaign
        folder.mkdir(parents=True)
        table = pa.Table.from_pandas(rows, schema.arrow(), preserve_index=False)
        pq.write_table(table.drop_columns(["members"]) if campaign == "c1" else table, folder / "measurements.parquet")
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "large-fleets.md").read_text("utf-8")
    code = page[page.index("import duckdb") :].split("```", maxsplit=1)[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, pd.DataFrame] = {}
    exec(code, names)
    mine = rows[(rows["workload"] == "stream") & (rows["metric"] == "triad") & (rows["status"] == "passed")]
    expected = mine.groupby(["host", "case"])["value"].median() / 1e9
    latest = names["latest"]
    assert len(expected) > 1 and set(latest["campaign"]) == {"c1", "c2"}
    for _, one in latest.groupby("campaign"):
        assert one.set_index(["host", "case"])["GB/s"].to_dict() == pytest.approx(expected.to_dict(), rel=1e-12)
