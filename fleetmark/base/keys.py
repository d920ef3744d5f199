"""Check the keys of YAML files against their pydantic models, and name the right key in place of a wrong one.

A model can declare ``RENAMED``: the present name of each key that earlier files spell differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fleetmark.base.errors import suggest

_UNKNOWN = "extra_forbidden"


def key_errors(error: ValidationError, model: type[BaseModel]) -> list[tuple[ErrorDetails, str]]:
    """Return each error, and a sentence about its key if the key is unknown; the sentence is empty otherwise.

    Unknown keys come first, since they are often misspelt. A key is not reported as missing if its old name is there.
    """
    errors = sorted(error.errors(include_url=False), key=lambda one: one["type"] != _UNKNOWN)
    places = [one["loc"] for one in errors if one["type"] == _UNKNOWN]
    present = {(*place[:-1], _renamed(model, place)) for place in places}
    return [
        (one, _sentence(model, one["loc"]) if one["type"] == _UNKNOWN else "")
        for one in errors
        if one["type"] != "missing" or one["loc"] not in present
    ]


def _sentence(model: type[BaseModel], place: Sequence[int | str]) -> str:
    if renamed := _renamed(model, place):
        return f"this key is now called {renamed}; rename it"
    keys = sorted(
        {field.alias or name for part in _models(model, place[:-1]) for name, field in part.model_fields.items()}
    )
    return f"is not a valid key{suggest(str(place[-1]), keys)}; the keys are {', '.join(keys)}"


def _renamed(model: type[BaseModel], place: Sequence[int | str]) -> str:
    """Return the present name of the key at ``place``; empty if the key was never renamed."""
    names = (getattr(part, "RENAMED", {}).get(place[-1]) for part in _models(model, place[:-1]))
    return next((name for name in names if name), "")


def _models(annotation: Any, place: Sequence[int | str]) -> Iterator[type[BaseModel]]:
    """Yield the models that ``annotation`` has at ``place``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not place:
            yield annotation
        fields = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
        if place and place[0] in fields:
            yield from _models(fields[str(place[0])], place[1:])
        return
    is_container = getattr(annotation, "__origin__", None) in (dict, list, tuple, Mapping)
    for part in get_args(annotation):
        yield from _models(part, place[1:] if is_container else place)
