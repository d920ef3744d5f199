"""Restore the schedule of a recorded campaign: rebuild damaged jobs, and add hosts that join later.

campaign.json and the facts fully determine a schedule, so it can be recomputed. campaign.json holds the SHA-256 of
every job and of every host's facts, and is signed by the user who started the campaign. Other users who can write to
the record therefore cannot change what runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.hosts.slurm.cluster import Request as SlurmRequest
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.steps import Deployment, Exchange, HostSchedule, Refusal, Schedule, Step, Trial
from fleetmark.workloads import Suite, suite_names
from fleetmark.workloads.shares import Shares


class _Host(BaseModel, defer_build=True):
    name: str
    address: str | None = None
    peer: str | None = None
    labels: dict[str, str] = {}


class Request(BaseModel, defer_build=True):
    """The fields of ``campaign.json`` that are needed to resume a campaign.

    ``scheduled`` (``planned`` in the file): the hosts in scheduling order, with later hosts appended group by group;
    ``jobs`` and ``facts``: the SHA-256 of each host's job and facts; ``suite_as_read``: the content of the suite file.
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
    scheduled: list[list[str]] = Field(alias="planned")
    jobs: dict[str, str]
    facts: dict[str, str]
    suite_as_read: Suite
    slurm: SlurmRequest | None = None
    at_once: list[str] = []
    trial: Trial | None = None

    @property
    def rounds(self) -> int | None:
        """Return the number of repeats of each case if the command line set it, or None."""
        return self.until.maximum if self.until else self.repeats


def request_of(archive: Archive) -> Request:
    """Return the request with which this user started the campaign.

    Raise FleetmarkError if this user's signature does not match campaign.json, or if a required field is missing.
    """
    document = archive.own_campaign()
    if document is None:
        raise FleetmarkError(
            f"{archive.path / 'campaign.json'}: you did not sign it; fleetmark run --resume asks first"
        )
    return _request(archive, document)


def unsigned_request(archive: Archive) -> Request:
    """Return the request in campaign.json without checking its signature. Raise FleetmarkError if it lacks a field."""
    return _request(archive, archive.campaign())


def _request(archive: Archive, document: Mapping[str, Any]) -> Request:
    try:
        return Request.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))[:80]
        raise FleetmarkError(
            f"{archive.path / 'campaign.json'}: damaged ({location}: {first['msg'][:160]}), so the campaign cannot be "
            "resumed; restore the file, or see the measured results with `fleetmark report`"
        ) from error


def job_text(campaign: Mapping[str, Any], schedule: HostSchedule, facts: Facts) -> str:
    """Return a host's job as the text that is sent to the host and stored in ``jobs/HOST.json``."""
    trial = Trial(**campaign["trial"]) if campaign.get("trial") else None
    setting = {"setting": trial.as_job()} if trial and trial.host == schedule.host else {}
    shares = campaign["suite_as_read"].get("shares")
    limits = {"shares": Shares(**shares).as_job()} if shares else {}
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
            **limits,
        }
    )


def digest(document: str | bytes) -> str:
    """Return the SHA-256 of a job or of a host's facts as a hexadecimal string."""
    return hashlib.sha256(document.encode() if isinstance(document, str) else document).hexdigest()


def _has_digest(expected: str | None, raw: bytes) -> bool:
    return digest(raw) == expected


def jobs(archive: Archive, request: Request) -> dict[str, dict[str, Any]]:
    """Return the job of every scheduled host; recreate and store missing or damaged jobs.

    Raise FleetmarkError if a recreated job differs from the original, because each result must belong to its step.
    """
    loaded: dict[str, dict[str, Any]] = {}
    broken: dict[str, str] = {}
    names = [h.name for h in request.hosts]
    for name in names:
        if name not in request.jobs:
            continue  # the host's job file is left from an incomplete join
        try:
            job = archive.job(name, partial(_has_digest, request.jobs[name]))
            if job is None:
                broken[name] = "is missing"
            else:
                loaded[name] = job
        except FleetmarkError:
            broken[name] = "is damaged"
    if broken:
        schedule = _schedule_again(archive, request, broken)
        for name in broken:
            text = _job_again(archive, request, schedule, name)
            if digest(text) != request.jobs[name]:
                raise _not_the_same(archive, broken)
            archive.save_job(name, text)
            loaded[name] = json.loads(text)
    return {name: loaded[name] for name in names if name in loaded}


