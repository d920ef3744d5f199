"""Fixtures read by their parsers, and single figures looked up in what comes of it."""

from __future__ import annotations

from pathlib import Path

from fleetmark import parsers
from fleetmark.base.measurement import Measurement, Parsed

FIXTURES = Path(__file__).parent / "fixtures"


def read(tool: str, name: str, *command: str) -> Parsed:
    """What ``tool``'s parser makes of the fixture ``name``."""
    return parsers.parse(tool, (FIXTURES / tool / name).read_bytes(), command)


def find_all(
    parsed: Parsed, metric: str, *, case: str | None = None, subject: str = "host", **labels: str
) -> list[Measurement]:
    """The measurements of ``metric``, in any case unless one is named, in their order."""
    return [
        m
        for m in parsed.measurements
        if m.metric == metric and m.subject == subject and case in (None, m.case) and dict(m.labels) == labels
    ]


def find(
    parsed: Parsed, metric: str, *, case: str | None = None, subject: str = "host", **labels: str
) -> Measurement | None:
    """The only such measurement, or None."""
    matching = find_all(parsed, metric, case=case, subject=subject, **labels)
    assert len(matching) < 2, f"{len(matching)} measurements of {metric}"
    return matching[0] if matching else None


def value(
    parsed: Parsed, metric: str, *, case: str | None = None, subject: str = "host", **labels: str
) -> float | None:
    """The value ``find`` finds, in base units."""
    measurement = find(parsed, metric, case=case, subject=subject, **labels)
    return measurement.value if measurement else None


def values(parsed: Parsed, metric: str, *, case: str | None = None, subject: str = "host") -> list[float]:
    """The values of all repeats, in base units."""
    return [m.value for m in find_all(parsed, metric, case=case, subject=subject)]


def cases(parsed: Parsed) -> set[str]:
    return {m.case for m in parsed.measurements}


def identities(parsed: Parsed) -> list[tuple[str, str, str, tuple[tuple[str, str], ...]]]:
    """The keys that distinguish the measurements of one run."""
    return [(m.case, m.metric, m.subject, tuple(sorted(m.labels.items()))) for m in parsed.measurements]
