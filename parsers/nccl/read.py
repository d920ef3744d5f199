"""Parse nccl-tests and rccl-tests in all their formats. The two tools differ only in their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.text import decode
from fleetmark.parsers.nccl.json import Files, read_csv, read_files
from fleetmark.parsers.nccl.lines import Line, complaint, lines
from fleetmark.parsers.nccl.model import Run, collective
from fleetmark.parsers.nccl.range import check_range
from fleetmark.parsers.nccl.report import Report
from fleetmark.parsers.nccl.text import PROGRAM, Reader


def read(tool: str, family: str, raw: bytes, command: Sequence[str]) -> Parsed:
    """Return the measurements in ``raw``. ``family`` ("nccl", "rccl") names the case if no collective is known.

    Raise ParseError, with the message of the benchmark or of its launcher, if there are none.
    """
    files = read_files(decode(raw))
    output = lines(files.around)
    reader = Reader(unfinished=unfinished(files.around, output))
    reader.read(output)
    end_of(reader.tests, output)
    report = Report(tool, family)
    if files.cut is not None:
        report.notes.append(f"the JSON that begins on line {files.cut} is cut off: only its complete results are read")
    report.notes += files.notes
    ours = [run for run in reader.tests if "type" in run.columns or not run.rows]
    runs = sorted([*ours, *files.runs, *read_csv(output, reader.unfinished)], key=lambda run: run.line)
    check_range(runs, output, command)
    if reader.other and any(run.rows for run in runs):
        report.notes.append(f"line {reader.other.n}: output of another tool, which nccl_variants reads, is left out")
    parsed = report.parsed(runs, named_by(command))
    if parsed:
        return parsed
    raise nothing(tool, files, reader, output)


def named_by(command: Sequence[str]) -> str | None:
    """Return the collective that ``command`` runs, or None for another program."""
    names = {collective(match["name"]) for match in PROGRAM.finditer(" ".join(command)[:100_000])}
    return names.pop() if len(names) == 1 else None


def unfinished(text: str, output: list[Line]) -> int | None:
    """Return the last line's number if ``text`` does not end with a line end."""
    return output[-1].n if output and text and not text[-1].isspace() else None


def end_of(runs: list[Run], output: list[Line]) -> None:
    """Add the first error message after each run that did not end, up to the next run."""
    following = [*(run.line for run in runs[1:]), output[-1].n + 1 if output else 0]
    for run, until in zip(runs, following, strict=False):
        if not run.ended and not run.failure and (message := complaint(output, run.last)) and message.n < until:
            run.cut = message.text.strip()


def nothing(tool: str, files: Files, reader: Reader, output: list[Line]) -> ParseError:
    """Return why there is no measurement, with the message of the benchmark or launcher if there is one."""
    return next(_reasons(tool, files, reader, output))


def _reasons(tool: str, files: Files, reader: Reader, output: list[Line]) -> Iterator[ParseError]:
    """Return the errors for a text without results, the most specific first; there is at least one."""
    table = "the table of a collective's test"
    if other := reader.other:
        expected = "a table of nccl-tests or rccl-tests (use nccl_variants for mscclpp-test, nccom-test and hccl_test)"
        yield ParseError(tool, expected, line=other.n, got=other.text.strip())
    for run in reader.tests:
        if run.failure:
            yield ParseError(tool, f"rows of results{run.progress}", line=run.failure[0], got=run.failure[1])
    if files.cut is not None:  # not quoted, because it contains the environment
        yield ParseError(tool, "complete results in the JSON output", line=files.cut, got="the end before any")
    best = max(reader.tests, key=lambda run: (len(run.rows), run.stage, run.line), default=None)
    if message := complaint(output):
        yield ParseError(
            tool, f"rows of results{best.progress if best else ''}", line=message.n, got=message.text.strip()
        )
    if best and best.damaged:
        yield ParseError(tool, "whole rows of results", line=best.line, got=best.damaged[0])
    if best and best.rows:
        yield ParseError(tool, "rows in which data moved", line=best.rows[0].line, got="none but empty ones")
    if best:
        yield ParseError(
            tool, f"rows of results{best.progress if best else ''}", line=best.last, got="the end of the text"
        )
    if files.notes:
        yield ParseError(tool, "results in the JSON output", got=files.notes[0])
    for line in reversed(output):
        if line.text.strip("-=*# \t"):
            yield ParseError(tool, table, line=line.n, got=line.text.strip())
    yield ParseError(tool, table, got="nothing of it" if files.around.strip() or files.documents else "no output")
