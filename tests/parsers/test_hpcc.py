"""HPC Challenge: the corpus and a run of our own, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, read, value

TOOL = "hpcc"
KEYS = {
    "HPL_Tflops": ("hpl", 1e-12),
    "StarDGEMM_Gflops": ("dgemm", 1e-9),
    "SingleDGEMM_Gflops": ("dgemm_alone", 1e-9),
    "StarSTREAM_Triad": ("triad", 1e-9),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        if key in KEYS:
            metric, factor = KEYS[key]
            assert (value(parsed, metric) or 0) * factor == pytest.approx(figure, rel=1e-12), key
    assert cases(parsed) == {"2p"} and parsed.invalid is None
    assert parsed.notes == ("the output does not show which BLAS was used",)


def test_our_own_run() -> None:
    parsed = read(TOOL, "1.5.0_openblas_np2.txt")
    assert (parsed.version, parsed.invalid, parsed.notes) == ("1.5.0, OpenBLAS 0.3.21", None, ())
    assert value(parsed, "hpl") == pytest.approx(0.000526165e12)
    assert value(parsed, "dgemm") == pytest.approx(6.61352e9)
    assert (value(parsed, "ranks"), value(parsed, "order")) == (2, 960)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"Success=1", b"Success=0", "hpcc's own checks did not all pass"),
        (
            b"MPIRandomAccess_ErrorsFraction=0\n",
            b"MPIRandomAccess_ErrorsFraction=0.02\n",
            "0.02 of the random updates went wrong",
        ),
        (b"End of Summary section.", b"", "the output is cut: the summary section has no end"),
    ],
)
def test_what_does_not_count(old: bytes, new: bytes, reason: str) -> None:
    raw = (FIXTURES / TOOL / "1.5.0_openblas_np2.txt").read_bytes()
    assert old in raw
    assert parsers.parse(TOOL, raw.replace(old, new)).invalid == reason


def test_of_a_file_that_was_appended_to_the_last_summary_counts() -> None:
    raw = (FIXTURES / TOOL / "1.5.0_openblas_np2.txt").read_bytes()
    parsed = parsers.parse(TOOL, raw.replace(b"HPL_Tflops=0.000526165", b"HPL_Tflops=9") + raw)
    assert value(parsed, "hpl") == pytest.approx(0.000526165e12)
    assert parsed.notes == ("2 summaries in the file: the last counts",)


def test_a_test_that_did_not_run_has_no_figure() -> None:
    raw = b"Begin of Summary section.\nSuccess=1\nCommWorldProcs=4\nHPL_Tflops=0\nPTRANS_GBs=-1\nMPIFFT_Gflops=2\nEnd of Summary section.\n"
    assert {m.metric for m in parsers.parse(TOOL, raw).measurements} == {"fft", "ranks"}


@pytest.mark.parametrize(
    "raw", [b"", b"HPL_Tflops=1\n", b"Begin of Summary section.\nHPL_Tflops=nan\nEnd of Summary section.\n"]
)
def test_what_holds_no_summary_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match=r"hpccoutf\.txt"):
        parsers.parse(TOOL, raw)
