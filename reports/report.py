"""What a report says, worked out once: every format (html, pdf, xlsx, markdown, json) is written from this.

What only comparisons need is imported where one is made: a campaign's report is written while its user waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from fleetmark.record.results import CampaignInfo, HostInfo, Results
from reports.campaign import grade_tables
from reports.campaign import remarks as campaign_remarks
from reports.campaign.against import NOTHING, Against, against
from reports.campaign.conditions import Condition, conditions
from reports.campaign.front import Front, front
from reports.campaign.grades import NONE, Grades, grades
from reports.campaign.problems import Problem, problems
from reports.campaign.remarks import Remarks, remarks
from reports.campaign.roofs import lines
from reports.campaign.view import View, view
from reports.frontier.points import families, metrics_of
from reports.frontier.section import Block, blocks
from reports.hosts import roofs as under_roofs
from reports.hosts.roofs import Line
from reports.kit.language import Language
from reports.kit.tabular import Part

if TYPE_CHECKING:
    from fleetmark.record.compare import Answer
    from planner.comparison import Comparison, Side
    from reports.comparison.front import Around
    from reports.comparison.model import RatioRow


@dataclass(frozen=True)
class Report:
    """A campaign's results, or a comparison with everything behind it.

    ``view``: all that was measured, hosts in order; in a comparison a side is a generation. ``campaign``: what the
    report itself is about and the command that makes it again; ``campaigns``: where its figures are from.
    ``comparison``: None for a campaign's report; ``rows`` are its rows. ``turned``: another side's title to the same
    machines with that side as the baseline, with its rows. ``sides``: each side's title to what was read of it.
    ``around``: what is known beside a comparison's figures. ``date``: the document's, ISO 8601. ``conditions``: the
    hosts while they measured. ``against``: headlines beside the machines' peaks and a reference. ``grades``: of its
    operators, where a workload measures such. ``frontiers``: work against speed, in a comparison with what replaces
    what. ``remarks``: what a campaign's passed runs say beside their figures. ``roofs``: what parts of its hosts did.
    """

    view: View
    campaign: CampaignInfo
    campaigns: tuple[CampaignInfo, ...]
    problems: tuple[Problem, ...]
    comparison: Comparison | None = None
    rows: tuple[RatioRow, ...] = ()
    turned: Mapping[str, tuple[Comparison, tuple[RatioRow, ...]]] = field(default_factory=dict)
    language: Language = field(default_factory=Language)
    sides: Mapping[str, Side] = field(default_factory=dict)
    date: str = ""
    conditions: tuple[Condition, ...] = ()
    against: Against = NOTHING
    around: Around | None = None
    grades: Grades = NONE
    frontiers: tuple[Block, ...] = ()
    remarks: Remarks = campaign_remarks.NONE
    roofs: tuple[Line, ...] = ()

    @cached_property
    def front(self) -> Front:
        """The first screen of a campaign, worked out once for all formats."""
        return front(self.view, self.problems, self.against)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are made of tables and sentences."""
        own = (under_roofs.part(self.roofs),) if self.roofs else ()
        return (*own, *self.tables, *campaign_remarks.parts(self.remarks))

    @property
    def tables(self) -> tuple[Part, ...]:
        """The parts that a terminal shows too."""
        return (*grade_tables.parts(self.grades), *(block.part for block in self.frontiers))


def of_campaign(
    results: Results,
    language: Language | None = None,
    date: str | None = None,
    pinned: Comparison | None = None,
    rated: Comparison | None = None,
) -> Report:
    """The report on one campaign; ``date`` is the document's own, that of the campaign where none is given. ``pinned``:
    the headlines of the campaign's host compared with a reference; ``rated``: the rates of its hosts' operators."""
    seen, campaign = view(results), results.campaign
    return Report(
        seen,
        campaign,
        (campaign,),
        tuple(problems(results)),
        language=language or Language(),
        date=date or campaign.created,
        conditions=conditions(seen),
        against=against(seen, pinned),
        grades=grades(seen, rated),
        frontiers=_frontiers(seen),
        remarks=remarks(results),
        roofs=tuple(lines(seen)),
    )


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
