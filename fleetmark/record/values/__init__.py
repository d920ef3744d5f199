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

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind, Status
from fleetmark.record.values import footer, named
from fleetmark.record.values.database import FEW, connect
from fleetmark.record.values.engine import Engine, in_memory, literal, one_of, quoted

# The SQL condition for a value that counts. A logarithm needs a value above zero. A guardrail may be zero, because zero
# loss is the best possible value. A metric without a kind is descriptive.
PASSED = (
    f"status = '{Status.PASSED}' and isfinite(value) and "
    f"(value > 0 or kind = '' or kind = '{Kind.GUARDRAIL}' and value = 0)"
)
# The SQL condition for a value that passed, but does not count.
REJECTED = f"status = '{Status.PASSED}' and value <= 0 and kind <> '' and (kind <> '{Kind.GUARDRAIL}' or value < 0)"
METRIC = (*schema.KEY, *schema.ABOUT, "members")  # the columns that describe a metric
_MEND = "`fleetmark rebuild` rebuilds it from raw files; for a table, import it again"
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


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Source:
    """Measurements of a ``campaign``: those in a Parquet ``file``, or those in a ``frame``.

    ``columns``: the columns that are present; ``rows``: the number of values; ``hosts``: the hosts to read, by recorded
    name, each with its new name. None reads all hosts under their recorded names.
    """

    campaign: str
    columns: frozenset[str]
    rows: int
    file: Path | None = None
    frame: pd.DataFrame | None = None
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
        """Convert errors raised by file readers to DamagedFileError."""
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
    opened = Source(campaign=campaign, columns=frozenset(), rows=0, file=file, hosts=hosts)
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
    return replace(opened, columns=columns, rows=metadata.num_rows)


def _held(rows: pd.DataFrame) -> Source:
    """Return the measurements in a frame."""
    if missing := [name for name in schema.NAMES if name not in rows.columns]:
        raise ValueError(f"measurements lack the columns {', '.join(missing)}")
    return Source(campaign="", columns=frozenset(schema.NAMES), rows=len(rows), frame=rows)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


# --- tables ----------------------------------------------------------------------------------------------------------


def create_every(engine: Engine, sources: Sequence[Source], kind: str = "view") -> None:
    """Create the table or view ``every`` with all values of ``sources``.

    Its columns are those of ``base.schema``, ``file`` (the number of the source), ``on_record`` (the recorded name of
    the host) and ``row`` (the position among all values).
    """
    alike: dict[tuple[frozenset[str], bool, int], list[int]] = {}
    seen: Counter[Path] = Counter()  # a scan contains a file once, but several sides may use hosts from it
    for number, each in enumerate(sources):
        if each.file is not None:
            alike.setdefault((each.columns, each.hosts is None, seen[each.file]), []).append(number)
            seen[each.file] += 1
    first = np.cumsum([0, *(each.rows for each in sources)]).tolist()
    selects = [_scan(engine, sources, numbers, first) for numbers in alike.values()]
    selects += [_frame(engine, each, n, first[n]) for n, each in enumerate(sources) if each.frame is not None]
    if not selects:
        nothing = ", ".join(f'null::{_SQL[name]} as "{name}"' for name in schema.NAMES)
        selects.append(f'select 0 as file, {nothing}, 0 as "row", null::varchar as on_record where false')
    engine.execute(f"create or replace temp {kind} every as {' union all '.join(selects)}")


def _frame(engine: Engine, source: Source, number: int, first: int) -> str:
    """Select the rows of a source in memory. Its first row has the position ``first``."""
    assert source.frame is not None
    engine.register(f"held_{number}", source.frame.assign(row=np.arange(source.rows) + first))
    columns = ", ".join(f'"{name}"::{_SQL[name]} as "{name}"' for name in schema.NAMES)
    return _named(engine, f'select {number} as file, {columns}, "row" from held_{number}', {number: source.hosts})


