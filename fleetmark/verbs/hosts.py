"""Implement ``fleetmark hosts``: show which hosts answer, their hardware, and the cases of a suite that each would
skip.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console

from fleetmark.base.text import count
from fleetmark.campaign.resolve import is_present
from fleetmark.campaign.schedule import Settings, containers, make_schedule, probes, pythons, secrets_of, settings_of
from fleetmark.hosts.inventory import load_inventory
from fleetmark.hosts.mirrors import silent_mirrors
from fleetmark.hosts.preflight import Checked, check_hosts
from fleetmark.hosts.slurm import cluster
from fleetmark.hosts.slurm.cluster import Node
from fleetmark.hosts.sources import unfetchable
from fleetmark.record.steps import Schedule
from fleetmark.reports.hosts import survey as report
from fleetmark.reports.hosts.survey import Entry
from fleetmark.reports.lists import nodes as node_list
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents
from fleetmark.workloads import load_suite, workload_of


def survey(
    inventory: Sequence[str],
    limit: str | None,
    suite_name: str,
    settings: Settings,
    become: bool,
    work_dir: str,
    timeout_s: float | None,
    console: Console,
) -> tuple[list[Entry], dict[str, str]]:
    """Collect facts from every host, and schedule the suite on the hosts that answer, without running it.

    Return the hosts, and the sources that this machine cannot fetch, each with the reason.
    """
    suite = load_suite(suite_name)
    merged = settings_of(suite, settings)  # report invalid settings before contacting any host
    hosts = load_inventory(list(inventory), limit)
    hosts = [replace(h, become=True) for h in hosts] if become else hosts
    with console.status(f"asking {count(len(hosts), 'host')} what {'it is' if len(hosts) == 1 else 'they are'}"):
        checked = check_hosts(
            hosts,
            probes(merged),
            pythons=pythons(merged),
            containers=containers(suite),
            work_dir=work_dir,
            timeout_s=timeout_s,
        )
    try:
        answering = [(c.host, c.facts) for c in checked if c.facts]
        schedule = make_schedule(answering, suite, settings, campaign="survey", seed=0, repeats=None)
        entries = _with_mirrors([_entry(c, schedule) for c in checked], checked, schedule)
    finally:
        for c in checked:
            c.close()
    deployed = {name for entry in entries for name in entry.deploy}
    urls = [
        value
        for workload, values in merged.items()
        if workload_of(workload) in deployed
        for value in values.values()
        if isinstance(value, str) and value.startswith(("http://", "https://"))
    ]
    with console.status(f"checking {count(len(urls), 'source')}") if urls else contextlib.nullcontext():
        return entries, unfetchable(urls, secrets_of(suite, settings))


def _with_mirrors(entries: Sequence[Entry], checked: Sequence[Checked], schedule: Schedule) -> list[Entry]:
    """Return the entries. Add a reason if a host would install packages but cannot reach a mirror."""
    installing = {}
    for entry, c in zip(entries, checked, strict=True):
        family = (c.facts.os_family if c.facts else None) or ""
        names = {d.workload for d in schedule.hosts[c.host.name].deploy if d.packages.get(family)} if family else set()
        if c.reach and names & set(entry.deploy):
            installing[c.host.name] = (c.reach, family)
    silent = silent_mirrors(installing)
    return [replace(entry, mirror=silent.get(entry.host.name, "")) for entry in entries]


def _entry(checked: Checked, schedule: Schedule) -> Entry:
    host, facts = checked.host, checked.facts
    if not facts:
        return Entry(host=host, facts=None, reason=checked.reason, skipped={}, unknown_key=checked.unknown_key)
    planned = schedule.hosts[host.name]
    return Entry(
        host=host,
        facts=facts,
        reason=checked.reason,
        skipped=dict(planned.skipped),
        refused=tuple(f"{r.workload} {r.case} {r.reason}" for r in planned.refused),
        deploy=tuple(d.workload for d in planned.deploy if not is_present(d.provides, facts)),
        unknown_key=checked.unknown_key,
    )


def show(entries: Sequence[Entry], lacking: Mapping[str, str], form: str, console: Console, files: Documents) -> None:
    """Print the survey, and write the requested ``files``. ``lacking``: sources that cannot be fetched, and why."""
    documents.show(report.document(entries, lacking), form, console, files)


def nodes(partition: str | None) -> list[Node]:
    """Return the nodes of a Slurm partition (default: Slurm's default partition), without running anything."""
    return cluster.nodes(partition)


def show_nodes(listed: Sequence[Node], form: str, console: Console, files: Documents) -> None:
    """Print the nodes, and write the requested ``files``."""
    documents.show(node_list.document(listed), form, console, files)
