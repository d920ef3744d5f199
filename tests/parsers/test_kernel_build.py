"""The build program's line: a build of two files, held against figures read from the raw text by eye."""

from __future__ import annotations

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from tests.parsers.reading import read

TOOL = "kernel_build"


def test_a_build() -> None:
    parsed = read(TOOL, "two_files.txt")
    figures = {m.metric: m.value for m in parsed.measurements}
    assert figures == pytest.approx({"build_rate": 1 / 0.302, "build_time": 0.302, "cpu_time": 0.062, "jobs": 2})
    assert (parsed.version, parsed.invalid) == ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", None)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"fleetmark: compiler gcc 12\n",
        b"fleetmark: 1 build in 0.000 s, 0.000 s of CPU, with 2 jobs\n",
        b"fleetmark: 1 build in 3 s\n",
    ],
)
def test_what_is_no_finished_build_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="the line of a finished build"):
        parsers.parse(TOOL, raw)
