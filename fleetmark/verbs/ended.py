"""Show a campaign that just ended, and determine whether it passed."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console

from fleetmark.base.measurement import Better, Status
from fleetmark.record.archive import Archive
from fleetmark.verbs import report
from fleetmark.verbs.documents import Documents


def show(archive: Archive, form: str, console: Console, strict: bool, documents: Documents) -> bool:
    """Show the campaign as ``form`` (table or json), and write its page and the requested ``documents``.

    Return whether the campaign finished and passed.
    """
    results = report.campaign(archive, form, console, documents, has_page=True)
    directions = set(results.values.distinct("better")["better"])
    if form == "table" and len(results.hosts) > 1 and directions - {Better.NONE.value}:
        from fleetmark.verbs import diagnose  # imports scipy, which campaigns of a single host do not need

        diagnose.brief(archive, console)
    return results.campaign.finished and is_passed(list(results.outcomes["status"]), strict)


def is_passed(statuses: Collection[str], strict: bool) -> bool:
    """Return whether some steps passed and the others were at most skipped; with ``strict``, whether all passed."""
    accepted = {Status.PASSED.value} if strict else {Status.PASSED.value, Status.SKIPPED.value}
    return Status.PASSED.value in statuses and set(statuses) <= accepted
