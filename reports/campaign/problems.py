"""What did not pass, gathered by cause, worst first, each with the command to type next."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import message
from fleetmark.record.archive import safe_name
from fleetmark.record.results import HostInfo, Results
from fleetmark.reports.kit import format as fmt

WORST_FIRST = (Status.FAILED, Status.LOST, Status.INVALID, Status.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``runs`` runs of one status and reason; ``advice`` explains ``command``."""

    status: Status
    reason: str
    workloads: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: int
    advice: str
    command: str


def problems(results: Results) -> list[Problem]:
    """Every run that did not pass is in exactly one of these, and so is a host never reached, even without runs."""
    outcomes = results.outcomes[results.outcomes["status"] != Status.PASSED]
    # Reasons that differ only in a measured number (1.42 or 1.47 foreign cores) are one cause.
    alike = outcomes["reason"].astype(object).map(lambda r: re.sub(r"\d+\.\d+", "#", _reason(r)))
    causes = []
    for (status, _), rows in outcomes.groupby([outcomes["status"], alike], sort=False):
        hosts = tuple(sorted(rows["host"].unique(), key=fmt.natural))
        workloads = tuple(sorted(rows["workload"].unique()))
        kind = Status(str(status))
        advice, command = _next(kind, rows.iloc[0], results)
        causes.append(
            Problem(
                status=kind,
                reason=_reason(rows.iloc[0]["reason"]),
                workloads=workloads,
                hosts=hosts,
                runs=len(rows),
                advice=advice,
                command=command,
            )
        )
    named = {host for problem in causes for host in problem.hosts}
    for host in results.hosts:
        if not host.reachable and host.name not in named:
            reason = message("unreachable: {why}", why=_reason(host.reason))
            advice, command = _answers(host)
            causes.append(
                Problem(
                    status=Status.LOST,
                    reason=reason,
                    workloads=(),
                    hosts=(host.name,),
                    runs=0,
                    advice=advice,
                    command=command,
                )
            )
    return sorted(causes, key=lambda p: (WORST_FIRST.index(p.status), -p.runs, p.reason))


def absences(results: Results) -> dict[tuple[str, str, str], Status]:
    """The worst status of each (host, workload, case) of which nothing passed: why a figure is missing."""
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


def resume_command(results: Results) -> str:
    """What to type to go on with this campaign."""
    return f"fleetmark run --resume {shlex.quote(str(results.campaign.path))}"


def _reason(value: object) -> str:
    return value if isinstance(value, str) and value else message("no reason recorded")


def _next(status: Status, row: pd.Series, results: Results) -> tuple[str, str]:
    host, workload, case = str(row["host"]), str(row["workload"]), str(row["case"])
    if status is Status.LOST:
        for unreached in results.hosts:
            if unreached.name == host and not unreached.reachable:
                return _answers(unreached)
    if status is Status.LOST:
        return message("fetch what was finished and run the rest"), resume_command(results)
    if status is Status.SKIPPED or not row["started"]:  # nothing ran, so nothing was printed
        return message("supply what is needed, then run again"), fmt.typed(results.campaign.command)
    folder = results.campaign.path.joinpath("raw", *map(safe_name, (host, workload, case)))
    name = "stderr" if status is Status.FAILED else "stdout"
    return message("read what the tool printed"), f"less {shlex.quote(str(folder))}/{int(row['repeat'])}*/{name}"


def _answers(host: HostInfo) -> tuple[str, str]:
    return message("try it and mend it, then finish the campaign"), shlex.join(
        ["ssh", *(host.ssh or [host.name]), "true"]
    )