def _job_again(archive: Archive, request: Request, schedule: Schedule, name: str) -> str:
    return job_text(request.model_dump(), schedule.hosts[name], _facts(archive, request, name, {}))


def _schedule_again(archive: Archive, request: Request, broken: Mapping[str, str]) -> Schedule:
    """Return the schedule of all hosts, computed from the record alone."""
    schedule = None
    able: list[tuple[Host, Facts]] = []
    for group in request.scheduled:
        able += [(host, _facts(archive, request, host.name, broken)) for host in _hosts(request, group)]
        try:
            schedule = _schedule(request, able, schedule)
        except FleetmarkError as error:
            raise FleetmarkError(f"{_first(archive, broken)}, and cannot be recreated: {error}; {_REMEDY}") from error
    if schedule is None or not broken.keys() <= schedule.hosts.keys():
        raise _not_the_same(archive, broken)
    return schedule


_KEPT = ("command", "versions", "extensions", "sha256", "parent")  # copied from an adopted campaign.json
_REMEDY = "restore the file, or start a new campaign; `fleetmark report` shows the measured results"


def _schedule(request: Request, able: Sequence[tuple[Host, Facts]], onto: Schedule | None) -> Schedule:
    return make_schedule(
        able,
        request.suite_as_read,
        request.settings,
        campaign=request.id,
        seed=request.seed,
        repeats=request.rounds,
        onto=onto,
    )


def adopt(archive: Archive, request: Request, checked: Sequence[Checked], inventory: Sequence[str], user: str) -> None:
    """Sign another user's campaign as this user's own, if its suite and fresh facts produce its jobs.

    ``checked`` are the hosts of this user's ``inventory`` with their addresses, labels and fresh facts, so that the
    record does not determine what runs. ``user`` is the new owner. Raise FleetmarkError if a host does not answer, or
    if a job differs from the recomputed one.
    """
    able = {c.host.name: (c.host, c.facts, c.raw or {}) for c in checked if c.facts}
    if lacking := [name for name in request.jobs if name not in able]:
        raise FleetmarkError(
            f"{archive.id}: {lacking[0]} does not answer or is not in your inventory, so its job cannot be verified; "
            "resume when all hosts answer, or start a new campaign"
        )
    schedule = None
    answered: list[tuple[Host, Facts]] = []
    for group in request.scheduled:
        answered += [able[name][:2] for name in group if name in able]
        schedule = _schedule(request, answered, schedule)
    by_host = {} if schedule is None else schedule.hosts
    texts = {host.name: job_text(request.model_dump(), by_host[host.name], facts) for host, facts in answered}
    jobs = {name: digest(text) for name, text in texts.items()}
    if schedule is None or jobs != request.jobs or schedule.exchanges != tuple(request.exchanges):
        raise FleetmarkError(
            f"{archive.id}: its jobs do not match its suite, your inventory and your hosts, so none of them runs; "
            "start a new campaign"
        )
    for name, text in texts.items():
        archive.save_job(name, text)
    facts_of_hosts = {name: archive.save_facts(name, able[name][1], able[name][2]) for name in texts}
    before = archive.campaign()
    kept: dict[str, Any] = {name: before[name] for name in _KEPT if name in before}
    checked_hosts = {c.host.name: c.host for c in checked}
    changed = {
        "suite": request.suite if request.suite in suite_names() else "",
        "hosts": [host_entry(checked_hosts[listed.name]) for listed in request.hosts if listed.name in checked_hosts],
        "facts": {name: digest(document) for name, document in facts_of_hosts.items()},
        "limit": None,
        "inventory": list(inventory),
        "adopted": user,
    }
    archive.save_campaign({**request.model_dump(mode="json", by_alias=True), **kept, **changed})


