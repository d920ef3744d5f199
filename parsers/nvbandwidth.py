"""Parse nvbandwidth's JSON (``-j``), and the text output of versions 0.2 to 0.8.

Case: the name of the test. Metrics per pair of devices, with labels ``from`` and ``to`` (``cpu0``, ``gpu1``):
``bandwidth`` in B/s (higher is better) or ``latency`` in s (lower is better). A bidirectional test between GPUs
reports the sum of both directions, and each direction as ``one_way_bandwidth`` with a label ``part``. Metrics per
test: ``link_bandwidth`` and ``slowest_link`` (median and lowest of the pairs), ``link_latency`` and
``slowest_latency``; ``sum_bandwidth`` is nvbandwidth's own SUM. GB/s are 1e9 B/s. Notes name tests without results. A
test that the machine cannot run (Waived) is not an error. A test that fails, does not finish, is unknown or is missing
makes the run ``invalid``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut, cut_in_json, cut_in_line
from fleetmark.parsers.kit.text import decode, dig, find_json, number, numbered, objects

_TOOL = "nvbandwidth"
_MOST_DEVICES = 512  # maximum cells of a row or column; larger matrices do not describe one machine
_LONGEST = 300  # maximum length of a name or reason in characters
_PARTS = ("first", "second")  # the two directions of a bidirectional test between GPUs, printed before their sum
_ROW = re.compile(r"\b(CPU|GPU)\(row\)\s*(->|<-|<->)\s*(CPU|GPU)\(column\)")
_UNIT = re.compile(r"\((GB/s|ns|us)\)\s*$")
_WAIVED = "Waived"
_ENDED = re.compile(r"(Waived|Error|Not Found):\s*(.{0,160})")
_NOT_FOUND = re.compile(r"ERROR: Testcase (\w{1,80}) not found")
_SCALES = {"GB/s": 1e9, "ns": 1e-9, "us": 1e-6}
_RUNNING = re.compile(r"Running (\w{1,80})\.")
_SUM = re.compile(r"SUM (\w{1,80})\s+([0-9.]{1,24}(?![0-9.]))?")
_ERROR = re.compile(r"\[?(CUDA_ERROR_\w+|NVML_ERROR_\w+)\]?.{0,200}|ERROR: .{1,200}")

Matrix = list[list[float | None]]


@dataclass(frozen=True, slots=True)
class _Test:
    """One test: its name and status and, if it has figures, the meaning of rows and columns, and the figures."""

    name: str
    status: str
    description: str = ""
    matrix: tuple[tuple[float | None, ...], ...] = ()
    total: float | None = None  # nvbandwidth's own SUM, in the unit of ``description``


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every test with figures. Raise ParseError, with nvbandwidth's own message, if no test has figures."""
    text = decode(raw)
    scan = find_json(text)
    root = next((d.value["nvbandwidth"] for d in scan.documents if isinstance(d.value.get("nvbandwidth"), dict)), None)
    if root is not None:
        tests = [_of_json(t) for t in objects(root.get("testcases"))]
        error, version = _short(root.get("error")), _short(root.get("version")) or None
        missing = cut_in_json(scan)
    else:
        tests, version = list(_of_text(text)), _version(text)
        lines = [line for _, line in numbered(text) if not _NOT_FOUND.match(line[:_LONGEST])]
        error = next((_short(m[0]) for line in lines if (m := _ERROR.search(line))), "")
        missing = cut_in_json(scan) or cut_in_line(text)
        if tests and not tests[-1].matrix and tests[-1].status == "Running":
            missing = cut(f"{tests[-1].name} has no SUM")
    measurements = [m for test in tests for m in _measurements(test)]
    without = [f"{t.name}: {t.status}" for t in tests if not t.matrix and t.name]
    if not measurements:
        raise ParseError(_TOOL, "a test with figures", got=error or "; ".join(without[:3]) or "no test")
    absent = [name for name in _asked(command) if name not in {t.name for t in tests}]
    unnamed = sum(1 for t in tests if not t.name)  # text output does not name the waived tests
    if unnamed and absent:
        without += [f"{name}: Waived" for name in absent[:unnamed]]
        absent = absent[unnamed:]
    elif unnamed:
        without.append(f"{unnamed} unnamed tests: Waived")
    faulty = [t for t in tests if not t.matrix and t.status != _WAIVED]
    faults = [f"{t.name}: {t.status}" for t in faulty]
    reasons = [r for r in (missing, error, cut(f"{absent[0]} is not in it") if absent else "") if r]
    return Parsed(
        _TOOL,
        tuple(measurements),
        version=version,
        invalid="; ".join(reasons + ([] if missing else faults[:3])) or None,
        notes=tuple(without[:20]),
        invalid_cases=() if reasons else tuple(t.name for t in faulty),
    )


def _asked(command: Sequence[str]) -> list[str]:
    """Return the tests that the command names after ``-t``."""
    words = list(command)
    start = next((n for n, word in enumerate(words) if word in ("-t", "--testcase")), len(words))
    names = []
    for word in words[start + 1 :]:
        if word.startswith("-"):
            break
        names.append(word)
    return [name for name in names if not is_whole(name)]


