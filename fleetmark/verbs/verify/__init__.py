"""Implement ``fleetmark verify``: compare a campaign, or the figures of a document, with the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fleetmark import __version__
from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.record import imports
from fleetmark.record.archive import Archive
from fleetmark.record.archive.integrity import Difference, Integrity, check
from fleetmark.reports.kit import manifest as text_of
from fleetmark.reports.kit.language import language
from fleetmark.reports.lists import integrity as report
from fleetmark.verbs import documents
from fleetmark.verbs.documents import EXTENSIONS, Documents
from fleetmark.verbs.manifest import (
    Comparing,
    Diagnosing,
    Gating,
    Manifest,
    Origin,
    Planning,
    Reporting,
    commit,
    digests,
    manifest_of,
    origin,
    root_words,
)
from fleetmark.verbs.verify.content import differences

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document

MAX_DOCUMENT = 512 << 20  # bytes


def campaign(archive: Archive, signers: Path | None, form: str, console: Console, files: Documents) -> bool:
    """Check a campaign against its hash chain and signatures. Return whether no difference was found."""
    with console.status(f"comparing {archive.id} with its record"):
        checked = check(archive, signers)
    documents.show(report.document(checked, str(signers or "")), form, console, files)
    return checked.is_equal


def document(path: Path, root: Path, signers: Path | None, form: str, console: Console, files: Documents) -> bool:
    """Regenerate a document's figures from the record under ``root``, and compare them. Return whether they are equal.

    Raise FleetmarkError if the file has no valid manifest, or if a campaign that it needs is not under ``root``.
    """
    kind = EXTENSIONS.get(path.suffix, "")
    raw = read_bytes(path, MAX_DOCUMENT, "verify its campaigns instead")
    try:
        if kind in ("", "csv"):
            raise FleetmarkError("a document that can be verified ends in .html, .pdf, .xlsx, .md or .json")
        manifest = manifest_of(raw, kind)
    except FleetmarkError as error:
        raise FleetmarkError(f"{path}: {error}") from error
    _refuse_missing(path, manifest, root)
    with console.status(f"making {path.name} again"):
        checked = [check(Archive(root / name), signers) for name in manifest.inputs if _is_chained(root, name)]
        differing = [*_inputs(manifest, root, checked), *_content(manifest, raw, kind, root)]
    shown = report.of_document(path.name, differing, checked, foreign_version(manifest), str(signers or ""))
    documents.show(shown, form, console, files)
    return not differing


def foreign_version(manifest: Manifest) -> str:
    """Return the version that created a document if it differs from this version; otherwise an empty text."""
    version = (manifest.fleetmark, manifest.commit)
    return "" if version == (__version__, commit()) else " ".join(filter(None, version))


def _is_chained(root: Path, name: str) -> bool:
    return not name.startswith(f"{imports.FOLDER}/") and Archive(root / name).is_chained()


def _refuse_missing(path: Path, manifest: Manifest, root: Path) -> None:
    """Raise FleetmarkError if the record lacks a source of the document."""
    missing = [n for n in manifest.inputs if not (root / n / "measurements.parquet").is_file()]
    if missing:
        further = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FleetmarkError(
            f"{path}: its figures come from {missing[0]}{further}, which is not in {root}; use another --results"
        )


def _inputs(manifest: Manifest, root: Path, checked: list[Integrity]) -> Iterator[Difference]:
    """Yield differences between the record and its hash chain, and between the present record and the document's
    sources.
    """
    for result in checked:
        yield from (Difference(f"{result.campaign}/{d.place}", d.reason) for d in result.differences)
    for name, before in manifest.inputs.items():
        now = Origin.model_validate(origin(root, name))
        grown = before.chain and _is_chained(root, name) and Archive(root / name).has_digest(before.chain)
        if now != before and not grown:
            yield Difference(name, message("its record has changed since the document was created"))


def _content(manifest: Manifest, raw: bytes, kind: str, root: Path) -> Iterator[Difference]:
    """Yield the exhibits that differ when regenerated from the record, then the differences in the file's content."""
    kinds = dict.fromkeys([*manifest.kinds, kind], Path("-"))
    files = Documents(
        paths=kinds,
        language=language(manifest.language),
        date=manifest.created or None,
        appendix=manifest.appendix,
        raw=manifest.raw,
    )
    try:
        again = _again(manifest, root, files)
    except FleetmarkError as error:
        yield Difference(message("question"), message("it cannot be regenerated: {fault}", fault=str(error)))
        return
    for name in text_of.differing(manifest.exhibits, digests(again, root, manifest.kinds)):
        yield Difference(name, message("the record gives other figures"))
    if manifest.templates:
        yield Difference(
            message("templates"), message("custom templates were used, so the pages cannot be regenerated")
        )
        return
    stored = manifest.model_dump(mode="json", exclude_unset=True)
    del stored[text_of.VERSION]
    again = replace(again, manifest=stored)
    rendered = documents.renderers(again, files)[kind]()
    yield from differences(raw, rendered, kind, root_words(root))


def _again(manifest: Manifest, root: Path, files: Documents) -> Document:
    """Regenerate a document from the question in its manifest.

    Write no file, and read only the manifest's campaigns.
    """
    from fleetmark.verbs import report as reporting

    match manifest.question:
        case Comparing() as options:
            from fleetmark.record.compare import Question

            values = options.model_dump(exclude={"verb"})
            compared = Question(root=root, campaigns=tuple(manifest.inputs), **values)
            answer = reporting.answer_for(compared, files)
            return reporting.comparison_document(compared, answer, files, has_evidence=True)
        case Reporting() as options:
            archive = Archive.open(root / options.campaign)
            return reporting.campaign_document(archive, files)[1]
        case Planning() as options:
            from fleetmark.verbs.verify import planned

            return planned.again(options, root, files)
        case Gating() as options:
            from fleetmark.verbs import gate as gating

            return gating.again(Archive.open(root / options.campaign), options)
        case Diagnosing() as options:
            from fleetmark.record.diagnosis import baselines
            from fleetmark.verbs import diagnose as diagnosing
            from fleetmark.verbs import gate as gating

            question = diagnosing.DiagnosisQuestion(
                archive=Archive.open(root / options.campaign),
                everything=options.everything,
                against=baselines.load(root, options.reference) if options.reference else None,
                least=options.least,
                rules=gating.rules_in(options.rules, options.file) if options.rules is not None else None,
                file=options.file,
            )
            diagnosis, accepted = diagnosing.diagnosed(question), diagnosing.acceptance(question)
            return diagnosing.diagnosis_document(question, diagnosis, files, accepted, has_roofs=True)
