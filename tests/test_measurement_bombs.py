"""Check that a measurements.parquet with an absurd declared size is refused before it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.record.figures import centres
from fleetmark.record.values import footer, source


def alike(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column with a single distinct value, which dictionary encoding stores once."""
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], kind))


def written(file: Path, rows: int, **more: pa.Array) -> Path:
    needed = {f.name: f.type for f in schema.arrow() if f.name in schema.NEEDED}
    defaults = {pa.string(): "x", pa.int64(): 1, pa.float64(): 1.0, pa.bool_(): True}
    columns = {name: alike(defaults[kind], kind, rows) for name, kind in needed.items() if kind == pa.string()}
    columns |= {
        name: alike(defaults[kind], kind, rows).dictionary_decode()
        for name, kind in needed.items()
        if kind != pa.string()
    }
    pq.write_table(pa.table({**columns, **more}), file, compression="zstd")
    return file


@pytest.mark.parametrize(
    ("rows", "more", "part"),
    [
        (footer.FEW_ROWS + 1_000_000, dict, "6,000,000 rows in"),
        (
            3,
            lambda: {f"c{n}": pa.array([1, 2, 3]) for n in range(footer.MOST_COLUMNS)},
            "columns, above the limit of 200",
        ),
        (3, lambda: {"text": pa.array(["x" * 100_000_000] * 3)}, "bytes unpacked from"),
    ],
)
def test_an_absurd_footer_is_refused(
    tmp_path: Path, rows: int, more: Callable[[], dict[str, pa.Array]], part: str
) -> None:
    file = tmp_path / "measurements.parquet"
    columns = more()
    written(file, rows, **columns)
    if "text" in columns:
        pq.write_table(pq.read_table(file), file, compression="zstd", use_dictionary=False)
    with pytest.raises(FleetmarkError, match=part):
        source(file, "c")
    with pytest.raises(FleetmarkError, match=part) as error:
        centres.read({"c": file}, [("c", "x")])
    assert "fleetmark rebuild" in str(error.value)


def test_a_footer_of_a_false_length_is_damage(tmp_path: Path) -> None:
    file = written(tmp_path / "measurements.parquet", 3)
    file.write_bytes(file.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1")
    with pytest.raises(FleetmarkError, match="a footer of more than 64 MiB"):
        source(file, "c")


def test_values_of_a_usual_size_are_read(tmp_path: Path) -> None:
    """Check also that 5,000,000 equal values are accepted."""
    assert source(written(tmp_path / "a.parquet", 3), "c") is not None
    values = source(written(tmp_path / "b.parquet", footer.FEW_ROWS), "c")
    assert values is not None and values.rows == footer.FEW_ROWS
