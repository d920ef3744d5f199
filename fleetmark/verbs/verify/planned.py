"""Create the manifest of a plan with its input files, and solve a plan again from its manifest."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from rich.console import Console

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import yaml as demand_yaml
from fleetmark.planner.capacity.answer import Answer
from fleetmark.verbs import plan as planning
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.manifest import MAX_INPUT, NAME, Planning, stamped

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document

_DIGEST = re.compile(r"[0-9a-f]{64}")


def with_manifest(
    document: Document,
    answer: Answer,
    file: Path,
    scenarios: Sequence[Path],
    effort: planning.Effort,
    command: str,
    root: Path,
    documents: Documents,
) -> Document:
    """Return the plan's document with its manifest.

    There is no manifest if the input is too long or in several folders, or if an option exceeds the manifest's limits.
    """
    texts = _texts(answer.question.source, file, scenarios)
    if texts is None or answer.plan is None:
        return document
    try:
        options = Planning(
            verb="plan",
            file="" if file.is_dir() else file.name,
            files=texts,
            scenarios=[path.name for path in scenarios],
            gap=effort.gap,
            seconds=effort.seconds,
            draws=effort.draws,
            seed=effort.seed,
            command=command,
            solved_s=answer.plan.seconds,
            took_s=answer.seconds,
        )
    except ValidationError:
        return document
    campaigns = [name for name in str(answer.question.source.get("campaigns", "")).split(", ") if name]
    return stamped(document, options, root, campaigns, documents, documents.paths)


def _texts(source: Mapping[str, Any], file: Path, scenarios: Sequence[Path]) -> dict[str, str] | None:
    """Return the text of each input file by its name, or None if a manifest cannot contain the files."""
    folder = file if file.is_dir() else file.parent
    paths = {name: folder / name for name, digest in source.items() if _DIGEST.fullmatch(str(digest))}
    paths |= {path.name: path for path in scenarios}
    if any(not NAME.fullmatch(name) or not path.is_file() for name, path in paths.items()):
        return None
    try:
        texts = {name: read_bytes(path, 1 << 20, "").decode("utf-8") for name, path in paths.items()}
    except (UnicodeDecodeError, FleetmarkError):
        return None
    return texts if sum(map(len, texts.values())) <= MAX_INPUT else None


def again(options: Planning, root: Path, files: Documents) -> Document:
    """Solve a plan again from the files in its manifest, and return its document. Read only these files and ``root``.

    Raise FleetmarkError if there is no plan.
    """
    with tempfile.TemporaryDirectory(prefix="fleetmark-plan-") as name:
        folder = Path(name)
        for file, text in options.files.items():
            (folder / file).write_text(text, "utf-8", newline="")
        path = folder / options.file if options.file else folder
        _refuse_other_files(path, [folder / s for s in options.scenarios], options.files)
        question = planning.question(path, None, root)
        others = {Path(s).stem: planning.question(path, None, root, folder / s) for s in options.scenarios}
    effort = planning.Effort(options.gap, options.seconds, options.draws, options.seed)
    answer = planning.answer(question, effort, Console(quiet=True), others)
    if answer.plan is None:
        raise FleetmarkError("its input no longer gives a plan")
    timed = replace(answer, plan=replace(answer.plan, seconds=options.solved_s), seconds=options.took_s)
    provenance = planning.Provenance(files.date, command=options.command)
    return planning.document(timed, provenance, files.language)


def _refuse_other_files(path: Path, scenarios: Sequence[Path], known: Collection[str]) -> None:
    """Raise FleetmarkError if the question names a file that the manifest does not contain."""
    if not path.exists() or not all(scenario.is_file() for scenario in scenarios):
        raise FleetmarkError("its manifest lacks a file of the question")
    read = demand_csv.read(path) if path.is_dir() else demand_yaml.read(path)
    documents = [read.doc, *(demand_yaml.read(scenario).doc for scenario in scenarios)]
    for named in (file for document in documents for file in _named(document)):
        if str(Path(named)) not in known:
            raise FleetmarkError(f"the question names {named[:80]!r}, which its manifest does not contain")


def _named(value: Any, key: str = "") -> Iterator[str]:
    """Yield the values of all keys ``file`` in a document, and histories given only by name."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _named(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, key)
    elif key in ("file", "history") and isinstance(value, str):
        yield value
