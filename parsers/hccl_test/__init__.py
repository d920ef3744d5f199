"""Parse hccl_test of Ascend's CANN: the rows that ``nccl_variants`` reads, and the best of all sizes.

Case: ``hccl-OPERATION``. Metrics: ``time`` (s, lower) and ``algbw`` (B/s, higher) with the label ``size``, and
``peak_algbw`` (B/s, higher). hccl_test prints no bus bandwidth. A failed check makes the run ``invalid``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers import nccl_variants

_TOOL = "hccl_test"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every table in ``raw``. Raise ParseError if there is none."""
    try:
        parsed = nccl_variants.parse(raw, command)
    except ParseError as error:
        raise ParseError(_TOOL, "a table of hccl_test", line=error.line, got=error.got) from None
    measurements = [replace(m, workload=_TOOL) for m in parsed.measurements if m.case.startswith("hccl")]
    if not measurements:
        raise ParseError(_TOOL, "a table of hccl_test", got="a table of another tool (use nccl_variants)")
    for case in dict.fromkeys(m.case for m in measurements):
        rates = [m.value for m in measurements if m.case == case and m.metric == "algbw"]
        if rates:
            measurements.append(Measurement(_TOOL, case, "peak_algbw", max(rates), "B/s", better=Better.HIGHER))
    return replace(parsed, tool=_TOOL, measurements=tuple(measurements))
