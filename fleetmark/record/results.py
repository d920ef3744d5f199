"""Represent the content of a finished or interrupted campaign as immutable values."""

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
    "reason",  # one sentence; empty if it passed
    "started",  # ISO 8601, UTC; empty if it never started
    "wall_s",  # NaN if it never started
    "foreign_cores",  # cores used by other processes meanwhile; NaN if unknown
)

TELEMETRY_COLUMNS = ("host", "workload", "case", "repeat", "t", "column", "value")  # t: seconds since the run began
EXTREME_COLUMNS = ("host", "workload", "case", "repeat", "column", "min", "mean", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignInfo:
    """The request of a campaign, and the information needed to repeat it."""

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
    hashes: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of each file that the figures depend on
    pinned: bool = False  # not a campaign, but a saved reference
    root: str = ""  # the value of --results for the folder of this campaign


@dataclass(frozen=True, slots=True, kw_only=True)
class HostInfo:
    """One host of the campaign. ``facts`` is None if they could not be collected for the given ``reason``."""

    name: str
    generation: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None
    reachable: bool = True
    reason: str | None = None
    ssh: Sequence[str] = ()  # the ssh arguments that log in to the host; empty if not recorded


def _no_rows(columns: Sequence[str]) -> pd.DataFrame:
    numbers = dict.fromkeys(("t", "value", "min", "mean", "max"), "float64") | {"repeat": "int64"}
    return pd.DataFrame({name: pd.Series(dtype=numbers.get(name, "object")) for name in columns})


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The telemetry of hosts during the runs that were read.

    ``samples`` has TELEMETRY_COLUMNS for some of the samples. ``extremes`` has EXTREME_COLUMNS, over all samples of a
    run. Column names are those of the archive, and ``power_w`` is the host's power. ``read``: the number of runs read,
    out of ``available``; ``damaged``: files that could not be read.
    """

    samples: pd.DataFrame = field(default_factory=lambda: _no_rows(TELEMETRY_COLUMNS))
    extremes: pd.DataFrame = field(default_factory=lambda: _no_rows(EXTREME_COLUMNS))
    read: int = 0
    available: int = 0
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """A campaign's content.

    ``outcomes`` has OUTCOME_COLUMNS and one row for every (host, workload, case, repeat). Its text may be categories,
    and the frame is not changed in place. ``values``: all measurements, in memory or in a file.
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
    """Return the number of repeats that ended in each status, including statuses with 0."""
    counts = outcomes["status"].value_counts()
    return {status: int(counts.get(status, 0)) for status in Status}
