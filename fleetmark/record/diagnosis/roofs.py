"""What each part of a host reached at best, beside what it could do by its facts and specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fleetmark.base.facts import Facts
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import pairs, read
from fleetmark.record.diagnosis.table import Table, title
from planner import peak
from planner.peak import Peak
from workloads import declared

RATES = ("B/s", "FLOP/s")
_ON_DEVICES = {"device_memory": "memory", "device_compute": "compute"}  # to what it is of on a host without them


@dataclass(frozen=True, slots=True)
class Roof:
    """The ``best`` that a part of a host measured (``unit``: B/s or FLOP/s; None where nothing did) beside its
    theoretical ``peak``, where that is known. ``of``: the kind of part, as manifests name it (``memory``, ``cache``,
    ``compute``, ``link``, ``pcie``, ``device_memory``, ``device_compute``); ``called``: which of several (``l2``,
    ``fp64``); ``benchmark``: what measured it.
    """

    host: str
    of: str
    called: str
    best: float | None
    peak: Peak | None
    unit: str
    benchmark: str = ""

    @property
    def share(self) -> float | None:
        """Of the peak."""
        return self.best / self.peak.rate if self.best and self.peak else None


Part = tuple[str, str]  # of, called


def roofs_of(archive: Archive) -> list[Roof]:
    """Every part of every host that was measured, or whose peak its facts tell. Raises FleetmarkError for facts or
    measurements that are damaged."""
    measured = archive.inside("measurements.parquet").exists()
    return list(roofs(archive.facts(), *(read(archive, everything=True) if measured else (None, archive.host_names()))))


def roofs(facts: Mapping[str, Facts], measured: figures.Figures | None, hosts: list[str]) -> Iterator[Roof]:
    """Host by host. ``measured``: all metrics; None where nothing was measured."""
    best = {} if measured is None else _best(measured, hosts, facts)
    for host in hosts:
        own = best.get(host, {})
        known = facts.get(host)
        for part in sorted({*own, *(_with_peak(known) if known else ())}, key=_order):
            rate, unit, benchmark = own.get(part, (None, "FLOP/s" if "compute" in part[0] else "B/s", ""))
            yield Roof(host, part[0], part[1], rate, _peak(known, part) if known else None, unit, benchmark)


KINDS = ("compute", "cache", "memory", "link", "device_compute", "device_memory", "pcie", "gpu_link")


def _order(part: Part) -> tuple[int, str]:
    return KINDS.index(part[0]), part[1]


def _with_peak(facts: Facts) -> Iterator[Part]:
    """The parts whose peak facts tell, whether anything measured them or not."""
    for of in ("compute", "memory", "link", "pcie", "gpu_link", "device_memory"):
        called = "fp64" if of == "compute" else ""
        if peak.own(facts, of, called) is not None:
            yield of, called


def _peak(facts: Facts, part: Part) -> Peak | None:
    of, called = part
    if of == "device_compute" and called not in ("bf16", "fp16", ""):
        return None
    return peak.own(facts, of, called)


def _best(
    measured: figures.Figures, hosts: list[str], facts: Mapping[str, Facts]
) -> dict[str, dict[Part, tuple[float, str, str]]]:
    """Host to part to the best rate that its manifest says is of that part, its unit, and the benchmark."""
    best: dict[str, dict[Part, tuple[float, str, str]]] = {}

    def offer(host: str, about: Mapping[str, str], value: float) -> None:
        held = declared.peak(about["workload"], about["case"], about["metric"])
        if held is None or about["unit"] not in RATES or held.of not in KINDS:
            return
        part = _part_of(held.of, held.which(about["case"]), about["class"], facts.get(host))
        rate = value * held.traffic
        if rate > best.setdefault(host, {}).get(part, (0.0,))[0]:
            best[host][part] = rate, about["unit"], title(about)

    table = Table(measured, hosts)
    for row in range(len(table.keys)):
        about = table.benchmark(row)
        held = declared.peak(about["workload"], about["case"], about["metric"])
        if held is not None and held.of != "link":  # a host's own loopback is no link
            for host, column in table.place.items():
                if not np.isnan(table.values[row, column]):
                    offer(host, about, table.value(row, float(table.values[row, column])))
    for pair in pairs.rows_of(measured, hosts).to_dict("records"):
        about = {str(name): str(text) for name, text in pair.items()} | {"subject": "pairs"}
        for end in ("a", "b"):
            offer(hosts[int(pair[end])], about, float(np.exp(pair["value"])))
    return best


def _part_of(of: str, called: str, class_: str, facts: Facts | None) -> Part:
    """A part of the host, or of its accelerator, where the same benchmark runs on either."""
    on_device = class_.startswith("gpu") or bool(facts and facts.gpus)
    if of in _ON_DEVICES and not on_device:
        return _ON_DEVICES[of], called if of == "device_compute" else ""
    if of == "compute" and class_.startswith("gpu"):
        return "device_compute", called
    return of, called if of in ("compute", "cache", "device_compute") else ""
