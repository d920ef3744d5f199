"""Implement ``fleetmark diagnose --confirm``: repeat the slow cases of suspects next to healthy hosts, and settle each
finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed.authorship import request_to_run
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.hosts.preflight import WORK_DIR
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.record.diagnosis.reruns import FOLDER, can_be_settled, rerun, unfinished
from fleetmark.workloads.suite import suite_from


@dataclass(frozen=True, slots=True)
class Where:
    """Connection options that replace those of the campaign: ``inventory``, and root by ``become``."""

    inventory: tuple[str, ...] = ()
    become: bool = False


def confirm(archive: Archive, diagnosis: Diagnosis, connection: Where, console: Console) -> bool:
    """Repeat the cases in which suspects are slow, in a campaign inside the one that it confirms.

    Resume an interrupted confirmation. Return whether the user interrupted this one.

    Raise FleetmarkError if no healthy host is left to measure next to the suspects.
    """
    archive.pin()  # so that the checked campaign.json is also the one whose settings run
    before = unfinished(archive)
    if before is None and not any(map(can_be_settled, diagnosis.findings)):
        console.print("no host or link is suspect, so there is nothing to confirm", soft_wrap=True)
        return False
    request, _ = request_to_run(archive, connection.inventory, console)
    if before is not None:
        return campaign.resume(before, options_of(archive, FOLDER, request, connection, ()), console)
    again = rerun(archive, diagnosis)
    for note in again.notes:
        console.print(note, soft_wrap=True)
    if not again.suite["workloads"]:
        raise FleetmarkError(
            f"{archive.id}: no healthy host is left to compare the suspects with, so no finding can be confirmed"
        )
    options = with_suite(options_of(archive, FOLDER, request, connection, again.hosts), archive, "confirm", again.suite)
    console.print(f"repeating the slow cases of suspects on {count(len(again.hosts), 'host')}", soft_wrap=True)
    return campaign.run(options, console)[1]


def options_of(archive: Archive, folder: str, request: Request, connection: Where, hosts: tuple[str, ...]) -> Options:
    """Return the options of a campaign in ``folder`` of ``archive``, on some of its ``hosts``.

    Connections are those of ``archive`` unless ``connection`` replaces them. If another user started the campaign, an
    inventory was given, or the campaign had none (``request_to_run``).
    """
    slurm = request.slurm
    if slurm is not None and hosts:
        slurm = replace(slurm, nodes=len(hosts), nodelist=",".join(hosts), constraint=None)
    return Options(
        suite="",
        parent=archive.id,
        root=archive.path / folder,
        within=archive.root,
        inventory=connection.inventory or tuple(request.inventory),
        limit=",".join(hosts) if hosts and (connection.inventory or request.inventory) else None,
        become=connection.become or request.become,
        work_dir=request.work_dir or WORK_DIR,
        slurm=slurm,
        at_once=tuple(request.at_once),
    )


def with_suite(options: Options, archive: Archive, name: str, suite: Mapping[str, Any]) -> Options:
    """Return ``options`` with a suite of workloads of ``archive``, and save the suite beside the campaigns that run it.

    The saved file is never read back, because others may be able to change it. Raise FleetmarkError if the measurements
    name a workload that is not in the campaign's suite.
    """
    if unknown := sorted(set(suite["workloads"]) - set(archive.pin().get("workloads") or ())):
        raise FleetmarkError(f"{archive.id}: its measurements include {unknown[0]}, which is not in its suite")
    document = {key: value for key, value in suite.items() if key != "name"}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    file = archive.keep(f"{options.root.name}/{name}.yml", text)
    return replace(options, suite=str(file), content=suite_from(document, name))
