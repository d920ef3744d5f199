"""Run a campaign: check the hosts, schedule, archive, launch and follow. Resume an interrupted campaign."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.signature import is_signed, key_problem, sign
from fleetmark.base.text import count
from fleetmark.campaign import slurm
from fleetmark.campaign.adaptive import Adaptive
from fleetmark.campaign.bundle import distribution_of
from fleetmark.campaign.drive import Drive
from fleetmark.campaign.ended import end, refuse_unchained
from fleetmark.campaign.hostrun import Run
from fleetmark.campaign.judged import Judged, write_measurements
from fleetmark.campaign.launch import launch
from fleetmark.campaign.options import Options, author, campaign_document, resolved
from fleetmark.campaign.prepare import check, hang_up, leave_out_busy, load_hosts
from fleetmark.campaign.prepare import schedule as prepare
from fleetmark.campaign.progress import Cell, Progress
from fleetmark.campaign.resolve import is_present
from fleetmark.campaign.resumed import scheduled
from fleetmark.campaign.resumed.authorship import request_to_run
from fleetmark.campaign.resumed.credentials import credentials_again, refuse_without
from fleetmark.campaign.resumed.owed import (
    failed_hosts,
    note_early_outcomes,
    note_joined,
    note_lost,
    owed_steps,
    set_aside_failed,
    set_aside_lost,
    uncleaned,
)
from fleetmark.campaign.resumed.scheduled import Request, digest, job_text, request_of
from fleetmark.campaign.schedule import containers, has_groups, secrets_of, settings_of
from fleetmark.campaign.start import start
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.keys import unknown_keys
from fleetmark.hosts.preflight import Checked
from fleetmark.hosts.reach import Reach
from fleetmark.hosts.slurm.cluster import Request as SlurmRequest
from fleetmark.hosts.slurm.job import Job
from fleetmark.hosts.slurm.reach import SlurmReach
from fleetmark.record import listing
from fleetmark.record.archive import Archive, safe_name
from fleetmark.record.documents import Scheduled, facts_document
from fleetmark.record.steps import Schedule, Step
from fleetmark.workloads import load_suite, workload_of
from fleetmark.workloads.external import require


def run(options: Options, console: Console) -> tuple[Archive, bool]:
    """Run a new campaign. Return the campaign, and whether the user interrupted it (finished steps are stored).

    Raise FleetmarkError before contacting any host if the options are invalid.
    """
    options.check_turns()
    options.check_bundle()
    options.check_key()
    suite = options.content or load_suite(options.suite)
    settings = options.settings or {}
    credentials = secrets_of(suite, settings)  # raises an error for invalid settings
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{suite.name}-{secrets.token_hex(2)}"
    lent, finished = None, False
    if options.slurm:
        slurm_request = slurm.refuse_impossible(options.slurm, suite, settings, options.rounds)
        folder = slurm.shared_folder(options.shared, options.root, name) / "1"
        lent = slurm.lend(slurm_request, "fleetmark", folder, console, lambda _: None)
    checked: list[Checked] = []
    try:
        hosts = lent.hosts if lent else load_hosts(options)
        options.turns.refuse_unknown([host.labels for host in hosts])
        merged = settings_of(suite, settings)
        leave_late = not lent and not options.trial and not has_groups(merged)
        checked = check(hosts, merged, containers(suite), options, console, lent, leave_late=leave_late)
        able = {c.host.name: c for c in checked if c.facts}
        answered = [(c.host, c.facts) for c in able.values() if c.facts]
        schedule = prepare(checked, suite, options, name, seed, console)
        campaign = campaign_document(options, name, seed, hosts, schedule, suite)
        jobs = {host.name: job_text(campaign, schedule.hosts[host.name], facts) for host, facts in answered}
        facts_of = {host.name: facts_document(facts, able[host.name].raw or {}) for host, facts in answered}
        campaign |= {"planned": [list(jobs)], "jobs": _digests(jobs), "facts": _digests(facts_of)}
        documents = {host: Scheduled(facts_of[host], text) for host, text in jobs.items()}
        archive = Archive.create(options.root, name, campaign, documents, options.within).writable()
        if problem := key_problem():
            console.print(f"this campaign has no permanent signature, so --resume will ask first: {problem}")
        if lent:
            _note_job(archive, lent.job)
        note_early_outcomes(archive, checked, schedule)
        interrupted = _drive(archive, options, console, checked, credentials)
        if any(c.late for c in checked) and not interrupted:
            interrupted = _join_late(archive, options, console, checked, credentials)
        finished = _is_finished(archive)
    finally:
        hang_up(checked)
        if lent:
            lent.end(finished)
    return archive, interrupted


def _join_late(
    archive: Archive, options: Options, console: Console, checked: Sequence[Checked], credentials: Mapping[str, str]
) -> bool:
    """Run on hosts that answered after the others had started: their own cases, and their pairs with the other hosts.

    Return whether the user interrupted it. A host that never answers stays lost until the campaign is resumed.
    """
    request = request_of(archive)
    with console.status("waiting for the facts of late hosts"):
        late = leave_out_busy([c.late.result() for c in checked if c.late], None, request, options)
    for line in unknown_keys([c.unknown_key for c in late if c.unknown_key]):
        console.print(line)
    schedule = Schedule({}, (), request.settings)
    new = [(c.host, c.facts, c.raw or {}) for c in late if c.facts]
    if new:
        jobs = scheduled.jobs(archive, request)
        request, schedule = scheduled.join(archive, request, jobs, request.suite_as_read, new)
        note_joined(archive, request)
    note_early_outcomes(archive, late, schedule)
    if not new:
        return False
    set_aside_lost(archive, console)
    owed = owed_steps(archive, scheduled.jobs(archive, request), request.exchanges)
    names = {host.name for host, _, _ in new}
    pairs = [{e.server, e.client} for e in request.exchanges]
    partners = {name for pair in pairs if pair & names for name in pair} - names
    others = [replace(c, session=None) for c in checked if c.host.name in partners and owed.get(c.host.name)]
    archive.note("resumed", owed={name: len(owed[name]) for name in sorted(names | partners) if owed.get(name)})
    return _drive(archive, options, console, [*(c for c in late if c.facts), *others], credentials)


def resume(archive: Archive, options: Options, console: Console, *, retry_failed: bool = False) -> bool:
    """Resume a campaign: collect finished steps from the hosts, follow running steps, and start the outstanding steps.

    Damaged jobs are recreated, and damaged steps run again. Hosts that were unreachable during scheduling join.
    ``retry_failed``: also repeat steps that failed or were invalid; their files move to ``superseded/``.
    """
    options.check_bundle()
    options.check_key()
    require(archive.id, archive.campaign())
    request, is_own = request_to_run(archive, options.inventory, console)
    if options.parent not in ("", archive.campaign().get("parent")):
        raise FleetmarkError(f"{archive.path}: it was not run for {options.parent}; remove it")
    archive.writable()
    refuse_unchained(archive, options.sign)
    if not is_own:
        request = _adopt(archive, request, options, console)
    suite = "" if Path(request.suite).absolute().is_relative_to(archive.root.absolute()) else request.suite
    credentials = credentials_again(suite, request.settings, options.settings or {})
    options = replace(
        options,
        suite=request.suite,
        inventory=options.inventory or tuple(request.inventory),
        limit=request.limit,
        become=request.become,
        work_dir=request.work_dir,
        until=request.until,
        at_once=options.at_once or tuple(request.at_once),
    )
    options.turns.refuse_together(request.exchanges)
    set_aside_lost(archive, console)
    if retry_failed:
        console.print(f"{count(set_aside_failed(archive), 'failed or invalid step')} will run again")
    jobs = scheduled.jobs(archive, request)
    note_joined(archive, request)
    if request.slurm:
        return _resume_lent(archive, request, request.slurm, options, console, credentials)
    owed, left = owed_steps(archive, jobs, request.exchanges), uncleaned(archive)
    away = {h.name for h in request.hosts} - jobs.keys()
    hosts = load_hosts(options)
    options.turns.refuse_unknown([host.labels for host in hosts])
    images = containers(request.suite_as_read)
    missing = [h for h in hosts if owed.get(h.name) or h.name in away | left]
    checked = check(missing, request.settings, images, options, console)
    checked = leave_out_busy(checked, away, request, options)
    try:
        new = [(c.host, c.facts, c.raw or {}) for c in checked if c.facts and c.host.name in away]
        if new:
            request, schedule = scheduled.join(archive, request, jobs, request.suite_as_read, new)
            note_joined(archive, request)
            jobs = scheduled.jobs(archive, request)
            owed = owed_steps(archive, jobs, request.exchanges)
            checked_names = {c.host.name for c in checked}
            late = [h for h in hosts if owed.get(h.name) and h.name not in checked_names]
            checked += check(late, request.settings, images, options, console)
        else:
            schedule = Schedule({}, (), request.settings)
        note_early_outcomes(archive, [c for c in checked if c.host.name in away], schedule)
        for name in sorted(owed.keys() - {h.name for h in hosts}):
            note_lost(archive, jobs[name], owed[name], "it is no longer in the inventory")
        archive.note("resumed", owed={h: len(ids) for h, ids in owed.items() if ids})
        return _drive(archive, options, console, checked, credentials)
    finally:
        hang_up(checked)


def _adopt(archive: Archive, request: Request, options: Options, console: Console) -> Request:
    """Collect the facts of the hosts in this user's inventory, and sign another user's campaign as this user's own."""
    named = {host.name for host in request.hosts}
    ours = replace(options, limit=None, become=request.become, work_dir=request.work_dir)
    hosts = [host for host in load_hosts(ours) if host.name in named]
    checked = check(hosts, request.settings, containers(request.suite_as_read), ours, console, stay=False)
    hang_up(checked)
    scheduled.adopt(archive, request, checked, resolved(options.inventory), author())
    return request_of(archive)


