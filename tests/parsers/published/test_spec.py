"""SPEC's lists, joins, estimates and reports: what is counted once, what is left out, and scores that are flagged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind, Standing
from fleetmark.parsers.published import Table, spec
from tests.corpus import ROOT

PUBLISHED = ROOT / "spec_published"
absent = pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"corpus absent: no {PUBLISHED} (set FLEETMARK_CORPUS)")
LIST = ",Benchmark,Hardware Vendor\t,System,Peak Result,Base Result,# Cores,# Chips ,Processor ,Published"
JOIN = ",Hardware Vendor\t,System,Peak Speed Result,Base Speed Result,# Cores,# Chips ,Processor ,Published,Peak Rate Result,Base Rate Result"
RATE1 = "cpu,suite,distro,flags,run,est_base_score"


def read(*lines: str, name: str = "cpu2017_int.csv") -> Table:
    return spec.read("\n".join(lines).encode(), name)


def points(table: Table) -> list[tuple[str, str, str, float, int]]:
    return [(r.machine, r.measurement.case, r.measurement.metric, r.measurement.value, r.repeat) for r in table.rows]


def test_a_list_of_one_suite() -> None:
    table = read(
        LIST,
        "0,CINT2017rate,Acme,One (X 9),210,200,64,2,X 9,May-25",
        "1,CINT2017rate,Acme,One (X 9),0.0,202,64,2,X 9,Jun-2025",
        "2,CINT2017rate,Acme,One (X 9),210,200,64,2,X 9,May-25",  # equal rows differ in the index
        "3,CFP2017,Acme,One (X 9),0.0,11,64,2,X 9,May-25",
        "4,CINT2026rate,Acme,One (X 9),,9,64,2,X 9,May-25",
    )
    machine = "Acme/One (X 9) 64 cores/2 chips"
    assert points(table) == [
        (machine, "SPECrate2017_int", "base_score", 200.0, 0),
        (machine, "SPECrate2017_int", "peak_score", 210.0, 0),
        (machine, "SPECrate2017_int", "base_score", 202.0, 1),
        (machine, "SPECspeed2017_fp", "base_score", 11.0, 0),
        (machine, "SPECrate2026_int", "base_score", 9.0, 0),
    ]
    assert table.machines[machine] == {
        "vendor": "Acme",
        "system": "One (X 9)",
        "processor": "X 9",
        "cores": "64",
        "chips": "2",
        "published": "2025-05+2025-06",
        "suite": "SPECrate2017_int+SPECrate2026_int+SPECspeed2017_fp",
    }
    assert table.left_out == {"peak was not run": 3, "the same row again": 1}
    assert [(r.measurement.workload, r.class_, r.kind, r.headline, r.standing) for r in table.rows] == [
        ("spec_cpu2017", "cpu-int", "capacity", True, None),
        ("spec_cpu2017", "cpu-int-peak", "capacity", True, None),
        ("spec_cpu2017", "cpu-int", "capacity", True, None),
        ("spec_cpu2017", "cpu-fp-speed", "responsiveness", True, None),
        ("spec_cpu2026", "cpu-int", "capacity", True, None),
    ]


def test_systems_of_one_name_with_other_processors_are_told_apart() -> None:
    table = read(LIST, "0,CINT2017,Acme,One,9,9,8,1,X 9,May-25", "1,CINT2017,Acme,One,7,7,8,1,X 7,May-25")
    assert list(table.machines) == ["Acme/One 8 cores/1 chip processor=X 9", "Acme/One 8 cores/1 chip processor=X 7"]


def test_a_join_of_speed_and_rate_takes_every_result_once() -> None:
    table = read(
        JOIN,
        "0,Acme,One,10,9,64,2,X 9,May-2025,210,200",
        "1,Acme,One,10,9,64,2,X 9,May-2025,0.0,205",
        "2,Acme,One,0.0,8.9,64,2,X 9,Jan-2025,210,200",
        "3,Acme,One,0.0,8.9,64,2,X 9,Jan-2025,0.0,205",
    )
    assert [p[1:] for p in points(table)] == [
        ("SPECspeed2017_int", "base_score", 9.0, 0),
        ("SPECspeed2017_int", "peak_score", 10.0, 0),
        ("SPECspeed2017_int", "base_score", 8.9, 1),
        ("SPECrate2017_int", "base_score", 200.0, 0),
        ("SPECrate2017_int", "peak_score", 210.0, 0),
        ("SPECrate2017_int", "base_score", 205.0, 1),
    ]
    assert table.left_out == {"peak was not run": 2, "both results are in earlier rows": 1}


def test_a_join_by_name_does_not_give_one_chip_the_rate_of_two() -> None:
    mixed = read(JOIN, "0,Acme,One,10,9,64,2,X 9,May-2025,0,200", "1,Acme,One,10,9,32,1,X 9,May-2025,0,200")
    apart = read(JOIN, "0,Acme,One,10,9,64,2,X 9,May-2025,0,200", "1,Acme,One,10,9,64,2,X 9,May-2025,0,101")
    for table in (mixed, apart):
        assert {p[1] for p in points(table)} == {"SPECspeed2017_int"}
        reason = "rate scores may have another number of chips, because rows are joined by name"
        assert table.left_out[reason] == 2


def test_a_join_says_by_its_name_what_it_is_of() -> None:
    row = "0,Acme,One,10,9,64,2,X 9,May-2025,210,200"
    assert {p[1] for p in points(read(JOIN, row, name="CFP2017_joined.csv"))} == {"SPECspeed2017_fp", "SPECrate2017_fp"}
    with pytest.raises(FleetmarkError, match="put int or fp into the file's name"):
        read(JOIN, row, name="printed.csv")


def test_scores_that_others_estimated_with_one_copy() -> None:
    table = read(
        RATE1,
        "AMD_EPYC_1,int2017_rate1,trixie,O3,001,5.5",
        "AMD_EPYC_1,int2017_rate1,trixie,O3,002,5.7",
        "AMD_EPYC_1,fp2026_rate1,trixie,O3-march=native,001,2.5",
        "AMD_EPYC_1,fp2026_rate1,trixie,O3-march=native,001,2.5",
    )
    assert points(table) == [
        ("AMD EPYC 1", "SPECrate2017_int 1-copy -O3 trixie", "base_score", 5.5, 0),
        ("AMD EPYC 1", "SPECrate2017_int 1-copy -O3 trixie", "base_score", 5.7, 1),
        ("AMD EPYC 1", "SPECrate2026_fp 1-copy -O3 -march=native trixie", "base_score", 2.5, 0),
    ]
    assert {r.standing for r in table.rows} == {Standing.ESTIMATE}
    assert [r.class_ for r in table.rows] == ["cpu-int-speed", "cpu-int-speed", "cpu-fp-speed"]
    assert {r.kind for r in table.rows} == {Kind.RESPONSIVENESS}
    assert table.left_out == {"the same row again": 1}


REPORT = """ SPEC CPU(R)2017 Integer Rate Result
                 Acme Inc.
              Acme One, X 9

        CPU2017 License: 1        Test date: Mar-2021
                 Base     Base        Base        Peak     Peak        Peak
