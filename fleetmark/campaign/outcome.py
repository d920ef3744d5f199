"""Evaluate a finished step: derive its status, the reason, and its rows of measurements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetmark import parsers
from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.measurement import Measurement, Parsed, Status
from fleetmark.campaign import congestion, energy
from fleetmark.parsers.kit.cut import says_cut
from fleetmark.record.archive import Archive, safe_name, utc
from fleetmark.record.replies import Result
from fleetmark.workloads import Manifest, load

_MOST_WORDS = 240  # maximum number of characters to quote from a tool's last line
_LAST_WORDS = 64 << 10  # number of bytes at the end of a log to search for the tool's last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a step.

    ``rows`` follow ``base.schema``. Rows of a step that did not pass have its status. ``foreign_cores`` are the cores
    used by other processes of the host, and ``stolen_cores`` those used by other virtual machines. ``window`` is the
    start and end of the tool's timed section in Unix seconds of the host, if known.
    """

    status: Status
    reason: str
    rows: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    started: str = ""
    wall_s: float | None = None
    foreign_cores: float | None = None
    stolen_cores: float | None = None
    window: tuple[float, float] | None = None


def judge(archive: Archive, folder: Path) -> Outcome:
    """Return the outcome of the step whose raw files are in ``folder``. The files may contain any bytes.

    If step.json or result.json is damaged, the step is lost, and ``--resume`` runs it again.
    """
    try:
        step, result = archive.step(folder), archive.result(folder)
    except FleetmarkError as error:
        return Outcome(status=Status.LOST, reason=str(error))
    times: dict[str, Any] = {
        "started": utc(result.started),
        "wall_s": result.wall_s,
        "foreign_cores": result.telemetry and result.telemetry.foreign_cores,
        "stolen_cores": result.telemetry and result.telemetry.stolen_cores,
    }
    broken = _why_broken(archive, folder, step, result)
    if result.ended == "lost":
        return Outcome(status=Status.LOST, reason=broken, **times)
    try:
        manifest = load(step["workload"])
        raw = archive.open_raw(folder, step["output"])
        if raw is None:
            explanation = "; ".join(["the run left none", *result.left_out])
            raise ParseError(manifest.tool, f"a file {step['output']}, and {explanation}")
        with raw:
            parsed = parsers.parse_file(manifest.tool, raw, step["argv"])
    except FleetmarkError as error:
        if result.ended == "error" or (broken and _is_silent(archive, folder, step, result)):  # there is no output
            return Outcome(status=Status.FAILED, reason=broken, **times)
        reason = f"{broken}; {error}" if broken and not says_cut(str(error)) else broken or str(error)
        return Outcome(status=Status.FAILED, reason=reason, **times)
    status, reason = Status.PASSED, ""
    if parsed.invalid and result.ended == "exit" and not (broken and says_cut(parsed.invalid)):
        status, reason = Status.INVALID, f"{parsed.invalid} ({broken})" if broken else parsed.invalid
    elif broken:
        status, reason = Status.FAILED, broken
    notes = (*parsed.notes, *result.left_out)
    rows = tuple(_rows(archive, folder, step, result, parsed, manifest, status))
    return Outcome(status=status, reason=reason, rows=rows, notes=notes, window=parsed.window, **times)


def _is_silent(archive: Archive, folder: Path, step: Mapping[str, Any], result: Result) -> bool:
    """Return whether the tool wrote no results, so that the cause of its end is a sufficient explanation."""
    return not result.left_out and not archive.tail(folder, step["output"], 1)


def _why_broken(archive: Archive, folder: Path, step: Mapping[str, Any], result: Result) -> str:
    """Return why a run failed: the cause of its end, or the last line of its output. Empty if the run passed."""
    if result.ended in ("lost", "error", "cancelled") and step["excuse"]:
        return str(step["excuse"])
    if result.ended != "exit":
        return result.reason or f"{result.ended}; no reason was recorded"
    return describe_exit(archive, folder, result.rc) if result.rc != 0 else ""


