"""Parse benchmarks of collectives with tables like those of nccl-tests: mscclpp-test, AWS nccom-test, Huawei hccl_test.

Case: the tool and, if known, the collective: ``mscclpp-all_reduce``, ``nccom-all_gather``, ``hccl``. The collective
comes from the command, a command line in the text, mscclpp-test's columns (which differ by collective), or its JSON.
Metrics and labels are those of ``nccl_tests``. nccom-test also has ``time_p50`` and similar (s, lower is better).

- mscclpp-test (MSCCL++, test/mscclpp-test): the in-place half of its table comes first, and each row has only one half.
  There is no type, reduction or average; 1 GB/s is 1e9 B/s. The selected kernel is the label ``kernel``. The records
  that it appends with ``-o FILE`` are read too.
- nccom-test (AWS Neuron tools): there is one set of columns, so there is no ``place``. Its guide defines GB/s as 2**30
  B/s, which early versions print; later versions divide by 1e9. Each text is read by the definition that fits its sizes
  and times, or 2**30 if both fit. The file of ``--report-to-json-file`` is read too.
- hccl_test (Ascend CANN): columns between bars, with algorithm bandwidth only (1 GB/s is 1e9 B/s). The check is a word:
  ``failed`` makes a run invalid, ``NULL`` means that nothing was checked.

Several runs in one text, wrong data, repeated sizes and truncated text are treated as by ``nccl_tests``. hccl_test's
table and mscclpp-test's records have no end line. The largest requested size, in the text or the command, shows whether
they are complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.text import Document, decode, number, objects
from fleetmark.parsers.nccl.checks import is_rate
from fleetmark.parsers.nccl.json import Files, end_records, read_files, read_records
from fleetmark.parsers.nccl.lines import Line, complaint, lines
from fleetmark.parsers.nccl.model import FAILED, Point, Row, Run, collective, figure
from fleetmark.parsers.nccl.range import check_range
from fleetmark.parsers.nccl.read import end_of, named_by, unfinished
from fleetmark.parsers.nccl.report import Report
from fleetmark.parsers.nccl.text import NAME, Reader

_TOOL = "nccl_variants"
_HCCL_PROGRAM = re.compile(rf"(?:^|[/\s'\"=]){NAME}c?_test(?![\w-])")
_NCCOM_PROGRAM = re.compile(r"(?:^|[/\s'\"])nccom-test(?P<rest>\s.{0,2000})")
_NCCOM_NAME = re.compile(
    r"(?<=\s)(allr|allg|redsct|all_reduce|all_gather|reduce_scatter|sendrecv|alltoallv?|permute)(?=\s|$)"
)
_NCCOM_RANKS = re.compile(r"\s(?:-r|--nworkers)[ =]?([1-9][0-9]{0,5})(?=\s|$)")
_NCCOM_AVERAGE = re.compile(r"Avg bus bandwidth:\s{0,40}(?P<rate>[0-9.e+-]{1,20})\s?GB/s")
_NCCOM_FAILURE = re.compile(r"Failure running neuron-bench\b.*|[0-9]{1,9} errors? found - test failed")
_NCCOM_TIME = re.compile(r"time(?::(?P<what>avg|p[0-9]{1,3}))?\((?P<unit>us|ms|s)\)")
_NCCOM_RATE = re.compile(r"(?P<what>algbw|busbw)\(GB/s\)")
_HCCL_COLUMN = re.compile(r"(?P<what>data_size|ave?g_time|alg_bandwidth|check_result)(?:\((?P<unit>[\w/]{1,8})\))?:?")
_HCCL_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "GB/s": 1e9, "MB/s": 1e6}
_HCCL_CHECKS = {"success": "0", "failed": FAILED, "null": "N/A"}
_SIZE = re.compile(r"[0-9]{1,18}")
_TYPE = re.compile(r"[a-z]\w{1,19}")
_GIB = 2.0**30
_UNITS = {1e9: "1e9 B/s, as its sizes and times say", _GIB: "2**30 B/s, as its guide says"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every run in ``raw``; ``command`` names the collective if the text does not.

    Raise ParseError if there are none, as for a failed launch or output of nccl-tests.
    """
    files = read_files(decode(raw))
    output = lines(files.around)
    last = unfinished(files.around, output)
    reader = Reader(blank=True, unfinished=last)
    reader.read(output)
    runs = [*_mscclpp(reader, files), *_nccom(output, last, files.documents), *_hccl(output, last)]
    runs.sort(key=lambda run: run.line)
    _name(runs, output, command)
    check_range(runs, output, command)
    end_of(runs, output)
    report = Report(_TOOL)
    for run in runs:
        if run.family == "nccom" and run.rows:
            _choose_unit(run)
            report.notes.append(f"{report.case(run)}: GB/s is {_UNITS[run.gb]}")
    parsed = report.parsed(runs)
    if parsed is None:
        raise next(_reasons(runs, files, reader, output))
    return parsed


