"""Import results of LLM benchmark clients and training logs. The user must name the machine, because the files do not.

If a result states the number of concurrent requests or their rate, it gets the names that ``llm_serve`` uses
(``p1024-o128-c48``), so that both appear on one frontier. Other results keep the tool's own names.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from fleetmark import parsers
from fleetmark.base.kinds import kind_of_class
from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.published import Collector, Row, Table
from fleetmark.parsers.published.files import unpacked

_WORKLOAD = "llm_serve"
_WORK = ("tokens_per_second", "samples_per_second")
_LOAD = re.compile(r"\b[cr][0-9.]+(?:r[0-9.]+)?$")
_CLOSED = re.compile(r"(^|-)c[0-9]+(-|$)")
_NEAR = 0.02  # relative distance from a power of two, because tokenizers miss it by a few tokens


@dataclass(frozen=True, slots=True)
class Client:
    """Read the results of one ``tool``. ``classes``: the class of its rates, and of its times."""

    tool: str
    classes: tuple[str, str] = ("gpu-server", "gpu-latency")
    _: KW_ONLY
    TRAITS: tuple[str, ...] = ()
    MODEL: tuple[str, ...] = ()
    KIND: tuple[str, ...] = ()
    COUNTS: Mapping[str, str] = field(default_factory=dict)
    UNIFORM: Mapping[str, str] = field(default_factory=dict)
    PUBLISHER: str = ""

    def read(self, raw: bytes, name: str = "") -> Table:
        """Return the runs in ``raw``, with the file's ``name`` as the machine.

        Raise FleetmarkError if there are no runs.
        """
        parsed = parsers.parse_file(self.tool, io.BytesIO(unpacked(raw, parsers.MAX_BYTES)))
        collector = Collector()
        collector.notes += parsed.notes
        lengths = {case: _lengths(parsed.measurements, case) for case in {m.case for m in parsed.measurements}}
        for m in parsed.measurements:
            load = _LOAD.search(m.case)
            workload, case = (_WORKLOAD, lengths[m.case] + load[0]) if load else (self.tool, m.case)
            broken = parsed.invalid if not parsed.invalid_cases or m.case in parsed.invalid_cases else None
            collector.add(
                name or self.tool, {}, {}, self._row(name, replace(m, workload=workload, case=case), broken or "")
            )
        return collector.table(len(lengths))

    def _row(self, machine: str, m: Measurement, broken: str) -> Row:
        work = m.metric.endswith(_WORK) and not closed_loop(m.case)
        class_ = self.classes[0 if work else 1]
        kind = None if m.better == Better.NONE else kind_of_class(class_)
        return Row(machine, m, class_, kind, m.case, headline=m.better == Better.HIGHER, invalid=broken)


def closed_loop(case: str) -> bool:
    """Return whether a load keeps a fixed number of requests in flight; throughput is then the inverse of latency."""
    return bool(_CLOSED.search(case))


def _lengths(measurements: Iterable[Measurement], case: str) -> str:
    """Return the mean lengths of a case, such as ``p1024-o128-``; empty if they are unknown."""
    means = {m.metric: m.value for m in measurements if m.case == case}
    parts = [
        f"{letter}{_length(means[name])}"
        for letter, name in (("p", "prompt_tokens"), ("o", "output_tokens"))
        if name in means
    ]
    return "".join(f"{part}-" for part in parts) or "client-"


def _length(mean: float) -> int:
    power = 2 ** round(math.log2(max(mean, 1.0)))
    return power if abs(mean - power) <= _NEAR * power else round(mean)
