"""Read untrusted files as rows of cells: CSV, JSON, JSON lines and Parquet, with or without gzip.

The size, rows, columns and cells of a file are limited before they are held in memory, because a few MB can expand to
gigabytes. All errors are FleetmarkErrors without the file name.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import MOST_JSON_VALUES, decode_json, json_values
from fleetmark.parsers.kit.text import decode

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LARGEST_BYTES = 64 << 20  # maximum bytes after decompression
MOST_LINES = 1_000_000  # including empty lines and lines within cells and objects
MOST_ROWS = 100_000
MOST_COLUMNS = 1_000
MOST_CELLS = 2_000_000  # maximum of rows times columns
LONGEST_CELL = 131_072  # characters; the limit of Python's csv module
LONGEST_HEAD = 200  # maximum length of a column name in characters
_MOST_CHUNKS = 200_000  # maximum number of column chunks in a Parquet file
_BATCH = 1_024  # Parquet rows decoded per batch
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013", "-"))
_PARTS = "import it in parts"

Cells = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Records:
    """A file as rows of cells, each with its position (``line 7``); ``form`` names the format."""

    form: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Cells]]


class _Rows(Sequence[tuple[str, Cells]]):
    """Rows with the same ``columns`` as tuples, since a mapping per row would take several times the memory."""

    def __init__(self, word: str, columns: Sequence[str]) -> None:
        self._word, self._columns = word, columns
        self._rows: list[tuple[int, Sequence[Any]]] = []

    def append(self, number: int, cells: Iterable[Any]) -> None:
        self._rows.append((number, tuple(cells)))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        number, cells = self._rows[index]
        return f"{self._word} {number}", dict(zip(self._columns, cells, strict=False))

    def __iter__(self) -> Iterator[tuple[str, Cells]]:
        return (self[n] for n in range(len(self)))


def words(value: object) -> str:
    """Return a cell as one line of text: empty for None, ``true`` or ``false``, integers without decimal point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        value = int(value) if value.is_integer() else value
    return " ".join(str(value).translate(_DASHES).split())


def some(names: Iterable[str], limit: int = 8) -> str:
    """Return the first ``limit`` names of a list, and the number of remaining names."""
    listed = list(names)
    return ", ".join(listed[:limit]) + (f" and {len(listed) - limit} more" if len(listed) > limit else "")


