"""What a report says, worked out once: every format (html, pdf, xlsx, markdown, json) is written from this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetmark.record.results import CampaignInfo, Results
from planner.comparison import Comparison, Side
from reports.campaign.against import NOTHING, Against, against
from reports.campaign.conditions import Condition, conditions
from reports.campaign.grades import NONE, Grades, grades
from reports.campaign.problems import Problem, problems
from reports.campaign.view import View, view
from reports.comparison.model import RatioRow, rows
from reports.kit.language import Language

if TYPE_CHECKING:
    from fleetmark.record.compare import Answer


@dataclass(frozen=True, slots=True)
class Report:
    """A campaign's results, or a comparison with everything behind it.

    ``view``: all that was measured, hosts in order; in a comparison a side is a generation. ``campaign``: what the
    report itself is about and the command that makes it again; ``campaigns``: where its figures are from.
    ``comparison``: None for a campaign's report; ``rows`` are its rows. ``turned``: another side's title to the same
    machines with that side as the baseline, with its rows. ``sides``: each side's title to what was read of it.
    ``date``: the document's, ISO 8601. ``conditions``: the hosts while they measured. ``against``: what the
    figures of one machine mean. ``grades``: of its operators, where a workload measures such.
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
    grades: Grades = NONE


def of_campaign(
    results: Results,
    language: Language | None = None,
    date: str | None = None,
    pinned: Comparison | None = None,
    rated: Comparison | None = None,
) -> Report:
    """The report on one campaign; ``date`` is the document's own, that of the campaign where none is given. ``pinned``:
    the headlines of the campaign's host compared with a reference; ``rated``: the rates of its operators."""
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
    )


def of_comparison(
    answer: Answer, together: Results, parts: Sequence[Results], language: Language | None = None
) -> Report:
    """The report on a comparison; ``together`` and ``parts`` as ``fleetmark.record.evidence.gather`` gives them."""
    titles = [answer.comparison.baseline, *(c.title for c in answer.comparison.candidates)]
    shown = view(together, titles)
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
    )
