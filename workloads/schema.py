"""The JSON Schema of manifests, from their model: editors complete and check manifests by it."""

from __future__ import annotations

import json
from typing import Any

from workloads.manifest import SCHEMA, Manifest


def document() -> dict[str, Any]:
    """Return the schema of a manifest's file. Its name is that of the file, so the file does not hold it."""
    model = Manifest.model_json_schema(by_alias=True)
    model["properties"].pop("name")
    required = [key for key in model.pop("required") if key != "name"]
    model["properties"]["like"] = {
        "type": "string",
        "description": "The workload that this one starts from: its keys are overlaid one by one, null removes one.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fleetmark:manifest:{SCHEMA}",
        **model,
        "title": "Fleetmark workload manifest",
        "description": f"A workload of Fleetmark, schema {SCHEMA}.",
        "if": {"not": {"required": ["like"]}},
        "then": {"required": required},
    }


def text() -> str:
    """Return the schema as its file has it."""
    return json.dumps(document(), indent=1) + "\n"
