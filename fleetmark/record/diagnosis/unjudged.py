"""List what a diagnosis cannot evaluate, with reasons, and the smallest losses that it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fleetmark.base.text import Message, count, message
from fleetmark.planner.diagnosis import outliers
from fleetmark.planner.diagnosis.cohorts import Cohort
from fleetmark.record.diagnosis.table import Table, some, title


def benchmarks(table: Table, cohort: Cohort, values: np.ndarray, verdicts: outliers.Verdicts) -> list[Message]:
    """Return notes on constant benchmarks, benchmarks of too few hosts, and hosts without figures."""
    notes = []
    if verdicts.constant:
        notes.append(
            message(
                "Equal on every host, so there is nothing to compare: {benchmarks}.",
                benchmarks=_titles(table, verdicts.constant),
            )
        )
    if verdicts.sparse:
        notes.append(
            message(
                "Measured on fewer than {least} hosts of {cohort}, so not judged: {benchmarks}.",
                least=outliers.LEAST,
                cohort=cohort.kind,
                benchmarks=_titles(table, verdicts.sparse),
            )
        )
    present = ~np.isnan(values)
    rows_by_missing: dict[tuple[str, ...], list[int]] = {}
    for row in np.flatnonzero((present.sum(axis=1) >= outliers.LEAST) & ~present.all(axis=1)):
        missing = tuple(np.array(cohort.peers)[~present[row]])
        rows_by_missing.setdefault(missing, []).append(int(row))
    notes += [
        message(
            "Not measured on {hosts} of {n} ({names}), so not judged there: {benchmarks}.",
            hosts=len(missing),
            n=count(len(cohort.peers), "host"),
            names=some(missing),
            benchmarks=_titles(table, rows),
        )
        for missing, rows in sorted(rows_by_missing.items(), key=lambda item: -len(item[0]))
    ]
    return notes


def power(table: Table, cohort: Cohort, values: np.ndarray) -> list[Message]:
    """Return the smallest loss of a host that is found in a cohort with ``values``, and what single runs hide."""
    columns = np.array([table.place[host] for host in cohort.peers])
    losses = outliers.detectable(values, table.errors(columns), table.deficit)
    rows = np.flatnonzero(~np.isnan(losses))
    if not len(rows):
        return []
    worst = int(rows[np.argmax(losses[rows])])
    messages = [
        message(
            "{cohort}: a host that lost {loss} in a benchmark is found in about 9 of 10 cases (median of "
            "{benchmarks}). {benchmark} varies most: {worst}.",
            cohort=cohort.kind,
            loss=f"{np.median(losses[rows]):.1%}",
            benchmarks=count(len(rows), "benchmark"),
            benchmark=title(table.benchmark(worst)),
            worst=f"{losses[worst]:.1%}",
        )
    ]
    runs = table.runs[:, columns][rows]
    if np.all(runs[runs > 0] == 1):
        messages.append(
            message(
                "{cohort}: with one run per host, one bad run looks like a slow host, and populations without a known "
                "cause are found only if they are large and dense. Measure with --repeats 3.",
                cohort=cohort.kind,
            )
        )
    return messages


def _titles(table: Table, rows: Sequence[int]) -> str:
    return some([title(table.benchmark(row)) for row in rows])


def small_cohorts(groups: Sequence[Cohort], least: Mapping[str, float] | None = None) -> list[Message]:
    """Return notes on cohorts that are too small. ``least``: the requested smallest losses, by class of metrics."""
    wanted = sorted(set((least or {}).values()))
    deficit = max(outliers.FEW_DEFICIT, min(wanted, default=0.0))
    notes = []
    for cohort in groups:
        n = len(cohort.peers)
        if n == 1:
            notes.append(
                message(
                    "{host} is the only one of its kind ({cohort}), so there are no peers to compare it with.",
                    host=cohort.hosts[0],
                    cohort=cohort.kind,
                )
            )
        elif n < outliers.LEAST:
            notes.append(
                message(
                    "Only {hosts} of {cohort}: at least {least} are needed to identify a slow host. "
                    "Compare them with a specification or with an earlier campaign.",
                    hosts=count(n, "host"),
                    cohort=cohort.kind,
                    least=outliers.LEAST,
                )
                if n < outliers.FEW
                else message(
                    "Only {hosts} of {cohort}: judged for losses of {deficit} or more. Compare them with a "
                    "specification or with an earlier campaign to see smaller ones.",
                    hosts=count(n, "host"),
                    cohort=cohort.kind,
                    deficit=f"{deficit:.0%}",
                )
            )
            if n >= outliers.FEW and wanted and wanted[0] < outliers.FEW_DEFICIT:
                notes.append(
                    message(
                        "--least {least} has no effect for {cohort}: with fewer than {n} hosts, smaller losses than "
                        "{deficit} may be normal variation.",
                        least=f"{100 * wanted[0]:g}%",
                        cohort=cohort.kind,
                        n=outliers.LEAST,
                        deficit=f"{outliers.FEW_DEFICIT:.0%}",
                    )
                )
    return notes
