"""Shows a campaign that just ended: in a copy of this process, which loads what that takes while hosts work."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from fleetmark.base.twin import Twin

if TYPE_CHECKING:
    from fleetmark.cli.common import Format
    from fleetmark.record.archive import Archive


class Showing(Twin):
    """``show`` is to come once, at the end. A context manager."""

    def __init__(self) -> None:
        super().__init__(_load, _work)

    def warm(self) -> None:
        """Start the chart engine: half a second of CPU, which measurements here would notice."""
        self.ask(json.dumps({"do": "warm"}))

    def measure(self, archive: Archive) -> bool:
        """Write the measurements of what ran, by modules that this process has no other use for. Whether it could."""
        return self.ask(json.dumps({"do": "measure", "path": str(archive.path)}))

    def show(self, archive: Archive, form: Format, strict: bool) -> int:
        """Show the campaign, and write its page. Returns the exit status that follows from what ran."""
        order = {"do": "show", "path": str(archive.path), "form": form.value, "strict": strict}
        status = self.finish(json.dumps(order))
        if status >= 0:
            return status
        from fleetmark.base.terminal import Terminal
        from fleetmark.cli.common import SOME_FAILED

        why = f"what shows results was ended by signal {-status} (is this machine out of memory?)"
        again = shlex.join(["fleetmark", "report", str(archive.path)])
        Terminal(stderr=True).print(f"fleetmark: {why}; they are kept: {again}", soft_wrap=True)
        return SOME_FAILED


def _load() -> None:
    from fleetmark.base.facts import Facts
    from fleetmark.base.terminal import guard
    from fleetmark.cli import shown  # noqa: F401
    from fleetmark.cli.common import say_what_is_left_out
    from fleetmark.record.documents import TelemetryPart
    from fleetmark.record.figures.database import connect
    from workloads.manifest import Manifest

    guard()
    say_what_is_left_out()
    for model in (Facts, Manifest, TelemetryPart):  # each would be built when the first document is read
        model.model_rebuild()
    connect(0).close()  # the database of few values stays: it takes 20 ms to open


def _work(line: str) -> bool | int:
    from fleetmark.cli import shown

    return shown.work(json.loads(line))
