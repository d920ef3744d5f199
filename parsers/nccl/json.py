"""Read the files of nccl-tests (``-J FILE``) and rccl-tests (``-Z json`` or ``-Z csv``) as runs with their rows.

The file of ``-J`` contains the full environment of the run. Only the results, the settings, the devices and the
benchmark's name are read, and the environment is never quoted. A run that crashes leaves a truncated file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fleetmark.parsers.kit.text import Document, JsonScan, dig, find_json, number, objects
from fleetmark.parsers.nccl.lines import Line
from fleetmark.parsers.nccl.model import MOST, Figure, Point, Row, Run, collective
from fleetmark.parsers.nccl.text import PROGRAM, USUAL, library

_DIGITS = 5e-7  # half of the last digit that %lf prints
_HALVES = {"out": "out_of_place", "in": "in_place"}
_FIGURES = {
    "time": ("time", 1e-6),
    "cpu_time": ("cpu_time", 1e-6),
    "hip_event_time": ("hip_event_time", 1e-6),
    "alg_bw": ("algbw", 1e9),
    "bus_bw": ("busbw", 1e9),
}
_EACH = {
    "min_us": ("time_min", 1e-6),
    "max_us": ("time_max", 1e-6),
    "p99_us": ("time_p99", 1e-6),
    "cv_pct": ("time_cv", 1e-2),
}
_PLACES: dict[float | None, str] = {0.0: "out", 1.0: "in"}
_RECORD = {"time": ("time", 1e-6), "algBw": ("algbw", 1e9), "busBw": ("busbw", 1e9)}
# How the file of -J begins, with its keys in any order.
_OPENS = re.compile(r'\{\s{0,100}"(?:version|args|env|config|nccl_version|average_bus_bandwid\w{2,3})"\s{0,100}:')
_ONE_LINE = 60  # characters: more than the first line of multi-line JSON has
_PART = re.compile(r'(?<!\\)"(args|nccl_version|config|results)"\s{0,100}:\s{0,100}')
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_CSV = re.compile(
    r"(?P<cycle>numCycle,)?\s*collective,\s*(?:(?P<mpi>ranks,\s*rankspernode,\s*gpusperrank)|gpus),\s*"
    r"size,\s*type,\s*redop,\s*inplace,\s*time,\s*algbw,\s*busbw,\s*(?P<factor>\w+,\s*)?#wrong"
)


@dataclass(kw_only=True, frozen=True, slots=True)
class Files:
    """The runs in such files, and the text around them. ``cut``: the line of a file without its results' end."""

    runs: list[Run]
    around: str
    notes: list[str] = field(default_factory=list)
    cut: int | None = None
    documents: tuple[Document, ...] = ()  # all complete JSON in the text
    open_end: bool = False  # the last record is incomplete, or the list of records has no end


def read_files(text: str) -> Files:
    """Return every ``-J`` or ``-Z json`` file in ``text``."""
    if "{" not in text:
        return Files(runs=[], around=text)
    scan = find_json(text)
    files = Files(runs=[], around=scan.around, documents=scan.documents)
    records: list[Document] = []
    for document in scan.documents:
        if isinstance(document.value.get("results"), list) and _is_report(document.value):
            files.runs.append(_read_report(document.value, document.line))
        elif _is_report(document.value):
            files.notes.append(f"line {document.line}: JSON output without results")
        elif "busBw" in document.value and "inPlace" in document.value:
            records.append(document)
    open_end = _has_no_end(scan, [d for d in scan.documents if "busBw" in d.value])
    files.runs.extend(end_records(read_records(records), "the text ends within its records" if open_end else ""))
    opening = _OPENS.search(scan.around)
    if opening is None:
        return Files(
            runs=files.runs, around=scan.around, notes=files.notes, documents=scan.documents, open_end=open_end
        )
    # The rest of a truncated file contains the environment and is removed: the rest of its only line, or all following
    # lines if a tool has reformatted it.
    start = opening.start()
    end = scan.around.find("\n", start)
    if end < 0 or end - start < _ONE_LINE:
        end = len(scan.around)
    line = scan.around.count("\n", 0, start) + 1
    run = _read_cut(scan.around[start:end], line)
    if run.rows:
        run.cut = "its JSON output is cut off"
        files.runs.append(run)
    return Files(
        runs=files.runs,
        around=scan.around[:start] + scan.around[end:],
        notes=files.notes,
        cut=line,
        documents=scan.documents,
        open_end=open_end,
    )


def _has_no_end(scan: JsonScan, records: list[Document]) -> bool:
    """Return whether the text ends within the records: in one of them, or before the closing bracket of their list."""
    if not records:
        return False
    lines = scan.around.split("\n")
    parts = lines[: records[0].line], lines[records[-1].end - 1 :]
    before, after = ("\n".join(part).strip(", \t\r\n") for part in parts)  # without the separators between records
    broken = any(b.line >= records[-1].end for b in scan.broken)
    return broken or (before.endswith("[") and not after.startswith("]"))


