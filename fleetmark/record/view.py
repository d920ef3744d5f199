"""Load a campaign's archive as the results that the planner and reports use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from fleetmark import workloads
from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Status
from fleetmark.base.text import count, message
from fleetmark.base.words import word
from fleetmark.planner.scores import Rule, scores
from fleetmark.planner.stability import FOREIGN_CORES
from fleetmark.record import journal, store, telemetry
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import shares_of, spoken
from fleetmark.record.results import CampaignInfo, HostInfo, Results
from fleetmark.record.values import REJECTED, Source, Values, source

SHOWN = 6  # maximum number of unstable cases, and of metrics with rejected values, to list
_NO_FACTS = message("the campaign has neither its facts nor the reason why they are missing")


def load_results(
    archive: Archive,
    facts: Mapping[str, Callable[[], Facts | None]] | None = None,
    telemetry_runs: int = telemetry.MOST_RUNS,
    running: Callable[[], Iterable[Mapping[str, Any]] | None] = lambda: None,
) -> Results:
    """Return the content of a finished or unfinished campaign, of only the hosts in ``facts`` if given.

    ``facts``: a function by host that reads its facts; ``telemetry_runs``: maximum number of runs whose samples are
    read; ``running``: returns the rows so far if the campaign has not ended, or None to take its measurements file.
    Raise FleetmarkError if a file of the campaign is damaged.
    """
    document = _campaign_file(archive)
    outcomes, events, last = journal.read(archive)
    measured = None if journal.has_ended(archive, events) else running()
    sources = _sources(archive, facts) if measured is None else []
    values = with_scores(Values(schema.frame(measured or ()), *sources))
    if facts is not None:
        outcomes = outcomes[outcomes["host"].isin(list(facts))].reset_index(drop=True)
    notes = [
        *_held(document),
        *_lacking(archive, sources),
        *_rejected(values),
        *_disturbances(outcomes),
        *_adapted(events, document.get("until")),
    ]
    meanwhile = telemetry.read(archive, outcomes, values, telemetry_runs)
    if meanwhile.damaged:
        first, damaged_number = meanwhile.damaged[0], len(meanwhile.damaged)
        notes.append(
            message(
                "The telemetry of {runs} cannot be read, first {file}.", runs=count(damaged_number, "run"), file=first
            )
        )
    info = _info(archive, document, events, last or document["created"], values, notes)
    return Results(info, _hosts(archive, document, events, facts), outcomes, values, meanwhile)


_REQUIRED = ("created", "suite", "seed", "command", "versions", "workloads", "hosts")


def _campaign_file(archive: Archive) -> dict[str, Any]:
    """Return campaign.json. Raise FleetmarkError if an entry is missing or has the wrong type."""
    file, document = archive.path / "campaign.json", Archive.open(archive.path).campaign()
    lacking = [name for name in _REQUIRED if name not in document]
    if lacking:
        raise FleetmarkError(f"{file}: lacks {', '.join(lacking)}; restore it, or exclude the campaign")
    try:
        datetime.fromisoformat(document["created"])
        for host in document["hosts"]:
            dict(host["labels"], **{str(host["name"]): host["name"]})
        _ = document["versions"]["fleetmark"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FleetmarkError(f"{file}: damaged ({error!r}); restore it, or exclude the campaign") from error
    return document


def _held(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence about the shares of its hosts to which the campaign was held, if there were any."""
    shares = shares_of(document)
    return (
        [
            message(
                "Limited to shares of each host: {shares}. Without shares, results may be higher.",
                shares=spoken(shares),
            )
        ]
        if shares
        else []
    )


