"""``fleetmark gate``: a campaign held against acceptance rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.base.files import write_atomic
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import Acceptance, hold, read_rules
from reports.diagnosis import gate
from reports.kit.language import language

_FORMS: Mapping[str, Callable[[Acceptance], str]] = {
    "json": gate.as_json,
    "junit": gate.junit,
    "prometheus": gate.prometheus,
}


def check(
    archive: Archive, rules: Path, only: str | None, form: str, output: Path | None, lang: str, console: Console
) -> bool:
    """Hold a campaign against the rules of a file; show it, or write it to ``output``. Whether it is accepted."""
    spoken = language(lang)
    acceptance = hold(archive, read_rules(rules), str(rules), only)
    if form in _FORMS:
        text = _FORMS[form](acceptance)
        if output is None:
            typer.echo(text, nl=not text.endswith("\n"))
        else:
            write_atomic(output, text)
    else:
        for part in gate.table(acceptance, spoken):
            console.print(part)
    return acceptance.accepted
