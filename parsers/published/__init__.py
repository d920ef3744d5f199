"""Published tables to rows: MLCommons', SPEC's, Spare Cores', and tidy tables of the user's own.

``mlperf``, ``spec``, ``sparecores`` and ``table`` each offer ``read(raw, name) -> Table``, a pure function of a file's
bytes; ``name`` is the file's, for what only it says. They raise FleetmarkError, without the file's name, for what is no
such table.
Each says which labels of its machines a reader must know where two sides differ in them (``TRAITS``), and which name a
machine's model, the first of them that it has (``MODEL``); which say what kind of machine a selector means (``KIND``),
and how many of it a machine has (``COUNTS``: label to the kind it counts); which must be one over a side, and what they
are about (``UNIFORM``); and who published a row (``PUBLISHER``): rows of one publisher are not independent.

``SIZES``: labels that say how large a
machine is, and of what they count (sockets, cores, devices).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind, Measurement, Standing
from parsers.kit.text import decode, number

_LARGEST = 1 << 30  # bytes, unpacked
_LARGEST_FIGURE = 1e290  # any unit's factor leaves it finite
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013", "-"))

Cells = Mapping[str, Any]
ZERO = "zero"  # why such a figure is left out


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one machine. ``place`` says where in the file it stands, ``version`` which release or round of the
    benchmark it is of; ``invalid`` why it is not to be compared. ``kind``: None where the file does not declare it.
    """

    machine: str
    measurement: Measurement
    class_: str
    kind: Kind | None
    place: str
    repeat: int = 0
    headline: bool = True
    standing: Standing | None = None
    version: str = ""
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """What a file says. ``machines``: name to the labels it can be chosen by. ``read``: how many rows the file has;
    ``left_out``: why some gave no figure, and how many.
    """

    machines: Mapping[str, Mapping[str, str]]
    rows: Sequence[Row]
    read: int
    left_out: Mapping[str, int]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """A file as rows of cells, each with its place (``line 7``); ``form`` is CSV, JSON, JSON lines or Parquet."""

    form: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Cells]]


class Collector:
    """Machines and their figures while a table is read.

    A machine is its name and what else tells it from others (``identity``), which is added to the name only where two
    of the same name differ in it. A label that has several values over a machine's rows has them all: ``fp16+fp8``.
    """

    def __init__(self) -> None:
        self._machines: dict[tuple[str, tuple[str, ...]], tuple[Mapping[str, str], dict[str, set[str]]]] = {}
        self._rows: list[tuple[tuple[str, tuple[str, ...]], Row]] = []
        self._repeats: Counter[tuple[Any, ...]] = Counter()
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []

    def leave(self, why: str, count: int = 1) -> None:
        self.left_out[why] += count

    def add(self, name: str, identity: Mapping[str, str], labels: Mapping[str, str | Iterable[str]], row: Row) -> None:
        """Add ``row`` to the machine ``name`` and number it among that machine's repeats."""
        key = (name, tuple(identity.values()))
        if key not in self._machines:
            self._machines[key] = (identity, {})
        labels_of_machine = self._machines[key][1]
        for label, value in labels.items():
            labels_of_machine.setdefault(label, set()).update(
                filter(None, [value] if isinstance(value, str) else value)
            )
        m = row.measurement
        point = (key, m.workload, m.case, m.metric, tuple(sorted(m.labels.items())))
        self._rows.append((key, replace(row, repeat=self._repeats[point])))
        self._repeats[point] += 1

    def table(self, read: int) -> Table:
        """The table. Raises FleetmarkError where no row gave a figure."""
        if not self._rows:
            why = "; ".join(f"{reason} ({n})" for reason, n in self.left_out.most_common(4))
            raise FleetmarkError(f"none of its {read} rows has a figure to import" + (f": {why}" if why else ""))
        names = self._names()
        machines = {
            names[key]: {label: "+".join(sorted(values)) for label, values in labels.items() if values}
            for key, (_, labels) in self._machines.items()
        }
        rows = [replace(row, machine=names[key]) for key, row in self._rows]
        if several := sum(n > 1 for n in self._repeats.values()):
            what = "benchmark of a machine has" if several == 1 else "benchmarks of a machine have"
            self.notes.append(f"{several:,} {what} several results, which count as repeats")
        return Table(machines, rows, read, dict(self.left_out), tuple(self.notes))

    def _names(self) -> dict[tuple[str, tuple[str, ...]], str]:
        alike: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for key in self._machines:
            alike.setdefault(key[0], []).append(key)
        names = {}
        for name, keys in alike.items():
            differs = [i for i, values in enumerate(zip(*(k[1] for k in keys), strict=True)) if len(set(values)) > 1]
            for key in keys:
                differences = [f"{label}={key[1][i]}" for i, label in enumerate(self._machines[key][0]) if i in differs]
                names[key] = " ".join([name, *differences])
        return names


