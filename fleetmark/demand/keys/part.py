"""What all parts of the document share, and keys that name quantiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from fleetmark.demand.amounts import plain

QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class Part(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def quantiles_of(value: object) -> Any:
    """Move keys such as ``p50`` from ``value`` into a mapping ``quantiles``."""
    if not isinstance(value, Mapping):
        return value
    ranks = {k: v for k, v in value.items() if QUANTILE.fullmatch(str(k))}
    return {**{k: v for k, v in value.items() if k not in ranks}, **({"quantiles": ranks} if ranks else {})}


def rank(key: str) -> float:
    """``p90`` as 0.9."""
    match = QUANTILE.fullmatch(key)
    assert match is not None
    return float(match[1]) / 100


def _gigabytes(value: object) -> Any:
    return value[: -len("GB")].strip() if isinstance(value, str) and value.strip().upper().endswith("GB") else value


Gigabytes = Annotated[float, plain(), BeforeValidator(_gigabytes)]
