"""Define the types of a schedule: commands on hosts, pairs of commands, and cases that cannot run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command on one host: a repeat of a case, or the server side of a peer's step (``serves``).

    A serving step without ``argv`` reserves its host for a case that several hosts run together.
    """

    id: str
    workload: str
    case: str
    repeat: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    expect_s: float
    timeout_s: float
    output: str = "stdout"
    class_: str = ""  # if it differs from the workload's
    headline: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    subject: str = "host"
    exclusive: tuple[str, ...] = ()
    serve: Mapping[str, Any] | None = None
    gate: bool = False
    port: int | None = None
    serves: bool = False
    ends: bool = True  # whether a serving step ends by itself after one client
    members: tuple[str, ...] = ()  # the hosts that run the step together, in order, this host first
    container: str = ""  # the container image of the command; empty for none
    last: bool = False  # the last step of the workload on this host; the workload's scratch files are then removed

    @property
    def title(self) -> str:
        """Return a readable name of the step."""
        return f"{self.workload} {self.case} repeat {self.repeat}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, for JSON. ``dataclasses.asdict`` would copy them all, at ten times the cost."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> Step:
        """Return a step from ``jobs/HOST.json`` or ``step.json``. Other keys are ignored."""
        values = {name: doc[name] for name in Step.__dataclass_fields__ if name in doc}
        lists = {k: tuple(doc.get(k, ())) for k in ("argv", "files", "exclusive", "headline", "members")}
        return cls(**{**values, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep(Step):
    """The content of ``step.json``.

    ``excuse``: why the controller itself skipped, failed or cancelled the step.
    """

    host: str
    excuse: str = ""


def _is_item(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raise ValueError if an item names no file or command to set."""
    words = [item.get(name) for name in ("read", "write")]
    command = isinstance(item.get("match"), str) and all(isinstance(w, list | tuple) and w for w in words)
    if command:
        command = all(isinstance(word, str) for command_words in words for word in command_words or ())
    if not isinstance(item.get("value"), str) or not (command or (isinstance(item.get("path"), str) and item["path"])):
        raise ValueError("names no file or command that is set to a value")
    return item


@dataclass(frozen=True, slots=True)
class Trial:
    """A setting that a trial applies on one host.

    ``rule``: the rule that suggests the setting; ``items``: the values to set, in the form of the planner's
    ``Setting.as_json``; ``sides``: for each repeat, whether the setting is applied.
    """

    host: str
    rule: str
    items: Sequence[Annotated[Mapping[str, Any], AfterValidator(_is_item)]]
    sides: Sequence[bool]

    def as_job(self) -> dict[str, Any]:
        """Return the step's part of the host's job."""
        return {"items": [dict(item) for item in self.items], "sides": list(self.sides)}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Pair a serving step with the step on another host that measures against it or together with it."""

    server: str
    server_step: str
    client: str
    client_step: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The playbook's input to deploy a workload's tool on a host; skipped if ``provides`` is absent."""

    workload: str
    provides: str
    dest: str
    params: Mapping[str, Any]
    packages: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A case that cannot run on the requested group of hosts, and the reason."""

    workload: str
    case: str
    reason: str


@dataclass(slots=True, kw_only=True)
class HostSchedule:
    """The steps that a host will run, the entries that it skips with the reason, and the cases that it refuses.

    ``unmet``: entries whose condition the host does not meet; ``disk``: the maximum size of an entry's files in bytes.
    """

    host: str
    steps: list[Step] = field(default_factory=list)
    deploy: list[Deployment] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    unmet: dict[str, str] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Schedule:
    hosts: Mapping[str, HostSchedule]
    exchanges: tuple[Exchange, ...]
    settings: Mapping[str, Mapping[str, Any]]  # suite entry -> parameters set by suite and command line