def _name(runs: list[Run], output: list[Line], command: Sequence[str]) -> None:
    """Set the collective and requested ranks of runs from the command line above them, or from ``command``."""
    candidates = [(0, " ".join(command)[:100_000])]
    candidates += [(line.n, line.text) for line in output if "test" in line.text]
    for run in runs:
        if run.family == "mscclpp":
            run.case = run.case or named_by(command)
    for family in ("nccom", "hccl"):
        position, name, ranks = 0, None, None
        for run in (run for run in runs if run.family == family):
            while position < len(candidates) and candidates[position][0] <= run.line:
                _, text = candidates[position]
                position += 1
                if family == "hccl" and (match := _HCCL_PROGRAM.search(text)):
                    name = collective(match["name"])
                elif family == "nccom" and (match := _NCCOM_PROGRAM.search(text)):
                    words, ranks_text = _NCCOM_NAME.findall(match["rest"]), _NCCOM_RANKS.search(match["rest"])
                    name = collective(words[0]) if len(words) == 1 else None
                    ranks = int(ranks_text[1]) if ranks_text else None
            run.case, run.ranks_of_command = name, ranks


def _mscclpp(reader: Reader, files: Files) -> Iterator[Run]:
    for run in reader.tests:
        if "type" not in run.columns and (run.rows or run.kernel):
            run.family, run.expects_average = "mscclpp", False
            run.ended = run.ended or run.out_of_bounds is not None
            yield run
    records = read_records([d for d in files.documents if "busBw" in d.value and "kernel" in d.value])
    for run in end_records(records, "the text ends within its records" if files.open_end else ""):
        run.family = "mscclpp"
        yield run


def _nccom(output: list[Line], last: int | None, documents: Sequence[Document]) -> Iterator[Run]:
    """Read nccom-test's tables and JSON; rates stay as printed, see ``_choose_unit``."""
    for document in documents:
        results = [part for part in objects(document.value.get("results")) if "size(B)" in part]
        if results:
            run = Run(line=document.line, family="nccom", last=document.end, expects_average=False, ended=True)
            cells = [{name: _plain(value) for name, value in part.items()} for part in results]
            run.rows = [row for part in cells if (row := _nccom_row(document.line, part))]
            yield run
    tables: dict[str, tuple[Run, list[str]]] = {}
    for line in output:
        words = line.text.split()
        if words[:1] == ["size(B)"] and "algbw(GB/s)" in words:
            run = Run(line=line.n, family="nccom", source=line.source, last=line.n)
            tables[line.source] = run, words
            yield run
        elif line.source in tables and words:
            _take_nccom(*tables[line.source], line, words, cut=line.n == last)


def _take_nccom(run: Run, columns: list[str], line: Line, words: list[str], *, cut: bool) -> None:
    if match := _NCCOM_AVERAGE.search(line.text):
        run.average, run.ended, run.last = figure(match["rate"]), True, line.n
    elif match := _NCCOM_FAILURE.search(line.text):
        run.failure = run.failure or (line.n, match[0])
        run.last = line.n
    elif _SIZE.fullmatch(words[0]) and not run.ended:
        short = columns[-1:] == ["algorithm"] and len(words) == len(columns) - 1
        row = _nccom_row(line.n, dict(zip(columns, words, strict=False)))
        run.last = line.n
        if row and (short or len(words) == len(columns)) and not cut:
            run.rows.append(row)
        else:
            run.damaged.append(f"line {line.n}: a row that is cut or has other text in it is left out")


def _plain(value: object) -> str:
    """Return a value of the JSON as the table would print it; figures keep all digits."""
    plain = number(value)
    if plain is None:
        return value if isinstance(value, str) else ""
    return str(int(plain)) if plain.is_integer() and abs(plain) < 1e15 else f"{plain:.12f}"


def _nccom_row(line: int, cells: dict[str, str]) -> Row | None:
    size, count, kind = (cells.get(name, "") for name in ("size(B)", "count(elems)", "type"))
    if not _SIZE.fullmatch(size) or not _SIZE.fullmatch(count) or not _TYPE.fullmatch(kind):
        return None
    point = Point("", {})
    for name, cell in cells.items():
        value = figure(cell)
        if time := _NCCOM_TIME.fullmatch(name):
            statistic = time["what"] or "avg"
            if value and value.value:
                point.figures["time" if statistic == "avg" else f"time_{statistic}"] = value.times(
                    _HCCL_UNITS[time["unit"]]
                )
        elif rate := _NCCOM_RATE.fullmatch(name):
            if value:
                point.figures[rate["what"]] = value
        else:
            continue
        if not value:
            return None
    return Row(line, int(size), int(count), kind, points=[point]) if point.figures else None


