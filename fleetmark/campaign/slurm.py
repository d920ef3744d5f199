"""Get hosts for a campaign from Slurm: estimate its duration, submit a job, and wait for its nodes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.campaign.schedule import Settings, containers, make_schedule, probes, pythons, settings_of
from fleetmark.hosts.inventory import Host, this_machine
from fleetmark.hosts.preflight import check_hosts
from fleetmark.hosts.reach import Reach, ReachError
from fleetmark.hosts.slurm import cluster
from fleetmark.hosts.slurm.cluster import Node, Request
from fleetmark.hosts.slurm.job import NO_PYTHON, UNSAFE, UNSEEN, Job, refuse_replaceable
from fleetmark.hosts.slurm.reach import SlurmReach
from fleetmark.workloads import Suite

REPORT_S = 90.0  # timeout for all nodes of a running job to report; Slurm first starts a step on each
HELD_S = 120.0  # maximum time that a held job waits for its release
_LOOK_S = 1.0


@dataclass(slots=True)
class Lent:
    """A Slurm job and its hosts."""

    job: Job
    hosts: list[Host]

    def connected(self, host: Host, timeout_s: float | None) -> Reach:
        """Return the connection to a host whose node has reported. Raise ReachError if it has not."""
        reach = SlurmReach(host, self.job)
        if reach.start_of_job() is None:
            raise ReachError(
                f"{host.name}: its agent did not report in {self.job.folder} within {REPORT_S:g} s; check that the "
                f"node can see this folder; the node's log is {self.job.folder / f'log.{host.name}'}"
            )
        return reach

    def end(self, finished: bool) -> None:
        """End the job. Keep the files of its nodes unless the campaign is finished."""
        self.job.end()
        if finished:
            remove_shared(self.job)


def shared_folder(shared: Path | None, root: Path, campaign: str) -> Path:
    """Return the folder that the nodes of a campaign share with the campaign's controller."""
    return (shared or root).resolve() / f".slurm-{os.geteuid()}" / campaign


def remove_shared(job: Job) -> None:
    """Remove the files of all jobs of a campaign from the shared folder."""
    shutil.rmtree(job.folder.parent, ignore_errors=True)


def job_on_record(event: Mapping[str, Any], shared: Path, partition: str | None) -> Job:
    """Return the job that a journal event names. ``shared``: the campaign's ``shared_folder``.

    Raise FleetmarkError if the job or its folder cannot belong to this campaign, because both are removed later.
    """
    id_, folder = str(event.get("job")), Path(str(event.get("folder")))
    if folder.parent != shared or not re.fullmatch(r"\d{1,9}", folder.name, re.ASCII):
        raise FleetmarkError(
            f"the folder of the Slurm job in the journal is {str(folder)[:200]!r}, which is not in {shared}; start "
            "a new "
            "campaign"
        )
    if not re.fullmatch(r"[0-9_]+", id_):
        raise FleetmarkError(
            f"the journal names {id_[:80]!r} as the Slurm job, which is not a job ID; start a new campaign"
        )
    with contextlib.suppress(OSError):  # if the folder is gone, there is nothing to collect
        refuse_replaceable(folder)
    return Job(id_, folder, partition)


def refuse_impossible(request: Request, suite: Suite, settings: Settings, repeats: int | None) -> Request:
    """Return ``request`` with its partition and number of nodes.

    Raise FleetmarkError before submission if the partition lacks these nodes, or if the suite exceeds the time limit or
    uses shares.
    """
    if suite.shares:
        raise FleetmarkError(
            f"suite {suite.name}: shares cannot be used on Slurm nodes, because Slurm limits its jobs itself; "
            "remove shares"
        )
    present = cluster.nodes(request.partition)
    partition = present[0].partition if present else request.partition or ""
    nodes = number_of_nodes(request, present, partition)
    limit = cluster.time_limit_s(partition, request.time)
    if limit is not None:
        needed = estimate_s(present[:nodes], suite, settings, repeats)
        if needed > limit:
            bound = f"--time {request.time}" if request.time else f"the time limit of partition {partition}"
            raise FleetmarkError(
                f"{bound} is {_minutes(limit)}, and suite {suite.name} takes about {_minutes(needed)} there; request "
                "more with --time, or use a shorter suite"
            )
    return replace(request, partition=partition, nodes=nodes)


