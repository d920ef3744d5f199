"""Prepare a campaign: collect host facts, and schedule the suite on the hosts that answer. A dry run ends here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Sequence
from dataclasses import replace

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count, folded
from fleetmark.campaign import slurm
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.campaign.schedule import Settings, make_schedule, probes, pythons, refuse_nothing
from fleetmark.hosts.connect import connect
from fleetmark.hosts.guard import foreign_ports, why_in_use
from fleetmark.hosts.inventory import IGNORED_PORTS, Host, load_inventory
from fleetmark.hosts.keys import unknown_keys
from fleetmark.hosts.preflight import Checked, check_hosts
from fleetmark.record.steps import Schedule
from fleetmark.workloads import Suite


def load_hosts(options: Options) -> list[Host]:
    """Return the hosts that the options select from the inventory."""
    hosts = load_inventory(list(options.inventory), options.limit)
    return [replace(h, become=True) for h in hosts] if options.become else hosts


def check(
    hosts: Sequence[Host],
    settings: Settings,
    images: Sequence[str],
    options: Options,
    console: Console,
    lent: slurm.Lent | None = None,
    stay: bool = True,
    leave_late: bool = False,
) -> list[Checked]:
    """Collect the facts of all hosts. The caller closes the connections with ``hang_up``.

    If ``stay`` is True, the connections stay open for a job. If ``leave_late`` is True, the function does not wait for
    a few slow hosts, which join the campaign when they answer.
    """
    with console.status(f"collecting the facts of {count(len(hosts), 'host')}"):
        checked = check_hosts(
            hosts,
            probes(settings),
            pythons=pythons(settings),
            containers=images,
            work_dir=options.work_dir,
            timeout_s=options.connect_timeout_s,
            connected=lent.connected if lent else connect,
            stay=stay,
            leave_late=leave_late,
        )
    if late := [c for c in checked if c.late]:
        names = ", ".join(c.host.name for c in late[:10]) + (f" and {len(late) - 10} more" if len(late) > 10 else "")
        console.print(f"{names}: {late[0].reason}; the other hosts start now, and late hosts join when they answer")
    for line in unknown_keys([c.unknown_key for c in checked if c.unknown_key]):
        console.print(line)
    return checked


def _endpoints(suite: Suite, settings: Settings) -> set[str]:
    """Return the URLs among the settings of a suite: the services that the user wants to measure."""
    values = [v for choice in suite.chosen().values() for v in choice.set.values()]
    values += [v for chosen in settings.values() for v in chosen.values()]
    return {v for v in values if isinstance(v, str) and v.startswith(("http://", "https://"))}


def refuse_busy(checked: Sequence[Checked], urls: Collection[str], console: Console) -> None:
    """Raise FleetmarkError if hosts are in use, after printing the causes. ``urls``: the endpoints to measure.

    A host with a local connection is never refused, because the user of the command works on it.
    """
    refused, warned = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for c in checked:
        if c.facts and (reason := why_in_use(c.host, c.facts, c.users, urls)):
            (warned if c.host.connection == "local" else refused)[reason].append(c.host.name)
    for text, names in [*warned.items(), *refused.items()]:
        console.print(f"{', '.join(name for name, _ in folded(names))}: {text}", soft_wrap=True)
    if refused:
        has_services = any(
            c.facts and c.host.connection != "local" and foreign_ports(c.host, c.facts, urls) for c in checked
        )
        ignore = f"; if services may stay, list their ports as {IGNORED_PORTS} in the inventory" if has_services else ""
        raise FleetmarkError(
            f"hosts in use: {sum(map(len, refused.values()))}; nothing was deployed on any host; add --include-busy to "
            f"measure anyway, or exclude hosts with --limit{ignore}"
        )


def leave_out_busy(
    checked: Sequence[Checked], joining: Container[str] | None, request: Request, options: Options
) -> list[Checked]:
    """Return ``checked`` without the facts of hosts that join a campaign but are in use.

    ``joining`` has the names of the joining hosts; None means all hosts. The other hosts are not checked, because they
    may run this campaign's own jobs.
    """
    if not options.guard:
        return list(checked)
    urls = _endpoints(request.suite_as_read, request.settings)
    return [_left_out(c, urls) if joining is None or c.host.name in joining else c for c in checked]


def _left_out(checked: Checked, urls: Collection[str]) -> Checked:
    host, facts = checked.host, checked.facts
    if not facts or host.connection == "local" or not (reason := why_in_use(host, facts, checked.users, urls)):
        return checked
    return replace(checked, facts=None, raw=None, reason=f"{reason}; add --include-busy to measure it anyway")


def schedule(
    checked: Sequence[Checked], suite: Suite, options: Options, name: str, seed: int, console: Console
) -> Schedule:
    """Schedule the suite on the hosts that answered, as the campaign ``name``.

    Raise FleetmarkError if hosts are in use, if ``make_schedule`` or the limits of --at-once refuse it, or if nothing
    is selected.
    """
    if options.guard and not options.slurm:
        refuse_busy(checked, _endpoints(suite, options.settings or {}), console)
    answered = [(c.host, c.facts) for c in checked if c.facts]
    with console.status(f"scheduling {count(len(answered), 'host')}"):
        scheduled = make_schedule(
            answered, suite, options.settings or {}, campaign=name, seed=seed, repeats=options.rounds
        )
        refuse_nothing(suite, scheduled)
        options.turns.refuse_together(scheduled.exchanges)
    return scheduled


def hang_up(checked: Sequence[Checked]) -> None:
    """Close the connections that ``check`` left open."""
    for c in checked:
        c.close()
