"""mscclpp-test, nccom-test, hccl_test: their own columns, units and ways to say that data were wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better
from fleetmark.parsers.nccl_variants import parse
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value, values

TOOL = "nccl_variants"
GIB = 2.0**30


def raw(name: str) -> str:
    return (FIXTURES / TOOL / name).read_text()


def error(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse(text.encode())
    return str(caught.value)


def of_size(row: Mapping[str, Any], quantity: str) -> tuple[str, float | None]:
    """The size and value of MANIFEST's only key that ends in ``what``."""
    key = next(key for key in row if key.endswith(f".{quantity}"))
    return key.partition(".")[0], row[key]


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    result, expected = parse(path.read_bytes()), row["expected"]
    assert result.invalid is None
    if path.name.startswith("mscclpp"):
        assert set(expected) == {"1073741824.in_place_busbw_GBps", "1073741824.out_of_place_busbw_GBps"}
        assert values_at(result, "busbw", place="in") == [110.41e9]
        assert values_at(result, "busbw", place="out") == []
        assert cases(result) == {"mscclpp-all_reduce"}
    elif path.name.startswith("trainium"):
        size, rate = of_size(expected, "busbw_GiBps")
        assert value(result, "busbw", size=size, type="fp32") == rate * GIB  # type: ignore[operator]
        assert value(result, "avg_busbw") == expected["avg_busbw_GiBps"] * GIB
        assert cases(result) == {"nccom-all_reduce"}
        assert "nccom: GB/s is 2**30 B/s, as its guide says" in result.notes
    else:
        assert expected["64.check_result"] == "success"
        size, time = of_size(expected, "aveg_time_us")
        assert value(result, "time", size=size) == pytest.approx(time * 1e-6)  # type: ignore[operator]
        assert value(result, "algbw", size=size) == pytest.approx(of_size(expected, "alg_bandwidth_GBps")[1] * 1e9)  # type: ignore[operator]
        assert (cases(result), result.notes) == ({"hccl"}, ())


def values_at(result: Any, metric: str, **labels: str) -> list[float]:
    return [
        m.value
        for m in result.measurements
        if m.metric == metric and labels.items() <= m.labels.items() and "size" in m.labels
    ]


def test_mscclpp_halves_are_told_apart() -> None:
    result = read(TOOL, "mscclpp_in_place_then_out.txt")
    assert (result.tool, result.invalid) == (TOOL, None)
    reduced = [m for m in result.measurements if m.case == "mscclpp-all_reduce" and m.metric == "busbw"]
    assert [dict(m.labels) for m in reduced] == [
        {"size": str(1 << k), "kernel": "3", "place": "in"} for k in (20, 21, 22)
    ]
    assert reduced[0].value == pytest.approx(105.51e9)
    swapped = [m for m in result.measurements if m.case == "mscclpp-alltoall" and m.metric == "busbw"]
    assert {m.labels["place"] for m in swapped} == {"out"}
    assert value(result, "peak_busbw", case="mscclpp-alltoall") == pytest.approx(83.45e9)
    assert value(result, "peak_busbw", case="mscclpp-all_reduce", place="in") == pytest.approx(170.11e9)
    assert value(result, "ranks", case="mscclpp-alltoall") == 8
    assert not [note for note in result.notes if ", but " in note or "end" in note.split()]


def test_mscclpp_without_check_and_with_a_name() -> None:
    text = raw("mscclpp_in_place_then_out.txt").split("# minBytes")[1]
    text = "# minBytes" + re.sub(r" +0$", "", text, flags=re.M).replace("validation: 1", "validation: 0")
    result = parse(text.encode(), ["mpirun", "-np", "8", "./build/test/mscclpp-test/allreduce_test_perf", "-b", "1m"])
    assert cases(result) == {"mscclpp-all_reduce"}
    assert len(values(result, "peak_busbw")) == 0
    assert value(result, "busbw", size="1048576", kernel="3", place="in") == pytest.approx(105.51e9)
    assert "mscclpp-all_reduce: the results were not checked (validation off)" in result.notes


