"""Define errors whose message is one clear sentence, and helpers for such sentences."""

from __future__ import annotations

import difflib
import importlib
import warnings
from collections.abc import Mapping
from typing import Any


class FleetmarkError(Exception):
    """Report an error that the user can fix in one clear sentence: the place, the problem, and the advice."""


class CannotKeep(FleetmarkError):
    """Report that a campaign's results cannot be written, for example to a full disk. This is not a usage error."""


class LeftOut(UserWarning):
    """Warn in one sentence that a damaged part of the record is omitted, with the reason."""


def required(package: str, extra: str, subject: str) -> Any:
    """Import and return ``package``, an optional dependency that the extra ``extra`` installs.

    ``subject``: the feature that needs the package, at the start of the message: "a PDF". Raise FleetmarkError if the
    package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = _NAMES.get(package.partition(".")[0], package.partition(".")[0])
        raise FleetmarkError(f"{subject} needs {name}: pip install 'fleetmark[{extra}]'") from error


_NAMES = {"vl_convert": "vl-convert", "weasyprint": "WeasyPrint", "ibis": "Ibis", "pyspark": "PySpark"}


def unread_schema(place: object, schema: object, readable: int) -> FleetmarkError:
    """Return the error for a file whose ``schema`` number is not ``readable``, for example because a newer version
    wrote it.
    """
    return FleetmarkError(
        f"{place}: schema {schema} is not supported by this version of Fleetmark ({readable}); update Fleetmark"
    )


def leave_out(item: str, reason: FleetmarkError) -> None:
    """Warn that ``item`` is omitted. The command line prints the warning."""
    warnings.warn(LeftOut(f"{item} is left out: {reason}"), stacklevel=2)


class ParseError(FleetmarkError):
    """Report output that cannot be parsed: the tool, the line, and the expected text."""

    def __init__(self, tool: str, expected: str, *, line: int | None = None, got: str | None = None) -> None:
        self.tool, self.expected, self.line, self.got = tool, expected, line, got
        suffix = f" line {line}" if line is not None else ""
        received = f", got {_clip(got)!r}" if got is not None else ""
        super().__init__(f"{tool}{suffix}: expected {expected}{received}")


def _clip(text: str, width: int = 120) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def suggest(word: str, candidates: Mapping[str, Any] | list[str]) -> str:
    """Return `` (did you mean X?)`` if one of ``candidates`` is similar to ``word``, else an empty string."""
    near = difflib.get_close_matches(word, list(candidates), 1)
    return f" (did you mean {near[0]}?)" if near else ""
