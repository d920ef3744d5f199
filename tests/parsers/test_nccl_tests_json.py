"""nccl-tests' JSON, whole, cut, beside text, and what of its environment never gets out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.parsers.nccl_tests import parse
from tests.parsers.collectives import ONE, SECRETS, TOOL, notes, parsed, raw
from tests.parsers.reading import cases, read, value

# ---- JSON


def test_json() -> None:
    result = read(TOOL, "2.17.9_report.json")
    report = json.loads(raw("2.17.9_report.json"))
    assert (cases(result), result.version, result.invalid) == ({"reduce_scatter"}, "NCCL 2.29.2", None)
    assert (value(result, "ranks"), value(result, "nodes")) == (4, 2)
    first = report["results"][0]["in_place"]
    labels = {"size": "4194304", "type": "float", "redop": "sum", "place": "in"}
    assert value(result, "time", **labels) == pytest.approx(first["time"] * 1e-6, rel=1e-12)
    assert value(result, "busbw", **labels) == pytest.approx(first["bus_bw"] * 1e9, rel=1e-12)
    assert value(result, "avg_busbw") == pytest.approx(report["average_bus_bandwidth"]["bandwidth"] * 1e9, rel=1e-12)
    assert notes(result) == []


def changed(**parts: Any) -> str:
    return json.dumps(json.loads(raw("2.17.9_report.json")) | parts)


def test_json_as_it_was_misspelt() -> None:
    report = json.loads(raw("2.17.9_report.json"))
    report["average_bus_bandwidith"] = {"bandwidith": 17.25, "okay": "false"}
    del report["average_bus_bandwidth"]
    result = parsed(json.dumps(report))
    assert value(result, "avg_busbw") == 17.25e9
    assert "reduce_scatter: the average bus bandwidth is below the requested minimum" in result.notes


def test_json_wrong_data_and_nothing_to_check() -> None:
    results = json.loads(raw("2.17.9_report.json"))["results"]
    results[1]["out_of_place"]["nwrong"] = 4096.0
    result = parsed(changed(results=results, out_of_bounds={"count": 1, "okay": "false"}))
    assert result.invalid == "reduce_scatter: wrong data: 1 out-of-bounds results, first at size 8388608"
    for part in results:
        part["out_of_place"]["nwrong"] = part["in_place"]["nwrong"] = None
    result = parsed(changed(results=results))
    assert "reduce_scatter: the results were not checked (validation off)" in result.notes


def test_json_with_per_iteration_times_a_blank_half_and_nan() -> None:
    results = json.loads(raw("2.17.9_report.json"))["results"]
    results[0]["in_place_per_iter"] = {"min_us": 20.5, "max_us": 31.5, "avg_us": 25.0, "p99_us": 30.5, "cv_pct": 4.5}
    results[1]["out_of_place"] = None
    results[2]["in_place"] |= {"time": "nan", "alg_bw": "nan"}
    result = parsed(changed(results=results))
    labels = {"size": "4194304", "type": "float", "redop": "sum", "place": "in"}
    assert value(result, "time_min", **labels) == pytest.approx(20.5e-6)
    assert value(result, "time_cv", **labels) == pytest.approx(0.045)
    assert value(result, "busbw", **labels | {"size": "8388608", "place": "out"}) is None
    assert value(result, "busbw", **labels | {"size": "8388608"}) is not None
    assert value(result, "time", **labels | {"size": "16777216"}) is None


def test_json_of_a_process_with_several_gpus_lists_only_its_first() -> None:
    config = json.loads(raw("2.17.9_report.json"))["config"]
    config |= {"ngpus": 4, "devices": config["devices"][:1]}
    result = parsed(changed(config=config))
    assert (value(result, "ranks"), value(result, "nodes")) == (4, 1)
    assert notes(result) == []


def test_json_that_is_cut() -> None:
    result = read(TOOL, "2.17.9_report_cut.json")
    assert {m.labels["size"] for m in result.measurements if "size" in m.labels} == {"4194304"}
    assert result.notes[:2] == (
        "the JSON that begins on line 1 is cut off: only its complete results are read",
        "reduce_scatter: the test did not finish: its JSON output is cut off",
    )
    assert value(result, "ranks") == 4
    place = "reduce_scatter: the test did not finish: its JSON output is cut off"
    assert result.invalid == f"the output is cut: {place}"


def test_text_after_json_that_is_cut() -> None:
    result = parsed(raw("2.17.9_report_cut.json") + "\n" + ONE)
    assert cases(result) == {"all_reduce"}
    left_out = "reduce_scatter: left out: the test did not finish: its JSON output is cut off"
    assert left_out in result.notes
    assert result.invalid is None
    assert "all_reduce: line 25: a row that is cut or has other text in it is left out" in result.notes


def test_json_after_text_is_read_too() -> None:
    result = parsed(ONE + raw("2.17.9_report.json") + "\n")
    assert cases(result) == {"all_reduce", "reduce_scatter"}


@pytest.mark.parametrize("layout", [None, 4], ids=["one line", "indented"])
@pytest.mark.parametrize("ordered", [False, True])
def test_nothing_of_the_environment_gets_out(layout: int | None, ordered: bool) -> None:
    report = json.loads(raw("2.17.9_report.json"))
    report["env"] += ["ERROR=failed: wren", "MISMATCH=mismatch wren", "LINE=# Collective test starting: wren_perf"]
    text = json.dumps(report, indent=layout, sort_keys=ordered)
    for piece in [text[:end] for end in range(0, len(text), 37)] + [text[start:] for start in range(0, len(text), 37)]:
        try:
            result = parse(piece.encode())
        except ParseError as caught:
            printed = str(caught)
        else:
            printed = " ".join((*result.notes, result.invalid or "", result.version or "", *cases(result)))
        assert not [secret for secret in SECRETS if secret in printed], printed
