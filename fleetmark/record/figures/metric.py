"""What tells one metric from all others, as a value."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a subject: the key columns of a measurement, text as in ``base.schema``."""

    workload: str
    case: str
    metric: str
    subject: str
    labels: str
    standing: str
    unit: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The values of the key columns, in their order."""
        return astuple(self)
