"""The schedule of a campaign on record: its jobs, made again where one is damaged, and the hosts that join later.

A schedule follows from campaign.json and the facts alone, so it can be computed again. campaign.json holds the SHA-256
of every job, which shows whether the result is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.slurm.cluster import Request as SlurmRequest
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.steps import Deployment, Exchange, HostSchedule, Refusal, Schedule, Step, Trial
from workloads import Suite


class _Host(BaseModel, defer_build=True):
    name: str
    address: str | None = None
    peer: str | None = None
    labels: dict[str, str] = {}


class Request(BaseModel, defer_build=True):
    """The fields of ``campaign.json`` that are needed to resume a campaign.

    ``scheduled`` (``planned`` in the file): the hosts in the order in which they were scheduled, later ones group by
    group; ``jobs``: the SHA-256 of each host's job; ``suite_as_read``: the content of the suite's file. An earlier
    version stored none of these.
    """

    id: str
    created: str
    owner: str
    suite: str
    seed: int
    workloads: list[str]
    settings: dict[str, dict[str, Any]]
    repeats: int | None
    until: Until | None = None
    inventory: list[str]
    limit: str | None
    become: bool
    work_dir: str
    hosts: list[_Host]
    exchanges: list[Exchange]
    scheduled: list[list[str]] | None = Field(default=None, alias="planned")
    jobs: dict[str, str] = {}
    suite_as_read: Suite | None = None
    slurm: SlurmRequest | None = None
    at_once: list[str] = []
    trial: Trial | None = None

    @property
    def rounds(self) -> int | None:
        """How often each case is scheduled, where the command line sets it."""
        return self.until.most if self.until else self.repeats


def request_of(archive: Archive) -> Request:
    """What the campaign was started with. Raises FleetmarkError where campaign.json lacks a field needed to resume."""
    try:
        return Request.model_validate(archive.campaign())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise FleetmarkError(
            f"{archive.path / 'campaign.json'}: damaged ({where}: {first['msg'][:160]}), so the campaign cannot go on; "
            "restore it; what was measured is read by `fleetmark report`"
        ) from error


def job_text(campaign: Mapping[str, Any], schedule: HostSchedule, facts: Facts) -> str:
    """One host's job as it is sent there and stored in ``jobs/HOST.json``."""
    trial = Trial(**campaign["trial"]) if campaign.get("trial") else None
    setting = {"setting": trial.as_job()} if trial and trial.host == schedule.host else {}
    return json.dumps(
        {
            "schema": 1,
            "campaign": campaign["id"],
            "owner": campaign["owner"],
            "created": campaign["created"],
            "host": schedule.host,
            "work": facts.work_dir,
            "interval_s": 1.0,
            "steps": [s.as_json() for s in schedule.steps],
            "deploy": [asdict(d) for d in schedule.deploy],
            "skipped": schedule.skipped,
            "refused": [asdict(no) for no in schedule.refused],
            **setting,
        }
    )


def digest(job: str | bytes) -> str:
    return hashlib.sha256(job.encode() if isinstance(job, str) else job).hexdigest()


def jobs(archive: Archive, request: Request) -> dict[str, dict[str, Any]]:
    """The job of every scheduled host; one that is missing or damaged is made again, and stored.

    Raises FleetmarkError where the new job differs from the old one: a step may not run under another's name.
    """
    loaded: dict[str, dict[str, Any]] = {}
    broken: dict[str, str] = {}
    names = [h.name for h in request.hosts]
    for name in names:
        if request.scheduled is not None and name not in request.jobs:
            continue  # a job file of such a host comes from a join that did not finish
        try:
            raw, job = archive.job_text(name), archive.job(name)
            if raw and job and request.jobs.get(name) in (None, digest(raw)):  # an earlier version kept no digests
                loaded[name] = job
            elif raw is not None:
                broken[name] = "is damaged"
            elif request.scheduled is not None or archive.facts_of(name):
                broken[name] = "is missing"
        except FleetmarkError:
            broken[name] = "is damaged"
    if broken:
        schedule = _schedule_again(archive, request, broken)
        for name in broken:
            facts = archive.facts_of(name)
            assert facts  # the schedule was made from them
            text = job_text(request.model_dump(), schedule.hosts[name], facts)
            if digest(text) != request.jobs[name]:
                raise _not_the_same(archive, broken)
            archive.save_job(name, text)
            loaded[name] = json.loads(text)
    return {name: loaded[name] for name in names if name in loaded}