def _scan(engine: Engine, sources: Sequence[Source], numbers: Sequence[int], first: Sequence[int]) -> str:
    """Select the rows of files with the same columns; defaults fill missing columns and missing text."""
    rows, names = engine.scan([source.file for n in numbers if (source := sources[n]).file])

    def by_file(values: Iterable[str]) -> str:
        """Return an SQL expression for the value that belongs to a row's file."""
        listed = list(values)
        if len({*listed}) == 1:
            return listed[0]
        cases = " ".join(f"when {literal(name)} then {v}" for name, v in zip(names, listed, strict=True))
        return f"case filename {cases} end"

    picked = []
    for name in schema.NAMES:
        default = by_file(literal(sources[n].defaults.get(name, _EMPTY[_SQL[name]])) for n in numbers)
        if name not in sources[numbers[0]].columns:
            picked.append(f'{default}::{_SQL[name]} as "{name}"')
        elif name in METRIC or name in schema.TEXT:
            picked.append(f'coalesce("{name}", {default}) as "{name}"')
        else:
            picked.append(f'"{name}"')
    file = by_file(str(n) for n in numbers)
    place = by_file(str(first[n]) for n in numbers)
    scan = f'select {file}::int as file, {", ".join(picked)}, {engine.row} + {place} as "row" from {rows}'
    return _named(engine, scan, {n: sources[n].hosts for n in numbers})


def _named(engine: Engine, scan: str, hosts: Mapping[int, Mapping[str, str] | None]) -> str:
    """Return SQL that selects the hosts of each source and renames them, also in the subjects of pairs.

    ``hosts`` maps recorded names to new names for each source; None selects all hosts of all sources.
    """
    table = f"names_{min(hosts)}_{len(hosts)}"
    listed = [(file, host, name) for file, names in hosts.items() for host, name in (names or {}).items()]
    if None in hosts.values():
        return f"select *, host as on_record from ({scan})"
    engine.register(table, pd.DataFrame(listed, columns=["file", "host", "name"], dtype=object).astype({"file": int}))
    if all(host == name for _, host, name in listed):
        return f"select *, host as on_record from ({scan}) semi join {table} using (file, host)"
    pairs = engine.execute(f"select distinct file, subject from ({scan}) where contains(subject, '>')").df()
    pairs["name"] = [_pair(s, hosts[n] or {}) for n, s in zip(pairs["file"], pairs["subject"], strict=True)]
    engine.register(f"pairs_{table}", pairs.astype({"subject": object, "name": object}))
    return (
        f"select s.* replace (n.name as host, coalesce(p.name, s.subject) as subject), s.host as on_record "
        f"from ({scan}) s join {table} n on s.file = n.file and s.host = n.host "
        f"left join pairs_{table} p on s.file = p.file and s.subject = p.subject"
    )


def _pair(subject: str, names: Mapping[str, str]) -> str:
    """Return the ``subject`` of a pair with both of its hosts renamed."""
    return ">".join(names.get(end, end) for end in subject.split(">"))


_EMPTY: Mapping[str, str | int | bool] = {"varchar": "", "bigint": 0, "double": 0, "boolean": False}


def described(engine: Engine, condition: str) -> pd.DataFrame:
    """Return the distinct METRIC columns of the values that meet the SQL ``condition``."""
    frame: pd.DataFrame = engine.execute(f"select distinct {quoted(METRIC)} from every where {condition}").df()
    return frame


