"""Generate JSON Schemas for the files and documents that other programs read or write."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from fleetmark.api import documents
from fleetmark.base import schema
from fleetmark.base.facts import Facts
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.demand.document import Document as PlanQuestion
from fleetmark.planner.peers import Outlier
from fleetmark.record.diagnosis.gate import Rules
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.workloads.suite import Suite

_DIALECT = GenerateJsonSchema.schema_dialect
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


class CampaignHost(BaseModel):
    """A host of the inventory. ``peer``: the address for connections from other hosts."""

    model_config = ConfigDict(extra="forbid")

    name: str
    address: str | None
    peer: str | None
    port: int | None
    user: str | None
    generation: str | None
    labels: dict[str, str]


class CampaignFile(Request):
    """A campaign's request, its hosts, and the versions that ran it.

    ``jobs``, ``facts`` and ``sha256`` are SHA-256 digests. ``planned``: the hosts in the order of their schedule.
    ``signature``: an HMAC by the user who started the campaign.
    """

    model_config = ConfigDict(extra="forbid")

    version: int = Field(alias="schema")
    hosts: list[CampaignHost]  # type: ignore[assignment]
    command: list[str]
    shared: str | None = None
    parent: str = ""
    versions: dict[str, str]
    extensions: JsonValue = None
    sha256: dict[str, str]
    adopted: str | None = None
    signature: str


class FactsFile(BaseModel):
    """A host: its facts, and the raw output of each command that they were parsed from."""

    model_config = ConfigDict(extra="forbid")

    facts: Facts
    raw: dict[str, JsonValue]


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file."""
    makers: Mapping[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "campaign": ("campaign.json of a campaign", lambda: CampaignFile.model_json_schema(by_alias=True)),
        "facts": ("facts/HOST.json of a campaign", FactsFile.model_json_schema),
        "measurements": ("A row of measurements.parquet", _measurement),
        "suite": ("A suite file", _suite),
        "gate": ("A file of acceptance rules", Rules.model_json_schema),
        "plan-question": ("The input of fleetmark plan", lambda: PlanQuestion.model_json_schema(by_alias=True)),
        "report": ("fleetmark report --format json", lambda: _document(documents.CampaignReport)),
        "compare": ("fleetmark compare --format json", lambda: _document(documents.ComparisonReport)),
        "diagnose": ("fleetmark diagnose --format json", lambda: _document(documents.DiagnosisReport)),
        "plan": (
            "fleetmark plan --format json",
            lambda: _document(documents.PlanReport | documents.PlanConflict),
        ),
        "plan-review": ("fleetmark plan review --format json", lambda: _document(documents.ReviewReport)),
    }
    return {
        f"{name}.schema.json": {
            "$schema": _DIALECT,
            "$id": f"urn:fleetmark:{name}:1",
            **make(),
            "title": title,
        }
        for name, (title, make) in makers.items()
    }


def texts() -> dict[str, str]:
    """Return the content of every schema file by its name."""
    return {name: json.dumps(document, indent=1) + "\n" for name, document in schemas().items()}


def _measurement() -> dict[str, Any]:
    """Return the schema of a row of measurements, from the declaration of its columns."""
    properties: dict[str, dict[str, Any]] = {
        c.name: {"type": _JSON_TYPES[c.type], "description": c.description}
        | ({} if c.default is None else {"default": c.default})
        for c in schema.COLUMNS
    }
    return {
        "description": "Text columns of earlier versions may be missing; each has a default.",
        "type": "object",
        "properties": properties,
        "required": [c.name for c in schema.COLUMNS if c.default is None],
        "additionalProperties": False,
    }


def _suite() -> dict[str, Any]:
    """Return the schema of a suite file. The file name gives the suite's name, so the file has no such key."""
    model = Suite.model_json_schema(by_alias=True)
    del model["properties"]["name"]
    model["required"].remove("name")
    return model


def _document(declared: Any) -> dict[str, Any]:
    """Return the schema of a printed document: all its keys are present, and there are no others."""
    model = TypeAdapter(declared).json_schema()
    if "properties" in model:  # present in files, absent on a terminal
        model["properties"]["manifest"] = {"type": "object", "description": "The source of the figures: `verify`."}
    parts = [*model.get("$defs", {}).values(), model]
    for part in parts:
        if "properties" not in part:
            continue
        if part["title"] == RatioRow.__name__:
            part["properties"] = {name.rstrip("_"): value for name, value in part["properties"].items()}
        if part["title"] in (RatioRow.__name__, Outlier.__name__):
            part["required"] = list(part["properties"])
        # Parts with tables have further keys, which are the names of the tables.
        if part["title"] != documents.TablePart.__name__:
            part["additionalProperties"] = False
    return model