def unpacked(raw: bytes, limit: int = LARGEST_BYTES) -> bytes:
    """Return ``raw`` decompressed if it is gzip. Raise FleetmarkError if it is empty, damaged, or exceeds ``limit``."""
    if raw.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
                raw = file.read(limit + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise FleetmarkError(f"the gzip data is damaged or incomplete ({error}); fetch the file again") from error
    if len(raw) > limit:
        raise FleetmarkError(f"larger than {limit >> 20} MiB after decompression; {_PARTS}")
    if not raw.strip():
        raise FleetmarkError("the file is empty; fetch it again")
    return raw


def records(raw: bytes) -> Records:
    """Return the rows of a CSV, JSON, JSON-lines or Parquet file, with or without gzip.

    Raise FleetmarkError if it is damaged, has no rows, or exceeds a limit.
    """
    raw = unpacked(raw)
    if raw.startswith(b"PK\x03\x04"):
        raise FleetmarkError("an archive or a workbook, not a table; save its sheet as CSV, or unpack it")
    if raw.startswith(b"PAR1"):
        result = _parquet(raw)
    else:
        text = decode(raw)
        if text.count("\n") + text.count("\r") > MOST_LINES:
            raise FleetmarkError(f"more than {MOST_LINES:,} lines; {_PARTS}")
        start = text.lstrip()[:1]
        result = _json(text) if start == "[" else _json_lines(text) if start == "{" else _csv(text)
    if not result.rows:
        raise FleetmarkError(f"{result.form} without rows; its columns are {some(result.columns) or 'none'}")
    return result


def _bounded(rows: int, columns: int) -> None:
    """Raise FleetmarkError if there are too many rows, columns or cells."""
    for number, limit, noun in (
        (columns, MOST_COLUMNS, "columns"),
        (rows, MOST_ROWS, "rows"),
        (rows * columns, MOST_CELLS, "cells"),
    ):
        if number > limit:
            advice = "remove columns" if noun == "columns" else _PARTS
            raise FleetmarkError(f"more than {limit:,} {noun}; {advice}")


def _heads(columns: Sequence[str]) -> None:
    """Raise FleetmarkError if columns are too many, have too long names, or share a name."""
    _bounded(0, len(columns))
    if long := [name for name in columns if len(name) > LONGEST_HEAD]:
        raise FleetmarkError(
            f"a column is named {long[0][:40]}… ({len(long[0]):,} characters); use at most {LONGEST_HEAD}"
        )
    twins = [name for name, n in Counter(columns).items() if n > 1 and name]
    if twins:
        raise FleetmarkError(f"two columns are named {twins[0]}; rename one of them")


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet(raw: bytes) -> Records:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        limits = {"thrift_string_size_limit": len(raw), "thrift_container_size_limit": _MOST_CHUNKS}
        footer = pq.ParquetFile(io.BytesIO(raw), **limits)
        _declared(footer)
        # Keep text dictionary-encoded: otherwise a long text that repeats in every row would be copied for each row.
        texts = [field.name for field in footer.schema_arrow if _is_text(field.type)]
        result = _Rows("row", list(footer.schema_arrow.names))
        with pq.ParquetFile(io.BytesIO(raw), read_dictionary=texts, **limits) as file:
            _fill(result, file)
    except (FleetmarkError, MemoryError):  # MemoryError includes ArrowMemoryError
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise FleetmarkError(f"the Parquet file is damaged or incomplete ({reason}); fetch the file again") from error
    return Records("Parquet", list(footer.schema_arrow.names), result)


def _declared(file: pq.ParquetFile) -> None:
    """Raise FleetmarkError if the footer declares more than the limits, or has columns of lists or structures."""
    import pyarrow as pa

    metadata = file.metadata
    _bounded(metadata.num_rows, metadata.num_columns)
    if metadata.num_row_groups * metadata.num_columns > _MOST_CHUNKS:
        raise FleetmarkError(f"more than {_MOST_CHUNKS:,} column chunks; use fewer row groups")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    chunks = [group.column(n) for group in groups for n in range(metadata.num_columns)]
    declared = sum(max(0, chunk.total_uncompressed_size) for chunk in chunks)
    if max(declared, sum(group.total_byte_size for group in groups)) > LARGEST_BYTES:
        raise FleetmarkError(f"larger than {LARGEST_BYTES >> 20} MiB after decompression; {_PARTS}")
    if max((chunk.num_values for chunk in chunks), default=0) > MOST_ROWS:
        raise FleetmarkError(f"more than {MOST_ROWS:,} values in a column; {_PARTS}")
    _heads(file.schema_arrow.names)
    if nested := [field.name for field in file.schema_arrow if pa.types.is_nested(field.type)]:
        raise FleetmarkError(f"the column {nested[0]} contains lists or structures; use text and numbers")


def _fill(result: _Rows, file: pq.ParquetFile) -> None:
    """Add the rows of ``file`` batch by batch. Raise FleetmarkError if a limit is exceeded."""
    length = 0
    for batch in file.iter_batches(_BATCH, use_threads=False):
        _bounded(len(result) + batch.num_rows, batch.num_columns)
        length += sum(_length(column) for column in batch.columns)
        if length > LARGEST_BYTES:
            raise FleetmarkError(f"more than {LARGEST_BYTES >> 20} MiB of text; {_PARTS}")
        for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            result.append(len(result) + 1, map(_plain, cells))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    )


