"""Campaigns on record without running any: hosts with labels and facts, and their measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark.base import schema
from fleetmark.base.facts import Cpu, Facts
from fleetmark.record.archive import Archive
from tests.schedules import facts


@dataclass(frozen=True)
class Bench:
    """A benchmark of the tests' own: what identifies it, and how it is read."""

    workload: str
    case: str
    metric: str
    unit: str
    better: str
    class_: str
    labels: Mapping[str, str] = ()  # type: ignore[assignment]
    standing: str = ""
    subject: str = "host"
    members: tuple[str, ...] = ()  # the hosts that ran it together
    kind: str = ""  # empty: as in a file of an earlier version


TRIAD = Bench("stream", "all-cores", "triad", "B/s", "higher", "mem-bw", kind="capacity")
IOPS = Bench("fio", "randread-4k-qd32", "read_iops", "1/s", "higher", "disk-iops", kind="capacity")
NULL = Bench("lmbench", "lat_syscall-null", "null", "s", "lower", "os", kind="responsiveness")
MCF = Bench("spec_cpu2017", "505.mcf_r", "base_ratio", "1", "higher", "cpu-int", standing="estimate", kind="capacity")
GCC = Bench("spec_cpu2017", "502.gcc_r", "base_ratio", "1", "higher", "cpu-int", standing="estimate", kind="capacity")


def record(
    root: Path,
    name: str,
    hosts: Mapping[str, Mapping[str, str]],
    measured: Mapping[tuple[str, Bench], Sequence[float]],
    cores: Mapping[str, int] | None = None,
    status: str = "passed",
    site: str = "",
    ids: Mapping[str, str] | None = None,
) -> Archive:
    """A finished campaign ``name`` under ``root``: host to labels, (host, benchmark) to its repeats.

    ``site`` ends every address; ``ids``: host to machine ID.
    """
    listed = [
        {"name": h, "address": h + site, "generation": host_labels.get("gen"), "labels": host_labels}
        for h, host_labels in hosts.items()
    ]
    campaign = {
        "hosts": listed,
        "suite": "x",
        "created": "2026-11-01T00:00:00Z",
        "seed": 7,
        "command": ["fleetmark", "run"],
    }
    campaign |= {"workloads": sorted({b.workload for _, b in measured}), "versions": {"fleetmark": "0.1.0"}}
    archive = Archive.create(root, name, campaign)
    for host in hosts:
        archive.save_facts(host, _facts((cores or {}).get(host, 16), (ids or {}).get(host)), {})
    archive.write_measurements(
        row(
            **{"campaign": name, "host": host, "subject": b.subject, "class": b.class_, "kind": b.kind},
            workload=b.workload,
            case=b.case,
            metric=b.metric,
            labels=schema.packed(dict(b.labels)),
            unit=b.unit,
            better=b.better,
            repeat=repeat,
            value=value,
            status=status,
            standing=b.standing,
            members=json.dumps(b.members) if b.members else "",
        )
        for (host, b), values in measured.items()
        for repeat, value in enumerate(values)
    )
    return archive


USUAL = {"campaign": "c1", "host": "h1", "workload": "w", "case": "c", "metric": "m", "unit": "1", "better": "higher"}
USUAL |= {
    "class": "disk-iops",
    "kind": "capacity",
    "time": "2026-11-01T00:00:00Z",
    "tool_version": "1",
    "raw": "raw/x",
    "status": "passed",
}


def row(**columns: Any) -> dict[str, Any]:
    """A row of a measurement; columns that are not given are as usual."""
    usual = {**schema.DEFAULTS, **USUAL, "headline": True, "value": 1.0}
    return schema.checked({**usual, **columns, "value": float(columns.get("value", 1.0))})


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return ``frame`` with text instead of categories."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, object))


def _facts(cores: int, machine_id: str | None) -> Facts:
    return facts(machine_id=machine_id, cpu=Cpu(cores=cores, threads=2 * cores, sockets=2))
