"""Read a campaign's journal as tables: the outcome of every run, and the other events. Use Arrow for speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.record.archive import Archive
from fleetmark.record.documents import KEY, OF_FILES, event_of
from fleetmark.record.results import OUTCOME_COLUMNS

_CODED = ("host", "workload", "case", "subject", "status", "reason")  # columns with few distinct values
_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("e", *_CODED, "started")]
    + [
        ("repeat", pa.int64()),
        ("wall_s", pa.float64()),
        ("foreign_cores", pa.float64()),
        ("notes", pa.list_(pa.string())),
    ]
)
_TYPES = {name: pa.dictionary(pa.int32(), pa.string()) for name in _CODED} | {
    field.name: field.type for field in _SCHEMA if field.name not in _CODED
}
_COLUMNS = [*OUTCOME_COLUMNS, "subject", "notes"]


_Read = tuple[pd.DataFrame, list[dict[str, Any]], str]


def read(archive: Archive) -> _Read:
    """Return the outcomes, the other events, and the end time of a campaign.

    The outcomes have the last outcome of every run, with OUTCOME_COLUMNS, subject and notes; names, status and reason
    are categories. The events exclude those about files and are sorted by time. The end time is ISO 8601: the time of
    the last event if the campaign is still running, and empty if there are no events. Raise FleetmarkError if the
    journal is damaged.
    """
    frame, others, moment = _at_once(archive) or _one_by_one(archive)
    if (turn := _last_turn(others)).get(
        "e"
    ) == "ended":  # a later rebuild or signature does not change the end of the run
        moment = turn.get("t", "")
    file = archive.path / "journal.jsonl"
    try:
        datetime.fromisoformat(moment or "2000-01-01")
    except (TypeError, ValueError) as error:
        raise FleetmarkError(
            f"{file}: ends at {moment!r}, which is not a time; the file was edited or damaged"
        ) from error
    if frame[list(KEY)].isna().any(axis=None) or frame["status"].isna().any():
        raise FleetmarkError(f"{file}: an outcome does not name its run; the file was edited or damaged")
    if unknown := set(frame["status"].unique()) - set(Status):
        raise FleetmarkError(
            f"{file}: status {min(map(str, unknown))[:80]!r} is not valid; the file was edited or damaged"
        )
    joined = {host for e in others if e["e"] == "joined" for host in e["hosts"]}
    if joined:  # lost hosts participate again
        frame = frame[~(frame["host"].isin(joined) & (frame["case"] == "*") & (frame["status"] == Status.LOST))]
    last = frame.drop_duplicates(list(KEY), keep="last", ignore_index=True)
    return last.astype({"repeat": "int64"}).fillna({"started": ""}), others, moment


def has_ended(archive: Archive, events: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a campaign with these ``events`` has ended, so that its measurements file is complete.

    The controller writes that file only at the end of a run. Early versions did not journal the end.
    """
    turn = _last_turn(events)
    return turn.get("e") == "ended" or (not turn and archive.inside("measurements.parquet").exists())


def _last_turn(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the last event that ends or resumes the campaign; empty if there is none."""
    return next((e for e in reversed(events) if e["e"] in ("ended", "resumed")), {})


def _at_once(archive: Archive) -> _Read | None:
    """Read with Arrow. Return None for unexpected content, which the slow reader then checks."""
    parts: list[pa.Table] = []
    notes: list[npt.NDArray[np.object_]] = []
    others: list[dict[str, Any]] = []
    moment = ""
    try:
        for block in archive.journal_blocks():
            part = _block(block)
            if part is None:
                return None
            parts.append(part[0])
            notes.append(_notes(part[0].column("notes")))
            others += part[1]
            moment = part[2]
    except (pa.ArrowException, FleetmarkError, ValueError):
        return None
    return (_frame(parts, notes), others, moment) if parts else None


def _block(raw: bytes) -> tuple[pa.Table, list[dict[str, Any]], str] | None:
    """Return the outcomes of a block of lines, its other events, and the time of the last."""
    options = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
    table = pj.read_json(pa.BufferReader(raw), parse_options=options)
    lines = raw.splitlines()
    if not lines or len(lines) != table.num_rows or table.column("e").null_count:
        return None
    outcome = pc.equal(table.column("e"), "outcome")
    skipped = pc.is_in(table.column("e"), pa.array(["outcome", *OF_FILES]))
    others = [event_of(lines[n]) for n in np.flatnonzero(~skipped.to_numpy())]
    outcomes = table.filter(outcome).drop_columns(["e"])
    for name in _CODED:
        coded = outcomes.column(name).dictionary_encode()
        outcomes = outcomes.set_column(outcomes.schema.get_field_index(name), name, coded)
    return outcomes, others, event_of(lines[-1]).get("t", "")


def _notes(column: pa.ChunkedArray) -> npt.NDArray[np.object_]:
    """Return the notes of each run. Runs without notes share one empty tuple."""
    notes = np.empty(len(column), dtype=object)
    notes.fill(())
    some = np.flatnonzero(pc.greater(pc.fill_null(pc.list_value_length(column), 0), 0).to_numpy())
    for place, texts in zip(some.tolist(), column.take(some).to_pylist(), strict=True):
        notes[place] = texts
    return notes


def _frame(parts: list[pa.Table], notes: list[npt.NDArray[np.object_]]) -> pd.DataFrame:
    """Concatenate the outcomes of ``parts``, column by column. Categories are in alphabetical order."""
    columns: dict[str, Any] = {}
    for name in _COLUMNS[:-1]:
        column = pa.chunked_array([chunk for part in parts for chunk in part.column(name).chunks], _TYPES.get(name))
        columns[name] = column.unify_dictionaries().to_pandas()
    return _coded(pd.DataFrame({**columns, "notes": np.concatenate(notes)}, copy=False))


def _coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return ``frame`` with the columns of _CODED as categories in alphabetical order.

    A missing reason becomes empty.
    """
    for name in _CODED:
        known = frame[name].astype("category").cat
        texts = sorted({*known.categories, *([""] if name == "reason" else ())})
        frame[name] = known.set_categories(texts)
    frame["reason"] = frame["reason"].fillna("")
    return frame


def _one_by_one(archive: Archive) -> _Read:
    outcomes: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    moment = ""
    for event in archive.journal():
        if not isinstance(event.get("t"), str):
            raise FleetmarkError(
                f"{archive.path / 'journal.jsonl'}: {event!r} is not an event; the file was edited or damaged"
            )
        if event["e"] not in OF_FILES:
            (outcomes if event["e"] == "outcome" else others).append(event)
        moment = event["t"]
    frame = _coded(pd.DataFrame(outcomes, columns=_COLUMNS))
    return frame.astype({"wall_s": "float64", "foreign_cores": "float64"}), others, moment
