"""torch_ops' lines: real output of this machine, and what breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better
from tests.parsers.reading import FIXTURES, cases, find, read, value

TOOL = "torch_ops"
BASIC, FUSED, WRONG = (f"2.13.0_cpu_{name}.jsonl" for name in ("basic", "fused", "wrong"))


def lines(name: str = WRONG) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / TOOL / name).read_text().splitlines()]


def parsed(changed: list[dict[str, Any]]) -> parsers.Parsed:
    return parsers.parse(TOOL, "".join(json.dumps(line) + "\n" for line in changed).encode())


def test_figures_follow_from_the_line() -> None:
    output = read(TOOL, BASIC)
    assert (output.version, output.invalid) == ("2.13.0+cpu (cpu)", None)
    (line,) = [x for x in lines(BASIC) if x.get("case") == "mm/bf16/gpt2-qkv"]
    assert value(output, "flops", case="mm/bf16/gpt2-qkv") == pytest.approx(2 * 16 * 768 * 2304 / line["median"])
    assert value(output, "bandwidth", case="mm/bf16/gpt2-qkv") is None
    assert value(output, "time", case="mm/bf16/gpt2-qkv") == line["median"]
    assert value(output, "time_iqr", case="mm/bf16/gpt2-qkv") == pytest.approx(line["q3"] - line["q1"])
    roofs = {x["roof"]: x["rate"] for x in lines(BASIC) if "roof" in x}
    assert value(output, "peak", case="roof/bf16") == roofs["bf16"]
    share = max(line["flops"] / roofs["bf16"], line["bytes"] / roofs["memory"]) / line["median"]
    assert value(output, "roof_share", case="mm/bf16/gpt2-qkv") == pytest.approx(share)


def test_what_moves_data_is_counted_by_bytes() -> None:
    output = read(TOOL, BASIC)
    (line,) = [x for x in lines(BASIC) if x.get("case") == "embedding/bf16/gpt2-vocabulary"]
    assert line["bytes"] == 16 * (8 + 2 * 768 * 2)
    rate = find(output, "bandwidth", case="embedding/bf16/gpt2-vocabulary")
    assert rate and rate.value == pytest.approx(line["bytes"] / line["median"]) and rate.better is Better.HIGHER
    assert value(output, "balance", case="embedding/bf16/gpt2-vocabulary") == 0


def test_a_precision_that_the_device_lacks_is_named() -> None:
    assert read(TOOL, BASIC).notes[0] == "skipped mm/tf32: the device has no tf32"


def test_a_fused_run_is_read_whole() -> None:
    output = read(TOOL, FUSED)
    assert output.invalid is None and {"attention_causal/bf16/gpt2-attention", "moe_dispatch/fp32/granite-1b"} <= cases(
        output
    )
    assert sum(m.metric == "roof_share" for m in output.measurements) == 50


def test_a_wrong_result_is_invalid_and_no_other() -> None:
    output = read(TOOL, WRONG)
    assert output.invalid_cases == ("gelu/fp32/gpt2-hidden", "gelu/bf16/gpt2-hidden")
    assert output.invalid == (
        "gelu/fp32/gpt2-hidden computes a wrong result: it is off by 0.1, and 5e-05 is allowed; "
        "gelu/bf16/gpt2-hidden computes a wrong result: it is off by 0.099, and 0.02 is allowed"
    )
    right = [m.value for m in output.measurements if m.metric == "roof_share" and m.case.startswith("silu")]
    mean = (min(right[0], 1) * min(right[1], 1)) ** 0.5
    assert value(output, "mean_roof_share", case="roof") == pytest.approx(mean)


def test_no_number_is_wrong() -> None:
    changed = lines()
    (case,) = [x for x in changed if x.get("case") == "gelu/fp32/gpt2-hidden"]
    case["error"] = None
    assert str(parsed(changed).invalid).startswith(
        "gelu/fp32/gpt2-hidden computes a wrong result: it is not a number; gelu/bf16"
    )


def test_a_case_that_failed_says_why() -> None:
    changed = [x for x in lines() if not str(x.get("case")).startswith("gelu")]
    changed.insert(-1, {"fail": "add/fp32/huge", "why": "out of memory: you tried to allocate 9 bytes; 0.1 GiB free"})
    changed[-1]["end"] = {"cases": 2, "skipped": 0, "failed": 1, "wrong": 0}
    output = parsed(changed)
    assert output.invalid == "add/fp32/huge failed: out of memory: you tried to allocate 9 bytes; 0.1 GiB free"
    assert output.invalid_cases == ("add/fp32/huge",)


def test_throttled_samples_are_counted() -> None:
    changed = lines()
    changed[4]["throttled"] = 30
    assert parsed(changed).notes == ("30 calls were dropped since the device throttled",)


@pytest.mark.parametrize("keep", [5, 8])
def test_an_output_without_its_end_is_cut(keep: int) -> None:
    output = parsed(lines()[:keep])
    assert output.invalid == "the output is cut: its last line, the end, is absent" and output.invalid_cases == ()


def test_a_lost_line_is_noticed() -> None:
    output = parsed(lines()[:5] + lines()[6:])
    assert output.invalid == "the output is cut: 4 cases were timed, and 3 are there"


@pytest.mark.parametrize(
    ("place", "key", "bad"),
    [
        (4, "median", 0.0),
        (4, "median", -1.0),
        (4, "best", "1"),
        (4, "case", "../../etc/passwd"),
        (4, "case", "gelu/fp128/x"),
        (4, "bytes", 0),
        (4, "flops", 1e30),
        (1, "rate", 0.0),
        (1, "rate", 1e300),
        (3, "rate", 1e-320),
        (4, "median", 1e-320),
        (0, "format", 2),
        (0, "torch", "x" * 500),
    ],
)
def test_a_line_that_the_program_does_not_print_is_refused(place: int, key: str, bad: Any) -> None:
    changed = lines()
    changed[place][key] = bad
    with pytest.raises(ParseError) as error:
        parsed(changed)
    assert f"line {place + 1}" in str(error.value) and "\n" not in str(error.value)


def test_warnings_between_the_lines_are_passed_over() -> None:
    raw = (FIXTURES / TOOL / BASIC).read_bytes()
    assert parsers.parse(TOOL, b"/opt/torch_npu: warning {}x\n" + raw) == parsers.parse(TOOL, raw)


def test_nothing_timed_is_an_error() -> None:
    with pytest.raises(ParseError, match="the device lacks it"):
        parsed([lines()[0], {"skip": "mm/fp32", "why": "the device lacks it"}])
