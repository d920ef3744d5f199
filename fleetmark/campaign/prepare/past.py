"""Read the duration of runs and the variation of results from earlier campaigns, to plan the next campaign."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts, Identity
from fleetmark.base.measurement import Status
from fleetmark.record import journal
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns
from fleetmark.record.documents import KEY, key_of
from fleetmark.record.values import PASSED
from fleetmark.record.values.engine import one_of
from fleetmark.record.view import read_values

MOST_CAMPAIGNS = 30  # maximum number of campaigns; the newest are used
MOST_HOSTS = 100  # maximum number of hosts per campaign
MOST_BYTES = 64 << 20  # maximum journal size
LEAST_REPEATS = 3  # minimum number of repeats for a usable spread

Run = tuple[str, str, float]  # workload, case, and the duration in seconds that the manifest expects
Kind = tuple[str, ...]


def kind_of(facts: Facts | Identity) -> Kind:
    """Return the key that hosts of the same type share: model, processors and accelerators."""
    cpu = facts.cpu
    named = (facts.product, cpu.model, cpu.sockets, cpu.threads)
    return (*(str(part or "") for part in named), *sorted(gpu.name for gpu in facts.gpus))


@dataclass(frozen=True, slots=True)
class Past:
    """The durations (s) of completed runs by host and by host type, and the relative spreads of metrics."""

    of_host: Mapping[str, Mapping[Run, list[float]]] = field(default_factory=dict)
    of_kind: Mapping[Kind, Mapping[Run, list[float]]] = field(default_factory=dict)
    spreads: Mapping[tuple[Kind, str, str], Mapping[str, list[float]]] = field(default_factory=dict)

    def seconds(self, host: str, kind: Kind, run: Run) -> float | None:
        """Return the mean duration of a run on this host, or on hosts of its type; None if there is no record."""
        for known in (self.of_host.get(host, {}), self.of_kind.get(kind, {})):
            if run in known:
                return math.fsum(known[run]) / len(known[run])
        return None

    def spread(self, kind: Kind, workload: str, case: str) -> float | None:
        """Return the relative standard deviation of a case's repeats on hosts of this type; None if there is no record.

        Several campaigns are pooled. With several headline metrics, the largest spread counts.
        """
        figures = self.spreads.get((kind, workload, case), {}).values()
        return max((math.sqrt(math.fsum(s * s for s in each) / len(each)) for each in figures), default=None)


def read(root: Path, hosts: Mapping[str, Facts]) -> Past:
    """Read the newest campaigns under ``root`` that ran on ``hosts``, or on hosts of the same types.

    Campaigns that are damaged or too large to read are skipped.
    """
    kinds = {host: kind_of(facts) for host, facts in hosts.items()}
    of_host: dict[str, dict[Run, list[float]]] = defaultdict(lambda: defaultdict(list))
    of_kind: dict[Kind, dict[Run, list[float]]] = defaultdict(lambda: defaultdict(list))
    spreads: dict[tuple[Kind, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for archive in campaigns(root)[-MOST_CAMPAIGNS:]:
        try:
            alike = _alike(archive, set(kinds.values()))
            runs, figures = list(_runs(archive, alike)), list(_spreads(archive, alike))
        except (FleetmarkError, OSError):
            continue
        for host, run, wall_s in runs:
            of_kind[alike[host]][run].append(wall_s)
            if kinds.get(host) == alike[host]:
                of_host[host][run].append(wall_s)
        for host, workload, case, figure, spread in figures:
            spreads[alike[host], workload, case][figure].append(spread)
    return Past(of_host, of_kind, spreads)


def _alike(archive: Archive, kinds: set[Kind]) -> dict[str, Kind]:
    """Return the hosts of a campaign whose type is in ``kinds``."""
    file = archive.inside("journal.jsonl")
    if not file.exists() or file.stat().st_size > MOST_BYTES:
        return {}
    alike = {}
    for host in archive.host_names()[:MOST_HOSTS]:
        identity = archive.identity_of(host)
        if identity and (kind := kind_of(identity)) in kinds:
            alike[host] = kind
    return alike


def _runs(archive: Archive, hosts: Mapping[str, Kind]) -> Iterator[tuple[str, Run, float]]:
    """Yield the completed runs of ``hosts``, each with its host and duration."""
    if not hosts:
        return
    steps = {
        key_of({**step, "host": host}): step
        for host in hosts
        for step in (archive.job(host) or {}).get("steps", ())
        if not step["serves"]
    }
    outcomes, _, _ = journal.read(archive)
    ended = outcomes["status"].isin([Status.PASSED.value, Status.INVALID.value])
    for outcome in outcomes[ended].to_dict("records"):
        step = steps.get(tuple(outcome[name] for name in KEY))
        if step and not math.isnan(outcome["wall_s"]):
            yield str(outcome["host"]), (step["workload"], step["case"], step["expect_s"]), float(outcome["wall_s"])


def _spreads(archive: Archive, hosts: Mapping[str, Kind]) -> Iterator[tuple[str, str, str, str, float]]:
    """Yield host, workload, case, metric and spread for each headline metric of ``hosts`` with enough repeats."""
    if not hosts or not archive.inside("measurements.parquet").exists():
        return
    statement = f"""
        select host, workload, "case", metric, stddev_samp(value) / abs(avg(value)) from every
        where headline and {PASSED} and {one_of("host", hosts)}
        group by host, workload, "case", metric, subject, labels
        having count(*) >= {LEAST_REPEATS} and avg(value) <> 0"""
    with read_values(archive).opened() as database:
        rows = database.execute(statement).fetchall()
    for host, workload, case, metric, spread in rows:
        yield host, workload, case.partition("/")[0], f"{case}/{metric}", spread
