"""Represent a comparison with the facts about its sides: the input of its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fleetmark.planner.comparison import Comparison, Side
from fleetmark.record.compare import Answer
from fleetmark.record.results import HostInfo, Results
from fleetmark.reports.campaign.view import View, view
from fleetmark.reports.comparison.front import Around
from fleetmark.reports.frontier.points import families, metrics_of
from fleetmark.reports.frontier.section import Block, blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison and what is known of its sides.

    ``around``: the context of its figures. ``frontiers``: work against speed. ``turned``: the comparisons of the same
    machines with every other side as the baseline. ``sides``: the figures of each side. ``selectors``: the selectors of
    the sides. ``shown``: the evidence of all sides, and ``parts`` the evidence of each campaign, for documents that
    show evidence. ``root``: the record as given to ``--results``.
    """

    comparison: Comparison
    around: Around
    frontiers: Sequence[Block]
    turned: Mapping[str, Comparison]
    sides: Mapping[str, Side]
    selectors: Mapping[str, str]
    shown: View | None = None
    parts: Sequence[Results] = ()
    root: str = ""

    @property
    def titles(self) -> list[str]:
        """Return the titles of all sides, the baseline first."""
        return _titles(self.comparison)


def with_evidence(answer: Answer, together: Results, parts: Sequence[Results]) -> Compared:
    """Return the answer with its evidence. See ``fleetmark.record.evidence.gather`` for ``together`` and ``parts``."""
    shown = view(together, _titles(answer.comparison))
    values = together.values
    metrics = {str(w): chosen for w in values.distinct("workload")["workload"] if (chosen := metrics_of(str(w)))}
    measured = pd.concat(list(values.metrics(metrics)), ignore_index=True) if metrics else None
    return _compared(answer, shown.hosts, measured, shown, parts)


def without_evidence(answer: Answer, hosts: Sequence[HostInfo], measured: pd.DataFrame | None) -> Compared:
    """Return the answer for documents without evidence. ``measured``: the measurements of its frontiers, if any."""
    return _compared(answer, hosts, measured, None, ())


def _titles(comparison: Comparison) -> list[str]:
    return [comparison.baseline, *(candidate.title for candidate in comparison.candidates)]


def _compared(
    answer: Answer,
    hosts: Sequence[HostInfo],
    measured: pd.DataFrame | None,
    shown: View | None,
    parts: Sequence[Results],
) -> Compared:
    comparison = answer.comparison
    workloads = set(map(str, comparison.benchmarks["workload"]))
    listed = [] if measured is None else families(measured, hosts, workloads)
    titles = {title: title for title in _titles(comparison)}
    return Compared(
        comparison=comparison,
        around=Around(
            hosts=hosts,
            outliers=answer.outliers,
            without=answer.without,
            families=listed,
            powered=answer.powered,
            causes=answer.causes,
            effects=answer.effects,
            again=answer.again,
            terms=answer.terms,
            whole_servers=answer.whole_servers,
            same_size=answer.same_size,
            counted={title: len(side.means) for title, side in answer.sides.items()},
        ),
        frontiers=blocks(listed, titles, comparison.baseline),
        turned=answer.turned,
        sides=answer.sides,
        selectors=answer.selectors,
        shown=shown,
        parts=parts,
        root=answer.root,
    )
