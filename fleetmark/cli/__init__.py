"""Define the entry point of the program, which loads ``app`` and its commands only to run one of them."""

from __future__ import annotations

import signal
import sys

from fleetmark.base.runtime import (
    calculate_in_one_thread,
    flushed,
    skip_last_collection,
    use_system_allocator,
)


def main() -> None:
    """Run the command line and end the process with its exit status."""
    use_system_allocator()
    calculate_in_one_thread()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` and systemd's stop end a command as Ctrl-C does
    try:
        code = status()
    except KeyboardInterrupt:  # while the commands are still loading
        code = 130
    skip_last_collection()
    sys.exit(flushed(code))


def status() -> int:
    """Run the requested command and return its exit status.

    A FleetmarkError or an inaccessible file prints one sentence and returns 2, or 1 if results cannot be stored.
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
