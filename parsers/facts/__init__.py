"""Convert command output of a host to facts: one module per command, named after it, each a pure function of bytes.

A command's module offers ``parse(raw) -> dict`` with plain values in base units (bytes, Hz, W). Values that the command
does not give are absent or None. ``load`` reads the document that ``playbooks/agent/facts/facts.py`` prints, and
``normalise`` makes the typed ``Facts`` of a host from it. Both functions refuse any other document with a one-sentence
error.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.parsers.facts._document import load
from fleetmark.parsers.facts._normalise import normalise

__all__ = ["load", "normalise", "parse", "tools"]


def tools() -> list[str]:
    """Return the sorted names that ``parse`` accepts."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def parse(tool: str, raw: bytes) -> dict[str, Any]:
    """Parse one output of ``tool``.

    Raise ParseError if the bytes contain no facts, and FleetmarkError if the tool has no parser.
    """
    if tool not in tools():
        near = difflib.get_close_matches(tool, tools(), 1)
        hint = f" did you mean {near[0]}?" if near else ""
        raise FleetmarkError(f"no facts parser for {tool!r};{hint} use one of {', '.join(tools())}")
    parsed: dict[str, Any] = importlib.import_module(f"fleetmark.parsers.facts.{tool}").parse(raw)
    return parsed
