"""Define the agent's replies as typed documents, checked on arrival and again when read from an archive.

No data from a host is used before one of these models accepts it. ``NoReply`` describes the error in an invalid reply,
and quotes at most a few characters.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import MOST_GPUS

MAX_LINE = 1 << 20  # maximum bytes per line from a host; an encoded part of a file takes 350 KiB
MAX_PART = 256 << 10  # maximum uncompressed bytes of a file per line
MAX_FILE = 256 << 20  # maximum bytes of one output file of a step
MAX_STEP = 1 << 30  # maximum bytes of all its files
MAX_RESULT_BYTES = 2 << 20  # maximum bytes of result.json; 600 samples of about 50 sensors take 0.3 MiB

Moment = Annotated[float, Field(ge=0, le=4e9, allow_inf_nan=False)]  # Unix seconds, until 2096
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=1 << 53)]
Words = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
StepId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]


class NoReply(FleetmarkError):
    """Report a host's output that is not a reply of Fleetmark's agent."""


class _Reply(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, strict=True)


class Extremes(_Reply):
    """The extremes of one sensor during a step."""

    min: Number
    mean: Number
    max: Number


class Accelerator(_Reply):
    """One device during a step. ``slowed``: throttling reason to its share of samples; ``errors``:
    kind to the driver's counts of memory errors at the first and the last sample.
    """

    index: Annotated[int, Field(ge=0, le=MOST_GPUS)]
    name: Annotated[str, Field(max_length=200)]
    gauges: Annotated[dict[str, Extremes], Field(max_length=20)] = {}
    energy_j: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None
    slowed: Annotated[dict[str, Share], Field(max_length=20)] = {}
    errors: Annotated[dict[str, tuple[Count, Count]], Field(max_length=4)] = {}


class Accelerators(_Reply):
    """Telemetry of a host's accelerators during a step.

    ``samples``: columns for all devices, with a separate time column ``t``.
    """

    source: Literal["nvml", "nvidia-smi", "amdgpu", "npu-smi"]
    samples: Annotated[dict[str, list[Number | None]], Field(max_length=20)] = {}
    devices: Annotated[list[Accelerator], Field(max_length=64)] = []


class StepTelemetry(_Reply):
    """Telemetry of a host during a step.

    ``samples``: columns of the same length as ``t``, the seconds since ``started`` (Unix seconds of the host's clock).
    ``counters``: the increase of each counter by network device (``net:eth0``, ``rdma:mlx5_0/1``).
    """

    samples: dict[str, list[Number | None]] = {}
    summary: dict[str, Extremes] = {}
    started: Moment | None = None
    foreign_cores: Number | None = None
    stolen_cores: Number | None = None
    gpus: Accelerators | None = None
    counters: Annotated[dict[Name, Annotated[dict[Name, Count], Field(max_length=128)]], Field(max_length=32)] = {}


class Tried(_Reply):
    """Report the setting during a step of a trial: whether it was the new one, and the values read after the step."""

    is_new: bool = Field(alias="on")
    values: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=100)] = []


class Result(_Reply):
    """``result.json``: how a step ended.

    ``reason``: the agent's reason; ``rc``: exit status, negative for a signal.
    """

    ended: Literal["exit", "timeout", "flood", "stopped", "cancelled", "lost", "error", "dropped"]
    started: Moment
    wall_s: Seconds
    rc: Annotated[int, Field(ge=-255, le=255)] | None = None
    reason: Words | None = None
    telemetry: StepTelemetry | None = None
    setting: Tried | None = None
    left_out: Annotated[list[Words], Field(max_length=100)] = []  # files that the host did not send, with reasons


class Started(_Reply):
    """Report that the runner has started the job."""

    e: Literal["start"]


class Waits(_Reply):
    """Report that the runner waits for permission to start a step."""

    e: Literal["wait"]
    step: StepId


class Begins(_Reply):
    e: Literal["begin"]
    step: StepId


class Ready(_Reply):
    """Report that the server of a step is listening, or that a host is reserved."""

    e: Literal["ready"]
    step: StepId


class Part(_Reply):
    """The next bytes of an output file of a finished step: compressed with zlib, in base64, at most ``MAX_PART``
    bytes uncompressed.
    """

    e: Literal["part"]
    step: StepId
    name: Annotated[str, Field(min_length=1, max_length=255)]
    data: str


class Ended(_Reply):
    """Report that a step has finished and all its files were sent. ``files``: size in bytes by name."""

    e: Literal["end"]
    step: StepId
    files: dict[str, Annotated[int, Field(ge=0)]]


class Finished(_Reply):
    """Report the end of the runner: ``finished``, ``stopped: ...`` or ``died: ...``."""

    e: Literal["finish"]
    state: Words


class Over(_Reply):
    """Report that no step is running on the host.

    ``remaining``: steps without a result; None if the job's folder is missing.
    """

    e: Literal["over"]
    remaining: Annotated[int, Field(ge=0, le=10**9)] | None


Event = Started | Waits | Begins | Ready | Part | Ended | Finished | Over
_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="e")])


class Holder(_Reply):
    """The owner of the job on a busy host, as reported by the job. ``process`` comes from the kernel."""

    campaign: Words | None = None
    owner: Words | None = None
    since: Words | None = None
    process: Words | None = None


class Launch(_Reply):
    """The result of starting a host's job.

    ``failed_workloads``: why each failed workload could not be deployed; ``cleared`` and ``left``: values that were
    restored and values that could not be restored after an interrupted trial; ``warning``: a job of another user may
    run at the same time, or the end of a session can end the job.
    """

    state: Literal["started", "running", "finished", "nothing", "busy", "error"]
    error: Words | None = None
    holder: Holder | None = None
    cleared: Words | None = None
    left: Words | None = None
    warning: Words | None = None
    failed_workloads: dict[str, Words] = {}


_Model = TypeVar("_Model", bound=BaseModel)


def read(model: type[_Model], raw: bytes | str) -> _Model:
    """Parse ``raw`` (JSON) as ``model``. Raise NoReply with the invalid field and the problem."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise NoReply(_first(error)) from None


def read_event(line: bytes) -> Event:
    """Return the event in one line of ``follow.py``. Raise NoReply if the line is not an event."""
    try:
        return _EVENT.validate_json(line)
    except ValidationError as error:
        raise NoReply(_first(error)) from None


def read_launch(answer: object) -> Launch:
    """Return the result of the action plugin ``fleetmark_job`` as passed on by Ansible.

    Raise NoReply if it is invalid.
    """
    try:
        return Launch.model_validate(answer)
    except ValidationError as error:
        raise NoReply(_first(error)) from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"].startswith("union_tag"):
        return "an event of an unknown kind"
    location = ".".join(map(str, first["loc"]))[:80]
    return f"{location}: {first['msg'][:160]}" if location else first["msg"][:160]
