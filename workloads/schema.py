"""Generate the JSON Schema of manifests from their model, so that editors can complete and check manifests."""

from __future__ import annotations

import json
from typing import Any

from fleetmark.workloads.manifest import SCHEMA, Manifest

_DEFS = "#/$defs/"
_PARTIAL = "Partial"  # prefix of definitions for manifests with ``like``, whose mappings may omit keys


def document() -> dict[str, Any]:
    """Return the schema of a manifest file. The file name gives the manifest's name, so the file has no such key."""
    model = Manifest.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = model.pop("$defs")
    del model["properties"]["name"]
    model["required"].remove("name")
    model["title"] = "Manifest"
    partial = _partial(model)
    partial["properties"]["like"] = {
        "type": "string",
        "description": "The workload that this one is based on. Mappings are merged by key, and null removes a key.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fleetmark:manifest:{SCHEMA}",
        "title": "Fleetmark workload manifest",
        "description": f"Fleetmark workload, schema version {SCHEMA}.",
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
    """Return the content of the schema file."""
    return json.dumps(document(), indent=1) + "\n"


def _partial(part: Any) -> Any:
    """Return a part of the schema with all keys optional and null allowed as a value in mappings."""
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
