"""Select the SQL engine that computes figures: DuckDB in this process, or the engine in FLEETMARK_ENGINE."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.record.values.engine import Engine, duckdb

_VARIABLE = "FLEETMARK_ENGINE"


def is_local() -> bool:
    """Return whether the environment selects DuckDB."""
    return _name() == "duckdb"


def _name() -> str:
    return os.environ.get(_VARIABLE) or "duckdb"


@contextlib.contextmanager
def engine(rows: float = math.inf) -> Iterator[Engine]:
    """Open the engine that the environment selects, for statements on about ``rows`` rows.

    Raise FleetmarkError if it does not exist.
    """
    name = _name()
    if is_local():
        with duckdb(rows) as local:
            yield local
    elif re.fullmatch(r"spark(://\S+|-local\[[0-9*]+\])?", name):
        from fleetmark.record.values import spark

        with spark.engine(name) as remote:
            yield remote
    else:
        near = suggest(name, ["duckdb", "spark"])
        raise FleetmarkError(f"{_VARIABLE}={name}{near}: it is duckdb (or unset), spark, or spark://HOST:PORT")