def create_tables(engine: Engine, hosts: pd.DataFrame, metrics: pd.DataFrame, condition: str) -> None:
    """Create ``host``, ``metric`` and ``value`` from ``every``.

    ``hosts``: a row per ``file`` and ``host`` with its ``id``, and optional columns of text; other hosts are not read.
    ``metrics``: the rows of ``described``, plus an ``id`` (negative: not read), the ``rule``, and ``lowest``, the
    smallest value that is scored. ``value`` has ``host_id``, ``metric_id``, ``rule``, ``scored``, and ``value``, which
    is NULL if it is not scored.
    """
    differing = [name for name in METRIC if metrics[name].nunique() > 1] or METRIC[:1]
    engine.register("metric_frame", metrics.loc[metrics["id"] >= 0, [*METRIC, "id", "rule", "lowest"]])
    columns = ", ".join(f'"{name}"::{_SQL[name]} as "{name}"' for name in METRIC)
    engine.execute(
        f"create or replace temp table metric as select {columns}, id::int as id, rule::varchar as rule, "
        "lowest::double as lowest from metric_frame"
    )
    engine.register("host_frame", hosts)
    further = "".join(f', "{name}"::varchar as "{name}"' for name in hosts if name not in ("file", "host", "id"))
    engine.execute(
        "create or replace temp table host as "
        f"select file::int as file, host::varchar as host, id::int as id{further} from host_frame"
    )
    equality = " and ".join(f'v."{name}" = m."{name}"' for name in differing)
    scored = f"coalesce(v.status = '{Status.PASSED}' and v.value >= m.lowest and isfinite(v.value), false)"
    engine.execute(
        "create or replace temp view value as "
        f"select h.id as host_id, m.id as metric_id, m.rule, v.on_record, v.status, {scored} as scored, "
        f"case when {scored} then v.value end as value, v.repeat, v.time, v.tool_version, v.raw "
        f"from (select * from every where {condition}) v join metric m on {equality} "
        "join host h on v.file = h.file and v.host = h.host"
    )


