"""redis-benchmark's CSV: the corpus, and runs of Fleetmark's driver, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import cases, read, value

TOOL = "redis_benchmark"


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        test, _, quantity = key.partition("_")
        metric, factor = ("requests_per_second", 1.0) if quantity == "rps" else ("latency_p99", 1e3)
        assert (value(parsed, metric, case=test) or 0) * factor == pytest.approx(figure, rel=1e-12), key
    assert parsed.invalid is None


def test_the_last_run_of_the_driver_counts() -> None:
    parsed = read(TOOL, "7.0_driver_kept.txt")
    expected = {
        "requests_per_second": 28680.31,
        "latency_mean": 0.094e-3,
        "latency_min": 0.016e-3,
        "latency_p50": 0.039e-3,
        "latency_p95": 0.127e-3,
        "latency_p99": 0.143e-3,
        "latency_max": 45.919e-3,
        "clients": 4.0,
    }
    assert {m.metric: m.value for m in parsed.measurements} == pytest.approx(expected)
    assert cases(parsed) == {"SET"} and parsed.invalid is None
    assert value(read(TOOL, "7.0_driver_c4.txt"), "requests_per_second") == 19185.39


def test_a_limit_that_one_connection_breaks() -> None:
    parsed = read(TOOL, "7.0_driver_not_kept.txt")
    assert parsed.invalid == "the limit of 1e-05 s is not kept: 99% took 0.000495 s with 1 connections"


def test_rows_of_before_6_2_have_a_rate_alone() -> None:
    parsed = parsers.parse(TOOL, b'"PING_INLINE","81300.81"\n"LRANGE_100 (first 100 elements)","1.5"\n')
    assert [(m.case, m.value) for m in parsed.measurements] == [
        ("PING_INLINE", 81300.81),
        ("LRANGE_100 (first 100 elements)", 1.5),
    ]


@pytest.mark.parametrize(
    "raw", [b"", b"Could not connect to Redis at h2:17379: Connection refused\n", b'"SET","x"\n', b'"","1"\n']
)
def test_what_holds_no_row_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="redis-benchmark --csv"):
        parsers.parse(TOOL, raw)
