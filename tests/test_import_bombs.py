"""Test that small files that unpack to gigabytes are refused in one sentence, within 500 MB of memory."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fleetmark.parsers.published import files
from tests.bombs import Read, reader

MOST_KIB = 500_000  # peak memory of an importing process, including Python and Arrow
HEAD = "machine,benchmark,value,unit"
ROW = "h1,b1,1,GB/s"
READ = """
from fleetmark.record import imports
def read(file):
    done = imports.files(file.parent / "results", "table", [file])
    return len(done[0][0].metadata["machines"])
"""


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    with reader(READ) as read:
        yield read


def packed(pieces: list[tuple[str, int]]) -> bytes:
    """Return gzip data of texts, each repeated the given number of times."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=6) as file:
        for text, times in pieces:
            block = text * max(1, (1 << 20) // len(text))
            per_block = len(block) // len(text)
            for _ in range(times // per_block):
                file.write(block.encode())
            file.write((text * (times % per_block)).encode())
    return out.getvalue()


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", row_group_size=1 << 22)
    return out.getvalue()


def alike(text: str, rows: int) -> pa.Array:
    """Return a column with a single distinct text, which dictionary encoding stores once."""
    return (
        pa.DictionaryArray.from_arrays(pa.array(bytes(4 * rows)[:0], pa.int32()), [text])
        if not rows
        else (
            pa.DictionaryArray.from_arrays(
                pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))]), [text]
            )
        )
    )


def tidy(rows: int, benchmark: str = "b", **more: pa.Array) -> pa.Table:
    columns = {"machine": alike("h", rows), "benchmark": alike(benchmark, rows), "unit": alike("GB/s", rows)}
    return pa.table({**columns, "value": pa.array([1.0]).take(alike("", rows).indices), **more})


def lists(rows: int, each: int) -> pa.Array:
    """Return a column of lists of nulls, whose run-length encoded levels take a few bytes."""
    offsets = pa.array(range(0, (rows + 1) * each, each), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.nulls(rows * each, pa.int8()))


def lying() -> bytes:
    """Return a file with 600 MB of text and a footer that declares 1,000 bytes."""
    out = io.BytesIO()
    texts = {
        "machine": pa.array(["h" * 300_000_000] * 2),
        **{name: pa.array(["x", "y"]) for name in ("benchmark", "unit")},
    }
    pq.write_table(pa.table(texts), out, compression="zstd", use_dictionary=False, write_statistics=False)
    raw = out.getvalue()
    length = int.from_bytes(raw[-8:-4], "little")
    footer, group = raw[-8 - length : -8], pq.ParquetFile(io.BytesIO(raw)).metadata.row_group(0)
    for true in (group.column(0).total_uncompressed_size, group.total_byte_size):
        assert footer.count(zigzag(true)) == 1
        footer = footer.replace(zigzag(true), zigzag(1_000, len(zigzag(true))))
    return raw[: -8 - length] + footer + raw[-8:]