def number_of_nodes(request: Request, present: Sequence[Node], partition: str) -> int:
    """Return the number of nodes to request. Raise FleetmarkError if the partition has too few suitable nodes."""
    if request.nodes and request.nodes > len(present):
        raise FleetmarkError(f"--nodes {request.nodes}: partition {partition} has {count(len(present), 'node')}")
    if request.nodelist:
        named = cluster.named(request.nodelist)
        if absent := [name for name in named if name not in {node.name for node in present}]:
            raise FleetmarkError(f"--nodelist {request.nodelist}: partition {partition} has no node {absent[0]}")
        if request.nodes and request.nodes < len(named):
            raise FleetmarkError(f"--nodes {request.nodes}: --nodelist names {len(named)}; remove --nodes")
        return request.nodes or len(named)
    if not request.constraint:
        fitting = list(present)
    elif (choice := cluster.fitting(present, request.constraint)) is not None:
        fitting = choice
    elif request.nodes:  # only Slurm knows the number of matching nodes
        return request.nodes
    else:
        raise FleetmarkError(f"--constraint {request.constraint}: specify the number of nodes with --nodes")
    if request.constraint and len(fitting) < (request.nodes or 1):
        features = sorted({feature for node in present for feature in node.features})
        raise FleetmarkError(
            f"--constraint {request.constraint}: {len(fitting) or 'none'} of the {count(len(present), 'node')} of "
            f"partition {partition} fit; the available features are {cluster.some(features)}"
        )
    usable = sum(node.is_usable for node in fitting)
    if not request.nodes and not usable:
        raise FleetmarkError(f"partition {partition}: none of its {count(len(fitting), 'node')} can run a job")
    return request.nodes or usable


def estimate_s(nodes: Sequence[Node], suite: Suite, settings: Settings, repeats: int | None) -> float:
    """Estimate the suite's duration on the busiest node in seconds, assuming nodes like this machine."""
    merged = settings_of(suite, settings)
    images = containers(suite)
    (here,) = check_hosts([this_machine()], probes(merged), pythons=pythons(merged), containers=images)
    if not here.facts:
        return 0.0
    hosts = [(Host(node.name, node.address, node.address), here.facts) for node in nodes]
    schedule = make_schedule(hosts, suite, settings, campaign="estimate", seed=0, repeats=repeats)
    return max((sum(step.expect_s for step in job.steps) for job in schedule.hosts.values()), default=0.0)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def lend(request: Request, name: str, folder: Path, console: Console, submitted: Callable[[Job], None]) -> Lent:
    """Submit a job and wait until its nodes report. ``submitted`` is called with the job right after submission.

    Raise FleetmarkError if the job cannot begin. On failure, cancel the job and remove its folder, since nothing has
    run in it.
    """
    job = Job.submit(request, name, folder)
    console.print(f"Slurm job {job.id} is submitted: {count(request.nodes or 1, 'node')} of partition {job.partition}")
    try:
        submitted(job)
        hosts = wait(job, console)
    except BaseException:
        job.discard()
        raise
    return Lent(job, hosts)


def wait(job: Job, console: Console) -> list[Host]:
    """Wait for the hosts of a job to report, and return all of them, even if some do not report in REPORT_S."""
    job.look()
    with console.status(f"Slurm job {job.id} is submitted") as status:
        held_since = None
        while job.state.is_waiting:
            held_since = (held_since or time.monotonic()) if job.state.is_held else None
            if held_since and time.monotonic() - held_since > HELD_S:
                reason = job.state.reason or job.state.word
                raise FleetmarkError(f"Slurm job {job.id} is held ({reason}): it cannot start before it is released")
            if job.state.is_hopeless:
                raise FleetmarkError(
                    f"Slurm job {job.id} can never start ({job.state.reason}); request no more than "
                    f"partition {job.partition} allows (see `scontrol show partition`)"
                )
            status.update(f"Slurm job {job.id} waits: {job.state.reason or job.state.word.lower()}")
            time.sleep(_LOOK_S)
            with contextlib.suppress(FleetmarkError):  # Slurm's controller may be unavailable for a while
                job.look()
        job.watch()
        status.update(f"Slurm job {job.id}: {count(len(job.names), 'node')} begin")
        _until_reported(job)
    listed = {node.name: node for node in cluster.nodes(job.partition)}
    return [_host(name, listed.get(name)) for name in job.names]


def _until_reported(job: Job) -> None:
    deadline = time.monotonic() + REPORT_S
    while time.monotonic() < deadline and not job.state.is_waiting:
        if all((job.folder / "nodes" / name / "up").exists() for name in job.names):
            return
        if job.state.is_final:
            raise FleetmarkError(_why_not_begun(job))
        time.sleep(0.2)


def _why_not_begun(job: Job) -> str:
    nodes = ", ".join(job.names[:4]) + (" and others" if len(job.names) > 4 else "")
    if job.state.exit_status == UNSEEN:
        return (
            f"{job.folder.parent.parent.parent} is not shared: {nodes} cannot see it; use --shared with a folder that "
            "all nodes and this machine share"
        )
    if job.state.exit_status == UNSAFE:
        return (
            f"{job.folder}: on {nodes}, other users can replace it; use --shared with a folder that only you and "
            "root can change"
        )
    if job.state.exit_status == NO_PYTHON:
        return f"{nodes}: no Python 3.6 or later"
    because = f" ({job.state.reason})" if job.state.reason else ""
    return f"Slurm job {job.id} ended before its nodes reported: {job.state.word}{because}"


def _host(name: str, node: Node | None) -> Host:
    address = node.address if node else name
    return Host(name, address, address, connection="slurm", labels=node.labels if node else {})
