"""Test SPEC CPU 2017's parser with real reports, the four formats of one result, and damage to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Standing
from fleetmark.parsers.spec_cpu2017 import parse
from fleetmark.parsers.spec_cpu2026 import parse as parse_2026
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value
from tests.parsers.spec_cpu import check_row, score

TOOL = "spec_cpu2017"

HEADING = """\
                 Base     Base        Base        Peak     Peak        Peak
Benchmarks       Copies  Run Time     Rate        Copies  Run Time     Rate 
--------------- -------  ---------  ---------    -------  ---------  ---------
"""  # noqa: W291
FOOTER = "Tested with SPEC CPU(R)2017 v1.1.9 on 2024-05-21 08:14:02+0000.\n"
RULER = "=" * 81 + "\n"
CSV_HEADING = (
    'Benchmark,"Base # Copies","Base Run Time","Base Rate","Base Selected","Base Status",'
    '"Peak # Copies","Peak Run Time","Peak Rate","Peak Selected","Peak Status",Description\n'
)


def fixture(name: str) -> str:
    return (FIXTURES / TOOL / name).read_text()


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    check_row(parsed, row["expected"])
    if "consistent" not in row["expected"]:
        assert not any("but the geometric mean" in note for note in parsed.notes)
    assert (parsed.invalid is None) == (path.name != "intrate_win_arm64_CE_invalid.txt")
    with pytest.raises(ParseError, match="those of SPEC CPU 2017 are for the parser spec_cpu2017"):
        parse_2026(path.read_bytes())


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus_versions(path: Path, row: Mapping[str, Any]) -> None:
    stated = {
        "fprate_base_E7-8890v4.csv": "0.904.0",  # before the first release; the manifest has the year
        "intrate_win_arm64_CE_invalid.txt": "1.1.8",
        "intrate1_graviton5_est.txt": None,
        "intrate1_kirin9010_handmade_table.txt": None,
    }
    assert parse(path.read_bytes()).version == stated.get(path.name, row["tool_version"].removeprefix("v"))


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus_selected_runs_are_the_median_by_time_and_slower_of_two(path: Path, row: Mapping[str, Any]) -> None:
    parsed = parse(path.read_bytes())
    runs: dict[tuple[str, str], list[float]] = {}
    for m in parsed.measurements:
        if m.metric in ("base_run_time", "peak_run_time"):
            runs.setdefault((m.case, m.metric[:4]), []).append(m.value)
    for (case, tune), times in runs.items():
        chosen = value(parsed, f"{tune}_time", case=case)
        assert chosen == sorted(times)[len(times) // 2]
    assert row["file"].endswith(("handmade_table.txt",)) or runs


def test_the_same_result_in_three_formats() -> None:
    raw, csv, text = (read(TOOL, f"intrate_reportable.{ending}") for ending in ("rsf", "csv", "txt"))
    precise = {i: m.value for i, m in zip(identities(csv), csv.measurements, strict=True)}
    rounded = {i: m.value for i, m in zip(identities(text), text.measurements, strict=True)}
    assert precise.keys() == rounded.keys()
    for place, figure in precise.items():
        assert rounded[place] == pytest.approx(figure, rel=5e-3)
    everything = {i: m.value for i, m in zip(identities(raw), raw.measurements, strict=True)}
    threads = {i for i in everything if i[1] in ("base_threads", "peak_threads")}
    assert {i: v for i, v in everything.items() if i not in threads} == precise
    assert {everything[i] for i in threads} == {1.0}
    for parsed in (raw, csv, text):
        assert (parsed.version, parsed.invalid, parsed.notes, parsed.standing) == ("1.1.9", None, (), None)
        assert len(set(identities(parsed))) == len(parsed.measurements)


def test_every_metric_has_its_unit_and_direction() -> None:
    parsed = read(TOOL, "intrate_power.txt")
    kinds = {m.metric.removeprefix("base_").removeprefix("peak_"): (m.unit, m.better) for m in parsed.measurements}
    assert kinds == {
        "ratio": ("1", Better.HIGHER),
        "time": ("s", Better.LOWER),
        "run_ratio": ("1", Better.HIGHER),
        "run_time": ("s", Better.LOWER),
        "copies": ("1", Better.NONE),
        "energy": ("J", Better.LOWER),
        "max_power": ("W", Better.LOWER),
        "avg_power": ("W", Better.LOWER),
        "energy_ratio": ("1", Better.HIGHER),
        "score": ("1", Better.HIGHER),
    }


def test_selected_run_and_every_iteration() -> None:
    parsed = read(TOOL, "intrate_reportable.csv")
    assert value(parsed, "peak_time", case="520.omnetpp_r") == 669.8841
    assert value(parsed, "peak_ratio", case="520.omnetpp_r") == 94.010292
    runs = [value(parsed, "peak_run_time", case="520.omnetpp_r", iteration=str(i)) for i in (1, 2, 3)]
    assert runs == [671.20199, 668.319402, 669.8841]
    assert value(parsed, "base_copies", case="505.mcf_r") == 48
    assert value(parsed, "peak_copies", case="505.mcf_r") == 24
    assert cases(parsed) == {"500.perlbench_r", "505.mcf_r", "520.omnetpp_r", "557.xz_r", "SPECrate2017_int"}


def test_power_in_text_and_csv() -> None:
    text, csv = read(TOOL, "intrate_power.txt"), read(TOOL, "intrate_power.csv")
    for parsed, energy, power in ((text, 222e3, 410.0), (csv, 221893.4, 410.1)):
        assert value(parsed, "base_energy", case="500.perlbench_r") == energy
        assert value(parsed, "base_avg_power", case="500.perlbench_r") == power
        assert value(parsed, "peak_copies", case="505.mcf_r") == 32
        assert parsed.invalid is None
    assert value(text, "base_max_power", case="557.xz_r") == 398
    assert score(text, "SPECrate2017_int_energy") == 818
    assert (score(text, "SPECrate2017_int"), score(text, "SPECrate2017_int", "peak")) == (143, None)
    # A benchmark that was not run has five columns even here, so the columns after it are shifted.
    assert value(csv, "base_time", case="557.xz_r") is None
    assert value(csv, "peak_time", case="557.xz_r") == 650.118009
    assert value(csv, "peak_avg_power", case="557.xz_r") == 371.1
    assert csv.notes[-2:] == (
        "base: 1 of 3 benchmarks were not run: 557.xz_r",
        "peak: 1 of 3 benchmarks were not run: 500.perlbench_r",
    )


def test_a_score_of_a_part_of_the_suite_is_left_out() -> None:
    csv = CSV_HEADING + (
        '500.perlbench_r,8,412.480117,30.876643,1,S,,,,,,"refrate(ref) iteration #1"\n'
        "505.mcf_r,,,,,NR,,,,,NR\n557.xz_r,,,,,NR,,,,,NR\n\nSPECrate2017_int_base,30.876643,,30.876643\n"
    )
    keys = {
        "basemean": "30.876643",
        "errors000": "500.perlbench_r (base) did not have enough runs!",
        "errors001": "505.mcf_r (base) did not have enough runs!",
        "errors002": "557.xz_r (base) did not have enough runs!",
        "name": "intrate",
        "size": "refrate (ref)",
        "results.500_perlbench_r.base.000.reported_time": "412.480117",
        "results.500_perlbench_r.base.000.ratio": "30.876643",
        "results.500_perlbench_r.base.000.selected": "1",
        "results.500_perlbench_r.base.000.valid": "S",
    }
    raw = "".join(f"spec.cpu2017.{key}: {text}\n" for key, text in keys.items())
    for text, line in ((csv, 6), (raw, 1)):
        parsed = parse(text.encode())
        assert cases(parsed) == {"500.perlbench_r"}
        assert parsed.notes[0] == (
            f"line {line}: SPECrate2017_int base is printed as 30.876643, left out: only a part of the suite was run"
        )


def test_peak_alone_is_not_taken_for_base() -> None:
    parsed = read(TOOL, "intspeed_peak_only.txt")
    assert {m.metric for m in parsed.measurements} == {
        *("peak_time", "peak_ratio", "peak_threads", "peak_run_time", "peak_run_ratio", "peak_score")
    }
    assert value(parsed, "peak_threads", case="605.mcf_s") == 16
    assert (parsed.invalid, parsed.standing) == (None, Standing.ESTIMATE)


def test_an_estimate_is_not_invalid_for_formal_reasons_alone() -> None:
    for ending in ("txt", "csv"):
        parsed = read(TOOL, f"fpspeed_estimate.{ending}")
        assert (parsed.invalid, parsed.standing) == (None, Standing.ESTIMATE)
        assert parsed.notes == (
            "INVALID RUN by SPEC's rules for publishing: 'reportable' flag not set during run; "
            "Unknown flags were used!; some benchmarks did not have enough runs",
        )
        assert value(parsed, "base_time", case="619.lbm_s") == pytest.approx(61.25, rel=1e-3)  # the slower of two


def test_other_reasons_for_an_invalid_run_make_it_invalid() -> None:
    text = fixture("fpspeed_estimate.txt").replace(
        "'reportable' flag not set during run", "Sources were changed!".ljust(36)
    )
    assert parse(text.encode()).invalid == "INVALID RUN: Sources were changed!"
    csv = fixture("fpspeed_estimate.csv").replace(
        "'reportable' flag not set during run", "Sources were changed!".ljust(36)
    )
    assert parse(csv.encode()).invalid == "INVALID RUN: Sources were changed!"
    banner = "#  INVALID RUN -- INVALID RUN #\n#  #\n#   INVALID RUN -- INVALID RUN #\n"
    assert parse((banner + fixture("intrate_reportable.txt")).encode()).invalid == "INVALID RUN, with no reason given"


def test_failures_are_named_and_what_finished_is_kept() -> None:
    parsed = read(TOOL, "intrate_failures.txt")
    assert parsed.invalid == (
        "some benchmarks failed: CE (compile error): 502.gcc_r base; VE (verification error): 520.omnetpp_r base"
    )
    assert cases(parsed) == {"500.perlbench_r", "505.mcf_r", "541.leela_r"}
    assert (parsed.version, parsed.standing) == ("1.0.5", Standing.ESTIMATE)
    assert parsed.notes == ("base: 1 of 4 benchmarks were not run: 557.xz_r",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nothing_finished.csv",
            "spec_cpu2017 line 9: expected a benchmark that finished, got '505.mcf_r base ended CE (compile error)'",
        ),
        (
            "noncompliant.csv",
            "spec_cpu2017 line 8: expected a benchmark that finished, got '503.bwaves_r base ended NC (non-compliant)'",
        ),
    ],
)
def test_nothing_finished(name: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        read(TOOL, name)
    assert str(error.value) == message


def test_the_time_of_a_failed_run_is_no_result() -> None:
    text = fixture("intrate_reportable.csv").replace(
        "505.mcf_r,48,618.777001,125.356954,0,S", "505.mcf_r,48,618.777001,--,0,VE"
    )
    parsed = parse(text.encode())
    assert value(parsed, "base_run_time", case="505.mcf_r", iteration="2") is None
    assert value(parsed, "base_run_time", case="505.mcf_r", iteration="3") == 609.030558
    assert parsed.invalid == "some benchmarks failed: VE (verification error): 505.mcf_r base"
    assert (
        "505.mcf_r base iteration 2 ended VE (verification error): its time is not a result and is left out"
        in parsed.notes
    )


def test_the_workload_test_has_times_apart_and_no_ratios() -> None:
    for ending, time in (("txt", 11.9), ("csv", 11.905341)):
        parsed = read(TOOL, f"intrate_test.{ending}")
        assert {m.metric for m in parsed.measurements} == {"base_time", "base_run_time", "base_copies"}
        assert value(parsed, "base_time", case="500.perlbench_r", size="test") == time
        assert find(parsed, "base_run_time", case="500.perlbench_r", size="test", iteration="1") is not None
        assert (parsed.standing, parsed.invalid) == (Standing.ESTIMATE, None)
    lost = fixture("intrate_test.txt").replace("# Input set must be", "# Something else be")
    assert value(parse(lost.encode()), "base_time", case="500.perlbench_r", size="unknown") == 11.9


def test_raw_results_of_the_workload_test() -> None:
    lines = [
        ("invalid", "1"),
        ("name", "intrate"),
        ("basemean", "0"),
        ("size", "test"),
        ("results.500_perlbench_r.base.000.reported_time", "26.302816"),
        ("results.500_perlbench_r.base.000.ratio", "--"),
        ("results.500_perlbench_r.base.000.selected", "1"),
        ("results.500_perlbench_r.base.000.valid", "S"),
        ("results.505_mcf_r.base.000.reported_time", "0.000571"),
        ("results.505_mcf_r.base.000.valid", "RE"),
    ]
    parsed = parse("".join(f"spec.cpu2017.{key}: {text}\n" for key, text in lines).encode())
    assert value(parsed, "base_time", case="500.perlbench_r", size="test") == 26.302816
    assert cases(parsed) == {"500.perlbench_r"}
    assert parsed.invalid == "some benchmarks failed: RE (run-time error): 505.mcf_r base"


def test_table_made_by_hand() -> None:
    parsed = read(TOOL, "handmade.txt")
    assert score(parsed, "SPECrate2017_int") == 4.58
    assert value(parsed, "base_time", case="557.xz_r") == 402
    assert find(parsed, "base_run_time", case="557.xz_r") is None
    assert (parsed.notes, parsed.standing, parsed.version) == ((), Standing.ESTIMATE, None)
    unmarked = fixture("handmade.txt").replace("  *\n", "\n")
    assert identities(parse(unmarked.encode())) == identities(parsed)


def test_a_log_that_was_interrupted() -> None:
    parsed = read(TOOL, "runcpu_interrupted.log")
    assert cases(parsed) == {"500.perlbench_r", "505.mcf_r"}
    assert value(parsed, "base_time", case="500.perlbench_r") == 417.700152  # the slower of two
    assert value(parsed, "base_ratio", case="500.perlbench_r") == 60.98
    assert value(parsed, "base_run_time", case="500.perlbench_r", iteration="1") == 416.816327
    assert value(parsed, "base_copies", case="505.mcf_r") == 16
    assert find(parsed, "base_score") is None
    assert (parsed.version, parsed.standing) == ("1.1.9", Standing.ESTIMATE)
    assert parsed.invalid == "the output is cut: the log has no line 'runcpu finished at'"
    ended = fixture("runcpu_interrupted.log") + "runcpu finished at 2024-05-20 20:50:00; 2360 total seconds elapsed\n"
    assert parse(ended.encode()).invalid is None
    assert parsed.notes == (
        "line 41: 505.mcf_r base refrate began and never ended",
        "2 runs of the workload test and train left out: they only check the build",
        "a log names no selected run: the run with the median time is used, or the slower of two",
    )


def test_a_log_cut_before_the_reference_runs_has_times_of_the_others() -> None:
    text = fixture("runcpu_interrupted.log").split("  Running (#1)")[0]
    parsed = parse(text.encode())
    assert value(parsed, "base_time", case="500.perlbench_r", size="test") == 17.305533


def test_a_log_with_failures() -> None:
    parsed = read(TOOL, "runcpu_failures.log")
    assert value(parsed, "base_avg_power", case="505.mcf_r") == 311.25
    assert cases(parsed) == {"505.mcf_r"}
    assert parsed.invalid == (
        "some benchmarks failed: VE (verification error): 557.xz_r base; "
        "CE (compile error): 548.exchange2_r base; set-up error: 541.leela_r base"
    )
    lines = [line for line in fixture("runcpu_failures.log").splitlines() if "Success" not in line]
    with pytest.raises(ParseError, match=r"line 7: .* got '548\.exchange2_r base ended CE \(compile error\)'"):
        parse("\n".join(lines).encode())
    built = "runcpu v6612 started at 2024\n*** Error building 505.mcf_r base\n"
    with pytest.raises(ParseError, match=r"line 2: .* got '505\.mcf_r base ended CE"):
        parse(built.encode())


def test_a_log_with_the_table_in_it_counts_once() -> None:
    table = HEADING + RULER + "505.mcf_r            16        628       41.2  *\n SPECrate(R)2017_int_base    41.2\n"
    parsed = parse((fixture("runcpu_interrupted.log").split("  Running (#2)")[0] + table).encode())
    assert value(parsed, "base_time", case="505.mcf_r") == 627.570042
    assert len(set(identities(parsed))) == len(parsed.measurements)
    assert any(note.startswith("the text result from line 1 left out") for note in parsed.notes)


def test_a_spoilt_power_measurement_spoils_no_time() -> None:
    text = fixture("intrate_power.csv").replace("188.261046,1,S,221893.4", "188.261046,1,PE,221893.4")
    parsed = parse(text.encode())
    assert value(parsed, "base_time", case="500.perlbench_r") == 541.204911
    assert find(parsed, "base_energy", case="500.perlbench_r") is None
    assert find(parsed, "base_avg_power", case="500.perlbench_r") is None
    assert parsed.invalid is None
    assert any("500.perlbench_r base iteration 1 ended PE (power measurement error)" in note for note in parsed.notes)


def test_a_banner_without_its_table_still_names_who_failed() -> None:
    banner = fixture("intrate_failures.txt").split("                             SPEC(R)")[0]
    with pytest.raises(ParseError, match=r"line 2: .* got '502\.gcc_r base ended CE \(compile error\)'"):
        parse(banner.encode())


def test_a_run_that_nobody_verified_is_invalid() -> None:
    text = fixture("runcpu_interrupted.log").replace(" Success 505.mcf_r base refrate", " Run 505.mcf_r base refrate")
    parsed = parse(text.encode())
    assert parsed.invalid == "there is no verification of the output of 505.mcf_r base (status R?)"
    assert value(parsed, "base_time", case="505.mcf_r") == 627.570042


@pytest.mark.parametrize("name", ["intrate_reportable.txt", "intrate_reportable.csv", "intrate_reportable.rsf"])
def test_bom_and_windows_line_endings(name: str) -> None:
    plain = fixture(name)
    assert parse(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode()) == parse(plain.encode())


def test_trademarks_and_older_titles() -> None:
    plain = parse(fixture("intrate_reportable.txt").encode())
    for mark in ("", "®"):
        assert parse(fixture("intrate_reportable.txt").replace("(R)", mark).encode()) == plain


def test_spreadsheet_padding_and_quotes_do_not_matter() -> None:
    plain = fixture("intrate_reportable.csv")
    padded = "".join(line + "," * max(0, 12 - line.count(",")) + "\n" for line in plain.replace('"', "").splitlines())
    assert identities(parse(padded.encode())) == identities(parse(plain.encode()))
    assert parse(padded.encode()).standing is None


def test_a_score_that_disagrees_with_its_rows() -> None:
    wrong = parse(
        fixture("intrate_reportable.txt").replace("base                122", "base                128").encode()
    )
    assert score(wrong, "SPECrate2017_int") == 128
    assert wrong.notes == (
        "SPECrate2017_int base: the score is printed as 128, but the geometric mean of its 4 selected rows is 121.4",
    )
    near = parse(fixture("intrate_reportable.csv").replace("121.543139", "121.543239").encode())
    assert near.notes == (
        "SPECrate2017_int base: the score is printed as 121.543239, "
        "but the geometric mean of its 4 selected rows is 121.543139",
    )


def test_a_benchmark_without_a_selected_run_has_its_iterations_alone() -> None:
    text = (
        HEADING
        + "505.mcf_r            48        611        127     S\n505.mcf_r            48        619        125     S\n"
    )
    parsed = parse(text.encode())
    assert {m.metric for m in parsed.measurements} == {"base_run_time", "base_run_ratio"}
    assert parsed.notes == ("505.mcf_r base: no run is marked as selected",)


def test_two_results_in_one_text_are_kept_apart() -> None:
    both = fixture("intrate_reportable.txt") + fixture("intspeed_peak_only.txt")
    parsed = parse(both.encode())
    assert score(parsed, "SPECrate2017_int") == 122
    assert score(parsed, "SPECspeed2017_int", "peak") == 11.0
    assert parsed.notes[0] == "2 results in one text"
    assert parsed.standing is Standing.ESTIMATE
    # The banner between the two belongs to the second report, not to the first.
    assert sum(note.startswith("from line 1: INVALID RUN") for note in parsed.notes) == 0
    csv = parse((fixture("intrate_reportable.csv") + fixture("fpspeed_estimate.csv")).encode())
    assert score(csv, "SPECspeed2017_fp") == 142.312302
    raw = parse((fixture("intrate_reportable.rsf") + fixture("fpspeed_estimate.csv")).encode())
    assert score(raw, "SPECspeed2017_fp") == 142.312302


def test_the_same_benchmarks_twice_are_kept_once() -> None:
    one = fixture("intrate_reportable.txt")
    other = one.replace("        412        185  ", "        402        190  ")
    parsed = parse((one + other).encode())
    assert len(set(identities(parsed))) == len(parsed.measurements)
    assert value(parsed, "base_time", case="500.perlbench_r") == 412
    assert any("left out: it has benchmarks of the text result from line 1 once more" in n for n in parsed.notes)
    mixed = parse((one + fixture("intrate_reportable.csv")).encode())
    assert value(mixed, "base_time", case="500.perlbench_r") == 412.480117
    assert any("the text result from line 1 left out" in note for note in mixed.notes)
    twice = fixture("intrate_reportable.csv") * 2
    assert identities(parse(twice.encode())) == identities(read(TOOL, "intrate_reportable.csv"))


def test_a_bad_result_beside_a_good_one_is_left_out() -> None:
    both = parse((fixture("intrate_failures.txt") + fixture("fpspeed_estimate.txt")).encode())
    assert both.invalid is None
    assert cases(both) == {"603.bwaves_s", "619.lbm_s", "644.nab_s", "SPECspeed2017_fp"}
    assert any(note.startswith("the text result from line 1 left out: some benchmarks") for note in both.notes)


def test_results_of_another_suite_are_refused_and_never_mixed() -> None:
    rows = HEADING + "706.stockfish_r       1        637       1.98  *\n"
    with pytest.raises(ParseError) as error:
        parse(rows.encode())
    assert str(error.value).startswith(
        "spec_cpu2017 line 4: expected results of SPEC CPU 2017 (those of SPEC CPU 2026 are for the parser spec_cpu2026)"
    )
    with pytest.raises(ParseError, match="there is no parser for those of SPEC CPU 2006"):
        parse(b"spec.cpu2006.results.400_perlbench.base.000.ratio: 11.14\n")
    glued = parse((fixture("intrate_reportable.txt") + rows).encode())
    assert cases(glued) == cases(read(TOOL, "intrate_reportable.txt"))
    assert any("rows of another suite left out" in note for note in glued.notes)


def test_text_that_ends_inside_a_row() -> None:
    text = fixture("intrate_reportable.txt")
    place = text.index("     619        125     S") + len("     61")
    cut = parse(text[:place].encode())
    assert find(cut, "base_run_time", case="505.mcf_r", iteration="2") is None
    assert any("the text ends inside the row of 505.mcf_r" in note for note in cut.notes)
    half = text[: text.index("24     589         65.9") + 4]
    assert value(parse(half.encode()), "base_run_time", case="505.mcf_r", iteration="2") == 619
    assert find(parse(half.encode()), "peak_run_time", case="505.mcf_r", iteration="2") is None
    assert cut.standing is Standing.ESTIMATE  # nothing says that it was reportable


def test_text_that_ends_inside_the_score() -> None:
    text = fixture("intrate_reportable.txt")
    cut = parse(text[: text.index("base                122") + len("base                12")].encode())
    assert find(cut, "base_score") is None
    assert any("the text ends inside the base score" in note for note in cut.notes)
    complete = parse(text[: text.index("base                122") + len("base                122")].encode())
    assert score(complete, "SPECrate2017_int") == 122


def test_csv_that_ends_inside_a_row() -> None:
    text = fixture("intrate_reportable.csv")
    place = text.index("505.mcf_r,48,618.777001") + len("505.mcf_r,48,618.77")
    cut = parse(text[:place].encode())
    assert find(cut, "base_run_time", case="505.mcf_r", iteration="2") is None
    assert value(cut, "base_run_time", case="505.mcf_r", iteration="1") == 611.250904


def test_raw_results_that_end_inside_a_figure() -> None:
    text = fixture("intrate_reportable.rsf")
    key = "results.505_mcf_r.base.001.reported_time: 618.777001"
    cut = parse(text[: text.index(key) + len(key) - 3].encode())
    assert find(cut, "base_run_time", case="505.mcf_r", iteration="2") is None
    assert any("the text ends inside this line" in note for note in cut.notes)


def test_raw_results_with_unknown_flags_are_an_estimate() -> None:
    parsed = parse(fixture("intrate_reportable.rsf").replace("cpu2017.invalid: 0", "cpu2017.invalid: 2").encode())
    assert (parsed.standing, parsed.invalid) == (Standing.ESTIMATE, None)
    withdrawn = parse(
        (fixture("intrate_reportable.rsf") + "spec.cpu2017.nc000: The submitter found an error.\n").encode()
    )
    assert withdrawn.invalid == "INVALID RUN: non-compliant: The submitter found an error."


@pytest.mark.parametrize("name", ["intrate_reportable.txt", "intrate_reportable.csv", "intrate_reportable.rsf"])
def test_lines_that_are_lost_cost_only_what_they_held(name: str) -> None:
    lines = fixture(name).splitlines(keepends=True)
    complete = parse("".join(lines).encode())
    figures = {m.value for m in complete.measurements}
    for drop in range(len(lines)):
        parsed = parse("".join(lines[:drop] + lines[drop + 1 :]).encode())
        assert {m.value for m in parsed.measurements} <= figures
        assert len(set(identities(parsed))) == len(parsed.measurements)


@pytest.mark.parametrize("word", ["nan", "-1", "1,5", "1.2.3", "--", "1e400", "9" * 500])
def test_figures_that_are_no_numbers_are_absent(word: str) -> None:
    parsed = parse(fixture("intrate_reportable.csv").replace("412.480117", f'"{word}"').encode())
    assert find(parsed, "base_time", case="500.perlbench_r") is None
    assert value(parsed, "base_time", case="505.mcf_r") == 611.250904
    assert all(math.isfinite(m.value) for m in parsed.measurements)


def test_figures_with_decimal_commas_are_no_figures() -> None:
    text = fixture("intrate_reportable.csv")
    score_line = "SPECrate2017_int_base,121.543139,,121.543139"
    for commas in ("SPECrate2017_int_base,121,543139,,121,543139", 'SPECrate2017_int_base,"121,543139",,"121,543139"'):
        parsed = parse(text.replace(score_line, commas).encode())
        assert find(parsed, "base_score") is None
        assert any("is printed as '121,543139', no figure with a decimal point" in note for note in parsed.notes)
        assert (score(parsed, "SPECrate2017_int", "peak"), parsed.invalid) == (106.466459, None)
    same_cells = parse(text.replace(score_line, "SPECrate2017_int_base,121,121,,121,121").encode())
    assert find(same_cells, "base_score") is None
    everywhere = re.sub(r"(?<=,[0-9]{2}|[0-9]{3})\.(?=[0-9]{3})", ",", text)
    with pytest.raises(
        ParseError, match=r"line 8: expected figures with a decimal point, got '500\.perlbench_r,48,412,4"
    ):
        parse(everywhere.encode())


def test_a_row_of_text_that_cannot_be_read_leaves_the_others_their_numbers() -> None:
    text = fixture("intrate_reportable.txt").replace("48     410        186     S", "48   4 410 x    186     S")
    parsed = parse(text.encode())
    assert find(parsed, "base_run_time", case="500.perlbench_r", iteration="2") is None
    assert value(parsed, "base_run_time", case="500.perlbench_r", iteration="3") == 415
    assert value(parsed, "peak_run_time", case="500.perlbench_r", iteration="3") == 382
    assert "line 11: the row of 500.perlbench_r cannot be read, left out" in parsed.notes
    fewer = fixture("intrate_reportable.txt").replace("48     410        186     S", "48     410                S")
    assert value(parse(fewer.encode()), "base_run_time", case="500.perlbench_r", iteration="3") == 415


@pytest.mark.parametrize(
    ("name", "until", "place"),
    [
        ("intrate_reportable.txt", " SPECrate(R)2017_int_peak", "no line for the peak score"),
        ("intrate_reportable.csv", "SPECrate2017_int_peak", "no line for the peak score"),
        ("intrate_power.txt", " SPECrate(R)2017_int_energy_peak", "no line for the peak score"),
        ("intrate_power.csv", "SPECrate2017_int_energy_peak", "no line for the peak score of energy"),
        ("fpspeed_estimate.csv", "ERRORS", "it ends before the errors that a report with 'valid' other than 1 lists"),
        (
            "intrate_reportable.rsf",
            "spec.cpu2017.results.557_xz_r.peak.002.selected",
            "line 384 begins a run that has no status",
        ),
        (
            "intrate_reportable.rsf",
            "spec.cpu2017.results.557_xz_r.base",
            "the rows do not give the base score 121.543139",
        ),
    ],
)
def test_a_report_that_is_cut_says_where(name: str, until: str, place: str) -> None:
    assert parse(fixture(name).split(until)[0].encode()).invalid == f"the output is cut: {place}"
    assert read(TOOL, name).invalid is None


def test_compiler_flags_and_prose_are_no_rows() -> None:
    text = (
        HEADING
        + RULER
        + "505.mcf_r            48        611        127     *\n\n505.mcf_r is what was built with gcc 13\n"
        + FOOTER
    )
    parsed = parse(text.encode())
    assert (len(parsed.measurements), parsed.notes) == (3, ())
    csv = CSV_HEADING + '505.mcf_r,48,611.25,126.9,1,S,,,,,,"refrate(ref) iteration #1"\n'
    flags = '\n"Base Other Flags"\n505.mcf_r," -O3"," -m64"," -g"," -flto"," -static"," -DX"," -DY"," -DZ"," -DA"," -DB"," -DC"\n'
    assert parse((csv + flags).encode()).measurements == parse(csv.encode()).measurements


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b"",
            "spec_cpu2017: expected a CSV, text or raw report of SPEC CPU 2017, or runcpu's log, with a benchmark that",
        ),
        (b"runcpu: command not found\n", "spec_cpu2017 line 1: expected a CSV, text or raw report of SPEC CPU 2017"),
        (
            (HEADING + "505.mcf_r                                     NR\n").encode(),
            "spec_cpu2017 line 4: expected a benchmark that finished, got '505.mcf_r base ended NR (not run)'",
        ),
    ],
)
def test_what_holds_no_result_is_an_error_that_says_so(raw: bytes, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(raw)
    assert str(error.value).startswith(message)
