"""SPEC CPU, MLPerf and the collectives read anything: numbers that are none, endless brackets, digits of other scripts.

The guarantees of all parsers are in test_fuzz; here are the places where these formats hold JSON, marks and counts.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.parsers import published
from fleetmark.parsers.published import mlperf, sparecores, spec, table
from tests.parsers.outputs import SUITES, seeds

ODD = (
    *("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 5000, "-" + "9" * 5000, "1" + "0" * 400, "null", "true"),
    *('"²"', '"١٢"', '"1e400"', "[]", "{}", "[" * 20_000, '{"a":' * 20_000, '"\\ud800"', '"\\u0000"', "0.1e-400"),
)
REPORT = '{"version":3,"args":["all_reduce_perf"],"nccl_version":%s,"config":{"validation":%s,"devices":[{"rank":%s,"group":%s}]},'
REPORT += '"results":[{"size":%s,"count":%s,"root":%s,"type":"float","out_of_place":{"time":%s,"alg_bw":1,"bus_bw":%s,"nwrong":%s}}],'
REPORT += '"out_of_bounds":{"count":%s},"average_bus_bandwidth":{"bandwidth":%s}}'
RECORD = '{"name":"AllReduce","ranks":%s,"nodes":%s,"size":%s,"inPlace":%s,"time":%s,"algBw":1,"busBw":%s,"kernel":%s,"wrong":%s}'
TRAINED = (
    ':::MLLOG {"key":"run_start","time_ms":%s,"metadata":{}}\n:::MLLOG {"key":"eval_accuracy","value":%s,"time_ms":2,'
)
TRAINED += '"metadata":{"epoch_num":%s}}\n:::MLLOG {"key":"run_stop","time_ms":%s,"metadata":{"status":"success"}}\n'
LOADGEN = (
    ':::MLLOG {"key":"requested_scenario","value":"Server"}\n:::MLLOG {"key":"result_samples_per_second","value":%s}\n'
)
LOADGEN += ':::MLLOG {"key":"effective_min_duration_ms","value":%s}\n:::MLLOG {"key":"num_errors","value":%s}\n'
LOADGEN += ':::MLLOG {"key":"effective_target_latency_percentile","value":%s}\n:::MLLOG {"key":"result_validity","value":"VALID"}\n'
ENDPOINTS = '{"n_samples_completed":%s,"duration_ns":%s,"qps":%s,"latency":{"avg":%s,"percentiles":{"99":%s}},'
ENDPOINTS += '"run_config":{"load_pattern":{"type":"concurrency","target_concurrency":%s}},"accuracy_scores":[{"dataset_name":"x","score":%s}]}'
FORMS = {
    **dict.fromkeys(("nccl_tests", "rccl_tests"), (REPORT, RECORD)),
    **dict.fromkeys(("nccl_variants",), (RECORD,)),
    **dict.fromkeys(("mlperf_training",), (TRAINED,)),
    **dict.fromkeys(("mlperf_inference",), (LOADGEN, ENDPOINTS)),
}


def total(tool: str, raw: bytes, command: Sequence[str] = ()) -> None:
    """Reads ``raw``; any exception but ParseError is a failure. What the figures are worth is for test_fuzz."""
    with contextlib.suppress(ParseError):
        assert parsers.parse(tool, raw, command).tool == tool


@pytest.mark.parametrize(("tool", "form"), [(tool, form) for tool, forms in FORMS.items() for form in forms])
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_values_that_are_no_numbers(tool: str, form: str, odd: str) -> None:
    blanks = form.count("%s")
    for place in range(blanks):
        total(tool, (form % tuple(odd if n == place else "1" for n in range(blanks)) + "\n").encode())
    total(tool, (form % ((odd,) * blanks)).encode())


@pytest.mark.parametrize("tool", SUITES)
@settings(max_examples=60, deadline=None)
@given(number=st.integers(0, 10**6), seed=st.integers(0, 2**32))
def test_odd_words_in_the_place_of_numbers(tool: str, number: int, seed: int) -> None:
    raw, pick = seeds(tool)[number % len(seeds(tool))], random.Random(seed)
    words = raw.split(b" ")
    for _ in range(pick.randint(1, 6)):
        words[pick.randrange(len(words))] = pick.choice(ODD[:14]).strip('"').encode()
    total(tool, b" ".join(words))


@pytest.mark.parametrize("tool", SUITES)
@pytest.mark.parametrize("mark", ["²: ", "١: ", "[²] ", "[1,²]<stdout>:", "9" * 100 + ": "])
def test_marks_of_launchers_in_other_digits(tool: str, mark: str) -> None:
    for raw in seeds(tool)[:6]:
        total(tool, b"".join(mark.encode() + line for line in raw.splitlines(keepends=True)))


@pytest.mark.parametrize("tool", SUITES)
@given(
    command=st.lists(
        st.sampled_from(["-e", "-f", "--maxbytes", "²", "9" * 5000, "1K", "-1", "", "all_reduce_perf"]), max_size=8
    )
)
@settings(max_examples=40, deadline=None)
def test_any_command(tool: str, command: list[str]) -> None:
    for raw in seeds(tool)[-3:]:
        total(tool, raw, command)


CELLS = st.sampled_from(
    [
        "²",
        "١",
        "9" * 5000,
        "1e400",
        "NaN",
        "-1",
        "",
        "v5.1",
        "Offline",
        "Samples/s",
        "closed",
        "llama2-70b-99",
        "x",
        "12.5",
    ]
)
COLUMNS = {
    mlperf: (
        "Submitter,Platform,Division,Model,Scenario,Result,Units,version,a#,Nodes,p#,has_power,Power_Result,errors"
    ),
    sparecores: "vendor,server,cpu_model,cpus,threads_per_core,gpu,stressng_full_best_bogo_ops_s,price,currency",
    spec: ("Benchmark,Hardware Vendor,System,# Cores,# Chips,Processor,Base Result,Peak Result,Published"),
    table: ("machine,benchmark,value,unit,metric,better,class,repeat,note"),
}


@pytest.mark.parametrize("reader", list(COLUMNS), ids=lambda reader: reader.__name__.rpartition(".")[2])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_published_tables(reader: object, data: st.DataObject) -> None:
    names = COLUMNS[reader].split(",")  # type: ignore[index]
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), max_size=4))
    raw = "\n".join([",".join(names), *(",".join(row) for row in rows)]).encode()
    try:
        result = reader.read(raw, "int.csv")  # type: ignore[attr-defined]
    except FleetmarkError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(result, published.Table)


@pytest.mark.parametrize("reader", list(COLUMNS), ids=lambda reader: reader.__name__.rpartition(".")[2])
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_published_tables_in_json(reader: object, odd: str) -> None:
    names = COLUMNS[reader].split(",")  # type: ignore[index]
    row = "{" + ",".join(f"{json.dumps(name)}:{odd}" for name in names) + "}"
    for raw in (f"[{row}]", f"{row}\n{row}\n", odd, f"[{odd}]"):
        try:
            reader.read(raw.encode(), "int.csv")  # type: ignore[attr-defined]
        except FleetmarkError as error:
            assert "\n" not in str(error)
