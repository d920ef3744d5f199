"""Summarise a campaign: headline figures, anomalies, what was not measured, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.measurement import Status
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.record.results import status_counts
from fleetmark.reports.campaign.front import some
from fleetmark.reports.campaign.headlines import NOISY
from fleetmark.reports.campaign.problems import Problem
from fleetmark.reports.campaign.view import View
from fleetmark.reports.comparison.areas import lacking
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Brief, Command
from fleetmark.reports.kit.tabular import Tabular


def brief(
    view: View,
    table: Tabular | None,
    odd: Sequence[str],
    problems: Sequence[Problem],
    steps: Sequence[tuple[str, str]],
) -> Brief:
    """Return the brief of a campaign. ``table``: its headline figures. ``odd``: sentences about anomalies."""
    return Brief(
        question=_question(view),
        table=table,
        worse=tuple(odd) or (message("No anomalies: repeats agree, and hosts are like their peers."),),
        worse_title=message("Anomalies"),
        missing=tuple(_missing(view, problems)),
        certainty=tuple(_certainty(view)),
        steps=tuple(Command(text, command) for text, command in steps),
    )


def _question(view: View) -> Message:
    if len(view.hosts) == 1:
        return message(
            "Did the runs on {host} pass, and can its figures be relied on?", host=fmt.clean(view.hosts[0].name)
        )
    hosts = count(len(view.hosts), "host")
    return message("Did the runs on {hosts} pass, and is a host slower than its peers?", hosts=hosts)


def _missing(view: View, problems: Sequence[Problem]) -> Iterator[str]:
    for problem in problems:
        subject = joined([word(str(problem.status)), fmt.clean(", ".join(problem.workloads))])
        yield message("{what} on {hosts}: {reason}", what=subject, hosts=some(problem.hosts), reason=problem.reason)
    areas = lacking({str(rows["class"].iloc[0]) for _, rows, _ in view.headlines})
    if areas:
        yield message("No benchmark ran for: {areas}", areas=areas)


def _certainty(view: View) -> Iterator[str]:
    counts = status_counts(view.results.outcomes)
    total = sum(counts.values())
    if total:
        passed = f"{counts[Status.PASSED]:,}"
        yield message("{n} of {runs} passed.", n=passed, runs=count(total, "run"))
    cvs = [float(v) for _, rows, _ in view.headlines for v in rows["cv"].dropna()]
    if cvs:
        noisy = sum(v > NOISY for v in cvs)
        yield message(
            "{n} of {all} headline figures vary by more than {bound} (CV).",
            n=f"{noisy:,}",
            all=f"{len(cvs):,}",
            bound=fmt.share(NOISY, 0),
        )
    if len(view.hosts) == 1:
        yield message("One host was measured: another of its kind may differ.")