Benchmarks       Copies  Run Time     Rate        Copies  Run Time     Rate
--------------- -------  ---------  ---------    -------  ---------  ---------
500.perlbench_r     256        757        538  *
502.gcc_r           256        634        572  *
=================================================================================
500.perlbench_r     256        757        538  *
502.gcc_r           256        634        572  *
 SPECrate(R)2017_int_base              {score}
 SPECrate(R)2017_int_peak          Not Run
CPU Name: X 9
Enabled: 128 cores, 2 chips, 2 threads/core
"""


@pytest.mark.parametrize(("score", "invalid"), [("555", False), ("560", True)])  # sqrt(538 x 572) = 554.7
def test_a_score_that_its_rows_do_not_give_is_flagged(score: str, invalid: bool) -> None:
    table = spec.read(REPORT.format(score=score).encode(), "r.txt")
    assert list(table.machines) == ["Acme Inc./Acme One, X 9 128 cores/2 chips"]
    (row,) = [r for r in table.rows if r.measurement.metric == "base_score"]
    assert bool(row.invalid) is invalid
    assert any("printed as 560" in note and "554.7" in note for note in table.notes) is invalid
    assert {r.headline for r in table.rows if r.measurement.metric == "base_ratio"} == {True}
    assert not any(r.invalid for r in table.rows if r.measurement.metric == "base_ratio")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Benchmark,System,Peak Result", "CINT2017,x,1"], "a list of SPEC's without the column base result"),
        (
            ["a,b", "1,2"],
            "not a table of SPEC's; use a list (benchmark, system, base result); join of speed and rate",
        ),
        (["a,b", "1,2"], "this file has a, b"),
        ([LIST, "0,CINT2006,Acme,One,9,9,8,1,X,May-25"], "line 2: 'CINT2006' is not a suite of SPEC CPU 2017 or 2026"),
        ([RATE1, "X,int2017,trixie,O3,1,5"], "line 2: 'int2017' is not a suite run with one copy"),
        ([RATE1, ",int2017_rate1,trixie,O3,1,5"], "line 2: no cpu"),
        (["SPECrate2017_int_base --", "500.perlbench_r CE"], "looks like a report of SPEC CPU, but cannot be read"),
    ],
)
def test_what_is_refused(lines: list[str], words: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        read(*lines)
    assert words in str(error.value) and "\n" not in str(error.value)


def of_corpus(path: Path) -> Table:
    return spec.read(path.read_bytes(), path.name)


@absent
def test_the_speed_list_of_the_corpus() -> None:
    table = of_corpus(PUBLISHED / "cint2017_speed_published_202507.csv")
    assert table.read == 1727
    assert table.left_out == {"peak was not run": 132, "SPECspeed2017_int base: zero": 8, "the same row again": 2}
    assert len(table.rows) == 2 * (1727 - 2) - 132 - 8


@absent
def test_the_join_of_the_corpus_agrees_with_the_speed_list() -> None:
    joined = of_corpus(PUBLISHED / "cpu2017_int_speed_rate_joined_202507.csv")
    listed = of_corpus(PUBLISHED / "cint2017_speed_published_202507.csv")
    first = "ASRock Rack Inc./1U4LW-B650/2L2T AMD EPYC 4245P 6 cores/1 chip"
    assert joined.read == 10873
    assert [p[1:] for p in points(joined) if p[0] == first] == [
        ("SPECspeed2017_int", "base_score", 20.7, 0),
        ("SPECspeed2017_int", "peak_score", 21.5, 0),
        ("SPECrate2017_int", "base_score", 96.7, 0),
        ("SPECrate2017_int", "base_score", 96.6, 1),
        ("SPECrate2017_int", "peak_score", 99.0, 0),
    ]
    assert len({p[0] for p in points(joined)} & {p[0] for p in points(listed)}) > 1500


@absent
def test_the_estimates_of_the_corpus() -> None:
    table = of_corpus(PUBLISHED / "spec_rate1_estimated_jiegec.csv")
    assert (table.read, len(table.rows), len(table.machines)) == (449, 449, 68)
    assert {r.standing for r in table.rows} == {Standing.ESTIMATE}


@absent
def test_the_published_row_of_256_copies_is_flagged() -> None:
    table = of_corpus(ROOT / "spec_cpu2017" / "intrate_epyc7713.txt")
    scores = {r.measurement.metric: r for r in table.rows if r.measurement.metric.endswith("_score")}
    assert scores["base_score"].measurement.value == 777
    assert scores["base_score"].invalid == "SPECrate2017_int base is printed as 777, and its 10 rows give 770.2"
    assert (scores["peak_score"].measurement.value, scores["peak_score"].invalid) == (812, "")
    assert any("777" in note and "770.2" in note for note in table.notes)