def _resume_lent(
    archive: Archive,
    request: Request,
    slurm_request: SlurmRequest,
    options: Options,
    console: Console,
    credentials: Mapping[str, str],
) -> bool:
    """Follow a campaign's Slurm job if it still runs. Otherwise, collect its results and run the rest in a new job."""
    hosts = scheduled.hosts(request, connection="slurm")
    job = _last_job(archive, slurm_request.partition)
    owed = owed_steps(archive, scheduled.jobs(archive, request), request.exchanges)
    if not owed:  # the controller may have been killed before it ended the job
        interrupted = _drive(archive, options, console, [], credentials)
        slurm.Lent(job, []).end(_is_finished(archive))
        return interrupted
    job.look()
    if job.is_over:
        console.print(f"Slurm job {job.id} ended ({job.state.word}): collecting the steps that its nodes finished")
        reached = [
            Checked(
                host=host, reach=SlurmReach(host, job), facts=scheduled.facts_of(archive, request, host.name), raw={}
            )
            for host in hosts
            if owed.get(host.name)
        ]
        _drive(archive, options, console, reached, credentials, collect=True)
        job.end()  # the controller may have ordered this earlier and been killed before the job ended
        owed = owed_steps(archive, scheduled.jobs(archive, request), request.exchanges)
        if not owed:
            slurm.remove_shared(job)
            return False
        slurm_request = replace(slurm_request, nodes=len(owed), nodelist=",".join(sorted(owed)), constraint=None)
        folder = job.folder.with_name(str(int(job.folder.name) + 1))
        lent = slurm.lend(slurm_request, "fleetmark", folder, console, lambda job: _note_job(archive, job))
    else:
        console.print(f"Slurm job {job.id} still runs: following it")
        lent = slurm.Lent(job, slurm.wait(job, console))
    checked: list[Checked] = []
    finished = False
    try:
        owing = [h for h in hosts if owed.get(h.name)]
        checked = check(owing, request.settings, containers(request.suite_as_read), options, console, lent)
        archive.note("resumed", owed={h: len(ids) for h, ids in owed.items() if ids})
        interrupted = _drive(archive, options, console, checked, credentials)
        finished = _is_finished(archive)
    finally:
        hang_up(checked)
        lent.end(finished)
    return interrupted


