"""Open campaigns and imports as tables of one database: ``host``, ``metric`` and ``value``.

A statement reads only the parts of files that it needs. Rows in memory follow the rows of files.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from fleetmark.record.values import footer
from fleetmark.record.values.database import FEW, connect
from fleetmark.record.values.engine import Engine, in_memory, literal, quoted

PASSED = f"status = '{Status.PASSED}' and isfinite(value)"  # in SQL: a value that counts
METRIC = (*schema.KEY, *schema.ABOUT, "members")  # the columns that describe a metric
_MEND = "`fleetmark parse` rebuilds it from raw files; for a table, import it again"
_AT_ONCE = 300_000  # number of values per batch
_PART = 20_000  # values per batch when all of their text is read
# Rows are divided into parts to bound memory: (target rows per part, maximum number of parts of that size).
_SIZES = ((500_000, 4), (2_500_000, 16))
_SQL = {c.name: {str: "varchar", int: "bigint", float: "double", bool: "boolean"}[c.type] for c in schema.COLUMNS}


class DamagedFileError(FleetmarkError):
    """Report that the measurements of one ``campaign`` cannot be read."""

    def __init__(self, campaign: str, problem: str) -> None:
        self.campaign = campaign
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Source:
    """Describe the measurements.parquet of a ``campaign``: its ``columns`` and its number of ``rows``.

    ``hosts``: the hosts to read, by recorded name, each with its new name. None reads all hosts under their recorded
    names.
    """

    file: Path
    campaign: str
    columns: frozenset[str]
    rows: int
    hosts: Mapping[str, str] | None = None

    @property
    def defaults(self) -> Mapping[str, str | int | bool]:
        """Return the values that fill missing columns and missing text."""
        return {**schema.DEFAULTS, "campaign": self.campaign}

    @property
    def lacking(self) -> list[str]:
        """Return the columns that the file lacks."""
        return [name for name in schema.NAMES if name not in self.columns]

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Convert the errors of file readers to DamagedFileError."""
        try:
            yield
        except (pa.ArrowException, duckdb.Error, OSError) as error:
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> DamagedFileError:
        """Return the error that names this file."""
        return DamagedFileError(
            self.campaign, f"{self.file}: not a complete Parquet file ({_first_line(error)}); {_MEND}"
        )


def source(file: Path, campaign: str, hosts: Mapping[str, str] | None = None) -> Source:
    """Return the measurements in ``file``.

    Raise DamagedFileError if the file is not a complete Parquet file, or lacks a required column.
    """
    opened = Source(file, campaign, frozenset(), 0, hosts)
    try:
        with opened.checked():
            metadata = footer.footer(file)
            columns = frozenset(metadata.schema.to_arrow_schema().names)
    except DamagedFileError:
        raise
    except FleetmarkError as error:
        raise DamagedFileError(campaign, str(error)) from error
    if lacking := sorted(schema.NEEDED - columns):
        raise DamagedFileError(campaign, f"{file}: lacks the columns {', '.join(lacking)}; {_MEND}")
    return Source(file, campaign, columns, metadata.num_rows, hosts)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


# --- tables ----------------------------------------------------------------------------------------------------------


