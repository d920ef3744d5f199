"""Hold families of samples, and write them in the OpenMetrics and Prometheus text formats.

Source: OpenMetrics 1.0 (prometheus.io/docs/specs/om/open_metrics_spec).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class Family:
    """The samples of one metric. ``samples``: a value for each set of labels."""

    name: str
    help: str
    kind: Literal["gauge", "counter"] = "gauge"
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def add(self, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Set the sample with these labels. Labels without a value are omitted."""
        self.samples[tuple((k, v) for k, v in (labels or {}).items() if v)] = value

    def lines(self, suffix: str) -> Iterable[str]:
        """Yield the family's lines. ``suffix``: the ending of a counter's samples."""
        yield f"# HELP {self.name} {_escaped(self.help)}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples.items():
            yield f"{self.name}{suffix if self.kind == 'counter' else ''}{_labels(labels)} {_number(value)}"


def render(families: Iterable[Family]) -> str:
    """Return OpenMetrics text. Families with the same name become one."""
    merged: dict[str, Family] = {}
    for family in families:
        known = merged.setdefault(family.name, Family(family.name, family.help, family.kind))
        known.samples.update(family.samples)
    lines = [line for family in merged.values() for line in family.lines("_total")]
    return "\n".join([*lines, "# EOF", ""])


def prometheus(families: Iterable[Family]) -> str:
    """Return the older Prometheus text format, for the textfile collector of node_exporter."""
    return "\n".join([line for family in families for line in family.lines("")] + [""])


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{text}}}" if text else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)
