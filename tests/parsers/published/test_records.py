"""Files as rows: every form, what is damaged, and that nothing but FleetmarkError comes of any bytes."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.parsers.published import figure, mlperf, spec, table
from fleetmark.parsers.published.files import records, words

CSV = b"machine,benchmark,value,unit\nh1,linpack,2.5,GFLOP/s\nh2,linpack,5,GFLOP/s\n"
ROWS = [
    {"machine": "h1", "benchmark": "linpack", "value": "2.5", "unit": "GFLOP/s"},
    {"machine": "h2", "benchmark": "linpack", "value": "5", "unit": "GFLOP/s"},
]


def parquet(rows: list[dict[str, object]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("form", "raw", "places"),
    [
        ("CSV", CSV, ["line 2", "line 3"]),
        ("CSV", b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n"), ["line 2", "line 3"]),
        ("CSV", CSV.replace(b",", b";"), ["line 2", "line 3"]),
        ("CSV", CSV.replace(b",", b"\t"), ["line 2", "line 3"]),
        ("CSV", b"\n" + CSV.replace(b"h2", b"\n,,,\nh2"), ["line 3", "line 6"]),
        ("JSON", json.dumps(ROWS).encode(), ["row 1", "row 2"]),
        ("JSON lines", b"\n".join(json.dumps(r).encode() for r in ROWS) + b"\n\n", ["line 1", "line 2"]),
        ("Parquet", parquet([dict(r) for r in ROWS]), ["row 1", "row 2"]),
        ("CSV", gzip.compress(CSV, mtime=0), ["line 2", "line 3"]),
        ("Parquet", gzip.compress(parquet([dict(r) for r in ROWS]), mtime=0), ["row 1", "row 2"]),
    ],
)
def test_every_form_has_the_same_rows(form: str, raw: bytes, places: list[str]) -> None:
    result = records(raw)
    assert result.form == form
    assert list(result.columns) == ["machine", "benchmark", "value", "unit"]
    assert [dict(cells) for _, cells in result.rows] == ROWS
    assert [place for place, _ in result.rows] == places


def test_header_cells_lose_tabs_and_the_index_column_its_place() -> None:
    result = records(b',Hardware Vendor\t,"# Chips "\n0,Dell Inc.,2\n')
    assert list(result.columns) == ["Hardware Vendor", "# Chips"]
    assert result.rows[0][1]["Hardware Vendor"] == "Dell Inc."


def test_types_of_parquet_and_json() -> None:
    result = records(parquet([{"machine": "h", "value": Decimal("1.50"), "n": 8.0, "on": True, "no": None}]))
    cells = result.rows[0][1]
    assert figure(cells["value"]) == (1.5, "")
    assert [words(cells[c]) for c in ("n", "on", "no")] == ["8", "true", ""]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, "no value"),
        ("  ", "no value"),
        (float("nan"), "no value"),
        ("0.0", "zero"),
        (0, "zero"),
        (-3, "negative"),
        ("n/a", "not a number"),
        ("1,234", "not a number"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        (float("inf"), "not a number"),
        (True, "not a number"),
        ("1e300", "not a number"),
        ([1], "not a number"),
    ],
)
def test_what_is_no_figure_says_why(cell: object, reason: str) -> None:
    assert figure(cell) == (0.0, reason)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty; fetch it again"),
        (b" \n ", "empty"),
        (gzip.compress(b"", mtime=0), "empty"),
        (gzip.compress(CSV, mtime=0)[:-12], "the gzip data is damaged or incomplete"),
        (b"\x1f\x8bnot gzip at all", "the gzip data is damaged or incomplete"),
        (json.dumps(ROWS).encode()[:-9], "the JSON is damaged or incomplete"),
        (b"[" * 100_000, "the JSON is damaged or incomplete"),
        (b"[1, 2]", "row 1 is int, not a JSON object"),
        (b"[]", "JSON without rows"),
        (b'{"a": 1}\n{"a": \n', "line 2 is not a JSON object"),
        (parquet([dict(r) for r in ROWS])[:-7], "the Parquet file is damaged or incomplete"),
        (b"PAR1", "the Parquet file is damaged or incomplete"),
        (CSV[:-9], "line 3 has 3 cells, but the header has 4; is the file complete?"),
        (CSV.replace(b"h2", b'"h2'), "line 3 is not valid CSV"),
        (CSV.replace(b"5,GF", b"5,more,GF"), "line 2 has 5 cells"),
        (b"machine,value,value\nh,1,2\n", "two columns are named value"),
        (b"machine,benchmark\n", "CSV without rows; its columns are machine, benchmark"),
    ],
)
def test_damaged_files_say_what_is_wrong(raw: bytes, message: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        records(raw)
    assert message in str(error.value) and "\n" not in str(error.value)


SAMPLES = (
    CSV,
    json.dumps(ROWS).encode(),
    parquet([dict(r) for r in ROWS]),
    b"Submitter,Platform,Category,Model,Scenario,Performance_Result,Performance_Units,version\nA,p,closed,bert,Offline,1,Samples/s,v4.1\n",
    b"Benchmark,System,Base Result,Peak Result\nCINT2017rate,x,10,0.0\n",
    b"SPECrate2017_int_base 10\n500.perlbench_r 1 100 15.9 *\n",
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_nothing_but_one_sentence_comes_of_broken_bytes(sample: bytes, data: st.DataObject) -> None:
    raw = bytearray(sample)
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    for read in (mlperf.read, spec.read, table.read):
        try:
            result = read(cut, "int.csv")
        except FleetmarkError:
            continue
        assert result.rows and all(r.measurement.value > 0 and r.machine in result.machines for r in result.rows)
