"""Prepares a campaign: ask hosts what they are, and schedule the suite on those that answer. A dry run ends here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from fleetmark.base.text import count
from fleetmark.campaign import slurm
from fleetmark.campaign.judged import code
from fleetmark.campaign.options import Beside, Options
from fleetmark.campaign.schedule import Settings, make_schedule, probes, pythons, refuse_nothing
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.keys import unknown_keys
from fleetmark.hosts.preflight import Checked, check_hosts
from fleetmark.record.steps import Schedule
from workloads import Suite


def load_hosts(options: Options) -> list[Host]:
    """Return the hosts of the inventory that the options choose."""
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
    """Ask hosts for their facts. Close the connections with ``hang_up``; ``stay``: a job follows on them.

    ``leave_late``: return without a few late hosts, which join when they answer.
    """
    ahead = threading.Thread(target=_ahead, args=(options.beside,), daemon=True)
    ahead.start()
    with console.status(f"asking {count(len(hosts), 'host')} what {'it is' if len(hosts) == 1 else 'they are'}"):
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
        console.print(f"{names}: {late[0].reason}; the others begin, and late hosts join them when they answer")
    for line in unknown_keys([c.unknown_key for c in checked if c.unknown_key]):
        console.print(line)
    if any(host.connection == "local" for host in hosts):
        ahead.join()
    return checked


def schedule(
    checked: Sequence[Checked], suite: Suite, options: Options, name: str, seed: int, console: Console
) -> Schedule:
    """Schedule the suite on the hosts that answered, as the campaign ``name``.

    Raises FleetmarkError for what ``make_schedule`` and the bounds of --at-once refuse, and where nothing is selected.
    """
    answered = [(c.host, c.facts) for c in checked if c.facts]
    with console.status(f"scheduling what {count(len(answered), 'host')} {'runs' if len(answered) == 1 else 'run'}"):
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


def _ahead(beside: Beside) -> None:
    """Do what would keep hosts waiting once all have answered, then the caller's own work."""
    code()
    beside.ahead()
