"""Check a campaign after faults: what it promises about exit statuses, finished steps and values."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tests.fleet.command import FLEETMARK, Command

STATUSES = {0, 1, 2, 3, -signal.SIGKILL}  # docs/reference: passed, something failed, refused, interrupted; and our kill


def ended(status: int, text: str) -> Iterator[str]:
    if status not in STATUSES:
        yield f"a command ended with status {status}: {text[-400:]}"
    if "Traceback" in text:
        yield f"a command ended with a traceback: {text[text.index('Traceback') :][:2000]}"


def is_complete(campaign: Path, steps: int) -> bool:
    """Return whether all steps passed and the campaign's values are stored."""
    return counts(campaign)["passed"] == steps and (campaign / "measurements.parquet").exists()


def counts(campaign: Path) -> Counter[str]:
    """Return how many steps ended with each status."""
    return Counter({(e["host"], e["case"], e["repeat"]): e["status"] for e in _outcomes(campaign)}.values())


def digests(campaign: Path) -> dict[Path, str]:
    """Return the SHA-256 of each file of each step that passed, by its path."""
    passed = {(e["host"], e["workload"], e["case"], str(e["repeat"])) for e in _passed(campaign)}
    files = [f for f in (campaign / "raw").rglob("*") if f.is_file()]
    return {
        f: hashlib.sha256(f.read_bytes()).hexdigest()
        for f in files
        if f.relative_to(campaign / "raw").parts[:4] in passed
    }


def _outcomes(campaign: Path) -> list[dict[str, Any]]:
    """Return the journal's events about the end of steps, without a truncated record."""
    events = []
    journal = campaign / "journal.jsonl"
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event["e"] == "outcome":
            events.append(event)
    return events


def _passed(campaign: Path) -> list[dict[str, Any]]:
    return [event for event in _outcomes(campaign) if event["status"] == "passed"]


def checked(command: Command, finished: dict[Path, str], damaged: Collection[Path], steps: int) -> Iterator[str]:
    """Yield what was lost, changed or counted twice."""
    campaign = command.campaign
    for file, digest in finished.items():
        if file.parent in damaged:
            continue
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            yield f"{file.relative_to(campaign)} of a finished step changed"
    if (
        counts(campaign)["passed"] != steps
    ):  # a host that did not answer at first has another event, which counts nowhere
        yield f"of {steps} steps, the journal says {counts(campaign)}"
    values = campaign / "measurements.parquet"
    if not values.exists():
        yield "there is no measurements.parquet"
        return
    frame = pd.read_parquet(values)
    frame = frame[frame["metric"] == "uptime"]
    if len(frame) != steps or frame.duplicated(["host", "case", "repeat", "subject"]).any():
        yield f"{len(frame)} values of {steps} steps"
    kept = {
        (p.relative_to(campaign / "raw").parts[0], p.relative_to(campaign / "raw").parts[2])
        for p in finished
        if p.parent not in damaged
    }
    times = Counter((e["host"], e["case"]) for e in _passed(campaign))
    yield from (
        f"{host} {case} passed {times[host, case]} times" for host, case in sorted(kept) if times[host, case] != 1
    )


def reported(command: Command, steps: int) -> Iterator[str]:
    """Yield what ``fleetmark report`` says, unless all steps passed."""
    words = [FLEETMARK, "report", command.campaign.name, "--format", "json"]
    report = subprocess.run(words, capture_output=True, text=True, env=command.env)
    shown = Counter(o["status"] for o in json.loads(report.stdout)["outcomes"]) if report.stdout else report.stderr
    if shown != {"passed": steps}:
        yield f"of {steps} steps, the report says {shown}"
