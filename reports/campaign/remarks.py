"""Collect the notes of passed runs, such as an unsupported operator or dropped samples, and merge similar notes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import Message, count, message
from fleetmark.record.results import Results
from fleetmark.reports.campaign.front import short, some
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Note, Section
from fleetmark.reports.kit.tabular import Kind

KEY = "remarks"
MOST = 50  # maximum notes in a document
FEW = 6  # maximum notes in a terminal
_LONGEST = 240  # maximum characters of a note


@dataclass(frozen=True, slots=True)
class Remarks:
    """The MOST most frequent notes as sentences, and the ``total`` number of different notes.

    Notes of equally many runs keep the order of the runs.
    """

    sentences: tuple[Message, ...] = ()
    total: int = 0


NONE = Remarks()


def remarks(results: Results) -> Remarks:
    """Return the notes of all passed runs; notes that differ only in a measured number (1.42 or 1.47) are merged."""
    outcomes = results.outcomes
    if "notes" not in outcomes:
        return NONE
    notes = outcomes["notes"]
    have = (outcomes["status"] == Status.PASSED).to_numpy() & notes.notna().to_numpy() & notes.to_numpy().astype(bool)
    if not have.any():
        return NONE
    noted = outcomes.loc[have, ["workload", "host", "notes"]].explode("notes")
    noted["alike"] = noted["notes"].map(lambda note: re.sub(r"\d+\.\d+", "#", str(note)))
    noted = noted.rename_axis("run").reset_index().drop_duplicates(["run", "alike"])
    runs = noted["alike"].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    return Remarks(tuple(_sentence(noted[noted["alike"] == alike]) for alike in runs.index[:MOST]), len(runs))


def _sentence(rows: pd.DataFrame) -> Message:
    return message(
        "{note} ({runs} of {workloads} on {hosts})",
        note=short(fmt.clean(rows["notes"].iloc[0]), _LONGEST),
        runs=count(len(rows), "run"),
        workloads=fmt.clean(", ".join(sorted(rows["workload"].unique()))),
        hosts=some(sorted(rows["host"].unique(), key=fmt.natural)),
    )


def listed(shown: Remarks, limit: int = MOST) -> tuple[Message, ...]:
    """Return at most ``limit`` sentences, and the number of omitted ones."""
    more = shown.total - len(shown.sentences[:limit])
    return (*shown.sentences[:limit], *([message("and {n} more", n=more)] if more else []))


def section(shown: Remarks, limit: int = MOST, only: tuple[Kind, ...] = ()) -> Section:
    """Return at most ``limit`` notes of runs."""
    return Section(KEY, message("Run notes"), tuple(map(Note, listed(shown, limit))), only)
