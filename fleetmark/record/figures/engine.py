"""What makes figures of values by SQL, and DuckDB as that."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fleetmark.record.figures.database import connect

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection


class Answer(Protocol):
    """What a statement gives."""

    def df(self) -> pd.DataFrame:
        """As a frame."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that takes the SQL of DuckDB. ``execute`` a statement, whose answer has ``df()``; ``register`` a frame
    under a name; ``scan`` Parquet files: what stands after FROM, and what its column ``filename`` says of each;
    ``hashed``: columns and a salt as an expression of the type ``hash_type``.
    """

    execute: Callable[[str], Answer]
    register: Callable[[str, Any], object]
    scan: Callable[[Sequence[Path]], tuple[str, Sequence[str]]]
    hashed: Callable[[Sequence[str], int], str]
    hash_type: str


@contextlib.contextmanager
def duckdb() -> Iterator[Engine]:
    """DuckDB, in memory."""
    with connect() as con:
        yield in_memory(con)


def in_memory(con: DuckDBPyConnection) -> Engine:
    """A connection of DuckDB as an engine."""
    return Engine(con.execute, con.register, _scan, _hashed, "ubigint")


def _scan(paths: Sequence[Path]) -> tuple[str, list[str]]:
    return scanned(paths, "filename"), [str(path.resolve()) for path in paths]


def scanned(paths: Sequence[Path], *columns: str) -> str:
    """What stands after FROM to read Parquet files by DuckDB, with further ``columns`` of its own."""
    names = [str(path.resolve()) for path in paths]  # as globs give them back, without "..", which rows are told by
    globs = ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", name)) for name in names)  # no character is a pattern
    return f"read_parquet([{globs}], {', '.join(f'{name} = true' for name in columns)}, hive_partitioning = false)"


def _hashed(columns: Sequence[str], salt: int) -> str:
    return f"hash({quoted(columns)}, {salt})"


def quoted(columns: Sequence[str]) -> str:
    """Names of columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in columns)


def literal(value: str | int | bool) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
