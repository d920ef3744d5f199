"""The JSON Schema of manifests, from their model: editors complete and check manifests by it."""

from __future__ import annotations

import json
from typing import Any

from workloads.manifest import SCHEMA, Manifest

_DEFS = "#/$defs/"
_PARTIAL = "Partial"  # begins the definitions for manifests that are like another: their mappings may lack keys


def document() -> dict[str, Any]:
    """Return the schema of a manifest's file. Its name is that of the file, so the file does not hold it."""
    model = Manifest.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = model.pop("$defs")
    del model["properties"]["name"]
    model["required"].remove("name")
    model["title"] = "Manifest"
    partial = _partial(model)
    partial["properties"]["like"] = {
        "type": "string",
        "description": "The workload that this one starts from: keys are overlaid one by one, null removes one.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fleetmark:manifest:{SCHEMA}",
        "title": "Fleetmark workload manifest",
        "description": f"A workload of Fleetmark, schema {SCHEMA}.",
        "if": {"required": ["like"]},
        "then": {"$ref": f"{_DEFS}{_PARTIAL}Manifest"},
        "else": {"$ref": f"{_DEFS}Manifest"},
        "$defs": {
            **definitions,
            "Manifest": model,
            **{_PARTIAL + name: _partial(definition) for name, definition in definitions.items()},
            f"{_PARTIAL}Manifest": partial,
        },
    }


def text() -> str:
    """Return the schema as its file has it."""
    return json.dumps(document(), indent=1) + "\n"


def _partial(part: Any) -> Any:
    """Return a part of the schema in which no key is required, and null may stand for a value of a mapping."""
    if isinstance(part, list):
        return [_partial(item) for item in part]
    if not isinstance(part, dict):
        return part
    relaxed = {key: _partial(value) for key, value in part.items() if key != "required"}
    if isinstance(relaxed.get("$ref"), str):
        relaxed["$ref"] = relaxed["$ref"].replace(_DEFS, _DEFS + _PARTIAL)
    if isinstance(relaxed.get("additionalProperties"), dict):
        relaxed["additionalProperties"] = {"anyOf": [relaxed["additionalProperties"], {"type": "null"}]}
    return relaxed
