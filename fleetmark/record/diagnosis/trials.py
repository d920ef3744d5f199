"""Plan trials of settings, and estimate the effect of each setting from pairs of runs."""

from __future__ import annotations

import fnmatch
import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.planner.diagnosis.trial import TrialChange, change
from fleetmark.planner.diagnosis.tuning.rule import Rule
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns_inside, container_of, repeated, summarise
from fleetmark.record.diagnosis import read
from fleetmark.record.diagnosis.table import title
from fleetmark.record.figures.pairs import peer
from fleetmark.record.steps import Trial
from fleetmark.record.values import PASSED
from fleetmark.record.values.engine import literal
from fleetmark.record.view import read_values
from fleetmark.workloads import entry_of, plain_case

_TRIAL = TypeAdapter(Trial)
FOLDER = "trials"  # subfolder of a campaign for the trials on its hosts
_KEY = ["host", "workload", "case", "metric", "subject", "labels"]


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a trial.

    ``items``: the settings, one per line; ``before``, ``after``: the values on the host without and with the setting;
    ``changes``: the benchmarks, with the largest change first; ``campaign``: the path of the trial below the campaign
    whose host it tries. ``refused``: why no setting could be applied; ``left``: values that could not be restored;
    ``cleared``: values that an interrupted trial left and that were restored; ``lost``: the number of runs that did not
    pass.
    """

    host: str
    rule: str
    items: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    _: KW_ONLY
    changes: tuple[TrialChange, ...]
    campaign: str
    refused: str = ""
    left: str = ""
    cleared: str = ""
    lost: int = 0
    finished: bool = True


def suite(archive: Archive, host: str, rule: Rule, patterns: Sequence[str], repeats: int) -> dict[str, Any]:
    """Return the suite that measures the effect of the rule's setting on ``host``, in the form of a suite file.

    It has the measured cases with headlines in the rule's classes, or those that match ``patterns`` (WORKLOAD/CASE). A
    case between hosts runs with one partner. Raise FleetmarkError if the campaign measured none of them on the host.
    """
    measured, names = read(archive)
    known = set(names)
    metrics = measured.keys.to_dict("records")
    of_key: dict[int, list[str]] = {}
    for key, record in measured.rows[["key", "record"]].itertuples(index=False, name=None):
        of_key.setdefault(int(key), []).append(names[int(record)])
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, hosts in of_key.items():
        row = metrics[key]
        workload, case, subject = str(row["workload"]), str(row["case"]).split("/")[0], str(row["subject"])
        group = next((g for one in hosts if host in (g := _group(one, subject, known))), None)
        if group is None or row["members"] or row["better"] == Better.NONE.value:
            continue
        if patterns and not any(fnmatch.fnmatchcase(f"{workload}/{case}", p) for p in patterns):
            continue
        if rule.classes and not patterns and row["class"] not in rule.classes:
            continue
        groups.setdefault(entry_of(workload, case), {}).setdefault(plain_case(case), group)
    if not groups:
        scope = (
            f"of {', '.join(patterns)}" if patterns else f"in {', '.join(rule.classes)}" if rule.classes else "at all"
        )
        raise FleetmarkError(
            f"{archive.id}: it measured no headline {scope} on {host}, so nothing would show whether {rule.name} "
            "helps; run such a suite first, or name its cases by --case"
        )
    settings = archive.campaign().get("settings") or {}
    return {
        "description": f"Trial of {rule.name} on {host} of {archive.id}.",
        "repeats": repeats,
        **repeated(archive),
        "workloads": {
            entry: {
                "set": dict(settings.get(entry, {})),
                **container_of(archive, entry),
                "cases": [glob.escape(case) for case in cases],
                "repeats": repeats,
                "hosts": {case: [list(group)] for case, group in cases.items()},
            }
            for entry, cases in groups.items()
        },
    }


def _group(host: str, subject: str, known: set[str]) -> tuple[str, ...]:
    """Return the hosts of a measurement."""
    other = peer(host, subject, known) if ">" in subject else None
    return (host,) if other is None else (host, other)


def hosts_of(wanted: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts that take part in a suite."""
    members = {h for c in wanted["workloads"].values() for groups in c["hosts"].values() for g in groups for h in g}
    return tuple(name for name in names if name in members)


def trials(archive: Archive) -> list[Archive]:
    """Return the trials of a campaign's hosts, oldest first."""
    return campaigns_inside(archive, FOLDER)


