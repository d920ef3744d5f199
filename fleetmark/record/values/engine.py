"""An engine that runs SQL over values, and DuckDB as one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetmark.record.values.database import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that takes the SQL of DuckDB.

    ``execute``: run a statement, whose result has ``df()``; ``register``: a frame under a name; ``scan``: Parquet files
    as SQL after FROM, and the value of its column ``filename`` for each; ``row``: a row's place in its file, in SQL.
    """

    execute: Callable[[str], Any]
    register: Callable[[str, Any], object]
    scan: Callable[[Sequence[Path]], tuple[str, Sequence[str]]]
    row: str


@contextlib.contextmanager
def duckdb() -> Iterator[Engine]:
    """DuckDB, in memory."""
    with connect() as con:
        yield in_memory(con)


def in_memory(con: DuckDBPyConnection) -> Engine:
    """A connection of DuckDB as an engine."""
    return Engine(con.execute, con.register, _scan, "file_row_number")


def _scan(paths: Sequence[Path]) -> tuple[str, list[str]]:
    names = [str(path.resolve()) for path in paths]  # as globs give them back, without "..", which rows are told by
    globs = ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", name)) for name in names)  # no character is a pattern
    columns = "filename = true, file_row_number = true, hive_partitioning = false"
    return f"read_parquet([{globs}], {columns})", names


def quoted(columns: Sequence[str]) -> str:
    """Names of columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in columns)


def literal(value: str | int | bool) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