def end_records(runs: list[Run], reason: str) -> list[Run]:
    """Return ``runs`` of records, the last of which did not end if there is a ``reason``."""
    if reason and runs:
        last = max(runs, key=lambda run: run.last)
        last.ended, last.cut = False, reason
    return runs


def _is_report(value: dict[str, Any]) -> bool:
    return "config" in value or "nccl_version" in value or "average_bus_bandwidth" in value or "out_of_bounds" in value


def _read_report(value: dict[str, Any], line: int) -> Run:
    run = Run(line=line, last=line, columns=USUAL.left)
    arguments = value.get("args")
    program = arguments[0] if isinstance(arguments, list) and arguments and isinstance(arguments[0], str) else ""
    if match := PROGRAM.search(program[:1000]):
        run.case, run.named = collective(match["name"]), True
    code = number(value.get("nccl_version"))
    if code is not None and code.is_integer() and 1000 <= code < 10**6:
        run.library = library(int(code))
    _read_config(run, value.get("config"), objects(value.get("devices")))
    run.rows = [row for part in objects(value.get("results")) if (row := _read_row(part, line))]
    count = number(dig(value, "out_of_bounds", "count"))
    run.out_of_bounds = int(count) if count is not None and 0 <= count < 10**12 else None
    for name in ("bandwidth", "bandwidith"):  # the spelling up to 2.17.8
        average = dig(value, f"average_bus_{name}", name)
        if (rate := number(average)) is not None and 0 <= rate <= MOST:
            run.average, run.ended = Figure(rate * 1e9, _DIGITS * 1e9), True
        run.average_failed = run.average_failed or dig(value, f"average_bus_{name}", "okay") in ("false", False)
    return run


def _read_config(run: Run, config: Any, devices: list[dict[str, Any]]) -> None:
    validation = number(dig(config, "validation"))
    run.validation = int(validation) if validation is not None and abs(validation) < 10**9 else None
    devices = objects(dig(config, "devices")) or devices
    ranks = [number(d.get("rank")) for d in devices]
    each = (number(dig(config, "nthreads")) or 1) * (number(dig(config, "ngpus")) or 1)
    hosts = {d.get("hostname") for d in devices if isinstance(d.get("hostname"), str)}
    groups = len({number(d.get("group")) for d in devices}) or 1
    # A process lists only the first of its GPUs.
    step = int(each) if 1 <= each < 10**6 and ranks == [i * int(each) for i in range(len(ranks))] else 1
    if ranks and ranks == [i * step for i in range(len(ranks))] and len(ranks) * step % groups == 0:
        run.ranks_printed = len(ranks) * step // groups
        run.nodes_printed = len(hosts) or None


def _read_row(part: dict[str, Any], line: int) -> Row | None:
    size, count, root = (number(part.get(key)) for key in ("size", "count", "root"))
    kind, redop = part.get("type"), part.get("redop")
    if size is None or not 0 <= size < 10**18:
        return None
    row = Row(line, int(size), _whole_number(count), _word(kind), _word(redop), root=_whole_number(root))
    for place, key in _HALVES.items():
        point = _read_point(place, part.get(key), _FIGURES)
        each = _read_point(place, part.get(f"{key}_per_iter"), _EACH)
        point.figures.update(each.figures)
        wrong = dig(part, key, "nwrong")
        point.wrong = "N/A" if wrong is None else f"{number(wrong):g}" if number(wrong) is not None else None
        if point.figures:
            row.points.append(point)
    return row


def _read_point(place: str, part: Any, names: dict[str, tuple[str, float]]) -> Point:
    point = Point(place, {})
    for key, (metric, factor) in names.items():
        value = number(dig(part, key))
        if value is None or not 0 <= value <= MOST or (metric.endswith("time") and not value):
            continue
        point.figures[metric] = Figure(value, _DIGITS).times(factor)
    return point


def _whole_number(value: float | None) -> int | None:
    return int(value) if value is not None and value.is_integer() and abs(value) < 10**18 else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z]\w{0,19}", value) else None


def _read_cut(text: str, line: int) -> Run:
    """Return the remaining content of a truncated file: its settings and complete results."""
    value: dict[str, Any] = {}
    for match in _PART.finditer(text):
        key = match[1]
        if key in value:
            continue
        if key == "results":
            value[key] = list(_complete_objects(text, match.end()))
            break
        try:
            value[key], _ = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
    return _read_report(value, line)


