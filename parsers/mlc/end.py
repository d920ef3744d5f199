"""Check whether MLC's output is complete. MLC prints no end line, but the contents of each table are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.parsers.mlc.words import CACHES, IDLE, LOADED, MATRIX, MOST, NAMES, PEAK, WHOLE_RUN, Options

_LAST_DELAY = "20000"  # the last delay that MLC injects by default
_LAST_MIX, _LAST_WORDY_MIX, _WORDY_MIX = "stream_triad", "1:1_nt", "4:1"


@dataclass(kw_only=True, frozen=True, slots=True)
class Begun:
    """The last run: its options, the sections that it reached, and the labels of each section's figures."""

    settings: Options
    full_run: bool  # no mode was requested
    nodes: int  # nodes with their own cores, if the text shows them
    sections: Sequence[str]
    labels: Mapping[str, Sequence[Mapping[str, str]]]
    columns: int | None = None  # columns and rows of the last matrix in the text
    rows: int = 0

    def values(self, section: str, name: str) -> set[str]:
        return {labels[name] for labels in self.labels.get(section, ()) if name in labels}


def section_missing(run: Begun) -> str | None:
    """Return what ``run`` lacks at its end, in words; None if it is complete, or if that is unknown."""
    if not run.sections:
        return None
    last = run.sections[-1]
    if not run.labels.get(last) and last in (IDLE, PEAK, MOST, MATRIX, LOADED, CACHES):
        return f"{NAMES[last]} under their heading"
    missing = {PEAK: _mixes, MOST: _mixes, LOADED: _delays, CACHES: _caches}.get(last, _nothing)(run, last)
    if missing:
        return missing
    absent = [NAMES[name] for name in WHOLE_RUN if name not in run.sections] if run.full_run else []
    return ", ".join(absent) or None


def _nothing(run: Begun, section: str) -> None:
    """Return None for matrices. A memory-only node has a column but no row, so missing rows do not mean truncation."""


def _mixes(run: Begun, section: str) -> str | None:
    mixes = run.values(section, "mix")
    last = _LAST_WORDY_MIX if _WORDY_MIX in mixes else _LAST_MIX
    return None if last in mixes else f"figure of the last mix of {NAMES[section]}"


def _delays(run: Begun, section: str) -> str | None:
    if run.settings.has("d") or run.settings.has("g") or _LAST_DELAY in run.values(section, "delay"):
        return None
    return f"{NAMES[section]} at a delay of {_LAST_DELAY}"


def _caches(run: Begun, section: str) -> str | None:
    if run.settings.has("c") or run.settings.has("w"):  # the run measures one pair of cores
        return None
    if run.values(section, "state") != {"HIT", "HITM"}:
        return f"{NAMES[section]} within a socket, of HIT and HITM"
    remote = run.values(section, "homed")
    if (run.nodes > 1 or remote) and remote != {"writer", "reader"}:
        return f"{NAMES[section]} between nodes, homed in writer and reader"
    if run.columns and run.rows < run.columns:
        return f"{run.columns - run.rows} of {run.columns} rows of {NAMES[section]}"
    return None
