"""The public interface: its frames and documents, which show the figures of the command line, and its errors."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fleetmark
from fleetmark.base import schema
from fleetmark.base.errors import LeftOut
from fleetmark.record.archive import Archive
from fleetmark.record.compare import Question
from fleetmark.record.figures.hosts import per_host
from fleetmark.record.view import load_results
from tests import programs, stores
from tests.commands import run
from tests.records import IOPS, TRIAD, record
from tests.reports.compared import archives

ROOT = Path(__file__).parents[1]
GENOA = "20261102T000000-genoa"
SIDES = ("gen=icelake", "gen=genoa")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    archives(folder)
    return folder


@pytest.fixture
def opened(root: Path) -> Iterator[fleetmark.Record]:
    with fleetmark.open(root) as results:
        yield results


def stored(root: Path) -> pd.DataFrame:
    files = sorted(root.glob("*/measurements.parquet"))
    return pd.concat([pq.read_table(file).to_pandas() for file in files], ignore_index=True)


# --- the package ----------------------------------------------------------------------------------------------------


def test_importing_the_package_loads_nothing_and_the_names_are_those_of_the_stub() -> None:
    program = (
        "import sys, fleetmark; before = {'pandas', 'duckdb', 'pydantic', 'typer', 'fleetmark.api'} & set(sys.modules);"
        "assert not before, before; fleetmark.open; assert 'fleetmark.api' in sys.modules; print(*dir(fleetmark))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = (ROOT / "fleetmark/__init__.pyi").read_text().splitlines()
    declared = {line.split(" as ")[1] for line in lines if line.startswith("from ")}
    from fleetmark import api

    assert declared == set(api.__all__)
    assert declared | {"__version__"} <= set(done.stdout.split())
    with pytest.raises(AttributeError, match="no attribute 'compare'"):
        _ = fleetmark.compare  # type: ignore[attr-defined]


def test_a_users_program_passes_strict_type_checks(tmp_path: Path) -> None:
    """The wheel's types are checked in the same way: tests/test_package.py."""
    assert (ROOT / "fleetmark/py.typed").is_file()
    (tmp_path / "fleetmark").symlink_to(ROOT / "fleetmark")
    programs.check_types(tmp_path, Path(sys.executable))


# --- campaigns and values -------------------------------------------------------------------------------------------


def test_campaigns_are_those_that_the_command_lists(root: Path, opened: fleetmark.Record) -> None:
    frame = opened.campaigns()
    listed = json.loads(run(root, "campaigns", "--format", "json"))
    assert list(frame["campaign"]) == [c["campaign"] for c in listed] and len(frame) == 3
    assert list(frame["hosts"]) == [3, 3, 3] and not frame["finished"].any()
    assert frame["created"].dt.tz is not None and str(frame["created"][0]) == "2026-11-01 00:00:00+00:00"


def test_hosts_have_their_labels_and_the_facts_that_are_asked_for(opened: fleetmark.Record) -> None:
    frame = opened.hosts("cpu.cores", "gpus.name", select="gen=genoa")
    assert list(frame) == ["campaign", "host", "gen", "watts", "cpu.cores", "gpus.name"]
    assert frame.iloc[0].tolist() == [GENOA, "g1", "genoa", "550", "64", None]
    assert list(frame["host"]) == ["g1", "g2", "g3"]


def test_values_are_the_rows_of_the_files(root: Path, opened: fleetmark.Record) -> None:
    every = stored(root)
    pd.testing.assert_frame_equal(opened.values(), every.astype(schema.PANDAS), check_dtype=False)
    for filters, rows in (
        ({"workload": "stream"}, every[every["workload"] == "stream"]),
        ({"host": ["g*", "i1"], "metric": "t?iad"}, every[every["host"].isin(["g1", "g2", "g3", "i1"]) & (every["metric"] == "triad")]),
        ({"select": "gen=genoa"}, every[every["campaign"] == GENOA]),
        ({"campaign": GENOA[:10]}, every[every["campaign"] == GENOA]),
        ({"campaign": "last", "case": "tcp-1"}, every[every["campaign"].str.endswith("turin") & (every["case"] == "tcp-1")]),
        ({"status": "failed"}, every[:0]),
    ):  # fmt: skip
        frame = opened.values(**filters)  # type: ignore[arg-type]
        assert frame["value"].tolist() == rows["value"].tolist(), filters
        table = opened.arrow(**filters)  # type: ignore[arg-type]
        assert isinstance(table, pa.Table) and table.column("value").to_pylist() == rows["value"].tolist()


