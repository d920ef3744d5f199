"""Look up what manifests declare about recorded figures, by name; workloads without a manifest have no declarations."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import cache

from fleetmark.base import extensions, kinds
from fleetmark.base.measurement import Better, Kind
from fleetmark.workloads.manifest import Declaration, Frontier, Manifest, Metric, Peak, Plot, load, names
from fleetmark.workloads.variant import plain_case

_PER_SECOND = re.compile(r"(?:^|_)(?:([a-z]+s)_per_second|(message|packet|build|request)_rate)(?:_device)?$")
_EITHER = re.compile(r"'([a-z][a-z0-9-]*)'")  # the classes that an expression can choose


def classes(workload: str) -> frozenset[str]:
    """Return the possible classes of the headline metrics of ``workload``, without guardrails."""
    manifest = _manifest(workload)
    listed: set[str] = set()
    for case in manifest.cases if manifest else ():
        assert manifest is not None
        shape = re.sub("<.*?>", "1", case.called or case.name)
        class_text = str(case.class_ or manifest.class_)
        for class_ in (_EITHER.findall(class_text) if "{{" in class_text else [class_text]) or [manifest.class_]:
            for name in manifest.headlines(case):
                metric = manifest.metrics.get(name)
                if metric is not None:
                    a = manifest.describe(name, [shape], class_, metric.unit, str(metric.better))
                    counted = a.kind in (Kind.CAPACITY, Kind.RESPONSIVENESS) and kinds.kind_of_class(a.class_)
                    listed |= {a.class_} if counted else set()
    return frozenset(listed)


def throttle(workload: str) -> str:
    """Return how the measurement of ``workload`` can be slowed down on purpose; empty if not declared."""
    manifest = _manifest(workload)
    return manifest.throttle if manifest else ""


def plot(workload: str, metric: str) -> Plot | None:
    """Return the x axis for a latency under load; None for any other metric."""
    manifest = _manifest(workload)
    metric_of_manifest = manifest.metrics.get(metric) if manifest else None
    return metric_of_manifest.plot if metric_of_manifest else None


def between_devices(workload: str, metric: str) -> bool:
    """Return whether the labels ``from`` and ``to`` of a metric name devices of a host, so a map can show it."""
    manifest = _manifest(workload)
    metric_of_manifest = manifest.metrics.get(metric) if manifest else None
    return bool(metric_of_manifest and metric_of_manifest.between_devices)


def in_bits(workload: str, metric: str) -> bool:
    """Return whether the metric is shown in bit/s."""
    manifest = _manifest(workload)
    return bool(manifest and metric in manifest.metrics and manifest.metrics[metric].bits)


def counted(workload: str, metric: str) -> str:
    """Return the display unit of a rate, such as ``tokens/s`` or ``IOPS``; empty if the metric names none."""
    manifest = _manifest(workload)
    frontier = manifest.frontier if manifest else None
    if frontier and metric in (frontier.work, frontier.speed):
        return f"{frontier.piece}s/s"
    if metric.endswith("iops"):
        return "IOPS"
    match = _PER_SECOND.search(metric)
    return f"{match[1] or match[2] + 's'}/s" if match else ""


def peak(workload: str, case: str, metric: str) -> Peak | None:
    """Return the machine's peak to compare a figure with, or None if there is none."""
    manifest = _manifest(workload)
    metric_of_manifest = manifest.metrics.get(metric) if manifest else None
    declared = metric_of_manifest.peak if metric_of_manifest else ()
    return next((peak for peak in declared if any(fnmatch.fnmatchcase(plain_case(case), p) for p in peak.cases)), None)


def roofs(workloads: Iterable[str]) -> dict[tuple[str, str], Metric]:
    """Return the metrics that are shares of a roof, by (workload, name)."""
    manifests = {name: _manifest(name) for name in sorted(set(workloads))}
    return {
        (n, m): metric
        for n, manifest in manifests.items()
        if manifest
        for m, metric in manifest.metrics.items()
        if metric.roof
    }


def frontier(workload: str) -> Frontier | None:
    """Return which metrics of the workload form a frontier, or None."""
    manifest = _manifest(workload)
    return manifest.frontier if manifest else None


def devices(workload: str) -> str:
    """Return the metric with the number of accelerators that a case used; empty if there is none."""
    manifest = _manifest(workload)
    return manifest.devices if manifest else ""


def depth(workload: str, case: str) -> tuple[str, float] | None:
    """Return the name of a case without its queue depth, and that depth; None for a case without one."""
    manifest = _manifest(workload)
    for part in dict.fromkeys(c.depth for c in manifest.cases if c.depth) if manifest else ():
        before, _, after = map(re.escape, part.partition("<>"))
        match = re.fullmatch(rf"(.*?){before}(\d+){after}(.*)", case)
        if match and int(match[2]) > 0:
            return match[1] + match[3], float(match[2])
    return None


def declaration(workload: str, case: str, metric: str, class_: str, unit: str, better: str) -> Declaration:
    """Return the description of a recorded figure: from its manifest, or else from its class, unit and direction."""
    manifest = _manifest(workload)
    if manifest is None:
        return Declaration(*kinds.inferred(class_, unit, better), better)
    return manifest.describe(metric, [case.partition("/")[0], case], class_, unit, better)


def declares(workload: str, metric: str) -> bool:
    """Return whether a manifest declares the metric, so that ``declaration`` does not need to infer its kind."""
    manifest = _manifest(workload)
    return bool(manifest and metric in manifest.metrics)


def keeps_limit(workload: str, case: str) -> bool:
    """Return whether a failure of the case means that the host misses a limit."""
    manifest = _manifest(workload)
    shapes = [c.called or c.name for c in manifest.cases if c.keeps_limit] if manifest else []
    base = plain_case(case).partition("/")[0]  # the common part of cases that the parser splits
    return any(re.fullmatch(re.sub("<.*?>", ".+", re.escape(shape)), base) for shape in shapes)


def lower_is_better(workload: str, metric: str) -> bool:
    """Return whether a manifest declares the metric, and that lower values of it are better."""
    manifest = _manifest(workload)
    return bool(manifest and metric in manifest.metrics and manifest.metrics[metric].better is Better.LOWER)


def in_percent(workload: str, metric: str) -> bool:
    """Return whether the metric, a share, is shown in %."""
    manifest = _manifest(workload)
    return bool(manifest and metric in manifest.metrics and manifest.metrics[metric].percent)


def _manifest(workload: str) -> Manifest | None:
    return _of_state(workload, extensions.state())


@cache
def _of_state(workload: str, _: str) -> Manifest | None:
    return load(workload) if workload in names() else None
