"""What a file of measurements declares of itself, held against bounds before anything of it is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from fleetmark.base.errors import FleetmarkError

MOST_ROWS = 1_000_000_000  # values of a campaign
MOST_COLUMNS = 200
FEW_ROWS = 5_000_000  # up to here a file may be as small as it likes
ROWS_PER_BYTE = 1  # beyond: a measured value takes several bytes however well it is packed
FEW_BYTES = 256 << 20  # unpacked; up to here a file may be packed as well as it likes
MOST_PACKED = 200  # bytes that a byte may unpack to beyond
_LARGEST_FOOTER = 64 << 20  # bytes
_MOST_GROUPS = 100_000  # row groups, or columns of one


def footer(file: Path) -> pq.FileMetaData:
    """The metadata of the Parquet file ``file``.

    Raises FleetmarkError where it declares more than a measured campaign can hold, ArrowException and OSError where it
    is no whole Parquet file.
    """
    size = file.stat().st_size
    with file.open("rb") as source:
        source.seek(max(0, size - 8))
        length, magic = source.read(4), source.read(4)
        if magic == b"PAR1" and int.from_bytes(length, "little") > max(_LARGEST_FOOTER, size):
            raise _bomb(file, f"a footer of more than {_LARGEST_FOOTER >> 20} MiB")
    limits = {"thrift_string_size_limit": _LARGEST_FOOTER, "thrift_container_size_limit": _MOST_GROUPS}
    with pq.ParquetFile(file, **limits) as opened:
        about = opened.metadata
    if about.num_columns > MOST_COLUMNS:
        raise _bomb(file, f"{about.num_columns:,} columns, where {MOST_COLUMNS} are read")
    rows = max([about.num_rows, *(about.row_group(n).num_rows for n in range(about.num_row_groups))])
    if rows > min(MOST_ROWS, max(FEW_ROWS, ROWS_PER_BYTE * size)):
        raise _bomb(file, f"{rows:,} rows in {size:,} bytes")
    unpacked = sum(max(0, about.row_group(n).total_byte_size) for n in range(about.num_row_groups))
    if unpacked > max(FEW_BYTES, MOST_PACKED * size):
        raise _bomb(file, f"{unpacked:,} bytes unpacked from {size:,}")
    return about


def _bomb(file: Path, what: str) -> FleetmarkError:
    return FleetmarkError(f"{file}: declares {what}, which no measurements do; write it anew with `fleetmark parse`")
