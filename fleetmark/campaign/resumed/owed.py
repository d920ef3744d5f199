"""Find what a recorded campaign still has to do: steps that never ran, were lost or are damaged; hosts to clean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.base.text import count
from fleetmark.campaign.drive import fields_of, identity
from fleetmark.campaign.judged import Judged
from fleetmark.campaign.outcome import Outcome
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.hosts.preflight import Checked
from fleetmark.record.archive import Archive
from fleetmark.record.documents import KEY, key_of
from fleetmark.record.steps import Exchange, Schedule, Step
from fleetmark.workloads import case_of, workload_of

UNLISTED = "its files are not in the journal"


def set_aside_lost(archive: Archive, console: Console | None = None) -> None:
    """Move lost and damaged steps aside, so that they can run again, and record in the journal that they are
    outstanding.

    A step that passed is damaged if its files no longer give a passed outcome. If a crash cut the end of a chained
    journal, the files that it does not list are lost, and their host sends them again. Print the number of steps with
    unusable files.
    """
    finished = 0
    stored = archive.stored_folders() if archive.head else None
    journaled = {key_of(e): e["status"] for e in archive.journal() if e["e"] == "outcome"}
    with Judged(archive) as judged:
        for folder, step in list(archive.steps()):
            status = Status.LOST if step["serves"] else journaled.get(key_of(step), Status.LOST)
            try:
                archive.step(folder)
                if stored is not None and archive.named(folder) not in stored:
                    raise FleetmarkError(UNLISTED)
                damage = archive.result(folder).ended == "lost" and "its result is lost"
                if status == Status.PASSED and not damage and (again := judged.outcome(folder)).status != status:
                    damage = again.reason or "its files changed"
            except FleetmarkError as error:
                damage = str(error)
            if not damage:
                continue
            finished += status != Status.LOST or damage == UNLISTED
            if status != Status.LOST:
                lost = fields_of(Outcome(status=Status.LOST, reason=f"damaged after it passed: {damage}"))
                archive.note("outcome", **{k: step[k] for k in KEY}, **lost)
            archive.set_aside(folder)
    if finished and console:
        console.print(
            f"{count(finished, 'finished step')} will run again, because files changed or the journal does not list "
            f"them; they are kept in {archive.path / 'superseded'}"
        )


def set_aside_failed(archive: Archive) -> int:
    """Record in the journal that failed and invalid steps must run again, and move their files aside. Return their
    number.
    """
    last = {key_of(e): e["status"] for e in archive.journal() if e["e"] == "outcome"}
    failed = {key for key, status in last.items() if status in (Status.FAILED, Status.INVALID)}
    for key in failed:
        lost = fields_of(Outcome(status=Status.LOST, reason="set aside to run again (--retry-failed)"))
        archive.note("outcome", **dict(zip(KEY, key, strict=True)), **lost)
    for folder, step in list(archive.steps()):
        if key_of(step) in failed and not step["serves"]:
            archive.set_aside(folder)
    return len(failed)


def failed_hosts(archive: Archive, hosts: Sequence[str]) -> list[str]:
    """Return the hosts with a step that failed, was invalid or is lost, in the order of ``hosts``."""
    last = {key_of(e): (e["host"], e["status"]) for e in archive.journal() if e["e"] == "outcome"}
    failed = {host for host, status in last.values() if status in (Status.FAILED, Status.INVALID, Status.LOST)}
    return [host for host in hosts if host in failed]


def note_joined(archive: Archive, request: Request) -> None:
    """Record once in the journal that hosts which were unreachable during scheduling have joined."""
    noted = {host for e in archive.journal() if e["e"] == "joined" for host in e["hosts"]}
    if late := [host for group in request.scheduled[1:] for host in group if host not in noted]:
        archive.note("joined", hosts=late)


def owed_steps(
    archive: Archive, jobs: Mapping[str, Mapping[str, Any]], exchanges: Sequence[Exchange]
) -> dict[str, set[str]]:
    """Map each host to the ids of its outstanding steps.

    A server's step is outstanding as long as the step of its client is outstanding.
    """
    last = {key_of(e): e["status"] for e in archive.journal() if e["e"] == "outcome"}
    settled = {key for key, status in last.items() if status != Status.LOST}
    ended = ("enough", "unstable")
    enough = {(e["host"], i) for e in archive.journal() if e["e"] in ended for i in e["steps"]}
    owed: dict[str, set[str]] = {}
    for host, job in jobs.items():
        for step in job["steps"]:
            if (
                not step["serves"]
                and key_of({**step, "host": host}) not in settled
                and (host, step["id"]) not in enough
            ):
                owed.setdefault(host, set()).add(step["id"])
    for e in exchanges:
        if e.client_step in owed.get(e.client, ()):
            owed.setdefault(e.server, set()).add(e.server_step)
    return owed


def note_lost(archive: Archive, job: Mapping[str, Any], owed: set[str], reason: str) -> None:
    """Record in the journal that the outstanding steps of an unreachable host are lost."""
    for step in job["steps"]:
        if step["id"] in owed and not step["serves"]:
            lost = fields_of(Outcome(status=Status.LOST, reason=reason))
            archive.note("outcome", host=job["host"], **identity(Step.from_json(step)), **lost)


def note_early_outcomes(archive: Archive, checked: Sequence[Checked], schedule: Schedule) -> None:
    """Record in the journal the outcomes known before anything runs: unreachable hosts, and unsupported cases."""
    nothing: dict[str, Any] = {"repeat": 0, "subject": "host"}
    for c in checked:
        name = c.host.name
        if not c.facts:
            archive.note("unreachable", host=name, reason=c.reason)
            lost = fields_of(Outcome(status=Status.LOST, reason=f"unreachable: {c.reason}"))
            for entry in schedule.settings:
                archive.note("outcome", host=name, **nothing, **_every_case(entry), **lost)
            continue
        for entry, reason in schedule.hosts[name].skipped.items():
            skipped = fields_of(Outcome(status=Status.SKIPPED, reason=reason))
            archive.note("outcome", host=name, **nothing, **_every_case(entry), **skipped)
        for no in schedule.hosts[name].refused:
            failed = fields_of(Outcome(status=Status.FAILED, reason=no.reason))
            archive.note("outcome", host=name, workload=no.workload, case=no.case, **nothing, **failed)


def _every_case(entry: str) -> dict[str, Any]:
    """Return the workload of a suite entry, and a wildcard name for all its cases."""
    return {"workload": workload_of(entry), "case": case_of(entry, "*")}


def uncleaned(archive: Archive) -> set[str]:
    """Return the hosts that may still have files of their job: it was started, and its end was not recorded."""
    hosts: set[str] = set()
    for event in archive.journal():
        if event["e"] == "launched":
            hosts.add(event["host"])
        elif event["e"] == "over" and not event.get("reason"):
            hosts.discard(event["host"])
    return hosts
