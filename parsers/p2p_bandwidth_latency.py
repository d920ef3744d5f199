"""Parse the matrices of CUDA's sample p2pBandwidthLatencyTest.

Case: ``p2p`` or ``no-p2p`` (peer access on or off). Labels ``from`` and ``to`` (``gpu0``). Metrics: ``bandwidth`` and
``bidirectional_bandwidth`` in B/s (higher is better; GB/s are 1e9), and in s (lower is better) ``latency``, measured by
the GPU, and ``launch_latency``, measured by the CPU. The diagonal is a copy within one GPU. The output is ``invalid``
if a matrix lacks rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "p2p_bandwidth_latency"
_MOST_DEVICES = 512
_LONGEST = 20 * _MOST_DEVICES  # maximum characters of a row
_TITLE = re.compile(
    r"(?:(Unidirectional|Bidirectional) P2P=(Enabled|Disabled) Bandwidth|P2P=(Enabled|Disabled) Latency)"
    r"(?: \(P2P Writes\))? Matrix \((GB/s|us)\)"
)
_HEADING = re.compile(r"\s*(D\\D|GPU|CPU)((?:\s+\d{1,4})+)\s*")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every matrix. Raise ParseError if there is none."""
    measurements: list[Measurement] = []
    missing = ""
    title: re.Match[str] | None = None
    corner, columns, rows = "", list[str](), 0
    last = (1, "no output")
    for n, text in numbered(decode(raw)):
        line = text[:_LONGEST].rstrip()
        if not line:
            continue
        last = (n, line)
        match, heading = _TITLE.search(line[:200]), _HEADING.fullmatch(line)
        if match or heading:
            missing = missing or _lack(title, columns, rows)
            columns, rows = heading[2].split() if heading else [], 0
            corner = heading[1] if heading else ""
            title = match or title
        elif title and columns:
            cells = line.split()
            if len(cells) == len(columns) + 1 and is_whole(cells[0]) and len(columns) <= _MOST_DEVICES:
                measurements += _row(title, corner, columns, cells)
                rows += 1
    if not measurements:
        raise ParseError(_TOOL, "a matrix of bandwidths or latencies", line=last[0], got=last[1])
    missing = missing or _lack(title, columns, rows)
    return Parsed(_TOOL, tuple(measurements), invalid=cut(missing) if missing else None)


def _lack(title: re.Match[str] | None, columns: Sequence[str], rows: int) -> str:
    """Return what the previous matrix lacks; empty if it has a row for each of its columns."""
    if title is None or not columns or rows == len(columns):
        return ""
    return f"{title[0]} has {rows} of {len(columns)} rows"


def _row(title: re.Match[str], corner: str, columns: Sequence[str], cells: Sequence[str]) -> Iterator[Measurement]:
    rate = title[4] == "GB/s"
    case = "p2p" if "Enabled" in (title[2], title[3]) else "no-p2p"
    if rate:
        metric = "bidirectional_bandwidth" if title[1] == "Bidirectional" else "bandwidth"
    else:
        metric = "launch_latency" if corner == "CPU" else "latency"
    for column, cell in zip(columns, cells[1:], strict=True):
        figure = number(cell)
        value = number(figure * (1e9 if rate else 1e-6)) if figure else None
        if value:
            labels = {"from": f"gpu{int(cells[0][:4])}", "to": f"gpu{int(column)}"}
            unit = "B/s" if rate else "s"
            better = Better.HIGHER if rate else Better.LOWER
            yield Measurement(_TOOL, case, metric, value, unit, better=better, labels=labels)
