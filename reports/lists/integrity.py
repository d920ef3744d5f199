"""Present whether a campaign or a document still matches its record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import Message, count, message
from fleetmark.base.units import human
from fleetmark.record.archive.integrity import Difference, Integrity
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, Finding, Note, Section

MAX_SHOWN = 50  # maximum differences shown


def document(checked: Integrity, signers: str = "") -> Document:
    """Return the answer, who signed the record, and every difference. ``signers``: the file of allowed signers."""
    notes = tuple(Note(fmt.clean(text), quiet=True) for text in _notes(checked, signers, checked.campaign))
    return Document(
        title=message("Verification of {subject}", subject=checked.campaign),
        answer=_answer(checked),
        tone="good" if checked.is_equal else "bad",
        sections=(Section("signature", "", notes), Section("differences", "", findings(checked.differences))),
        data=as_json(checked),
    )


def of_document(
    name: str, differing: Sequence[Difference], records: Sequence[Integrity], made_by: str, signers: str
) -> Document:
    """Return whether the figures of a document match the record.

    ``records``: the campaigns behind it. ``made_by``: the version that made it, if it differs from this one.
    """
    answer = first_of(name, differing) if differing else message("{subject} is equal to its record", subject=name)
    notes = []
    if differing and made_by:
        notes.append(
            message("Fleetmark {version} created it; this is another version, which may differ", version=made_by)
        )
    signed = [Note(fmt.clean(text), quiet=True) for r in records for text in _notes(r, signers, r.campaign)]
    return Document(
        title=message("Verification of {subject}", subject=name),
        answer=answer,
        tone="bad" if differing else "good",
        sections=(
            Section("record", "", (*(Note(fmt.clean(text)) for text in notes), *signed)),
            Section("differences", "", findings(differing)),
        ),
        data={
            "document": name,
            "result": "different" if differing else "equal",
            "records": [as_json(r) for r in records],
            "differences": [{"place": d.place, "reason": d.reason} for d in differing],
        },
    )


def as_json(checked: Integrity) -> dict[str, object]:
    """Return the result for programs."""
    return {
        "campaign": checked.campaign,
        "result": "equal" if checked.is_equal else "different" if checked.is_chained else "not chained",
        "chain": checked.head or None,
        "lines": checked.lines,
        "files": checked.files,
        "bytes": checked.size_bytes,
        "signed_here": checked.is_own,
        "key": checked.key or None,
        "signer": checked.signer or None,
        "differences": [{"place": d.place, "reason": d.reason} for d in checked.differences],
    }


def findings(differences: Sequence[Difference]) -> tuple[Finding | Note, ...]:
    """Return the differences by place. A single difference is already in the answer."""
    if len(differences) < 2:
        return ()
    more = len(differences) - MAX_SHOWN
    shown = (Finding(fmt.clean(d.place), fmt.clean(d.reason), tone="bad") for d in differences[:MAX_SHOWN])
    return (*shown, *([Note(message("{n} more differ", n=more))] if more > 0 else []))


def first_of(subject: str, differences: Sequence[Difference]) -> Message:
    """Return the sentence that names the first difference."""
    values = {"subject": subject, "place": fmt.clean(differences[0].place), "reason": differences[0].reason}
    if len(differences) == 1:
        return message("{subject} differs from its record. {place}: {reason}", **values)
    return message("{subject} differs from its record in {n} places. {place}: {reason}", n=len(differences), **values)


def _answer(checked: Integrity) -> Message:
    if not checked.is_chained:
        return message(
            "{subject} has no hash chain: an older version of Fleetmark recorded it, so changes cannot be detected",
            subject=checked.campaign,
        )
    if checked.differences:
        return first_of(checked.campaign, checked.differences)
    return message(
        "{subject} is equal to its record: {files} ({size}) and {lines}",
        subject=checked.campaign,
        files=count(checked.files, "file"),
        size=human(checked.size_bytes, "B"),
        lines=count(checked.lines, "line of the journal", "lines of the journal"),
    )


def _notes(checked: Integrity, signers: str, subject: str) -> Iterator[Message]:
    values = {"signer": checked.signer, "subject": subject, "key": checked.key}
    if checked.signer and checked.differences:
        yield message(
            "{signer} signed {subject} with {key}, but the signature does not cover the differences", **values
        )
    elif checked.signer:
        yield message("{signer} signed {subject} with {key}", **values)
    elif checked.key and not signers:
        yield message("{key} signed {subject}; specify the keys that you trust with --signers FILE", **values)
    if checked.is_own and checked.differences:
        yield message("You recorded {subject}: your signature on this machine does not cover what differs", **values)
    elif checked.is_own:
        yield message("You recorded {subject}: your signature on this machine covers it", **values)
    elif checked.is_chained and not checked.key:
        yield message(
            "{subject} has no signature: anyone who can write there could have made its chain again", **values
        )
