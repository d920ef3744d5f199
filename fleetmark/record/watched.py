"""Store the state of a watch between its rounds in ``watch/`` below the results: hosts, counters and open findings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import decode_json, write_atomic

FOLDER, STATE, METRICS = "watch", "state.json", "metrics.txt"
MOST_STATE = 256 << 20  # bytes
MOST_METRICS = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFinding:
    """A finding that stays open until its ``hosts`` are measured again and the finding does not recur.

    ``source``: diagnose, history or gate. ``labels``: the values that identify the finding. ``deficit``: the share by
    which it is slower; 0 for a gate. ``needs_all``: whether all hosts must be measured again to close it, instead of
    any one.
    """

    source: str
    hosts: tuple[str, ...]
    labels: dict[str, str]
    text: str
    deficit: float = 0.0
    needs_all: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        """Return a key that identifies the finding across rounds."""
        return (self.source, *(f"{name}={value}" for name, value in sorted(self.labels.items())))

    def ends_with(self, measured: set[str]) -> bool:
        """Return whether a round that measured these hosts can close the finding."""
        return set(self.hosts) <= measured if self.needs_all else bool(measured.intersection(self.hosts))


@dataclass(slots=True, kw_only=True)
class HostState:
    """The state of a host.

    ``measured``: time of its last campaign, ISO 8601, or empty. Counters and ``events`` are totals by device.
    """

    measured: str = ""
    status: str = ""
    boot: str = ""
    last: int = -1
    counters: dict[str, dict[str, float]] = field(default_factory=dict)
    gauges: dict[str, dict[str, float]] = field(default_factory=dict)
    events: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class WatchState:
    """The state of a watch.

    ``rounds``, ``campaigns`` and ``failures`` are totals. ``unsent``: lines that could not be posted to the webhook.

    ``last``: the id of the last campaign, or empty.
    """

    rounds: int = 0
    campaigns: int = 0
    failures: int = 0
    last: str = ""
    hosts: dict[str, HostState] = field(default_factory=dict)
    findings: list[OpenFinding] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)


def load(root: Path) -> WatchState:
    """Return the state below a results root, or an empty one. Raise FleetmarkError if the file is damaged."""
    file = root / FOLDER / STATE
    if not file.exists():
        return WatchState()
    try:
        if file.stat().st_size > MOST_STATE:
            raise ValueError
        document: dict[str, Any] = decode_json(file.read_bytes())
        hosts = {name: HostState(**state) for name, state in document.pop("hosts").items()}
        findings = [OpenFinding(**(f | {"hosts": tuple(f["hosts"])})) for f in document.pop("findings")]
        return WatchState(**document, hosts=hosts, findings=findings)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FleetmarkError(f"{file}: damaged or of another version; delete it to restart the watch") from error


def save(root: Path, state: WatchState, metrics: str) -> None:
    """Save the state, and the metrics to serve at ``/metrics``."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / METRICS, metrics)
    write_atomic(folder / STATE, json.dumps(asdict(state)))


def metrics(root: Path) -> bytes | None:
    """Return the metrics of the last round, or None before the first."""
    try:
        with (root / FOLDER / METRICS).open("rb") as file:
            return file.read(MOST_METRICS)
    except OSError:
        return None
