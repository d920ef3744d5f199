"""Compute the power and energy of a step's hosts, accelerators and units of work from telemetry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.measurement import Better, Measurement
from fleetmark.record.replies import StepTelemetry
from fleetmark.workloads import Manifest

_LEAST_SAMPLES = 2  # minimum number of samples within the timed window
Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Watched:
    """The telemetry of one host that worked on a step.

    ``window`` holds the start and end of the tool's timed section in Unix seconds by this host's clock, or is None if
    unknown.
    """

    telemetry: StepTelemetry
    window: Window | None = None


def drawn(hosts: Sequence[Watched]) -> list[Measurement]:
    """Return the ``power`` (W) of the hosts, and the ``accelerator_power`` (W) and ``accelerator_energy`` (J).

    Powers are means over the tool's timed section, and sums over the hosts. If the section is unknown or too short,
    they are means over the step. All hosts must have the same source, named by the label ``source``, because different
    sources are not comparable. The energy covers the step.
    """
    untimed = [replace(h, window=None) for h in hosts]
    powers = {
        "power": _of_hosts(hosts) or _of_hosts(untimed),
        "accelerator_power": _of_accelerators(hosts) or _of_accelerators(untimed),
    }
    rows = [_one(metric, watts, "W", source) for metric, readings in powers.items() for source, watts in readings]
    energies = _shared([dict(_counted(h.telemetry)) for h in hosts])
    return rows + [_one("accelerator_energy", joules, "J", source) for source, joules in energies.items()]


def of_work(hosts: Sequence[Watched], rates: Sequence[Measurement], manifest: Manifest) -> list[Measurement]:
    """Return the energy (J) per unit of work for each of the ``rates`` whose metric declares ``energy``.

    It is the power of all ``hosts`` during the timed section, divided by the rate. The result is empty if the tool
    does not report its timed section.
    """
    declared = {name: metric.energy for name, metric in manifest.metrics.items() if metric.energy}
    rates = [m for m in rates if m.metric in declared and m.value > 0 and m.unit == "1/s"]
    if not rates or not all(h.window for h in hosts):
        return []
    powers = [*_of_accelerators(hosts), *_of_hosts(hosts)]
    rows = []
    for rate in rates:
        for source, watts in powers:
            metric, joules = f"energy_per_{declared[rate.metric]}", watts / rate.value
            if _possible(joules):
                of_all = _one(metric, joules, "J", source)
                rows.append(
                    replace(of_all, case=rate.case, subject=rate.subject, labels={**rate.labels, **of_all.labels})
                )
    return rows


def _of_hosts(hosts: Sequence[Watched]) -> list[tuple[str, float]]:
    """Return the power of the hosts from the best source that all of them have.

    The order of preference is a meter of the server, a meter of the platform, and RAPL (only packages and memory).
    """
    return list(_shared([dict(_by_source(h)) for h in hosts]).items())[:1]


def _by_source(host: Watched) -> Iterator[tuple[str, float]]:
    t = host.telemetry
    for source, columns in _sources(t.samples if host.window else t.summary):
        timed = host.window and _within(t, t.samples, columns, host.window)
        watts = timed if host.window else sum(t.summary[c].mean for c in columns)
        if watts is not None and _possible(watts):
            yield source, float(watts)


def _sources(names: Mapping[str, object]) -> Iterator[tuple[str, list[str]]]:
    """Yield each available source of a host's power with the columns to add, best first."""
    for source, column in (("meter", "power_w:power_meter"), ("psys", "power_w:psys")):
        if column in names:
            yield source, [column]
    if rapl := [name for name in names if name.startswith("power_w:package")]:
        yield "rapl", rapl


def _of_accelerators(hosts: Sequence[Watched]) -> list[tuple[str, float]]:
    return list(_shared([dict(_of_devices(h)) for h in hosts]).items())


def _of_devices(host: Watched) -> Iterator[tuple[str, float]]:
    devices = host.telemetry.gpus
    if devices is None:
        return
    timed = host.window and _within(host.telemetry, devices.samples, ["gpu_power_w"], host.window)
    watts = timed if host.window else _mean(devices.samples.get("gpu_power_w", ()))
    if watts is not None and _possible(watts):
        yield devices.source, watts


def _counted(telemetry: StepTelemetry) -> Iterator[tuple[str, float]]:
    """Yield the energy (J) of all accelerators of a host over the step, with its source.

    Yield nothing if an accelerator does not report it.
    """
    devices = telemetry.gpus
    joules = [d.energy_j for d in devices.devices if d.energy_j is not None] if devices else []
    if devices and joules and len(joules) == len(devices.devices) and _possible(sum(joules)):
        yield devices.source, sum(joules)


def _shared(hosts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums over all hosts for the sources that all of them have, in the first host's order."""
    if not hosts:
        return {}
    every = {source: sum(h[source] for h in hosts) for source in hosts[0] if all(source in h for h in hosts)}
    return {source: amount for source, amount in every.items() if _possible(amount)}


def _within(
    telemetry: StepTelemetry, samples: Mapping[str, Sequence[float | None]], columns: Sequence[str], window: Window
) -> float | None:
    """Return the mean of the sum of ``columns`` within ``window``, or None if there are too few samples."""
    if telemetry.started is None:
        return None
    begin, end = (moment - telemetry.started for moment in window)
    moments = samples.get("t", ())
    values = [samples[c] for c in columns if c in samples and len(samples[c]) == len(moments)]
    if len(values) != len(columns):
        return None
    inside = [n for n, t in enumerate(moments) if t is not None and begin <= t <= end]
    sums = [sum(v for v in row if v is not None) for n in inside if None not in (row := [v[n] for v in values])]
    if len(sums) < _LEAST_SAMPLES or not _possible(sum(sums)):
        return None
    return sum(sums) / len(sums)


def _possible(amount: float) -> bool:
    """Return whether ``amount`` is a plausible power or energy, because a host may send anything."""
    return 0 < amount < math.inf


def _mean(column: Sequence[float | None]) -> float | None:
    present = [value for value in column if value is not None]
    return sum(present) / len(present) if present else None


def _one(metric: str, value: float, unit: str, source: str) -> Measurement:
    return Measurement("telemetry", "", metric, value, unit, better=Better.LOWER, labels={"source": source})
