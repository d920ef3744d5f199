"""Parse the output of one tool."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Parsed

COLUMNS = ("workload", "case", "subject", "metric", "value", "unit", "better", "labels")


def parse(tool: str, output: bytes | str | os.PathLike[str], command: Sequence[str] = ()) -> pd.DataFrame:
    """Return the measurements in one ``output`` of ``tool``, as ``fleetmark parse`` prints them.

    - ``tool``: the name of a parser, such as ``"stream"`` or ``"fio"``
    - ``output``: the bytes, or the path of a file
    - ``command``: the command line that produced the output; some tools do not repeat it

    The frame has a row per measurement with the columns ``workload``, ``case``, ``subject``, ``metric``, ``value`` (in
    the base unit), ``unit``, ``better`` (``higher``, ``lower`` or ``none``) and ``labels`` (a dictionary). Its
    ``attrs`` have the tool's ``version``, ``invalid`` (why the figures violate the tool's own rules, or None) and
    ``notes``.

    Raise FleetmarkError if the parser does not exist, or if the output has no measurement.
    """
    parsers.find(tool)  # report a wrong name before a wrong path
    if isinstance(output, bytes):
        return _frame(parsers.parse_file(tool, io.BytesIO(output), command))
    try:
        with Path(output).open("rb") as file:
            return _frame(_parsed(tool, file, command))
    except OSError as error:
        raise FleetmarkError(f"{output}: {error.strerror}") from error


def _parsed(tool: str, file: BinaryIO, command: Sequence[str]) -> Parsed:
    try:
        return parsers.parse_file(tool, file, command)
    except FleetmarkError as error:
        raise FleetmarkError(f"{file.name}: {error}") from error


def _frame(parsed: Parsed) -> pd.DataFrame:
    rows = [[getattr(m, name) for name in COLUMNS] for m in parsed.measurements]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["better"] = frame["better"].map(str)
    frame["labels"] = frame["labels"].map(dict)
    frame.attrs = {"version": parsed.version, "invalid": parsed.invalid, "notes": list(parsed.notes)}
    return frame
