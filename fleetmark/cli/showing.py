"""Shows a campaign that just ended: in a copy of this process, which loads what that takes while hosts work.

What this module imports is loaded before the copy is made, since both need it; it imports nothing that one needs alone.
"""

from __future__ import annotations

import json
import shlex

import workloads.template  # noqa: F401
from fleetmark.base import extensions
from fleetmark.base.facts import Facts
from fleetmark.base.terminal import Terminal, guard
from fleetmark.base.twin import Twin
from fleetmark.campaign import judged
from fleetmark.cli.common import SOME_FAILED, Format, say_what_is_left_out
from fleetmark.record.archive import Archive
from workloads.manifest import Manifest


class Showing(Twin):
    """``show`` is to come once, at the end. A context manager."""

    def __init__(self) -> None:
        for model in (Facts, Manifest):  # built when the first such document is read, otherwise
            model.model_rebuild()
        super().__init__(_load, _work)

    def warm(self) -> None:
        """Start the chart engine: half a second of CPU, which measurements here would notice."""
        self.ask(json.dumps({"do": "warm"}))

    def measure(self, archive: Archive) -> bool:
        """Write the measurements in a process that already has the modules loaded. Return whether it succeeded."""
        return self.ask(json.dumps({"do": "measure", "path": str(archive.path), "workloads": extensions.state()}))

    def show(self, archive: Archive, form: Format, strict: bool) -> int:
        """Show the campaign and write its page. Return the exit status for the campaign."""
        order = {"do": "show", "path": str(archive.path), "form": form.value, "strict": strict}
        order["workloads"] = extensions.state()
        status = self.finish(json.dumps(order))
        if status >= 0:
            return status
        why = f"what shows results was ended by signal {-status} (is this machine out of memory?)"
        again = shlex.join(["fleetmark", "report", str(archive.path)])
        Terminal(stderr=True).print(f"fleetmark: {why}; they are kept: {again}", soft_wrap=True)
        return SOME_FAILED


def _load() -> None:
    from fleetmark.cli import shown  # noqa: F401
    from fleetmark.record.documents import TelemetryPart
    from fleetmark.record.values.database import connect

    guard()
    say_what_is_left_out()
    TelemetryPart.model_rebuild()
    connect(0).close()  # the database of few values stays: it takes 20 ms to open
    judged.code()


def _work(line: str) -> bool | int:
    from fleetmark.cli import shown

    return shown.work(json.loads(line))