def words(value: object) -> str:
    """A cell as text on one line: empty for none, ``true`` and ``false``, whole numbers without a point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    return " ".join(str(value).translate(_DASHES).split())


def figure(value: object) -> tuple[float, str]:
    """A cell as a number above zero, or 0 and the reason why it is not one."""
    if not words(value):
        return 0.0, "no value"
    result = number(value)
    if result is None or result > _LARGEST_FIGURE:
        return 0.0, "not a number"
    return (result, "") if result > 0 else (0.0, ZERO if result == 0 else "negative")


def some(names: Iterable[str], most: int = 8) -> str:
    """The first names of a list, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def unpacked(raw: bytes) -> bytes:
    """``raw`` without gzip around it. Raises FleetmarkError where it is empty, damaged or far too large."""
    if raw.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
                raw = file.read(_LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise FleetmarkError(f"gzip data that is damaged or not whole ({error}); fetch the file again") from error
    if len(raw) > _LARGEST:
        raise FleetmarkError(f"larger than {_LARGEST >> 30} GiB unpacked; import it in parts")
    if not raw.strip():
        raise FleetmarkError("empty; there is nothing to import")
    return raw


def records(raw: bytes) -> Records:
    """The rows of a CSV, JSON, JSON-lines or Parquet file, packed with gzip or not.

    Raises FleetmarkError where it is damaged, or has no rows.
    """
    raw = unpacked(raw)
    if raw.startswith(b"PK\x03\x04"):
        raise FleetmarkError("an archive or a workbook, not a table; save its sheet as CSV, or unpack it")
    if raw.startswith(b"PAR1"):
        result = _parquet(raw)
    else:
        text = decode(raw)
        start = text.lstrip()[:1]
        result = _json(text) if start == "[" else _json_lines(text) if start == "{" else _csv(text)
    if not result.rows:
        raise FleetmarkError(f"{result.form} with no rows: columns are {some(result.columns) or 'none'}")
    return result


def _parquet(raw: bytes) -> Records:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(raw))
        rows = [(f"row {n}", {k: _plain(v) for k, v in row.items()}) for n, row in enumerate(table.to_pylist(), 1)]
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise FleetmarkError(f"Parquet that is damaged or not whole ({reason}); fetch the file again") from error
    return Records("Parquet", list(table.column_names), rows)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _json(text: str) -> Records:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FleetmarkError(f"JSON that is damaged or not whole ({error}); fetch the file again") from error
    return _objects("JSON", [(f"row {n}", value) for n, value in enumerate(listed, 1)])


def _json_lines(text: str) -> Records:
    values = []
    for n, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append((f"line {n}", json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise FleetmarkError(
                    f"line {n} is no JSON object ({error}); a table in JSON is a list of objects, or an object a line"
                ) from error
    return _objects("JSON lines", values)


def _objects(form: str, listed: Sequence[tuple[str, Any]]) -> Records:
    for place, value in listed:
        if not isinstance(value, dict):
            raise FleetmarkError(f"{place} is no JSON object but {type(value).__name__}: a row is an object of columns")
    return Records(form, list(dict.fromkeys(key for _, value in listed for key in value)), listed)


def _csv(text: str) -> Records:
    top = next((line for line in text.split("\n") if line.strip()), "")
    delimiter = max(",;\t", key=top.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: list[str] = []
    rows: list[tuple[str, Cells]] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = [words(c) for c in cells]
                _no_twins(columns)
                continue
            extra = cells[len(columns) :]
            if len(cells) < len(columns) or any(c.strip() for c in extra):
                raise FleetmarkError(
                    f"line {reader.line_num} has {len(cells)} cells where the header has {len(columns)}; "
                    "is the file whole?"
                )
            rows.append((f"line {reader.line_num}", dict(zip(columns, cells, strict=False))))
    except csv.Error as error:
        raise FleetmarkError(f"line {reader.line_num} is no CSV ({error}); is the file whole?") from error
    return Records("CSV", [c for c in columns if c], rows)


def _no_twins(columns: Sequence[str]) -> None:
    twins = [name for name, n in Counter(columns).items() if n > 1 and name]
    if twins:
        raise FleetmarkError(f"two columns are called {twins[0]}; give each its own name")