def _disturbances(outcomes: pd.DataFrame) -> list[str]:
    """Return a sentence about other busy processes on the hosts during runs, or nothing if there were none."""
    disturbed = outcomes[outcomes["foreign_cores"] > FOREIGN_CORES]
    if disturbed.empty:
        return []
    worst = disturbed.sort_values("foreign_cores").iloc[-1]
    return [
        message(
            "Other processes disturbed {n} of {of} runs (more than {limit} cores; at most {worst}, during {workload} "
            "{case} on {host}). Re-run on an idle host before relying on small differences.",
            n=len(disturbed),
            of=len(outcomes),
            limit=f"{FOREIGN_CORES:g}",
            worst=f"{worst['foreign_cores']:.1f}",
            workload=worst["workload"],
            case=worst["case"],
            host=worst["host"],
        )
    ]


def _adapted(events: list[dict[str, Any]], until: dict[str, Any] | None) -> list[str]:
    """Describe the adaptive repeats: the target width, the unstable cases, and the rejected repeats."""
    if not until:
        return []
    events_by_kind: dict[str, list[dict[str, Any]]] = {"enough": [], "unstable": [], "rejected": []}
    for event in events:
        events_by_kind.setdefault(event["e"], []).append(event)
    width = f"±{until['ci']:.2g}"
    notes: list[str] = [
        message(
            "Repeated until the interval of each median was within {width}: {cases}.",
            width=width,
            cases=count(len(events_by_kind["enough"]), "case"),
        )
    ]
    for e in events_by_kind["unstable"][:SHOWN]:
        half = e["half_width"]
        notes.append(
            message(
                "Unstable: {workload} {case} on {host}: {width} after {repeats}.",
                workload=e["workload"],
                case=e["case"],
                host=e["host"],
                width=message("no interval") if half is None else f"±{half:.1%}",
                repeats=count(e["repeats"], "repeat"),
            )
        )
    if len(events_by_kind["unstable"]) > SHOWN:
        notes.append(
            message(
                "And {cases}: see journal.jsonl.",
                cases=count(len(events_by_kind["unstable"]) - SHOWN, "more unstable case"),
            )
        )
    if events_by_kind["rejected"]:
        first = events_by_kind["rejected"][0]
        notes.append(
            message(
                "Rejected {blocks}, kept and not counted; the first: {workload} repeat {repeat} on {host}, {reason}.",
                blocks=count(len(events_by_kind["rejected"]), "block"),
                **{name: first[name] for name in ("workload", "repeat", "host", "reason")},
            )
        )
    return notes


_TELLING = ("standing", "class")  # without these columns, a figure may be mistaken for another kind


def read_values(archive: Archive) -> Values:
    """Open the measurements of a campaign or an import without reading them into memory."""
    return Values(schema.frame(), *_sources(archive))


def _sources(archive: Archive, hosts: Collection[str] | None = None) -> list[Source]:
    """Return the measurements file of a campaign, if there is one."""
    file = archive.inside("measurements.parquet")
    names = None if hosts is None else {host: host for host in hosts}
    return [source(file, archive.id, names)] if file.exists() else []


def _lacking(archive: Archive, sources: Sequence[Source]) -> list[str]:
    """Return a note on columns that an earlier version did not save."""
    missing = [name for each in sources for name in each.lacking if name in _TELLING]
    if not missing:
        return []
    return [
        message(
            "An earlier version saved the figures of {campaign} without {columns}; regenerate them with "
            "`fleetmark rebuild`.",
            campaign=archive.id,
            columns=", ".join(missing),
        )
    ]


def _rejected(values: Values) -> list[str]:
    """Return a note on the values of each metric that passed but are not scored."""
    statement = f'select workload, "case", metric, count(*) from every where {REJECTED} group by all order by min(row)'
    with values.opened() as database:
        rows = database.execute(statement).fetchall()
    reason = word("zero or negative")
    notes: list[str] = [
        message(
            "{workload} {case}: {values} of {metric} left out: {why}",
            workload=workload,
            case=case,
            values=count(number, "value"),
            metric=metric,
            why=reason,
        )
        for workload, case, metric, number in rows[:SHOWN]
    ]
    if len(rows) > SHOWN:
        metrics_left_out = count(len(rows) - SHOWN, "more metric")
        notes.append(message("Values of {metrics} left out: {why}.", metrics=metrics_left_out, why=reason))
    return notes


