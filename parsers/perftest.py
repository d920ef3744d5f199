"""Parse the tables of perftest 4 to 6 (ib_write_bw, ib_read_lat, ...). Their headings name the columns.

Case: verb and test (``write_bw``, ``send_lat``), from the command or the banner. Metrics, with a label ``size``:
``bandwidth``, ``bandwidth_peak`` in B/s, ``message_rate`` in 1/s (higher); ``latency_p50`` (t_typical),
``latency_mean``, ``_min``, ``_max``, ``_p99``, ``_p99.9`` in s (lower). MB/sec is 2^20 bytes, Gb/sec 1e9 bits. If one
text has the output of client and server, the figures count once. The rule below a table marks its end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "perftest"
_LONGEST = 300  # maximum line length in characters
_BANNER = re.compile(r"\s*(?:RDMA_|Atomic_)?(Write|Read|Send) (?:Bidirectional )?(BW|Latency) Test\s*")
_PROGRAM = re.compile(r"ib_(write|read|send)_(bw|lat)")
_COLUMN = re.compile(
    r"(BW peak|BW average|MsgRate|t_min|t_max|t_typical|t_avg|t_stdev|99(?:\.9)?% percentile|tps average|CPU_Util)"
    r"(?:\[([A-Za-z/%]{1,8})\])?"
)
_METRICS = {
    "BW average": "bandwidth",
    "BW peak": "bandwidth_peak",
    "MsgRate": "message_rate",
    "t_typical": "latency_p50",
    "t_avg": "latency_mean",
    "t_min": "latency_min",
    "t_max": "latency_max",
    "99% percentile": "latency_p99",
    "99.9% percentile": "latency_p99.9",
}
_UNITS: Mapping[str, tuple[float, str]] = {
    "MB/sec": (2.0**20, "B/s"),
    "MiB/sec": (2.0**20, "B/s"),
    "Gb/sec": (1e9 / 8, "B/s"),
    "Mpps": (1e6, "1/s"),
    "usec": (1e-6, "s"),
}
_RULE = re.compile(r"\s*-{20,}\s*")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every row. Raise ParseError if there is none."""
    text = decode(raw)
    program = _PROGRAM.fullmatch(PurePosixPath(command[0]).name) if command else None
    case = f"{program[1]}_{program[2]}" if program else ""
    columns: list[tuple[str, str]] = []
    measurements: dict[tuple[str, str, str], Measurement] = {}
    ended, last = False, (1, "no output")
    for n, line in numbered(text):
        if len(line) > _LONGEST or not line.strip():
            continue
        last = (n, line)
        banner = _BANNER.fullmatch(line)
        if banner and not program:
            case = f"{banner[1].lower()}_{'bw' if banner[2] == 'BW' else 'lat'}"
        elif line.lstrip().startswith("#bytes"):
            columns = _COLUMN.findall(line)
        elif measurements and _RULE.fullmatch(line):
            ended = True
        rows = list(_row(case or "perftest", columns, line))
        for m in rows:
            measurements[m.case, m.metric, m.labels["size"]] = m
        ended = ended and not rows
    if not measurements:
        raise ParseError(_TOOL, "a row under perftest's heading", line=last[0], got=last[1])
    return Parsed(_TOOL, tuple(measurements.values()), invalid=None if ended else cut("no rule under the table"))


def _row(case: str, columns: Sequence[tuple[str, str]], line: str) -> Iterator[Measurement]:
    cells = line.split()
    if not columns or len(cells) != 2 + len(columns) or not is_whole(cells[0]):
        return
    figures = [number(cell) for cell in cells]
    if any(figure is None for figure in figures) or len(cells[0]) > 12:
        return
    for (name, unit), figure in zip(columns, figures[2:], strict=True):
        metric, scale = _METRICS.get(name), _UNITS.get(unit)
        if metric and scale and figure and math.isfinite(figure * scale[0]):  # a peak of 0 was not measured
            better = Better.LOWER if scale[1] == "s" else Better.HIGHER
            labels = {"size": str(int(cells[0]))}
            yield Measurement(_TOOL, case, metric, figure * scale[0], scale[1], better=better, labels=labels)
