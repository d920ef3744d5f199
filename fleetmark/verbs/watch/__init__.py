"""Implement ``fleetmark watch``: measure idle hosts in rounds, evaluate each round, and report new findings."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.openmetrics import Family
from fleetmark.verbs import serve
from fleetmark.verbs.serve.pages import Pages
from fleetmark.verbs.watch import round as rounds
from fleetmark.verbs.watch.round import WatchQuestion

__all__ = ["WatchQuestion", "forever", "once", "serving"]


def once(question: WatchQuestion, console: Console) -> bool:
    """Run one round. Return whether no finding is open."""
    return rounds.run(question, console)[0]


def forever(question: WatchQuestion, every_s: float, console: Console) -> None:
    """Run rounds until the process is interrupted.

    Each round starts ``every_s`` seconds after the start of the previous one.
    """
    judged: Sequence[Family] = ()
    while True:
        began = time.monotonic()
        try:
            _, judged = rounds.run(question, console, judged)
        except FleetmarkError as error:  # an inventory may be edited while the watch runs
            console.print(f"round failed: {error}", markup=False)
        time.sleep(max(0.0, every_s - (time.monotonic() - began)))


@contextlib.contextmanager
def serving(root: Path, listen: str | None, token_file: Path | None, language: Language) -> Iterator[None]:
    """Serve the record and ``/metrics`` at ``listen`` while the block runs, like ``fleetmark serve``."""
    if listen is None:
        yield
        return
    server = serve.listening(Pages(root, language), listen, token_file)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.close()
