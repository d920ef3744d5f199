"""Compute figures with Spark for records larger than one machine. Ibis translates the DuckDB statements.

Spark reads the Parquet files itself, so a cluster's workers must see them at the same paths. Only one row per host and
benchmark is returned.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pandas as pd

from fleetmark.base.errors import FleetmarkError, required
from fleetmark.record.values.engine import Engine

# Statements for DuckDB create tables and views like this. DuckDB drops them when the connection closes.
_CREATE = re.compile(r"\s*create or replace temp (table|view) (\w+) as (.*)", re.DOTALL)
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}

_LOCAL = {"spark.sql.shuffle.partitions": "8", "spark.driver.host": "127.0.0.1"}  # the default is 200 tasks per step
_FINITE = """create or replace temporary function isfinite(x double) returns boolean
    return x > double('-infinity') and x < double('infinity')"""  # Spark sorts NaN above all numbers


@contextlib.contextmanager
def engine(name: str) -> Iterator[Engine]:
    """Open the Spark engine ``name``: ``spark`` (on this machine) or ``spark://HOST:PORT``.

    Raise FleetmarkError if a requirement of Spark is missing, or if Spark rejects a statement.
    """
    database = _connect("local[*]" if name == "spark" else name.removeprefix("spark-"))
    from pyspark.errors import PySparkException

    created: list[str] = []

    def register(view: str, frame: pd.DataFrame) -> None:
        import ibis

        created.append(view)
        database.create_view(view, ibis.memtable(frame), overwrite=True)

    def execute(statement: str) -> Any:
        creates = _CREATE.fullmatch(statement)
        answer = database.sql(creates[3] if creates else statement, dialect="duckdb")
        if creates:
            created.append(creates[2])
            database.create_view(creates[2], answer, overwrite=True)
            if creates[1] == "table":  # cache it because several statements read it
                database.raw_sql(f"cache table {creates[2]}")
        return _Answer(answer)

    def scan(paths: Sequence[Path]) -> tuple[str, list[str]]:
        globs = [re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.resolve())) for path in paths]  # escape wildcards
        files = database._session.read.parquet(*[f"file://{glob}" for glob in globs])
        called = {unquote(urlparse(uri).path): uri for uri in files.inputFiles()}
        view = f"files_{len(created)}"
        created.append(view)
        files.selectExpr("*", "input_file_name() as filename").createOrReplaceTempView(view)
        return view, [called[str(path.resolve())] for path in paths]

    try:
        yield Engine(execute, register, scan, "0")
    except PySparkException as error:
        raise FleetmarkError(f"Spark cannot compute figures from the record: {_first_line(error)}") from error
    finally:
        for view in dict.fromkeys(created):
            database.raw_sql(f"drop view if exists {view}")


class _Answer:
    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def df(self) -> pd.DataFrame:
        frame: pd.DataFrame = self._expression.to_pandas()
        return frame


@functools.cache
def _connect(master: str) -> Any:
    """Connect Ibis to a Spark session with ``master``.

    The process keeps the session, because starting one takes seconds.
    """
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        raise FleetmarkError(
            "FLEETMARK_ENGINE: Spark needs Java 17 or later here: apt-get install default-jre-headless"
        )
    ibis = required("ibis", "spark", "FLEETMARK_ENGINE: Spark")
    session_type = required("pyspark.sql", "spark", "FLEETMARK_ENGINE: Spark").SparkSession
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # from pandas 3
            settings: dict[str, Any] = _SETTINGS | (_LOCAL if master.startswith("local") else {})
            session = session_type.builder.master(master).appName("fleetmark").config(map=settings).getOrCreate()
            session.sql(_FINITE)
            return ibis.pyspark.connect(session)
    except ImportError as error:  # the back end of Ibis for Spark
        raise FleetmarkError("FLEETMARK_ENGINE: Spark needs Ibis: pip install 'fleetmark[spark]'") from error
    except PySparkException as error:
        raise FleetmarkError(f"FLEETMARK_ENGINE: no Spark at {master}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]
