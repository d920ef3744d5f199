"""Describe in one sentence what is wrong with a YAML file that its model refuses."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from fleetmark.base.keys import key_errors

_PLAIN = {
    "too_short": "is empty; add at least one",
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
    return [
        (one["loc"], sentence or _PLAIN.get(one["type"]) or _said(one["msg"]))
        for one, sentence in key_errors(error, model)
    ]


def _said(text: str) -> str:
    """Return pydantic's message in lower case, or a validator's message as it is."""
    message = text.removeprefix("Value error, ")
    return message if message != text else text.lower()
