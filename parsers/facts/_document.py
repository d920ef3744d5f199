"""Check the document that playbooks/agent/facts/facts.py prints before anything in it is used.

Hosts are not trusted: any other document, or one that is too large, is refused with one sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import printable

MOST_TEXT = 4 << 20  # characters of all strings together; a host with 8 GPUs and 512 CPUs has about 300 KiB
_MOST_VALUES = 500_000  # number of values in all lists and objects together
_WIDEST = 63  # bits of an integer

_Whole = Annotated[int, Field(ge=0, lt=1 << _WIDEST)]
_Port = Annotated[int, Field(ge=1, le=65_535)]
_Name = Annotated[str, Field(max_length=255)]
_Mask = Annotated[str, Field(pattern=r"^[0-9a-f]{1,512}$")]
_Code = Annotated[str, Field(pattern=r"^[0-9]{1,5}$")]
_Path = Annotated[str, Field(max_length=4096)]


class _Part(BaseModel, defer_build=True):
    """A part of the document; unknown fields are ignored, since another release of facts.py may print more."""

    model_config = ConfigDict(frozen=True, strict=True)


class Answer(_Part):
    """The answer of one command. If there was no answer, ``rc`` is None and ``err`` is the reason."""

    rc: int | None
    out: str
    err: str


class Idle(_Part):
    """An idle state over all CPUs, with times in µs."""

    name: _Name
    latency_us: _Whole
    us: _Whole
    cpus: _Whole
    disabled: _Whole


class Card(_Part):
    """Ethtool's information about an interface."""

    rings: Answer
    counters: Answer


class Space(_Part):
    """The file system that jobs write to, or why it could not be queried."""

    bavail_bytes: _Whole | None = None
    total_bytes: _Whole | None = None
    fstype: str | None = None
    error: str | None = None


class Document(_Part):
    """The parts of facts.py's output that Fleetmark reads."""

    time: Annotated[float, Field(ge=0, le=4e9, allow_inf_nan=False)]
    hostname: _Name
    slurm_node: str | None = None
    user: _Name
    euid: _Whole
    python: _Path
    python_version: _Name
    work: _Path
    uname: dict[str, str] = {}
    affinity: _Whole | None = None
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    nics: list[str] = []
    counted: dict[str, dict[str, _Whole]] = {}
    libraries: dict[str, list[str]] = {}
    xids: Annotated[dict[_Code, _Whole], Field(max_length=1000)] | None = None
    running: _Whole | None = None
    sessions: _Whole | None = None
    users: list[_Name] = []
    ports: list[_Port] = []
    idle_states: dict[str, Idle] = {}
    interrupts: dict[str, dict[str, str]] = {}
    ethtool: dict[str, Card] = {}
    link_modes: dict[str, _Mask] = {}
    holders: dict[str, list[str]] = {}
    claimed: dict[str, str] = {}
    statvfs: Space = Space()
    cached: list[str] = []
    which: dict[str, str | None] = {}
    probed: dict[str, Answer] = {}
    caches: list[list[str]] = []
    pci: dict[str, dict[str, str]] = {}
    sudo: bool | None = None
    commands: dict[str, Answer] = {}
    torch: dict[str, Answer] = {}
    containers: dict[str, Answer] = {}


def load(raw: bytes) -> dict[str, Any]:
    """Return the document in ``raw``, a line of JSON. Raise FleetmarkError, in one sentence, for anything else."""
    if len(raw) > 8 * MOST_TEXT:
        raise FleetmarkError(f"the host's facts are {len(raw) >> 20} MiB, which is too large: {_AGAIN}")
    try:
        doc = json.loads(raw)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, a number with thousands of digits, endless brackets
        raise FleetmarkError(f"the host's facts are not readable JSON: {_AGAIN}") from None
    check(doc)
    return dict(doc)


def check(doc: object) -> None:
    """Raise FleetmarkError, in one sentence, for a document that facts.py did not print."""
    if not isinstance(doc, Mapping) or doc.get("schema") != 1:
        raise FleetmarkError(
            f"the host's facts are not a document of schema 1: {_AGAIN} with this Fleetmark's facts.py"
        )
    _check_size(doc)
    try:
        Document.model_validate(dict(doc))
    except ValidationError as error:
        raise damaged(error) from None


def damaged(error: ValidationError, prefix: str = "") -> FleetmarkError:
    """Return one sentence about the first error in the host's facts; ``prefix`` is the place in the document."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = printable(".".join(filter(None, [prefix, *map(str, first["loc"])])))[:80]
    return FleetmarkError(f"the host's facts are damaged at {place}: {first['msg'][:160]}; {_AGAIN}")


_AGAIN = "gather them again"


def _check_size(doc: Mapping[str, Any]) -> None:
    """Refuse a document that is too large, without recursion, because nesting may be as deep as the text is long."""
    text = values = 0
    waiting: list[object] = [doc]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, str):
            text += len(value)
        elif isinstance(value, Mapping):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, int) and value.bit_length() > _WIDEST:
            raise FleetmarkError(f"the host's facts hold a number of {value.bit_length()} bits: {_AGAIN}")
        if text > MOST_TEXT:
            raise FleetmarkError(f"the host's facts hold more than {MOST_TEXT >> 20} MiB of text: {_AGAIN}")
        if values + len(waiting) > _MOST_VALUES:
            raise FleetmarkError(f"the host's facts hold more than {_MOST_VALUES:,} values: {_AGAIN}")