def create_every(
    engine: Engine, sources: Sequence[Source], rows: pd.DataFrame | None = None, kind: str = "view"
) -> None:
    """Create the table or view ``every`` with all values of ``sources``, followed by ``rows``.

    Its columns are those of ``base.schema``, ``file`` (the number of the source), ``on_record`` (the host's name in the
    file) and ``row`` (the position among all values).
    """
    alike: dict[tuple[frozenset[str], bool, int], list[int]] = {}
    seen: Counter[Path] = Counter()  # a scan contains a file once, but several sides may use hosts from it
    for number, each in enumerate(sources):
        alike.setdefault((each.columns, each.hosts is None, seen[each.file]), []).append(number)
        seen[each.file] += 1
    first = np.cumsum([0, *(each.rows for each in sources)]).tolist()
    selects = [_scan(engine, sources, numbers, first) for numbers in alike.values()]
    if rows is not None and len(rows):
        engine.register("held", rows.assign(row=np.arange(len(rows)) + first[-1]))
        held = ", ".join(f'"{name}"::{_SQL[name]} as "{name}"' for name in schema.NAMES)
        selects.append(f'select {len(sources)} as file, {held}, "row", host as on_record from held')
    if not selects:
        nothing = ", ".join(f'null::{_SQL[name]} as "{name}"' for name in schema.NAMES)
        selects.append(f'select 0 as file, {nothing}, 0 as "row", null::varchar as on_record where false')
    engine.execute(f"create or replace temp {kind} every as {' union all '.join(selects)}")


def _scan(engine: Engine, sources: Sequence[Source], numbers: Sequence[int], first: Sequence[int]) -> str:
    """Select the rows of sources with the same columns; defaults fill missing columns and missing text."""
    rows, names = engine.scan([sources[n].file for n in numbers])

    def of_file(values: Iterable[str]) -> str:
        """Return an SQL expression for the value that belongs to a row's file."""
        listed = list(values)
        if len({*listed}) == 1:
            return listed[0]
        cases = " ".join(f"when {literal(name)} then {v}" for name, v in zip(names, listed, strict=True))
        return f"case filename {cases} end"

    picked = []
    for name in schema.NAMES:
        default = of_file(literal(sources[n].defaults.get(name, _EMPTY[_SQL[name]])) for n in numbers)
        if name not in sources[numbers[0]].columns:
            picked.append(f'{default}::{_SQL[name]} as "{name}"')
        elif name in METRIC or name in schema.TEXT:
            picked.append(f'coalesce("{name}", {default}) as "{name}"')
        else:
            picked.append(f'"{name}"')
    file = of_file(str(n) for n in numbers)
    place = of_file(str(first[n]) for n in numbers)
    scan = f'select {file}::int as file, {", ".join(picked)}, {engine.row} + {place} as "row" from {rows}'
    if sources[numbers[0]].hosts is None:
        return f"select *, host as on_record from ({scan})"
    return _called_in(engine, scan, {n: sources[n].hosts or {} for n in numbers})


def _called_in(engine: Engine, scan: str, names: Mapping[int, Mapping[str, str]]) -> str:
    """Return SQL that selects the named hosts of each file and renames them, also in the subjects of pairs."""
    table = f"names_{min(names)}_{len(names)}"
    listed = [(file, host, name) for file, of_file in names.items() for host, name in of_file.items()]
    engine.register(table, pd.DataFrame(listed, columns=["file", "host", "name"], dtype=object).astype({"file": int}))
    if all(host == name for _, host, name in listed):
        return f"select *, host as on_record from ({scan}) semi join {table} using (file, host)"
    pairs = engine.execute(f"select distinct file, subject from ({scan}) where contains(subject, '>')").df()
    pairs["called"] = [pair_called(s, names[n]) for n, s in zip(pairs["file"], pairs["subject"], strict=True)]
    engine.register(f"pairs_of_{table}", pairs.astype({"subject": object, "called": object}))
    return (
        f"select s.* replace (n.name as host, coalesce(p.called, s.subject) as subject), s.host as on_record "
        f"from ({scan}) s join {table} n on s.file = n.file and s.host = n.host "
        f"left join pairs_of_{table} p on s.file = p.file and s.subject = p.subject"
    )


def pair_called(subject: str, names: Mapping[str, str]) -> str:
    """Return the ``subject`` of a pair with both of its hosts renamed."""
    return ">".join(names.get(end, end) for end in subject.split(">"))


