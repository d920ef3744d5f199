"""The content of a comparison's report, from which every format is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from fleetmark.record.results import CampaignInfo, HostInfo, Results
from reports.campaign.conditions import Condition, conditions
from reports.campaign.problems import Problem, problems
from reports.campaign.view import View, view
from reports.frontier.points import families, metrics_of
from reports.frontier.section import Block, blocks
from reports.kit.language import Language
from reports.kit.tabular import Part

if TYPE_CHECKING:
    from fleetmark.record.compare import Answer
    from planner.comparison import Comparison, Side
    from reports.comparison.front import Around
    from reports.comparison.model import RatioRow


@dataclass(frozen=True)
class Report:
    """A comparison with everything behind it.

    ``view``: all that was measured, hosts in order; a side is a generation. ``campaign``: the subject of the report and
    the command that makes it again; ``campaigns``: where its figures are from. ``rows``: the rows of ``comparison``.
    ``turned``: another side's title to the same machines with that side as the baseline, with its rows. ``sides``: each
    side's title to what was read of it. ``around``: facts beside the figures. ``date``: ISO 8601. ``conditions``: the
    hosts while they measured. ``frontiers``: work against speed, with what replaces what.
    """

    view: View
    campaign: CampaignInfo
    campaigns: tuple[CampaignInfo, ...]
    problems: tuple[Problem, ...]
    comparison: Comparison
    rows: tuple[RatioRow, ...] = ()
    turned: Mapping[str, tuple[Comparison, tuple[RatioRow, ...]]] = field(default_factory=dict)
    language: Language = field(default_factory=Language)
    sides: Mapping[str, Side] = field(default_factory=dict)
    date: str = ""
    conditions: tuple[Condition, ...] = ()
    around: Around | None = None
    frontiers: tuple[Block, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts that are made of tables and sentences."""
        return tuple(block.part for block in self.frontiers)


def of_comparison(
    answer: Answer, together: Results, parts: Sequence[Results], language: Language | None = None
) -> Report:
    """The report on a comparison; ``together`` and ``parts`` as ``fleetmark.record.evidence.gather`` gives them."""
    from reports.comparison.front import Around
    from reports.comparison.model import rows

    titles = [answer.comparison.baseline, *(c.title for c in answer.comparison.candidates)]
    shown = view(together, titles)
    served = _frontiers(shown, answer.comparison)
    families = [block.family for block in served]
    outlying = (answer.outliers, answer.without)
    return Report(
        shown,
        together.campaign,
        tuple(p.campaign for p in parts),
        tuple(p for part in parts for p in problems(part)),
        answer.comparison,
        tuple(rows(answer.comparison)),
        {title: (c, tuple(rows(c))) for title, c in answer.turned.items()},
        language or Language(),
        answer.sides,
        together.campaign.created,
        conditions(shown),
        around=Around(shown.hosts, *outlying, families, answer.powered, answer.causes, answer.effects, answer.again),
        frontiers=served,
    )


def _frontiers(view: View, comparison: Comparison | None = None) -> tuple[Block, ...]:
    titles = {g: view.title_of(g) for g in view.generations}
    values = view.results.values
    metrics = {str(w): of for w in values.distinct("workload")["workload"] if (of := metrics_of(str(w)))}
    if not metrics:
        return ()
    measurements = pd.concat(list(values.metrics(metrics)), ignore_index=True)
    return frontiers(measurements, view.results.hosts, titles, comparison)


def frontiers(
    measurements: pd.DataFrame,
    hosts: Sequence[HostInfo],
    titles: Mapping[str, str],
    comparison: Comparison | None = None,
) -> tuple[Block, ...]:
    """The frontiers in ``measurements``, in a comparison those of the workloads that it compares. ``titles``: a
    generation (there a side) to its name."""
    only = None if comparison is None else set(comparison.benchmarks["workload"])
    return blocks(families(measurements, hosts, only), titles, comparison.baseline if comparison else None)
