"""What a host may say: the agent's replies as typed documents, checked at the door and again when read from an archive.

Nothing that a host sends is used before it has passed one of these models. What breaks them is ``NoReply``, which says
what was wrong and never repeats more than a few characters of it.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleetmark.base.errors import FleetmarkError

MAX_RESULT_BYTES = 8 << 20  # of a step's result.json: 600 samples of some 50 sensors are 0.5 MiB

Moment = Annotated[float, Field(ge=0, le=4e9, allow_inf_nan=False)]  # Unix seconds, until 2096
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Words = Annotated[str, Field(max_length=2000)]
StepId = Annotated[str, Field(pattern=r"^[0-9]{1,9}$")]


class NoReply(FleetmarkError):
    """A host sent what is no reply of Fleetmark's agent."""


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class Extremes(_Reply):
    """Of one sensor over a step."""

    min: Number
    mean: Number
    max: Number


class Telemetry(_Reply):
    """What the host was like while a step ran. ``samples`` are columns, of the same length as ``t`` (seconds)."""

    samples: dict[str, list[Number | None]] = {}
    summary: dict[str, Extremes] = {}
    foreign_cores: Number | None = None
    stolen_cores: Number | None = None


class Result(_Reply):
    """``result.json``: how a step ended. ``reason`` is the agent's, ``rc`` negative for a signal."""

    ended: Literal["exit", "timeout", "flood", "stopped", "cancelled", "lost", "error", "dropped"]
    started: Moment
    wall_s: Seconds
    rc: Annotated[int, Field(ge=-255, le=255)] | None = None
    reason: Words | None = None
    telemetry: Telemetry | None = None


_Model = TypeVar("_Model", bound=BaseModel)


def read(model: type[_Model], raw: bytes | str) -> _Model:
    """``raw`` (JSON) as ``model``. Raises NoReply, saying which field is wrong and how."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise NoReply(f"{where}: {first['msg'][:160]}" if where else first["msg"][:160]) from None
