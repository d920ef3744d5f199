"""Build the test plan of a dry run as a document."""

from __future__ import annotations

from typing import Any

from fleetmark.campaign.prepare.dryrun import DryRun, PlannedHost
from fleetmark.reports.kit.document import Document
from fleetmark.reports.testplan.sections import sections, title


def document(dry: DryRun, created: str) -> Document:
    """Return the document of the plan."""
    return Document(
        title=dry.suite.name,
        answer=title(dry),
        sections=sections(dry),
        created=created,
        data=as_json(dry),
    )


def as_json(dry: DryRun) -> dict[str, Any]:
    """Return the plan for programs, with times in s, sizes in bytes and shares as fractions of 1."""
    return {
        "suite": dry.suite.name,
        "description": dry.suite.description,
        "command": list(dry.command),
        "seed": dry.seed,
        "settings": dry.settings,
        "until": {"ci": dry.until.ci, "least": dry.until.minimum, "most": dry.until.maximum} if dry.until else None,
        "seconds": dry.seconds,
        "seconds_least": dry.seconds_least,
        "hosts": [_host(host) for host in dry.hosts],
    }


def _host(host: PlannedHost) -> dict[str, Any]:
    return {
        "host": host.host.name,
        "reachable": host.facts is not None,
        "reason": host.reason,
        "kind": list(host.kind),
        "seconds": host.seconds,
        "seconds_least": host.seconds_least,
        "disk": host.disk,
        "network_seconds": host.network_s,
        "network": host.network,
        "cases": [
            {
                "workload": case.workload,
                "case": case.case,
                "repeats": case.repeats,
                "runs": case.runs,
                "seconds": case.seconds,
                "source": case.source,
                "half_width": case.half_width,
                "spread_source": case.spread_source,
            }
            for case in host.cases
        ],
        "skipped": dict(host.skipped or {}),
        "unmet": dict(host.unmet or {}),
        "refused": [{"workload": r.workload, "case": r.case, "reason": r.reason} for r in host.refused],
        "installs": [
            {"workload": i.workload, "provides": i.provides, "packages": list(i.packages)} for i in host.installs
        ],
    }