def test_mscclpp_wrong_data() -> None:
    text = raw("mscclpp_in_place_then_out.txt").replace("105.51      0", "105.51     17")
    result = parse(text.encode())
    assert cases(result) == {"mscclpp-alltoall"}
    assert any("left out: wrong data: #wrong is 17 at size 1048576" in note for note in result.notes)


def test_mscclpp_records() -> None:
    result = read(TOOL, "mscclpp_records.jsonl")
    assert cases(result) == {"mscclpp-all_reduce", "mscclpp-all_gather"}
    assert value(result, "busbw", size="8192", kernel="2") == pytest.approx(2.12958e9)
    assert value(result, "time", size="8192", kernel="4") == pytest.approx(5.918273e-6)
    assert value(result, "ranks", case="mscclpp-all_gather") == 8
    assert len(identities(result)) == len(set(identities(result)))


def test_nccom_in_powers_of_two() -> None:
    result = read(TOOL, "nccom_gib.txt")
    assert cases(result) == {"nccom-all_gather"}  # from the command line above the table
    assert value(result, "algbw", size="4194304", type="fp32") == 56.12 * GIB
    assert value(result, "busbw", size="4194304", type="fp32") == 54.37 * GIB
    assert value(result, "avg_busbw") == 18.9674 * GIB
    assert value(result, "time", size="65536", type="fp32") == pytest.approx(23.73e-6)
    assert result.notes == ("nccom-all_gather: GB/s is 2**30 B/s, as its guide says",)


def test_nccom_in_powers_of_ten() -> None:
    result = read(TOOL, "nccom_percentiles.txt")
    assert value(result, "busbw", size="4194304", type="fp32") == 58.38e9
    assert value(result, "time_p50", size="4194304", type="fp32") == pytest.approx(76.56e-6)
    p99 = find(result, "time_p99", size="4194304", type="fp32")
    assert p99 is not None
    assert (p99.unit, p99.better) == ("s", Better.LOWER)
    assert result.notes == ("nccom: GB/s is 1e9 B/s, as its sizes and times say",)


def test_nccom_figures_are_held_against_one_another() -> None:
    result = parse(raw("nccom_gib.txt").replace("54.37", "64.37").encode())
    assert "nccom-all_gather: busbw at size 4194304 is 64.37 GB/s, but algbw x 0.9688 is 54.3663 GB/s" in result.notes
    assert any("Avg bus bandwidth 18.9674 GB/s disagrees with its own rows" in note for note in result.notes)


def test_nccom_command_names_the_collective() -> None:
    result = parse(raw("nccom_percentiles.txt").encode(), ["nccom-test", "-r", "32", "-b", "1kb", "allg"])
    assert cases(result) == {"nccom-all_gather"}


def test_nccom_report() -> None:
    result = read(TOOL, "nccom_report.json")
    report = json.loads(raw("nccom_report.json"))["results"]
    assert value(result, "busbw", size="65536", type="fp32") == pytest.approx(report[1]["busbw(GB/s)"] * 1e9)
    assert value(result, "time", size="1024", type="fp32") == pytest.approx(7.21e-6)
    assert "avg_busbw" not in {m.metric for m in result.measurements}


def test_nccom_cut_and_failed() -> None:
    text = raw("nccom_gib.txt")
    result = parse(text[: text.index("54.37") + 4].encode())  # 54.3 may have lost a digit
    assert value(result, "time", size="4194304", type="fp32") is None
    assert "nccom-all_gather: line 5: a row that is cut or has other text in it is left out" in result.notes
    assert "nccom-all_gather: the test did not finish" in result.notes
    failed = parse(text.replace("Avg bus", "1 errors found - test failed\nAvg bus").encode())
    assert failed.invalid == "nccom-all_gather: ended with: 1 errors found - test failed"
    assert error(raw("nccom_failed.txt")) == (
        "nccl_variants line 3: expected rows of results, got 'Failure running neuron-bench - log file nccom_test_log_x.log'"
    )


def test_hccl_has_algorithm_bandwidth_only() -> None:
    result = read(TOOL, "hccl_all_reduce.txt")
    assert (cases(result), result.notes, result.invalid) == ({"hccl-all_reduce"}, (), None)
    assert {m.metric for m in result.measurements} == {"time", "algbw"}
    assert value(result, "algbw", size="16384") == pytest.approx(0.22428e9)
    assert value(result, "time", size="16384") == pytest.approx(73.05e-6)


