"""SPEC CPU 2026's parser: the formats are SPEC CPU 2017's, whose test has the quirks; the suites are kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Standing
from fleetmark.parsers.spec_cpu2017 import parse as parse_2017
from fleetmark.parsers.spec_cpu2026 import parse
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, identities, read, value
from tests.parsers.spec_cpu import check_row, score

TOOL = "spec_cpu2026"


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    check_row(parsed, row["expected"])
    assert len({c for c in cases(parsed) if c.startswith("7")}) == row["expected"]["n_benchmarks"]
    assert (parsed.invalid, parsed.notes, parsed.standing) == (None, (), Standing.ESTIMATE)
    assert all(m.workload == TOOL for m in parsed.measurements)


def test_the_same_result_in_three_formats() -> None:
    raw, csv, text = (read(TOOL, f"intrate_estimate.{ending}") for ending in ("rsf", "csv", "txt"))
    assert identities(csv) == identities(text)
    assert set(identities(csv)) < set(identities(raw))
    for parsed in (raw, csv, text):
        assert score(parsed, "SPECrate2026_int") == pytest.approx(24.74563, rel=5e-3)
        assert value(parsed, "base_time", case="706.stockfish_r") == pytest.approx(637.204411, rel=1e-3)
        assert value(parsed, "base_copies", case="750.sealcrypto_r") == 16
        assert (parsed.version, parsed.standing, parsed.invalid) == ("1.0.1", Standing.ESTIMATE, None)
        assert parsed.notes == ("INVALID RUN by SPEC's rules for publishing: 'reportable' flag not set during run",)


def test_a_run_of_text_that_cannot_be_read_is_not_renumbered_away() -> None:
    text = (FIXTURES / TOOL / "intrate_estimate.txt").read_text()
    rows = [line for line in text.splitlines() if line.startswith("714.cpython_r")]
    damaged = text.replace(rows[0], rows[0].replace(".", ",").replace("714,", "714."), 1)
    parsed, before = parse(damaged.encode()), parse(text.encode())
    assert value(parsed, "base_run_time", case="714.cpython_r", iteration="1") is None
    for iteration in ("2", "3"):
        time = value(before, "base_run_time", case="714.cpython_r", iteration=iteration)
        assert value(parsed, "base_run_time", case="714.cpython_r", iteration=iteration) == time is not None
    assert any("the row of 714.cpython_r cannot be read, left out" in note for note in parsed.notes)


def test_a_log() -> None:
    parsed = read(TOOL, "runcpu.log")
    assert value(parsed, "base_time", case="706.stockfish_r") == 341.900761  # the median
    assert value(parsed, "base_ratio", case="706.stockfish_r") == 117.93
    assert value(parsed, "base_copies", case="706.stockfish_r") == 32
    assert (parsed.version, parsed.standing) == ("1.0.1", Standing.ESTIMATE)


def test_the_selected_table_alone_and_nothing_that_says_it_is_reportable() -> None:
    parsed = read(TOOL, "selected_only.csv")
    assert score(parsed, "SPECspeed2026_int") == 6.240325
    assert value(parsed, "peak_threads", case="872.marian_s") == 8
    assert (parsed.standing, parsed.notes) == (Standing.ESTIMATE, ())


@pytest.mark.parametrize("path", sorted((FIXTURES / TOOL).iterdir()), ids=lambda path: path.name)
def test_the_parser_for_2017_refuses_these(path: Path) -> None:
    with pytest.raises(ParseError, match=r"\(those of SPEC CPU 2026 are for the parser spec_cpu2026\)"):
        parse_2017(path.read_bytes())


@pytest.mark.parametrize("path", sorted((FIXTURES / "spec_cpu2017").iterdir()), ids=lambda path: path.name)
def test_results_of_2017_are_refused(path: Path) -> None:
    with pytest.raises(ParseError, match=r"\(those of SPEC CPU 2017 are for the parser spec_cpu2017\)"):
        parse(path.read_bytes())


def test_a_log_of_another_suite_without_any_result_is_refused_too() -> None:
    with pytest.raises(ParseError, match="line 2: .* are for the parser spec_cpu2017"):
        parse(b"runcpu v6612 started at 2024-05-20 20:10:40\nsuite: CPU2017 1.1.9\n")
