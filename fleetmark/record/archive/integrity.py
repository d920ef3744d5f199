"""Check a campaign against its own hash chain and signatures, and name each file, step or line that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.inside import folders_below
from fleetmark.base.signature import is_signed
from fleetmark.base.text import Message, message
from fleetmark.record.archive import chain, ssh_signature
from fleetmark.record.archive.names import safe_name
from fleetmark.record.archive.reading import StoredCampaign
from fleetmark.record.documents import event_of, fault

JOURNAL = "journal.jsonl"
_RECORDED = ("campaign.json", "measurements.parquet")
_OF_LINE = ("t", "e", "chain")  # fields of every line, which the user's signature does not cover


@dataclass(frozen=True, slots=True)
class Difference:
    """A ``place`` (a file, a line of the journal, or a signature) that differs from its record, and the reason."""

    place: str
    reason: Message


@dataclass(slots=True, kw_only=True)
class Integrity:
    """The result of the check.

    ``lines``, ``files`` and ``size_bytes``: the amount of compared data. ``key``: the fingerprint of the SSH key that
    signed the journal; ``signer``: the name that the allowed-signers file gives it. ``is_own``: whether this user's own
    signature, made on this machine, covers the journal.
    """

    campaign: str
    is_chained: bool
    head: str = ""
    lines: int = 0
    files: int = 0
    size_bytes: int = 0
    key: str = ""
    signer: str = ""
    is_own: bool = False
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return self.is_chained and not self.differences


@dataclass(slots=True, kw_only=True)
class _Journal:
    """The content of the journal.

    ``covered``: the last line that this user's own signature covers; ``signed``: the last line that an SSH key signed,
    the signed digest, and the signature.
    """

    folders: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    kept: dict[str, tuple[int, str]] = field(default_factory=dict)
    has_end: bool = False
    covered: int = 0
    signed: tuple[int, str, str] | None = None
    others: int = 0  # the last line that the user's own signature should cover


def statement(campaign: str, head: str) -> str:
    """Return the text that an SSH key signs: the campaign, and the digest of the journal's last line."""
    return json.dumps({"fleetmark": "journal", "campaign": campaign, "chain": head}, sort_keys=True) + "\n"


def check(archive: StoredCampaign, signers: Path | None = None) -> Integrity:
    """Compare every file that counts with the journal, and the journal with its chain and its signatures.

    ``signers``: a file of allowed signers; with it, a missing or foreign signature is a difference. Raise
    FleetmarkError if the campaign or ``signers`` cannot be read.
    """
    archive.pin()
    result = Integrity(campaign=archive.id, is_chained=archive.is_chained())
    if not result.is_chained:
        return result
    journal = _read(archive, result)
    result.differences += _compared(archive, journal, result)
    result.differences += _own(archive, journal, result)
    result.differences += _signed(archive, journal, result, signers)
    return result


def _read(archive: StoredCampaign, result: Integrity) -> _Journal:
    """Read the journal, and report the lines that break the hash chain as differences."""
    journal, head, offset = _Journal(), chain.START, 0
    for block in archive.journal_blocks():
        *lines, rest = block.split(b"\n")
        for line in (*lines, rest) if rest else lines:
            result.lines += 1
            place = f"{JOURNAL} line {result.lines} (bytes {offset:,}-{offset + len(line):,})"
            offset += len(line) + 1
            stated = chain.stated(line)
            if line is rest:
                result.differences.append(Difference(place, message("it is truncated: its end is missing")))
            elif not stated:
                result.differences.append(Difference(place, message("it is truncated, or was added without a digest")))
            if line is rest or not stated:
                continue
            if not chain.follows(line, head):
                reason = message("it was changed or moved, or lines before it were removed or added")
                result.differences.append(Difference(place, reason))
            try:
                _take(event_of(line), head, result.lines, journal, archive)
            except ValueError as error:
                result.differences.append(Difference(place, message("it is not an event: {fault}", fault=str(error))))
            head = stated
    result.head = head
    return journal


def _take(event: Mapping[str, Any], head: str, line: int, journal: _Journal, archive: StoredCampaign) -> None:
    match event["e"]:
        case "stored":
            journal.folders[event["folder"]] = event["files"]
        case "superseded":
            journal.folders.pop(event["folder"], None)
        case "kept":
            journal.kept[event["file"]] = (event["size"], event["sha256"])
        case "signed":
            journal.signed = (line, head, event["signature"])
            return
        case "ended":
            journal.has_end = True
        case "resumed":
            journal.has_end = False
    journal.others = line
    if "signature" in event and event.get("campaign") == archive.id and event.get("after") == head:
        fields = {name: value for name, value in event.items() if name not in _OF_LINE}
        if is_signed(fields):
            journal.covered = line


