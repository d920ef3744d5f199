"""Define ``fleetmark clean``, which restores hosts to their state before Fleetmark used them."""

from __future__ import annotations

from typing import Annotated

import typer

from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import OK, SOME_FAILED, Limit, interruptible


def clean(
    inventory: Annotated[
        list[str] | None, typer.Option("--inventory", "-i", help="Ansible inventory; none: this machine.")
    ] = None,
    limit: Limit = None,
    become: Annotated[
        bool, typer.Option("--become", "-b", help="Become root on the hosts, if the runs used --become.")
    ] = False,
    work_dir: Annotated[str | None, typer.Option(help="The --work-dir of the runs (default: /var/tmp).")] = None,
    connect_timeout: Annotated[
        float | None, typer.Option("--connect-timeout", help="Seconds to wait for a connection to a host.")
    ] = None,
    discard: Annotated[
        bool, typer.Option("--discard", help="Also remove results that no controller has collected.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; change nothing.")] = False,
) -> None:
    """Remove Fleetmark's folder and the packages that it installed from hosts. Exit status 1 if a removal fails.

    Examples: fleetmark clean -i hosts.yml --dry-run; fleetmark clean -i hosts.yml --become
    """
    from fleetmark.hosts import clean as cleaning
    from fleetmark.hosts.preflight import WORK_DIR

    with interruptible("run it again for the other hosts"):
        cleaned = cleaning.clean(
            tuple(inventory or ()),
            limit,
            become,
            work_dir or WORK_DIR,
            connect_timeout,
            Terminal(),
            dry_run=dry_run,
            discard=discard,
        )
    cleaning.show(cleaned, Terminal())
    raise typer.Exit(OK if all(c.good for c in cleaned) else SOME_FAILED)
