"""Parse the output of Fleetmark's build program: one line of wall time, CPU time and jobs.

Case: ``build``. Metrics: ``build_rate`` in 1/s (higher), ``build_time`` and ``cpu_time`` in s (lower), ``jobs``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut_in_line
from fleetmark.parsers.kit.text import decode

_TOOL = "kernel_build"
_LINE = re.compile(
    r"^fleetmark: 1 build in ([0-9]{1,9}\.[0-9]{3}) s, ([0-9]{1,9}\.[0-9]{3}) s of CPU, with ([0-9]{1,6}) jobs$",
    re.MULTILINE,
)
_COMPILER = re.compile(r"^fleetmark: compiler (.{1,80})$", re.MULTILINE)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the build's time. Raise ParseError if its line is missing or the time is 0."""
    text = decode(raw)
    match = _LINE.search(text)
    if not match or not float(match[1]):
        lines = text.strip().splitlines()
        raise ParseError(_TOOL, "the line of a finished build", line=len(lines) or 1, got=(lines or [""])[-1])
    wall, cpu, jobs = float(match[1]), float(match[2]), float(match[3])
    measurements = [
        Measurement(_TOOL, "build", "build_rate", 1 / wall, "1/s", better=Better.HIGHER),
        Measurement(_TOOL, "build", "build_time", wall, "s", better=Better.LOWER),
        Measurement(_TOOL, "build", "jobs", jobs, "1", better=Better.NONE),
    ]
    if cpu:
        measurements.append(Measurement(_TOOL, "build", "cpu_time", cpu, "s", better=Better.LOWER))
    compiler = _COMPILER.search(text)
    return Parsed(_TOOL, tuple(measurements), compiler and compiler[1], cut_in_line(text))
