"""wrk: the corpus, and runs of Fleetmark's driver, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import read, value

TOOL = "nginx_wrk"
KEYS = {
    "requests_per_second": ("requests_per_second", 1.0),
    "p99_ms": ("latency_p99", 1e3),
    "p50_us": ("latency_p50", 1e6),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows("wrk"))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, (metric, factor) in KEYS.items():
        assert (value(parsed, metric) or 0) * factor == pytest.approx(row["expected"][key], rel=1e-12), key
    assert parsed.invalid is None


def test_the_last_run_of_the_driver_counts() -> None:
    parsed = read(TOOL, "4.1_driver_kept.txt")
    assert {m.metric: m.value for m in parsed.measurements} == pytest.approx(
        {
            "requests_per_second": 35797.75,
            "bandwidth": 43.63 * 2**20,
            "latency_mean": 304.63e-6,
            "latency_max": 8.18e-3,
            "latency_p50": 96e-6,
            "latency_p75": 133e-6,
            "latency_p90": 230e-6,
            "latency_p99": 4.55e-3,
            "clients": 4,
        }
    )
    assert parsed.invalid is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("4.1_driver_not_kept.txt", "the limit of 1e-05 s is not kept: 99% took 0.00719 s with 1 connections"),
        ("4.1_not_found.txt", "Non-2xx or 3xx responses: 69806"),
    ],
)
def test_what_does_not_count(name: str, reason: str) -> None:
    parsed = read(TOOL, name)
    assert parsed.invalid == reason
    assert value(parsed, "requests_per_second")


def test_without_percentiles_the_mean_is_left() -> None:
    parsed = read(TOOL, "4.1_no_percentiles.txt")
    assert value(parsed, "latency_mean") == pytest.approx(1.24e-3)
    assert value(parsed, "latency_p99") is None


@pytest.mark.parametrize("raw", [b"", b"unable to connect to h2:17380 Connection refused\n", b"Requests/sec: 1e99x\n"])
def test_what_holds_no_rate_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="Requests/sec"):
        parsers.parse(TOOL, raw)
