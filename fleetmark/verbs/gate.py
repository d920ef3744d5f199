"""Implement ``fleetmark gate``: check a campaign against acceptance rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from pydantic import ValidationError
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.gate import Acceptance, Rules, check_rules, hold, read_rules
from fleetmark.record.documents import fault
from fleetmark.reports.diagnosis import gate, openmetrics
from fleetmark.reports.formats import json
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.openmetrics import prometheus, render
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.manifest import MAX_RULES, Gating, stamped

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
    known = read_rules(rules)
    acceptance = hold(archive, known, str(rules), only)
    if form not in PLAIN:
        document = gate.document(acceptance)
        if files.paths:
            document = _stamped(document, archive, known, str(rules), only, files)
        documents.show(document, form, console, files)
    elif output is None:
        typer.echo(PLAIN[form](acceptance).removesuffix("\n"))
    else:
        write_atomic(output, PLAIN[form](acceptance))
    return acceptance.accepted


def again(archive: Archive, options: Gating) -> Document:
    """Regenerate the document of a gate from the rules in its manifest. Raise FleetmarkError if a rule is invalid."""
    return gate.document(hold(archive, rules_in(options.rules, options.file), options.file, options.only))


def rules_in(text: str, file: str) -> Rules:
    """Parse the rules of ``file`` from a manifest's ``text``. Raise FleetmarkError if a rule is invalid."""
    try:
        rules = Rules.model_validate_json(text)
    except ValidationError as error:
        raise FleetmarkError(f"the rules in its manifest {fault(error)}") from None
    check_rules(rules, Path(file))
    return rules


def text_of(rules: Rules) -> str | None:
    """Return rules as text for a manifest, or None if they are too long."""
    text = rules.model_dump_json(exclude_defaults=True)
    return text if len(text) <= MAX_RULES else None


def _stamped(
    document: Document, archive: Archive, rules: Rules, file: str, only: str | None, files: Documents
) -> Document:
    """Return a gate's document with a manifest that contains the rules.

    There is no manifest if the rules are very long, or if a file or regular expression selects the hosts, because
    ``verify`` reads neither.
    """
    text = text_of(rules)
    if text is None or (only is not None and ("@" in only or "~" in only)):
        return document
    options = Gating.model_construct(verb="gate", campaign=archive.id, file=file, only=only, rules=text)
    return stamped(document, options, archive.path.parent, [archive.id], files, files.paths)
