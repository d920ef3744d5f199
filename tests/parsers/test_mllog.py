"""MLCommons logs as files: packed, cut, endless, several records a line; read with the parser of MLPerf Inference."""

from __future__ import annotations

import gzip
import io
import re
import tracemalloc

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.parsers.kit.mllog import LONGEST, MllogLines, records
from fleetmark.parsers.mlperf_inference import parse, parse_stream
from tests.parsers.reading import FIXTURES, value


def raw(name: str) -> bytes:
    return (FIXTURES / "mlperf_inference" / name).read_bytes()


def test_gzip_and_byte_order_marks() -> None:
    text = raw("v6.0_offline_detail.txt")
    plain = parse(text)
    assert parse(gzip.compress(text)) == plain
    assert parse(gzip.compress(text[:5000]) + gzip.compress(text[5000:])) == plain
    summary = raw("v6.0_server_summary.txt")
    assert (
        parse(b"\xef\xbb\xbf" + summary) == parse(b"\xff\xfe" + summary.decode().encode("utf-16-le")) == parse(summary)
    )
    packed = gzip.compress(text)
    for damaged in (
        packed[: len(packed) // 2],
        packed[:-4],
        packed[:100] + b"\0\0\0\0" + packed[104:],
        packed + b"junk",
        b"\x1f\x8b\x08",
    ):
        with pytest.raises(
            ParseError, match="mlperf_inference: expected a whole log, got '(truncated|damaged) gzip data"
        ):
            parse(damaged)


class _Endless(io.RawIOBase):
    """``start``, then ``size`` bytes of ``filler``, then ``end``, never in memory at once."""

    def __init__(self, start: bytes, filler: bytes, size: int, end: bytes) -> None:
        self._parts = [start, end]
        self._filler, self._left, self.reads = filler * (1 + (1 << 16) // len(filler)), size, 0

    def read(self, size: int = -1) -> bytes:
        assert 0 < size <= 1 << 20, "the file is not to be read whole"
        self.reads += 1
        if len(self._parts) == 2:
            return self._parts.pop(0)
        if self._left > 0:
            self._left -= len(self._filler)
            return self._filler[:size]
        return self._parts.pop() if self._parts else b""


@pytest.mark.parametrize(
    "filler",
    [
        b':::MLLOG {"key": "loaded_qsl_set", "value": [1,2,3], "metadata": {"pid": 1}}\n',
        b":::MLLOG [1,2,3] and no end of the line ",
        b"some other output, " * 20 + b"\n",
        b"x",
    ],
    ids=["records", "one line", "text", "letters"],
)
def test_memory_does_not_grow_with_the_log(filler: bytes) -> None:
    log = raw("v6.0_singlestream_detail.txt")
    file = _Endless(log[: log.index(b":::MLLOG", 9000)], filler, 20_000_000, b"\n" + log)
    tracemalloc.start()
    try:
        parsed = parsers.parse_file("mlperf_inference", file)  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert value(parsed, "latency") == pytest.approx(70.775e-6)
    assert peak < 12e6


def test_records_are_read_whatever_stands_around_them() -> None:
    text = (
        b'36: :::MLLOG {"key": "a", "value": nan}\r\n'
        b'host: x :::MLLOG {"key": "b", "value": 1}:::MLLOG {"key": "c", "value": "has :::MLLOG in it"} tail\n'
        b':::MLLOG\n:::MLLOG {"value": 1, "key": "d"}\n:::MLLOG {"key": "e", "val'
    )
    lines = MllogLines(io.BytesIO(text))
    assert [(n, record) for n, line in enumerate(lines, 1) for record in records(line)] == [
        (1, {"key": "a", "value": None}),
        (2, {"key": "b", "value": 1}),
        (2, {"key": "c", "value": "has :::MLLOG in it"}),
        (4, {"value": 1, "key": "d"}),
    ]
    assert lines.open_end
    keys = [record["key"] for line in MllogLines(io.BytesIO(text)) for record in records(line, re.compile(rb"b"))]
    assert keys == ["b", "d"]  # a record whose key is not first has to be decoded
    assert [len(line) for line in MllogLines(io.BytesIO(b"x" * (LONGEST + 5) + b"\ny"))] == [LONGEST, 1]


def test_a_record_s_keys_may_stand_in_any_order() -> None:
    text = raw("v6.0_singlestream_detail.txt").decode()
    turned = re.sub(r'"key": ("[^"]*"), "value": ([^\n]*?), "time_ms"', r'"value": \2, "key": \1, "time_ms"', text)
    assert turned != text
    assert parse_stream(io.BytesIO(turned.encode())).measurements == parse(text.encode()).measurements
