"""nvbandwidth: the corpus, and its two forms, held against figures read by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from tests import corpus
from tests.parsers.reading import cases, identities, read, value

TOOL = "nvbandwidth"


def links(parsed: Parsed, case: str) -> list[float]:
    """The figures of all pairs of devices of one test, both directions together."""
    chosen = [m for m in parsed.measurements if m.case == case and m.labels and "part" not in m.labels]
    return [m.value for m in chosen]


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    expected = dict(row["expected"])
    if reason := expected.pop("error", None):
        with pytest.raises(ParseError, match=reason):
            parsers.parse(TOOL, path.read_bytes())
        return
    parsed = parsers.parse(TOOL, path.read_bytes())
    assert expected.pop("testcases", len(cases(parsed))) == len(cases(parsed))
    for key, figure in expected.items():
        case, _, quantity = key.partition(".")
        if quantity == "sum_GBps" and "bidirectional_memcpy_read" in case:  # its sum counts both directions alone, too
            continue
        if quantity == "sum_GBps":
            assert sum(links(parsed, case)) == pytest.approx(figure * 1e9, rel=1e-4), key
        else:
            gpu = quantity.partition("_")[0]
            ends = {"from": "cpu0", "to": gpu}
            assert value(parsed, "bandwidth", case=case, **ends) == pytest.approx(figure * 1e9), key
    assert parsed.invalid is None
    assert len(set(identities(parsed))) == len(parsed.measurements)


def test_a_bidirectional_test_has_both_directions_and_their_sum() -> None:
    parsed = read(TOOL, "device_to_device_bidirectional_memcpy_read_ce.json")
    ends = {"from": "gpu0", "to": "gpu1"}
    assert value(parsed, "bandwidth", **ends) == 1525e9
    assert value(parsed, "one_way_bandwidth", part="first", **ends) == 763e9
    assert value(parsed, "one_way_bandwidth", part="second", **ends) == 762e9
    assert (value(parsed, "link_bandwidth"), value(parsed, "slowest_link")) == (1526e9, 1525e9)


def test_the_text_form() -> None:
    parsed = read(TOOL, "two_tests_v0.6.txt")
    assert parsed.version == "v0.6" and parsed.invalid is None
    assert value(parsed, "bandwidth", case="host_to_device_memcpy_ce", **{"from": "cpu0", "to": "gpu1"}) == 27.66e9
    assert value(parsed, "slowest_link", case="host_to_device_memcpy_ce") == 27.66e9
    written = "device_to_device_memcpy_write_ce"
    assert value(parsed, "bandwidth", case=written, **{"from": "gpu1", "to": "gpu0"}) == pytest.approx(370.9e9)
    assert len(links(parsed, written)) == 2, "a GPU to itself is not measured: 0.00 there is no figure"


def test_a_row_of_all_gpus_names_no_single_one() -> None:
    description = '"bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)"'
    entry = (
        f'{{"name": "all_to_one_write_ce", "status": "Passed", {description}, "bandwidth_matrix": [["774", "773"]]}}'
    )
    parsed = parsers.parse(TOOL, f'{{"nvbandwidth": {{"testcases": [{entry}]}}}}'.encode())
    assert value(parsed, "bandwidth", **{"from": "gpu1", "to": "gpus"}) == 773e9


def test_a_test_that_the_command_names_and_the_output_lacks_is_missed() -> None:
    command = ("nvbandwidth", "-j", "-t", "host_to_device_memcpy_ce", "device_local_copy")
    parsed = read(TOOL, "host_to_device_memcpy_ce.json", *command)
    assert parsed.invalid == "the output is cut: device_local_copy is not in it"
    assert read(TOOL, "host_to_device_memcpy_ce.json", *command[:-1]).invalid is None


PASSED = (
    '{"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["27.6"]], '
    '"bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"}'
)


def of_json(*statuses: str) -> bytes:
    """Return an output with one passed test and one test per entry of ``statuses``, named ``t0``, ``t1`` and so on."""
    others = [f'{{"name": "t{n}", "status": "{status}"}}' for n, status in enumerate(statuses)]
    return f'{{"nvbandwidth": {{"testcases": [{", ".join([PASSED, *others])}]}}}}'.encode()


def test_a_waived_test_is_no_fault_of_the_others() -> None:
    parsed = parsers.parse(TOOL, of_json("Waived"), ("nvbandwidth", "-t", "host_to_device_memcpy_ce", "t0"))
    assert parsed.invalid is None and parsed.notes == ("t0: Waived",)
    assert value(parsed, "link_bandwidth") == 27.6e9


@pytest.mark.parametrize("status", ["Error", "ERROR", "Not Found", "Running"])
def test_a_test_that_did_not_end_well_makes_the_run_invalid_and_leaves_the_others(status: str) -> None:
    parsed = parsers.parse(TOOL, of_json("Waived", status))
    assert parsed.invalid == f"t1: {status}" and parsed.invalid_cases == ("t1",)
    assert cases(parsed) == {"host_to_device_memcpy_ce"}


TEXT = """nvbandwidth Version: v0.8

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     27.60

SUM host_to_device_memcpy_ce 27.60

"""


@pytest.mark.parametrize(
    ("more", "invalid", "notes"),
    [
        ("Waived: \n", None, ("device_local_copy: Waived",)),
        ("", "the output is cut: device_local_copy is not in it", ()),
        (
            "ERROR: Testcase device_local_copy not found!\n",
            "device_local_copy: Not Found",
            ("device_local_copy: Not Found",),
        ),
        (
            "Running device_local_copy.\nError: out of memory\n",
            "device_local_copy: Error: out of memory",
            ("device_local_copy: Error: out of memory",),
        ),
    ],
)
def test_the_text_form_of_tests_without_figures(more: str, invalid: str | None, notes: tuple[str, ...]) -> None:
    command = ("nvbandwidth", "-t", "host_to_device_memcpy_ce", "device_local_copy")
    parsed = parsers.parse(TOOL, (TEXT + more).encode(), command)
    assert (parsed.invalid, parsed.notes) == (invalid, notes)
    assert value(parsed, "link_bandwidth") == 27.6e9


def test_waived_tests_whose_names_nobody_knows_are_counted() -> None:
    parsed = parsers.parse(TOOL, (TEXT + "Waived: \nWaived: \n").encode())
    assert parsed.invalid is None and parsed.notes == ("2 unnamed tests: Waived",)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no test"),
        (b'{"nvbandwidth": {"testcases": [{"name": "x", "status": "Waived"}]}}', "x: Waived"),
        (
            b'{"nvbandwidth": {"testcases": [{"name": "x", "status": "Passed", "bandwidth_matrix": [["1"], []]}]}}',
            "x: Passed",
        ),
        (b'{"nvbandwidth": {"error": 7, "testcases": 3}}', "no test"),
    ],
)
def test_what_has_no_figures_is_refused_with_what_the_tool_says(raw: bytes, words: str) -> None:
    with pytest.raises(ParseError, match="a test with figures") as error:
        parsers.parse(TOOL, raw)
    assert words in str(error.value)


def test_no_part_of_a_long_number_counts() -> None:
    sound = parsers.parse(TOOL, TEXT.encode())
    long = parsers.parse(TOOL, TEXT.replace("ce 27.60", f"ce {'9' * 30}").encode())
    assert {m.metric for m in sound.measurements} - {m.metric for m in long.measurements} == {"sum_bandwidth"}
