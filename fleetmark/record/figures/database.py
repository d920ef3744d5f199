"""DuckDB as Fleetmark uses it: in memory, on local files, without what it would fetch from elsewhere."""

from __future__ import annotations

import tempfile
import uuid
from typing import Any

import duckdb

_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # nothing is downloaded
    "autoload_known_extensions": False,
    "preserve_insertion_order": False,
}


def connect() -> duckdb.DuckDBPyConnection:
    """A database of its own, which is gone when it is closed."""
    # Its own choice for what does not fit into memory is a folder where Fleetmark was called.
    spill = f"{tempfile.gettempdir()}/fleetmark-{uuid.uuid4().hex}"
    database = duckdb.connect(config={**_CONFIG, "temp_directory": spill})
    database.execute("set enable_progress_bar = false")  # it would go into CSV and JSON on stdout, from two seconds on
    return database
