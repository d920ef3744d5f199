"""Compare each part of hosts with its peak, and compute the operations per byte above which compute is the limit.

Hosts of one kind are shown together: the median of each part, and the host with the lowest rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.text import Message, count, message
from fleetmark.record.roofs import KINDS, Part, Roof
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit import tabular
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import FILES, Exhibit, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.roofline import Ceiling, roofline
from fleetmark.reports.kit.tabular import Cell, Column, Tabular

MOST_PICTURES = 12
_OF_DEVICES = ("device_compute", "device_memory", "pcie", "gpu_link")
# The precision of the compute rate to compare bandwidths with: the first one that was measured.
_PRECISIONS = {False: ("fp64", "fp32", "bf16"), True: ("bf16", "fp16", "tf32", "fp32", "fp64")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A part of the hosts of one ``kind``.

    ``rate``: the median rate of ``hosts`` hosts, given with the lowest rate and its host. ``share``: the median share
    of the peak. ``balance``: operations per byte above which compute is the limit instead of this part. ``roof``: the
    roof of the median host.
    """

    kind: str
    roof: Roof
    hosts: int
    rate: float
    lowest: Roof
    share: float | None
    balance: float | None = None

    @property
    def name(self) -> Message:
        return part_name(self.roof.kind, self.roof.called)


def part_name(component: str, called: str) -> Message:
    """Return the name of a part."""
    names = {
        "memory": message("memory"),
        "cache": message("cache {level}", level=called.upper()),
        "compute": message("computing, {precision}", precision=called),
        "link": message("network"),
        "pcie": message("PCIe of a GPU"),
        "gpu_link": message("from GPU to GPU"),
        "device_memory": message("memory of a GPU"),
        "device_compute": message("computing of a GPU, {precision}", precision=called),
    }
    return names[component]


def rate(value: float, unit: str) -> str:
    """Return a rate with three digits: ``281 GB/s``, ``2.14 TFLOP/s``."""
    return fmt.fit([(value, 0.98 * value, 1.02 * value)], unit).quantity(value)


def lines(roofs: Sequence[Roof], kinds: Mapping[str, str]) -> list[Line]:
    """Return every measured part by kind of host. ``kinds``: maps host to kind."""
    roofs_by_kind: dict[str, dict[Part, list[Roof]]] = {}
    for roof in roofs:
        if roof.best is not None:
            roofs_by_kind.setdefault(kinds.get(roof.host, ""), {}).setdefault((roof.kind, roof.called), []).append(roof)
    return [line for kind, parts in roofs_by_kind.items() for line in _of_kind(kind, parts)]


