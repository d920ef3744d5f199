"""Open DuckDB in memory on local files, without extensions or other downloads."""

from __future__ import annotations

import math
import tempfile
import uuid
from functools import cache
from typing import Any

import duckdb

_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # prevent downloads
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}
FEW = 50_000  # maximum number of rows for queries in a shared database


def connect(rows: float = math.inf) -> duckdb.DuckDBPyConnection:
    """Return a connection for statements on about ``rows`` rows. Closing it removes its temporary tables.

    For few rows, connections share one database, because opening a database takes longer than a query. For many rows,
    each connection has its own database, because a shared database would not release the memory.
    """
    connection = _shared().cursor() if rows <= FEW else _opened()
    # After two seconds, a progress bar would go to stdout and corrupt CSV and JSON.
    connection.execute("set enable_progress_bar = false")
    return connection


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return _opened(threads=1)  # for few rows, starting threads takes longer than the query


def _opened(**settings: Any) -> duckdb.DuckDBPyConnection:
    # By default, DuckDB spills to a folder in the current directory.
    spill = f"{tempfile.gettempdir()}/fleetmark-{uuid.uuid4().hex}"
    return duckdb.connect(config={**_CONFIG, **settings, "temp_directory": spill})
