"""Group the runs that did not pass by cause, worst first, each cause with the next command."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import count, message
from fleetmark.hosts.causes import Cause, by_cause, cause_of
from fleetmark.record.archive import FAILED_HOSTS, safe_name
from fleetmark.record.results import HostInfo, Results
from fleetmark.reports.kit import format as fmt

UNREACHABLE = "unreachable: "  # prefix of the reason for a host that did not answer
WORST_FIRST = (Status.FAILED, Status.LOST, Status.INVALID, Status.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``runs`` runs with the same status and reason; ``advice`` explains ``command``."""

    status: Status
    reason: str
    workloads: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: int
    advice: str
    command: str


def problems(results: Results) -> list[Problem]:
    """Return causes such that each run that did not pass belongs to exactly one of them.

    Hosts that were never reached also belong to a cause, even if they have no runs.
    """
    outcomes = results.outcomes[results.outcomes["status"] != Status.PASSED]
    alike = outcomes["reason"].astype(object).map(_alike)
    causes = []
    for (status, _), rows in outcomes.groupby([outcomes["status"], alike], sort=False):
        hosts = tuple(sorted(rows["host"].unique(), key=fmt.natural))
        workloads = tuple(sorted(rows["workload"].unique()))
        kind = Status(str(status))
        advice, command = _next(kind, rows.iloc[0], results)
        reasons = [_reason(reason) for reason in rows["reason"].unique()]
        causes.append(
            Problem(
                status=kind,
                reason=_common(reasons),
                workloads=workloads,
                hosts=hosts,
                runs=len(rows),
                advice=advice,
                command=command,
            )
        )
    named = {host for problem in causes for host in problem.hosts}
    silent = {host.name: host for host in results.hosts if not host.reachable and host.name not in named}
    for cause, names, reason in by_cause((name, _reason(host.reason)) for name, host in silent.items()):
        causes.append(
            Problem(
                status=Status.LOST,
                reason=message("unreachable: {why}", why=reason),
                workloads=(),
                hosts=tuple(names),
                runs=0,
                advice=cause.advice,
                command=_mend(cause, silent[names[0]]),
            )
        )
    return sorted(causes, key=lambda p: (WORST_FIRST.index(p.status), -p.runs, p.reason))


def absences(results: Results) -> dict[tuple[str, str, str], Status]:
    """Return the worst status of each (host, workload, case) without a passed run, to explain missing figures."""
    keys = ["host", "workload", "case"]
    outcomes = results.outcomes
    passed = outcomes["status"] == Status.PASSED
    if passed.all():
        return {}
    case = outcomes.groupby(keys, sort=False, observed=True).ngroup()
    lacking = outcomes.loc[~case.isin(case[passed].unique()), [*keys, "status"]].astype(object)
    rank = lacking["status"].map({s: i for i, s in enumerate((*WORST_FIRST, Status.PASSED))})
    worst = rank.groupby([lacking[k] for k in keys]).min().reset_index()
    rows = zip(*(worst[k] for k in (*keys, "status")), strict=True)
    return {(host, workload, case): WORST_FIRST[int(rank)] for host, workload, case, rank in rows}


def go_on(results: Results) -> tuple[str, str] | None:
    """Return how to finish this campaign or repeat its failed steps; None if there is nothing to do."""
    outcomes = results.outcomes
    failed = bool((outcomes["status"].isin([Status.FAILED, Status.INVALID]) & outcomes["started"].astype(bool)).any())
    command = _resume(results)
    if not failed:
        return None if results.campaign.finished else (message("The campaign is not finished. Resume it"), command)
    if results.campaign.finished:
        return message("Run the failed, lost and invalid runs again"), f"{command} --retry-failed"
    return message("Finish the campaign, and run the failed, lost and invalid runs again"), f"{command} --retry-failed"


def _resume(results: Results) -> str:
    return f"fleetmark run --resume {shlex.quote(str(results.campaign.path))}"


def run_on_failed(results: Results) -> tuple[str, str] | None:
    """Return the command that measures only the hosts that failed; None if no host failed or all of them did."""
    campaign = results.campaign
    bad = [str(s) for s in (Status.FAILED, Status.INVALID, Status.LOST)]
    failed = set(results.outcomes["host"][results.outcomes["status"].isin(bad)])
    file = campaign.path / FAILED_HOSTS
    if "-i" not in campaign.command or not 0 < len(failed) < len(results.hosts) or not file.is_file():
        return None
    words = list(campaign.command)
    if "--limit" in words:
        del words[words.index("--limit") : words.index("--limit") + 2]
    command = fmt.typed([*words, "--limit", f"@{file}"])
    return message("Or start a new campaign on {hosts} only", hosts=count(len(failed), "host")), command


def _alike(reason: object) -> str:
    """Return a key shared by reasons that differ only in a host's address or in a number (1.42 foreign cores)."""
    text = _reason(reason)
    if text.startswith(UNREACHABLE):
        return UNREACHABLE + cause_of(text).key(text)
    return re.sub(r"\d+\.\d+", "#", text)


def _common(reasons: list[str]) -> str:
    """Return the common reason of runs that share a cause."""
    if len(reasons) > 1 and reasons[0].startswith(UNREACHABLE):
        return message("unreachable: {why}", why=cause_of(reasons[0]).title)
    return reasons[0]


def _reason(value: object) -> str:
    return value if isinstance(value, str) and value else message("no reason recorded")


def _next(status: Status, row: pd.Series, results: Results) -> tuple[str, str]:
    host, workload, case = str(row["host"]), str(row["workload"]), str(row["case"])
    if status is Status.LOST:
        unreached = next((h for h in results.hosts if h.name == host and not h.reachable), None)
        if unreached is not None:
            cause = cause_of(_reason(unreached.reason))
            return cause.advice, _mend(cause, unreached)
        return message("collect the finished steps and run the others"), (go_on(results) or ("", _resume(results)))[1]
    if status is Status.SKIPPED or not row["started"]:  # no command ran, so there is no output
        return message("provide the missing input, then run again"), fmt.typed(results.campaign.command)
    folder = results.campaign.path.joinpath("raw", *map(safe_name, (host, workload, case)))
    name = "stderr" if status is Status.FAILED else "stdout"
    return message("see the tool's output"), f"less {shlex.quote(str(folder))}/{int(row['repeat'])}*/{name}"


def _mend(cause: Cause, host: HostInfo) -> str:
    return cause.command(host.ssh or [host.name])