def _of_kind(kind: str, parts: Mapping[Part, Sequence[Roof]]) -> Iterator[Line]:
    medians = {part: statistics.median(r.best or 0.0 for r in roofs) for part, roofs in parts.items()}
    for component, called in sorted(parts, key=lambda part: (KINDS.index(part[0]), part[1])):
        roofs = sorted(parts[component, called], key=lambda r: r.best or 0.0)
        shares = [r.share for r in roofs if r.share is not None]
        against = _against(medians, component)
        yield Line(
            kind=kind,
            roof=roofs[(len(roofs) - 1) // 2],
            hosts=len(roofs),
            rate=medians[component, called],
            lowest=roofs[0],
            share=statistics.median(shares) if shares else None,
            balance=against / medians[component, called] if against and "compute" not in component else None,
        )


def _against(medians: Mapping[Part, float], component: str) -> float | None:
    """Return the compute rate to compare a bandwidth with."""
    device = component in _OF_DEVICES
    name = "device_compute" if device else "compute"
    known = [medians[name, p] for p in _PRECISIONS[device] if (name, p) in medians]
    return known[0] if known else None


def tables(of_parts: Sequence[Line]) -> list[Tabular]:
    """Return a table for each kind of host, with a row for each part."""
    columns = (
        Column("part", message("part"), "name"),
        Column("kind", message("kind"), only=("json", "csv")),
        Column("measured", message("measured"), "number"),
        Column("peak", message("peak"), "number"),
        Column("share", message("% of peak"), "number"),
        Column("balance", message("operations per byte"), "number"),
        Column("hosts", message("hosts"), "number"),
        Column("lowest", message("lowest"), "number"),
        Column("lowest_host", message("lowest on")),
        Column("benchmark", message("measured by")),
        Column("basis", message("peak from"), "note"),
    )
    of_kind: dict[str, list[Line]] = {}
    for line in of_parts:
        of_kind.setdefault(line.kind, []).append(line)
    listed = {kind: tuple(map(_row, group)) for kind, group in of_kind.items()}
    return [tabular.compact(Tabular("parts", kind, columns, rows)) for kind, rows in listed.items()]


def _row(line: Line) -> tuple[Cell, ...]:
    top, several = line.roof.peak, line.hosts > 1
    unit = line.roof.unit
    return (
        Cell(line.name),
        Cell(fmt.clean(line.kind)),
        Cell(rate(line.rate, unit), line.rate, unit),
        Cell(rate(top.rate, unit), top.rate, unit) if top else Cell(),
        Cell(fmt.share(line.share, 0), line.share) if line.share is not None else Cell(),
        tabular.figure(line.balance),
        Cell(f"{line.hosts:,}", line.hosts),
        Cell(rate(line.lowest.best or 0.0, unit), line.lowest.best, unit) if several else Cell(),
        Cell(fmt.clean(line.lowest.host)) if several else Cell(),
        Cell(fmt.clean(line.roof.benchmark)),
        Cell(top.basis) if top else Cell(),
    )


def by_host(roofs: Sequence[Roof], key: str, title: Message) -> Tabular:
    """Return a row for each part of each host: the measured rate and the theoretical peak."""
    columns = (
        Column("host", message("host"), "name"),
        Column("part", message("part")),
        Column("measured", message("measured"), "number"),
        Column("peak", message("peak"), "number"),
        Column("share", message("% of peak"), "number", "={measured}/{peak}"),
        Column("benchmark", message("measured by"), only=FILES),
        Column("basis", message("peak from")),
        Column("source", message("source"), only=FILES),
    )
    rows = []
    for roof in roofs:
        best, top = roof.best, roof.peak
        measured = Cell() if best is None else Cell(rate(best, roof.unit), best, roof.unit)
        peak = Cell(rate(top.rate, roof.unit), top.rate, roof.unit) if top else Cell()
        names = (Cell(roof.host), Cell(part_name(roof.kind, roof.called)))
        sources = (Cell(roof.benchmark), Cell(top.basis if top else ""), Cell(top.source if top else ""))
        rows.append((*names, measured, peak, tabular.share(roof.share), *sources))
    return Tabular(key, title, columns, rows)


def notes(of_parts: Sequence[Line]) -> list[Message]:
    """Return a note on how to read the table, and on the part that is furthest from its peak."""
    listed = [
        message(
            "Measured: the best that the part reached, the median over the hosts of a kind. Operations per byte: "
            "above this intensity compute is the limit; below it, this part."
        )
    ]
    known = [line for line in of_parts if line.share is not None]
    if known:
        furthest = min(known, key=lambda line: line.share or 0.0)
        share = fmt.share(furthest.share or 0.0, 0)
        listed.append(message("Furthest from its peak: {part}, {share}.", part=furthest.name, share=share))
    return listed


def section(of_parts: Sequence[Line]) -> Section:
    """Return the section about the parts of hosts, without charts; it is empty if there are none."""
    explanations = (Note(text, quiet=True) for text in notes(of_parts))
    exhibits: tuple[Exhibit, ...] = (*explanations, *tables(of_parts)) if of_parts else ()
    return Section("roofs", message("Measured bandwidth against hardware peak"), exhibits)


def pictures(of_parts: Sequence[Line], _: Language) -> list[Chart]:
    """Draw the roofs of each kind of host, and separately of its accelerators.

    Return no charts if no compute rate was measured.
    """
    drawn = []
    for kind in dict.fromkeys(line.kind for line in of_parts):
        for device in (False, True):
            group = [line for line in of_parts if line.kind == kind and (line.roof.kind in _OF_DEVICES) is device]
            ceilings = [c for line in group for c in _ceilings(line, _)]
            if any(line.balance for line in group):
                drawn.append((kind, device, group, ceilings))
    return [_picture(kind, device, group, ceilings, _) for kind, device, group, ceilings in drawn[:MOST_PICTURES]]


def _picture(kind: str, device: bool, group: Sequence[Line], ceilings: Sequence[Ceiling], _: Language) -> Chart:
    titles = _(message("operations per byte")), _(message("operations a second"))
    title = message("GPUs: {kind}", kind=kind) if device else message("{kind}", kind=kind)
    hosts = count(max(line.hosts for line in group), "host")
    note = message(
        "The measured roofs of {hosts}: rising lines are data transfer rates, and level lines are compute rates. A "
        "load lies below the lowest roof that it uses. Dashed lines are theoretical peaks.",
        hosts=hosts,
    )
    return Chart(title, note, spec=lambda: roofline(ceilings, (), *titles))


def _ceilings(line: Line, _: Language) -> Iterator[Ceiling]:
    name, top = f"{_(line.name)} {rate(line.rate, line.roof.unit)}", line.roof.peak
    if "compute" in line.roof.kind:
        yield Ceiling(name, level=line.rate)
        if top:
            yield Ceiling(name, level=top.rate, theory=True)
    else:
        yield Ceiling(name, rate=line.rate)
        if top:
            yield Ceiling(name, rate=top.rate, theory=True)


def as_json(roofs: Sequence[Roof]) -> list[dict[str, Any]]:
    """Return every part of every host for programs, in base units."""
    return [
        {
            "host": r.host,
            "part": part_name(r.kind, r.called),
            "of": r.kind,
            "called": r.called or None,
            "best": r.best,
            "benchmark": r.benchmark or None,
            "unit": r.unit,
            "peak": r.peak.rate if r.peak else None,
            "from": r.peak.basis if r.peak else None,
            "source": r.peak.source if r.peak else None,
        }
        for r in roofs
    ]
