"""Report where figures come from: commands, files, versions and checksums of campaigns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import count, joined, message
from fleetmark.record.results import CampaignInfo
from fleetmark.reports.campaign.front import some
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Command, Exhibit, Note
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular

MOST_ON_PAPER = 4  # checksums in a PDF; the page, the JSON and an appendix have all

STATUSES = message(
    "passed; failed: it ran and ended in an error; lost: result unknown; host or connection dropped; invalid: it ran, "
    "but broke its own rules; skipped: never started, for a reason known beforehand. Only what passed is scored."
)


def pair(name: str, text: str) -> Note:
    """Return a name followed by its text."""
    return Note(message("{name}: {what}", name=name, what=text))


def exhibits(campaign: CampaignInfo, *, has_appendix: bool = False) -> Iterator[Exhibit]:
    """Yield what is needed to repeat a campaign or an import and to check its files.

    ``has_appendix``: a PDF lists all checksums.
    """
    if campaign.suite:
        yield from _run(campaign)
    else:
        yield Command(message("Import it again"), fmt.typed(campaign.command))
        yield pair(message("Import"), fmt.clean(campaign.id))
        yield pair(message("Imported"), fmt.moment(campaign.created))
        yield pair(message("Files"), fmt.clean(campaign.path))
    yield pair("Fleetmark", fmt.clean(campaign.fleetmark_version))
    versions = [f"{fmt.clean(tool)} {fmt.clean(version)}" for tool, version in sorted(campaign.tool_versions.items())]
    if versions:
        yield pair(message("Versions"), ", ".join(versions))
    if campaign.hashes:
        columns = (Column("sha256", message("SHA-256"), "code"), Column("file", message("file"), "text"))
        rows = tuple((Cell(digest), Cell(fmt.clean(file))) for file, digest in sorted(campaign.hashes.items()))
        heading = message("{files} that the figures depend on", files=count(len(rows), "file"))
        limits: dict[Kind, int] = {} if has_appendix else {"pdf": MOST_ON_PAPER}
        key = f"hashes_{campaign.id}"
        yield Tabular(key, heading, columns, rows, is_folded=len(rows) > MOST_ON_PAPER, limits=limits)


def _run(campaign: CampaignInfo) -> Iterator[Exhibit]:
    yield Command(message("Run it again"), fmt.typed(campaign.command))
    yield pair(message("Campaign"), fmt.clean(campaign.id))
    contents = message("raw output, facts, journal, measurements.parquet")
    yield pair(message("Files"), joined([fmt.clean(campaign.path), contents]))
    yield pair(message("Suite, seed"), f"{fmt.clean(campaign.suite)}, {campaign.seed}")
    unfinished = None if campaign.finished else message("not finished")
    begun = joined([fmt.moment(campaign.created), fmt.duration(campaign.wall_s), unfinished])
    yield pair(message("Begun, took"), begun)


def mixed_versions(mixed: Sequence[tuple[str, str, list[str]]]) -> Iterator[Note]:
    """Yield the versions of workloads that were measured in several versions, with the hosts of each."""
    for workload, version, hosts in mixed:
        text = message(
            "{workload} {version} on {hosts}", workload=fmt.clean(workload), version=version, hosts=some(hosts, 6)
        )
        yield pair(message("Mixed versions"), text)
