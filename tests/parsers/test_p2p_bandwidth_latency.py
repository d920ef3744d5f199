"""p2pBandwidthLatencyTest: the corpus, and a run in the tool's form, held against figures read by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, identities, read, value

TOOL = "p2p_bandwidth_latency"
METRICS = {"uni": "bandwidth", "bidi": "bidirectional_bandwidth"}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        words = key.split("_")
        metric, scale = ("latency", 1e-6) if "latency" in words else (METRICS[words[0]], 1e9)
        ends = {"from": f"gpu{words[-2][0]}", "to": f"gpu{words[-2][1]}"}
        case = "p2p" if "on" in words else "no-p2p"
        assert value(parsed, metric, case=case, **ends) == pytest.approx(figure * scale), key
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


def test_matrices_of_three_gpus() -> None:
    parsed = read(TOOL, "three_gpus.txt")
    ends = {"from": "gpu2", "to": "gpu1"}
    assert value(parsed, "bandwidth", case="no-p2p", **ends) == pytest.approx(37.11e9)
    assert value(parsed, "bidirectional_bandwidth", case="p2p", **ends) == pytest.approx(50.15e9)
    assert value(parsed, "latency", case="p2p", **ends) == pytest.approx(14.05e-6)
    assert value(parsed, "launch_latency", case="p2p", **ends) == pytest.approx(4.91e-6)
    assert len(parsed.measurements) == 4 * 9, "the connectivity matrix holds no figures"


def test_a_matrix_without_all_rows_is_cut() -> None:
    raw = (FIXTURES / TOOL / "three_gpus.txt").read_bytes()
    parsed = parsers.parse(TOOL, raw[: raw.index(b"     2  50.18")])
    assert parsed.invalid == "the output is cut: Bidirectional P2P=Enabled Bandwidth Matrix (GB/s) has 2 of 3 rows"


@pytest.mark.parametrize(
    "raw", [b"", b"cudaGetDeviceCount failed\n", b"P2P=Enabled Latency Matrix (us)\n   GPU 0\n 0 x\n"]
)
def test_what_holds_no_matrix_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="a matrix of bandwidths or latencies"):
        parsers.parse(TOOL, raw)


def test_a_figure_beyond_all_numbers_is_left_out() -> None:
    raw = (FIXTURES / TOOL / "three_gpus.txt").read_bytes().replace(b"37.11", b"1e308")
    assert len(parsers.parse(TOOL, raw).measurements) == 4 * 9 - 1
