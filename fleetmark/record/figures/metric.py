"""Define a metric by the columns that identify it."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """Identify a metric of a subject by the key columns of a measurement (see ``base.schema``)."""

    workload: str
    case: str
    metric: str
    subject: str
    labels: str
    standing: str
    unit: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the values of the key columns, in the order of the columns."""
        return astuple(self)