def called(measurements: pd.DataFrame, names: Mapping[str, str] | None) -> pd.DataFrame:
    """Return the measurements of only the hosts in ``names``, renamed. None returns all measurements unchanged."""
    if names is None:
        return measurements
    kept = measurements[measurements["host"].isin(list(names))]
    if all(old == new for old, new in names.items()):
        return kept
    host = kept["host"].astype("category").cat.remove_unused_categories()
    subject = kept["subject"].astype("category").cat.remove_unused_categories()
    pairs = [pair_called(s, names) if ">" in s else s for s in subject.cat.categories]
    return kept.assign(
        host=host.cat.rename_categories([names[h] for h in host.cat.categories]),
        subject=subject.cat.rename_categories(pairs),
    )


_EMPTY: Mapping[str, str | int | bool] = {"varchar": "", "bigint": 0, "double": 0, "boolean": False}


def described(engine: Engine, where: str) -> pd.DataFrame:
    """Return the distinct METRIC columns of the values that meet the SQL condition ``where``."""
    frame: pd.DataFrame = engine.execute(f"select distinct {quoted(METRIC)} from every where {where}").df()
    return frame


def create_tables(engine: Engine, hosts: pd.DataFrame, metrics: pd.DataFrame, where: str) -> None:
    """Create ``host``, ``metric`` and ``value`` from ``every``.

    ``hosts``: a row per ``file`` and ``host`` with its ``id``; other hosts are not read. ``metrics``: the rows of
    ``described`` with an ``id`` (negative: not read), the ``rule``, and ``least``, the smallest value that is scored.
    ``value`` has ``host_id``, ``metric_id``, ``rule``, ``scored``, and ``value``, which is NULL if it is not scored.
    """
    differing = [name for name in METRIC if metrics[name].nunique() > 1] or METRIC[:1]
    engine.register("metric_frame", metrics.loc[metrics["id"] >= 0, [*METRIC, "id", "rule", "least"]])
    columns = ", ".join(f'"{name}"::{_SQL[name]} as "{name}"' for name in METRIC)
    engine.execute(
        f"create or replace temp table metric as select {columns}, id::int as id, rule::varchar as rule, "
        "least::double as least from metric_frame"
    )
    engine.register("host_frame", hosts[["file", "host", "id"]])
    engine.execute(
        "create or replace temp table host as "
        "select file::int as file, host::varchar as host, id::int as id from host_frame"
    )
    same = " and ".join(f'v."{name}" = m."{name}"' for name in differing)
    scored = f"coalesce(v.status = '{Status.PASSED}' and v.value >= m.least and isfinite(v.value), false)"
    engine.execute(
        "create or replace temp view value as "
        f"select h.id as host_id, m.id as metric_id, m.rule, v.on_record, v.status, {scored} as scored, "
        f"case when {scored} then v.value end as value, v.repeat, v.time, v.tool_version, v.raw "
        f"from (select * from every where {where}) v join metric m on {same} "
        "join host h on v.file = h.file and v.host = h.host"
    )


