"""Collect the recorded measurements, facts and outcomes of the machines in a comparison.

The result has the form of a campaign in which each side is a generation, so that all campaign reports can show it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from fleetmark import __version__
from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.files import decode_json
from fleetmark.base.inside import read_inside
from fleetmark.base.text import message
from fleetmark.record import references as reference
from fleetmark.record import telemetry
from fleetmark.record.archive import Archive
from fleetmark.record.compare import Answer
from fleetmark.record.pinned import REFERENCES
from fleetmark.record.results import OUTCOME_COLUMNS, CampaignInfo, HostInfo, Results
from fleetmark.record.select import Machine
from fleetmark.record.values import Values
from fleetmark.record.values.engine import one_of
from fleetmark.record.view import load_results, read_values

_LEAST_RUNS = 12  # minimum number of runs per campaign whose telemetry is read


def gather(root: Path, answer: Answer, command: Sequence[str], created: str) -> tuple[Results, tuple[Results, ...]]:
    """Return the results of the machines in ``answer``: over all campaigns, and for each campaign.

    ``command`` and ``created`` (ISO 8601, UTC) belong to the comparison. A pinned reference contributes no machines,
    because their campaigns may no longer exist. Raise FleetmarkError if a campaign is damaged.
    """
    names = _names(answer)
    machines_by_campaign: dict[str, dict[str, dict[str, Machine]]] = {}  # campaign, side, host
    for side, machines in answer.machines.items():
        for m in machines:
            machines_by_campaign.setdefault(m.campaign, {}).setdefault(side, {})[m.host] = m
    runs = max(_LEAST_RUNS, telemetry.MOST_RUNS // max(1, len(machines_by_campaign)))
    parts: list[Results] = []
    for campaign, sides in sorted(machines_by_campaign.items()):
        archive, chosen = Archive(root / campaign), {h: m for hosts in sides.values() for h, m in hosts.items()}
        try:
            results = (
                _imported(archive, campaign, list(chosen.values()))
                if (archive.path / "import.json").exists()
                else load_results(archive, {h: m.facts for h, m in chosen.items()}, runs)
            )
        except FleetmarkError as error:
            if campaign == max(machines_by_campaign) and not parts:
                raise
            leave_out(f"{campaign} in the sources of the compared figures", error)
            continue
        called = [
            _restricted(results, side, hosts, {h: names[side, campaign, h] for h in hosts})
            for side, hosts in sides.items()
        ]
        part = _merged(results.campaign, called)
        t = results.telemetry  # each run counts once, even if several sides share it
        parts.append(
            replace(part, telemetry=replace(part.telemetry, read=t.read, available=t.available, damaged=t.damaged))
        )
    info = CampaignInfo(
        id="comparison",
        created=created,
        suite="",
        seed=0,
        command=command,
        fleetmark_version=__version__,
        path=root.resolve(),
        finished=True,
        wall_s=0.0,
        workloads=tuple(dict.fromkeys(w for p in parts for w in p.campaign.workloads)),
    )
    together = _merged(info, parts)
    hosts = {h.name: h for h in together.hosts}  # keep the latest facts of each host
    return replace(together, hosts=tuple(hosts.values())), tuple(parts)


def hosts(answer: Answer) -> tuple[HostInfo, ...]:
    """Return the machines of ``answer`` with labels and facts, named as in ``gather``.

    A machine in several campaigns appears once, as the latest campaign describes it.
    """
    names = _names(answer)
    latest: dict[str, HostInfo] = {}
    for side, machines in answer.machines.items():
        for m in sorted(machines, key=lambda m: m.campaign):
            name = names[side, m.campaign, m.host]
            latest[name] = HostInfo(name=name, generation=side, labels=m.labels, facts=m.facts())
    return tuple(latest.values())


def measurements(root: Path, answer: Answer, workloads: Collection[str]) -> pd.DataFrame:
    """Return the measurements of ``workloads`` on the machines of ``answer``, named as in ``gather``.

    Skip a damaged campaign with a warning.
    """
    names = _names(answer)
    names_by_campaign: dict[str, dict[str, dict[str, str]]] = {}  # campaign, side, host
    for side, machines in answer.machines.items():
        for m in machines:
            names_by_campaign.setdefault(m.campaign, {}).setdefault(side, {})[m.host] = names[side, m.campaign, m.host]
    parts = []
    for campaign, sides in sorted(names_by_campaign.items()):
        try:
            values = read_values(Archive(root / campaign))
        except FleetmarkError as error:
            leave_out(f"{campaign} in the sources of the compared figures", error)
            continue
        parts += [values.under_names(called) for called in sides.values()]
    return Values.together(parts).select(one_of("workload", sorted(workloads)))


def _merged(info: CampaignInfo, parts: Sequence[Results]) -> Results:
    """Merge the results of several sides or campaigns."""
    return Results(
        info,
        tuple(h for p in parts for h in p.hosts),
        pd.concat([p.outcomes for p in parts], ignore_index=True),
        Values.together([p.values for p in parts]),
        telemetry.together([p.telemetry for p in parts]),
    )


def pinned(root: Path, name: str) -> Results:
    """Return a pinned reference as a campaign without hosts, to show the source of the baseline."""
    saved = reference.load(root, name)
    file = REFERENCES.path(root, saved.name, saved.version)
    info = CampaignInfo(
        id=saved.side.title,
        created=saved.created,
        suite="",
        seed=0,
        command=("fleetmark", "reference", "save", saved.name, "--from", saved.selector),
        fleetmark_version=__version__,
        path=file.resolve(),
        finished=True,
        wall_s=0.0,
        notes=(
            message(
                "The baseline is pinned: it is the mean of the {n} hosts that {what} selected.",
                n=saved.hosts,
                what=saved.selector,
            ),
        ),
        hashes={file.name: hashlib.sha256(file.read_bytes()).hexdigest()},
        pinned=True,
    )
    return Results(info, (), _no_outcomes(), Values(schema.frame()))


def _no_outcomes() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=object) for name in OUTCOME_COLUMNS})


def _names(answer: Answer) -> dict[tuple[str, str, str], str]:
    """Return a name for each (side, campaign, host) that is unique to its side.

    A host that belongs to two sides, such as before and after, gets two names.
    """
    sides: dict[str, set[str]] = {}
    for side, machines in answer.machines.items():
        for m in machines:
            sides.setdefault(answer.names[m.campaign, m.host], set()).add(side)
    return {
        (side, m.campaign, m.host): f"{name} ({side})" if len(sides[name]) > 1 else name
        for side, machines in answer.machines.items()
        for m in machines
        for name in [answer.names[m.campaign, m.host]]
    }


def _imported(archive: Archive, campaign: str, machines: Sequence[Machine]) -> Results:
    """Return an imported table as the results of a campaign."""
    file = archive.path / "import.json"
    try:
        document = decode_json(read_inside(file, archive.path))
        document = {name: document[name] for name in ("created", "kind", "source", "fleetmark", "notes", "sha256")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FleetmarkError(f"{file}: damaged ({error!r}); delete {file.parent} and import again") from error
    values = read_values(archive)
    info = CampaignInfo(
        id=campaign,
        created=document["created"],
        suite="",
        seed=0,
        command=("fleetmark", "import", document["kind"], document["source"]),
        fleetmark_version=document["fleetmark"],
        path=archive.path.resolve(),
        finished=True,
        wall_s=0.0,
        workloads=tuple(sorted(values.distinct("workload")["workload"])),
        notes=tuple(document["notes"]),
        hashes={document["source"]: document["sha256"]},
    )
    reason = message("imported figures come without facts")
    hosts = tuple(HostInfo(name=m.host, labels=m.labels, reason=reason) for m in machines)
    return Results(info, hosts, _no_outcomes(), values)


def _restricted(results: Results, side: str, machines: Mapping[str, Machine], names: Mapping[str, str]) -> Results:
    """Return ``results`` for only the hosts in ``names``, renamed and assigned to ``side``.

    The subjects of pairs use the new names. Labels come from ``machines``.
    """
    hosts = tuple(
        replace(h, name=names[h.name], generation=side, labels=machines[h.name].labels)
        for h in results.hosts
        if h.name in names
    )
    t = results.telemetry
    meanwhile = replace(
        t,
        samples=_of(t.samples, names),
        extremes=_of(t.extremes, names),
    )
    return Results(results.campaign, hosts, _of(results.outcomes, names), results.values.under_names(names), meanwhile)


def _of(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    kept = frame[frame["host"].isin(list(names))]
    return kept.assign(host=kept["host"].map(names))