def test_values_that_did_not_pass_come_only_when_asked_for(tmp_path: Path) -> None:
    record(tmp_path, "c1", {"h1": {}}, {("h1", TRIAD): [1e9]})
    record(tmp_path, "c2", {"h1": {}}, {("h1", TRIAD): [2e9, 3e9]}, status="invalid")
    opened = fleetmark.open(tmp_path)
    assert opened.values()["value"].tolist() == [1e9]
    assert opened.values(status="invalid")["value"].tolist() == [2e9, 3e9]
    assert opened.values(status=None)["value"].tolist() == [1e9, 2e9, 3e9]
    counts = opened.sql("select status, count(*) as n, count(value) as scored from value group by all order by all")
    assert counts.to_numpy().tolist() == [["invalid", 2, 0], ["passed", 1, 1]]


# --- figures --------------------------------------------------------------------------------------------------------


def test_figures_are_the_centres_of_the_values(root: Path, opened: fleetmark.Record) -> None:
    every = stored(root)
    frame = opened.figures(workload="stream")
    assert len(frame) == 9 and list(frame["n"]) == [4] * 9
    for row in frame.itertuples():
        values = every[(every["host"] == row.host) & (every["metric"] == "triad")]["value"]
        assert row.value == pytest.approx(statistics.geometric_mean(values), rel=1e-12)
        assert row.lo < row.value < row.hi
    generations = opened.figures("generation", metric="triad").set_index("generation")
    hosts = frame.set_index("host")["value"]
    assert generations.loc["genoa", "value"] == pytest.approx(
        statistics.geometric_mean(hosts[["g1", "g2", "g3"]]), rel=1e-12
    )
    assert generations.loc["genoa", "low_host"] == hosts[["g1", "g2", "g3"]].idxmin()
    pairs = opened.figures("pair", campaign=GENOA)
    assert sorted(pairs["subject"]) == sorted(f"g{a}>g{b}" for a in (1, 2, 3) for b in (1, 2, 3) if a != b)
    merged = opened.figures("host", workload="iperf3", campaign=GENOA)
    assert list(merged["subject"]) == ["to genoa"] * 3 and list(merged["over"]) == ["pairs"] * 3


def test_figures_of_a_campaign_are_those_of_its_report(root: Path, opened: fleetmark.Record) -> None:
    mine = opened.figures("pair", campaign=GENOA)["value"].tolist()
    report = per_host(load_results(Archive.open(root / GENOA)).values).frame
    assert mine == report[report["subject"].astype(str).str.contains(">")]["value"].tolist()


def test_sql_gives_the_figures_too(opened: fleetmark.Record) -> None:
    query = """
        select h.labels->>'gen' as generation, h.campaign, h.host, exp(avg(ln(v.value))) as mean, count(*) as n
        from value v join metric m on v.metric_id = m.id join host h on v.host_id = h.id
        where m.metric = ? group by all order by h.campaign, h.host"""
    frame = opened.sql(query, ["triad"])
    figures = opened.figures(metric="triad").set_index("host")["value"]
    assert list(frame["generation"]) == ["icelake"] * 3 + ["genoa"] * 3 + ["turin"] * 3
    assert frame["mean"].tolist() == pytest.approx(figures[frame["host"]].tolist(), rel=1e-12)
    documented = {
        "host": "id campaign host labels",
        "metric": "id workload case metric subject labels unit better class kind headline centre standing members",
        "value": "host_id metric_id repeat value status scored time tool_version raw",
    }
    for table, columns in documented.items():
        assert set(columns.split()) <= set(opened.sql(f"select * from {table} limit 1"))
        for column in columns.split():
            assert f"``{column}``" in str(fleetmark.Record.sql.__doc__)


def test_a_closed_record_opens_its_database_again(root: Path) -> None:
    opened = fleetmark.open(root)
    before = opened.sql("select count(*) as n from value")["n"][0]
    opened.close()
    assert opened.sql("select count(*) as n from value")["n"][0] == before == len(stored(root))