def _short(value: object) -> str:
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""


def _version(text: str) -> str | None:
    match = re.search(r"^nvbandwidth Version: (\S{1,40})$", text, re.MULTILINE)
    return match[1] if match else None


def _of_json(entry: dict[str, object]) -> _Test:
    rows = entry.get("bandwidth_matrix")
    matrix = [[number(cell) for cell in row] for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    name, status = _short(entry.get("name")) or "unnamed", _short(dig(entry, "status")) or "no status"
    passed = _bounded(matrix) if status == "Passed" else ()
    return _Test(name, status, _short(entry.get("bandwidth_description")), passed, number(entry.get("sum")))


def _of_text(text: str) -> Iterator[_Test]:
    """Return the tests of the text format: running line, heading, columns, rows, and SUM as the end."""
    name, description, matrix, columns = "", "", Matrix(), 0
    for _, indented in numbered(text):
        line = indented.strip()
        if match := _RUNNING.search(line[:_LONGEST]):
            if name:
                yield _Test(name, "Running")
            name, description, matrix, columns = match[1], "", [], 0
        elif match := _ENDED.match(line[:_LONGEST]):
            yield _Test(name, " ".join(match[0].rstrip().rstrip(":").split()))
            name = ""
        elif match := _NOT_FOUND.match(line[:_LONGEST]):
            yield _Test(match[1], "Not Found")
        elif name and _UNIT.search(line[:_LONGEST]):
            description, columns = line[:_LONGEST], 0
        elif name and (match := _SUM.match(line[:_LONGEST])):
            if match[1].startswith(name):
                yield _Test(name, "Passed", description, _bounded(matrix), number(match[2]))
            name = ""
        elif description and (cells := line[: 20 * _MOST_DEVICES].split()):
            if not columns:
                columns = len(cells) if all(is_whole(cell) for cell in cells) else 0
            elif len(cells) == columns + 1 and is_whole(cells[0]):
                matrix.append([number(cell) for cell in cells[1:]])
    if name:
        yield _Test(name, "Running")


def _bounded(matrix: Matrix) -> tuple[tuple[float | None, ...], ...]:
    """Return ``matrix`` if it is valid: rows of equal length, none longer than a machine has devices."""
    widths = {len(row) for row in matrix}
    if len(widths) != 1 or not 0 < max(widths) <= _MOST_DEVICES or len(matrix) > 3 * _MOST_DEVICES:
        return ()
    return tuple(tuple(row) for row in matrix)


def _measurements(test: _Test) -> Iterator[Measurement]:
    unit = _UNIT.search(test.description)
    if not test.matrix or unit is None:
        return
    scale, rate = _SCALES[unit[1]], unit[1] == "GB/s"
    count = len(test.matrix[0])
    parts = [*_PARTS, ""] if "Total" in test.description and len(test.matrix) == 3 * count else [""]
    size = len(test.matrix) // len(parts)
    totals: list[float] = []
    for n, part in enumerate(parts):
        for i, row in enumerate(test.matrix[n * size : (n + 1) * size]):
            for j, cell in enumerate(row):
                value = number(cell * scale) if cell else None
                if not value:  # N/A, or 0.00 in the text format, means not measured
                    continue
                labels = _ends(test.description, i, j, one_row=len(test.matrix) == 1 < count)
                if part:
                    yield _one(test.name, "one_way_bandwidth", value, rate, labels | {"part": part})
                else:
                    yield _one(test.name, "bandwidth" if rate else "latency", value, rate, labels)
                    totals.append(value)
    if totals:
        middle, worst = ("link_bandwidth", "slowest_link") if rate else ("link_latency", "slowest_latency")
        yield _one(test.name, middle, median(totals), rate, {})
        yield _one(test.name, worst, min(totals) if rate else max(totals), rate, {})
        if rate and (total := number((test.total or 0.0) * scale)):
            yield _one(test.name, "sum_bandwidth", total, rate, {})


def _one(case: str, metric: str, value: float, rate: bool, labels: dict[str, str]) -> Measurement:
    better = Better.HIGHER if rate else Better.LOWER
    return Measurement(_TOOL, case, metric, value, "B/s" if rate else "s", better=better, labels=labels)


def _ends(description: str, row: int, column: int, *, one_row: bool) -> dict[str, str]:
    """Return the source and target of a cell; a local copy stays on its GPU; a single row covers all GPUs."""
    match = _ROW.search(description)
    if match is None:
        ends = [f"gpu{column}"] * 2 if "local" in description else ["gpus", f"gpu{column}"]
    else:
        ends = ["gpus" if one_row and match[1] == "GPU" else f"{match[1].lower()}{row}", f"{match[3].lower()}{column}"]
    if "<-" in description and "<->" not in description:
        ends.reverse()
    return dict(zip(("from", "to"), ends, strict=True))
