"""DuckDB as Fleetmark uses it: in memory, on local files, without what it would fetch from elsewhere."""

from __future__ import annotations

import math
import tempfile
import uuid
from functools import cache
from typing import Any

import duckdb

_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # nothing is downloaded
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}
FEW = 50_000  # rows that a shared database may be asked about


def connect(rows: float = math.inf) -> duckdb.DuckDBPyConnection:
    """A connection for statements on so many ``rows``. What it creates as temporary is gone when it is closed.

    For few it is one to a database that stays: to open another takes longer than to ask it. For many it has a
    database of its own, since one that stays keeps the memory.
    """
    connection = _shared().cursor() if rows <= FEW else _opened()
    # A bar would go into CSV and JSON on stdout, from two seconds on.
    connection.execute("set enable_progress_bar = false")
    return connection


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    return _opened(threads=1)  # what few rows take is less than to hand them out


def _opened(**more: Any) -> duckdb.DuckDBPyConnection:
    # Its own choice for what does not fit into memory is a folder where Fleetmark was called.
    spill = f"{tempfile.gettempdir()}/fleetmark-{uuid.uuid4().hex}"
    return duckdb.connect(config={**_CONFIG, **more, "temp_directory": spill})
