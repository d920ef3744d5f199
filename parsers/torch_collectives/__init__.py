"""Parse the output of Fleetmark's program for collectives of torch.distributed.

Case: the operation. Metrics, as nccl-tests counts them: ``time`` (s, lower; the mean of consecutive calls on the
slowest rank), ``time_p50`` and ``time_p99`` (s, lower; of single calls), ``algbw``, ``busbw`` and ``torch_peak_busbw``
(B/s, higher), ``ranks`` and ``nodes``. Labels: ``size`` in bytes and ``type``. Bandwidths are computed from size and
time. A result with wrong data is ``invalid``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit import json_lines as lines
from fleetmark.parsers.kit.text import number

_TOOL = "torch_collectives"
_FACTOR: dict[str, Callable[[float], float]] = {  # bus bandwidth over algorithm bandwidth, for n ranks
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one run. Raise ParseError if it has none."""
    report = lines.read(_TOOL, raw)
    op, kind = lines.word(report.head, "op"), lines.word(report.head, "dtype")
    ranks, nodes = lines.integer(report.head, "ranks", 2), lines.integer(report.head, "nodes", 1)
    if op not in _FACTOR or ranks is None or nodes is None:
        raise ParseError(_TOOL, "an operation, ranks and nodes", line=1, got=str(report.head)[:120])
    points = [(n, row, _point(op, ranks, kind, row)) for n, row in report.rows]
    rows = [(row, measured) for _, row, measured in points if measured]
    if not rows:
        raise ParseError(_TOOL, "a size with its time", got=report.cut or "sizes too small to share among the ranks")
    measurements = [m for _, measured in rows for m in measured]
    peak = max(m.value for m in measurements if m.metric == "busbw")
    measurements.append(Measurement(_TOOL, op, "torch_peak_busbw", peak, "B/s", better=Better.HIGHER))
    for name, count in (("ranks", ranks), ("nodes", nodes)):
        measurements.append(Measurement(_TOOL, op, name, float(count), "1", better=Better.NONE))
    wrong = [f"{int(bad)} elements at {row['size']} bytes" for row, _ in rows if (bad := number(row.get("wrong")))]
    invalid = f"wrong data: {', '.join(wrong[:3])}" if wrong else report.cut
    notes = [f"line {n}: a size that is damaged is left out" for n, _, measured in points if not measured]
    if all(row.get("wrong") is None for row, _ in rows):
        notes.insert(0, "the results were not checked")
    version = " ".join(filter(None, [lines.word(report.head, "torch"), lines.word(report.head, "backend")]))
    return Parsed(_TOOL, tuple(measurements), version or None, invalid, tuple(notes[:10]))


def _point(op: str, ranks: int, kind: str, row: dict[str, Any]) -> list[Measurement]:
    """Return the measurements of one size; empty if the row is not a measurement."""
    size, time = lines.integer(row, "size", 1), lines.positive(row, "time")
    if size is None or time is None:
        return []
    algbw = number(size / time)
    if algbw is None:  # the time is too short for a finite rate
        return []
    figures = [("time", time, "s"), ("algbw", algbw, "B/s"), ("busbw", algbw * _FACTOR[op](ranks), "B/s")]
    figures += [(f"time_{q}", value, "s") for q in ("p50", "p99") if (value := lines.positive(row, q))]
    return list(_measurements(op, figures, {"size": str(size)} | ({"type": kind} if kind else {})))


def _measurements(op: str, figures: list[tuple[str, float, str]], labels: dict[str, str]) -> Iterator[Measurement]:
    for metric, value, unit in figures:
        better = Better.LOWER if unit == "s" else Better.HIGHER
        yield Measurement(_TOOL, op, metric, value, unit, better=better, labels=labels)
