"""``fleetmark gate``: check a campaign against acceptance rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.base.files import write_atomic
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import Acceptance, hold, read_rules
from fleetmark.reports.diagnosis import gate, openmetrics
from fleetmark.reports.formats import json
from fleetmark.reports.kit.openmetrics import prometheus, render
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents

# Formats that --output writes regardless of the file's extension.
PLAIN: Mapping[str, Callable[[Acceptance], str]] = {
    "json": lambda acceptance: json.render(gate.document(acceptance)),
    "junit": gate.junit,
    "prometheus": lambda acceptance: prometheus(openmetrics.gate(acceptance)),
    "openmetrics": lambda acceptance: render(openmetrics.gate(acceptance)),
}


def check(
    archive: Archive, rules: Path, only: str | None, form: str, output: Path | None, console: Console, files: Documents
) -> bool:
    """Check a campaign against the rules of a file, and print the result. Return whether it is accepted.

    ``output``: the file for the formats in PLAIN, stdout if None. ``files``: the documents to write.
    """
    acceptance = hold(archive, read_rules(rules), str(rules), only)
    if form not in PLAIN:
        documents.show(gate.document(acceptance), form, console, files)
    elif output is None:
        typer.echo(PLAIN[form](acceptance).removesuffix("\n"))
    else:
        write_atomic(output, PLAIN[form](acceptance))
    return acceptance.accepted