def _length(column: pa.Array) -> int:
    """Return the total size of a column's texts in bytes, repeated texts included; 0 for numbers.

    Raise FleetmarkError if a text is too long for a cell.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.dictionary if pa.types.is_dictionary(column.type) else column
    if not _is_text(values.type):
        return 0
    lengths = pc.binary_length(values)
    if (pc.max(lengths).as_py() or 0) > LONGEST_CELL:
        raise FleetmarkError(f"a cell has more than {LONGEST_CELL:,} characters; shorten it")
    taken = lengths.take(column.indices) if pa.types.is_dictionary(column.type) else lengths
    return int(pc.sum(taken).as_py() or 0)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


# --- JSON ------------------------------------------------------------------------------------------------------------


def _json(text: str) -> Records:
    try:
        listed = decode_json(text)
    except ValueError as error:
        raise FleetmarkError(f"the JSON is damaged or incomplete ({error}); fetch the file again") from error
    _bounded(len(listed), 0)
    return _objects("JSON", "row", enumerate(listed, 1))


def _json_lines(text: str) -> Records:
    if json_values(text) > MOST_JSON_VALUES:
        raise FleetmarkError(f"more than {MOST_JSON_VALUES:,} values; {_PARTS}")
    return _objects("JSON lines", "line", _each_line(text))


def _each_line(text: str) -> Iterator[tuple[int, Any]]:
    for n, match in enumerate(re.finditer(r"[^\n]*\n|[^\n]+", text), 1):
        line = match[0]
        if line.strip():
            try:
                yield n, decode_json(line)
            except ValueError as error:
                raise FleetmarkError(
                    f"line {n} is not a JSON object ({error}); use a list of objects, or one object per line"
                ) from error


def _objects(form: str, word: str, numbered: Iterable[tuple[int, Any]]) -> Records:
    columns: dict[str, str] = {}  # share each name, since the decoder creates a new string per line
    rows: list[tuple[str, Cells]] = []
    cells = 0
    for n, value in numbered:
        if not isinstance(value, dict):
            raise FleetmarkError(
                f"{word} {n} is {type(value).__name__}, not a JSON object; write each row as an object"
            )
        cells += len(value)
        rows.append((f"{word} {n}", {columns.setdefault(key, key): cell for key, cell in value.items()}))
        _bounded(len(rows), len(columns))
        if cells > MOST_CELLS:
            raise FleetmarkError(f"more than {MOST_CELLS:,} cells; {_PARTS}")
    _heads(list(columns))
    return Records(form, list(columns), rows)


# --- CSV -------------------------------------------------------------------------------------------------------------


class _Lines(Iterator[str]):
    """Iterate over the lines of a text with their line ends; ``delimiters`` counts since the reader reset it to 0.

    Raise FleetmarkError if a row has far too many cells, before the row is held in memory.
    """

    def __init__(self, text: str, delimiter: str) -> None:
        self._matches, self._delimiter = _LINE.finditer(text), delimiter
        self.delimiters = 0

    def __next__(self) -> str:
        line: str = next(self._matches)[0]
        self.delimiters += line.count(self._delimiter)
        if self.delimiters > LONGEST_CELL:
            _bounded(0, self.delimiters)
        return line


def _csv(text: str) -> Records:
    top = next((match[0] for match in _LINE.finditer(text) if match[0].strip()), "")
    delimiter = max(",;\t", key=top.count)
    lines = _Lines(text, delimiter)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    columns: list[str] = []
    rows = _Rows("line", columns)
    try:
        for cells in reader:
            lines.delimiters = 0
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns += [words(c) for c in cells]
                _heads(columns)
                continue
            extra = cells[len(columns) :]
            if len(cells) < len(columns) or any(c.strip() for c in extra):
                raise FleetmarkError(
                    f"line {reader.line_num} has {len(cells)} cells, but the header has {len(columns)}; "
                    "is the file complete?"
                )
            _bounded(len(rows) + 1, len(columns))
            rows.append(reader.line_num, cells[: len(columns)])
    except csv.Error as error:
        raise FleetmarkError(f"line {reader.line_num} is not valid CSV ({error}); is the file complete?") from error
    return Records("CSV", [c for c in columns if c], rows)
