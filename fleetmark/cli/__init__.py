"""The program, from its first moment to its end; its verbs are in ``app``, which takes a tenth of a second to load."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING

from fleetmark.base.runtime import (
    calculate_in_one_thread,
    collect_rarely,
    leave,
    skip_plugins,
    use_system_allocator,
)

if TYPE_CHECKING:
    import typer

    from fleetmark.cli.showing import Showing


def main() -> None:
    """Run the command line, and end the process with its exit status."""
    use_system_allocator()
    calculate_in_one_thread()
    collect_rarely()
    skip_plugins()
    try:
        if sys.argv[1:2] == ["run"] and "--help" not in sys.argv:
            from fleetmark.cli.showing import Showing

            with Showing() as showing:  # forks, as soon as what both processes need is loaded
                code = status(showing)
        else:
            code = status()
    except KeyboardInterrupt:  # before there is anything to say of it
        code = 130
    leave(code)


def status(showing: Showing | None = None) -> int:
    """Do what the command line asks for. FleetmarkError, and a file or folder that may not be touched, end in one
    sentence and status 2; 1 where it is the results that cannot be kept.
    """
    try:
        from fleetmark.base.terminal import guard

        guard()
        from fleetmark.cli.app import app
        from fleetmark.cli.common import in_a_sentence

        with in_a_sentence():
            _of_verb(app, sys.argv[1:2])(obj=showing)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        raise
    return 0


def _of_verb(app: typer.Typer, verb: list[str]) -> typer.Typer:
    """``app`` with nothing but the verb that was typed, where it has that: Typer takes 17 ms for the options of all."""
    from typer.main import get_command_name

    of_verb = copy.copy(app)
    of_verb.registered_commands = [
        c for c in app.registered_commands if [c.name or get_command_name(getattr(c.callback, "__name__", ""))] == verb
    ]
    of_verb.registered_groups = [g for g in app.registered_groups if [g.name] == verb]
    return of_verb if of_verb.registered_commands or of_verb.registered_groups else app
