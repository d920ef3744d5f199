"""Parsed measurements as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

import workloads
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.base.units import human


def table(tool: str, outputs: Sequence[Parsed]) -> Table:
    """A line per measurement of ``tool``'s outputs; the value carries the standing of its output."""
    metrics = workloads.load(tool).metrics if tool in workloads.names() else {}
    lines = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("case", "subject", "metric", "labels"):
        lines.add_column(name, overflow="fold")
    lines.add_column("value", justify="right", no_wrap=True)
    for output in outputs:
        standing = f" {output.standing}" if output.standing else ""
        for m in output.measurements:
            read = metrics.get(m.metric)
            bits, percent = (read.bits, read.percent) if read else (False, False)
            value = human(m.value, m.unit, bits=bits, percent=percent, digits=4) + standing
            lines.add_row(*map(Text, (m.case, m.subject, m.metric, _labels(m), value)))
    return lines


def _labels(m: Measurement) -> str:
    return ", ".join(f"{name}={value}" for name, value in m.labels.items())
