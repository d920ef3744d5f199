"""Prepare a campaign: collect host facts, and schedule the suite on the hosts that answer. A dry run ends here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from fleetmark.base.text import count
from fleetmark.campaign import slurm
from fleetmark.campaign.options import Options
from fleetmark.campaign.schedule import Settings, make_schedule, probes, pythons, refuse_nothing
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, load_inventory
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

    ``stay``: keep the connections open for a job. ``leave_late``: return without waiting for a few slow hosts, which
    join the campaign when they answer.
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


def schedule(
    checked: Sequence[Checked], suite: Suite, options: Options, name: str, seed: int, console: Console
) -> Schedule:
    """Schedule the suite on the hosts that answered, as the campaign ``name``.

    Raise FleetmarkError if ``make_schedule`` or the limits of --at-once refuse it, or if nothing is selected.
    """
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