def unfinished(archive: Archive, host: str, rule: str, items: Sequence[Mapping[str, Any]]) -> Archive | None:
    """Return the last trial of a rule's setting on a host if it is unfinished."""
    wanted = host, rule, json.loads(json.dumps(items))
    matches = [t for t in trials(archive) if (a := _about(t)) and (a.host, a.rule, list(a.items)) == wanted]
    return matches[-1] if matches and not summarise(matches[-1]).finished else None


def _about(archive: Archive) -> Trial | None:
    """Return the trial that a campaign describes; None if its description cannot be read."""
    try:
        return _TRIAL.validate_python(archive.campaign().get("trial"))
    except (FleetmarkError, ValidationError):
        return None


def tried(archive: Archive) -> dict[str, dict[str, Tried]]:
    """Return the newest trial with results by host and rule."""
    result: dict[str, dict[str, Tried]] = {}
    for trial in trials(archive):
        if _about(trial) is not None and (outcome := of_trial(trial)).changes:
            result.setdefault(outcome.host, {})[outcome.rule] = outcome
    return result


def of_trial(archive: Archive) -> Tried:
    """Return the result of a trial. A run counts if the right setting was read back after it."""
    trial = _about(archive)
    if trial is None:
        raise FleetmarkError(f"{archive.path / 'campaign.json'}: damaged: the tried setting is missing")
    host, sides = trial.host, list(trial.sides)
    values: dict[bool, set[str]] = {False: set(), True: set()}
    refused = ""
    wrong: set[str] = set()
    for folder, step in archive.steps():
        if step["host"] != host:
            continue
        try:
            result = archive.result(folder)
        except FleetmarkError:
            wrong.add(_run(step))
            continue
        planned = sides[step["repeat"]] if 0 <= step["repeat"] < len(sides) else None
        if result.setting is not None and result.setting.is_new is planned:
            values[result.setting.is_new] |= set(result.setting.values)
            continue
        wrong.add(_run(step))
        if (result.reason or "").startswith("nothing was changed: "):
            refused = (result.reason or "").removeprefix("nothing was changed: ")
    left = cleared = ""
    for event in archive.journal():
        if event["e"] == "left" and event["host"] == host:
            left = str(event["what"])
        elif event["e"] == "cleared" and event["host"] == host:
            left, cleared = "", str(event["what"])
    summary = summarise(archive)
    lost = sum(number for status, number in summary.statuses.items() if status != Status.PASSED.value)
    return Tried(
        host,
        trial.rule,
        tuple(item.get("path") or " ".join(w for w in item["write"] if w != "{}") for item in trial.items),
        tuple(sorted(values[False])),
        tuple(sorted(values[True])),
        changes=tuple(_changes(archive, host, sides, wrong)),
        campaign=str(Path(FOLDER) / archive.id),
        refused=refused,
        left=left,
        cleared=cleared,
        lost=0 if refused else lost,
        finished=summary.finished,
    )


def _run(step: Mapping[str, Any]) -> str:
    return f"{step['workload']}\n{step['case']}\n{step['repeat']}"


def _changes(archive: Archive, host: str, sides: Sequence[bool], wrong: set[str]) -> list[TrialChange]:
    mine = f"(host = {literal(host)} or contains(subject, '>'))"
    rows = read_values(archive).select(f"headline and {PASSED} and better <> '{Better.NONE}' and {mine}")
    changes = []
    for _, runs in rows.groupby(_KEY, sort=False, observed=True):
        first = runs.iloc[0]
        case = str(first["case"]).split("/")[0]
        by_repeat = {
            int(repeat): float(value)
            for repeat, value in zip(runs["repeat"], runs["value"], strict=True)
            if _run({"workload": first["workload"], "case": case, "repeat": repeat}) not in wrong
        }
        benchmark = {name: str(first[name]) for name in (*_KEY, "unit")}
        of_pairs = change(title(benchmark), _pairs(by_repeat, sides), first["better"] == Better.LOWER.value)
        changes += [of_pairs] if of_pairs else []
    return sorted(changes, key=lambda c: -abs(float(np.log(c.ratio.value))))


def _pairs(by_repeat: Mapping[int, float], sides: Sequence[bool]) -> list[tuple[float, float]]:
    """Return the values (without, with) of each complete block of two runs."""
    pairs = []
    for first in range(0, len(sides) - 1, 2):
        if first in by_repeat and first + 1 in by_repeat:
            one, other = by_repeat[first], by_repeat[first + 1]
            pairs.append((other, one) if sides[first] else (one, other))
    return pairs
