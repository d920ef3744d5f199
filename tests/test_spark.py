"""Figures by Spark in this machine: those of DuckDB, of the same files, to 1e-12."""

from __future__ import annotations

import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.figures.hosts import per_host
from fleetmark.record.values import spark as spark_module
from fleetmark.record.values.host import numbered
from fleetmark.record.view import load_results
from tests import records
from tests.commands import refused, run
from tests.records import IOPS, MCF, NULL, TRIAD

HOSTS = {f"{gen}{n}": {"gen": gen} for gen in ("old", "new") for n in range(4)}
COMPARE = ("compare", "-b", "gen=old", "-c", "gen=new", "--format", "csv")


def on_record(root: Path) -> dict[str, Path]:
    """Two campaigns with geometric means and medians, what is not scored, and a name that URLs write otherwise."""
    rng = np.random.default_rng(19)
    files = {}
    for campaign in ("c1", "c [2] {100%}+ü'"):
        measured = {
            (host, bench): list(scale * np.exp(rng.normal(0, 0.1, 5)))
            for host in HOSTS
            for bench, scale in ((TRIAD, 1e11), (IOPS, 1e5), (NULL, 1e-7), (MCF, 7.0))
        }
        measured["old0", TRIAD] = [1.0, 0.0, -1.0, math.nan, math.inf, 2.0]
        archive = records.record(root, campaign, HOSTS, measured)
        (root / "up").mkdir(exist_ok=True)
        files[campaign] = root / "up" / ".." / archive.path.name / "measurements.parquet"  # as of --results ../results
    return files


def table(csv: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(csv))


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("java"):
        pytest.skip("no Java here, which Spark needs: apt-get install default-jre-headless")
    pytest.importorskip("pyspark", reason="no Spark here: pip install 'fleetmark[spark]'")
    pytest.importorskip("ibis", reason="no Ibis here: pip install 'fleetmark[spark]'")
    monkeypatch.setenv("FLEETMARK_ENGINE", "spark-local[2]")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # a short life


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ibis and Spark with pandas 3
def test_spark_gives_the_figures_of_duckdb(tmp_path: Path, spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    files = on_record(tmp_path)
    hosts = numbered((campaign, host) for campaign in files for host in HOSTS)

    def ordered(frame: pd.DataFrame) -> pd.DataFrame:
        columns = sorted(frame.columns)
        return frame[columns].sort_values(["record", "key"], ignore_index=True).astype({"record": int, "key": int})

    by_spark = figures.read(files, hosts, condition=figures.EVERYTHING, spread=True)
    compared = run(tmp_path, *COMPARE)
    monkeypatch.delenv("FLEETMARK_ENGINE")
    by_duckdb = figures.read(files, hosts, condition=figures.EVERYTHING, spread=True)
    pd.testing.assert_frame_equal(by_spark.keys, by_duckdb.keys)
    assert len(by_duckdb.rows) == len(hosts) * 4
    for ours, theirs in ((by_spark.rows, by_duckdb.rows), (by_spark.left_out, by_duckdb.left_out)):
        pd.testing.assert_frame_equal(ordered(ours), ordered(theirs), check_dtype=False, rtol=1e-12, atol=0)
    assert sorted(by_spark.left_out["n"]) == [4, 4]
    pd.testing.assert_frame_equal(table(compared), table(run(tmp_path, *COMPARE)), rtol=1e-9)


def equal(ours: Any, theirs: Any) -> bool:
    """Return whether two JSON values are equal but for the last digits of numbers."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(equal(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-12)
    return bool(ours == theirs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ibis and Spark with pandas 3
def test_a_report_by_spark_is_that_of_duckdb(tmp_path: Path, spark: None, monkeypatch: pytest.MonkeyPatch) -> None:
    on_record(tmp_path)
    used: list[str] = []
    opened = spark_module.engine
    monkeypatch.setattr(spark_module, "engine", lambda name: used.append(name) or opened(name))
    by_spark = json.loads(run(tmp_path, "report", "c1", "--format", "json"))
    assert used == ["spark-local[2]"]
    monkeypatch.delenv("FLEETMARK_ENGINE")
    by_duckdb = json.loads(run(tmp_path, "report", "c1", "--format", "json"))
    assert equal(by_spark, by_duckdb) and len(by_duckdb["measurements"]) == len(HOSTS) * 4 * 5 + 1
    figures_of = {}
    for engine in ("spark-local[2]", "duckdb"):
        monkeypatch.setenv("FLEETMARK_ENGINE", engine)
        figures_of[engine] = records.plain(per_host(load_results(Archive(tmp_path / "c1")).values).frame)
    assert {"order", "student", "range"} >= set(figures_of["duckdb"]["interval"]) >= {"range"}
    pd.testing.assert_frame_equal(*figures_of.values(), check_dtype=False, rtol=1e-12)


def test_an_engine_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_record(tmp_path)
    monkeypatch.setenv("FLEETMARK_ENGINE", "sparc")
    sentence = "FLEETMARK_ENGINE=sparc (did you mean spark?): it is duckdb (or unset), spark, or spark://HOST:PORT"
    assert refused(tmp_path, *COMPARE) == sentence


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETMARK_ENGINE", "spark-local[3]")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(FleetmarkError, match="needs Java 17 or later here: apt-get install default-jre-headless"):
        figures.read({}, [])