def test_a_store_gives_what_a_folder_gives(root: Path, opened: fleetmark.Record, tmp_path: Path) -> None:
    with stores.store(tmp_path / "copies", "api") as store:
        store.put(root)
        remote = fleetmark.open(store.url)
        pd.testing.assert_frame_equal(remote.values(), opened.values())
        pd.testing.assert_frame_equal(remote.compare(*SIDES).classes, opened.compare(*SIDES).classes)


def test_imported_tables_are_on_record(tmp_path: Path) -> None:
    table = tmp_path / "tidy.csv"
    table.write_text(
        "machine,benchmark,value,unit,better,class,kind\nh1,widget,10,1/s,higher,widgets,capacity\nh2,widget,20,1/s,higher,widgets,capacity\n"
    )
    run(tmp_path, "import", "table", str(table))
    opened = fleetmark.open(tmp_path)
    assert opened.campaigns().empty and list(opened.hosts()["host"]) == ["h1", "h2"]
    assert opened.values()["value"].tolist() == [10, 20]
    (name,) = opened.hosts()["campaign"].unique()
    assert opened.figures(campaign=name)["value"].tolist() == [10, 20]


def test_a_damaged_campaign_is_left_out_with_a_warning(tmp_path: Path) -> None:
    record(tmp_path, "c1", {"h1": {}}, {("h1", TRIAD): [1e9]})
    record(tmp_path, "c2", {"h1": {}}, {("h1", TRIAD): [2e9]})
    (tmp_path / "c2" / "measurements.parquet").write_bytes(b"PAR1 no more")
    with pytest.warns(LeftOut, match="c2 is left out: .*not a complete Parquet file"):
        assert fleetmark.open(tmp_path).values()["value"].tolist() == [1e9]


def test_an_empty_record_has_empty_frames_with_columns(tmp_path: Path) -> None:
    opened = fleetmark.open(tmp_path)
    assert opened.campaigns().empty and opened.hosts().empty
    assert opened.values().empty and list(opened.values()) == list(schema.NAMES)
    assert opened.figures().empty and "value" in opened.figures()
    assert opened.sql("select count(*) as n from value")["n"].tolist() == [0]


# --- comparisons ----------------------------------------------------------------------------------------------------


def test_a_comparison_has_the_rows_and_the_answer_of_the_command(root: Path, opened: fleetmark.Record) -> None:
    words = ("compare", "-b", SIDES[0], "-c", SIDES[1], "-c", "gen=turin")
    compared = opened.compare(*SIDES, "gen=turin")
    assert (compared.baseline, compared.candidates) == ("icelake", ["genoa", "turin"])
    rows = list(csv.DictReader(io.StringIO(run(root, *words, "--format", "csv"))))
    for frame, chosen in (
        (compared.classes, [r for r in rows if not r["benchmark"]]),
        (compared.benchmarks, [r for r in rows if r["benchmark"]]),
    ):
        assert len(frame) == len(chosen) > 0
        for name in frame:
            for mine, theirs in zip(frame[name], [r[str(name)] for r in chosen], strict=True):
                if isinstance(mine, float):
                    assert (theirs == "" and math.isnan(mine)) or float(theirs) == mine, name
                else:
                    assert str(mine) == theirs, name
    document = json.loads(run(root, *words, "--format", "json"))
    assert compared.answer == document["answer"]["sentence"] and compared.answer.startswith("One turin replaces ")
    assert compared.warnings == document["warnings"]


def test_options_are_those_of_the_command(root: Path, opened: fleetmark.Record) -> None:
    compared = opened.compare(*SIDES, per="core", only="stream/*", names=["old", "new"])
    words = ("--per", "core", "--only", "stream/*", "--name", "old", "--name", "new")
    printed = run(root, "compare", "-b", SIDES[0], "-c", SIDES[1], *words, "--format", "csv")
    row = next(csv.DictReader(io.StringIO(printed)))
    assert float(row["ratio"]) == compared.classes["ratio"][0] and compared.candidates == ["new"]


