"""hccl_test as a workload: the table of a public document, the best size, and what is none of it."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.parsers import parse
from tests.corpus import ROOT

TABLE = b"""the minbytes is 8192, maxbytes is 16384, iters is 20, warmup_iters is 10
data_size(Bytes): |   aveg_time(us): | alg_bandwidth(GB/s): | check_result:
8192              |     71.32       |       0.11486        | success
16384             |     73.05       |       0.22428        | success
"""


def test_the_best_of_all_sizes_stands_beside_them() -> None:
    parsed = parse("hccl_test", TABLE, ["mpirun", "-np", "8", "/opt/hccl_test/bin/all_reduce_test", "-e", "16384"])
    assert {m.case for m in parsed.measurements} == {"hccl-all_reduce"}
    assert parsed.invalid is None
    (peak,) = [m for m in parsed.measurements if m.metric == "peak_algbw"]
    assert (peak.value, peak.unit, peak.workload) == (pytest.approx(0.22428e9), "B/s", "hccl_test")


def test_a_failed_check_is_invalid_and_a_short_table_is_cut() -> None:
    assert "wrong data" in str(parse("hccl_test", TABLE.replace(b"success\n", b"failed\n", 1)).invalid)
    assert "cut" in str(parse("hccl_test", TABLE.replace(b"maxbytes is 16384", b"maxbytes is 65536")).invalid)


def test_the_table_of_a_public_document() -> None:
    file = ROOT / "nccl_variants" / "hccl_test_reduce_scatter_docs.txt"
    if not file.exists():
        pytest.skip(f"corpus absent: no {file}")
    parsed = parse("hccl_test", file.read_bytes())
    figures = {m.metric: m.value for m in parsed.measurements}
    assert figures == {"time": 1e-3, "algbw": pytest.approx(6e4), "peak_algbw": pytest.approx(6e4)}


@pytest.mark.parametrize("text", ["", "mpirun: command not found\n", "#  size  count  type\n"])
def test_other_output_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="hccl_test"):
        parse("hccl_test", text.encode())