def _note_job(archive: Archive, job: Job) -> None:
    """Record in the journal a campaign's Slurm job, and the folder that the campaign shares with its nodes."""
    archive.note("slurm", **sign({"campaign": archive.id, "job": job.id, "folder": str(job.folder)}))


def _is_noted(archive: Archive, event: Mapping[str, Any]) -> bool:
    """Return whether this user recorded this campaign's Slurm job. Only such a job is cancelled at the end."""
    noted = {name: value for name, value in event.items() if name not in ("t", "e", "chain")}
    return noted.get("campaign") == archive.id and is_signed(noted)


def _last_job(archive: Archive, partition: str | None) -> Job:
    event = next((e for e in reversed(list(archive.journal())) if e["e"] == "slurm" and _is_noted(archive, e)), None)
    if event is None:
        raise FleetmarkError(
            f"{archive.path}: its journal contains no Slurm job, so it cannot be resumed; start a new campaign"
        )
    shared = (archive.own_campaign() or {}).get("shared")
    root = Path(shared) if isinstance(shared, str) else None
    return slurm.job_on_record(event, slurm.shared_folder(root, archive.path.parent, archive.id), partition)


def _digests(documents: Mapping[str, str]) -> dict[str, str]:
    return {host: digest(text) for host, text in documents.items()}


