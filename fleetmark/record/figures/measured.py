"""The values of a campaign: rows in memory, and a file whose rows are read only as far as somebody needs them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.frames import plain, stacked
from fleetmark.base.measurement import Status
from fleetmark.record.figures.database import FEW, connect
from fleetmark.record.figures.engine import literal, quoted, scanned
from fleetmark.record.figures.footer import footer
from fleetmark.record.figures.hashed import ranges

_MEND = "`fleetmark parse` rebuilds it from raw files"
_AT_ONCE = 300_000  # number of values per batch
PASSED = f"status = '{Status.PASSED}' and isfinite(value)"  # in SQL: a value that counts
_PART = 20_000  # values that are read at once, with all of their text


@dataclass(frozen=True, slots=True)
class Stored:
    """The measurements.parquet of a ``campaign`` (its id), of its ``hosts`` alone where they are named; with its
    ``columns`` and how many ``rows`` it has. ``defaults``: what stands where it lacks a column or a text."""

    file: Path
    campaign: str
    columns: frozenset[str]
    rows: int
    hosts: Collection[str] | None = None

    @property
    def defaults(self) -> Mapping[str, str | int | bool]:
        return {**schema.DEFAULTS, "campaign": self.campaign}

    @property
    def lacking(self) -> list[str]:
        """The columns that the file lacks."""
        return [name for name in schema.NAMES if name not in self.columns]


def stored(file: Path, campaign: str, hosts: Collection[str] | None = None) -> Stored | None:
    """Return the measurements in ``file``; None if it does not exist.

    Raise FleetmarkError if the file is not a complete Parquet file, or lacks a required column.
    """
    if not file.exists():
        return None
    with _whole(file):
        about = footer(file)
        names = frozenset(about.schema.to_arrow_schema().names)
    if lacking := sorted(schema.NEEDED - names):
        raise FleetmarkError(f"{file}: lacks the columns {', '.join(lacking)}; {_MEND}")
    return Stored(file, campaign, names, about.num_rows, hosts)


@contextlib.contextmanager
def _whole(file: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise FleetmarkError(f"{file}: not a complete Parquet file ({first}); {_MEND}") from error


class Values:
    """``rows`` (columns of ``base.schema``; text may be categories), behind those of a ``file``. No frame is changed in
    place.
    """

    def __init__(self, rows: pd.DataFrame, file: Stored | None = None) -> None:
        if missing := [name for name in schema.NAMES if name not in rows.columns]:
            raise ValueError(f"measurements lack the columns {', '.join(missing)}")
        self._rows, self._file = rows, file
        self._distinct: dict[tuple[str, ...], pd.DataFrame] = {}
        self._kept: duckdb.DuckDBPyConnection | None = None

    def __len__(self) -> int:
        """How many; also those of other hosts in a file of which some hosts are named."""
        return len(self._rows) + (self._file.rows if self._file else 0)

    def with_rows(self, rows: pd.DataFrame) -> Values:
        """These, and ``rows`` in memory behind them."""
        return Values(stacked([self._rows, rows]), self._file) if len(rows) else self

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All of them, text as categories, which are held from then on."""
        return self._rows if self._file is None else stacked([_read(self._file), _coded(self._rows)])

    @contextlib.contextmanager
    def database(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A database in which ``every`` has all of them: the columns of ``base.schema``, and their place ``row``. That
        of few values stays open, with a copy of them: to open it takes longer than to ask it.

        Raises FleetmarkError where the file turns out to be damaged.
        """
        with self._checked():
            if len(self) > FEW:
                with connect() as con:
                    yield self._with_every(con, "view")
            else:
                self._kept = self._kept or self._with_every(connect(len(self)), "table")
                yield self._kept

    def _checked(self) -> contextlib.AbstractContextManager[None]:
        return _whole(self._file.file) if self._file else contextlib.nullcontext()

    def _with_every(self, con: duckdb.DuckDBPyConnection, kind: str) -> duckdb.DuckDBPyConnection:
        con.register("held", self._rows.assign(row=np.arange(len(self._rows)) + (len(self) - len(self._rows))))
        held = ", ".join(f'"{name}"::{_SQL[name]} as "{name}"' for name in schema.NAMES)
        scans = [f'select {held}, "row" from held']
        if self._file:
            scans.insert(0, _scan(self._file))
        con.execute(f"create temp {kind} every as {' union all '.join(scans)}")
        return con

    def distinct(self, *names: str, where: str = "true") -> pd.DataFrame:
        """The combinations of those columns, each once, in the order of the values."""
        if (*names, where) not in self._distinct:  # several parts of a report ask for the same
            columns = quoted(names)
            with self.database() as con:
                distinct = f"select {columns} from every where {where} group by {columns} order by min(row)"
                rows = con.execute(distinct).fetchall()
            columns_of = zip(names, zip(*rows, strict=True) if rows else repeat((), len(names)), strict=True)
            frame = {name: pd.Series(column, dtype=schema.PANDAS[name]) for name, column in columns_of}
            self._distinct[*names, where] = pd.DataFrame(frame)
        return self._distinct[*names, where]

    def where(self, condition: str) -> pd.DataFrame:
        """The values that meet a ``condition`` in SQL, in their order, text as categories."""
        with self.database() as con:
            return _frame(con, f"select {quoted(schema.NAMES)} from every where {condition} order by row", coded=True)

    def metrics(self, metrics: Mapping[str, Collection[str]], status: str = "") -> Iterator[pd.DataFrame]:
        """The values of some workloads' ``metrics``, and what else of these workloads ended in a ``status``; some hosts
        after the other."""
        of = [
            f"(workload = {literal(name)} and (metric in ({', '.join(map(literal, sorted(own)))}) "
            f"or status = {literal(status)}))"
            for name, own in metrics.items()
        ]
        for part in ranges(len(self), self.distinct("host")["host"].tolist(), "host"):
            yield self.where(f"({' or '.join(of)}) and {part}")

    def parts(self) -> Iterator[pd.DataFrame]:
        """All of them in their order, text as itself, some at a time."""
        if self._file is not None:
            with _whole(self._file.file), pq.ParquetFile(self._file.file) as parquet:
                present = [name for name in schema.NAMES if name in self._file.columns]
                for batch in parquet.iter_batches(_PART, columns=present):
                    yield _of_hosts(_complete(batch.to_pandas(), self._file), self._file.hosts)
        for first in range(0, len(self._rows), _PART):
            yield plain(self._rows.iloc[first : first + _PART])

    def host_by_host(self, hosts: Sequence[str], keys: pd.DataFrame, where: str) -> Iterator[pd.DataFrame]:
        """The values that meet a condition ``where``, some ``hosts`` after the other, all of a host in one part: their
        ``host`` and ``key`` by their places among ``hosts`` and the rows of ``keys``, ``repeat`` and ``value``."""
        at_once = max(1, _AT_ONCE * len(hosts) // max(1, len(self)))
        with self.database() as con:
            con.register("some_keys", keys.reset_index(drop=True).reset_index(names="key"))
            for first in range(0, len(hosts), at_once):
                mine = pd.DataFrame({"host": hosts[first : first + at_once]}).reset_index(names="place")
                con.register("some_hosts", mine.assign(place=mine["place"] + first))
                names, same = ", ".join(map(literal, mine["host"])), quoted(list(keys.columns))
                rows = f"select * from every where host in ({names}) and {where}"
                of_hosts = f"({rows}) v join some_hosts h on v.host = h.host join some_keys k using ({same})"
                yield _frame(con, f"select h.place as host, k.key, v.repeat, v.value from {of_hosts} order by row")


def _frame(con: duckdb.DuckDBPyConnection, statement: str, *, coded: bool = False) -> pd.DataFrame:
    """What a statement gives; text as itself, or as categories."""
    table: pa.Table = con.sql(statement).to_arrow_table()
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode().unify_dictionaries())
    frame: pd.DataFrame = table.to_pandas()
    return frame if coded else plain(frame)


_SQL = {c.name: {str: "varchar", int: "bigint", float: "double", bool: "boolean"}[c.type] for c in schema.COLUMNS}


def _scan(stored: Stored) -> str:
    """The rows of a file as SQL, with defaults where it lacks a column or a text."""
    picked = []
    for name in schema.NAMES:
        default = stored.defaults.get(name, "")
        if name not in stored.columns:
            picked.append(f'{literal(default)}::{_SQL[name]} as "{name}"')
        elif name in schema.TEXT:
            picked.append(f'coalesce("{name}", {literal(default)}) as "{name}"')
        else:
            picked.append(f'"{name}"')
    hosts = ""
    if stored.hosts is not None:
        hosts = f" where host in ({', '.join(map(literal, stored.hosts)) or 'null'})"
    rows = scanned([stored.file], "file_row_number")
    return f"select {', '.join(picked)}, file_row_number as row from {rows}{hosts}"


def _read(stored: Stored) -> pd.DataFrame:
    """All rows of a file, text as categories."""
    present = [name for name in schema.NAMES if name in stored.columns]
    with _whole(stored.file):
        with pq.ParquetFile(stored.file, read_dictionary=[n for n in present if n in schema.TEXT]) as parquet:
            # Column by column: what Arrow holds of one is several times what is kept of it.
            columns = {name: parquet.read(columns=[name]).unify_dictionaries().to_pandas()[name] for name in present}
        frame = pd.DataFrame(columns, copy=False)
    if stored.hosts is not None:
        chosen = [name in stored.hosts for name in frame["host"].cat.categories]
        if not all(chosen):
            frame = frame[np.array(chosen)[frame["host"].cat.codes]].reset_index(drop=True)
    return _complete(frame, stored)


def _complete(frame: pd.DataFrame, stored: Stored) -> pd.DataFrame:
    """``frame`` with the columns that its file lacks, and with texts that are missing."""
    for name in stored.lacking:
        default = stored.defaults[name]
        frame[name] = pd.Categorical([default] * len(frame)) if name in schema.TEXT else default
    for name in schema.TEXT:
        if frame[name].hasnans:
            column, empty = frame[name], stored.defaults.get(name, "")
            if isinstance(column.dtype, pd.CategoricalDtype) and empty not in column.cat.categories:
                column = column.cat.add_categories([empty])
            frame[name] = column.fillna(empty)
    return frame[list(schema.NAMES)]


def _of_hosts(frame: pd.DataFrame, hosts: Collection[str] | None) -> pd.DataFrame:
    return frame if hosts is None else frame[frame["host"].isin(list(hosts))]


def _coded(frame: pd.DataFrame) -> pd.DataFrame:
    texts: dict[str, Any] = dict.fromkeys(schema.TEXT, "category")
    return frame.astype(texts)
