"""Parse SuperBench's ``gpu_stream``.

Case: the operation with its type (``triad_double``). Labels: ``gpu``, ``block`` (threads), ``buffer`` (bytes). Metrics:
``bandwidth`` in B/s (higher; GB/s are 1e9) and ``peak_share``, the share of the memory's theoretical peak (higher is
better), if printed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "gpu_stream"
_ROW = re.compile(
    r"STREAM_([A-Z]{2,10})_([a-z0-9]{1,10})_gpu_([0-9]{1,4})_buffer_([0-9]{1,15})_block_([0-9]{1,6})"
    r"\s{1,10}([0-9.]{1,15})(?:\s{1,10}([0-9.]{1,10}))?"
)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every row. Raise ParseError if there is none."""
    text = decode(raw)
    measurements: list[Measurement] = []
    last = (1, "no output")
    for n, line in numbered(text):
        if line.strip():
            last = (n, line)
        row = _ROW.fullmatch(line[:200].strip())
        rate = number(row[6]) if row else None
        if not row or not rate:
            continue
        case = f"{row[1].lower()}_{row[2]}"
        labels = {"gpu": str(int(row[3])), "buffer": str(int(row[4])), "block": str(int(row[5]))}
        measurements.append(
            Measurement(_TOOL, case, "bandwidth", rate * 1e9, "B/s", better=Better.HIGHER, labels=labels)
        )
        if share := number(row[7] or ""):
            measurements.append(
                Measurement(_TOOL, case, "peak_share", share / 100, "1", better=Better.HIGHER, labels=labels)
            )
    if not measurements:
        raise ParseError(_TOOL, "a row STREAM_..._gpu_...", line=last[0], got=last[1])
    return Parsed(_TOOL, tuple(measurements), invalid=cut_in_line(text))
