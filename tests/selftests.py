"""Record a campaign of the self-test as if this machine had run it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fleetmark.campaign import run as campaign
from fleetmark.campaign.judged import write_measurements
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed import scheduled
from fleetmark.record.archive import Archive
from tests.drives import save_step

CAMPAIGN = "20261101T000000-selftest-abcd"


def measured_here(root: Path) -> None:
    """Record a campaign of the self-test that runs on this machine. Only one such job can run at a time."""

    def drive(archive: Archive, _: Options, __: Console, ___: Any, ____: Any) -> bool:
        request = scheduled.request_of(archive)
        ((host, job),) = scheduled.jobs(archive, request).items()
        for step in job["steps"]:
            result = {"ended": "exit", "started": 1.7e9, "wall_s": 1.0, "rc": 0, "reason": None}
            save_step(archive, host, step, {"result.json": json.dumps(result).encode(), "stdout": b"42.5 7.0\n"})
            step_keys = {name: step[name] for name in ("workload", "case", "repeat", "subject")}
            archive.note("outcome", host=host, **step_keys, status="passed", reason="")
        archive.note("ended", owed=0)
        write_measurements(archive)
        archive.close()
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "_drive", drive)
        archive, _ = campaign.run(Options(suite="selftest", root=root, seed=1), Console(file=io.StringIO()))
    archive.path.rename(root / CAMPAIGN)
    archive = Archive(root / CAMPAIGN)
    archive.save_campaign({**archive.campaign(), "id": CAMPAIGN})
