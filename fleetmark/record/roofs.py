"""Compare the best measured rate of each part of a host with its theoretical peak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Facts
from fleetmark.planner import peak
from fleetmark.planner.peak import Peak
from fleetmark.workloads import declared
from fleetmark.workloads.manifest import Peak as Declared

RATES = ("B/s", "FLOP/s")
KINDS = ("compute", "cache", "memory", "link", "device_compute", "device_memory", "pcie", "gpu_link")
_ON_DEVICES = {"device_memory": "memory", "device_compute": "compute"}  # on hosts without accelerators

Part = tuple[str, str]  # (kind, called)
Best = Mapping[str, Mapping[Part, tuple[float, str, str]]]  # by host and part: best rate, unit and benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """The ``best`` measured rate and the theoretical ``peak`` of a part of a host, None if unknown.

    ``unit``: B/s or FLOP/s; ``kind``: the kind of part, as in manifests (``memory``, ``cache``, ``compute``, ``link``,
    ``pcie``, ``device_memory``, ``device_compute``); ``called``: the part among several of its kind (``l2``,
    ``fp64``); ``benchmark``: the benchmark that measured the best rate.
    """

    host: str
    kind: str
    called: str
    best: float | None
    peak: Peak | None
    unit: str
    benchmark: str = ""

    @property
    def share(self) -> float | None:
        """Return the best rate as a share of the peak."""
        return self.best / self.peak.rate if self.best and self.peak else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A host's ``value`` (in ``unit``) of a workload's metric. ``title``: the name of the benchmark."""

    host: str
    workload: str
    case: str
    metric: str
    class_: str
    unit: str
    value: float
    title: str


def part_of(workload: str, case: str, metric: str, unit: str) -> Declared | None:
    """Return the part that a manifest declares for a rate. Return None if it is not a rate, or has no part."""
    held = declared.peak(workload, case, metric) if unit in RATES else None
    return held if held and held.part in KINDS else None


def best_of(rates: Iterable[Rate], facts: Mapping[str, Facts]) -> Best:
    """Return the best of ``rates`` for each part of each host. Bandwidth counts the bytes that the hardware moves."""
    best: dict[str, dict[Part, tuple[float, str, str]]] = {}
    for r in rates:
        held = part_of(r.workload, r.case, r.metric, r.unit)
        if held is None:
            continue
        part = _part(held.part, held.peak_name(r.case), r.class_, facts.get(r.host))
        rate = r.value * held.traffic
        if rate > best.setdefault(r.host, {}).get(part, (0.0,))[0]:
            best[r.host][part] = rate, r.unit, r.title
    return best


def roofs(facts: Mapping[str, Facts], hosts: Sequence[str], best: Best) -> Iterator[Roof]:
    """Yield every part that was measured or has a known peak, host by host."""
    for host in hosts:
        rates_of_host = best.get(host, {})
        known = facts.get(host)
        for part in sorted({*rates_of_host, *(_with_peak(known) if known else ())}, key=_order):
            rate, unit, benchmark = rates_of_host.get(part, (None, "FLOP/s" if "compute" in part[0] else "B/s", ""))
            yield Roof(
                host=host,
                kind=part[0],
                called=part[1],
                best=rate,
                peak=_peak(known, part) if known else None,
                unit=unit,
                benchmark=benchmark,
            )


def _order(part: Part) -> tuple[int, str]:
    return KINDS.index(part[0]), part[1]


def _with_peak(facts: Facts) -> Iterator[Part]:
    """Yield the parts whose peak is known from facts, measured or not."""
    for component in ("compute", "memory", "link", "pcie", "gpu_link", "device_memory"):
        called = "fp64" if component == "compute" else ""
        if peak.component_peak(facts, component, called) is not None:
            yield component, called


def _peak(facts: Facts, part: Part) -> Peak | None:
    return peak.component_peak(facts, *part)


def _part(component: str, called: str, class_: str, facts: Facts | None) -> Part:
    """Return the part of the host, or of its accelerator if the benchmark can run on both."""
    on_device = class_.startswith("gpu") or bool(facts and facts.gpus)
    if component in _ON_DEVICES and not on_device:
        return _ON_DEVICES[component], called if component == "device_compute" else ""
    if component == "compute" and class_.startswith("gpu"):
        return "device_compute", called
    return component, called if component in ("compute", "cache", "device_compute") else ""