def ranges(rows: int, hosts: Sequence[str], sizes: Sequence[tuple[int, int]] | None = None) -> list[str]:
    """Return conditions on ``on_record`` that divide ``rows`` of ``hosts`` into parts that fit into memory.

    Each part is a range of host names, so that DuckDB skips row groups whose statistics exclude it.
    """
    names = sorted({*hosts}, key=str.encode)  # as DuckDB orders them
    parts = min(len(names), max(min(-(-rows // size), limit) for size, limit in sizes or _SIZES))
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
        held = _held(rows)
        self.sources = (*sources, held) if held.rows else sources
        self._distinct: dict[tuple[str, ...], pd.DataFrame] = {}
        self._database: duckdb.DuckDBPyConnection | None = None

    def __len__(self) -> int:
        """Return the number of values in the files, including those of hosts that are not selected."""
        return sum(each.rows for each in self.sources)

    def under_names(self, names: Mapping[str, str]) -> Values:
        """Return the values of only the hosts in ``names``, renamed."""
        return Values(schema.frame(), *(replace(each, hosts=names) for each in self.sources))

    @staticmethod
    def together(parts: Sequence[Values]) -> Values:
        """Return the values of all ``parts``."""
        return Values(schema.frame(), *(each for part in parts for each in part.sources))

    def with_rows(self, rows: pd.DataFrame) -> Values:
        """Return these values, followed by ``rows``."""
        return Values(rows, *self.sources)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return all values as a frame with the types of ``base.schema``. The frame is cached."""
        return self.select("true").astype(schema.PANDAS)

    @contextlib.contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a database in which ``every`` contains all values.

        With few values, the database stays open and has a copy of them, because opening takes longer than a query.
        Raise DamagedFileError if a file turns out to be damaged.
        """
        with self._checked():
            if len(self) > FEW:
                with connect() as con:
                    create_every(in_memory(con), self.sources)
                    yield con
            else:
                if self._database is None:
                    self._database = connect(len(self))
                    create_every(in_memory(self._database), self.sources, "table")
                yield self._database

    @contextlib.contextmanager
    def queried(self) -> Iterator[Engine]:
        """Open the engine that the environment selects, in which ``every`` contains all values."""
        if named.is_local():
            with self.opened() as database:
                yield in_memory(database)
        else:
            with named.engine() as engine, self.opened_in(engine):
                yield engine

    @contextlib.contextmanager
    def opened_in(self, engine: Engine) -> Iterator[None]:
        """Create ``every`` in the database of ``engine``. Raise DamagedFileError if a file is damaged."""
        with self._checked():
            create_every(engine, self.sources)
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
            except duckdb.Error as first:
                return each.damaged(first)
        return FleetmarkError(f"the record cannot be read: {_first_line(error)}")

    def distinct(self, *names: str, condition: str = "true") -> pd.DataFrame:
        """Return the distinct combinations of the columns ``names``, in the order of the values."""
        if (*names, condition) not in self._distinct:  # several parts of a report request the same
            columns = quoted(names)
            with self.opened() as database:
                distinct = f"select {columns} from every where {condition} group by {columns} order by min(row)"
                rows = database.execute(distinct).fetchall()
            columns_of = zip(names, zip(*rows, strict=True) if rows else repeat((), len(names)), strict=True)
            frame = {name: pd.Series(column, dtype=schema.PANDAS[name]) for name, column in columns_of}
            self._distinct[*names, condition] = pd.DataFrame(frame)
        return self._distinct[*names, condition]

    def hosts_on_record(self) -> list[str]:
        """Return the names that the hosts have in their files."""
        with self.opened() as database:
            return [str(name) for (name,) in database.execute("select distinct on_record from every").fetchall()]

    def select(self, condition: str) -> pd.DataFrame:
        """Return the values that meet an SQL ``condition``, in order, with text as categories."""
        return _coded_frame(self.table(condition))

    def table(self, condition: str) -> pa.Table:
        """Return the values that meet an SQL ``condition``, in order, as an Arrow table."""
        with self.opened() as database:
            rows = database.sql(f"select {quoted(schema.NAMES)} from every where {condition} order by row")
            return rows.to_arrow_table()

    def metrics(self, metrics: Mapping[str, Collection[str]], status: str = "") -> Iterator[pd.DataFrame]:
        """Yield the values of some ``metrics`` by workload, and all values of these workloads with the ``status``.

        Each frame contains the values of some of the hosts.
        """
        conditions = [
            f"(workload = {literal(workload)} and ({one_of('metric', sorted(names))} or status = {literal(status)}))"
            for workload, names in metrics.items()
        ]
        for part in ranges(len(self), self.hosts_on_record()):
            yield self.select(f"({' or '.join(conditions)}) and {part}")

    def parts(self) -> Iterator[pd.DataFrame]:
        """Yield all values in order, in batches, with text as plain strings."""
        with self._checked(), connect() as con:
            con.execute("set preserve_insertion_order = true")  # scans keep their order; joins do not
            create_every(in_memory(con), self.sources)
            order = "" if all(each.hosts is None for each in self.sources) else " order by row"
            for batch in con.sql(f"select {quoted(schema.NAMES)} from every{order}").to_arrow_reader(_PART):
                yield batch.to_pandas()

    def host_by_host(self, hosts: Sequence[str], keys: pd.DataFrame, condition: str) -> Iterator[pd.DataFrame]:
        """Yield the values that meet the SQL ``condition``, in parts that contain all values of some ``hosts``.

        The columns are ``host`` and ``key`` (positions in ``hosts`` and ``keys``), ``repeat`` and ``value``.
        """
        at_once = max(1, _AT_ONCE * len(hosts) // max(1, len(self)))
        with self.opened() as database:
            database.register("some_keys", keys.reset_index(drop=True).reset_index(names="key"))
            for first in range(0, len(hosts), at_once):
                mine = pd.DataFrame({"host": hosts[first : first + at_once]}).reset_index(names="place")
                database.register("some_hosts", mine.assign(place=mine["place"] + first))
                rows = f"select * from every where {one_of('host', mine['host'])} and {condition}"
                keyed = f"join some_hosts h on v.host = h.host join some_keys k using ({quoted(list(keys.columns))})"
                yield database.execute(
                    f"select h.place as host, k.key, v.repeat, v.value from ({rows}) v {keyed} order by row"
                ).df()


def _coded_frame(table: pa.Table) -> pd.DataFrame:
    """Return ``table`` as a frame with text as categories."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, table.column(place).dictionary_encode().unify_dictionaries())
    frame: pd.DataFrame = table.to_pandas()
    return frame
