"""Find the intended last size of a sweep, for output without an end line, from the command or the output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from fleetmark.parsers.nccl.lines import Line
from fleetmark.parsers.nccl.model import Run

_MAX_BYTES = re.compile(r"\bmaxbytes is ([0-9]{1,18})\b")  # hccl_test
_NAMES = {"-e": "most", "--maxbytes": "most", "-f": "factor", "--stepfactor": "factor", "-i": "step"}
_NAMES |= {"--stepbytes": "step"}
_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def check_range(runs: Sequence[Run], output: Sequence[Line], command: Sequence[str]) -> None:
    """Mark the last of ``runs`` as unfinished if its last row does not have the largest requested size.

    This applies only to runs without a summary, since a printed summary is the end.
    """
    last = max(runs, key=lambda run: (run.last, run.line), default=None)
    if last is None or not last.ended or last.expects_average or last.summaries or not last.rows:
        return
    options = _options(command)
    for line in output:
        if "maxbytes" in line.text and (match := _MAX_BYTES.search(line.text)):
            options["most"] = int(match[1])
    largest, size = options.get("most", 0), last.rows[-1].size
    if size < _following([row.size for row in last.rows], options) <= largest:
        last.ended, last.cut = False, f"the last row is of {size} bytes, and {largest} were requested"


def _following(sizes: Sequence[int], options: Mapping[str, int]) -> int:
    """Return the size after the last of ``sizes``, by the requested factor or step, or by the previous increase."""
    if options.get("factor", 0) > 1:
        return sizes[-1] * options["factor"]
    if "step" in options:
        return sizes[-1] + options["step"]
    before = next((size for size in reversed(sizes) if 0 < size < sizes[-1]), 0)
    return sizes[-1] * sizes[-1] // before if before else 2 * sizes[-1]


def _options(command: Sequence[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    for option, value in pairwise(command):
        if (name := _NAMES.get(option)) and (match := _SIZE.fullmatch(value[:40])):
            values[name] = int(match[1]) * 1024 ** _POWERS[match[2].lower()]
    return values
