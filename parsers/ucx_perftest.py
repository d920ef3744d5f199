"""Parse the table of ucx_perftest, of UCX 1.8 to 1.17, with or without ``-f``.

Case: the test in the command (``tag_lat``), otherwise ``latency`` or ``bandwidth`` by the table's heading. Metrics of
latency tests: ``latency_p50`` (the percentile of ``-R``) and ``latency_mean`` in s (lower is better). Metrics of
bandwidth tests: ``bandwidth`` in B/s and ``message_rate`` in 1/s (higher is better) over the whole test, and
``bandwidth_interval`` of the last reported interval. A latency is half a round trip, and a megabyte is 2^20 bytes. The
overhead that bandwidth tests print in the latency column is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "ucx_perftest"
_LONGEST = 300  # maximum line length in characters
_ROW = re.compile(r"(?P<stage>\[thread [0-9]{1,4}\]|Final:)?\s{2,60}(?P<cells>[0-9]{1,15}(?:\s{1,20}[0-9.]{1,20}){7})")
_PERCENTILE = re.compile(r"\|\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)%ile\s*\|")
_TEST = re.compile(r"[a-z_]{2,20}")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the last row. Raise ParseError if there is none."""
    text = decode(raw)
    kind, percentile, row, last = "", "50", None, (1, "no output")
    for n, line in numbered(text):
        if len(line) > _LONGEST:
            continue
        if "latency (usec)" in line or "overhead (usec)" in line:
            kind = "latency" if "latency" in line else "bandwidth"
        if match := _PERCENTILE.search(line):
            percentile = f"{float(match[1]):g}"
        if kind and (match := _ROW.fullmatch(line)):
            row = match
        last = (n, line) if line.strip() else last
    if row is None:
        raise ParseError(_TOOL, "a row under ucx_perftest's heading", line=last[0], got=last[1])
    figures = [number(cell) or 0.0 for cell in row["cells"].split()]
    measurements = _measurements(_case(command) or kind, kind, percentile, figures)
    if not measurements:
        raise ParseError(_TOOL, "a row with a figure above 0", line=last[0], got=row[0])
    unfinished = cut("no final row") if (row["stage"] or "").startswith("[") else None
    return Parsed(_TOOL, measurements, invalid=unfinished or cut_in_line(text))


def _case(command: Sequence[str]) -> str:
    """Return the word after ``-t`` in the command."""
    after = next((test for option, test in pairwise(command) if option == "-t"), "")
    return after if _TEST.fullmatch(after) else ""


def _measurements(case: str, kind: str, percentile: str, figures: Sequence[float]) -> tuple[Measurement, ...]:
    _, middle, _, mean, interval, bandwidth, _, rate = figures
    mebi = 2.0**20
    candidates = [
        (f"latency_p{percentile}", middle * 1e-6 if kind == "latency" else 0.0, "s", Better.LOWER),
        ("latency_mean", mean * 1e-6 if kind == "latency" else 0.0, "s", Better.LOWER),
        ("bandwidth", bandwidth * mebi, "B/s", Better.HIGHER),
        ("bandwidth_interval", interval * mebi, "B/s", Better.HIGHER),
        ("message_rate", rate, "1/s", Better.HIGHER),
    ]
    # 0 is below the printed precision
    return tuple(
        Measurement(_TOOL, case, name, value, unit, better=better) for name, value, unit, better in candidates if value
    )
