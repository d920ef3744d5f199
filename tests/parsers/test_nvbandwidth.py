"""nvbandwidth: the corpus, and its two forms, held against figures read by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import parsers
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
        case, _, what = key.partition(".")
        if what == "sum_GBps" and "bidirectional_memcpy_read" in case:  # its sum counts both directions alone, too
            continue
        if what == "sum_GBps":
            assert sum(links(parsed, case)) == pytest.approx(figure * 1e9, rel=1e-4), key
        else:
            gpu = what.partition("_")[0]
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
    about = '"bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)"'
    entry = f'{{"name": "all_to_one_write_ce", "status": "Passed", {about}, "bandwidth_matrix": [["774", "773"]]}}'
    parsed = parsers.parse(TOOL, f'{{"nvbandwidth": {{"testcases": [{entry}]}}}}'.encode())
    assert value(parsed, "bandwidth", **{"from": "gpu1", "to": "gpus"}) == 773e9


def test_a_test_that_the_command_names_and_the_output_lacks_is_missed() -> None:
    command = ("nvbandwidth", "-j", "-t", "host_to_device_memcpy_ce", "device_local_copy")
    parsed = read(TOOL, "host_to_device_memcpy_ce.json", *command)
    assert parsed.invalid == "the output is cut: device_local_copy is not in it"
    assert read(TOOL, "host_to_device_memcpy_ce.json", *command[:-1]).invalid is None


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
