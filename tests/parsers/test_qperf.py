"""qperf: the corpus and runs of our own, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, read, value

TOOL = "qperf"
KEYS = {
    "tcp_bw_GB_s": ("tcp_bw", "bandwidth", 1e-9),
    "tcp_lat_us": ("tcp_lat", "latency", 1e6),
    "udp_lat_us": ("udp_lat", "latency", 1e6),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        case, metric, factor = KEYS[key]
        assert (value(parsed, metric, case=case) or 0) * factor == pytest.approx(figure, rel=1e-12), key
    assert (parsed.version, parsed.invalid) == ("0.4.11", None)


def test_each_line_has_its_own_unit() -> None:
    parsed = read(TOOL, "0.4.11_udp_bw_verbose.txt")
    figures = {m.metric: (m.value, m.unit) for m in parsed.measurements}
    assert figures == {
        "bandwidth": (1.32e9, "B/s"),
        "sent_bandwidth": (2.51e9, "B/s"),
        "message_rate": (40400.0, "1/s"),
    }
    assert value(read(TOOL, "0.4.11_tcp_lat.txt"), "latency") == pytest.approx(15.7e-6)
    assert value(parsers.parse(TOOL, b"tcp_bw:\n    bw  =  325,580,303 bytes/sec\n"), "bandwidth") == 325580303
    assert value(parsers.parse(TOOL, b"tcp_bw:\n    bw  =  840 Mb/sec\n"), "bandwidth") == 105e6  # with -ub
    assert value(parsers.parse(TOOL, b"tcp_bw:\n    bw  =  640 bits/sec\n"), "bandwidth") == 80


def test_the_configuration_behind_the_figures_marks_the_end() -> None:
    raw = (FIXTURES / TOOL / "0.4.11_tcp_lat.txt").read_bytes()
    short = raw[: raw.index(b"conf:")]
    assert parsers.parse(TOOL, short).invalid is None
    reason = "the output is cut: the configuration at its end is not complete"
    assert parsers.parse(TOOL, short, ["qperf", "h2", "tcp_lat", "conf"]).invalid == reason


def test_a_test_without_a_figure() -> None:
    raw = b"tcp_bw:\n    bw  =  325580303 bytes/sec\nsctp_bw:\n"
    assert parsers.parse(TOOL, raw).invalid == "the output is cut: sctp_bw has no figure"


@pytest.mark.parametrize(
    "raw", [b"", b"tcp_bw:\nh2: failed to connect\n", b"    bw = 3 GB/sec\n", b"a_lat:\n    latency = 3 GB/sec\n"]
)
def test_what_holds_no_figure_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="a line of qperf"):
        parsers.parse(TOOL, raw)
