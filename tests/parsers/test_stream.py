"""STREAM's parser against real output and against what happens to it on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed
from fleetmark.parsers.stream import parse
from tests import corpus

FIXTURES = Path(__file__).parent / "fixtures" / "stream"
NOT_VALIDATED = "the output is cut: no 'Solution Validates' line"

TABLE = """\
-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 268435456 (elements), Offset = 0 (elements)
Number of Threads requested = 4
Number of Threads counted = 4
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           18514.5     0.242368     0.231979     0.317779
Scale:          18333.8     0.244441     0.234265     0.356043
Add:            23043.7     0.293571     0.279575     0.377037
Triad:          23314.0     0.291828     0.276334     0.337149
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
"""
RATES = {"copy": 18514.5e6, "scale": 18333.8e6, "add": 23043.7e6, "triad": 23314.0e6}


def values(parsed: Parsed) -> dict[str, float]:
    by_metric = {m.metric: m.value for m in parsed.measurements}
    assert len(by_metric) == len(parsed.measurements)
    return by_metric


def rates(parsed: Parsed) -> dict[str, float]:
    return {k: v for k, v in values(parsed).items() if k in RATES}


def fixture(name: str) -> Parsed:
    return parse((FIXTURES / name).read_bytes())


@pytest.mark.parametrize(("path", "row"), corpus.rows("stream"))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    expected = row["expected"]
    if expected == {"triad_MBps": None}:
        with pytest.raises(ParseError, match=r"stream line 26: expected rows Copy, Scale, Add and Triad"):
            parse(path.read_bytes())
        return
    parsed = parse(path.read_bytes())
    figures = values(parsed)
    for key, value in expected.items():
        if key.endswith("_MBps"):
            metric = key.removesuffix("_MBps").removesuffix("_best")
            assert figures[metric] == pytest.approx(value * 1e6, rel=1e-12)
    assert {m.case for m in parsed.measurements} == {f"{expected['threads']}t"}
    assert parsed.version == "5.10"
    truncated = path.name in ("rdk_arm_6t_double_rule.txt", "oci_icelake_72t.txt")
    assert parsed.invalid == (NOT_VALIDATED if truncated else None)


def test_units_directions_and_times() -> None:
    parsed = parse(TABLE.encode())
    by_metric = {m.metric: m for m in parsed.measurements}
    assert rates(parsed) == RATES
    assert (by_metric["triad"].unit, by_metric["triad"].better) == ("B/s", Better.HIGHER)
    times = [by_metric[f"copy_time_{s}"] for s in ("avg", "min", "max")]
    assert [(t.value, t.unit, t.better) for t in times] == [
        (0.242368, "s", Better.LOWER),
        (0.231979, "s", Better.LOWER),
        (0.317779, "s", Better.LOWER),
    ]
    assert (parsed.invalid, parsed.notes) == (None, ())


def test_official_c() -> None:
    parsed = fixture("official_c_5.10.txt")
    assert (parsed.version, parsed.invalid, parsed.notes) == ("5.10", None, ())
    assert rates(parsed) == {"copy": 53881.1e6, "scale": 42326.6e6, "add": 52689.5e6, "triad": 52238.3e6}
    assert {m.case for m in parsed.measurements} == {"2t"}


def test_official_fortran() -> None:
    parsed = fixture("official_fortran_5.6.txt")
    assert (parsed.version, parsed.invalid, parsed.notes) == ("5.6", None, ())
    assert values(parsed)["triad"] == 6598.5e6
    assert values(parsed)["triad_time_max"] == 0.126838
    assert {m.case for m in parsed.measurements} == {"2t"}


def test_fleetmark_kernels_are_told_from_the_official_ones() -> None:
    parsed = fixture("fleetmark_kernels.txt")
    assert (parsed.version, parsed.invalid) == ("fleetmark-1", None)
    assert parsed.notes == ("Fleetmark's own kernels after STREAM's definition: not a result of the official stream.c",)
    assert rates(parsed) == {"copy": 4235.3e6, "scale": 4019.3e6, "add": 5790.2e6, "triad": 17821.9e6}


def test_failed_validation_is_invalid_and_keeps_its_figures() -> None:
    parsed = fixture("fleetmark_kernels_failed.txt")
    assert parsed.invalid is not None
    assert parsed.invalid.startswith("Failed Validation on array a[]: 1 of 100000 elements differ")
    assert values(parsed)["add"] == 193970.7e6


def test_several_runs_in_one_file() -> None:
    parsed = fixture("fleetmark_kernels_sweep.txt")
    assert parsed.invalid is None
    assert {(m.case, m.value) for m in parsed.measurements if m.metric == "triad"} == {
        ("1t", 21728.7e6),
        ("2t", 58955.3e6),
    }


def test_bad_runs_are_left_out_where_there_are_good_ones() -> None:
    bad = TABLE.replace("Solution Validates: avg", "Failed Validation on array b[], Avg").replace("= 4\n", "= 8\n")
    parsed = parse((bad + TABLE).encode())
    assert parsed.invalid is None
    assert {m.case for m in parsed.measurements} == {"4t"}
    assert len(parsed.notes) == 1
    assert parsed.notes[0].startswith("8t: a run left out: Failed Validation on array b[]")


def test_repeats_of_a_run_keep_their_names() -> None:
    parsed = parse((TABLE + TABLE.replace("23314.0", "23313.9")).encode())
    assert [m.value for m in parsed.measurements if m.metric == "triad"] == [23314.0e6, 23313.9e6]
    assert parsed.notes == ("2 runs in one text, which count as repeats",)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: "\n".join(line.strip() for line in t.splitlines()),
        lambda t: "$ numactl --interleave=all ./stream\nOMP: Info #276: omp_set_nested is deprecated\n" + t,
        lambda t: "".join(f"[1,0]<stdout>:{line}\n" for line in t.splitlines()),
        lambda t: t.replace("Function ", "-" * 61 + "\nFunction "),
        lambda t: t.replace("Copy:", "Copy :").replace("Add:", "ADD"),
        lambda t: "\N{ZERO WIDTH NO-BREAK SPACE}" + t,
        lambda t: t.replace("0.317779", "0.317779 OMP: Warning #181"),
    ],
    ids=["crlf", "unindented", "messages", "mpi prefix", "double rule", "colons", "bom", "message in row"],
)
def test_transport_damage_that_loses_nothing(change: Any) -> None:
    parsed = parse(change(TABLE).encode())
    assert rates(parsed) == RATES
    assert parsed.invalid is None
    assert len(parsed.measurements) == 16


def test_columns_are_read_by_heading() -> None:
    moved = TABLE.replace(
        "Function    Best Rate MB/s  Avg time     Min time     Max time",
        "Function    Min time     Avg (GB/s)  Rate (GB/s)  Max time (ms)",
    ).replace("18514.5     0.242368     0.231979     0.317779", "0.231979     18.40       18.51     317.779")
    moved = "\n".join(line for line in moved.splitlines() if not line.startswith(("Scale", "Add", "Triad")))
    parsed = parse(moved.encode())
    assert values(parsed) == {
        "copy": pytest.approx(18.51e9),
        "copy_avg": pytest.approx(18.40e9),
        "copy_time_min": 0.231979,
        "copy_time_max": pytest.approx(0.317779),
    }
    assert "4t: no triad row" in parsed.notes


def test_rows_alone_are_recognised_by_their_own_order() -> None:
    rows = "\n".join(line for line in TABLE.splitlines() if line.split(":")[0] in ("Copy", "Scale", "Add", "Triad"))
    parsed = parse(rows.encode())
    assert rates(parsed) == RATES
    assert {m.case for m in parsed.measurements} == {"stream"}
    assert parsed.invalid == NOT_VALIDATED
    assert any("no heading" in note for note in parsed.notes)


def test_rows_alone_in_an_unknown_order_are_refused() -> None:
    with pytest.raises(ParseError):
        parse(b"Copy: 0.231979 18514.5 0.242368 0.317779\n")
    with pytest.raises(ParseError):
        parse(b"Triad: 23314.0\n")


def test_best_rate_that_disagrees_with_its_shortest_time() -> None:
    parsed = parse(TABLE.replace("23314.0", "43314.0").encode())
    assert parsed.notes == (
        "4t: best triad rate 43314.0 MB/s disagrees with its own shortest time, which gives 23314.0 MB/s",
    )


def test_text_that_ends_inside_a_row() -> None:
    cut = TABLE[: TABLE.index("0.276334") + 4]
    parsed = parse(cut.encode())
    assert values(parsed)["triad"] == RATES["triad"]
    assert values(parsed)["triad_time_avg"] == 0.291828
    assert "triad_time_min" not in values(parsed)
    assert parsed.invalid == NOT_VALIDATED
    cut = TABLE[: TABLE.index("0.337149") + 5]
    assert "triad_time_max" not in values(parse(cut.encode()))
    cut = TABLE[: TABLE.index("23314.0") + 3]
    assert "triad" not in values(parse(cut.encode()))


def test_a_row_with_a_missing_figure_in_the_middle_is_left_out() -> None:
    parsed = parse(TABLE.replace("18333.8     ", "").encode())
    assert set(rates(parsed)) == {"copy", "add", "triad"}
    assert any("3 figures in the scale row under 4 headings" in note for note in parsed.notes)


@pytest.mark.parametrize("word", ["inf", "-nan", "18333,8", "18.333.8"])
def test_figures_that_are_no_numbers_are_absent(word: str) -> None:
    parsed = parse(TABLE.replace("18333.8", word).encode())
    assert "scale" not in values(parsed)
    assert values(parsed)["copy"] == RATES["copy"]


def test_an_infinite_rate_makes_the_run_invalid_and_leaves_no_time_of_0() -> None:
    row = "Copy:           18514.5     0.242368     0.231979     0.317779"
    absurd = "Copy:           Infinity     0.000000     0.000000     0.000000"
    assert row in TABLE
    parsed = parse(TABLE.replace(row, absurd).encode())
    line = TABLE[: TABLE.index(row)].count("\n") + 1
    assert parsed.invalid == f"line {line}: copy has 'Infinity', which is not a number"
    assert not any(metric.startswith("copy") for metric in values(parsed))
    assert values(parsed)["triad"] == RATES["triad"]
    parsed = parse(TABLE.replace("0.231979", "0.000000").encode())
    assert "copy_time_min" not in values(parsed)
    assert f"line {line}: copy has a figure of 0, less than STREAM prints; left out" in parsed.notes


def test_a_second_run_that_does_not_end_makes_the_text_cut() -> None:
    for end in ("Function", "Triad", "Solution"):
        parsed = parse((TABLE + TABLE[: TABLE.index(end)]).encode())
        assert parsed.invalid == NOT_VALIDATED
        assert [m.value for m in parsed.measurements if m.metric == "triad"] == [RATES["triad"]]


def test_blank_markdown_cell_is_absent() -> None:
    text = "| Function | Avg (MB/s) | Best (MB/s) |\n|---|---|---|\n| Copy | | 42890.7 |\nSolution Validates\n"
    assert values(parse(text.encode())) == {"copy": 42890.7e6}


def test_mpi_ranks_and_threads_make_the_case() -> None:
    text = (
        TABLE.replace("5.10", "1.8")
        .replace("Array size", "Total Aggregate Array size")
        .replace("Number of Threads requested", "Data is distributed across 16 MPI ranks\nNumber of Threads requested")
        .replace("requested = 4", "requested for each MPI rank = 4")
        .replace("counted = 4", "counted for rank 0 = 4")
    )
    parsed = parse(text.encode())
    assert {m.case for m in parsed.measurements} == {"16x4t"}
    assert parsed.version == "1.8"


def test_mixed_processes_are_not_one_run() -> None:
    row = "Copy:           18514.5     0.242368     0.231979     0.317779\n"
    parsed = parse(TABLE.replace(row, row + row.replace("18514.5", "17000.0")).encode())
    assert parsed.invalid is not None
    assert "a second copy row in one table" in parsed.invalid


def test_too_few_clock_ticks_are_noted() -> None:
    parsed = parse(TABLE.replace("Function", "   (= 7 clock ticks)\nFunction").encode())
    assert parsed.notes == ("4t: a kernel took fewer than 20 ticks of the clock: the arrays are too small",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "stream: expected STREAM's table with rows Copy, Scale, Add and Triad, got 'no output'"),
        (
            b"./stream: error while loading shared libraries: libgomp.so.1\n",
            "stream line 1: expected STREAM's table with rows Copy, Scale, Add and Triad, "
            "got './stream: error while loading shared libraries: libgomp.so.1'",
        ),
        (b"the copy was good; add time: fine\n", "stream line 1: expected STREAM's table"),
    ],
)
def test_what_is_no_table_is_an_error_that_says_so(text: bytes, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    assert str(error.value).startswith(message)
