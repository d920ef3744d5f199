"""Implement ``fleetmark rebuild``: parse the raw files of a campaign again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import typer

from fleetmark.base.text import count
from fleetmark.campaign.drive import fields_of
from fleetmark.campaign.outcome import Outcome, judge
from fleetmark.campaign.rebuild import rebuild
from fleetmark.record import documents
from fleetmark.record.campaigns import find
from fleetmark.workloads.external import require


def campaign(name: str, root: Path, as_json: bool) -> None:
    """Rebuild a campaign's measurements from its raw files, and record changed outcomes."""
    archive = find(root, name).writable()
    require(archive.id, archive.campaign())
    try:
        before = {documents.key_of(e): e for e in archive.journal() if e["e"] == "outcome"}
        changed = 0

        def judged(folder: Path, step: Mapping[str, Any]) -> Outcome:
            nonlocal changed
            outcome = judge(archive, folder)
            previous = before.get(documents.key_of(step))
            if previous is None or (previous["status"], previous["reason"]) != (outcome.status.value, outcome.reason):
                changed += 1
                archive.note("outcome", **{k: step[k] for k in documents.KEY}, **fields_of(outcome))
            return outcome

        path = archive.write_measurements(rebuild(archive, judged))
        archive.end("rebuilt")
    finally:
        archive.close()
    rows = pq.read_metadata(path).num_rows
    if as_json:
        typer.echo(json.dumps({"campaign": archive.id, "measurements": rows, "changed": changed, "path": str(path)}))
    else:
        typer.echo(f"{count(rows, 'measurement')} in {path}; {count(changed, 'outcome')} changed")
