"""The plan of a campaign on record: its jobs, planned again where one is damaged, and joined by hosts that come later.

A plan follows from campaign.json and the facts alone, so it can be made again; campaign.json holds the SHA-256 of every
job, which says whether it came out the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.schedule import make_plan
from fleetmark.hosts.inventory import Host
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.steps import Deployment, Exchange, HostPlan, Plan, Refusal, Step
from workloads import Suite


class _Host(BaseModel):
    name: str
    address: str | None = None
    peer: str | None = None
    labels: dict[str, str] = {}


class Request(BaseModel):
    """``campaign.json``, as far as a campaign goes on by it.

    ``planned``: the hosts in the order in which they were planned, those that joined later group by group; ``jobs``:
    the SHA-256 of each one's job; ``suite_as_read``: what the suite's file held. An earlier version kept none of them.
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
    planned: list[list[str]] | None = None
    jobs: dict[str, str] = {}
    suite_as_read: Suite | None = None

    @property
    def rounds(self) -> int | None:
        """How often each case is planned, where the command line says so."""
        return self.until.most if self.until else self.repeats


def request_of(archive: Archive) -> Request:
    """What was asked for. Raises FleetmarkError where campaign.json lacks what it takes to go on."""
    try:
        return Request.model_validate(archive.campaign())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise FleetmarkError(
            f"{archive.path / 'campaign.json'}: damaged ({where}: {first['msg'][:160]}), so the campaign cannot go on; "
            "restore it; what was measured is read by `fleetmark report`"
        ) from error


def job_text(campaign: Mapping[str, Any], plan: HostPlan, facts: Facts) -> str:
    """One host's job as it travels there, and as ``jobs/HOST.json`` keeps it."""
    return json.dumps(
        {
            "schema": 1,
            "campaign": campaign["id"],
            "owner": campaign["owner"],
            "created": campaign["created"],
            "host": plan.host,
            "work": facts.work_dir,
            "interval_s": 1.0,
            "steps": [asdict(s) for s in plan.steps],
            "deploy": [asdict(d) for d in plan.deploy],
            "skipped": plan.skipped,
            "refused": [asdict(no) for no in plan.refused],
        }
    )


def digest(job: str | bytes) -> str:
    return hashlib.sha256(job.encode() if isinstance(job, str) else job).hexdigest()


def jobs(archive: Archive, request: Request) -> dict[str, dict[str, Any]]:
    """The job of every host that was planned; one that is missing or damaged is planned again, and kept.

    Raises FleetmarkError where it does not come out as it was: a step may not run under another's name.
    """
    loaded: dict[str, dict[str, Any]] = {}
    broken: dict[str, str] = {}
    names = [h.name for h in request.hosts]
    for name in names:
        if request.planned is not None and name not in request.jobs:
            continue  # a job that lies there all the same is of a join that was cut short
        try:
            raw, job = archive.job_text(name), archive.job(name)
            if raw and job and request.jobs.get(name) in (None, digest(raw)):  # an earlier version kept no digests
                loaded[name] = job
            elif raw is not None:
                broken[name] = "is damaged"
            elif request.planned is not None or archive.facts_of(name):
                broken[name] = "is missing"
        except FleetmarkError:
            broken[name] = "is damaged"
    if broken:
        plan = _planned_again(archive, request, broken)
        for name in broken:
            facts = archive.facts_of(name)
            assert facts  # it was planned by them
            text = job_text(request.model_dump(), plan.hosts[name], facts)
            if digest(text) != request.jobs[name]:
                raise _not_the_same(archive, broken)
            archive.save_job(name, text)
            loaded[name] = json.loads(text)
    return {name: loaded[name] for name in names if name in loaded}


