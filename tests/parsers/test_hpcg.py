"""Test the HPCG parser on the corpus and on a summary of version 3.1, against figures read by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, value

TOOL = "hpcg"
WHOLE = (FIXTURES / TOOL / "3.1_form.txt").read_bytes()


@pytest.mark.parametrize(
    ("path", "row"), [p for p in corpus.rows("hpl_hpcg") if not p.id or "hpl_hpcg/hpcg" in p.id or p.id == "no-corpus"]
)
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    expected = row["expected"]
    parsed = parsers.parse(TOOL, path.read_bytes())
    assert value(parsed, "hpcg") == pytest.approx(expected.get("final_GF", expected.get("gflops")) * 1e9)
    assert parsed.invalid is None
    says_valid = expected.get("valid", False)
    assert ("the output contains neither VALID nor INVALID" in parsed.notes) is not says_valid


def test_the_summary() -> None:
    parsed = parsers.parse(TOOL, WHOLE)
    assert (parsed.version, parsed.invalid, parsed.notes) == ("3.1", None, ())
    assert cases(parsed) == {"4p"} and value(parsed, "threads") == 16
    assert value(parsed, "hpcg") == 361.125e9 and value(parsed, "spmv") == 331.2e9
    assert value(parsed, "multigrid") == 382.75e9 and value(parsed, "memory_bandwidth") == 2841.5e9


YAML = b"""HPCG-Benchmark version: 3.0
Machine Summary:
  Distributed Processes: 8
  Threads per processes: 1
Spectral Convergence Tests:
  Result: PASSED
  Unpreconditioned:
    Maximum iteration count: 11
Benchmark Time Summary:
  Optimization phase: 3e-07
  Total: 1830.5
GB/s Summary:
  Raw Total B/W: 25.5
GFLOP/s Summary:
  Raw SpMV: 3.1
  Raw MG: 3.4
__________ Final Summary __________:
  HPCG result is VALID with a GFLOP/s rating of: 3.28908
      HPCG 2.4 Rating (for historical value) is: 3.3
"""


def test_the_yaml_of_version_3_0() -> None:
    parsed = parsers.parse(TOOL, YAML)
    assert (parsed.version, parsed.invalid, parsed.notes) == ("3.0", None, ())
    assert cases(parsed) == {"8p"} and value(parsed, "hpcg") == pytest.approx(3.28908e9)
    assert value(parsed, "multigrid") == 3.4e9 and value(parsed, "solve_time") == 1830.5
    assert parsers.parse(TOOL, YAML.replace(b"Result: PASSED", b"Result: FAILED")).invalid == (
        "Spectral Convergence Tests: FAILED"
    )


def test_the_line_that_vendors_print_on_stdout() -> None:
    parsed = parsers.parse(TOOL, b"HPCG result is VALID with a GFLOP/s rating of 3.289080\n")
    assert value(parsed, "hpcg") == pytest.approx(3.28908e9) and parsed.invalid is None
    assert cases(parsed) == {"run"}


def test_a_short_run_says_that_it_is_not_official() -> None:
    parsed = parsers.parse(TOOL, WHOLE.replace(b"Total=1812.25", b"Total=61.5"))
    assert parsed.invalid is None and parsed.notes == ("61.5 s, but an official result needs 1800 s",)


VALID = b"Final Summary::HPCG result is VALID with a GFLOP/s rating of=361.125\n"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (VALID, b"Final Summary::HPCG result is=INVALID.\n", "HPCG calls the result INVALID"),
        (b"Tests::Result=PASSED", b"Tests::Result=FAILED", "Spectral Convergence Tests: FAILED"),
    ],
)
def test_what_does_not_pass(old: bytes, new: bytes, reason: str) -> None:
    assert old in WHOLE
    assert parsers.parse(TOOL, WHOLE.replace(old, new)).invalid == reason


def test_a_rating_that_is_cut_is_none() -> None:
    assert parsers.parse(TOOL, WHOLE[: WHOLE.index(b".125\n")]).invalid == "the output is cut: it ends inside line 23"


LONG = VALID.replace(b"361.125", b"9" * 30)  # no part of a number counts


@pytest.mark.parametrize("raw", [b"", b"version=3.1\n", b"Final Summary::HPCG result is=INVALID.\n", LONG])
def test_what_holds_no_rating_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="HPCG result is VALID"):
        parsers.parse(TOOL, raw)


@pytest.mark.parametrize(
    "text",
    [
        "Final Summary::HPCG result is VALID with a GFLOP/s rating of=-1\n",
        "final =  -1.5 GF (1536.3 GB/s Effective)\nend of application...\n",
        "HPCG result is: INVALID.\nGFLOP/s Summary::Raw SpMV=-1\n",
    ],
)
def test_an_output_without_a_positive_figure_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="expected HPCG result is VALID with a GFLOP/s rating of"):
        parsers.parse(TOOL, text.encode())