def describe_exit(archive: Archive, folder: Path, code: int | None) -> str:
    """Return the exit status of the step in ``folder`` with the last line that it printed."""
    output = archive.tail(folder, "stderr", _LAST_WORDS).strip()
    output = output or archive.tail(folder, "stdout", _LAST_WORDS).strip()
    status = "no exit status was recorded" if code is None else f"exit status {code}"
    status = f"killed by signal {-code}" if code is not None and code < 0 else status
    words = _last_words(output.decode(errors="replace"))
    return f"{status}: {words if len(words) <= _MOST_WORDS else words[: _MOST_WORDS - 1] + '…'}"


def _last_words(text: str) -> str:
    """Return the last line of ``text``. Ignore explanations that a launcher (mpirun) prints between ruled lines."""
    plain: list[str] = []
    framed: list[str] = []
    inside = False
    for line in filter(None, map(str.strip, text.splitlines())):
        if len(line) > 20 and set(line) == {"-"}:
            inside = not inside
        else:
            (framed if inside else plain).append(line)
    return (plain[-1:] or framed[:1] or ["it printed nothing"])[0]


def _rows(
    archive: Archive,
    folder: Path,
    step: Mapping[str, Any],
    result: Result,
    parsed: Parsed,
    manifest: Manifest,
    status: Status,
) -> Iterator[dict[str, Any]]:
    several = len({m.case for m in parsed.measurements}) > 1
    of_step = {
        "campaign": archive.id,
        "host": step["host"],
        "workload": manifest.name,
        "repeat": step["repeat"],
        "time": utc(result.started),
        "tool_version": parsed.version or "",
        "raw": archive.named(folder / safe_name(step["output"])),
        "standing": parsed.standing.value if parsed.standing else "",
        "members": json.dumps(step["members"]) if step["members"] else "",
    }
    for m in [*parsed.measurements, *_beside(step, result, parsed, manifest)]:
        case = f"{step['case']}/{m.case}" if several and m.case else step["case"]
        yield row(m, {**of_step, "case": case, "status": _status_of(m.case, parsed, status)}, step, manifest)


def _beside(step: Mapping[str, Any], result: Result, parsed: Parsed, manifest: Manifest) -> list[Measurement]:
    """Return the measurements from the host's telemetry. If other hosts took part, power is added later."""
    measurements: list[Measurement] = []
    if result.telemetry and not parsed.elsewhere and not workers(step):
        here = [energy.Watched(result.telemetry, parsed.window)]
        measurements += energy.drawn(here) + energy.of_work(here, parsed.measurements, manifest)
    if manifest.scope == "pair" or len(step["members"] or ()) > 1:
        measurements += congestion.counted(result.telemetry)
    return measurements


def workers(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the hosts whose power counts for a step, if other hosts take part.

    They are all hosts that run the step together, or the server of a pair. The result is empty if only the step's own
    host counts.
    """
    members = tuple(step["members"] or ())
    if len(members) > 1:
        return members
    server = str(step["subject"]).removeprefix(f"{step['host']}>")
    return (server,) if server not in (step["subject"], step["host"]) else ()


def row(m: Measurement, of_step: Mapping[str, Any], step: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """Return a measurement of ``step`` as a row of ``base.schema``. ``of_step`` has the columns shared by all rows of
    the step.
    """
    metric = manifest.metrics.get(m.metric)
    cases = [step["case"], m.case]
    described = manifest.describe(m.metric, cases, step["class_"] or manifest.class_, m.unit, m.better)
    of_metric = {
        "subject": _subject(step["subject"], m.subject),
        "class": described.class_,
        "kind": described.kind,
        "better": str(described.better),
        "headline": m.metric in step["headline"] and m.subject == "host",
        "centre": ((metric and metric.centre) or manifest.centre).value,
        "bits": bool(metric and metric.bits),
        "percent": bool(metric and metric.percent),
    }
    return schema.row(m, {**of_step, **of_metric})


def _status_of(case: str, parsed: Parsed, status: Status) -> str:
    """Return the status of the rows of one case, because a run may be invalid for only some of its cases."""
    spared = status == Status.INVALID and parsed.invalid_cases and case not in parsed.invalid_cases
    return (Status.PASSED if spared else status).value


def _subject(scheduled: str, parsed: str) -> str:
    """Return the measured subject: the parser's subject within the scheduled one, such as a stream of a pair."""
    if parsed == "host" or scheduled == "host":
        return scheduled if parsed == "host" else parsed
    return f"{scheduled} {parsed}"
