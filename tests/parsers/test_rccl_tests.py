"""rccl-tests: what it prints that nccl-tests does not, and its own files; the rest is in test_nccl_tests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers import nccl_tests
from fleetmark.parsers.rccl_tests import parse
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value

TOOL = "rccl_tests"
POINT = {"type": "float", "redop": "sum", "place": "out"}


def raw(name: str) -> str:
    return (FIXTURES / TOOL / name).read_text()


def notes(result: Parsed) -> list[str]:
    return [note for note in result.notes if "derived from the device list" not in note]


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    result = parse(path.read_bytes())
    assert cases(result) == {"all_reduce"}
    for key, printed in row["expected"].items():
        if match := re.fullmatch(r"([0-9]+)\.(oop|ip)_busbw_GBps", key):
            place = {"oop": "out", "ip": "in"}[match[2]]
            assert value(result, "busbw", size=match[1], **POINT | {"place": place}) == pytest.approx(printed * 1e9)
        elif key == "rows":
            assert len([m for m in result.measurements if m.metric == "busbw"]) == 2 * printed
        else:
            assert key == "avg_busbw_GBps"
            assert value(result, "avg_busbw") == (None if printed is None else pytest.approx(printed * 1e9))
    if path.name == "mi300x8_allreduce_truncated.txt":
        assert (result.version, value(result, "ranks")) == ("develop:83d38d9", 8)
        assert "all_reduce: the test did not finish" in result.notes
    else:
        assert notes(result) == [
            "all_reduce: line 1: no heading; columns read as those of nccl-tests 2.13 and later",
            "all_reduce: Avg bus bandwidth covers more rows than the text contains",
        ]


def test_version_lines_without_number_signs() -> None:
    result = read(TOOL, "2025_all_reduce.txt")
    assert result.version == "develop:4e1a9c2 (RCCL 2.26.6-develop:77ab01c)"
    assert (result.tool, cases(result), result.invalid, notes(result)) == (TOOL, {"all_reduce"}, None, [])
    assert {m.workload for m in result.measurements} == {TOOL}
    assert len([m for m in result.measurements if m.metric == "busbw"]) == 8
    unknown = parse(raw("2025_all_reduce.txt").replace("develop:4e1a9c2", "Unknown").encode())
    assert unknown.version == "RCCL 2.26.6-develop:77ab01c"


def test_the_same_reader_as_nccl_tests() -> None:
    text = (FIXTURES / "nccl_tests" / "2.9_single_gpu.txt").read_bytes()
    ours, theirs = parse(text), nccl_tests.parse(text)
    assert [m.value for m in ours.measurements] == [m.value for m in theirs.measurements]
    assert (cases(ours), cases(theirs)) == ({"rccl"}, {"nccl"})


def test_asterisks_mark_errors_beyond_the_threshold() -> None:
    result = read(TOOL, "2020_asterisk.txt")
    assert result.invalid == "all_reduce: wrong data: 1 out-of-bounds results, first at size 524288"
    without_verdict = re.sub(r"# Out of bounds.*\n", "", raw("2020_asterisk.txt"))
    assert parse(without_verdict.encode()).invalid == "all_reduce: wrong data: #wrong is 2e+00* at size 524288"


def test_in_place_only_with_algorithms() -> None:
    result = read(TOOL, "2026_in_place_algo_cycles.txt")
    assert result.version == "2.17.9-1c0ffee (RCCL 2.27.7)"
    assert {m.labels.get("place") for m in result.measurements if "size" in m.labels} == {"in"}
    row = next(line for line in raw("2026_in_place_algo_cycles.txt").splitlines() if "LL128" in line).split()
    assert value(result, "busbw", size="4194304", type="float", place="in") == pytest.approx(float(row[7]) * 1e9)
    assert value(result, "peak_busbw", place="in") == pytest.approx(161.13e9)
    assert value(result, "peak_busbw") is None
    assert notes(result) == []


def test_stamps_stand_before_the_algorithms() -> None:
    text = raw("2026_in_place_algo_cycles.txt").replace("nchannels ", "nchannels  timestamp")
    text = re.sub(r"       0(?=    RING)", "       0  2026-03-04 05:06:07", text)
    assert parse(text.encode()).measurements == read(TOOL, "2026_in_place_algo_cycles.txt").measurements


def test_event_times_have_a_column_of_their_own() -> None:
    text = raw("2025_all_reduce.txt").replace("     time   algbw", "     time  hipevt   algbw")
    text = re.sub(
        r"(sum +-1 +[0-9.]+)( +.* 0 +[0-9.]+)( +[0-9.]+ +[0-9.]+ +0)$", r"\1   11.25\2   12.50\3", text, flags=re.M
    )
    result = parse(text.encode())
    assert value(result, "hip_event_time", size="1048576", **POINT) == pytest.approx(11.25e-6)
    assert value(result, "hip_event_time", size="1048576", **POINT | {"place": "in"}) == pytest.approx(12.5e-6)
    assert find(result, "busbw", size="1048576", **POINT) == find(
        read(TOOL, "2025_all_reduce.txt"), "busbw", size="1048576", **POINT
    )


def test_records_in_json() -> None:
    result = read(TOOL, "2025_records.json")
    records = json.loads(raw("2025_records.json"))
    assert (cases(result), value(result, "ranks"), value(result, "nodes")) == ({"all_reduce"}, 4, 2)
    assert value(result, "time", size="1048576", **POINT) == pytest.approx(records[0]["time"] * 1e-6)
    last = {"size": "2097152", "cycle": "2"} | POINT | {"place": "in"}
    assert value(result, "busbw", **last) == pytest.approx(records[-1]["busBw"] * 1e9)
    assert len(identities(result)) == len(set(identities(result)))
    assert result.notes == (
        "all_reduce: sizes are measured several times; from the second on they have the label cycle",
    )
    lines = "\n".join(json.dumps(record) for record in records)  # as they were written up to 2025
    assert parse(lines.encode()).measurements == result.measurements


def test_wrong_data_in_records() -> None:
    text = raw("2025_records.json").replace('"wrong":"0"', '"wrong":"3"', 1)
    assert parse(text.encode()).invalid == "all_reduce: wrong data: #wrong is 3 at size 1048576"
    text = raw("2025_records.json").replace('"wrong":"0"', '"wrong":"N/A"')
    assert "all_reduce: the results were not checked (validation off)" in parse(text.encode()).notes


def test_csv_whose_rows_are_wider_than_its_heading() -> None:
    result = read(TOOL, "2025_records.csv")
    assert (cases(result), value(result, "ranks"), value(result, "nodes")) == ({"reduce_scatter"}, 4, 2)
    row = raw("2025_records.csv").splitlines()[1].split(",")
    assert value(result, "time", size="1048576", **POINT) == pytest.approx(float(row[10]) * 1e-6)
    assert value(result, "algbw", size="1048576", **POINT) == pytest.approx(float(row[11]) * 1e9)
    assert value(result, "busbw", size="1048576", **POINT) == pytest.approx(float(row[12]) * 1e9)
    assert result.notes == ()


def test_csv_with_spaces_and_without_mpi() -> None:
    result = read(TOOL, "2024_records_spaced.csv")
    assert (cases(result), value(result, "ranks"), value(result, "nodes")) == ({"all_reduce"}, 2, None)
    assert value(result, "busbw", size="1048576", **POINT) == pytest.approx(30.18763e9)
    wrong = raw("2024_records_spaced.csv").replace('"0"\n', '"9"\n', 1)
    assert parse(wrong.encode()).invalid == "all_reduce: wrong data: #wrong is 9 at size 1048576"


def test_csv_that_is_cut() -> None:
    text = raw("2025_records.csv").rsplit(",", 2)[0]
    result = parse(text.encode())
    assert value(result, "time", size="2097152", **POINT | {"place": "in"}) is None
    assert value(result, "time", size="2097152", **POINT) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "maple7: Test HIP failure common.cu:12 'invalid device ordinal'\n",
            "rccl_tests line 1: expected rows of results, got \"maple7: Test HIP failure common.cu:12 'invalid device",
        ),
        (
            "[ERROR] The number of requested GPUs (16) is greater than the number of GPUs available (8)\n",
            "rccl_tests line 1: expected rows of results, got '[ERROR] The number of requested GPUs (16)",
        ),
        ("", "rccl_tests: expected the table of a collective's test, got 'no output'"),
    ],
)
def test_errors_name_this_tool(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text.encode())
    assert str(caught.value).startswith(message)
