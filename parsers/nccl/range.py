"""How far a sweep over sizes was to go, for output that has no last line: by the command, or the tool's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from parsers.nccl.lines import Line
from parsers.nccl.model import Run

_SAID = re.compile(r"\bmaxbytes is ([0-9]{1,18})\b")  # hccl_test
_NAMES = {"-e": "most", "--maxbytes": "most", "-f": "factor", "--stepfactor": "factor", "-i": "step"}
_NAMES |= {"--stepbytes": "step"}
_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def check_range(runs: Sequence[Run], found: Sequence[Line], command: Sequence[str]) -> None:
    """Take back that the last of ``runs`` ended, where its last row is not of the largest size that was asked for.

    Only of runs without a summary: where one is printed, it is the end.
    """
    last = max(runs, key=lambda run: (run.last, run.line), default=None)
    if last is None or not last.ended or last.expects_average or last.summaries or not last.rows:
        return
    asked = _options(command)
    for line in found:
        if "maxbytes" in line.text and (match := _SAID.search(line.text)):
            asked["most"] = int(match[1])
    most, size = asked.get("most", 0), last.rows[-1].size
    if size < _following([row.size for row in last.rows], asked) <= most:
        last.ended, last.cut = False, f"the last row is of {size} bytes, and {most} were asked for"


def _following(sizes: Sequence[int], asked: Mapping[str, int]) -> int:
    """The size that comes after the last of ``sizes``: by what was asked for, or by how the last one was reached."""
    if asked.get("factor", 0) > 1:
        return sizes[-1] * asked["factor"]
    if "step" in asked:
        return sizes[-1] + asked["step"]
    before = next((size for size in reversed(sizes) if 0 < size < sizes[-1]), 0)
    return sizes[-1] * sizes[-1] // before if before else 2 * sizes[-1]


def _options(command: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for option, value in pairwise(command):
        if (name := _NAMES.get(option)) and (match := _SIZE.fullmatch(value[:40])):
            found[name] = int(match[1]) * 1024 ** _POWERS[match[2].lower()]
    return found
