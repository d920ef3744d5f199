"""Declare the columns of measurements once for rows, frames and Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from fleetmark.base.measurement import Measurement

if TYPE_CHECKING:  # imported lazily, because loading takes a third of a second
    import pandas as pd
    import pyarrow as pa


class Role(Enum):
    """The role of a column in a measurement."""

    KEY = "key"  # identifies the metric
    ABOUT = "about"  # describes the metric in every measurement
    VALUE = "value"  # belongs to this value only


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``default`` fills it in files of earlier versions. Without a default, it is required."""

    name: str
    type: type[str | int | float | bool]
    role: Role = Role.VALUE
    default: str | int | bool | None = None
    description: str = ""


COLUMNS = (
    Column("campaign", str, default="", description="the campaign's id"),
    Column("host", str, description="the host's name"),
    Column("workload", str, Role.KEY, description="the workload's name"),
    Column("case", str, Role.KEY, description="the case of the workload"),
    Column("metric", str, Role.KEY, description="the metric's name"),
    Column("subject", str, Role.KEY, "host", description="the measured part of the host, or a pair: h1>h2"),
    Column("labels", str, Role.KEY, "{}", description="canonical JSON: sorted keys, no spaces"),
    Column(
        "standing",
        str,
        Role.KEY,
        "",
        description="a Standing if the benchmark's owners reject it as a result",
    ),
    Column("unit", str, Role.KEY, description="a base unit"),
    Column("better", str, Role.ABOUT, description="a Better"),
    Column("class", str, Role.ABOUT, "", description="cpu-int, mem-bw, disk-iops, net, ..."),
    Column(
        "kind",
        str,
        Role.ABOUT,
        "",
        description="a Kind; empty for descriptive metrics and earlier versions",
    ),
    Column("headline", bool, Role.ABOUT, description="whether it is one of the main results"),
    Column("centre", str, Role.ABOUT, "", description="a Centre: how to summarise several values"),
    Column("bits", bool, Role.ABOUT, False, description="whether reports show this rate in bit/s"),
    Column("percent", bool, Role.ABOUT, False, description="whether reports show this share in %"),
    Column("repeat", int, default=0, description="counted from 0"),
    Column("value", float, description="in the base unit"),
    Column("status", str, description="the status of the repeat, or warm-up, disturbed; only passed values are scored"),
    Column("time", str, default="", description="when the repeat began: ISO 8601, UTC"),
    Column("tool_version", str, default="", description="the version that the tool reports"),
    Column("raw", str, default="", description="path of the raw file; empty for a score over several runs"),
    Column("members", str, default="", description="the hosts that ran it together, as JSON; empty for a single host"),
)
NAMES = tuple(c.name for c in COLUMNS)
KEY = tuple(c.name for c in COLUMNS if c.role is Role.KEY)
ABOUT = tuple(c.name for c in COLUMNS if c.role is Role.ABOUT)
TEXT = tuple(c.name for c in COLUMNS if c.type is str)
NEEDED = frozenset(c.name for c in COLUMNS if c.default is None)
DEFAULTS: Mapping[str, str | int | bool] = {c.name: c.default for c in COLUMNS if c.default is not None}
PANDAS: Mapping[str, Any] = {
    c.name: {str: "object", int: "int64", float: "float64", bool: "bool"}[c.type] for c in COLUMNS
}  # the corresponding types in pandas


def row(measurement: Measurement, rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``measurement`` as a row.

    ``rest``: values for columns that ``measurement`` lacks, and values that replace its own.

    Raise TypeError if a column is missing or unknown.
    """
    m = measurement
    columns = {
        "workload": m.workload,
        "case": m.case,
        "metric": m.metric,
        "subject": m.subject,
        "labels": packed(m.labels),
    }
    return checked({**columns, "value": float(m.value), "unit": m.unit, "better": m.better.value, **rest})


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as a row in the order of the columns. Raise TypeError for wrong columns or types."""
    if missing := [name for name in NAMES if name not in values]:
        raise TypeError(f"a row of a measurement lacks {', '.join(missing)}")
    if unknown := sorted(values.keys() - set(NAMES)):
        raise TypeError(f"a row of a measurement has no {', '.join(unknown)}")
    for c in COLUMNS:
        if not isinstance(values[c.name], c.type):
            raise TypeError(f"a row of a measurement has a {c.type.__name__} in {c.name}, not {values[c.name]!r}")
    return {name: values[name] for name in NAMES}


def packed(labels: Mapping[str, str]) -> str:
    """Return labels as canonical JSON, so that equal labels give equal text."""
    return json.dumps(dict(labels), sort_keys=True, separators=(",", ":"))


def arrow() -> pa.Schema:
    """Return the columns as a schema of Arrow and Parquet."""
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return pa.schema([(c.name, types[c.type]) for c in COLUMNS])


def table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return ``rows`` as an Arrow table."""
    import pyarrow as pa

    columns = arrow()
    return pa.table([pa.array([r[f.name] for r in rows], f.type) for f in columns], schema=columns)


def frame(rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Return ``rows`` as a frame. An empty frame has all columns with their types."""
    import pandas as pd

    listed = [checked(r) for r in rows]
    return pd.DataFrame({name: pd.Series([r[name] for r in listed], dtype=dtype) for name, dtype in PANDAS.items()})