def _schedule_again(archive: Archive, request: Request, broken: Mapping[str, str]) -> Schedule:
    """The schedule of all hosts, from the record alone."""
    if request.scheduled is None or request.suite_as_read is None:
        raise FleetmarkError(
            f"{_first(archive, broken)}, and an earlier version kept too little to make it again; {_REMEDY}"
        )
    schedule = None
    able: list[tuple[Host, Facts]] = []
    for group in request.scheduled:
        able += [(host, _facts(archive, host.name, broken)) for host in _hosts(request, group)]
        try:
            schedule = make_schedule(
                able,
                request.suite_as_read,
                request.settings,
                campaign=request.id,
                seed=request.seed,
                repeats=request.rounds,
                onto=schedule,
            )
        except FleetmarkError as error:
            raise FleetmarkError(f"{_first(archive, broken)}, and cannot be made again: {error}; {_REMEDY}") from error
    if schedule is None or not broken.keys() <= schedule.hosts.keys():
        raise _not_the_same(archive, broken)
    return schedule


_REMEDY = "restore the file, or begin a new campaign; what was measured is read by `fleetmark report`"


def _first(archive: Archive, broken: Mapping[str, str]) -> str:
    name, how = next(iter(broken.items()))
    return f"{archive.path / 'jobs' / safe_name(name)}.json {how}"


def _not_the_same(archive: Archive, broken: Mapping[str, str]) -> FleetmarkError:
    return FleetmarkError(
        f"{_first(archive, broken)}, and today's schedule differs from it (a manifest or a file of the campaign "
        f"has changed since); {_REMEDY}"
    )


def _facts(archive: Archive, host: str, broken: Mapping[str, str]) -> Facts:
    try:
        facts = archive.facts_of(host)
    except FleetmarkError as error:
        raise FleetmarkError(f"{_first(archive, broken)}, and cannot be made again: {error}; {_REMEDY}") from error
    if facts is None:
        raise FleetmarkError(f"{_first(archive, broken)}, and the facts of {host} are missing as well; {_REMEDY}")
    return facts


def hosts(request: Request, connection: Literal["ssh", "slurm"]) -> list[Host]:
    """All hosts of a campaign as its record has them."""
    return [replace(host, connection=connection) for host in _hosts(request, [h.name for h in request.hosts])]


def _hosts(request: Request, names: Sequence[str]) -> list[Host]:
    """The hosts with what a schedule needs of them."""
    by_name = {h.name: h for h in request.hosts}
    return [
        Host(h.name, h.address or h.name, h.peer or h.address or h.name, labels=h.labels)
        for name in names
        if (h := by_name.get(name))
    ]


def join(
    archive: Archive,
    request: Request,
    on_record: Mapping[str, dict[str, Any]],
    suite: Suite,
    new: Sequence[tuple[Host, Facts, Mapping[str, Any]]],
) -> tuple[Request, Schedule]:
    """Schedule hosts that were away: what each runs alone and its pairs with all others, behind the existing steps.

    ``on_record``: the existing jobs. campaign.json is replaced last: a controller that dies before leaves jobs that do
    not match it, and these are made again.
    """
    before = [name for group in request.scheduled or [list(on_record)] for name in group]
    able = [(host, _facts(archive, host.name, {})) for host in _hosts(request, before)]
    schedules = {name: _schedule_of(job) for name, job in on_record.items()}
    schedule = make_schedule(
        [*able, *((host, facts) for host, facts, _ in new)],
        suite,
        request.settings,
        campaign=request.id,
        seed=request.seed,
        repeats=request.rounds,
        onto=Schedule(schedules, tuple(request.exchanges), request.settings),
    )
    doc = archive.campaign()
    facts_of = {host.name: facts for host, facts in able} | {host.name: facts for host, facts, _ in new}
    texts = {name: job_text(doc, of, facts_of[name]) for name, of in schedule.hosts.items()}
    for host, facts, raw in new:
        archive.save_facts(host.name, facts, raw)
    for name, text in texts.items():
        if request.jobs.get(name) != digest(text):
            archive.save_job(name, text)
    peers = {host.name: {"address": host.address, "peer": host.peer_address} for host, _, _ in new}
    doc |= {
        "planned": [*(request.scheduled or [before]), [host.name for host, _, _ in new]],
        "jobs": {name: digest(text) for name, text in texts.items()},
        "exchanges": [asdict(e) for e in schedule.exchanges],
        "hosts": [{**h, **peers.get(h["name"], {})} for h in doc["hosts"]],
    }
    archive.save_campaign(doc)
    return request_of(archive), schedule


def _schedule_of(job: Mapping[str, Any]) -> HostSchedule:
    """A host's schedule, read from its job."""
    return HostSchedule(
        job["host"],
        [Step.from_json(step) for step in job["steps"]],
        [Deployment(**d) for d in job["deploy"]],
        dict(job["skipped"]),
        [Refusal(**no) for no in job.get("refused", ())],
    )
