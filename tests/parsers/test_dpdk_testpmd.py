"""dpdk-testpmd: the corpus, and a run of the null driver on this machine, held against figures read by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, identities, read, value

TOOL = "dpdk_testpmd"
PORT = b"  ######################## NIC statistics for port 0  ########################\n"


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        assert value(parsed, key) == figure
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


def test_the_null_driver_has_rates_and_no_bandwidth() -> None:
    parsed = read(TOOL, "null_io_22.11.txt")
    rates = [value(parsed, "tx_rate", subject=f"port{n}") for n in (0, 1)]
    assert None not in rates and value(parsed, "packet_rate") == sum(r or 0 for r in rates)
    assert value(parsed, "tx_bandwidth", subject="port0") is None
    assert value(parsed, "loss") == 0 and parsed.invalid is None


def test_a_real_ports_bits_and_drops() -> None:
    seconds = [(0, 0), (14_880_000, 7_618_560_000), (14_880_100, 7_618_611_200), (14_879_900, 7_618_508_800)]
    blocks = b"".join(PORT + b"  Tx-pps: %12d          Tx-bps: %12d\n" % figures for figures in seconds)
    end = b"  +++++ Accumulated forward statistics for all ports+++++\n"
    rx = b"  RX-packets: 900            RX-dropped: 90            RX-total: 990\n"
    tx = b"  TX-packets: 890            TX-dropped: 10             TX-total: 900\n"
    parsed = parsers.parse(TOOL, b"Set mac packet forwarding mode\n" + blocks + end + rx + tx)
    assert value(parsed, "tx_rate", subject="port0", case="mac") == 14_880_000
    assert value(parsed, "tx_bandwidth", subject="port0") == 7_618_560_000 / 8
    assert value(parsed, "loss") == pytest.approx(100 / 990)


def test_without_the_statistics_at_the_end_it_is_cut() -> None:
    raw = (FIXTURES / TOOL / "null_io_22.11.txt").read_bytes()
    parsed = parsers.parse(TOOL, raw[: raw.index(b"Telling cores to stop")])
    assert parsed.invalid == "the output is cut: no statistics of all ports at the end"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "none"),
        (b"EAL: Error - exiting with code: 1\n  Cause: No probed ethernet devices\n", "No probed ethernet devices"),
    ],
)
def test_what_counts_no_packet_is_refused_with_the_reason(raw: bytes, words: str) -> None:
    with pytest.raises(ParseError, match="statistics of a port") as error:
        parsers.parse(TOOL, raw)
    assert words in str(error.value)