def _is_finished(archive: Archive) -> bool:
    return next((not e["owed"] for e in reversed(list(archive.journal())) if e["e"] == "ended"), False)


def _drive(
    archive: Archive,
    options: Options,
    console: Console,
    checked: Sequence[Checked],
    credentials: Mapping[str, str],
    collect: bool = False,
) -> bool:
    """Launch and follow all outstanding steps, and write the measurements. Return whether the user interrupted the run.

    ``collect``: launch nothing, and only collect the remaining results from the hosts.
    """
    request = request_of(archive)
    on_record = scheduled.jobs(archive, request)
    with Judged(archive) as judged:
        interrupted = _follow(archive, options, console, checked, credentials, request, on_record, judged, collect)
        write_measurements(archive, judged)
        away = [h for h in request.hosts if h.name not in on_record]  # hosts that may still join with more steps
        owed = sum(map(len, owed_steps(archive, on_record, ()).values())) + len(away)
        end(archive, owed, options.sign, console)
        archive.write_failed_hosts(failed_hosts(archive, [h.name for h in request.hosts]))
        listing.note(archive)
        if not owed:
            judged.forget()
    return interrupted


def _follow(
    archive: Archive,
    options: Options,
    console: Console,
    checked: Sequence[Checked],
    credentials: Mapping[str, str],
    request: Request,
    on_record: Mapping[str, Mapping[str, Any]],
    judged: Judged,
    collect: bool,
) -> bool:
    """Run all outstanding steps of the jobs ``on_record``. Return whether the user interrupted the run."""
    owed, left = owed_steps(archive, on_record, request.exchanges), uncleaned(archive)
    runs, variables, jobs = [], {}, {}
    absent: dict[str, str] = {}
    with Progress(console, request.workloads, f"campaign {archive.id}") as progress:
        for c in checked:
            name = c.host.name
            job = on_record.get(name)
            reason = _why_not(c, job)
            if reason or not (c.facts and c.reach and job):
                absent[name] = reason
                note_lost(archive, job or {"steps": ()}, owed.get(name, set()), reason)
                continue
            steps = [Step.from_json(s) for s in job["steps"] if s["id"] in owed.get(name, ())]
            progress.add(name, _cells(steps, job["skipped"]), sum(s.expect_s for s in steps))
            for workload, reason in job["skipped"].items():
                progress.say(name, f"{workload} skipped: {reason}")
            for no in job.get("refused", ()):
                progress.say(name, f"{no['workload']} {no['case']} {no['reason']}")
            if steps or name in left:
                # The path contains the host's name, so a machine with two names is refused as busy.
                folder = f"{c.facts.work_dir}/jobs/{archive.id}/{safe_name(name)}"
                pending = {s.id for s in steps}
                settled = frozenset(s["id"] for s in job["steps"]) - pending
                runs.append(
                    Run(
                        host=name,
                        reach=c.reach,
                        python=c.facts.python,
                        sudo=c.host.become,
                        folder=folder,
                        steps={s.id: s for s in steps},
                        pending=pending,
                        trial="setting" in job,
                        settled=settled,
                        session=c.session,
                        cleaning=not steps,
                    )
                )
                variables[name] = _variables(c.host, c.reach, c.facts, job, steps)
                shared = {"shared": str(c.reach.job.folder.parent)} if isinstance(c.reach, SlurmReach) else {}
                jobs[name] = {**job, **shared, "folder": folder, "steps": [s.as_json() for s in steps]}
        progress.absent(absent)
        refuse_without(credentials, variables, str(archive.path))
        adaptive = None
        if options.until:
            cpus = {c.host.name: c.facts.cpu.threads or 1 for c in checked if c.facts}
            adaptive = Adaptive(options.until, cpus)
        drive = Drive(archive, runs, request.exchanges, progress, options.patience_s, adaptive, judged.outcome)
        drive.replay(archive)
        interrupted = False
        try:
            if collect:
                drive.follow_all()
            else:
                labels = {c.host.name: c.host.labels for c in checked}
                _start_all(drive, options, labels, variables, jobs, credentials)
            drive.run()
        except KeyboardInterrupt:
            console.print("stopping the hosts' jobs; finished steps are kept (press Ctrl-C again to exit immediately)")
            drive.stop()
            interrupted = True
        finally:
            drive.abandoned = True
    return interrupted


