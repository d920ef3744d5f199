"""Present what the machine that controls a fleet has and lacks, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.text import count, message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.tabular import Tone


@dataclass(frozen=True, slots=True)
class Check:
    """One requirement of this machine. ``is_needed``: no run works without it; ``command``: fixes it."""

    name: str
    is_needed: bool
    is_good: bool
    finding: str
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return the check for programs."""
        return {
            "name": self.name,
            "needed": self.is_needed,
            "good": self.is_good,
            "finding": self.finding,
            "command": None if self.is_good else self.command or None,
        }


def document(checks: Sequence[Check]) -> Document:
    """Return a line per check, with the command that installs or fixes what is missing."""
    missing = sum(check.is_needed and not check.is_good for check in checks)
    answer = message("All requirements of a run are met.")
    if missing:
        answer = message("{things} that a run needs.", things=count(missing, "thing is missing", "things are missing"))
    lines = tuple(Note(_line(check), tone=_tone(check), is_unbroken=True) for check in checks)
    return Document(
        title=message("This machine"),
        answer=answer,
        sections=(Section("checks", "", lines),),
        data=[check.as_json() for check in checks],
    )


def _tone(check: Check) -> Tone:
    if check.is_good:
        return ""
    return "bad" if check.is_needed else "unsure"


def _line(check: Check) -> str:
    state = message("ok") if check.is_good else message("MISSING") if check.is_needed else message("optional")
    values = {"state": state, "name": check.name, "finding": fmt.clean(check.finding), "command": check.command}
    if check.is_good or not check.command:
        return message("{state}  {name}: {finding}", **values)
    return message("{state}  {name}: {finding}; {command}", **values)
