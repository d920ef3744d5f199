"""ucx_perftest: the corpus and runs of our own, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import cases, read, value

TOOL = "ucx_perftest"
MIB = 2.0**20


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    expected = row["expected"]
    assert value(parsed, "bandwidth_interval") == pytest.approx(expected["bandwidth_average_MB_s"] * MIB)
    if "latency_50_us" in expected:
        assert value(parsed, "latency_p50") == pytest.approx(expected["latency_50_us"] * 1e-6)
    else:
        assert value(parsed, "latency_p50") is None, "an overhead is not a latency"
    assert parsed.invalid is None


def test_a_latency_with_progress_and_a_bandwidth_without() -> None:
    parsed = read(TOOL, "1.13_tcp_tag_lat_final.txt", "ucx_perftest", "h2", "-t", "tag_lat", "-s", "8")
    assert cases(parsed) == {"tag_lat"}
    assert value(parsed, "latency_p50") == pytest.approx(5.815e-6)
    assert value(parsed, "latency_mean") == pytest.approx(565.088e-6)
    assert value(parsed, "message_rate") == 1770
    parsed = read(TOOL, "1.13_tcp_tag_bw_1m.txt")
    assert {m.metric: m.value for m in parsed.measurements} == pytest.approx(
        {"bandwidth": 159.66 * MIB, "bandwidth_interval": 211.04 * MIB, "message_rate": 160}
    )


def test_progress_without_a_final_row_is_cut() -> None:
    parsed = read(TOOL, "1.13_tcp_tag_lat_ended.txt")
    assert parsed.invalid == "the output is cut: no final row"
    assert value(parsed, "latency_p50") == pytest.approx(4.378e-6)


@pytest.mark.parametrize("raw", [b"", b"UCX  ERROR no usable transports/devices (asked rc on all devices)\n"])
def test_what_holds_no_row_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="a row under ucx_perftest's heading"):
        parsers.parse(TOOL, raw)
