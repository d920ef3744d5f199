"""The program, from its first moment to its end; its verbs are in ``app``, which takes a tenth of a second to load."""

from __future__ import annotations

import sys

from fleetmark.base.runtime import (
    calculate_in_one_thread,
    flushed,
    skip_last_collection,
    use_system_allocator,
)


def main() -> None:
    """Run the command line, and end the process with its exit status."""
    use_system_allocator()
    calculate_in_one_thread()
    try:
        code = status()
    except KeyboardInterrupt:  # before there is anything to say of it
        code = 130
    skip_last_collection()
    sys.exit(flushed(code))


def status() -> int:
    """Do what the command line asks for. FleetmarkError, and a file or folder that may not be touched, end in one
    sentence and status 2; 1 where it is the results that cannot be kept.
    """
    try:
        from fleetmark.base.terminal import guard

        guard()
        from fleetmark.cli.app import app
        from fleetmark.cli.common import in_a_sentence

        with in_a_sentence():
            app()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        raise
    return 0
