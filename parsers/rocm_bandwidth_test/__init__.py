"""Parse the matrices of rocm-bandwidth-test 2 (ROCm up to 6).

Case: ``one-way`` or ``both-ways``. Metrics in B/s (higher; GB/s are 1e9): ``bandwidth`` with the labels ``from`` and
``to`` (``cpu0``, ``gpu2`` in the program's numbering), ``link_bandwidth`` (the median of the pairs), ``slowest_link``,
and ``local_bandwidth`` (label ``device``), a copy within one GPU. Latencies and topology are not read. The output is
``invalid`` if a matrix lacks rows.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "rocm_bandwidth_test"
_LONGEST = 20_000  # maximum characters of a row
_MOST_DEVICES = 512
_VERSION = re.compile(r"RocmBandwidthTest Version: {0,8}([0-9.]{1,20})")
_DEVICE = re.compile(r"Device: ([0-9]{1,4}), {1,8}(.{1,200})")
_TITLE = re.compile(r"(Unidirectional|Bi?directional) copy peak bandwidth GB/s")
_FIGURE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_HEADING = re.compile(r"D/D((?:\s+[0-9]{1,4})+)")


@dataclass(slots=True)
class _Matrix:
    case: str
    columns: list[str] = field(default_factory=list)
    rows: dict[str, list[float | None]] = field(default_factory=dict)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every matrix of bandwidths. Raise ParseError if there is none."""
    version, names, matrices = None, dict[str, str](), list[_Matrix]()
    inside, last = False, (1, "no output")
    for n, text in numbered(decode(raw)):
        line = text[:_LONGEST].strip()
        if not line:
            continue
        last = (n, line)
        if match := _VERSION.search(line):
            version = match[1]
        elif match := _DEVICE.fullmatch(line[:300]):  # a GPU also has an id and a bus address
            names[match[1]] = ("gpu" if match[2].count(",") else "cpu") + match[1]
        elif match := _TITLE.fullmatch(line):
            matrices.append(_Matrix("one-way" if match[1] == "Unidirectional" else "both-ways"))
            inside = True
        elif match := _HEADING.fullmatch(line):
            inside = inside and not matrices[-1].columns
            if inside:
                matrices[-1].columns = match[1].split()[:_MOST_DEVICES]
        elif inside and matrices[-1].columns:
            cells = line.split()
            if len(cells) == len(matrices[-1].columns) + 1 and is_whole(cells[0]):
                matrices[-1].rows[cells[0]] = [number(cell) if _FIGURE.fullmatch(cell) else None for cell in cells[1:]]
    measurements = [m for matrix in matrices for m in _measurements(matrix, names)]
    if not measurements:
        raise ParseError(_TOOL, "a matrix of bandwidths", line=last[0], got=last[1])
    lacking = [m for m in matrices if len(m.rows) != len(m.columns) or not m.columns]
    invalid = cut(f"the matrix {lacking[0].case} has {len(lacking[0].rows)} rows") if lacking else None
    return Parsed(_TOOL, tuple(measurements), version=version, invalid=invalid)


def _measurements(matrix: _Matrix, names: Mapping[str, str]) -> Iterator[Measurement]:
    links: list[float] = []
    for row, cells in matrix.rows.items():
        for column, figure in zip(matrix.columns, cells, strict=True):
            if not figure:
                continue
            start, end = (names.get(device, f"gpu{device}") for device in (row, column))
            value, local = figure * 1e9, row == column
            labels = {"device": start} if local else {"from": start, "to": end}
            metric = "local_bandwidth" if local else "bandwidth"
            yield Measurement(_TOOL, matrix.case, metric, value, "B/s", better=Better.HIGHER, labels=labels)
            links += [] if local else [value]
    if links:
        for metric, value in (("link_bandwidth", statistics.median(links)), ("slowest_link", min(links))):
            yield Measurement(_TOOL, matrix.case, metric, value, "B/s", better=Better.HIGHER)
