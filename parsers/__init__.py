"""Raw text to measurements: one module per tool, found by its name; every parser is a pure function of bytes.

A tool's module offers ``parse(raw, command=()) -> Parsed``. ``command`` is the argument vector that made it, where
known: some tools (lmbench's bw_mem) do not say what they measured. A tool whose logs outgrow memory has
``parse_stream(file, command=())`` as well, which reads as it goes.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Sequence
from types import ModuleType
from typing import BinaryIO

from fleetmark.model import FleetmarkError, Parsed
from parsers._bounds import bounded


def tools() -> list[str]:
    """The names ``parse`` understands, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and not m.name.startswith("_"))


def parse(tool: str, raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Parse one output of ``tool``; ``invalid`` where it holds a figure that is physically impossible.

    Raises ParseError where the bytes hold no measurement, FleetmarkError for a tool nobody parses.
    """
    parsed: Parsed = find(tool).parse(raw, command)
    return bounded(parsed)


def parse_file(tool: str, file: BinaryIO, command: Sequence[str] = ()) -> Parsed:
    """Parse one output of ``tool`` from an open file, in little memory where its parser can. Raises as ``parse``."""
    module = find(tool)
    if hasattr(module, "parse_stream"):
        streamed: Parsed = module.parse_stream(file, command)
        return bounded(streamed)
    return parse(tool, file.read(), command)


def find(tool: str) -> ModuleType:
    """The parser of that name. Raises FleetmarkError, naming those there are, for a tool nobody parses."""
    if tool not in tools():
        near = difflib.get_close_matches(tool, tools(), 1)
        hint = f" did you mean {near[0]}?" if near else ""
        raise FleetmarkError(f"no parser for {tool!r}:{hint} Fleetmark reads {', '.join(tools())}")
    return importlib.import_module(f"parsers.{tool}")
