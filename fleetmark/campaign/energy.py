"""Power and energy of a step from telemetry: of the hosts that did its work, of their accelerators, and of each unit of
work. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.measurement import Better, Measurement
from fleetmark.record.replies import Telemetry
from workloads import Manifest

_LEAST_SAMPLES = 2  # within what was timed: fewer say nothing of it
Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Watched:
    """The telemetry of one host that did the work of a step. ``window``: from when to when the tool timed, Unix seconds
    of this host's clock; None where it does not say.
    """

    telemetry: Telemetry
    window: Window | None = None


def drawn(hosts: Sequence[Watched]) -> list[Measurement]:
    """``power`` (W) of the hosts, ``accelerator_power`` (W) of all their accelerators, and ``accelerator_energy`` (J),
    of these over the step.

    Powers are means of the time that the tool timed, of the step where that is not known or too short for samples, and
    sums over the hosts, which must all have them from one source: it is the label ``source``, since sources do not
    compare.
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
    """The energy (J) of a unit of work for each of ``rates`` whose metric declares ``energy``: the power of all
    ``hosts`` while the tool timed, over the rate. Empty where it does not say when it timed.
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
    """The power of the hosts by the best source that all of them have: a meter of the server, else of the platform,
    else RAPL's sum of packages and memory, which covers nothing else.
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
    """Each source of a host's power that is there, best first, with the columns that add up to it."""
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


def _counted(telemetry: Telemetry) -> Iterator[tuple[str, float]]:
    """What all accelerators of a host took over the step (J), with its source; nothing where one does not say."""
    devices = telemetry.gpus
    joules = [d.energy_j for d in devices.devices if d.energy_j is not None] if devices else []
    if devices and joules and len(joules) == len(devices.devices) and _possible(sum(joules)):
        yield devices.source, sum(joules)


def _shared(hosts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums over all hosts, of the sources that all have, in the order of the first."""
    if not hosts:
        return {}
    every = {source: sum(h[source] for h in hosts) for source in hosts[0] if all(source in h for h in hosts)}
    return {source: amount for source, amount in every.items() if _possible(amount)}


def _within(
    telemetry: Telemetry, samples: Mapping[str, Sequence[float | None]], columns: Sequence[str], window: Window
) -> float | None:
    """The mean of the sum of ``columns`` within ``window``; None where too few samples lie there."""
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
    """Whether it can be a power or an energy: a host may send anything."""
    return 0 < amount < math.inf


def _mean(column: Sequence[float | None]) -> float | None:
    present = [value for value in column if value is not None]
    return sum(present) / len(present) if present else None


def _one(metric: str, value: float, unit: str, source: str) -> Measurement:
    return Measurement("telemetry", "", metric, value, unit, Better.LOWER, labels={"source": source})