def host_entry(host: Host) -> dict[str, Any]:
    """Return the entry of a host in campaign.json."""
    return {
        "name": host.name,
        "address": host.address,
        "peer": host.peer_address,
        "port": host.port,
        "user": host.user,
        "generation": host.labels.get("gen"),
        "labels": dict(host.labels),
    }


def _first(archive: Archive, broken: Mapping[str, str]) -> str:
    name, fault = next(iter(broken.items()))
    return f"{archive.path / 'jobs' / safe_name(name)}.json {fault}"


def _not_the_same(archive: Archive, broken: Mapping[str, str]) -> FleetmarkError:
    return FleetmarkError(
        f"{_first(archive, broken)}, and today's schedule differs from it (a manifest or a file of the campaign "
        f"has changed since); {_REMEDY}"
    )


def facts_of(archive: Archive, request: Request, host: str) -> Facts | None:
    """Return the facts with which the host was scheduled, or None if they are missing.

    Raise FleetmarkError if the file is damaged, or has changed since the campaign started.
    """
    return archive.facts_of(host, accepts=partial(_has_digest, request.facts.get(host)))


def _facts(archive: Archive, request: Request, host: str, broken: Mapping[str, str]) -> Facts:
    try:
        facts = facts_of(archive, request, host)
    except FleetmarkError as error:
        raise FleetmarkError(f"{_first(archive, broken)}, and cannot be recreated: {error}; {_REMEDY}") from error
    if facts is None:
        raise FleetmarkError(f"{_first(archive, broken)}, and the facts of {host} are missing as well; {_REMEDY}")
    return facts


def hosts(request: Request, connection: Literal["ssh", "slurm"]) -> list[Host]:
    """Return all hosts of a recorded campaign."""
    return [replace(host, connection=connection) for host in _hosts(request, [h.name for h in request.hosts])]


def _hosts(request: Request, names: Sequence[str]) -> list[Host]:
    """Return the named hosts with the attributes that a schedule needs."""
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
    """Schedule late hosts after the existing steps: their own cases, and their pairs with all other hosts.

    ``on_record`` has the existing jobs. campaign.json is replaced last: if the controller is killed before that, the
    new jobs do not match it and are recreated.
    """
    before = [name for group in request.scheduled for name in group]
    able = [(host, _facts(archive, request, host.name, {})) for host in _hosts(request, before)]
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
    doc = archive.own_campaign()
    if doc is None:
        raise FleetmarkError(f"{archive.path / 'campaign.json'}: it changed in the meantime; start a new campaign")
    by_name = {host.name: facts for host, facts in able} | {host.name: facts for host, facts, _ in new}
    texts = {name: job_text(doc, job, by_name[name]) for name, job in schedule.hosts.items()}
    saved = {host.name: archive.save_facts(host.name, facts, raw) for host, facts, raw in new}
    for name, text in texts.items():
        if request.jobs.get(name) != digest(text):
            archive.save_job(name, text)
    peers = {host.name: {"address": host.address, "peer": host.peer_address} for host, _, _ in new}
    doc = doc | {
        "planned": [*request.scheduled, [host.name for host, _, _ in new]],
        "jobs": {name: digest(text) for name, text in texts.items()},
        "facts": request.facts | {name: digest(document) for name, document in saved.items()},
        "exchanges": [asdict(e) for e in schedule.exchanges],
        "hosts": [{**h, **peers.get(h["name"], {})} for h in doc["hosts"]],
    }
    archive.save_campaign(doc)
    return request_of(archive), schedule


def _schedule_of(job: Mapping[str, Any]) -> HostSchedule:
    """Return a host's schedule, read from its job."""
    return HostSchedule(
        host=job["host"],
        steps=[Step.from_json(step) for step in job["steps"]],
        deploy=[Deployment(**d) for d in job["deploy"]],
        skipped=dict(job["skipped"]),
        refused=[Refusal(**no) for no in job.get("refused", ())],
    )
