"""Implement ``fleetmark tune``: suggest settings, and try one on a host in a campaign inside the one that measured the
host.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from rich.console import Console

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed.authorship import request_to_run
from fleetmark.planner.diagnosis.trial import sides
from fleetmark.planner.diagnosis.tuning.rule import Rule, Subject
from fleetmark.planner.diagnosis.tuning.rules import RULES, rule_named
from fleetmark.planner.diagnosis.tuning.setting import Setting
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import trials
from fleetmark.record.diagnosis.subjects import subjects
from fleetmark.record.diagnosis.tuning import tune
from fleetmark.record.steps import Trial
from fleetmark.reports.diagnosis import trial
from fleetmark.reports.diagnosis.tuning import document
from fleetmark.verbs import documents
from fleetmark.verbs.confirm import Where, options_of, with_suite
from fleetmark.verbs.documents import Documents


@dataclass(kw_only=True, frozen=True, slots=True)
class TrialQuestion:
    """A trial that the user requests: the setting of ``rule`` on ``host``.

    ``value``: a value to use instead of the rule's. ``device``: only this device. ``cases``: the cases to measure.
    ``blocks``: the number of pairs of runs, without and with the setting.
    """

    host: str
    rule: str
    value: str | None
    device: str | None
    cases: tuple[str, ...]
    blocks: int
    connection: Where


def rules(form: str, console: Console, files: Documents) -> None:
    """Print every rule and whether it can be tried."""
    documents.show(trial.rules(RULES), form, console, files)


def advice(archive: Archive, form: str, console: Console, files: Documents) -> None:
    """Print the rules' suggestions for all hosts of a campaign."""
    documents.show(document(tune(archive)), form, console, files)


def of_host(archive: Archive, host: str, form: str, console: Console, files: Documents) -> None:
    """Print the rules' suggestions for one host, and which of them can be tried there."""
    subject = _subject(archive, host)
    tried = trials.tried(archive).get(host, {})
    rows = [
        trial.Possible(r, r.evidence(subject), r.setting(subject) if r.setting else None, tried.get(r.name))
        for r in RULES
    ]
    documents.show(trial.possible(host, rows), form, console, files)


def preview(archive: Archive, question: TrialQuestion, form: str, console: Console, files: Documents) -> None:
    """Print the settings and measurements of a trial, without changing settings or contacting hosts."""
    rule = rule_named(question.rule)
    subject = _subject(archive, question.host)
    setting = _setting(rule, subject, question)
    suite = trials.suite(archive, question.host, rule, question.cases, 2 * question.blocks)
    setup = trial.Preview(
        host=question.host,
        rule=rule,
        evidence=rule.evidence(subject),
        setting=setting,
        workloads=suite["workloads"],
        blocks=question.blocks,
    )
    documents.show(trial.preview(setup), form, console, files)


def attempt(archive: Archive, question: TrialQuestion, form: str, console: Console, files: Documents) -> bool:
    """Run the trial, or resume an interrupted one, and print the effect of the setting.

    Return whether the trial measured something and restored all settings. Raise KeyboardInterrupt if the user
    interrupts the trial.
    """
    archive.pin()  # so that the checked campaign.json is also the one whose settings run
    rule = rule_named(question.rule)
    setting = _setting(rule, _subject(archive, question.host), question)
    begun = trials.unfinished(archive, question.host, rule.name, setting.as_json())
    if begun is not None:
        interrupted = campaign.resume(begun, _options(archive, question, (), console), console)
    else:
        begun, interrupted = campaign.run(_new(archive, question, rule, setting, console), console)
    if interrupted:
        raise KeyboardInterrupt
    outcome = trials.of_trial(begun)
    documents.show(trial.document(outcome), form, console, files)
    return bool(outcome.changes) and outcome.finished and not outcome.left


def _new(archive: Archive, question: TrialQuestion, rule: Rule, setting: Setting, console: Console) -> Options:
    """Return the options of the campaign for a new trial."""
    suite = trials.suite(archive, question.host, rule, question.cases, 2 * question.blocks)
    seed = secrets.randbelow(2**31)
    hosts = trials.hosts_of(suite, archive.host_names())
    options = _options(archive, question, hosts, console)
    if options.slurm is not None:
        raise FleetmarkError(
            f"{archive.id}: its hosts belong to Slurm and lack root; give an inventory with {question.host}: "
            f"-i {question.host},"
        )
    trial_setting = Trial(question.host, rule.name, setting.as_json(), sides(question.blocks, seed))
    return replace(with_suite(options, archive, "trial", suite), seed=seed, trial=trial_setting)


def _options(archive: Archive, question: TrialQuestion, hosts: tuple[str, ...], console: Console) -> Options:
    request, _ = request_to_run(archive, question.connection.inventory, console)
    options = options_of(archive, trials.FOLDER, request, question.connection, hosts)
    return replace(options, slurm=None) if question.connection.inventory else options


def _subject(archive: Archive, host: str) -> Subject:
    names = archive.host_names()
    if host not in names:
        raise FleetmarkError(
            f"{archive.id}: no host {host!r}{suggest(host, names)}; its hosts are {', '.join(names[:20])}"
        )
    facts = archive.facts()
    if host not in facts:
        raise FleetmarkError(f"{archive.id}: no facts of {host} are stored; measure the host again")
    changes = {rule: t.changes for rule, t in trials.tried(archive).get(host, {}).items()}
    return subjects(archive, facts, {host: changes})[host]


def _setting(rule: Rule, subject: Subject, question: TrialQuestion) -> Setting:
    """Return the setting that ``rule`` suggests for ``subject``, with the user's value and device.

    Raise FleetmarkError if it cannot be set and restored at run time.
    """
    if rule.setting is None:
        possible = ", ".join(r.name for r in RULES if r.setting)
        raise FleetmarkError(f"{rule.name} cannot be tried: it changes no setting at run time; use one of {possible}")
    setting = rule.setting(subject)
    if setting is None:
        raise FleetmarkError(
            f"{rule.name} cannot be tried on {question.host}: the facts of this host show no setting to change"
        )
    if question.value is not None:
        setting = setting.with_value(question.value)
    if question.device is not None:
        setting = setting.for_device(question.device)
    if any(not item.value for item in setting.items):
        raise FleetmarkError(f"{rule.name}: the right value for {question.host} is unknown; give it with --to")
    return setting
