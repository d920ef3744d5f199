"""Power and energy of a step from its telemetry: of the host, of its accelerators, and of each unit of work. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.record.replies import Extremes, Telemetry
from workloads import Manifest

_LEAST_SAMPLES = 2  # within what was timed: fewer say nothing of it


def measured(telemetry: Telemetry | None, parsed: Parsed, manifest: Manifest, members: int) -> list[Measurement]:
    """``power`` (W) of the host, ``accelerator_power`` (W) and ``accelerator_energy`` (J) of all its accelerators over
    the step, and the energy of a unit of work (J) for each rate whose metric declares ``energy``.

    The last is the mean power while the tool timed (``parsed.window``), over the rate. A step that several hosts ran
    has none, as telemetry is of the first host alone. Each has the label ``source``: sources do not compare.
    """
    if telemetry is None:
        return []
    rows = list(_host(telemetry.summary))
    devices = telemetry.gpus
    if devices:
        watts = _mean(devices.samples.get("gpu_power_w", ()))
        if watts and _possible(watts):
            rows.append(_one("accelerator_power", watts, "W", devices.source))
        joules = [d.energy_j for d in devices.devices if d.energy_j is not None]
        if joules and len(joules) == len(devices.devices) and sum(joules) > 0:
            rows.append(_one("accelerator_energy", sum(joules), "J", devices.source))
    if members < 2:
        rows += _of_work(telemetry, parsed, manifest)
    return rows


def _host(summary: Mapping[str, Extremes]) -> Iterator[Measurement]:
    """The mean power of the host: from a meter of the server, else of the platform, else RAPL's sum of packages and
    memory, which covers nothing else."""
    means = {name: s.mean for name, s in summary.items()}
    for source, columns in _sources(means):
        watts = sum(means[c] for c in columns)
        if _possible(watts):
            yield _one("power", float(watts), "W", source)
            return


def _sources(names: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Each source of the host's power that is there, best first, with the columns that add up to it."""
    for source, column in (("meter", "power_w:power_meter"), ("psys", "power_w:psys")):
        if column in names:
            yield source, [column]
    if rapl := [name for name in names if name.startswith("power_w:package")]:
        yield "rapl", rapl


def _of_work(telemetry: Telemetry, parsed: Parsed, manifest: Manifest) -> Iterator[Measurement]:
    declared = {name: metric.energy for name, metric in manifest.metrics.items() if metric.energy}
    rates = [m for m in parsed.measurements if m.metric in declared and m.value > 0 and m.unit == "1/s"]
    if not rates or parsed.window is None or telemetry.started is None:
        return
    begin, end = (moment - telemetry.started for moment in parsed.window)
    powers: list[tuple[str, float]] = []
    if devices := telemetry.gpus:
        powers += _within(devices.source, devices.samples, ["gpu_power_w"], begin, end)
    for source, columns in _sources(telemetry.samples):
        if power := _within(source, telemetry.samples, columns, begin, end):
            powers += power
            break
    for rate in rates:
        for source, watts in powers:
            labels = {**rate.labels, "source": source}
            metric, joules = f"energy_per_{declared[rate.metric]}", watts / rate.value
            if _possible(joules):
                yield Measurement("telemetry", rate.case, metric, joules, "J", Better.LOWER, rate.subject, labels)


def _within(
    source: str, samples: Mapping[str, Sequence[float | None]], columns: Sequence[str], begin: float, end: float
) -> list[tuple[str, float]]:
    """The mean of the sum of ``columns`` from ``begin`` to ``end`` (seconds), with its source; none where unknown."""
    moments = samples.get("t", ())
    values = [samples[c] for c in columns if c in samples and len(samples[c]) == len(moments)]
    if len(values) != len(columns):
        return []
    inside = [n for n, t in enumerate(moments) if t is not None and begin <= t <= end]
    sums = [sum(v for v in row if v is not None) for n in inside if None not in (row := [v[n] for v in values])]
    if len(sums) < _LEAST_SAMPLES or not _possible(sum(sums)):
        return []
    return [(source, sum(sums) / len(sums))]


def _possible(amount: float) -> bool:
    """Whether it can be a power or an energy: a host may send anything."""
    return 0 < amount < math.inf


def _mean(column: Sequence[float | None]) -> float | None:
    present = [value for value in column if value is not None]
    return sum(present) / len(present) if present else None


def _one(metric: str, value: float, unit: str, source: str) -> Measurement:
    return Measurement("telemetry", "", metric, value, unit, Better.LOWER, labels={"source": source})
