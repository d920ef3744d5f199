"""Find tool versions that differ between hosts, which makes their figures not comparable."""

from __future__ import annotations

from fleetmark.base.text import message
from fleetmark.record.values import Values
from fleetmark.record.values.engine import literal
from fleetmark.reports.kit import format as fmt


def mixed(values: Values) -> list[tuple[str, str, list[str]]]:
    """Return (workload, version, hosts) for workloads with a case measured by several tool versions.

    Figures of different versions are not comparable. Different cases may have different versions, because some tools
    report a case's precision as part of the version.
    """
    versions = values.distinct("workload", "case", "tool_version")
    several = versions[versions.duplicated(["workload", "case"])][["workload", "case"]].drop_duplicates()
    if several.empty:
        return []
    condition = f"workload in ({', '.join(map(literal, several['workload'].unique()))})"
    hosts = values.distinct("workload", "case", "tool_version", "host", condition=condition).merge(
        several, on=["workload", "case"]
    )
    return [
        (str(workload), str(version) if version else message("(not told)"), sorted(set(rows["host"]), key=fmt.natural))
        for (workload, version), rows in hosts.groupby(["workload", "tool_version"], sort=False)
    ]
