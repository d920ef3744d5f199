"""stress-ng and the watch beside it: the corpus, and a soak of our own, held against figures read from the raw text by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests import corpus
from tests.parsers.reading import FIXTURES, read, value

TOOL = "stress"
WATCHED = (FIXTURES / TOOL / "0.15_watched.txt").read_bytes()


@pytest.mark.parametrize(("path", "row"), corpus.rows("stress_ng"))
def test_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse(TOOL, path.read_bytes())
    for key, figure in row["expected"].items():
        stressor, _, quantity = key.partition(".")
        if quantity == "bogo_ops_per_s_real":
            assert value(parsed, "bogo_ops_per_second", stressor=stressor) == pytest.approx(figure, rel=1e-12), key
    assert parsed.invalid is None


def test_a_soak_without_a_fault() -> None:
    parsed = read(TOOL, "0.15_watched.txt")
    assert parsed.invalid is None
    assert value(parsed, "faults") == value(parsed, "quota_throttles") == 0
    assert {m.labels["stressor"] for m in parsed.measurements if m.labels} == {"cpu", "vm", "hdd"}


def test_gauges_of_a_host_that_has_them() -> None:
    raw = WATCHED.replace(
        b"fleetmark: faults", b"fleetmark: temperature_max 91.0\nfleetmark: clock_min 800000000\nfleetmark: faults"
    )
    parsed = parsers.parse(TOOL, raw)
    assert (value(parsed, "temperature_max"), value(parsed, "clock_min")) == (91.0, 8e8)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"quota_throttles 0", b"quota_throttles 7", "the host was throttled 7 times by a quota"),
        (
            b"quota_throttles 0",
            b"throttles 3\nfleetmark: corrected_errors 1",
            "the host throttled 3 times because of heat or power, corrected 1 memory errors",
        ),
        (b"info:  [", b"fail:  [1] vm: detected 1 bit error\nstress-ng: info:  [", "vm: detected 1 bit error"),
        (
            b"fleetmark: faults",
            b"fleetmark: the command beside it ended early with exit status 3\nfleetmark: faults",
            "the command beside it ended early with exit status 3",
        ),
        (b"successful run", b"", "the output is cut: stress-ng did not report a successful end"),
        (b"fleetmark: faults 0\n", b"", "the output is cut: the monitor printed no sum of faults"),
    ],
)
def test_what_does_not_pass(old: bytes, new: bytes, reason: str) -> None:
    assert old in WATCHED
    assert parsers.parse(TOOL, WATCHED.replace(old, new, 1)).invalid == reason


SUMMARY = b"stress-ng: info:  [1] skipped: 0\nstress-ng: info:  [1] passed: 3: cpu (1) vm (1) hdd (1)\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"info:  [1] failed: 1: vm (1)", "stressors failed: 1: vm (1)"),  # stress-ng reports success
        (b"info:  [1] skipped: 2: vm (1) hdd (1)", "stressors skipped: 2: vm (1) hdd (1)"),
        (
            b"error: [1] vm: [7] terminated with an error, exit status=2 (stressor failed)",
            "vm: [7] terminated with an error, exit status=2 (stressor failed)",
        ),
    ],
)
def test_a_soak_whose_stressor_failed_does_not_pass_though_it_is_called_successful(line: bytes, reason: str) -> None:
    end = b"stress-ng: info:  [26699] successful run"
    assert end in WATCHED
    assert parsers.parse(TOOL, WATCHED.replace(end, SUMMARY + end)).invalid is None
    assert parsers.parse(TOOL, WATCHED.replace(end, b"stress-ng: " + line + b"\n" + end)).invalid == reason


@pytest.mark.parametrize("raw", [b"", b"stress-ng: error: [1] unknown option\n", b"fleetmark: nonsense 7\n"])
def test_what_holds_no_figure_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="stress-ng's metrics"):
        parsers.parse(TOOL, raw)
