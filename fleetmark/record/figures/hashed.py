"""Rows grouped by a hash of what tells them apart, which costs a tenth of grouping by the columns themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pandas as pd

from fleetmark.record.figures.engine import Engine, literal

# Into how many parts rows are divided to be grouped: what is held is several times a part, but each looks at all files.
Sizes = Sequence[tuple[int, int]]  # rows of a part that are wanted, and the most parts for that
_SIZES: Sizes = ((500_000, 4), (2_500_000, 16))


def told_apart(con: Engine, table: str) -> tuple[pd.DataFrame, str]:
    """The rows of ``table``, no two of which are alike, with ``h``, a hash that tells them apart, and how it is made of
    their columns, in SQL."""
    columns = _telling(con.execute(f"from {table}").df())
    for salt in count():
        hashed = con.hashed(columns, salt)
        raw = con.execute(f"select {hashed} as h, * from {table}").df()
        if raw["h"].is_unique:  # so that a hash says as much as all columns
            break
    return raw, hashed


def _telling(kinds: pd.DataFrame) -> list[str]:
    """The few columns of ``kinds``, rows that differ, that tell these apart: a hash of fewer costs less."""
    codes = {str(name): pd.factorize(column.array)[0] for name, column in kinds.items()}
    coded = pd.DataFrame(codes)  # of numbers: text takes several times as long to compare
    telling = [name for name, code in codes.items() if code.any()] or [*codes][:1]
    for name in telling[::-1]:
        rest = [n for n in telling if n != name]
        if rest and not coded.duplicated(rest).any():
            telling = rest
    return telling


def ranges(rows: int, hosts: Sequence[str], column: str = "v.host", sizes: Sizes | None = None) -> list[str]:
    """Conditions on ``column`` that divide ``rows`` of ``hosts`` into parts of a size to be grouped at once. They go by
    the order of names, so that DuckDB passes over what a file notes to hold other names only."""
    names = sorted({*hosts}, key=str.encode)  # as DuckDB has them in order
    parts = min(len(names), max(min(-(-rows // size), most) for size, most in sizes or _SIZES))
    if parts <= 1:
        return ["true"]
    starts = [names[n * len(names) // parts] for n in range(parts)]
    ends = [f" and {column} < {literal(end)}" for end in starts[1:]]
    return [f"{column} >= {literal(start)}{end}" for start, end in zip(starts, [*ends, ""], strict=True)]
