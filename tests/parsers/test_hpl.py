"""Test the HPL parser on the corpus, an HPL run of our own and NVIDIA's format, against figures read by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, identities, value

TOOL = "hpl"
OWN = (FIXTURES / TOOL / "2.0_openblas_np2.txt").read_bytes()
NVIDIA = (FIXTURES / TOOL / "nvidia_24.3_form.txt").read_bytes()


@pytest.mark.parametrize(
    ("path", "row"), [p for p in corpus.rows("hpl_hpcg") if not p.id or "hpl_hpcg/hpl" in p.id or p.id == "no-corpus"]
)
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    expected = row["expected"]
    if expected["gflops"] is None:
        with pytest.raises(ParseError, match="a row with T/V"):
            parsers.parse(TOOL, path.read_bytes())
        return
    parsed = parsers.parse(TOOL, path.read_bytes())
    assert value(parsed, "hpl") == pytest.approx(expected["gflops"] * 1e9)
    assert value(parsed, "solve_time") == expected["time_s"] and value(parsed, "order") == expected["N"]
    assert parsed.invalid is None


def test_our_own_run() -> None:
    parsed = parsers.parse(TOOL, OWN)
    assert parsed.version == "HPLinpack 2.0" and parsed.invalid is None
    assert cases(parsed) == {"n960-nb64-1x2"} and value(parsed, "ranks") == 2
    assert [value(parsed, name) for name in ("order", "block", "grid_rows", "grid_columns")] == [960, 64, 1, 2]
    assert value(parsed, "hpl") == pytest.approx(5.262e-01 * 1e9)


def test_nvidias_form_has_a_rate_for_each_gpu() -> None:
    parsed = parsers.parse(TOOL, NVIDIA)
    assert parsed.version == "HPL-NVIDIA 24.3.0, HPLinpack 2.1" and parsed.invalid is None
    assert value(parsed, "hpl") == pytest.approx(8.534e13) and value(parsed, "hpl_per_gpu") == pytest.approx(2.133e13)
    assert value(parsed, "residual") == 0.00041277335 and value(parsed, "ranks") == 4


@pytest.mark.parametrize("raw", [OWN, NVIDIA])
@pytest.mark.parametrize("prefix", [b"[1,0]<stdout>:", b"0: "])
def test_tags_of_launchers_are_no_part_of_a_line(raw: bytes, prefix: bytes) -> None:
    tagged = b"".join(prefix + line for line in raw.splitlines(keepends=True))
    assert parsers.parse(TOOL, tagged) == parsers.parse(TOOL, raw)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"PASSED", b"FAILED", "the residual check of n184320-nb1024-2x2 FAILED: 0.000412773350"),
        (b"0.000412773350 ...... PASSED", b"nan ...... FAILED", "the residual check of n184320-nb1024-2x2 FAILED: nan"),
        (b"...... PASSED", b"", "n184320-nb1024-2x2 has no residual check"),
        (b"End of Tests.", b"", "the output is cut: End of Tests. is missing"),
        (
            b"0 tests completed and failed residual checks",
            b"1 tests completed without checking",
            "1 tests completed without checking",
        ),
    ],
)
def test_what_does_not_pass(old: bytes, new: bytes, reason: str) -> None:
    assert old in NVIDIA
    assert parsers.parse(TOOL, NVIDIA.replace(old, new)).invalid == reason


ROW = b"WR00R2L1         960    64     1     2               1.20              4.000e+00\n"
CHECK = b"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0026 ...... "


def test_of_several_systems_only_those_that_failed_are_invalid() -> None:
    other = ROW.replace(b"960    64", b"1920    64")
    parsed = parsers.parse(TOOL, ROW + CHECK + b"FAILED\n" + other + CHECK + b"PASSED\nEnd of Tests.\n")
    assert parsed.invalid == "the residual check of n960-nb64-1x2 FAILED: 0.0026"
    assert parsed.invalid_cases == ("n960-nb64-1x2",) and cases(parsed) == {"n960-nb64-1x2", "n1920-nb64-1x2"}


def test_each_of_three_older_checks_must_pass() -> None:
    older = b"||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0674622 ...... "
    raw = ROW + older + b"PASSED\n" + older + b"FAILED\n" + older + b"PASSED\nEnd of Tests.\n"
    assert parsers.parse(TOOL, raw).invalid == "the residual check of n960-nb64-1x2 FAILED: 0.0674622"


def test_the_fastest_of_equal_rows_counts_unless_one_failed() -> None:
    fast = ROW.replace(b"4.000e+00", b"5.000e+00")
    other = ROW.replace(b"WR00R2L1", b"WR00R2R4")
    rows = [ROW, fast, other]
    parsed = parsers.parse(TOOL, b"".join(row + CHECK + b"PASSED\n" for row in rows) + b"End of Tests.\n")
    assert parsed.notes == ("1 more rows with the same N, NB, P, Q and variant: the fastest counts",)
    assert value(parsed, "hpl", variant="WR00R2L1") == 5e9 and value(parsed, "hpl", variant="WR00R2R4") == 4e9
    assert len(set(identities(parsed))) == len(parsed.measurements)
    failed = ROW + CHECK + b"FAILED\n" + fast + CHECK + b"PASSED\nEnd of Tests.\n"
    assert "FAILED" in (parsers.parse(TOOL, failed).invalid or "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no output"),
        (
            b"HPL ERROR from process # 0, on line 419 of function HPL_pdinfo:\n>>> Need at least 4 processes for these tests <<<\n\n",
            "HPL ERROR from process # 0",
        ),
    ],
)
def test_what_solves_nothing_is_refused_with_the_programs_own_error(raw: bytes, words: str) -> None:
    with pytest.raises(ParseError, match="a row with T/V") as error:
        parsers.parse(TOOL, raw)
    assert words in str(error.value)
