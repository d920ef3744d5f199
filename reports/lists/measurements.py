"""Present parsed measurements as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleetmark import workloads
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.base.text import message
from fleetmark.reports.kit.document import Document, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, number, quantity
from fleetmark.workloads.declared import counted


def document(tool: str, outputs: Sequence[Parsed], data: Any) -> Document:
    """Return a row per measurement of a tool's outputs, with its standing. ``data``: the measurements as JSON."""
    columns = (
        Column("case", message("case"), "name"),
        Column("subject", message("subject")),
        Column("metric", message("metric")),
        Column("labels", message("labels")),
        Column("value", message("value"), "number"),
        Column("standing", message("standing")),
    )
    rows = tuple(_row(tool, output, m) for output in outputs for m in output.measurements)
    title = message("Measurements of {tool}", tool=tool)
    table = compact(Tabular("measurements", title, columns, rows, listing=True))
    return listing(title, table, message("no measurement was found"), data)


def _row(tool: str, output: Parsed, m: Measurement) -> tuple[Cell, ...]:
    metrics = workloads.load(tool).metrics if tool in workloads.names() else {}
    metric = metrics.get(m.metric)
    percent = metric is not None and metric.percent
    # Rates that no manifest declares, such as those of the reverse direction, are shown like the declared rates.
    bits = metric.bits if metric else any(other.bits and other.unit == m.unit for other in metrics.values())
    noun = counted(tool, m.metric)
    is_count = m.unit == "1" and not percent and float(m.value).is_integer()
    value = (
        number(m.value) if is_count else quantity(m.value, m.unit, bits=bits, percent=percent, counted=noun, digits=4)
    )
    return (
        Cell(m.case),
        Cell(m.subject),
        Cell(m.metric),
        Cell(", ".join(f"{name}={value}" for name, value in m.labels.items())),
        value,
        Cell(output.standing or ""),
    )
