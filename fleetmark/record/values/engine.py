"""Define the interface of an SQL engine for values, and implement it with DuckDB."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetmark.record.values.database import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Engine:
    """Execute statements in the SQL dialect of DuckDB.

    ``execute`` runs a statement and returns a result that has ``df()``. ``register`` names a frame as a table.
    ``scan`` returns the FROM expression that reads Parquet files, and the value of its column ``filename`` for each
    file. ``row`` is the SQL expression for a row's position in its file.
    """

    execute: Callable[[str], Any]
    register: Callable[[str, Any], object]
    scan: Callable[[Sequence[Path]], tuple[str, Sequence[str]]]
    row: str


@contextlib.contextmanager
def duckdb(rows: float = math.inf) -> Iterator[Engine]:
    """Open an in-memory DuckDB database as an engine for statements on about ``rows`` rows."""
    with connect(rows) as con:
        yield in_memory(con)


def in_memory(con: DuckDBPyConnection) -> Engine:
    """Return an engine that uses a DuckDB connection."""
    return Engine(con.execute, con.register, _scan, "file_row_number")


def _scan(paths: Sequence[Path]) -> tuple[str, list[str]]:
    names = [str(path.resolve()) for path in paths]  # as DuckDB reports them, without ".."; rows are matched by them
    globs = ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", name)) for name in names)  # escape wildcards
    columns = "filename = true, file_row_number = true, hive_partitioning = false"
    return f"read_parquet([{globs}], {columns})", names


def quoted(columns: Sequence[str]) -> str:
    """Return column names as a quoted, comma-separated list for SQL."""
    return ", ".join(f'"{name}"' for name in columns)


def one_of(column: str, values: Iterable[str]) -> str:
    """Return the SQL condition that ``column`` has one of ``values``."""
    return f"{column} in ({', '.join(map(literal, values)) or 'null'})"


def literal(value: str | int | bool) -> str:
    """Return a value as an SQL literal."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
