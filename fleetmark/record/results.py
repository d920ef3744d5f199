"""The content of a finished (or interrupted) campaign as an immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Status
from fleetmark.record.values import Values

OUTCOME_COLUMNS = (
    "host",
    "workload",
    "case",
    "repeat",  # counted from 0
    "status",  # a Status
    "reason",  # one sentence; empty for what passed
    "started",  # ISO 8601, UTC; empty for what never started
    "wall_s",  # NaN for what never started
    "foreign_cores",  # cores busy with other work meanwhile, NaN where unknown
)

TELEMETRY_COLUMNS = ("host", "workload", "case", "repeat", "t", "column", "value")  # t: seconds since the run began
EXTREME_COLUMNS = ("host", "workload", "case", "repeat", "column", "min", "mean", "max")


@dataclass(frozen=True, slots=True)
class CampaignInfo:
    """One campaign: the request, and what is needed to repeat it."""

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
    pinned: bool = False  # not a campaign, but a saved reference
    root: str = ""  # what --results names for the folder it lies in


@dataclass(frozen=True, slots=True)
class HostInfo:
    """One host of the campaign. ``facts`` is None where they could not be collected; ``reason`` says why."""

    name: str
    generation: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None
    reachable: bool = True
    reason: str | None = None
    ssh: Sequence[str] = ()  # the words after ssh that log in there; none where the record lacks them


def _no_rows(columns: Sequence[str]) -> pd.DataFrame:
    numbers = dict.fromkeys(("t", "value", "min", "mean", "max"), "float64") | {"repeat": "int64"}
    return pd.DataFrame({name: pd.Series(dtype=numbers.get(name, "object")) for name in columns})


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Telemetry of hosts while they measured, of the runs that were read.

    ``samples`` has TELEMETRY_COLUMNS, thinned; ``extremes`` EXTREME_COLUMNS, over all samples of a run. Columns are
    those of the archive, with ``power_w`` for the host's power. ``read``: of ``available`` runs; ``damaged``: files
    that could not be read.
    """

    samples: pd.DataFrame = field(default_factory=lambda: _no_rows(TELEMETRY_COLUMNS))
    extremes: pd.DataFrame = field(default_factory=lambda: _no_rows(EXTREME_COLUMNS))
    read: int = 0
    available: int = 0
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """A campaign's content. ``outcomes`` has OUTCOME_COLUMNS, one row per (host, workload, case, repeat), every one
    of them; text may be categories, and the frame is not changed in place. ``values``: all measurements, in memory or
    in a file.
    """

    campaign: CampaignInfo
    hosts: tuple[HostInfo, ...]
    outcomes: pd.DataFrame
    values: Values
    telemetry: Telemetry = field(default_factory=Telemetry)

    def __post_init__(self) -> None:
        if missing := [c for c in OUTCOME_COLUMNS if c not in self.outcomes.columns]:
            raise ValueError(f"outcomes of campaign {self.campaign.id} lack the columns {', '.join(missing)}")


def status_counts(outcomes: pd.DataFrame) -> dict[Status, int]:
    """How many repeats ended in each status; every status is named, those that never occurred with 0."""
    counts = outcomes["status"].value_counts()
    return {status: int(counts.get(status, 0)) for status in Status}
