"""A campaign's journal as tables: how every run ended, and the other events. Arrow reads a large one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.record.archive import Archive
from fleetmark.record.documents import KEY, event_of
from fleetmark.record.results import OUTCOME_COLUMNS

_TEXT = ("e", "host", "workload", "case", "subject", "status", "reason", "started")
_SCHEMA = pa.schema(
    [(name, pa.string()) for name in _TEXT]
    + [
        ("repeat", pa.int64()),
        ("wall_s", pa.float64()),
        ("foreign_cores", pa.float64()),
        ("notes", pa.list_(pa.string())),
    ]
)
_BLOCK = 8 << 20  # bytes that are read at once
_COLUMNS = [*OUTCOME_COLUMNS, "subject", "notes"]


_Read = tuple[pd.DataFrame, list[dict[str, Any]], str]


def read(archive: Archive) -> _Read:
    """The last outcome of every run (OUTCOME_COLUMNS, subject, notes), all other events, oldest first, and the time of
    the last event (ISO 8601; empty where there is none).

    Raises FleetmarkError where the journal is damaged.
    """
    frame, others, moment = _at_once(archive) or _one_by_one(archive)
    file = archive.path / "journal.jsonl"
    try:
        datetime.fromisoformat(moment or "2000-01-01")
    except (TypeError, ValueError) as error:
        raise FleetmarkError(f"{file}: ends at {moment!r}, which is no moment: it was edited or damaged") from error
    if frame[list(KEY)].isna().any(axis=None) or frame["status"].isna().any():
        raise FleetmarkError(f"{file}: an outcome lacks what it is of: it was edited or damaged")
    joined = {host for e in others if e["e"] == "joined" for host in e["hosts"]}
    if joined:  # hosts that were lost entirely are back
        frame = frame[~(frame["host"].isin(joined) & (frame["case"] == "*") & (frame["status"] == Status.LOST))]
    last = frame.drop_duplicates(list(KEY), keep="last", ignore_index=True)
    return last.astype({"repeat": "int64"}).fillna({"reason": "", "started": ""}), others, moment


def _at_once(archive: Archive) -> _Read | None:
    """Read with Arrow; None where anything is unexpected, which the slow reader then judges."""
    frames: list[pd.DataFrame] = []
    others: list[dict[str, Any]] = []
    moment = ""
    try:
        for block in _blocks(archive.journal_bytes()):
            part = _block(block)
            if part is None:
                return None
            frames.append(part[0])
            others += part[1]
            moment = part[2]
    except (pa.ArrowException, FleetmarkError, ValueError):
        return None
    return (pd.concat(frames, ignore_index=True), others, moment) if frames else None


def _blocks(raw: bytes) -> Iterator[bytes]:
    """``raw`` in parts of whole lines, so that what is made of it is not held beside all of it."""
    at = 0
    while at < len(raw):
        end = raw.rfind(b"\n", at, at + _BLOCK) + 1 or raw.find(b"\n", at) + 1 or len(raw)
        yield raw[at:end]
        at = end


def _block(raw: bytes) -> _Read | None:
    options = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(raw), parse_options=options)
    lines = raw.splitlines()
    if not lines or len(lines) != table.num_rows or table.column("e").null_count:
        return None
    outcome = pc.equal(table.column("e"), "outcome")
    others = [event_of(lines[n]) for n in np.flatnonzero(~outcome.to_numpy())]
    outcomes = table.filter(outcome)
    some = pc.any(pc.greater(pc.list_value_length(outcomes.column("notes")), 0)).as_py()
    notes = outcomes.column("notes").to_pylist() if some else [()] * outcomes.num_rows
    frame = outcomes.drop_columns(["notes"]).to_pandas().assign(notes=pd.Series(notes, dtype=object))[_COLUMNS]
    return frame, others, event_of(lines[-1]).get("t", "")


def _one_by_one(archive: Archive) -> _Read:
    outcomes: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    moment = ""
    for event in archive.journal():
        if not isinstance(event.get("t"), str):
            raise FleetmarkError(f"{archive.path / 'journal.jsonl'}: {event!r} is no event: it was edited or damaged")
        (outcomes if event["e"] == "outcome" else others).append(event)
        moment = event["t"]
    frame = pd.DataFrame(outcomes, columns=_COLUMNS)
    return frame.astype({"wall_s": "float64", "foreign_cores": "float64"}), others, moment