def _complete_objects(text: str, position: int) -> Iterator[dict[str, Any]]:
    between = re.compile(r"[\[,\s]*")
    while True:
        opening = between.match(text, position)
        position = opening.end() if opening else position
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        yield value


def _count(value: Any) -> str | None:
    text = str(value) if isinstance(value, str | int) else ""
    return text if re.fullmatch(r"[0-9]{1,18}|N/A", text) else None


def read_records(records: list[Document]) -> list[Run]:
    """Return the runs in records of rccl-tests (one per size and place) or mscclpp-test (with a kernel, no place)."""
    runs: dict[str, Run] = {}
    rows: dict[tuple[object, ...], Row] = {}
    for document in records:
        record = document.value
        name, size = record.get("name"), number(record.get("size"))
        if not isinstance(name, str) or size is None or not 0 <= size < 10**18:
            continue
        run = runs.get(name)
        if run is None:
            run = runs[name] = Run(line=document.line, case=collective(name[:40]), expects_average=False, ended=True)
        run.last = document.end
        ranks, nodes = (number(record.get(key)) for key in ("ranks", "nodes"))
        _tell_ranks(run, number(record.get("gpus")) if ranks is None else ranks, nodes)
        kind, redop = record.get("type"), record.get("redop")
        row = Row(document.line, int(size), type=_word(kind), redop=_word(redop))
        if (kernel := number(record.get("kernel"))) is not None and kernel.is_integer():
            row.more["kernel"] = str(int(kernel))
        place = _PLACES.get(number(record.get("inPlace")), "")
        point = _read_point(place, record, _RECORD)
        point.wrong = _count(record.get("wrong", record.get("#wrong")))
        _put(run, rows, row, point, number(record.get("numCycle")))
    return list(runs.values())


def _put(run: Run, rows: dict[tuple[object, ...], Row], row: Row, point: Point, cycle: float | None) -> None:
    """Add ``point`` to the row of its size, unless the row already has a point of its place."""
    key = (id(run), cycle, *sorted(row.name.items()))
    present = rows.get(key)
    if present is None or any(p.place == point.place for p in present.points):
        rows[key] = present = row
        run.rows.append(row)
    if point.figures:
        present.points.append(point)


def _tell_ranks(run: Run, ranks: float | None, nodes: float | None) -> None:
    if ranks is not None and ranks.is_integer() and 0 < ranks < 10**9:
        run.ranks_printed, run.derived_ranks = int(ranks), False
    if nodes is not None and nodes.is_integer() and 0 < nodes < 10**9:
        run.nodes_printed = int(nodes)


def read_csv(output: list[Line], unfinished: int | None = None) -> list[Run]:
    """Return the runs in rccl-tests' CSV. With MPI, its rows have one more field than its heading: the nodes.

    The line ``unfinished`` holds an incomplete row.
    """
    runs: dict[str, Run] = {}
    rows: dict[tuple[object, ...], Row] = {}
    heading: re.Match[str] | None = None
    half = False
    for line in output:
        if match := _CSV.fullmatch(line.text.strip()):
            heading = match
            continue
        fields = [f.strip().strip('"') for f in line.text.split(",")]
        wide = bool(heading and heading["factor"])
        if heading is None or not 10 + wide <= len(fields) <= 15 or line.n == unfinished:
            half |= bool(heading) and line.n == unfinished
            continue
        first = 1 if heading["cycle"] else 0
        size, kind, redop, inplace, time, alg, bus = fields[-8 - wide : -1 - wide]
        values = [number(text) for text in (size, time, alg, bus)]
        if values[0] is None or not 0 <= values[0] < 10**18 or inplace not in ("0", "1"):
            continue
        name = fields[first]
        run = runs.setdefault(
            name, Run(line=line.n, case=collective(name[:40]), expects_average=False, ended=True, last=line.n)
        )
        run.last = line.n
        before = [number(text) for text in fields[first + 1 : -8 - wide]]
        if len(before) == 4:
            _tell_ranks(run, before[1], before[0])
        elif before:
            _tell_ranks(run, before[0], None)
        row = Row(line.n, int(values[0]), type=_word(kind), redop=_word(redop))
        cells = dict(zip(("time", "algBw", "busBw"), values[1:], strict=True))
        point = _read_point("in" if inplace == "1" else "out", cells, _RECORD)
        point.wrong = _count(fields[-1])
        _put(run, rows, row, point, number(fields[0]) if first else None)
    result = list(runs.values())
    if half or any(_lacks_in_place(run) for run in result):
        end_records(result, "the text ends within its rows")
    return result


def _lacks_in_place(run: Run) -> bool:
    """Return whether the last size lacks its in-place row, which follows the out-of-place row."""
    places = [{p.place for p in row.points} for row in run.rows]
    return places[-1:] == [{"out"}] and (len(places) == 1 or any("in" in p for p in places))