def ranges(rows: int, hosts: Sequence[str], sizes: Sequence[tuple[int, int]] | None = None) -> list[str]:
    """Return conditions on ``on_record`` that divide ``rows`` of ``hosts`` into parts that fit into memory.

    Each part is a range of host names, so that DuckDB skips row groups whose statistics exclude it.
    """
    names = sorted({*hosts}, key=str.encode)  # as DuckDB orders them
    parts = min(len(names), max(min(-(-rows // size), most) for size, most in sizes or _SIZES))
    if parts <= 1:
        return ["true"]
    starts = [names[n * len(names) // parts] for n in range(parts)]
    ends = [f" and on_record < {literal(end)}" for end in starts[1:]]
    return [f"on_record >= {literal(start)}{end}" for start, end in zip(starts, [*ends, ""], strict=True)]


# --- values ----------------------------------------------------------------------------------------------------------


class Values:
    """Read the values of ``sources``, followed by ``rows`` (columns of ``base.schema``; text may be categories).

    No frame is changed in place.
    """

    def __init__(self, rows: pd.DataFrame, *sources: Source) -> None:
        if missing := [name for name in schema.NAMES if name not in rows.columns]:
            raise ValueError(f"measurements lack the columns {', '.join(missing)}")
        self._rows, self.sources = rows, sources
        self._distinct: dict[tuple[str, ...], pd.DataFrame] = {}
        self._kept: duckdb.DuckDBPyConnection | None = None

    def __len__(self) -> int:
        """Return the number of values, including those of hosts that are not selected from a file."""
        return len(self._rows) + sum(each.rows for each in self.sources)

    def under_names(self, names: Mapping[str, str]) -> Values:
        """Return the values of only the hosts in ``names``, renamed."""
        return Values(called(self._rows, names), *(replace(each, hosts=names) for each in self.sources))

    @staticmethod
    def together(parts: Sequence[Values]) -> Values:
        """Return the values of all ``parts``."""
        rows = [part._rows for part in parts]
        return Values(stacked(rows) if rows else schema.frame(), *(each for part in parts for each in part.sources))

    def with_rows(self, rows: pd.DataFrame) -> Values:
        """Return these values, followed by ``rows``."""
        return Values(stacked([self._rows, rows]), *self.sources) if len(rows) else self

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return all values as a frame with text as categories. The frame is cached."""
        return stacked([*map(_read, self.sources), _coded(self._rows)]) if self.sources else self._rows

    @contextlib.contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a database in which ``every`` contains all values.

        With few values, the database stays open and has a copy of them, because opening takes longer than a query.
        Raise DamagedFileError if a file turns out to be damaged.
        """
        with self._checked():
            if len(self) > FEW:
                with connect() as con:
                    create_every(in_memory(con), self.sources, self._rows)
                    yield con
            else:
                if self._kept is None:
                    self._kept = connect(len(self))
                    create_every(in_memory(self._kept), self.sources, self._rows, "table")
                yield self._kept

    @contextlib.contextmanager
    def opened_in(self, engine: Engine) -> Iterator[None]:
        """Create ``every`` in the database of ``engine``. Raise DamagedFileError if a file is damaged."""
        with self._checked():
            create_every(engine, self.sources, self._rows)
            yield

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise self._damage(error) from error

    def _damage(self, error: duckdb.Error) -> FleetmarkError:
        """Find the damaged file, since DuckDB does not always name it."""
        if len(self.sources) == 1:
            return self.sources[0].damaged(error)
        for each in self.sources:
            try:
                with connect() as con:
                    create_every(in_memory(con), [each])
                    con.execute(f"select {', '.join(f'max({quoted([name])})' for name in schema.NAMES)} from every")
            except duckdb.Error as own:
                return each.damaged(own)
        return FleetmarkError(f"the record cannot be read: {_first_line(error)}")

    def distinct(self, *names: str, where: str = "true") -> pd.DataFrame:
        """Return the distinct combinations of the columns ``names``, in the order of the values."""
        if (*names, where) not in self._distinct:  # several parts of a report request the same
            columns = quoted(names)
            with self.opened() as database:
                distinct = f"select {columns} from every where {where} group by {columns} order by min(row)"
                rows = database.execute(distinct).fetchall()
            columns_of = zip(names, zip(*rows, strict=True) if rows else repeat((), len(names)), strict=True)
            frame = {name: pd.Series(column, dtype=schema.PANDAS[name]) for name, column in columns_of}
            self._distinct[*names, where] = pd.DataFrame(frame)
        return self._distinct[*names, where]

    def hosts_on_record(self) -> list[str]:
        """Return the names that the hosts have in their files."""
        with self.opened() as database:
            return [str(name) for (name,) in database.execute("select distinct on_record from every").fetchall()]

    def where(self, condition: str) -> pd.DataFrame:
        """Return the values that meet an SQL ``condition``, in order, with text as categories."""
        with self.opened() as database:
            rows = database.sql(f"select {quoted(schema.NAMES)} from every where {condition} order by row")
            return _coded_frame(rows.to_arrow_table())

    def metrics(self, metrics: Mapping[str, Collection[str]], status: str = "") -> Iterator[pd.DataFrame]:
        """Yield the values of some ``metrics`` by workload, and all values of these workloads with the ``status``.

        Each frame contains the values of some of the hosts.
        """
        of = [
            f"(workload = {literal(name)} and (metric in ({', '.join(map(literal, sorted(own)))}) "
            f"or status = {literal(status)}))"
            for name, own in metrics.items()
        ]
        for part in ranges(len(self), self.hosts_on_record()):
            yield self.where(f"({' or '.join(of)}) and {part}")

    def parts(self) -> Iterator[pd.DataFrame]:
        """Yield all values in order, in batches, with text as plain strings."""
        for each in self.sources:
            with each.checked(), pq.ParquetFile(each.file) as parquet:
                present = [name for name in schema.NAMES if name in each.columns]
                for batch in parquet.iter_batches(_PART, columns=present):
                    yield plain(called(_complete(batch.to_pandas(), each), each.hosts))
        for first in range(0, len(self._rows), _PART):
            yield plain(self._rows.iloc[first : first + _PART])

    def host_by_host(self, hosts: Sequence[str], keys: pd.DataFrame, where: str) -> Iterator[pd.DataFrame]:
        """Yield the values that meet the SQL condition ``where``, in parts that contain all values of some ``hosts``.

        The columns are ``host`` and ``key`` (positions in ``hosts`` and ``keys``), ``repeat`` and ``value``.
        """
        at_once = max(1, _AT_ONCE * len(hosts) // max(1, len(self)))
        with self.opened() as database:
            database.register("some_keys", keys.reset_index(drop=True).reset_index(names="key"))
            for first in range(0, len(hosts), at_once):
                mine = pd.DataFrame({"host": hosts[first : first + at_once]}).reset_index(names="place")
                database.register("some_hosts", mine.assign(place=mine["place"] + first))
                names, same = ", ".join(map(literal, mine["host"])), quoted(list(keys.columns))
                rows = f"select * from every where host in ({names}) and {where}"
                of_hosts = f"({rows}) v join some_hosts h on v.host = h.host join some_keys k using ({same})"
                yield database.execute(
                    f"select h.place as host, k.key, v.repeat, v.value from {of_hosts} order by row"
                ).df()


def _coded_frame(table: pa.Table) -> pd.DataFrame:
    """Return ``table`` as a frame with text as categories."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode().unify_dictionaries())
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _read(source: Source) -> pd.DataFrame:
    """Return all rows of a file with text as categories."""
    present = [name for name in schema.NAMES if name in source.columns]
    with source.checked():
        with pq.ParquetFile(source.file, read_dictionary=[n for n in present if n in schema.TEXT]) as parquet:
            # Read column by column: Arrow needs several times the memory of the result.
            columns = {name: parquet.read(columns=[name]).unify_dictionaries().to_pandas()[name] for name in present}
        frame = pd.DataFrame(columns, copy=False)
    return called(_complete(frame, source), source.hosts).reset_index(drop=True)


def _complete(frame: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Fill in the columns and texts that are missing in ``frame`` with their defaults."""
    for name in source.lacking:
        default = source.defaults[name]
        frame[name] = pd.Categorical([default] * len(frame)) if name in schema.TEXT else default
    for name in schema.TEXT:
        if frame[name].hasnans:
            column, empty = frame[name], source.defaults.get(name, "")
            if isinstance(column.dtype, pd.CategoricalDtype) and empty not in column.cat.categories:
                column = column.cat.add_categories([empty])
            frame[name] = column.fillna(empty)
    return frame[list(schema.NAMES)]


def _coded(frame: pd.DataFrame) -> pd.DataFrame:
    texts: dict[str, Any] = dict.fromkeys(schema.TEXT, "category")
    return frame.astype(texts)
