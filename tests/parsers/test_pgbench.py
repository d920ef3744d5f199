"""pgbench: the corpus, and runs of Fleetmark's driver, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import cases, read, value

TOOL = "pgbench"
KEYS = {
    "tps": ("transactions_per_second", 1.0),
    "latency_average_ms": ("latency_mean", 1e3),
    "failed": ("failed", 1.0),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        metric, factor = KEYS[key]
        measured = value(parsed, metric)
        assert measured is not None and measured * factor == pytest.approx(figure, rel=1e-12), key
    assert (parsed.version, parsed.invalid) == ("15.18", None)
    assert cases(parsed) == {"tpcb-like" if "tpcb" in path.name else "select-only"}


def test_the_last_run_of_the_driver_counts() -> None:
    parsed = read(TOOL, "15_driver_kept.txt")
    assert {m.metric: m.value for m in parsed.measurements} == pytest.approx(
        {
            "transactions_per_second": 178.256492,
            "latency_mean": 22.44e-3,
            "latency_p50": 17.872e-3,
            "latency_p95": 62.801e-3,
            "latency_p99": 93.382e-3,
            "failed": 0,
            "clients": 4,
        }
    )
    assert parsed.invalid is None and cases(parsed) == {"tpcb-like"}


def test_a_limit_that_one_connection_breaks() -> None:
    parsed = read(TOOL, "15_driver_not_kept.txt")
    assert parsed.invalid == "the limit of 0.0001 s is not kept: 99% took 0.020489 s with 1 connections"


def test_the_rate_of_before_14() -> None:
    raw = b"transaction type: mine.sql\ntps = 90.1 (including connections establishing)\ntps = 92.5 (excluding connections establishing)\n"
    parsed = parsers.parse(TOOL, raw)
    assert value(parsed, "transactions_per_second", case="mine.sql") == 92.5


@pytest.mark.parametrize(
    "raw", [b"", b"pgbench: error: connection to server failed\n", b"tps = 0 (without initial connection time)\n"]
)
def test_what_holds_no_rate_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="tps without the time to connect"):
        parsers.parse(TOOL, raw)


def test_a_run_without_a_transaction_says_what_to_do() -> None:
    with pytest.raises(ParseError, match=r"line 10: expected a finished transaction \(raise pgbench.duration\), got"):
        read(TOOL, "15_no_transaction.txt")