def _planned_again(archive: Archive, request: Request, broken: Mapping[str, str]) -> Plan:
    """The plan of all hosts, by what is on record alone."""
    if request.planned is None or request.suite_as_read is None:
        raise FleetmarkError(
            f"{_first(archive, broken)}, and an earlier version kept too little to plan it again; {_REMEDY}"
        )
    plan = None
    able: list[tuple[Host, Facts]] = []
    for group in request.planned:
        able += [(host, _facts(archive, host.name, broken)) for host in _hosts(request, group)]
        try:
            plan = make_plan(
                able,
                request.suite_as_read,
                request.settings,
                campaign=request.id,
                seed=request.seed,
                repeats=request.rounds,
                onto=plan,
            )
        except FleetmarkError as error:
            raise FleetmarkError(
                f"{_first(archive, broken)}, and cannot be planned again: {error}; {_REMEDY}"
            ) from error
    if plan is None or not broken.keys() <= plan.hosts.keys():
        raise _not_the_same(archive, broken)
    return plan


_REMEDY = "restore the file, or begin a new campaign; what was measured is read by `fleetmark report`"


def _first(archive: Archive, broken: Mapping[str, str]) -> str:
    name, how = next(iter(broken.items()))
    return f"{archive.path / 'jobs' / safe_name(name)}.json {how}"


def _not_the_same(archive: Archive, broken: Mapping[str, str]) -> FleetmarkError:
    return FleetmarkError(
        f"{_first(archive, broken)}, and Fleetmark would plan it otherwise today (a manifest or a file of the campaign "
        f"has changed since); {_REMEDY}"
    )


def _facts(archive: Archive, host: str, broken: Mapping[str, str]) -> Facts:
    try:
        facts = archive.facts_of(host)
    except FleetmarkError as error:
        raise FleetmarkError(f"{_first(archive, broken)}, and cannot be planned again: {error}; {_REMEDY}") from error
    if facts is None:
        raise FleetmarkError(f"{_first(archive, broken)}, and the facts of {host} are missing as well; {_REMEDY}")
    return facts


def _hosts(request: Request, names: Sequence[str]) -> list[Host]:
    """Hosts as far as a plan knows them."""
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
) -> tuple[Request, Plan]:
    """Plan hosts that were away: what each runs alone, and their pairs with all others, behind the steps that exist.

    ``on_record``: the jobs there are. The campaign knows of them when its campaign.json is replaced, which is the last
    thing done: a controller that dies before leaves jobs that do not match it, which are then planned again.
    """
    before = [name for group in request.planned or [list(on_record)] for name in group]
    able = [(host, _facts(archive, host.name, {})) for host in _hosts(request, before)]
    plans = {name: _plan_of(job) for name, job in on_record.items()}
    plan = make_plan(
        [*able, *((host, facts) for host, facts, _ in new)],
        suite,
        request.settings,
        campaign=request.id,
        seed=request.seed,
        repeats=request.rounds,
        onto=Plan(plans, tuple(request.exchanges), request.settings),
    )
    doc = archive.campaign()
    facts_of = {host.name: facts for host, facts in able} | {host.name: facts for host, facts, _ in new}
    texts = {name: job_text(doc, of, facts_of[name]) for name, of in plan.hosts.items()}
    for host, facts, raw in new:
        archive.save_facts(host.name, facts, raw)
    for name, text in texts.items():
        if request.jobs.get(name) != digest(text):
            archive.save_job(name, text)
    peers = {host.name: {"address": host.address, "peer": host.peer_address} for host, _, _ in new}
    doc |= {
        "planned": [*(request.planned or [before]), [host.name for host, _, _ in new]],
        "jobs": {name: digest(text) for name, text in texts.items()},
        "exchanges": [asdict(e) for e in plan.exchanges],
        "hosts": [{**h, **peers.get(h["name"], {})} for h in doc["hosts"]],
    }
    archive.save_campaign(doc)
    return request_of(archive), plan


def _plan_of(job: Mapping[str, Any]) -> HostPlan:
    """What a host does, of its job."""
    return HostPlan(
        job["host"],
        [Step.from_json(step) for step in job["steps"]],
        [Deployment(**d) for d in job["deploy"]],
        dict(job["skipped"]),
        [Refusal(**no) for no in job.get("refused", ())],
    )