def test_hccl_failed_check_makes_it_invalid() -> None:
    result = read(TOOL, "hccl_failed.txt")  # with columns in another order
    assert result.invalid == "hccl: wrong data: check_result is failed at size 16384"
    assert value(result, "algbw", size="8192") == pytest.approx(0.11486e9)


def test_hccl_unchecked_and_cut() -> None:
    result = parse(raw("hccl_all_reduce.txt").replace("success", "NULL").encode())
    assert result.notes == ("hccl-all_reduce: the results were not checked (validation off)",)
    cut = parse(raw("hccl_all_reduce.txt").rstrip()[:-3].encode())
    assert value(cut, "time", size="32768") is None
    assert "hccl-all_reduce: line 6: a row that is cut or has other text in it is left out" in cut.notes


def test_hccl_repeated_sizes_stay_distinct() -> None:
    text = raw("hccl_all_reduce.txt").rstrip() + "\n32768 | 75.90 | 0.43173 | success\n"
    result = parse(text.encode())
    assert value(result, "time", size="32768", cycle="2") == pytest.approx(75.9e-6)


@pytest.mark.parametrize("name", ["mscclpp_in_place_then_out.txt", "nccom_gib.txt", "hccl_all_reduce.txt"])
@pytest.mark.parametrize("mark", ["[1,0]<stdout>:", "0: ", "2026-05-01T12:00:00Z "])
def test_launchers_marks(name: str, mark: str) -> None:
    marked = "".join(f"{mark}{line}\n" for line in raw(name).splitlines())
    assert parse(marked.encode()).measurements == read(TOOL, name).measurements


def test_several_tools_in_one_text() -> None:
    result = parse((raw("nccom_gib.txt") + raw("hccl_all_reduce.txt") + raw("mscclpp_in_place_then_out.txt")).encode())
    assert cases(result) == {"nccom-all_gather", "hccl-all_reduce", "mscclpp-all_reduce", "mscclpp-alltoall"}


@pytest.mark.parametrize(
    "name", ["2.17.6_two_tests_messages.txt", "2.8_five_tests_one_failed.txt", "2.17.9_report.json"]
)
def test_output_of_nccl_tests_is_sent_on(name: str) -> None:
    assert "(use nccl_tests or rccl_tests)" in error((FIXTURES / "nccl_tests" / name).read_text())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nccl_variants: expected a table of mscclpp-test, nccom-test or hccl_test, got 'no output'"),
        (
            "nccom-test: command not found\n",
            "nccl_variants line 1: expected rows of results, got 'nccom-test: command not found'",
        ),
        ("well\n", "nccl_variants line 1: expected a table of mscclpp-test, nccom-test or hccl_test, got 'well'"),
        (
            "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n",
            "nccl_variants line 1: expected rows of results, got 'the end of the text'",
        ),
    ],
)
def test_texts_without_results(text: str, message: str) -> None:
    assert error(text) == message


def test_damage_invents_nothing() -> None:
    survived = 0
    for name in ("mscclpp_in_place_then_out.txt", "nccom_gib.txt", "nccom_percentiles.txt", "hccl_all_reduce.txt"):
        text = raw(name)
        undamaged = {(m.metric, m.value) for m in read(TOOL, name).measurements}
        # Where too little is left to tell what nccom-test means by GB/s, its guide is believed.
        undamaged |= {(metric, figures / 1e9 * GIB) for metric, figures in undamaged if name == "nccom_percentiles.txt"}
        lines = text.splitlines(keepends=True)
        pieces = [text[:end] for end in range(0, len(text), 13)]
        pieces += ["".join(lines[:n] + lines[n + 1 :]) for n in range(len(lines))]
        for piece in pieces:
            try:
                result = parse(piece.encode())
            except ParseError:
                continue
            survived += 1
            assert len(identities(result)) == len(set(identities(result)))
            figures = {(m.metric, m.value) for m in result.measurements}
            assert {f for f in figures - undamaged if f[0] not in ("peak_busbw", "ranks")} == set(), piece
    assert survived > 100
