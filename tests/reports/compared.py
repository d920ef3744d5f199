"""Comparisons for reports: three generations on record, one of them with fewer benchmarks, and their report."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleetmark.record import compare as comparing
from fleetmark.record import evidence
from fleetmark.reports.comparison.compared import Compared, with_evidence
from fleetmark.reports.comparison.document import document as comparison_document
from fleetmark.reports.comparison.front import Front, front
from fleetmark.reports.comparison.model import rows
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from tests import records
from tests.records import GCC, MCF, NULL, TRIAD, Bench

ENGLISH = Language()
SPEED = {"icelake": 1.0, "genoa": 1.83, "turin": 2.4, "sierra": 0.8, "rome": 0.7}
LOAD = [
    Bench(
        "lmbench",
        "lat_mem_rd",
        "latency",
        "s",
        "lower",
        "mem-latency",
        (("size", str(2**k)), ("stride", "128")),
        kind="responsiveness",
    )  # type: ignore[arg-type]
    for k in range(12, 28, 2)
]
IOPS = [
    Bench("fio", "randread-4k-qd1", "read_iops", "1/s", "higher", "disk-latency", kind="responsiveness"),
    *(Bench("fio", f"randread-4k-qd{d}", "read_iops", "1/s", "higher", "disk-iops", kind="capacity") for d in (16, 64)),
]
LAST = Bench("iperf3", "tcp-1", "bitrate", "B/s", "higher", "net-flow", kind="responsiveness")
ONLY = Bench(
    "mlc", "idle", "latency", "s", "lower", "mem-latency", kind="responsiveness"
)  # which the last generation lacks


def archives(root: Path, generations: Sequence[str] = ("icelake", "genoa", "turin"), hosts: int = 3) -> None:
    """A campaign per generation under ``root``."""
    rng = random.Random(4)
    for number, name in enumerate(generations):
        speed = SPEED[name]
        names = [f"{name[0]}{n + 1}" for n in range(hosts)]
        labels = {"gen": name, "watts": str(400 + 150 * number)}
        measured: dict[tuple[str, Bench], list[float]] = {}
        for host in names:
            host_effect = math.exp(rng.gauss(0, 0.02))
            for bench, value, power in ((TRIAD, 2.1e11, 0.9), (MCF, 210, 1.0), (GCC, 260, 1.15), (NULL, 9e-8, -0.3)):
                measured[host, bench] = [
                    value * speed**power * host_effect * math.exp(rng.gauss(0, 0.01)) for _ in range(4)
                ]
            for k, bench in enumerate(LOAD):
                plateau = 1.2e-9 if k < 3 else 4e-9 if k < 5 else 2e-8 if k < 7 else 9.5e-8
                measured[host, bench] = [plateau * speed**-0.1 * math.exp(rng.gauss(0, 0.01)) for _ in range(3)]
            for k, bench in enumerate(IOPS):
                measured[host, bench] = [
                    9e3 * 4**k * speed**0.4 * host_effect * math.exp(rng.gauss(0, 0.02)) for _ in range(4)
                ]
            if number < len(generations) - 1 or len(generations) == 1:
                measured[host, ONLY] = [9e-8 * math.exp(rng.gauss(0, 0.01)) for _ in range(3)]
            for other in names:
                if other != host:
                    pair = Bench(
                        *(LAST.workload, LAST.case, LAST.metric, LAST.unit, LAST.better, LAST.class_),
                        subject=f"{host}>{other}",
                        kind=LAST.kind,
                    )  # type: ignore[misc]
                    measured[host, pair] = [1.2e9 * speed**0.3 * math.exp(rng.gauss(0, 0.02)) for _ in range(3)]
        hosts_labels = dict.fromkeys(names, labels)
        records.record(root, f"2026110{number + 1}T000000-{name}", hosts_labels, measured, cores=dict.fromkeys(names, 32 * (number + 1)))  # fmt: skip


def compared(
    root: Path,
    baseline: str | None = "gen=icelake",
    candidates: Sequence[str] = ("gen=genoa", "gen=turin"),
    *,
    values: bool = False,
    **options: Any,
) -> Compared:
    """Return a comparison of what lies under ``root`` with its evidence. ``values``: for a workbook."""
    answer = comparing.compare(
        comparing.Question(root=root, baseline=baseline, candidates=list(candidates), **options),
        turn=True,
        values=values,
    )
    command = ["fleetmark", "compare", "--baseline", str(baseline)]
    command += [word for candidate in candidates for word in ("--candidate", candidate)]
    return with_evidence(answer, *evidence.gather(root, answer, command, "2026-11-21T00:00:00Z"))


def front_of(seen: Compared) -> Front:
    """Return the first screen."""
    return front(seen.comparison, rows(seen.comparison), seen.around)


def document(seen: Compared, language: Language = ENGLISH, **options: Any) -> Document:
    """Return the document of a comparison."""
    return comparison_document(seen, language, **options)
