"""Test that all columns of measurements are declared once, and that all readers handle older files equally."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from fleetmark.base import schema
from fleetmark.base.measurement import Better, Measurement
from fleetmark.cli.app import app
from fleetmark.record.archive import Archive
from fleetmark.record.figures.hosts import METRIC, per_host
from fleetmark.record.results import OUTCOME_COLUMNS
from fleetmark.record.values import Values
from fleetmark.record.view import load_results, read_values
from tests.records import TRIAD, record, row

M = Measurement("stream", "all-cores", "triad", 1.0, "B/s", better=Better.HIGHER, labels={"b": "2", "a": "1"})
REST = {k: v for k, v in row(host="h9").items() if k not in (*schema.KEY, "value", "better") or k == "standing"}
HOSTS = {"a": {"gen": "old"}, "b": {"gen": "new"}}


def campaign(root: Path) -> Archive:
    return record(root, "c1", HOSTS, {("a", TRIAD): [1e9, 1.1e9], ("b", TRIAD): [2e9, 2.1e9]})


def test_a_row_has_every_column_and_no_other() -> None:
    values = schema.row(M, REST)
    assert tuple(values) == schema.NAMES
    assert (values["metric"], values["labels"], values["host"]) == ("triad", '{"a":"1","b":"2"}', "h9")
    assert schema.row(M, {**REST, "case": "other"})["case"] == "other"
    with pytest.raises(TypeError, match="lacks members"):
        schema.row(M, {k: v for k, v in REST.items() if k != "members"})
    with pytest.raises(TypeError, match="has no member$"):
        schema.row(M, {**REST, "member": "h1"})
    with pytest.raises(TypeError, match="a int in repeat, not '0'"):
        schema.row(M, {**REST, "repeat": "0"})


def test_rows_frames_and_files_have_the_same_columns(tmp_path: Path) -> None:
    archive = campaign(tmp_path)
    assert pq.read_schema(archive.path / "measurements.parquet").equals(schema.arrow())
    assert tuple(read_values(archive).select("true")) == tuple(schema.frame()) == schema.NAMES
    (archive.path / "measurements.parquet").unlink()
    nothing = read_values(archive).select("true")
    assert nothing.empty and tuple(nothing) == schema.NAMES
    assert dict(schema.frame([row()]).dtypes) == schema.PANDAS
    assert list(per_host(Values(nothing)).frame)[: len(METRIC)] == list(schema.KEY)


def test_the_page_about_the_archive_names_every_column_with_its_type() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "measurements.md").read_text("utf-8")
    _, _, table = page.partition("|-|-|-|-|\n")
    types = {"string": "object"}
    columns = {
        name.strip(" `"): types.get(kind.strip(), kind.strip())
        for names, kind in (line.split("|")[1:3] for line in table.partition("\n\n")[0].splitlines())
        for name in names.split(",")
    }
    assert list(columns.items()) == list(schema.PANDAS.items())


def test_values_and_results_without_one_of_the_columns_are_refused(tmp_path: Path) -> None:
    results = load_results(campaign(tmp_path))
    for name in schema.NAMES:
        with pytest.raises(ValueError, match=f"lack the columns {name}$"):
            Values(results.values.frame.drop(columns=name))
    for name in OUTCOME_COLUMNS:
        with pytest.raises(ValueError, match=f"lack the columns {name}$"):
            replace(results, outcomes=results.outcomes.drop(columns=name))


@pytest.mark.parametrize("name", sorted(schema.DEFAULTS))
@pytest.mark.parametrize("way", ["absent", "null"])
def test_a_file_without_a_column_is_reported_and_compared_by_its_default(tmp_path: Path, name: str, way: str) -> None:
    archive = campaign(tmp_path)
    file = archive.path / "measurements.parquet"
    before, table = compared(tmp_path), pq.read_table(file)
    usual = set(table.column(name).to_pylist()) == {schema.DEFAULTS[name]}
    rest = table.drop_columns([name])
    if way == "null" and name in schema.TEXT:
        rest = rest.append_column(name, pa.array([None] * len(table), pa.string()))
    pq.write_table(rest, file)
    assert set(read_values(archive).select("true")[name]) == {"c1" if name == "campaign" else schema.DEFAULTS[name]}
    after = compared(tmp_path)
    assert after == before or not usual
    assert [float(r["ratio"]) > 1.9 for r in csv.DictReader(io.StringIO(after)) if r["benchmark"]] == [True]


def compared(root: Path) -> str:
    words = ["compare", "-b", "gen=old", "-c", "gen=new", "--format", "csv", "--results", str(root)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout
