"""Everything on record behind a comparison: the measurements, facts and outcomes of its machines, side by side.

In what comes of it a side of the comparison is a generation, so whatever shows a campaign shows a comparison too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fleetmark import __version__
from fleetmark.archive import Archive
from fleetmark.comparing import Compared
from fleetmark.results import OUTCOME_COLUMNS, CampaignInfo, HostInfo, Results
from fleetmark.selection import Machine
from fleetmark.view import load_results, read_measurements


def gather(root: Path, compared: Compared, command: Sequence[str], created: str) -> tuple[Results, tuple[Results, ...]]:
    """What was measured on the machines of ``compared``: over all campaigns, and campaign by campaign.

    ``command`` and ``created`` (ISO 8601, UTC) are those of the comparison itself.
    """
    titles = {(m.campaign, m.host): side for side, machines in compared.machines.items() for m in machines}
    names = _names(compared)
    parts = []
    for campaign in sorted({c for c, _ in titles}):
        found = (
            _imported(root, campaign, compared)
            if _is_import(root, campaign)
            else load_results(Archive(root / campaign))
        )
        mine = {host: names[campaign, host] for c, host in titles if c == campaign}
        parts.append(_restricted(found, mine, {h: titles[campaign, h] for h in mine}))
    about = CampaignInfo(
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
    hosts = {h.name: h for p in parts for h in p.hosts}  # the latest facts of a host speak for it
    whole = Results(
        about,
        tuple(hosts.values()),
        pd.concat([p.outcomes for p in parts], ignore_index=True),
        pd.concat([p.measurements for p in parts], ignore_index=True),
    )
    return whole, tuple(parts)


def _names(compared: Compared) -> dict[tuple[str, str], str]:
    """(campaign, host) to a name that stands on one side only: the same host before and after is two here."""
    sides: dict[str, set[str]] = {}
    for side, machines in compared.machines.items():
        for m in machines:
            sides.setdefault(compared.names[m.campaign, m.host], set()).add(side)
    return {
        (m.campaign, m.host): f"{name} ({side})" if len(sides[name]) > 1 else name
        for side, machines in compared.machines.items()
        for m in machines
        for name in [compared.names[m.campaign, m.host]]
    }


def _is_import(root: Path, campaign: str) -> bool:
    return (root / campaign / "import.json").exists()


def _imported(root: Path, campaign: str, compared: Compared) -> Results:
    """An imported table as a campaign that nobody ran."""
    archive = Archive(root / campaign)
    about = json.loads((archive.path / "import.json").read_text())
    machines: dict[str, Machine] = {
        m.host: m for ms in compared.machines.values() for m in ms if m.campaign == campaign
    }
    measurements = read_measurements(archive)
    info = CampaignInfo(
        id=campaign,
        created=about["created"],
        suite=about["kind"],
        seed=0,
        command=("fleetmark", "import", about["kind"], about["source"]),
        fleetmark_version=about["fleetmark"],
        path=archive.path.resolve(),
        finished=True,
        wall_s=0.0,
        workloads=tuple(sorted(measurements["workload"].unique())),
        notes=tuple(about["notes"]),
        hashes={about["source"]: about["sha256"]},
    )
    hosts = tuple(
        HostInfo(name, labels=m.labels, reason="imported figures come without facts") for name, m in machines.items()
    )
    outcomes = pd.DataFrame({name: pd.Series(dtype=object) for name in OUTCOME_COLUMNS})
    return Results(info, hosts, outcomes, measurements)


def _restricted(found: Results, names: Mapping[str, str], sides: Mapping[str, str]) -> Results:
    """``found`` for the hosts in ``names`` alone, called as it says; a pair's subject follows."""
    m = found.measurements[found.measurements["host"].isin(list(names))]
    host = m["host"].map(names)
    subject = m["subject"]
    if any(old != new for old, new in names.items()):
        pairs = {s: ">".join(names.get(end, end) for end in s.split(">")) for s in subject.unique() if ">" in s}
        subject = subject.map(lambda s: pairs.get(s, s))
    o = found.outcomes[found.outcomes["host"].isin(list(names))]
    hosts = tuple(
        HostInfo(names[h.name], sides[h.name], h.labels, h.facts, h.reachable, h.reason, h.address)
        for h in found.hosts
        if h.name in names
    )
    return Results(found.campaign, hosts, o.assign(host=o["host"].map(names)), m.assign(host=host, subject=subject))
