"""Define types for a campaign's files: campaign.json, jobs, facts, the parts of a step, and the journal's events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, RootModel, ValidationError

from fleetmark.base.facts import Facts, Identity
from fleetmark.base.files import decode_json
from fleetmark.base.measurement import Status
from fleetmark.record.replies import StepTelemetry
from fleetmark.record.steps import Step, StoredStep

KEY = ("host", "workload", "case", "repeat", "subject")  # identifies a run


def key_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the run that an event or a step belongs to."""
    return tuple(run[name] for name in KEY)


class CampaignHost(BaseModel, defer_build=True):
    name: str
    address: str | None = None
    labels: dict[str, str] = {}


class CampaignHead(BaseModel, defer_build=True):
    """The part of campaign.json that every reader needs."""

    hosts: list[CampaignHost]
    created: str = ""
    suite: str = ""


class Job(BaseModel, defer_build=True):
    host: str
    steps: list[Step]
    deploy: list[dict[str, Any]]
    skipped: dict[str, str]
    refused: list[dict[str, str]] = []


class TelemetryPart(BaseModel, defer_build=True):
    """Only the telemetry of result.json."""

    telemetry: StepTelemetry | None = None


class StoredStepFile(RootModel[StoredStep]):
    pass


class IdentityPart(BaseModel, defer_build=True):
    """The part of facts/HOST.json that identifies the kind of a host."""

    facts: Identity


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A host's facts and job as a campaign stores them."""

    facts: str
    job: str


def facts_document(facts: Facts, raw: Mapping[str, Any]) -> str:
    """Return the document ``facts/HOST.json``: the facts, and the raw command output that they were parsed from."""
    return json.dumps({"facts": facts.model_dump(mode="json"), "raw": raw})


class _Block(BaseModel, defer_build=True):
    """The fields that every event of a run has."""

    host: str
    workload: str
    subject: str


class _Rejected(_Block):
    repeat: int = Field(ge=0, lt=2**31)
    reason: str


class _Outcome(_Block):
    case: str
    repeat: int = Field(ge=0, lt=2**31)
    status: Status
    reason: str | None = None
    started: str | None = None
    wall_s: float | None = None
    foreign_cores: float | None = None
    notes: list[str] | None = None


class _Settled(_Block):
    case: str
    repeats: int
    half_width: float | None
    warm_up: list[int]
    steps: list[str]


class _Unreachable(BaseModel, defer_build=True):
    host: str
    reason: str | None = None


class _Joined(BaseModel, defer_build=True):
    hosts: list[str]


class _Ended(BaseModel, defer_build=True):
    owed: int


class _Stored(BaseModel, defer_build=True):
    folder: str
    files: dict[str, tuple[int, str]]


class _Superseded(BaseModel, defer_build=True):
    folder: str


class _Kept(BaseModel, defer_build=True):
    file: str
    size: int
    sha256: str


class _Signed(BaseModel, defer_build=True):
    key: str
    signature: str


class _OfSetting(BaseModel, defer_build=True):
    """Report which settings a trial left changed on a host, or which were restored."""

    host: str
    description: str = Field(alias="what")


OF_FILES = ("stored", "superseded", "kept", "signed")  # events that protect files and do not concern hosts
_EVENTS: Mapping[str, type[BaseModel]] = {  # events that a later command reads
    "outcome": _Outcome,
    "rejected": _Rejected,
    "enough": _Settled,
    "unstable": _Settled,
    "unreachable": _Unreachable,
    "joined": _Joined,
    "ended": _Ended,
    "stored": _Stored,
    "superseded": _Superseded,
    "kept": _Kept,
    "signed": _Signed,
    "left": _OfSetting,
    "cleared": _OfSetting,
}


def event_of(line: bytes) -> dict[str, Any]:
    """Return a line of the journal as an event. Raise ValueError if it is not an event."""
    try:
        event = decode_json(line)
    except ValueError as error:
        raise ValueError("not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("e"), str):
        raise ValueError(f"{str(event)[:80]!r} is not an event")
    if model := _EVENTS.get(event["e"]):
        try:
            model.model_validate(event)
        except ValidationError as error:
            raise ValueError(f"an {event['e']} {fault(error)}") from error
    return event


def fault(error: Exception) -> str:
    """Return an error on one line."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))[:80]
        if not location:
            return "holds no JSON object"
        return f"lacks {location}" if first["type"] == "missing" else f"has {location}: {first['msg'][:160]}"
    if isinstance(error, KeyError):
        return f"lacks {error.args[0]}"
    return (str(error).splitlines() or [type(error).__name__])[0]


def as_line(doc: Mapping[str, Any]) -> str:
    """Return ``doc`` as a line of ASCII JSON.

    A single surrogate, which UTF-8 cannot encode, becomes a question mark.
    """
    text = json.dumps(doc)
    if "\\ud" not in text:
        return text
    return json.dumps(json.loads(json.dumps(doc, ensure_ascii=False).encode("utf-8", "replace")))
