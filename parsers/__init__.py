"""Convert raw output to measurements: one module or package per tool, named after it.

Every parser is a pure function of bytes. A tool's module offers ``parse(raw, command=()) -> Parsed``. ``command`` is
the argument vector that produced the output, if known: the output of some tools (lmbench's bw_mem) does not name the
measured quantity.

A tool whose logs can exceed the memory also has ``parse_stream(file, command=())``, which reads piece by piece. For all
other tools, at most MAX_BYTES are read.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.bounds import bounded

if TYPE_CHECKING:
    from fleetmark.parsers.kit.foreign import Foreign

MAX_BYTES = 16 << 20  # maximum output held in memory; as Python objects, JSON of this size takes up to 400 MB

_HERE = Path(__file__).resolve().parent
_NO_TOOLS = {
    "facts",
    "kit",
    "published",
    "nccl",
    "serving",
    "spec_cpu",
    "training",
}  # packages for hosts, tables and shared code


def tools() -> list[str]:
    """Return the sorted names of all parsers, including those in external folders."""
    return sorted(_paths())


def path_of(tool: str) -> Path | None:
    """Return the path of a parser's module, or of its ``__init__.py``; None if the tool has no parser."""
    return _paths().get(tool)


def _paths() -> dict[str, Path]:
    names = {m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")} - _NO_TOOLS
    paths = {name: _HERE / f"{name}.py" for name in names}
    return extensions.gather(
        "the parser", {n: p if p.is_file() else p.with_suffix("") / "__init__.py" for n, p in paths.items()}, "parsers"
    )


def parse(tool: str, raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Parse one output of ``tool``. The result is ``invalid`` if it contains a physically impossible figure.

    Raise ParseError if the output has no measurement, and FleetmarkError if the tool has no parser.
    """
    parsed: Parsed = find(tool).parse(raw, command)
    return bounded(parsed)


def parse_file(tool: str, file: BinaryIO, command: Sequence[str] = ()) -> Parsed:
    """Parse one output of ``tool`` from an open file, with little memory if its parser supports that.

    For any contents without a measurement, raise FleetmarkError (or its subclass ParseError). Also raise it for a file
    over MAX_BYTES that the parser would have to hold whole. MemoryError is not caught.
    """
    module = find(tool)
    try:
        if hasattr(module, "parse_stream"):
            parsed: Parsed = bounded(module.parse_stream(file, command))
        else:
            parsed = parse(tool, read_at_most(tool, file), command)
        _all_text(parsed)
    except (FleetmarkError, MemoryError):
        raise
    except Exception as error:  # a parser may fail on unexpected output; this costs one run, not the campaign
        detail = (str(error).splitlines() or [""])[0][:160]
        raise FleetmarkError(f"{tool}'s output cannot be read: {type(error).__name__}: {detail}") from error
    return parsed


def read_at_most(tool: str, file: BinaryIO) -> bytes:
    """Return the whole ``file``. Raise FleetmarkError, naming both sizes, if it is larger than MAX_BYTES."""
    raw = file.read(MAX_BYTES + 1)
    if len(raw) <= MAX_BYTES:
        return raw
    size = f"{file.seek(0, os.SEEK_END) / (1 << 20):.1f} MiB" if file.seekable() else "larger"
    raise FleetmarkError(
        f"{tool}'s output cannot be read: it is {size}, and at most {MAX_BYTES >> 20} MiB are read at once"
    )


def _all_text(parsed: Parsed) -> None:
    """Raise UnicodeEncodeError if a name is not valid text: JSON can contain half a surrogate pair."""
    named = [parsed.version, parsed.invalid, *parsed.notes]
    named += [
        text for m in parsed.measurements for text in (m.case, m.subject, m.metric, *m.labels, *m.labels.values())
    ]
    "".join(filter(None, named)).encode()


def find(tool: str) -> ModuleType | Foreign:
    """Return the parser of a tool. Raise FleetmarkError, listing the known names, if there is none."""
    return _find(tool, extensions.state())


@cache
def _find(tool: str, _: str) -> ModuleType | Foreign:
    path = path_of(tool)
    if path is None:
        near = difflib.get_close_matches(tool, tools(), 1)
        hint = f" did you mean {near[0]}?" if near else ""
        raise FleetmarkError(f"no parser for {tool!r}:{hint} Fleetmark reads {', '.join(tools())}")
    if path.is_relative_to(_HERE):
        return importlib.import_module(f"fleetmark.parsers.{tool}")
    from fleetmark.parsers.kit.foreign import (
        Foreign,  # the parser process imports this module and does not need pydantic
    )

    return Foreign(tool, path)