def _compared(archive: StoredCampaign, journal: _Journal, result: Integrity) -> Iterator[Difference]:
    """Yield the files that differ from the journal: raw files by step, then the other files."""
    present = {archive.named(f): f for f in folders_below(archive.path / "raw", 4) if not f.name.startswith(".")}
    for name in sorted({*present, *journal.folders}):
        files = journal.folders.get(name)
        if files is None:
            yield Difference(name, message("the journal does not list this step: it was added"))
        elif name not in present:
            yield Difference(name, message("the files of {step} are missing", step=_step(name)))
        else:
            yield from _folder(archive, present[name], files, result)
    for name in _RECORDED:
        if journal.has_end or name in journal.kept:  # the end of the journal lists them
            yield from _file(archive, name, journal.kept.get(name), result)
    yield from _of_hosts(archive, result)


def _step(folder: str) -> str:
    """Return the description of the step whose files are in ``folder``."""
    parts = [unquote(part) for part in folder.split("/")[1:]]
    if len(parts) != 4:
        return folder
    values = dict(zip(("host", "workload", "case", "repeat"), parts, strict=True))
    return message("{workload} {case}, repeat {repeat}, of {host}", **values)


def _folder(archive: StoredCampaign, folder: Path, files: Mapping[str, Any], result: Integrity) -> Iterator[Difference]:
    names = {file.name for file in folder.iterdir()}
    for name in sorted({*names, *files}):
        place = archive.named(folder / name)
        if name not in names:
            yield Difference(place, message("it is missing from {step}", step=_step(archive.named(folder))))
        else:
            yield from _file(archive, place, files.get(name), result)


def _file(
    archive: StoredCampaign, name: str, recorded: tuple[int, str] | None, result: Integrity
) -> Iterator[Difference]:
    """Yield the difference of one file; none if it is neither present nor recorded."""
    try:
        size, digest = archive.digest(name)
    except FileNotFoundError:
        if recorded is not None:
            yield Difference(name, message("it is missing"))
        return
    except OSError as error:
        yield Difference(name, message("it cannot be read: {fault}", fault=fault(error)))
        return
    result.files, result.size_bytes = result.files + 1, result.size_bytes + size
    if recorded is None:
        yield Difference(name, message("it was added: the journal does not list it"))
    elif size != recorded[0]:
        sizes = {"now": f"{size:,}", "before": f"{recorded[0]:,}"}
        yield Difference(name, message("it has {now} bytes and had {before} when it was stored", **sizes))
    elif digest != recorded[1]:
        yield Difference(name, message("its {size} bytes differ from the stored bytes", size=f"{size:,}"))


def _of_hosts(archive: StoredCampaign, result: Integrity) -> Iterator[Difference]:
    """Yield facts and jobs that differ from the digests in campaign.json."""
    for kind in ("facts", "jobs"):
        digests = archive.campaign().get(kind)
        recorded = {f"{safe_name(host)}.json": d for host, d in (digests if isinstance(digests, dict) else {}).items()}
        try:
            names = {file.name for file in (archive.path / kind).iterdir()}
        except OSError:
            names = set()
        for name in sorted({*names, *recorded}):
            try:
                size, digest = archive.digest(f"{kind}/{name}")
            except OSError as error:
                yield Difference(f"{kind}/{name}", message("it cannot be read: {fault}", fault=fault(error)))
                continue
            result.files, result.size_bytes = result.files + 1, result.size_bytes + size
            if name not in recorded:
                yield Difference(f"{kind}/{name}", message("it was added: campaign.json does not list it"))
            elif digest != recorded[name]:
                reason = message("its {size} bytes differ from the stored bytes", size=f"{size:,}")
                yield Difference(f"{kind}/{name}", reason)


def _own(archive: StoredCampaign, journal: _Journal, result: Integrity) -> Iterator[Difference]:
    """Yield differences that this user's own signature shows, and a missing end."""
    if not journal.has_end:
        yield Difference(
            JOURNAL, message("it has no end: the run was killed, or its last lines were removed; resume the campaign")
        )
    elif journal.covered == journal.others:
        result.is_own = True
    elif archive.own_campaign() is not None:
        covered = {"covered": journal.covered, "lines": result.lines}
        yield Difference(JOURNAL, message("your signature covers {covered} of its {lines} lines", **covered))


def _signed(
    archive: StoredCampaign, journal: _Journal, result: Integrity, signers: Path | None
) -> Iterator[Difference]:
    """Yield the faults of the SSH signature."""
    if journal.signed is None:
        if signers is not None:
            yield Difference(JOURNAL, message("no SSH key signed it; sign it with `fleetmark run --resume --sign`"))
        return
    line, head, signature = journal.signed
    place, text = f"{JOURNAL} line {line}", statement(archive.id, head)
    try:
        result.key = ssh_signature.fingerprint(signature)
    except FleetmarkError as error:
        yield Difference(place, message("its signature is damaged: {fault}", fault=str(error)))
        return
    if not ssh_signature.is_valid(text, signature):
        yield Difference(place, message("the signature of {key} does not match the journal", key=result.key))
        return
    if signers is not None:
        result.signer = ssh_signature.signer(text, signature, signers)
        if not result.signer:
            reason = message("{key} signed it, but {file} does not allow this key", key=result.key, file=str(signers))
            yield Difference(place, reason)
    if line < journal.others:
        yield Difference(
            place, message("{key} signed up to here, and {n} lines came later", key=result.key, n=result.lines - line)
        )
