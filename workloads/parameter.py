"""Define parameters of workloads and convert user input to typed values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import parse_bytes, parse_seconds

ParameterType = Literal["int", "float", "bool", "str", "bytes", "seconds", "source"]


class Parameter(BaseModel, defer_build=True):
    """A parameter that users can set.

    A ``many`` parameter is a list; a single value becomes a list of one. The list may be empty only if its default is.
    """

    RENAMED: ClassVar = {"about": "description"}
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: ParameterType
    description: str
    default: Any
    many: bool = False
    choices: tuple[Any, ...] = ()
    min: float | None = None

    def coerce(self, value: Any, place: str) -> Any:
        """Return ``value`` as this parameter's type, or raise FleetmarkError with ``where`` and the allowed values."""
        if self.many:
            items = value if isinstance(value, list | tuple) else _split(value)
            if not items and self.default != []:
                raise FleetmarkError(f"{place}: needs at least one value")
            return [self._one(v, place) for v in items]
        if isinstance(value, list | tuple):
            raise FleetmarkError(f"{place}: must be a single {self.type}, not a list")
        return self._one(value, place)

    def _one(self, value: Any, place: str) -> Any:
        try:
            converted = _CONVERT[self.type](value)
        except (ValueError, TypeError, FleetmarkError) as error:
            raise FleetmarkError(f"{place}: {value!r} is not {_SPOKEN[self.type]}") from error
        if self.choices and converted not in self.choices:
            raise FleetmarkError(f"{place}: {converted!r} is not one of {', '.join(map(str, self.choices))}")
        if self.min is not None and converted < self.min:
            raise FleetmarkError(f"{place}: {converted} is below the minimum of {self.min:g}")
        return converted


def _split(value: Any) -> list[Any]:
    return [v.strip() for v in value.split(",") if v.strip()] if isinstance(value, str) else [value]


def _int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(value)
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _bool(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    return words[str(value).lower()] if str(value).lower() in words else _refuse(value)


def _str(value: Any) -> str:
    return _refuse(value) if isinstance(value, dict) else str(value)


def _source(value: Any) -> str:
    """Return a URL unchanged, and a local file as an absolute path, since Ansible runs in another folder."""
    text = _str(value)
    if not text or text.startswith(("http://", "https://")):
        return text
    path = Path(text).expanduser().resolve()
    return str(path) if path.is_file() else _refuse(text)


def _refuse(value: Any) -> Any:
    raise ValueError(value)


_CONVERT: Mapping[str, Any] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "bytes": parse_bytes,
    "seconds": parse_seconds,
    "source": _source,
}
_SPOKEN = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "str": "text",
    "bytes": "a size (4096, 4k, 16MiB, 2GB)",
    "seconds": "a time (30, 30s, 5m, 2h)",
    "source": "a file on this machine or a URL",
}
