"""List the areas of work that a comparison should cover but does not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fleetmark.base.kinds import PEAK
from fleetmark.base.text import Message, joined, message
from fleetmark.planner.comparison import WORK_MIX, Comparison
from fleetmark.planner.equivalence import Basis
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads.declared import classes
from fleetmark.workloads.suite import load_suite

_AREAS: Mapping[str, Message] = {
    "cpu-int": message("integer"),
    "cpu-int-speed": message("integer"),
    "cpu-fp": message("floating point"),
    "cpu-fp-speed": message("floating point"),
    "mem-bw": message("memory"),
    "mem-latency": message("memory"),
    "core-bw": message("memory"),
    "os": message("operating system"),
    "disk": message("storage"),
    "disk-iops": message("storage"),
    "disk-bw": message("storage"),
    "disk-latency": message("storage"),
    "net": message("network"),
    "net-flow": message("network"),
    "app": message("applications"),
    "app-speed": message("applications"),
    "gpu-compute": message("GPU compute"),
    "gpu-bw": message("GPU memory"),
    "gpu-train": message("GPU training"),
    "gpu-train-speed": message("GPU training"),
    "gpu-offline": message("GPU inference"),
    "gpu-server": message("GPU inference"),
    "gpu-interactive": message("GPU inference"),
    "gpu-latency": message("GPU inference"),
    "collective": message("GPU collectives"),
}
_ORDER = tuple(dict.fromkeys(_AREAS.values()))
_POWER = message("power")
NO_COST = message("No cost: no host has a price. Add the labels price and currency to the inventory.")
_GPU = ("gpu", "collective")  # prefixes of accelerator classes


def not_measured(comparison: Comparison, powered: Collection[str]) -> str:
    """Return the areas not measured on both sides, such as ``floating point, storage, network, power``.

    The suite ``gpu`` defines the expected areas if accelerators are compared, otherwise the suite ``server`` does.
    ``powered`` lists the sides with recorded power. If only some candidates lack an area, the area is followed by their
    names. The result is empty if nothing is missing.
    """
    measured = {c.title: _measured(comparison, c.title) for c in comparison.candidates}
    on_devices = any(name.startswith(_GPU) for classes in measured.values() for name in classes)
    complete = _complete("gpu" if on_devices else "server")
    parts: list[str] = []
    for area in (*complete, _POWER):
        lacking = [
            c for c, classes in measured.items() if not _has(area, classes, {comparison.baseline, c} <= set(powered))
        ]
        if len(lacking) == len(measured):
            parts.append(area)
        elif lacking:
            parts.append(joined([area, f"({', '.join(map(fmt.clean, lacking))})"], " "))
    return joined(parts)


def lacking(classes_found: Collection[str]) -> str:
    """Return the areas of these classes' suite in which nothing was measured, such as ``storage, network``."""
    names = {name.removesuffix(PEAK) for name in classes_found}
    return joined(area for area in _complete(_suite(names)) if not _has(area, names, powered=False))


def gaps(classes_found: Collection[str], *others: str | None) -> str:
    """Return the areas that these classes do not cover, as ``lacking`` does, and ``others`` as sentences."""
    areas = lacking(classes_found)
    return joined([message("Not measured: {areas}", areas=areas) if areas else None, *others], ". ")


def expected(comparison: Comparison) -> dict[str, str]:
    """Return the classes that the suite for these machines measures, each with the first workload that does."""
    return _first_workloads(_suite(map(str, comparison.benchmarks["class"])))


def unmeasured_workloads(classes_found: Collection[str]) -> tuple[str, ...]:
    """Return the workloads that measure the areas listed in ``lacking``."""
    names = {name.removesuffix(PEAK) for name in classes_found}
    expected_classes = _first_workloads(_suite(names)).items()
    return tuple(dict.fromkeys(w for name, w in expected_classes if not _has(_AREAS[name], names, powered=False)))


def _suite(names: Iterable[str]) -> str:
    """Return the name of the suite for machines with benchmarks of these classes."""
    return "gpu" if any(name.startswith(_GPU) for name in names) else "server"


def _first_workloads(suite: str) -> dict[str, str]:
    """Return the classes that a suite measures, each with the first workload that does."""
    workload_by_class: dict[str, str] = {}
    for workload in load_suite(suite).workloads:
        for name in sorted(classes(workload)):
            if name in _AREAS:
                workload_by_class.setdefault(name.removesuffix(PEAK), workload)
    return dict(sorted(workload_by_class.items(), key=lambda item: list(_AREAS).index(item[0])))


def _has(area: str, measured: Collection[str], powered: bool) -> bool:
    return powered if area == _POWER else any(area == _AREAS.get(name) for name in measured)


def _measured(comparison: Comparison, candidate: str) -> set[str]:
    """Return the classes in which both sides measured a benchmark, whether or not they could be matched."""
    (compared,) = [c for c in comparison.candidates if c.title == candidate]
    a, b = (comparison.figures[side] for side in (comparison.baseline, candidate))
    classes_found = {
        name.removesuffix(PEAK)
        for name, e in compared.classes.items()
        if name != WORK_MIX
        and (e.each or (e.basis is Basis.STRATA and any(title in a and title in b for title in e.left_out)))
    }
    guarded = comparison.benchmarks.loc[[t for t, g in compared.guardrails.items() if g.held is not None], "class"]
    return classes_found | {str(name).removesuffix(PEAK) for name in guarded}


def _complete(suite: str) -> Sequence[Message]:
    """Return the areas that a suite measures, in display order."""
    classes_found = {c.removesuffix(PEAK) for workload in load_suite(suite).workloads for c in classes(workload)}
    return sorted({_AREAS[name] for name in classes_found if name in _AREAS}, key=_ORDER.index)
