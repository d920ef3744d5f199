"""memcaslap's text, as version 1.1.4 printed it against memcached 1.6.18, held against figures read by eye."""

from __future__ import annotations

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests.parsers.reading import FIXTURES, cases, read, value

TOOL = "memcached"


def test_the_total_counts_and_percentiles_are_ends_of_bins() -> None:
    parsed = read(TOOL, "1.1.4_c16.txt")
    figures = {m.metric: m.value for m in parsed.measurements}
    assert figures == pytest.approx(
        {
            "requests_per_second": 15958.0,
            "latency_min": 18e-6,
            "latency_max": 72733e-6,
            "latency_mean": 993e-6,
            "latency_p50": 256e-6,  # 27481 of 32220 by 2^8 us, 2820 by 2^7
            "latency_p99": 16384e-6,  # 31970 by 2^14 us, 99.2%; 31135 by 2^13
            "clients": 16.0,
        }
    )
    assert cases(parsed) == {"get9-set1"} and parsed.invalid is None


def test_one_connection() -> None:
    parsed = read(TOOL, "1.1.4_c1.txt")
    assert value(parsed, "requests_per_second") == 31502.0
    assert value(parsed, "latency_p99") == pytest.approx(64e-6)  # 62285 of 63011 by 2^5 us, 98.8%; 62740 by 2^6


def test_reads_that_miss_and_output_without_a_histogram_are_invalid() -> None:
    raw = (FIXTURES / TOOL / "1.1.4_c16.txt").read_text()
    missed = parsers.parse(TOOL, raw.replace("get_misses: 0", "get_misses: 2000").encode())
    assert missed.invalid == "2000 of 29004 reads missed: the server has too little memory"
    bare = parsers.parse(TOOL, raw.partition("Get Statistics")[0].encode() + raw[raw.index("cmd_get:") :].encode())
    assert bare.invalid and "no histogram" in bare.invalid and value(bare, "latency_p99") is None


@pytest.mark.parametrize(
    "raw", [b"", b"servers: 127.0.0.1:1\nconcurrency: 4\n", b"Run time: 2.0s Ops: 0 TPS: 0 Net_rate: 0"]
)
def test_what_holds_no_rate_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="Run time"):
        parsers.parse(TOOL, raw)
