"""Compare the measured rates of a campaign's hosts with their hardware peaks (roofs)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import pairs, read
from fleetmark.record.diagnosis.table import Table, title
from fleetmark.record.roofs import Rate, Roof, best_of, part_of, roofs


def roofs_of(archive: Archive) -> list[Roof]:
    """Return every part of every host that was measured or has a peak known from facts.

    Raise FleetmarkError if facts or measurements are damaged.
    """
    facts = archive.facts()
    if not archive.inside("measurements.parquet").exists():
        return list(roofs(facts, archive.host_names(), {}))
    measured, hosts = read(archive, everything=True)
    return list(roofs(facts, hosts, best_of(_rates(measured, hosts), facts)))


def _rates(measured: figures.Figures, hosts: list[str]) -> Iterator[Rate]:
    """Yield the rates of single hosts. A pair's rate counts for both its ends."""
    table = Table(measured, hosts)
    for row in range(len(table.keys)):
        benchmark = table.benchmark(row)
        held = part_of(benchmark["workload"], benchmark["case"], benchmark["metric"], benchmark["unit"])
        if held is not None and held.part != "link":  # the loopback of a host is not a link
            for host, column in table.place.items():
                if not np.isnan(table.values[row, column]):
                    yield _rate(host, benchmark, table.value(row, float(table.values[row, column])))
    for pair in pairs.rows_of(measured, hosts).to_dict("records"):
        benchmark = {str(name): str(text) for name, text in pair.items()} | {"subject": "pairs"}
        for end in ("a", "b"):
            yield _rate(hosts[int(pair[end])], benchmark, float(np.exp(pair["value"])))


def _rate(host: str, benchmark: dict[str, str], value: float) -> Rate:
    workload, case, metric = benchmark["workload"], benchmark["case"], benchmark["metric"]
    return Rate(
        host=host,
        workload=workload,
        case=case,
        metric=metric,
        class_=benchmark["class"],
        unit=benchmark["unit"],
        value=value,
        title=title(benchmark),
    )
