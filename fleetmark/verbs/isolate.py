"""Implement ``fleetmark diagnose --isolate``: find the host, link or border that slows a multi-host case, with few
runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed.authorship import request_to_run
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.campaign.sized import Family
from fleetmark.planner.diagnosis.isolation import groups, partners
from fleetmark.planner.diagnosis.isolation.partners import LEAST, SLOW, Pair, Suspicion
from fleetmark.record.archive import Archive, utc
from fleetmark.record.diagnosis import gangs, isolations
from fleetmark.record.diagnosis.isolations import Isolated, Question
from fleetmark.reports.diagnosis.isolation import document
from fleetmark.verbs.confirm import Where, options_of, with_suite
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.documents import show as write_and_print
from fleetmark.workloads import case_of, entry_of, load, plain_case


def show(
    archive: Archive,
    question: Question,
    connection: Where,
    form: str,
    console: Console,
    documents: Documents,
    command: str,
    least: float = SLOW,
) -> bool:
    """Find the hosts or links that slow a case, print them as ``form``, and write the documents.

    Runs of earlier calls are used again, and an unfinished campaign is resumed. ``least``: the smallest share of loss
    that counts. Return whether no fault was found. Raise KeyboardInterrupt if the user interrupts a campaign.
    """
    archive.pin()  # so that the checked campaign.json is also the one whose settings run
    together = gangs.groups(archive).get((question.workload, question.case))
    runs: _Runs
    if together:
        runs = of_groups = _GroupRuns(archive, question, connection, console, max(map(len, together.values())))
        members = tuple(dict.fromkeys(m for members in together.values() for m in members))
        suspicion = _of_groups(of_groups, members, least)
    else:
        runs = of_pairs = _PairRuns(archive, question, connection, console)
        suspicion = _of_pairs(of_pairs, least)
    result = Isolated(archive.id, question, suspicion, tuple(runs.campaigns), tuple(runs.ran))
    report = document(result, archive.path.resolve(), documents.date or utc(), command)
    write_and_print(report, form, console, documents)
    return not (suspicion.faults or suspicion.blind or suspicion.unclear)


def least_loss(limits: Mapping[str, float]) -> float:
    """Return the smallest loss that counts, from the shares of ``--least``; SLOW if there are none.

    Raise FleetmarkError if a share is given for a class, or is below LEAST.
    """
    if other := next((name for name in limits if name), None):
        raise FleetmarkError(f"--least {other}=... with --isolate: give one share without a class, such as 5%")
    least = limits.get("", SLOW)
    if least < LEAST:
        raise FleetmarkError(f"--least {100 * least:.3g}% with --isolate: a few runs show no loss below {LEAST:.0%}")
    return least


class _Runs:
    """Run hosts alone and together, each time in a new campaign, whose name is added to ``campaigns``."""

    def __init__(self, archive: Archive, question: Question, connection: Where, console: Console) -> None:
        self.archive, self.question, self.connection, self.console = archive, question, connection, console
        self.campaigns: list[str] = []
        self.ran: list[tuple[frozenset[str], ...]] = []  # the groups of hosts in each campaign

    @cached_property
    def request(self) -> Request:
        """Return the request that started the campaign; it is loaded only when hosts are to run something."""
        return request_to_run(self.archive, self.connection.inventory, self.console)[0]

    def _measured(self, suite: Mapping[str, Any], name: str, saying: str, nth: int = -1) -> Archive:
        """Return the campaign of a suite: the ``nth`` of an earlier call, or a new one announced with ``saying``."""
        (choice,) = suite["workloads"].values()
        (groups,) = choice["hosts"].values()
        begun = isolations.before(self.archive, suite, nth)
        interrupted = False
        if begun is None:
            hosts = tuple(dict.fromkeys(host for group in groups for host in group))
            self.console.print(f"measuring again {saying}: {count(len(hosts), 'host')}", soft_wrap=True)
            options = with_suite(self._options(hosts), self.archive, name, suite)
            archive, interrupted = campaign.run(options, self.console)
        else:
            archive, finished = begun
            if not finished:
                interrupted = campaign.resume(archive, self._options(()), self.console)
        if interrupted:
            raise KeyboardInterrupt
        self.campaigns.append(str(Path(isolations.FOLDER) / archive.id))
        self.ran.append(tuple(frozenset(group) for group in groups))
        return archive

    def _options(self, hosts: tuple[str, ...]) -> Options:
        return options_of(self.archive, isolations.FOLDER, self.request, self.connection, hosts)


class _PairRuns(_Runs):
    """Run the measurements that isolate a fault in a case between two hosts."""

    def alone(self, hosts: Sequence[str]) -> Mapping[str, float]:
        """Return the rate of each host over its own loopback."""
        suite = isolations.suite(self.archive, self.question, [(h,) for h in hosts])
        return isolations.alone(self._measured(suite, "alone", "by themselves"), self.question)

    def together(self, pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        """Return the rate of each pair, measured in both directions."""
        suite = isolations.suite(self.archive, self.question, [tuple(sorted(p)) for p in pairs])
        return isolations.rates(self._measured(suite, "pairs", "in pairs"), self.question)


class _GroupRuns(_Runs):
    """Run the measurements that isolate a fault in a case that a group of hosts runs together."""

    def __init__(self, archive: Archive, question: Question, connection: Where, console: Console, size: int) -> None:
        super().__init__(archive, question, connection, console)
        facts = archive.facts()
        lead = next(iter(gangs.groups(archive)[question.workload, question.case].values()))[0]
        if lead not in facts:
            raise FleetmarkError(f"{archive.id}: facts/{lead}.json is missing, so the case cannot be run again")
        self.entry = entry_of(question.workload, question.case)
        settings = (archive.campaign().get("settings") or {}).get(self.entry, {})
        self.family = Family(load(question.workload), settings, facts[lead], plain_case(question.case), size)
        self.repeats = gangs.repeats(archive, question.workload, question.case)
        self.times: Counter[tuple[str, ...]] = Counter()

    def alone(self, hosts: Sequence[str]) -> Mapping[str, float]:
        """Return the rate of each host alone, from the campaign if measured there, else from a new run.

        The result is empty if the workload has no case for a single host.
        """
        sized = self.family.among(1)
        if sized is None:
            return {}
        workload, metric = self.question.workload, self.question.metric
        case = case_of(self.entry, sized.case)
        if measured := gangs.alone(self.archive, workload, case, metric):
            return measured
        suite = isolations.suite(
            self.archive, self.question, [(h,) for h in hosts], sized.case, sized.settings, self.repeats
        )
        return gangs.alone(self._measured(suite, "alone", "by themselves"), workload, case, metric)

    def together(self, group: tuple[str, ...]) -> Sequence[float]:
        """Run the group again and return a rate per repeat. Raise FleetmarkError if the case cannot run this way."""
        sized = self.family.among(len(group))
        if sized is None:
            raise FleetmarkError(
                f"{self.question.workload} {self.question.case}: there is no case for {count(len(group), 'host')}"
            )
        suite = isolations.suite(self.archive, self.question, [group], sized.case, sized.settings, self.repeats)
        archive = self._measured(suite, "group", "together", self.times[group])
        self.times[group] += 1
        rates = gangs.rates(archive, self.question.workload, case_of(self.entry, sized.case), self.question.metric)
        return rates.get(frozenset(group), [gangs.FAILED])


def _of_pairs(runs: _PairRuns, least: float) -> Suspicion:
    archive, question = runs.archive, runs.question
    return partners.isolate(
        isolations.rates(archive, question),
        runs.alone,
        runs.together,
        deficit=least,
        noise=isolations.noise(archive, question),
        labels=isolations.labels(archive, question.labels),
    )


def _of_groups(runs: _GroupRuns, members: Sequence[str], least: float) -> Suspicion:
    archive, question = runs.archive, runs.question
    return groups.isolate(
        gangs.rates(archive, question.workload, question.case, question.metric),
        members,
        runs.alone,
        runs.together,
        deficit=least,
        labels=isolations.labels(archive, question.labels),
    )