def _why_not(checked: Checked, job: Mapping[str, Any] | None) -> str:
    """Return why a host cannot run its job; empty if it can."""
    if not (checked.facts and checked.reach and job):
        return f"unreachable: {checked.reason}"
    if job["work"] != checked.facts.work_dir:  # the job's commands contain paths below it
        return f"its work directory is {checked.facts.work_dir}, but its job expects {job['work']}"
    return ""


def _start_all(
    drive: Drive,
    options: Options,
    labels: Mapping[str, Mapping[str, str]],
    variables: Mapping[str, Mapping[str, Any]],
    jobs: Mapping[str, Mapping[str, Any]],
    credentials: Mapping[str, str],
) -> None:
    """Start every host's job over its open connection, or with Ansible after the deployment.

    If hosts take turns, each host starts at its turn.
    """

    def deploy(hosts: Sequence[str]) -> None:
        lacking = {name: jobs[name] for name in hosts}
        drive.launch(
            hosts,
            lambda hear: launch(
                options.inventory, variables, lacking, credentials, hear, lambda: drive.abandoned, options.bundle
            ),
        )

    lacking = [name for name in jobs if variables[name]["fm_deploy"]]
    starters = {
        name: partial(drive.start, name, partial(start, run, jobs[name]))
        for name, run in drive.runs.items()
        if name not in lacking
    }
    starters |= {name: partial(drive.follow, name) for name, run in drive.runs.items() if run.cleaning}
    if options.turns.bounded:
        every = starters | {name: partial(deploy, [name]) for name in lacking}
        drive.admit({name: every[name] for name in drive.runs}, options.turns.with_labels(labels))
        return
    if lacking:
        deploy(lacking)
    for starter in starters.values():
        starter()


def _cells(steps: Sequence[Step], skipped: Mapping[str, str]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for step in steps:
        if not step.serves:
            cells.setdefault(step.workload, Cell(0)).total += 1
    return {workload_of(entry): Cell(0, skipped=reason) for entry, reason in skipped.items()} | cells


def _variables(host: Host, reach: Reach, facts: Facts, job: Mapping[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """Return the playbook variables of a host, which are added to those of the user's inventory."""
    workloads = {s.workload for s in steps}
    variables = {
        "fm_deploy": [d for d in job["deploy"] if d["workload"] in workloads and not is_present(d["provides"], facts)],
        "fm_work": facts.work_dir,
        "fm_os_family": facts.os_family or "",
        "fm_distribution": distribution_of(facts),
        "fm_python": facts.python,
        "fm_become": host.become and not reach.is_root,  # root needs no sudo, but Ansible would still require it
    }
    if isinstance(reach, SlurmReach):
        variables |= {"ansible_connection": "fleetmark_node", "fm_node": reach.job.as_json()}
    if host.connection == "local":
        variables["ansible_connection"] = "local"
    return variables
