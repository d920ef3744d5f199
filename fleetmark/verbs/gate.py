"""``fleetmark gate``: a campaign held against acceptance rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.base.files import write_atomic
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import Acceptance, hold, read_rules
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents
from reports.diagnosis import gate
from reports.formats import json

# Formats that --output writes whatever its name ends in.
PLAIN: Mapping[str, Callable[[Acceptance], str]] = {
    "json": lambda acceptance: json.render(gate.document(acceptance)),
    "junit": gate.junit,
    "prometheus": gate.prometheus,
}


def check(
    archive: Archive, rules: Path, only: str | None, form: str, output: Path | None, console: Console, files: Documents
) -> bool:
    """Hold a campaign against the rules of a file, and show it. Return whether it is accepted.

    ``output``: where a plain format goes, stdout where None; ``files``: its documents.
    """
    acceptance = hold(archive, read_rules(rules), str(rules), only)
    if form not in PLAIN:
        documents.show(gate.document(acceptance), form, console, files)
    elif output is None:
        typer.echo(PLAIN[form](acceptance).removesuffix("\n"))
    else:
        write_atomic(output, PLAIN[form](acceptance))
    return acceptance.accepted
