"""Shows a campaign that just ended: in a copy of this process, which has loaded what that takes while hosts worked."""

from __future__ import annotations

import importlib
import json
import shlex
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.base.terminal import Terminal
from fleetmark.base.twin import Twin
from fleetmark.campaign.judged import write_measurements
from fleetmark.cli.common import OK, SOME_FAILED, Format, in_a_sentence, interruptible
from fleetmark.record.archive import Archive

_MODULES = ("pyarrow.parquet", "fleetmark.verbs.report", "reports.html", "reports.campaign.terminal")
_WARM = "warm"


class Showing(Twin):
    """``show`` is to come once, at the end. A context manager."""

    def __init__(self, form: Format, strict: bool) -> None:
        self._how = {"form": form.value, "strict": strict}
        super().__init__(_load, _work)

    def warm(self) -> None:
        """Start the chart engine: half a second of CPU, which measurements here would notice."""
        self.ask(_WARM)

    def measure(self, archive: Archive) -> bool:
        """Write the measurements of what ran, by modules that this process has no other use for. Whether it could."""
        return self.ask(json.dumps({"measure": str(archive.path)}))

    def show(self, archive: Archive) -> int:
        """Show the campaign, and write its page. Returns the exit status that follows from what ran."""
        status = self.finish(json.dumps({"path": str(archive.path), **self._how}))
        if status >= 0:
            return status
        why = f"what shows results was ended by signal {-status} (is this machine out of memory?)"
        again = shlex.join(["fleetmark", "report", str(archive.path)])
        Terminal(stderr=True).print(f"fleetmark: {why}; they are kept: {again}", soft_wrap=True)
        return SOME_FAILED


def _load() -> None:
    for module in _MODULES:
        importlib.import_module(module)


def _work(line: str) -> bool | int:
    if line == _WARM:
        threading.Thread(target=importlib.import_module("reports.kit.charts").warm, daemon=True).start()
        return True
    order = json.loads(line)
    return _measure(order["measure"]) if "measure" in order else _shown(order)


def _measure(path: str) -> bool:
    """False where it cannot be done: the process that asks tries too, and says why."""
    try:
        write_measurements(Archive(Path(path)))
    except (FleetmarkError, KeyboardInterrupt):
        return False
    return True


def _shown(order: Mapping[str, Any]) -> int:
    try:
        with in_a_sentence(), interruptible(f"what is finished is kept: fleetmark report {shlex.quote(order['path'])}"):
            return _show(**order)
    except (typer.Exit, SystemExit) as end:
        code = end.exit_code if isinstance(end, typer.Exit) else end.code
        return code if isinstance(code, int) else SOME_FAILED


def _show(path: str, form: str, strict: bool) -> int:
    from fleetmark.verbs import report

    archive, console = Archive(Path(path)), Terminal(stderr=form == Format.JSON)
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
