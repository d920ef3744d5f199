"""Check the metadata of a Parquet file of measurements against limits before reading its data."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from fleetmark.base.errors import FleetmarkError

MOST_ROWS = 1_000_000_000  # maximum number of values in a campaign
MOST_COLUMNS = 200
FEW_ROWS = 5_000_000  # below this number of rows, any file size is valid
ROWS_PER_BYTE = 1  # maximum density above this number; even compressed values take several bytes
FEW_BYTES = 256 << 20  # below this decompressed size, any compression ratio is valid
MOST_PACKED = 200  # maximum compression ratio above this size
_LARGEST_FOOTER = 64 << 20  # in bytes
_MOST_GROUPS = 100_000  # maximum number of row groups, and of columns in one


def footer(file: Path) -> pq.FileMetaData:
    """Return the metadata of the Parquet file ``file``.

    Raise FleetmarkError if it declares more than a campaign can contain, and ArrowException or OSError if it is not a
    complete Parquet file.
    """
    size = file.stat().st_size
    with file.open("rb") as source:
        source.seek(max(0, size - 8))
        length, magic = source.read(4), source.read(4)
        if magic == b"PAR1" and int.from_bytes(length, "little") > max(_LARGEST_FOOTER, size):
            raise _bomb(file, f"a footer of more than {_LARGEST_FOOTER >> 20} MiB")
    limits = {"thrift_string_size_limit": _LARGEST_FOOTER, "thrift_container_size_limit": _MOST_GROUPS}
    with pq.ParquetFile(file, **limits) as opened:
        metadata = opened.metadata
    if metadata.num_columns > MOST_COLUMNS:
        raise _bomb(file, f"{metadata.num_columns:,} columns, above the limit of {MOST_COLUMNS}")
    rows = max([metadata.num_rows, *(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))])
    if rows > min(MOST_ROWS, max(FEW_ROWS, ROWS_PER_BYTE * size)):
        raise _bomb(file, f"{rows:,} rows in {size:,} bytes")
    unpacked = sum(max(0, metadata.row_group(n).total_byte_size) for n in range(metadata.num_row_groups))
    if unpacked > max(FEW_BYTES, MOST_PACKED * size):
        raise _bomb(file, f"{unpacked:,} bytes unpacked from {size:,}")
    return metadata


def _bomb(file: Path, problem: str) -> FleetmarkError:
    return FleetmarkError(f"{file}: declares {problem}, more than any valid file; regenerate it: fleetmark rebuild")
