"""A campaign's archive as the results that planner and reports work on."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd

import workloads
from fleetmark.archive import MEASUREMENT_SCHEMA, Archive
from fleetmark.results import OUTCOME_COLUMNS, CampaignInfo, HostInfo, Results
from planner.scores import Rule, scores
from planner.stability import FOREIGN_CORES

SHOWN = 6  # unstable cases named one by one
_KINDS = {"str": "object", "int": "int64", "float": "float64", "bool": "bool"}


def load_results(archive: Archive) -> Results:
    """Everything a campaign holds, finished or not. Raises FleetmarkError where a file of it is damaged."""
    asked = archive.campaign()
    journal = list(archive.journal())
    measurements = _with_scores(read_measurements(archive))
    outcomes = _outcomes(journal)
    notes = _disturbances(outcomes) + _adapted(journal, asked.get("until"))
    info = _info(archive, asked, journal, measurements, notes)
    return Results(info, _hosts(archive, asked, journal), outcomes, measurements)


def _disturbances(outcomes: pd.DataFrame) -> list[str]:
    """What else was busy on the hosts while they measured, in one sentence; empty where nothing was."""
    disturbed = outcomes[outcomes["foreign_cores"] > FOREIGN_CORES]
    if disturbed.empty:
        return []
    worst = disturbed.sort_values("foreign_cores").iloc[-1]
    return [
        f"Something else was busy during {len(disturbed)} of {len(outcomes)} runs (more than {FOREIGN_CORES:g} cores; "
        f"at worst {worst['foreign_cores']:.1f}, {worst['workload']} {worst['case']} on {worst['host']}): "
        "repeat on an idle host before trusting small differences."
    ]


def _adapted(journal: list[dict[str, Any]], until: dict[str, Any] | None) -> list[str]:
    """How repeating until the intervals were narrow went: what never settled, and what was rejected."""
    if not until:
        return []
    events: dict[str, list[dict[str, Any]]] = {"enough": [], "unstable": [], "rejected": []}
    for event in journal:
        events.setdefault(event["e"], []).append(event)
    said = [f"Repeated until the interval of each median was within ±{until['ci']:.2g}: {len(events['enough'])} cases."]
    for e in events["unstable"][:SHOWN]:
        width = "no interval" if e["half_width"] is None else f"±{e['half_width']:.1%}"
        said.append(f"Unstable: {e['workload']} {e['case']} on {e['host']}: {width} after {e['repeats']} repeats.")
    if len(events["unstable"]) > SHOWN:
        said.append(f"And {len(events['unstable']) - SHOWN} more unstable cases: see journal.jsonl.")
    if events["rejected"]:
        first = events["rejected"][0]
        said.append(
            f"Rejected {len(events['rejected'])} blocks, kept and not counted; the first: {first['workload']} "
            f"repeat {first['repeat']} on {first['host']}, {first['reason']}."
        )
    return said


def read_measurements(archive: Archive) -> pd.DataFrame:
    """MEASUREMENT_SCHEMA's columns; without rows where nothing was measured yet."""
    file = archive.path / "measurements.parquet"
    if file.exists():
        frame = pd.read_parquet(file)
        return frame if "standing" in frame else frame.assign(standing="")  # written before there was one
    return pd.DataFrame({name: pd.Series(dtype=_KINDS[kind]) for name, kind in MEASUREMENT_SCHEMA.items()})


def _with_scores(measurements: pd.DataFrame) -> pd.DataFrame:
    """The measurements, and behind them the scores that their workloads' manifests define."""
    known = set(workloads.names())
    rules = {
        name: [Rule(title, s.metric, s.mean, s.cases) for title, s in workloads.load(name).scores.items()]
        for name in measurements["workload"].unique()
        if name in known
    }
    made = scores(measurements, {name: found for name, found in rules.items() if found})
    return measurements if made.empty else pd.concat([measurements, made], ignore_index=True)


def _outcomes(journal: list[dict[str, Any]]) -> pd.DataFrame:
    """The last word on every (host, workload, case, repeat, subject)."""
    last = {}
    for event in journal:
        if event["e"] == "outcome":
            last[event["host"], event["workload"], event["case"], event["repeat"], event["subject"]] = event
    frame = pd.DataFrame(list(last.values()), columns=[*OUTCOME_COLUMNS, "subject", "notes"])
    for column in ("wall_s", "foreign_cores"):
        frame[column] = frame[column].astype("float64")
    return frame.fillna({"reason": "", "started": ""})


def _info(
    archive: Archive,
    asked: dict[str, Any],
    journal: list[dict[str, Any]],
    measurements: pd.DataFrame,
    notes: list[str],
) -> CampaignInfo:
    ended = [e for e in journal if e["e"] == "ended"]
    last = journal[-1]["t"] if journal else asked["created"]
    versions = {
        workload: ", ".join(sorted(v for v in group.unique() if v))
        for workload, group in measurements.groupby("workload")["tool_version"]
    }
    return CampaignInfo(
        id=archive.id,
        created=asked["created"],
        suite=asked["suite"],
        seed=asked["seed"],
        command=asked["command"],
        fleetmark_version=asked["versions"]["fleetmark"],
        path=archive.path.resolve(),
        finished=bool(ended) and ended[-1]["owed"] == 0,
        wall_s=(datetime.fromisoformat(last) - datetime.fromisoformat(asked["created"])).total_seconds(),
        workloads=asked["workloads"],
        notes=notes,
        tool_versions={w: v for w, v in versions.items() if v} | asked["versions"],
    )


def _hosts(archive: Archive, asked: dict[str, Any], journal: list[dict[str, Any]]) -> tuple[HostInfo, ...]:
    facts = archive.facts()
    gone = {e["host"]: e["reason"] for e in journal if e["e"] == "unreachable"}
    return tuple(
        HostInfo(
            name=h["name"],
            address=h["address"],
            generation=h["generation"],
            labels=h["labels"],
            facts=facts.get(h["name"]),
            reachable=h["name"] in facts,
            reason=gone.get(h["name"]),
        )
        for h in asked["hosts"]
    )
