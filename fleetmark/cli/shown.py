"""What the copy of the program does that shows a campaign: ``showing`` asks for it."""

from __future__ import annotations

import importlib
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.pandas_compat  # this, and others without a use here, would be loaded when they are first needed
import pyarrow.parquet  # noqa: F401
import typer

import reports.campaign.terminal
import reports.html  # noqa: F401
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.base.terminal import Terminal
from fleetmark.campaign.judged import write_measurements
from fleetmark.cli.common import OK, SOME_FAILED, Format, in_a_sentence, interruptible
from fleetmark.record.archive import Archive
from fleetmark.verbs import report


def work(order: Mapping[str, Any]) -> bool | int:
    """Execute ``order``. Return whether it succeeded; for the last order, the exit status."""
    if order["do"] == "warm":
        threading.Thread(target=importlib.import_module("reports.kit.charts").warm, daemon=True).start()
        return True
    os.environ[extensions.VARIABLE] = order["workloads"]  # from the command line, which is parsed after the fork
    if order["do"] == "measure":
        return _measure(Path(order["path"]))
    return _shown(Path(order["path"]), Format(order["form"]), order["strict"])


def _measure(path: Path) -> bool:
    """False where it cannot be done: the process that asks tries too, and says why."""
    try:
        write_measurements(Archive(path))
    except (FleetmarkError, KeyboardInterrupt):
        return False
    return True


def _shown(path: Path, form: Format, strict: bool) -> int:
    try:
        with in_a_sentence(), interruptible(f"what is finished is kept: fleetmark report {shlex.quote(str(path))}"):
            return _show(path, form, strict)
    except (typer.Exit, SystemExit) as end:
        code = end.exit_code if isinstance(end, typer.Exit) else end.code
        return code if isinstance(code, int) else SOME_FAILED


def _show(path: Path, form: Format, strict: bool) -> int:
    archive, console = Archive(path), Terminal(stderr=form == Format.JSON)
    results = report.campaign(archive, form, console)
    directions = set(results.values.distinct("better")["better"])
    if form == Format.TABLE and len(results.hosts) > 1 and directions - {Better.NONE.value}:
        from fleetmark.verbs import diagnose  # with scipy, which only hosts that can be judged need

        diagnose.brief(archive, console)
    return exit_status(list(results.outcomes["status"]), strict) if results.campaign.finished else SOME_FAILED


def exit_status(statuses: Sequence[Any], strict: bool) -> int:
    """0 where something passed and nothing was worse than skipped; with ``strict``, where all passed. Else 1."""
    good = {Status.PASSED.value} if strict else {Status.PASSED.value, Status.SKIPPED.value}
    return OK if set(statuses) <= good and Status.PASSED.value in statuses else SOME_FAILED