def _choose_unit(run: Run) -> None:
    """Convert printed GB/s to B/s, by the definition that fits more of the rows."""
    borne_out = {1e9: 0, _GIB: 0}
    for row, point in run.points():
        time, rate = point.figures.get("time"), point.figures.get("algbw")
        if time and rate:
            for unit in borne_out:
                borne_out[unit] += is_rate(rate.times(unit), row.size, time)
    run.gb = 1e9 if borne_out[1e9] > borne_out[_GIB] else _GIB
    for _, point in run.points():
        for metric in ("algbw", "busbw"):
            if value := point.figures.get(metric):
                point.figures[metric] = value.times(run.gb)
    if run.average:
        run.average = run.average.times(run.gb)


def _hccl(output: list[Line], last: int | None) -> Iterator[Run]:
    tables: dict[str, tuple[Run, list[re.Match[str] | None]]] = {}
    for line in output:
        cells = [cell.strip() for cell in line.text.split("|")]
        if line.n == last and line.source in tables and not _is_complete_hccl(cells):
            run = tables[line.source][0]
            run.ended, run.cut = False, f"line {line.n} is half a row"
        if len(cells) < 3:
            continue
        columns = [_HCCL_COLUMN.fullmatch(cell) for cell in cells]
        if {column["what"] for column in columns if column} >= {"data_size", "alg_bandwidth"}:
            run = Run(line=line.n, family="hccl", source=line.source, last=line.n, expects_average=False, ended=True)
            tables[line.source] = run, columns
            yield run
        elif line.source in tables:
            run, columns = tables[line.source]
            pairs = [(column, cell) for column, cell in zip(columns, cells, strict=False) if column]
            named = {column["what"].replace("aveg", "avg"): (column["unit"], cell) for column, cell in pairs}
            row = _hccl_row(line.n, named) if len(cells) == len(columns) else None
            if row and not (line.n == last and columns[-1] and columns[-1]["what"] != "check_result"):
                run.rows.append(row)
                run.last = line.n
            elif _SIZE.fullmatch(cells[0]):
                run.damaged.append(f"line {line.n}: a row that is cut or has other text in it is left out")


def _is_complete_hccl(cells: list[str]) -> bool:
    """Return whether a row ends with a word that cannot be the beginning of a longer one."""
    return len(cells) > 3 and cells[-1].lower() in _HCCL_CHECKS


def _hccl_row(line: int, cells: dict[str, tuple[str | None, str]]) -> Row | None:
    size, check = cells["data_size"][1], cells.get("check_result", (None, "NULL"))[1].lower()
    if not _SIZE.fullmatch(size) or check not in _HCCL_CHECKS:
        return None
    point = Point("", {}, _HCCL_CHECKS[check])
    for name, metric, usual in (("avg_time", "time", "us"), ("alg_bandwidth", "algbw", "GB/s")):
        unit, cell = cells.get(name, (None, ""))
        value, factor = figure(cell), _HCCL_UNITS.get(unit or usual)
        if name in cells and (value is None or factor is None):
            return None
        if value and factor and (value.value or metric != "time"):
            point.figures[metric] = value.times(factor)
    return Row(line, int(size), points=[point]) if point.figures else None


def _reasons(runs: list[Run], files: Files, reader: Reader, output: list[Line]) -> Iterator[ParseError]:
    """Return the errors for a text without results, the most specific first; there is at least one."""
    table = "a table of mscclpp-test, nccom-test or hccl_test"
    for run in (*files.runs, *reader.tests):
        if "type" in run.columns or run.named:
            yield ParseError(
                _TOOL, f"{table} (use nccl_tests or rccl_tests)", line=run.line, got="a table of nccl-tests"
            )
    for run in (*runs, *reader.tests):
        if run.failure:
            yield ParseError(_TOOL, f"rows of results{run.progress}", line=run.failure[0], got=run.failure[1])
    best = max((*runs, *reader.tests), key=lambda run: (len(run.rows), run.stage, run.line), default=None)
    if message := complaint(output):
        yield ParseError(
            _TOOL, f"rows of results{best.progress if best else ''}", line=message.n, got=message.text.strip()
        )
    if best and best.damaged:
        yield ParseError(_TOOL, "whole rows of results", line=best.line, got=best.damaged[0])
    if best:
        yield ParseError(
            _TOOL, f"rows of results{best.progress if best else ''}", line=best.last, got="the end of the text"
        )
    for line in reversed(output):
        if line.text.strip("-=*# \t"):
            yield ParseError(_TOOL, table, line=line.n, got=line.text.strip())
    yield ParseError(_TOOL, table, got="nothing of it" if files.around.strip() or files.documents else "no output")
