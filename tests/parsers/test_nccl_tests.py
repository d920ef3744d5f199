"""nccl-tests: every column layout, launchers' marks, several processes and tests, failures, JSON that keeps secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better
from fleetmark.parsers.nccl_tests import parse
from tests import corpus
from tests.parsers.collectives import HEADING, ONE, TOOL, TWO, notes, parsed, raw
from tests.parsers.reading import cases, find, find_all, identities, read, value

POINT = {"type": "float", "redop": "sum", "place": "out"}


def test_metrics_units_directions_and_labels() -> None:
    result = parsed(ONE)
    assert (result.tool, result.version, result.invalid) == (TOOL, "2.17.6 (NCCL 2.27.3)", None)
    units = {m.metric: (m.unit, m.better) for m in result.measurements}
    assert units == {
        "time": ("s", Better.LOWER),
        "algbw": ("B/s", Better.HIGHER),
        "busbw": ("B/s", Better.HIGHER),
        "avg_busbw": ("B/s", Better.HIGHER),
        "peak_busbw": ("B/s", Better.HIGHER),
        "ranks": ("1", Better.NONE),
        "nodes": ("1", Better.NONE),
    }
    assert value(result, "time", case="all_reduce", size="1048576", **POINT) == pytest.approx(26.27e-6)
    assert value(result, "algbw", size="1048576", **POINT) == pytest.approx(39.92e9)
    assert value(result, "busbw", size="1048576", **POINT | {"place": "in"}) == pytest.approx(71.73e9)
    assert value(result, "avg_busbw") == pytest.approx(292.048e9)
    assert value(result, "peak_busbw") == pytest.approx(465.53e9)
    assert (value(result, "ranks"), value(result, "nodes")) == (8, 1)


# The meaning of MANIFEST's keys, beside [COLLECTIVE.]avg_busbw_GBps and [COLLECTIVE.]SIZE.oop_busbw_GBps and their like.
_POINT_KEY = re.compile(r"(?:(?P<case>[a-z_]+)\.)?(?P<size>[0-9]+)\.(?P<place>oop|ip)_(?P<what>busbw_GBps|time_us)")
_TEST_KEY = re.compile(r"(?:(?P<case>[a-z_]+)\.)?(?P<what>avg_busbw_GBps|max_oop_busbw_GBps)")
_ELSEWHERE = {"tests_in_file", "validation", "ranks", "alltoall.rows", "alltoall.failed", "out_of_bounds", "status"}
_NAMED = {  # if nothing but the columns says which collective it is
    "allgather_polaris_a100_2node.dat": "all_gather",
    "inc_rtx3090_wrong_scinot_FAILED.txt": "all_reduce",
    "k80_2node_validation0.txt": "nccl",  # with two ranks all_reduce and sendrecv look alike
    "mpirun_prefix_h100x8_aws.txt": "all_reduce",
    "old_2.0_allreduce_a100_error_na.log": "all_reduce",
    "old_allgather_no_redop.log": "all_gather",
    "old_alltoall_blank_redop.log": "alltoall",
}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    expected = row["expected"]
    if expected.get("rows") == 0:
        message = {
            "truncated_after_devices_2.17.6.log": r"line 13: expected rows of results after the device list of alltoall: "
            r"8 ranks \(it failed or hung in its set-up\), got 'the end of the text'",
            "pmi_launch_failed_polaris.dat": r"line 1: expected rows of results, got 'start failed on x3006c0s1b1n0: CXI "
            r"alloc failed on cxi0: request exceeds ACs limits'",
        }[path.name]
        with pytest.raises(ParseError, match=f"^nccl_tests {message}$"):
            parse(path.read_bytes())
        return
    result = parsed(path.read_text())
    checked = 0
    for key, printed in expected.items():
        if match := _POINT_KEY.fullmatch(key):
            metric, factor = {"busbw_GBps": ("busbw", 1e9), "time_us": ("time", 1e-6)}[match["what"]]
            place = {"oop": "out", "ip": "in"}[match["place"]]
            figures = [
                m.value
                for m in result.measurements
                if m.metric == metric
                and (m.labels.get("size"), m.labels.get("place")) == (match["size"], place)
                and match["case"] in (None, m.case)
            ]
            assert figures == [pytest.approx(printed * factor, rel=1e-12)], key
        elif (match := _TEST_KEY.fullmatch(key)) and match["case"] != "all_gather":
            metric = {"avg_busbw_GBps": "avg_busbw", "max_oop_busbw_GBps": "peak_busbw"}[match["what"]]
            assert value(result, metric, case=match["case"]) == pytest.approx(printed * 1e9, rel=1e-12), key
        elif key.endswith("_wrong"):
            assert f"{printed:g}" in path.read_text()
            continue
        else:
            assert key in _ELSEWHERE or key.startswith("all_gather."), key
            continue
        checked += 1
    assert checked
    if path.name in _NAMED:
        assert cases(result) == {_NAMED[path.name]}
    assert not [note for note in result.notes if "disagree" in note or ", but " in note]


def _in_corpus(name: str) -> str:
    paths = [p.values[0] for p in corpus.rows(TOOL) if p.values[0].name == name]
    if not paths:
        pytest.skip("corpus absent")
    return str(paths[0].read_text())


def test_corpus_five_tests() -> None:
    result = parsed(_in_corpus("allreduce_2.17.8_h100x8_five_tests.log"))
    assert cases(result) == {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"}
    assert value(result, "avg_busbw", case="all_gather") == pytest.approx(328.618e9)
    assert result.version == "2.17.8 (NCCL 2.29.2)"
    assert "all_reduce: Reducing maxBytes to 26549638485 due to memory limitation" in result.notes


def test_corpus_one_failed_test_among_good_ones() -> None:
    result = parsed(_in_corpus("alltoall_failure_then_sendrecv_sci_time_2.17.6.log"))
    assert (cases(result), result.invalid) == ({"sendrecv"}, None)
    assert value(result, "time", size="17179869184", type="double", redop="sum", place="out") == 16.0
    assert notes(result) == [
        "alltoall: left out: no rows of results: cnode2-001: Test NCCL failure common.cu:401 'remote process exited or "
        "there was a network error / '"
    ]
    assert (value(result, "ranks"), value(result, "nodes")) == (8, 2)


def test_corpus_wrong_data() -> None:
    text = _in_corpus("v100x12_five_collectives_FAILED_2020.txt")
    result = parsed(text)
    assert (cases(result), result.invalid) == ({"all_reduce", "broadcast", "reduce", "reduce_scatter"}, None)
    assert "all_gather: left out: wrong data: 4 out-of-bounds results, first at size 4294967280" in result.notes
    assert (
        "reduce_scatter: algbw leaves out each rank's own share, as versions before June 2020 did: later ones show more"
        in result.notes
    )
    alone = parsed("\n".join(text.splitlines()[:54]))
    assert alone.invalid == "all_gather: wrong data: 4 out-of-bounds results, first at size 4294967280"
    assert value(alone, "avg_busbw") == pytest.approx(30.2993e9)
    assert any("leaves out each rank's own share" in note for note in alone.notes)
    result = parsed(_in_corpus("inc_rtx3090_wrong_scinot_FAILED.txt"))
    assert result.invalid == "all_reduce: wrong data: 162 out-of-bounds results, first at size 8"


def test_corpus_unchecked_results() -> None:
    result = parsed(_in_corpus("k80_2node_validation0.txt"))
    assert notes(result) == ["nccl: the results were not checked (validation off)"]


def test_a_test_that_fails_among_others_is_told_however_it_failed() -> None:
    text = raw("2.8_five_tests_one_failed.txt")
    start, end = (
        text.index("Running: NCCL_ALGO=Ring ./build/all_gather"),
        text.index("Running: NCCL_ALGO=Ring ./build/alltoall"),
    )
    gather = text[start:end]
    failures = {
        gather[: gather.index("# nThread")]: "no rows of results",
        gather[: gather.index("# Out of bounds")]: "the test did not finish",
        gather[: gather.index("# nThread")] + "all_gather_perf: error while loading shared libraries\n": (
            "no rows of results: all_gather_perf: error while loading shared libraries"
        ),
    }
    for failed, reason in failures.items():
        result = parsed(text[:start] + failed + text[end:])
        assert (cases(result), result.invalid) == ({"broadcast", "reduce", "alltoall"}, None)
        assert f"all_gather: left out: {reason}" in result.notes
        last = parsed(text[:start] + failed)
        assert last.invalid == f"the output is cut: all_gather: {reason}"


def test_messages_between_and_inside_rows() -> None:
    result = parsed(TWO)
    assert cases(result) == {"all_reduce", "alltoall"}
    assert [m.labels["size"] for m in result.measurements if m.case == "all_reduce" and m.metric == "busbw"][::2] == [
        str(1 << k) for k in (20, 21, 22, 24, 25, 26, 27)
    ]
    assert "all_reduce: line 24: a row that is cut or has other text in it is left out" in result.notes
    assert "all_reduce: built for NCCL 2.28.7, runs with NCCL 2.27.3" in result.notes
    assert result.version == "2.17.6 (NCCL 2.27.3)"


@pytest.mark.parametrize(
    "mark",
    [
        "[1,0]<stdout>:",
        "[1,0]<stdout>: ",
        "[prterun-larch01-417@1,0]<stdout>: ",
        "0: ",
        " 0: ",
        "[0] ",
        "larch01: ",
        "[pod/bench-launcher-x7k/main] ",
        "(head, rank=0, pid=3808) [1,0]<stdout>:",
        "2026-05-01T12:00:00.123456789Z ",
        "2026-05-01 12:00:00,123 [1,0]<stdout>:",
        "Tue May  5 12:00:00 2026<stdout>:",
        ">  ",
    ],
)
def test_launchers_marks_are_taken_off(mark: str) -> None:
    marked = "".join(f"{mark}{line}\n" for line in TWO.splitlines())
    assert parsed(marked).measurements == parsed(TWO).measurements


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: "\n".join(line.strip() for line in t.splitlines()),
        lambda t: "\n".join(line.lstrip("#") for line in t.splitlines()),
        lambda t: "\n".join(line + " " * 300 for line in t.splitlines()),
        lambda t: "Loading modules\nmpirun: warning only\n" + t + "\nsome words after it\n",
        lambda t: "\ufeff" + t,
        lambda t: "\n".join(line for line in t.splitlines() if "(elements)" not in line),
        lambda t: "\n".join(line for line in t.splitlines() if "out-of-place" not in line),
        lambda t: t + t,
    ],
    ids=["crlf", "unindented", "no signs", "padded", "words", "bom", "no units", "no places", "twice"],
)
def test_transport_damage_that_loses_nothing(change: Callable[[str], str]) -> None:
    assert parsed(change(TWO)).measurements == parsed(TWO).measurements


def test_lost_headings() -> None:
    result = parsed("\n".join(line for line in TWO.splitlines() if "algbw" not in line))
    assert result.measurements == parsed(TWO).measurements
    assert "all_reduce: line 19: no heading; columns read as those of nccl-tests 2.13 and later" in result.notes


def test_per_iteration_columns_and_stamps() -> None:
    result = read(TOOL, "2.19.6_per_iteration_stamps.txt")
    labels = {"size": "4194304"} | POINT
    row = next(
        line for line in raw("2.19.6_per_iteration_stamps.txt").splitlines() if line.startswith("     4194304")
    ).split()
    assert row[-2] == "2026-07-10"
    assert value(result, "time", **labels) == pytest.approx(float(row[5]) * 1e-6)
    assert value(result, "time_min", **labels) == pytest.approx(float(row[9]) * 1e-6)
    assert value(result, "time_max", **labels) == pytest.approx(float(row[10]) * 1e-6)
    assert value(result, "time_p99", **labels) == pytest.approx(float(row[11]) * 1e-6)
    assert value(result, "time_cv", **labels) == pytest.approx(float(row[12]) / 100)
    assert value(result, "time", **labels | {"place": "in"}) == pytest.approx(float(row[13]) * 1e-6)
    assert find_all(result, "time_cv", **labels)[0].better is Better.LOWER
    assert (result.version, notes(result)) == ("2.19.6 (NCCL 2.30.1)", [])


def test_cpu_time_is_another_metric() -> None:
    result = read(TOOL, "2.17.6_cputime.txt")
    assert {m.metric for m in result.measurements} >= {"cpu_time", "algbw", "busbw"}
    assert "time" not in {m.metric for m in result.measurements}
    assert notes(result) == []  # and is not held against algbw


def test_columns_that_nobody_knows_are_skipped() -> None:
    extra = HEADING.replace("  #wrong", "  newbw  #wrong")
    lines = [re.sub(r"(       0)(?=   |$)", r"   55.55\1", line) for line in ONE.splitlines()]
    result = parsed("\n".join(lines).replace(HEADING, extra))
    assert find(result, "busbw", size="1048576", **POINT) == find(parsed(ONE), "busbw", size="1048576", **POINT)
    assert value(result, "time", size="2097152", **POINT | {"place": "in"}) == pytest.approx(29.90e-6)


def test_old_columns_and_one_failed_test() -> None:
    result = read(TOOL, "2.8_five_tests_one_failed.txt")
    assert (cases(result), result.invalid) == ({"broadcast", "reduce", "all_gather", "alltoall"}, None)
    assert notes(result) == ["all_reduce: left out: wrong data: 2 out-of-bounds results, first at size 262144"]
    labels = {m.case: dict(m.labels) for m in result.measurements if m.metric == "busbw"}
    assert labels == {
        "broadcast": {"size": "262144", "type": "float", "root": "2", "place": "in"},
        "reduce": {"size": "262144", "type": "float", "redop": "max", "root": "0", "place": "in"},
        "all_gather": {"size": "262128", "type": "float", "place": "in"},
        "alltoall": {"size": "262128", "type": "float", "place": "in"},
    }


@pytest.mark.parametrize("name", ["broadcast", "reduce", "all_gather", "alltoall", "all_reduce"])
def test_old_columns_alone_name_the_collective(name: str) -> None:
    text = raw("2.8_five_tests_one_failed.txt")
    block = next(part for part in text.split("Running: ") if f"{name}_perf" in part)
    result = parsed("\n".join(block.splitlines()[1:]))
    assert cases(result) == {name}
    assert f"{name}: the text does not name the collective; its columns and figures fit this one alone" in result.notes


def test_2017_prints_milliseconds() -> None:
    result = read(TOOL, "2017_all_reduce.txt")
    first = next(line for line in raw("2017_all_reduce.txt").splitlines() if " 262144 " in line[:14]).split()
    assert value(result, "time", size="262144", **POINT) == pytest.approx(float(first[4]) * 1e-3)
    assert value(result, "busbw", size="262144", **POINT) == pytest.approx(float(first[6]) * 1e9)
    assert (result.version, cases(result), value(result, "ranks")) == ("NCCL 2.1", {"all_reduce"}, 4)
    assert not [note for note in result.notes if ", but " in note]


def test_mpirun_tagged_with_messages_of_other_ranks() -> None:
    result = read(TOOL, "2.13_mpirun_tagged.txt")
    assert (value(result, "ranks"), value(result, "nodes")) == (4, 2)
    assert len([m for m in result.measurements if m.metric == "busbw"]) == 14
    assert (
        "all_reduce: the processes use different libraries: NCCL 2.18.5+cuda12.2, NCCL 2.19.3+cuda12.2" in result.notes
    )


def test_srun_labels_and_rows_of_size_0() -> None:
    result = read(TOOL, "2.13_srun_labelled_3_nodes.txt")
    assert cases(result) == {"reduce_scatter"}
    assert {m.labels["size"] for m in result.measurements if m.metric == "time"} == {"1048512", "4194240", "16777152"}
    assert notes(result) == ["reduce_scatter: 3 rows of size 0 are left out: too small to share among the ranks"]


def test_every_rank_printing_the_same_is_read_once() -> None:
    lines = ONE.splitlines()
    result = parsed("".join(f"{rank}: {line}\n" for line in lines for rank in (1, 0, 2)))
    assert result.measurements == parsed(ONE).measurements
    assert "several processes printed the same table: it is read once" in result.notes
    assert result.invalid is None


@pytest.mark.parametrize("name", ["2.9_no_mpi_tagged.txt", "2.9_no_mpi_two_processes.txt"])
def test_processes_that_each_ran_alone_are_no_collective(name: str) -> None:
    result = read(TOOL, name)
    assert result.invalid is not None
    assert result.invalid.endswith("2 processes each ran a test of their own as rank 0 (a build without MPI?)")
    assert {m.metric for m in result.measurements} == {"time", "algbw"}
    assert len(identities(result)) == len(set(identities(result)))


def test_such_processes_in_blocks() -> None:
    tagged = raw("2.9_no_mpi_tagged.txt").splitlines(keepends=True)
    result = parsed("".join(sorted(tagged, key=lambda line: line[:6])))
    assert result.invalid is not None and "2 processes" in result.invalid
    assert len([m for m in result.measurements if m.metric == "time"]) == 8


def test_hosts_side_by_side() -> None:
    other = ONE.replace("26.27", "28.27").replace("larch01", "larch02")
    both = zip(ONE.splitlines(), other.splitlines(), strict=True)
    result = parsed("".join(f"larch01: {a}\nlarch02: {b}\n" for a, b in both))
    assert result.measurements == parsed(ONE).measurements
    assert "what 'larch02:' measured beside 'larch01:' is left out" in result.notes


def test_single_gpu_has_no_bus_bandwidth() -> None:
    result = read(TOOL, "2.9_single_gpu.txt")
    assert {m.metric for m in result.measurements} == {"time", "algbw", "ranks", "nodes"}
    assert notes(result) == ["nccl: one rank: the bus bandwidth has no meaning and is omitted"]
    without_list = "\n".join(line for line in raw("2.9_single_gpu.txt").splitlines() if "Rank" not in line)
    assert {m.metric for m in parsed(without_list).measurements} == {"time", "algbw"}
    named = parsed(raw("2.9_single_gpu.txt"), "./build/all_reduce_perf", "-g", "1")
    assert cases(named) == {"all_reduce"}


def test_cycles_and_types() -> None:
    result = read(TOOL, "2.17.6_cycles_and_types.txt")
    times = [
        (m.labels["size"], m.labels["type"], m.labels.get("cycle")) for m in result.measurements if m.metric == "time"
    ]
    assert times[::2] == [
        ("16777216", "float", None),
        ("33554432", "float", None),
        ("16777216", "float", "2"),
        ("33554432", "float", "2"),
        ("16777216", "bfloat16", None),
        ("33554432", "bfloat16", None),
    ]
    assert notes(result) == [
        "all_reduce: sizes are measured several times; from the second on they have the label cycle"
    ]


def test_the_same_collective_again() -> None:
    result = parsed(ONE + re.sub(r"\b26\.27\b", "26.91", ONE).replace("292.048", "291.048"))
    assert [m.value for m in find_all(result, "avg_busbw")] == [pytest.approx(292.048e9)]
    assert value(result, "avg_busbw", run="2") == pytest.approx(291.048e9)
    # A row that is the same to the last digit is the same row.
    assert {m.labels["size"] for m in result.measurements if m.labels.get("run") and m.metric == "time"} == {"1048576"}
    assert "all_reduce: run several times; what a later run measures again has the label run" in result.notes


def test_wrong_data_in_scientific_notation() -> None:
    result = read(TOOL, "2.13_wrong_data.txt")
    assert result.invalid == "all_reduce: wrong data: 10 out-of-bounds results, first at size 16"
    assert value(result, "avg_busbw") is not None
    silent = re.sub(r"# Out of bounds.*\n", "", raw("2.13_wrong_data.txt"))
    assert parsed(silent).invalid == "all_reduce: wrong data: #wrong is 12 at size 16"


def test_a_failure_after_some_rows() -> None:
    rows = ONE[: ONE.index("# Out of bounds")]
    result = parsed(rows + "larch01: Test NCCL failure common.cu:401 'unhandled cuda error / '\n")
    assert (
        result.invalid == "all_reduce: ended with: larch01: Test NCCL failure common.cu:401 'unhandled cuda error / '"
    )
    assert len([m for m in result.measurements if m.metric == "time"]) == 14
    both = parsed(rows + "larch01: Test timeout (60s) common.cu:523\n" + TWO.split("\n\n", maxsplit=1)[1])
    assert (cases(both), both.invalid) == ({"alltoall"}, None)
    assert "all_reduce: left out: ended with: larch01: Test timeout (60s) common.cu:523" in both.notes


def test_a_run_that_hung_before_a_good_one() -> None:
    result = parsed(raw("hung_after_devices.txt") + ONE)
    assert (cases(result), result.invalid) == ({"all_reduce"}, None)
    assert (
        "broadcast: left out: no rows of results after the device list of broadcast: 8 ranks (it failed or hung in its "
        "set-up)" in result.notes
    )
    assert value(result, "ranks") == 8


def test_a_stray_summary_is_not_another_process() -> None:
    result = parsed(ONE + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 17.5 \n")
    assert result.invalid is None
    assert value(result, "avg_busbw") == pytest.approx(292.048e9)


def test_text_that_ends_early() -> None:
    rows = ONE[: ONE.index("# Out of bounds")]
    result = parsed(rows)
    assert "avg_busbw" not in {m.metric for m in result.measurements}
    assert "all_reduce: the test did not finish" in result.notes
    killed = parsed(rows + "slurmstepd: error: *** STEP 9.0 ON larch01 CANCELLED DUE TO TIME LIMIT ***\n")
    assert (
        "all_reduce: the test did not finish: slurmstepd: error: *** STEP 9.0 ON larch01 CANCELLED DUE TO "
        "TIME LIMIT ***" in killed.notes
    )
    cut = parsed(rows[:-20])
    assert "134217728" not in {m.labels.get("size") for m in cut.measurements}
    assert any(note.endswith("a row that is cut or has other text in it is left out") for note in cut.notes[-4:])
    head = ONE[: ONE.index("# Avg bus bandwidth    : 292.0") + 29]
    assert "avg_busbw" not in {m.metric for m in parsed(head).measurements}  # 292. may have had more digits
    place = "all_reduce: the test did not finish: line 31 ends within its average"
    assert parsed(head).invalid == f"the output is cut: {place}"
    for text in (rows, rows[:-20]):
        assert parsed(text).invalid == "the output is cut: all_reduce: the test did not finish"


def test_figures_that_disagree() -> None:
    result = parsed(ONE.replace("  360.21", "  460.21"))
    assert (
        "all_reduce: busbw at size 16777216 out of place is 460.21 GB/s, but algbw x 1.75 is 360.202 GB/s"
        in result.notes
    )
    result = parsed(ONE.replace("205.83  360.21", "305.83  535.20"))
    assert (
        "all_reduce: algbw at size 16777216 out of place is 305.83 GB/s, but size over time is 205.83 GB/s"
        in result.notes
    )
    complete = raw("2.17.6_cycles_and_types.txt")
    wrong = re.sub(r"(Avg bus bandwidth    : )\S+", r"\g<1>412.5", complete)
    assert any(
        "Avg bus bandwidth 412.5 GB/s disagrees with its own rows, whose average is" in n for n in parsed(wrong).notes
    )
    doubled = parsed(ONE.replace("Rank  7", "Rank 17"))
    assert "all_reduce: the device list is incomplete: ranks and nodes are unknown" in doubled.notes
    assert "ranks" not in {m.metric for m in doubled.measurements}


@pytest.mark.parametrize(
    ("remark", "note"),
    [
        ("# Reducing maxBytes to 77 due to memory limitation", "Reducing maxBytes to 77 due to memory limitation"),
        ("a:1:2 [0] net.cc:9 NCCL WARN NET/IB : Got async event", "NCCL WARN NET/IB : Got async event"),
        (
            "# Blocking Enabled: wait after each inner iteration (-m), no barrier ",
            "Blocking Enabled: wait after each inner iteration (-m), no barrier",
        ),
        ("driver version mismatch: 550 against 535", "driver version mismatch: 550 against 535"),
        (
            "Option -R (register) is not supported before NCCL 2.19. Ignoring",
            "Option -R (register) is not supported before NCCL 2.19. Ignoring",
        ),
    ],
)
def test_remarks_become_notes(remark: str, note: str) -> None:
    result = parsed(ONE.replace(HEADING, f"{remark}\n{HEADING}"))
    assert f"all_reduce: {note}" in result.notes
    assert result.measurements == parsed(ONE).measurements


def test_average_below_what_was_asked_for() -> None:
    result = parsed(ONE.replace("292.048 ", "292.048 FAILED"))
    assert "all_reduce: the average bus bandwidth is below the requested minimum" in result.notes
    assert result.invalid is None


def test_groups_of_ranks() -> None:
    text = re.sub(r"(Rank  [4-7] Group  )0", r"\g<1>1", ONE)
    result = parsed(text)
    assert value(result, "ranks") == 4
    assert "all_reduce: 2 groups of ranks ran at the same time" in result.notes


@pytest.mark.parametrize(
    "command",
    [
        ("./build/all_gather_perf", "-b", "8"),
        ("mpirun", "-np", "8", "-x", "NCCL_DEBUG=INFO", "/opt/nccl-tests/build/all_gather_perf", "-g", "1"),
        ("bash", "-c", "cd /opt && srun --mpi=pmix ./all_gather_perf_mpi -b 8 2>&1"),
        ("nccl_all_gather_perf",),
    ],
)
def test_the_command_names_the_collective(command: tuple[str, ...]) -> None:
    text = raw("2.13_mpirun_tagged.txt")
    result = parsed(text, *command)
    assert cases(result) == {"all_gather"}
    assert any("busbw at size 1024 out of place" in note for note in result.notes)  # and is held against the figures


def test_a_command_that_names_several_says_nothing() -> None:
    text = raw("2.9_single_gpu.txt")
    assert cases(parsed(text, "sh", "-c", "./all_reduce_perf; ./all_gather_perf")) == {"nccl"}
