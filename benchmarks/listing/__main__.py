"""Measure the time of ``fleetmark campaigns`` over many campaigns, without and with its index.

``python -m benchmarks.listing [CAMPAIGNS]`` (10000) creates finished campaigns of one host with five outcomes each in a
temporary folder. Each listing is a separate command.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import FLEETMARK, compile_modules, measured

OUTCOME = {"e": "outcome", "host": "h1", "workload": "w", "case": "c", "subject": "host", "status": "passed"}


def campaign(folder: Path) -> None:
    """Create the parts of a finished campaign that a listing reads."""
    campaign = {
        "schema": 1,
        "created": "2026-01-01T00:00:00Z",
        "suite": "lab",
        "hosts": [{"name": "h1"}],
        "jobs": {"h1": ""},
    }
    for kind in ("facts", "jobs"):
        (folder / kind).mkdir(parents=True)
        (folder / kind / "h1.json").write_text("{}")
    (folder / "campaign.json").write_text(json.dumps(campaign))
    events = [*({**OUTCOME, "repeat": n} for n in range(5)), {"e": "ended", "owed": 0}]
    (folder / "journal.jsonl").write_text("".join(json.dumps({"t": "2026", **e}) + "\n" for e in events))


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    compile_modules()
    with tempfile.TemporaryDirectory() as folder:
        for n in range(campaigns):
            campaign(Path(folder) / f"20260101T{n // 3600:02}{n // 60 % 60:02}{n % 60:02}-lab-{n:04x}")
        for attempt in ("first listing", "again", "again"):
            wall, cpu, memory = measured([*FLEETMARK, "campaigns", "--results", folder])
            print(f"{campaigns} campaigns, {attempt}: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