def test_documents_are_saved_by_their_ending(opened: fleetmark.Record, tmp_path: Path) -> None:
    compared = opened.compare(*SIDES)
    paths = {kind: compared.save(tmp_path / f"r.{kind}", date="2026-11-21") for kind in ("html", "pdf", "xlsx", "md", "json", "csv")}  # fmt: skip
    assert compared.answer in paths["html"].read_text() and "2026-11-21" in paths["html"].read_text()
    assert paths["pdf"].read_bytes().startswith(b"%PDF-")
    assert "Per host" in openpyxl.load_workbook(paths["xlsx"], read_only=True).sheetnames
    assert compared.answer in paths["md"].read_text()
    document = json.loads(paths["json"].read_text())
    assert document["answer"]["sentence"] == compared.answer
    ratios = [r["ratio"] for r in document["rows"] if not r["benchmark"]]
    assert ratios == compared.classes["ratio"].tolist()
    assert [float(r["ratio"]) for r in csv.DictReader(paths["csv"].open()) if not r["benchmark"]] == ratios


# --- parsing --------------------------------------------------------------------------------------------------------


def test_output_is_parsed_from_bytes_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "uptime"
    file.write_bytes(b"3725.50 7200.00\n")
    for frame in (fleetmark.parse("selftest", file.read_bytes()), fleetmark.parse("selftest", file)):
        assert frame[["workload", "metric", "value", "unit"]].to_numpy().tolist() == [["selftest", "uptime", 3725.5, "s"]]  # fmt: skip
        assert frame["labels"][0] == {} and frame.attrs["invalid"] is None


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda r: r.values(workload="strem"), "workload 'strem' (did you mean stream?): not recorded; there are fio,"),
        (lambda r: r.figures(metric=["triad", "copy"]), "metric 'copy': not recorded; there are base_ratio,"),
        (lambda r: r.values(campaign="nope"), "no campaign 'nope': the latest is 20261103T000000-turin"),
        (lambda r: r.values(select="gen=zen"), "selector 'gen=zen' matches no machine: there are gen=icelake (3)"),
        (lambda r: r.figures("rack"), "figures by 'rack': use 'host', 'pair' or 'generation'"),
        (lambda r: r.sql("select watts from value"), 'sql: Binder Error: Referenced column "watts" not found'),
        (lambda r: r.compare("gen=icelake"), "compare: needs a candidate; write compare('gen=icelake', 'gen=genoa')"),
        (lambda r: r.compare(*SIDES, per="rack"), "--per rack"),
        (lambda r: r.compare(*SIDES).save("report.doc"), "save report.doc: unknown document type; use the extension .html"),
        (lambda r: r.compare(*SIDES).save("/nowhere/r.pdf"), "save /nowhere/r.pdf: there is no folder /nowhere; create it first"),
        (lambda r: r.compare(*SIDES).save("/tmp/r.pdf", date="soon"), "--date soon: write it as 2026-11-21"),
        (lambda _: fleetmark.open("/nowhere"), "/nowhere: no such folder; pass the results folder of `fleetmark run`"),
        (lambda _: fleetmark.parse("strem", b""), "no parser for 'strem': did you mean stream?"),
        (lambda _: fleetmark.parse("stream", "/nowhere"), "/nowhere: No such file or directory"),
        (lambda _: fleetmark.parse("stream", b"x"), "stream line 1: expected STREAM's table"),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(
    opened: fleetmark.Record, attempt: Callable[[fleetmark.Record], object], sentence: str
) -> None:
    with pytest.raises(fleetmark.FleetmarkError) as error:
        attempt(opened)
    assert str(error.value).startswith(sentence) and "\n" not in str(error.value)


def test_two_campaigns_of_one_host_are_one_machine(tmp_path: Path) -> None:
    record(tmp_path, "c1", {"h1": {"gen": "a"}}, {("h1", TRIAD): [1e9, 1e9]})
    record(tmp_path, "c2", {"h1": {"gen": "a"}}, {("h1", TRIAD): [4e9, 4e9], ("h1", IOPS): [5.0]})
    frame = fleetmark.open(tmp_path).figures(metric="triad")
    assert frame[["host", "n"]].to_numpy().tolist() == [["h1", 4]] and frame["value"][0] == pytest.approx(2e9)


def test_every_option_of_a_comparison_can_be_given() -> None:
    options = set(inspect.signature(fleetmark.Record.compare).parameters) - {"self", "baseline", "candidates", "by"}
    fixed = {"root", "baseline", "candidates", "host_label", "campaigns"}
    assert options == {field.name for field in dataclasses.fields(Question)} - fixed
