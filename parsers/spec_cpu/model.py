"""Define the common result of the readers of SPEC CPU's four formats: runs, scores, and a report's own statements.

The status is SPEC's code for the outcome of one run: ``S`` for success, ``*`` for the selected run in text.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, field

from fleetmark.parsers.kit.text import number

LONGEST = 4000  # maximum line length in characters
BENCHMARK = r"[0-9]{3}\.[A-Za-z0-9]{1,24}_[rs]"
TUNES = ("base", "peak")
SCORE = re.compile(
    r"SPEC(?:\(R\)|®)?(rate|speed)(?:\(R\)|®)?(20[0-9]{2})_(int|fp)(_energy)?_(base|peak)", re.IGNORECASE
)
CHECKED_ONLY = re.compile(r"99[0-9]\.specrand")  # workloads that check the build and are not part of any score

STATUSES = {
    "CE": "compile error",
    "RE": "run-time error",
    "VE": "verification error",
    "TE": "tool error",
    "PE": "power measurement error",
    "EE": "environment out of limits",
    "R?": "not verified",
    "NR": "not run",
    "NC": "non-compliant",
    "NA": "not available",
    "CD": "code defect",
}
NO_ENERGY = frozenset({"PE", "EE"})  # these invalidate only the energy: the run itself finished and was verified
FINISHED = frozenset({"S", "*", "R?"}) | NO_ENERGY  # R? ran without verification
WITHDRAWN = frozenset({"NC", "NA", "CD"})  # SPEC's marks for withdrawn results
NO_FAILURE = FINISHED | {"NR"}

_MOST = 1e12  # upper limit for any time, ratio, count, power or energy of a benchmark


def spelled(status: str) -> str:
    """Return a status with its meaning, such as ``CE (compile error)``. Other statuses are returned unchanged."""
    if len(status) > 2:
        return status
    return f"{status} ({STATUSES[status]})" if status in STATUSES else f"status {status}"


def reason(line: str) -> str:
    """Return the text between the ``#`` marks of a line in the frame around INVALID RUN."""
    return line.removeprefix("#").strip().removesuffix("#").strip()


def positive(text: str | None) -> float | None:
    """Return ``text`` as a positive number; None for ``--``, ``Not Run``, 0, and any other text."""
    value = number(text) if text is not None and len(text) < 40 else None
    return value if value is not None and 0 < value < _MOST else None


def count(text: str | None) -> float | None:
    """Return ``text`` as a positive integer; None for any other text."""
    return positive(text) if text and re.fullmatch(r"[0-9]{1,7}", text) else None


@dataclass(slots=True)
class Run:
    """One run of one benchmark, or its row in the table of selected runs (without ``iteration``)."""

    benchmark: str
    tune: str
    line: int
    iteration: int | None = None
    status: str = "S"
    _: KW_ONLY
    selected: bool = False
    size: str | None = None  # the workload, if the row has it: refrate, refspeed, test, train
    year: str | None = None  # the suite's year, if the row has it
    figures: dict[str, float] = field(default_factory=dict)  # in base units

    @property
    def finished(self) -> bool:
        return self.status in FINISHED and "time" in self.figures


@dataclass(kw_only=True, slots=True)
class Score:
    """A score line such as ``SPECrate2017_int_base``. ``case``: its name without the tune."""

    case: str
    tune: str
    year: str
    printed: str
    line: int
    complete: bool = True  # False if the text may end inside the figure
    unreadable: bool = False  # its cells are not a valid figure

    @property
    def value(self) -> float | None:
        return None if self.unreadable else positive(self.printed)

    @property
    def ended(self) -> bool:
        """Return whether the run's line is complete. A word such as ``Not Run`` is complete by itself."""
        return self.complete or self.printed in ("Not Run", "--")


@dataclass(kw_only=True, slots=True)
class Report:
    """One result, as read from one format."""

    kind: str
    line: int
    rounded: bool = False  # whether figures are printed to 3 significant digits
    runs: list[Run] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    version: str | None = None
    years: list[tuple[str, int]] = field(default_factory=list)  # the years in the suite's names, and their lines
    size: str | None = None
    declared: bool = False  # whether the report claims to be reportable
    estimate: bool = False  # whether the report says that it is not reportable
    banner: int | None = None  # the line of INVALID RUN
    reasons: list[str] = field(default_factory=list)  # the reasons for INVALID RUN
    failures: list[Run] = field(default_factory=list)  # errors reported outside the tables
    notes: list[str] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)  # lines of rows with invalid figures
    power: bool = False  # whether the tables have columns for energy, and the report energy scores
    footer: bool = False  # the end line of SPEC's tools is present
    sections: bool = False  # CSV: whether text follows the scores

    def size_of(self, run: Run) -> str | None:
        return run.size or self.size

    def is_reference(self, run: Run) -> bool:
        """Return whether ``run`` used the workload that scores are computed from.

        If the workload is unknown, a ratio indicates it.
        """
        size = self.size_of(run)
        return size.startswith("ref") if size else True


def score(name: str, printed: str, line: int, complete: bool = True) -> Score | None:
    """Return the score called ``name``, in any spelling of its trademarks; None if ``name`` is not a score."""
    match = SCORE.fullmatch(name)
    if not match:
        return None
    mode, year, kind, energy, tune = match.groups()
    case = f"SPEC{mode.lower()}{year}_{kind.lower()}{(energy or '').lower()}"
    return Score(case=case, tune=tune.lower(), year=year, printed=printed, line=line, complete=complete)
