"""What is wrong with a YAML file that its model refuses, in one sentence for who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fleetmark.base.errors import suggest

_PLAIN = {
    "too_short": "is empty; name one at least",
    "missing": "is missing",
    "string_type": "is no text; put it into quotes",
    "tuple_type": "is no list",
    "list_type": "is no list",
    "dict_type": "is no mapping of names to values",
    "model_type": "is no mapping of names to values",
}


def misfit(error: ValidationError, model: type[BaseModel]) -> str:
    """The place and what is wrong there. A key that does not belong comes first: one that is missing is often it."""
    faults = error.errors()
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    *within, key = first["loc"] or ("",)
    if first["type"] == "extra_forbidden":
        text = f"is no key here{suggest(str(key), list(_keys(model, within)))}"
    else:
        text = _PLAIN.get(first["type"], first["msg"].removeprefix("Value error, ").lower())
    return f"{'.'.join(map(str, first['loc']))}: {text}"


def _keys(model: type[BaseModel], within: list[Any]) -> Iterator[str]:
    """The keys that a place within a model may have; none where it is no model."""
    at: type[BaseModel] | None = model
    for name in within:
        if at is not None and isinstance(name, str):
            field = at.model_fields.get(name)
            at = next(_models(field.annotation), None) if field else None
    if at is not None:
        for name, field in at.model_fields.items():
            yield field.alias or name


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type, such as ``tuple[Rule, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