def zigzag(number: int, length: int = 0) -> bytes:
    """Return a number in Thrift's compact encoding, padded to the given length."""
    groups = [(number * 2 >> shift) & 0x7F for shift in range(0, max(number.bit_length() + 1, 7 * length), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "rows of CSV": (
        "a.csv.gz",
        lambda: packed([(f"{HEAD}\n", 1), (f"{ROW}\n", 40_000_000)]),
        "64 MiB after decompression",
    ),
    "rows of CSV within the size": (
        "a.csv.gz",
        lambda: packed([(f"{HEAD}\n", 1), (f"{ROW}\n", 900_000)]),
        "100,000 rows",
    ),
    "columns of CSV": ("a.csv.gz", lambda: packed([(f"{HEAD}", 1), (",a", 20_000_000), ("\n", 1)]), "1,000 columns"),
    "empty columns of CSV": (
        "a.csv.gz",
        lambda: packed([(HEAD, 1), ("\n", 1), (ROW, 1), (",", 50_000_000)]),
        "1,000 columns",
    ),
    "cells of CSV": (
        "a.csv.gz",
        lambda: packed([(HEAD + "".join(f",c{n}" for n in range(900)) + "\n", 1), (ROW + ",x" * 900 + "\n", 30_000)]),
        "2,000,000 cells",
    ),
    "one cell of CSV": ("a.csv.gz", lambda: packed([(f"{HEAD}\n", 1), ("x", 60_000_000)]), "not valid CSV"),
    "a long column name": (
        "a.csv.gz",
        lambda: packed([(f"{HEAD},", 1), ("x", 100_000), (f"\n{ROW},1\n", 1)]),
        "characters",
    ),
    "blank lines": ("a.csv.gz", lambda: packed([(f"{HEAD}\n", 1), ("\n", 60_000_000)]), "1,000,000 lines"),
    "zeros": ("a.csv.gz", lambda: packed([("\0", 1_000_000_000)]), "64 MiB after decompression"),
    "rows of JSON": (
        "a.json.gz",
        lambda: packed([("[", 1), ('{"a":1},', 120_000_000), ("{}]", 1)]),
        "64 MiB after decompression",
    ),
    "rows of JSON within the size": (
        "a.json.gz",
        lambda: packed([("[", 1), ("{},", 20_000_000), ("{}]", 1)]),
        "3,000,000 values",
    ),
    "few rows of JSON": ("a.json.gz", lambda: packed([("[", 1), ("{},", 1_000_000), ("{}]", 1)]), "100,000 rows"),
    "lists of JSON": (
        "a.json.gz",
        lambda: packed([('[{"machine":[', 1), ("[],", 20_000_000), ("1]}]", 1)]),
        "3,000,000 values",
    ),
    "depth of JSON": ("a.json.gz", lambda: packed([('[{"machine":', 1), ("[", 60_000_000)]), "3,000,000 values"),
    "less depth of JSON": ("a.json.gz", lambda: packed([('[{"machine":', 1), ("[", 1_000_000)]), "nested too deeply"),
    "digits of JSON": ("a.json.gz", lambda: packed([('[{"machine":', 1), ("9", 50_000_000), ("}]", 1)]), "damaged"),
    "long lines of JSON": (
        "a.json.gz",
        lambda: packed([('{"machine":[' + "[]," * 40 + "1]}\n", 90_000)]),
        "3,000,000 values",
    ),
    "columns of JSON lines": (
        "a.json.gz",
        lambda: gzip.compress("".join(f'{{"c{n}":1}}\n' for n in range(90_000)).encode(), mtime=0),
        "1,000 columns",
    ),
    "rows of Parquet": ("a.parquet", lambda: parquet(tidy(50_000_000)), "100,000 rows"),
    "columns of Parquet": (
        "a.parquet",
        lambda: parquet(pa.table({f"c{n}": pa.array([1]) for n in range(8_000)})),
        "1,000 columns",
    ),
    "a long text of Parquet": ("a.parquet", lambda: parquet(tidy(1_000, "b" * 4_000_000)), "131,072 characters"),
    "a text of Parquet in every row": ("a.parquet", lambda: parquet(tidy(100_000, "b" * 130_000)), "64 MiB of text"),
    "lists of Parquet": ("a.parquet", lambda: parquet(tidy(1_000, more=lists(1_000, 40_000))), "values in a column"),
    "a list of Parquet": ("a.parquet", lambda: parquet(tidy(10, more=lists(10, 5))), "lists or structures"),
    "a footer that lies": ("a.parquet", lying, "needs more than 512 MiB of memory"),
    "Parquet within gzip": (
        "a.parquet.gz",
        lambda: gzip.compress(parquet(pa.table({"machine": pa.array(["h" * 100_000_000])})), mtime=0),
        "after decompression",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_a_sentence_and_in_little_memory(name: str, read: Read, tmp_path: Path) -> None:
    title, make, part = BOMBS[name]
    (tmp_path / title).write_bytes(make())
    assert (tmp_path / title).stat().st_size < 4_000_000
    outcome, peak = read(tmp_path / title)
    assert outcome.startswith("refused ") and part in outcome and "\n" not in outcome, outcome[:400]
    assert 0 < peak < MOST_KIB, f"{peak} KiB"
    assert not list(tmp_path.glob("results/imports/*"))


def test_a_file_at_the_bounds_is_imported_in_little_memory(read: Read, tmp_path: Path) -> None:
    more = files.MOST_CELLS // files.MOST_ROWS - 4
    with (tmp_path / "a.csv").open("w") as out:
        out.write(HEAD + "".join(f",l{n}" for n in range(more)) + "\n")
        for n in range(files.MOST_ROWS):
            labels = "".join(f",label {n // 10} {m}" for m in range(more))
            out.write(f"m{n // 10},b{n % 10},{n + 1},GB/s{labels}\n")
    outcome, peak = read(tmp_path / "a.csv")
    assert outcome == f"read {files.MOST_ROWS // 10}"
    assert 0 < peak < MOST_KIB, f"{peak} KiB"


def test_columns_of_parquet_that_repeat_a_text_are_read(tmp_path: Path) -> None:
    assert [row[1]["benchmark"] for row in files.records(parquet(tidy(3, "linpack"))).rows] == ["linpack"] * 3
    many = json.dumps([{"machine": f"h{n}", "n": None} for n in range(3_000)]).encode()
    assert len(files.records(many).rows) == 3_000
