"""Which engine makes figures of values: DuckDB in this process, or another that FLEETMARK_ENGINE names."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.record.figures.database import connect
from fleetmark.record.figures.words import Engine

_VARIABLE = "FLEETMARK_ENGINE"


@contextlib.contextmanager
def engine() -> Iterator[Engine]:
    """The engine that the environment names. Raises FleetmarkError for one that there is not."""
    name = os.environ.get(_VARIABLE) or "duckdb"
    if name == "duckdb":
        with duckdb() as local:
            yield local
    elif re.fullmatch(r"spark(://\S+|-local\[[0-9*]+\])?", name):
        from fleetmark.record.figures import spark

        with spark.engine(name) as remote:
            yield remote
    else:
        near = suggest(name, ["duckdb", "spark"])
        raise FleetmarkError(f"{_VARIABLE}={name}{near}: it is duckdb (or unset), spark, or spark://HOST:PORT")


@contextlib.contextmanager
def duckdb() -> Iterator[Engine]:
    """DuckDB, in memory."""
    with connect() as con:
        yield Engine(con.execute, con.register, _scan, _hashed, "ubigint")


def _scan(paths: Sequence[Path]) -> tuple[str, list[str]]:
    names = [str(path.resolve()) for path in paths]  # as globs give them back, without "..", which rows are told by
    globs = ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", name)) for name in names)  # no character is a pattern
    return f"read_parquet([{globs}], filename = true, hive_partitioning = false)", names


def _hashed(columns: Sequence[str], salt: int) -> str:
    return f"hash({quoted(columns)}, {salt})"


def quoted(columns: Sequence[str]) -> str:
    """Names of columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in columns)


def literal(value: str | int | bool) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
