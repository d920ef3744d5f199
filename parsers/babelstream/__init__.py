"""Parse the table that BabelStream 3 to 5 prints, as text or with ``--csv``, for any programming model.

Case: ``device``. Metrics: ``copy``, ``mul``, ``add``, ``triad``, ``dot`` and ``nstream`` in B/s (higher is better),
each the best of all passes except the first. The heading gives the unit: MB/s (1e6), MiB/s (2**20), ... A run that
failed its own check of the arrays is ``invalid``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "babelstream"
_UNIT = r"([MGT])(i?)(?:B|Bytes|b|bytes)"
_HEADING = re.compile(rf"Function {{1,12}}{_UNIT}/s(?:ec)? .{{0,80}}|function,.{{1,60}},max_{_UNIT}_?per_sec,.{{1,80}}")
_KERNEL = re.compile(r"(Copy|Mul|Add|Triad|Dot|Nstream)\b")
_WRONG = re.compile(r"^(FAILED validation of .{0,150})$", re.MULTILINE)
_VERSION = re.compile(r"^Version: {0,12}([0-9][0-9.]{0,15})$", re.MULTILINE)
_COLUMN = 4  # CSV columns that contain the rate


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the best rate of every kernel. Raise ParseError if there is none."""
    text = decode(raw)
    rates = dict(_rates(text))
    if not rates:
        n, line = next(((n, line) for n, line in reversed(numbered(text)) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "a table with the rates of kernels", line=n, got=line)
    measurements = tuple(
        Measurement(_TOOL, "device", name, rate, "B/s", better=Better.HIGHER) for name, rate in rates.items()
    )
    version, wrong = _VERSION.search(text), _WRONG.search(text)
    invalid = " ".join(wrong[1].split()) if wrong else cut_in_line(text)
    return Parsed(_TOOL, measurements, version=version[1] if version else None, invalid=invalid)


def _rates(text: str) -> Iterator[tuple[str, float]]:
    """Return each kernel's rate in B/s, from rows below a heading with the unit."""
    factor, commas = 0.0, False
    for _, line in numbered(text):
        if heading := _HEADING.fullmatch(line[:300].strip()):
            commas = "," in line
            power, binary = (heading[1], heading[2]) if heading[1] else (heading[3], heading[4])
            factor = (1024.0 if binary else 1000.0) ** " KMGT".index(power)
        elif factor and len(line) < 300 and (kernel := _KERNEL.match(line)):
            cells = line.split(",") if commas else line.split()
            column = _COLUMN if commas else 1
            rate = number(cells[column]) if len(cells) > column else None
            if rate and (value := number(rate * factor)):
                yield kernel[1].lower(), value
