"""Check whether a report of SPEC CPU is complete, from the lines that SPEC's tools always print.

CSV and text end their tables with a score for base and one for peak, which may be ``Not Run``. Raw results have the
score first, and a status as the last key of every run. runcpu's log says that it finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from fleetmark.parsers.spec_cpu.model import TUNES, Report, Score


def cut(report: Report, agrees: Callable[[Score], bool]) -> str | None:
    """Return where ``report`` is truncated; None if it is complete or looks complete.

    ``agrees``: whether a score is the mean of its rows.
    """
    if not (report.runs or report.scores):
        return None
    return next({"raw": _raw, "log": _log}.get(report.kind, _tables)(report, agrees), None)


def _log(report: Report, _: Callable[[Score], bool]) -> Iterator[str]:
    if not report.footer:
        yield "the log has no line 'runcpu finished at'"


def _tables(report: Report, agrees: Callable[[Score], bool]) -> Iterator[str]:
    for energy in (False, True) if report.power else (False,):
        for tune in TUNES:
            scores = [s for s in report.scores if s.tune == tune and s.case.endswith("_energy") is energy]
            name = f"{tune} score of energy" if energy else f"{tune} score"
            if not scores:
                yield f"no line for the {name}"
            elif not scores[-1].ended and (report.kind == "CSV" or not agrees(scores[-1])):
                yield f"line {scores[-1].line} ends within the {name}"
    if report.sections and not (report.footer or report.declared):
        yield "it ends before the errors that a report with 'valid' other than 1 lists"


def _raw(report: Report, agrees: Callable[[Score], bool]) -> Iterator[str]:
    if report.unreadable:
        yield f"line {report.unreadable[-1]} begins a run that has no status"
    for score in report.scores:
        if score.value is not None and not agrees(score):
            yield f"the rows do not give the {score.tune} score {score.printed}"
    rows = Counter((run.benchmark, run.tune) for run in report.runs)
    if len(set(rows.values())) > 1 and not any(run.status == "NR" for run in report.runs):
        fewest = min(rows, key=lambda place: rows[place])
        yield f"{' '.join(fewest)} has {rows[fewest]} iterations, others have {max(rows.values())}"
