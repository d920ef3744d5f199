"""Define a metric by the columns that identify it."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """Identify a metric of a subject by the key columns of a measurement (see ``base.schema``)."""

    workload: str
    case: str
    metric: str
    subject: str
    labels: str
    standing: str
    unit: str
