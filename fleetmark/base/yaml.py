"""Reads YAML files as keys and values; every error is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fleetmark.base.errors import FleetmarkError


class _Unique(yaml.constructor.SafeConstructor):
    """Refuses a repeated key; PyYAML would keep the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Loader(_Unique, yaml.SafeLoader):
    """Written in Python: its errors name what is wrong in words that people know."""


class _FastLoader(_Unique, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """libyaml, where PyYAML was built with it: all manifests in a tenth of the time."""


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file's keys and values. Raises FleetmarkError naming the file and what is wrong."""
    try:
        text = path.read_text()
        raw = _load(text)
    except OSError as error:
        raise FleetmarkError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        raise FleetmarkError(f"{path}{line}: not YAML: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(raw, dict):
        raise FleetmarkError(f"{path}: expected keys and values, got {type(raw).__name__}")
    return raw


def _load(text: str) -> Any:
    try:
        return yaml.load(text, _FastLoader)
    except yaml.YAMLError:
        return yaml.load(text, _Loader)
