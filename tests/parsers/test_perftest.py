"""perftest: the corpus, and a latency table of the public record (rows as printed), held against figures read by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, identities, read, value

TOOL = "perftest"
UNITS = {"MBps": 1 / 2**20, "Gbps": 8e-9, "Mpps": 1e-6}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    sizes = [m.labels["size"] for m in parsed.measurements]
    for key, figure in row["expected"].items():
        size, _, quantity = key.rpartition(".")
        name, unit = quantity.split("_")
        metric = {"avg": "bandwidth", "peak": "bandwidth_peak", "msgrate": "message_rate"}[name]
        measured = value(parsed, metric, size=size or sizes[0])
        assert measured is None if figure == 0 else measured == pytest.approx(figure / UNITS[unit]), key
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements), "client and server count once"


def test_latencies() -> None:
    parsed = read(TOOL, "send_lat_ud.txt")
    assert cases(parsed) == {"send_lat"} and parsed.invalid is None
    names = ("latency_min", "latency_max", "latency_p50", "latency_mean", "latency_p99", "latency_p99.9")
    figures = [value(parsed, name, size="4") for name in names]
    assert figures == pytest.approx([1.83e-6, 7.17e-6, 1.86e-6, 1.90e-6, 2.19e-6, 7.17e-6])
    assert cases(read(TOOL, "send_lat_ud.txt", "/usr/bin/ib_read_lat", "h2")) == {"read_lat"}


def test_a_table_without_its_end_is_cut() -> None:
    raw = (FIXTURES / TOOL / "send_lat_ud.txt").read_bytes()
    parsed = parsers.parse(TOOL, raw[: raw.index(b" 8       1000")])
    assert parsed.invalid == "the output is cut: no rule under the table"
    assert value(parsed, "latency_p50", size="2") == pytest.approx(1.67e-6)


@pytest.mark.parametrize(
    "raw", [b"", b" Unable to find the Infiniband/RoCE device\n", b" #bytes #iterations t_avg[usec]\n 2 x 1.5\n"]
)
def test_what_holds_no_row_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="a row under perftest's heading"):
        parsers.parse(TOOL, raw)
