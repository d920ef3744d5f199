"""Describe in one sentence what is wrong with a YAML file that its model refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fleetmark.base.errors import suggest

_PLAIN = {
    "too_short": "is empty; name one at least",
    "missing": "is missing",
    "string_type": "must be text; put it in quotes",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of names to values",
}


def misfit(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first error with its place. Unknown keys come first, since they are often misspelt."""
    place, text = misfits(error, model)[0]
    return f"{'.'.join(map(str, place))}: {text}"


def misfits(error: ValidationError, model: type[BaseModel]) -> list[tuple[tuple[int | str, ...], str]]:
    """Return the place and description of each error, unknown keys first."""
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    return [(fault["loc"], _text(fault, model)) for fault in faults]


def _text(fault: ErrorDetails, model: type[BaseModel]) -> str:
    *within, key = fault["loc"] or ("",)
    if fault["type"] == "extra_forbidden":
        return f"is not a valid key{suggest(str(key), list(_keys(model, within)))}"
    return _PLAIN.get(fault["type"], fault["msg"].removeprefix("Value error, ").lower())


def _keys(model: type[BaseModel], within: list[Any]) -> Iterator[str]:
    """Return the keys that a place within a model may have; none if the place is not a model."""
    model_here: type[BaseModel] | None = model
    for name in within:
        if model_here is not None and isinstance(name, str):
            field = model_here.model_fields.get(name)
            model_here = next(_models(field.annotation), None) if field else None
    if model_here is not None:
        for name, field in model_here.model_fields.items():
            yield field.alias or name


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Return the models in a type, such as ``tuple[Rule, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
