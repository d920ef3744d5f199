"""Build the evidence of a comparison: charts, all metrics, hosts, failed runs, and where figures come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetmark.base.text import count, joined, message
from fleetmark.record import imports
from fleetmark.record.results import Results
from fleetmark.reports.campaign import figures, hosts, metrics, status, telemetry
from fleetmark.reports.campaign import provenance as origin
from fleetmark.reports.campaign.conditions import conditions
from fleetmark.reports.campaign.problems import problems
from fleetmark.reports.campaign.versions import mixed
from fleetmark.reports.campaign.view import View
from fleetmark.reports.comparison.titles import labelled
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.breakdown import Breakdown
from fleetmark.reports.kit.document import Command, Exhibit, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Kind, Tabular

_SIDE = message("side")
_CAUSES = 8
_CAMPAIGNS = 4  # campaigns described in the section of the command; if there are more, each has its own section
_ON_PAGES: tuple[Kind, ...] = ("html", "pdf")


def measured_in(parts: Sequence[Results]) -> str:
    """Return how many campaigns and imports the figures come from."""
    ids = [part.campaign.id for part in parts if not part.campaign.pinned]
    imported = sum(id_.startswith(f"{imports.FOLDER}/") for id_ in ids)
    campaigns = count(len(ids) - imported, "campaign") if len(ids) > imported or not imported else None
    return joined([campaigns, count(imported, "import") if imported else None])


def failed(shown: View) -> str:
    """Return how many runs did not pass, or an empty string."""
    runs = len(status.failed(shown.results))
    return message("{runs} did not pass", runs=count(runs, "run")) if runs else ""


def breakdown(shown: View) -> Breakdown | None:
    """Return the figures of single hosts that a page opens on demand."""
    numbers = metrics.numbered(shown) if metrics.is_wide(shown) else {}
    return metrics.breakdown(shown, numbers) if numbers else None


def sections(shown: View, _: Language, *, has_appendix: bool) -> Iterator[Section]:
    """Yield charts, conditions, all metrics and facts of hosts. A PDF has the first three only in its appendix."""
    only = _ON_PAGES if has_appendix else ("html",)
    yield from figures.sections(shown, _, only)
    if table := telemetry.table(shown, conditions(shown), _SIDE):
        yield Section("conditions", table.title, (table,), only)
    numbers = metrics.numbered(shown) if metrics.is_wide(shown) else {}
    title = message("All metrics")
    yield Section("metrics", title, metrics.exhibits(shown, numbers, metrics.ROWS, _SIDE), ("html",))
    if has_appendix:
        yield Section("metrics", title, metrics.exhibits(shown, {}, metrics.ROWS_ON_PAPER, _SIDE), ("pdf",))
    yield hosts.section(shown, _SIDE)
    yield hosts.facts_tab(shown)


def runs(shown: View, parts: Sequence[Results]) -> Iterator[Section]:
    """Yield the causes of runs that did not pass, and these runs."""
    listed = [problem for part in parts for problem in problems(part)]
    if listed:
        yield status.causes(listed, _CAUSES, ("html", "pdf", "markdown"), tuple(status.gaps(shown)))
        yield Section("causes", message("Not passed"), (status.causes_table(listed),), ("xlsx",))
    yield status.failed_section(shown.results, _ON_PAGES)


def provenance(shown: View, parts: Sequence[Results]) -> Iterator[Section]:
    """Yield the command that repeats the comparison, and what is needed to run its campaigns again."""
    campaign = shown.results.campaign
    only: tuple[Kind, ...] = (*_ON_PAGES, "xlsx", "markdown")
    exhibits: tuple[Exhibit, ...] = (
        Command(message("Make this report again"), fmt.typed(campaign.command)),
        origin.pair("Fleetmark", fmt.clean(campaign.fleetmark_version)),
        origin.pair(message("From"), joined([measured_in(parts), fmt.clean(campaign.path)])),
        *origin.mixed_versions(mixed(shown.results.values)),
        origin.pair(message("Statuses"), origin.STATUSES),
    )
    campaigns = tuple(exhibit for part in parts for exhibit in _campaign(part))
    if len(parts) <= _CAMPAIGNS:
        yield Section("provenance", message("Provenance"), (*exhibits, *campaigns), only)
    else:
        yield Section("provenance", message("Provenance"), exhibits, only)
        yield Section("campaigns", message("Campaigns"), campaigns, only, is_folded=True)


def _campaign(part: Results) -> Iterator[Exhibit]:
    yield Note(message("Campaign {id}", id=part.campaign.id), "strong")
    for exhibit in origin.exhibits(part.campaign):
        if isinstance(exhibit, Tabular):  # several campaigns have such a table on one page
            yield replace(exhibit, title=labelled(part.campaign.id, exhibit.title))
        else:
            yield exhibit
    yield from (origin.pair(message("Note"), note) for note in part.campaign.notes)
