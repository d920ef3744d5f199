"""Define the base class of all parts of the document, and keys that name quantiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, TypeAdapter, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fleetmark.demand.amounts import Written, plain

QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class Part(BaseModel, defer_build=True):
    """A mapping of the document.

    ``BARE`` is a type that a file may have in place of the mapping.
    """

    BARE: ClassVar[Any] = None

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the file's content: quantiles are separate keys, and ``BARE`` is allowed."""
        reference = handler(core)
        schema = handler.resolve_ref_schema(reference)
        quantiles = schema["properties"].pop("quantiles", None)
        if quantiles is not None:
            values = next(kind for kind in quantiles["anyOf"] if kind.get("type") == "object")
            schema["patternProperties"] = {f"^{QUANTILE.pattern}$": values["additionalProperties"]}
        if cls.BARE is not None:
            mapping = dict(schema)
            schema.clear()
            schema["anyOf"] = [mapping, TypeAdapter(cls.BARE).json_schema()]
        return reference


class Valued(Part):
    """A mapping whose ``value`` may stand in its place."""

    BARE: ClassVar[Any] = Written

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"value": value}


def quantiles_of(value: object) -> Any:
    """Move keys such as ``p50`` from ``value`` into a mapping ``quantiles``."""
    if not isinstance(value, Mapping):
        return value
    ranks = {k: v for k, v in value.items() if QUANTILE.fullmatch(str(k))}
    return {**{k: v for k, v in value.items() if k not in ranks}, **({"quantiles": ranks} if ranks else {})}


def rank(key: str) -> float:
    """Return the rank of a quantile's key: 0.9 for ``p90``."""
    match = QUANTILE.fullmatch(key)
    assert match is not None
    return float(match[1]) / 100


def _gigabytes(value: object) -> Any:
    return value[: -len("GB")].strip() if isinstance(value, str) and value.strip().upper().endswith("GB") else value


Gigabytes = Annotated[float, plain(), BeforeValidator(_gigabytes, json_schema_input_type=Written)]
