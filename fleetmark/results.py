"""What a finished (or interrupted) campaign holds, as everyone after the archive sees it: an immutable view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fleetmark.facts import Facts

OUTCOME_COLUMNS = (
    "host",
    "workload",
    "case",
    "repeat",  # counted from 0
    "status",  # a Status
    "reason",  # one sentence; empty for what passed
    "started",  # ISO 8601, UTC; empty for what never started
    "wall_s",  # NaN for what never started
    "foreign_cores",  # cores kept busy by others meanwhile, NaN where unknown
)
MEASUREMENT_COLUMNS = (
    "campaign",
    "host",
    "subject",
    "workload",
    "case",
    "metric",
    "labels",  # canonical JSON: sorted keys, no spaces
    "repeat",
    "value",  # in base units
    "unit",
    "better",  # a Better
    "class",  # cpu-int, mem-bw, disk, net, ...
    "headline",  # bool: among the few figures people ask for first
    "bits",  # bool: people read this rate in bit/s
    "time",
    "tool_version",
    "raw",  # path of the raw file, relative to the campaign; empty for a score over several runs
    "status",  # of the repeat it came from, or warm-up, disturbed; only what passed is scored
    "standing",  # a Standing where the benchmark's owners would not call it a result, else empty
)


@dataclass(frozen=True, slots=True)
class CampaignInfo:
    """One campaign: what was asked for, and what is needed to ask for it again."""

    id: str
    created: str  # ISO 8601, UTC
    suite: str
    seed: int
    command: Sequence[str]  # the command line that reproduces it
    fleetmark_version: str
    path: Path  # the campaign's directory
    finished: bool
    wall_s: float
    workloads: Sequence[str] = ()  # in the suite's order
    tool_versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)  # a file that figures rest on to its SHA-256


@dataclass(frozen=True, slots=True)
class HostInfo:
    """One host of the campaign. ``facts`` is None where they could not be collected; ``reason`` says why."""

    name: str
    generation: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None
    reachable: bool = True
    reason: str | None = None
    address: str | None = None  # where SSH goes


@dataclass(frozen=True, slots=True)
class Results:
    """A campaign's content. ``outcomes`` has OUTCOME_COLUMNS, one row per (host, workload, case, repeat), every one
    of them; ``measurements`` has MEASUREMENT_COLUMNS. Nobody changes either frame in place.
    """

    campaign: CampaignInfo
    hosts: tuple[HostInfo, ...]
    outcomes: pd.DataFrame
    measurements: pd.DataFrame

    def __post_init__(self) -> None:
        for name, frame, columns in (
            ("outcomes", self.outcomes, OUTCOME_COLUMNS),
            ("measurements", self.measurements, MEASUREMENT_COLUMNS),
        ):
            missing = [c for c in columns if c not in frame.columns]
            if missing:
                raise ValueError(f"{name} of campaign {self.campaign.id} lack the columns {', '.join(missing)}")
