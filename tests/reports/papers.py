"""A record of generations with curves and pairs, compared: what PDFs are made of."""

from __future__ import annotations

from pathlib import Path

from fleetmark.record import compare as comparing
from fleetmark.record import evidence
from fleetmark.reports.comparison.compared import Compared, with_evidence
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record

MEM = [
    Bench("lmbench", "lat_mem_rd", "latency", "s", "lower", "mem-latency", (("size", str(2**k)),))
    for k in range(12, 24)
]
NET = "iperf3", "tcp-1", "bitrate", "B/s", "higher", "net"


def compared(root: Path, name: str = "{gen}{n}", sides: tuple[str, ...] = ("old", "new", "newer")) -> Compared:
    """Two or more generations of three hosts, with a curve and a matrix of pairs."""
    measured: dict[tuple[str, Bench], list[float]] = {}
    labels: dict[str, dict[str, str]] = {}
    for g, gen in enumerate(sides):
        hosts = [name.format(gen=gen, n=n) for n in range(3)]
        labels |= {h: {"gen": gen} for h in hosts}
        for n, host in enumerate(hosts):
            factor = (1 + g) * (1 + 0.01 * n)
            for bench, value in ((TRIAD, 2e11), (IOPS, 1e5), (GCC, 5.0), (MCF, 4.0)):
                measured[host, bench] = (
                    [value * factor, value * factor * 1.01] if bench is not IOPS else [value * factor**0.5] * 2
                )
            for k, bench in enumerate((NULL, *MEM)):
                measured[host, bench] = [1e-9 * (1 + k) / factor, 1.01e-9 * (1 + k) / factor]
            for other in hosts:
                if other != host:
                    measured[host, Bench(*NET, subject=f"{host}>{other}")] = [1e9 * factor]
    record(root, "20261101T000000-a", labels, measured)
    answer = comparing.compare(
        comparing.Question(root=root, baseline=f"gen={sides[0]}", candidates=[f"gen={s}" for s in sides[1:]]), turn=True
    )
    together, parts = evidence.gather(root, answer, ["fleetmark", "compare", "-b", "gen=old"], "2026-11-21T00:00:00Z")
    return with_evidence(answer, together, parts)