def with_scores(values: Values) -> Values:
    """Return ``values`` followed by the scores that the manifests of their workloads define."""
    known = set(workloads.names())
    rules = {
        name: [
            Rule(title, s.metric, s.mean, s.cases, s.runs, dropped=s.dropped)
            for title, s in workloads.load(name).scores.items()
        ]
        for name in values.distinct("workload")["workload"]
        if name in known
    }
    rules = {name: rules_of_workload for name, rules_of_workload in rules.items() if rules_of_workload}
    if not rules:
        return values
    parts = values.metrics(
        {name: {rule.metric for rule in rules_of_workload} for name, rules_of_workload in rules.items()}, Status.INVALID
    )
    return values.with_rows(pd.concat([scores(part.astype(schema.PANDAS), rules) for part in parts]))


def _info(
    archive: Archive,
    document: dict[str, Any],
    events: list[dict[str, Any]],
    last: str,
    values: Values,
    notes: list[str],
) -> CampaignInfo:
    ended = [e for e in events if e["e"] == "ended"]
    versions = {
        workload: ", ".join(sorted(v for v in rows if v))
        for workload, rows in values.distinct("workload", "tool_version").groupby("workload")["tool_version"]
    }
    return CampaignInfo(
        id=archive.id,
        created=document["created"],
        suite=document["suite"],
        seed=document["seed"],
        command=document["command"],
        fleetmark_version=document["versions"]["fleetmark"],
        path=archive.path.resolve(),
        root=store.name_of(archive.path.resolve().parent),
        finished=bool(ended) and ended[-1]["owed"] == 0,
        wall_s=(_moment(last) - _moment(document["created"])).total_seconds(),
        workloads=document["workloads"],
        notes=notes,
        tool_versions={w: v for w, v in versions.items() if v} | document["versions"],
        hashes=_hashes(archive, document),
    )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _hashes(archive: Archive, document: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the measurements, and of the manifests and programs that ran the campaign."""
    file = archive.path / "measurements.parquet"
    hashes = {}
    if file.exists():
        with file.open("rb") as source:
            hashes = {file.name: hashlib.file_digest(source, "sha256").hexdigest()}
    return hashes | {str(name): str(value) for name, value in (document.get("sha256") or {}).items()}


def _login(host: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ssh arguments for a host: port and user if the inventory has them, and the address."""
    port, user, address = host.get("port"), host.get("user"), host.get("address")
    if not isinstance(address, str) or address.startswith("-"):  # do not let an untrusted archive add ssh options
        return ()
    ported = ("-p", str(port)) if isinstance(port, int) else ()
    return (*ported, *(("-l", user) if isinstance(user, str) else ()), address)


def _hosts(
    archive: Archive,
    document: dict[str, Any],
    events: list[dict[str, Any]],
    facts: Mapping[str, Callable[[], Facts | None]] | None,
) -> tuple[HostInfo, ...]:
    known = (
        archive.facts()
        if facts is None
        else {host: facts_of_host for host, read in facts.items() if (facts_of_host := read())}
    )
    gone = {e["host"]: e.get("reason") for e in events if e["e"] == "unreachable"}
    for host in (host for e in events if e["e"] == "joined" for host in e["hosts"]):
        gone.pop(host, None)
    return tuple(
        HostInfo(
            name=h["name"],
            ssh=_login(h),
            generation=h.get("generation"),
            labels=h["labels"],
            facts=known.get(h["name"]),
            reachable=h["name"] in known,
            reason=gone.get(h["name"]) or (None if h["name"] in known else _NO_FACTS),
        )
        for h in document["hosts"]
        if facts is None or h["name"] in facts
    )
