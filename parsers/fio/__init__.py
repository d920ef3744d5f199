"""Parse fio's bandwidth, IOPS and latency of each job and direction, from JSON, JSON+, terse or normal output.

Metrics have the direction in their name: ``read_bw`` (B/s), ``write_iops`` (1/s), ``read_lat_mean``, ``read_clat_p99``
(s), ``sync_lat_p99.9`` (s), and ``cpu_usr``, ``cpu_sys`` (fractions of the job's run time).

The case is the job's name. The subject is ``host``, the server's name in client/server mode, or ``all`` for fio's own
sums over clients or a group. Never add these sums to the jobs. Jobs that share name and subject (``numjobs`` without
``group_reporting``) have a label ``clone``, counted from 1. Several runs in one file are repeats.

Latencies of 0, which older versions print for times below their clock's resolution, are omitted. ``latency_depth`` is
the queue depth that meets a latency target (latency_target, JSON only). A target missed at a depth of 1 makes the run
``invalid``.

Source: fio 2.0 to 3.42 (stat.c, client.c). Up to 2.x, latencies are in microseconds and ``io_bytes`` in KiB. Version
2.99 introduced nanoseconds, and 3.2 ``bw_bytes``. ``bw`` is in KiB/s in all versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.fio.text import (
    ALL_CLIENTS,
    COMPLAINT,
    FATAL,
    Job,
    new_job,
    percentile_name,
    put,
    read_normal,
    read_terse,
)
from fleetmark.parsers.kit.cut import cut_in_json
from fleetmark.parsers.kit.text import Document, JsonScan, decode, dig, find_json, matches, number, numbered, objects

_DIRECTIONS = ("read", "write", "trim", "mixed")
_SNAPSHOT_SLACK = 3.0  # seconds: fio's timestamps are whole seconds, slightly after the interval that they describe
_DISAGREE = 0.02


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every job in ``raw``, in any of fio's output formats; other text is skipped.

    ``invalid`` is set if a job failed, was interrupted or failed verification, or if the text ends too early. Raise
    ParseError, with fio's own message if there is one, if no job did any I/O.
    """
    text = decode(raw)
    scan = find_json(text)
    notes: list[str] = []
    runs = [(d, _read_json(d.value, notes)) for d in scan.documents if _entries(d.value)]
    runs = _without_snapshots(runs, notes)
    version = next((v for d, _ in runs if isinstance(v := dig(d.value, "fio version"), str)), None)
    batches = [jobs for _, jobs in runs]
    ends_early = cut_in_json(scan)
    if not any(j.values for jobs in batches for j in jobs):
        for reader in (read_terse, read_normal):
            text_form = reader(scan.around, notes)
            version = version or text_form.version
            if text_form.jobs:
                batches.append(text_form.jobs)
                ends_early = ends_early or text_form.cut
                break
    wrong = [f"job {j.name}: {j.error}" for jobs in batches for j in jobs if j.error]
    batches = [b for b in batches if any(j.values for j in b)]
    if not batches:
        raise _nothing(scan, wrong)
    wrong += [m.string.strip() for _, m in matches(FATAL, scan.around)]
    for cut in scan.broken:
        notes.append(
            f"the JSON that begins on line {cut.line} is cut or damaged at line {cut.error_line}; it was not read"
        )
    measurements: list[Measurement] = []
    for jobs in batches:
        measurements += _measure(jobs, notes)
    if len(batches) > 1:
        notes.append(f"{len(batches)} runs in one file, which count as repeats")
    return Parsed(
        tool="fio",
        measurements=tuple(measurements),
        version=version.removeprefix("fio-") if version else None,
        invalid=ends_early or _listed(list(dict.fromkeys(wrong))),
        notes=tuple(dict.fromkeys(notes)),
    )


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of one document: ``client_stats`` in client/server mode, otherwise ``jobs``."""
    return [e for key in ("client_stats", "jobs") for e in objects(document.get(key)) if "jobname" in e]


def _read_json(document: dict[str, Any], notes: list[str]) -> list[Job]:
    jobs = []
    for entry in _entries(document):
        name, host = str(entry["jobname"]), entry.get("hostname")
        job = new_job(name, host if isinstance(host, str) and host else "host")
        for direction in _DIRECTIONS:
            job.values.update(_read_direction(entry.get(direction), direction, f"job {name}", notes))
        for metric, figure in _read_latency(dig(entry, "sync"), "lat").items():
            job.values[f"sync_{metric}"] = figure
        for metric, key in (("cpu_usr", "usr_cpu"), ("cpu_sys", "sys_cpu")):
            if job.values and job.subject != "all":
                put(job.values, metric, number(entry.get(key)), 100)
        error, errors = number(entry.get("error")), number(entry.get("total_err"))
        if error:
            job.error = f"error {error:g}"
        elif errors:
            job.error = f"{errors:g} I/O errors"
        _meet_target(job, entry, notes)
        jobs.append(job)
    return jobs


def _meet_target(job: Job, entry: dict[str, Any], notes: list[str]) -> None:
    """Read the queue depth that meets the latency target (latency_target), if fio searched for one."""
    target, rank, depth = (number(entry.get(f"latency_{key}")) for key in ("target", "percentile", "depth"))
    if not target or not depth or not job.values:
        return
    put(job.values, "latency_depth", depth)
    name = f"clat_{percentile_name(rank)}"
    reached = max((job.values[m] for m in (f"read_{name}", f"write_{name}") if m in job.values), default=None)
    if reached is None or reached <= target / 1e9:
        return
    above = f"the {rank:g}th percentile of latency is {reached * 1e3:.2f} ms, the target {target / 1e6:g} ms"
    if depth <= 1:
        job.error = f"latency target not met even at a queue depth of 1: {above}"
    else:
        notes.append(f"job {job.name}: during the search for the queue depth, {above}")


def _read_direction(part: Any, direction: str, place: str, notes: list[str]) -> dict[str, float]:
    """Return the figures of one direction of one job; empty if it did no I/O."""
    values: dict[str, float] = {}
    if not any(number(dig(part, key)) for key in ("io_bytes", "io_kbytes", "total_ios", "bw", "iops")):
        return values
    kib, exact, iops = (number(dig(part, key)) for key in ("bw", "bw_bytes", "iops"))
    rate = exact
    if kib is not None and (exact is None or not -1024 <= exact - kib * 1024 < 2048):
        # bw_bytes is the same figure before rounding down. If the two differ, bw is used, because every version prints
        # it.
        rate = kib * 1024
        if exact is not None:
            notes.append(f"{place}: {direction} bw_bytes {exact:.0f} is not bw {kib:.0f} KiB/s; used bw")
    put(values, f"{direction}_bw", rate)
    put(values, f"{direction}_iops", iops)
    if not values:
        notes.append(f"{place}: {direction} ran too briefly for a rate")
    for latency in ("lat", "clat", "slat"):
        for metric, figure in _read_latency(part, latency).items():
            values[f"{direction}_{metric}"] = figure
    if dropped := number(dig(part, "drop_ios")):  # short_ios is not reliable: fio counts every fsync as a short read
        notes.append(f"{place}: {dropped:.0f} {direction} I/Os dropped")
    return values


def _read_latency(part: Any, latency: str) -> dict[str, float]:
    """Return mean, extremes and percentiles of one latency in seconds, from ``*_ns`` or, up to 2.x, microseconds."""
    nanoseconds = dig(part, f"{latency}_ns")
    statistics, per_second = (nanoseconds, 1e9) if nanoseconds is not None else (dig(part, latency), 1e6)
    values: dict[str, float] = {}
    for kind in ("mean",) if latency == "slat" else ("mean", "min", "max"):
        put(values, f"{latency}_{kind}", number(dig(statistics, kind)), per_second)
    percentiles = dig(statistics, "percentile")
    for rank, figure in percentiles.items() if isinstance(percentiles, dict) else ():
        if name := percentile_name(number(rank)):
            put(values, f"{latency}_{name}", number(figure), per_second)
    return values


def _without_snapshots(runs: list[tuple[Document, list[Job]]], notes: list[str]) -> list[tuple[Document, list[Job]]]:
    """Return ``runs`` without the interim reports of ``--status-interval``.

    Interim reports are complete documents of the same jobs. Their time stamps differ by as much as the jobs' run times.
    """
    final: list[tuple[Document, list[Job]]] = []
    for document, jobs in runs:
        if final and _continues(final[-1][0].value, document.value):
            final.pop()
            notes.append("interim reports of --status-interval left out")
        final.append((document, jobs))
    return final


def _continues(before: dict[str, Any], after: dict[str, Any]) -> bool:
    stamps = number(before.get("timestamp")), number(after.get("timestamp"))
    then, now = _entries(before), _entries(after)
    if None in stamps or [(e["jobname"], e.get("groupid")) for e in then] != [
        (e["jobname"], e.get("groupid")) for e in now
    ]:
        return False
    ran = [
        max((number(dig(e, d, "runtime")) or 0.0 for e in entries for d in _DIRECTIONS), default=0)
        for entries in (then, now)
    ]
    assert stamps[0] is not None and stamps[1] is not None
    return 0 < ran[0] < ran[1] and abs((stamps[1] - stamps[0]) - (ran[1] - ran[0]) / 1000) < _SNAPSHOT_SLACK


def _measure(jobs: list[Job], notes: list[str]) -> list[Measurement]:
    """Return the measurements of one run; clones get a label, and fio's sums are checked against the jobs."""
    if idle := [j.name for j in jobs if not j.values and not j.error]:
        notes.append(f"no I/O by {', '.join(dict.fromkeys(idle))}")
    many = Counter((j.name, j.subject) for j in jobs)
    seen: Counter[tuple[str, str]] = Counter()
    measurements = []
    for job in jobs:
        key = job.name, job.subject
        seen[key] += 1
        clone = {"clone": str(seen[key])} if many[key] > 1 else {}
        for metric, value in job.values.items():
            unit, better = _kind(metric)
            measurements.append(
                Measurement("fio", job.name, metric, value, unit, better=better, subject=job.subject, labels=clone)
            )
    for total in (j for j in jobs if j.subject == "all"):
        for metric in (m for m in total.values if m.endswith("_bw")):
            parts = [j.values.get(metric, 0.0) for j in jobs if j.subject != "all" and _within(total, j)]
            if abs(sum(parts) / total.values[metric] - 1) > _DISAGREE:
                notes.append(
                    f"{total.name}: {metric} is {total.values[metric]:.4g} B/s, its jobs add up to {sum(parts):.4g}"
                )
    return measurements


def _within(total: Job, job: Job) -> bool:
    """Return whether fio's sum ``total`` includes ``job``.

    Sums over clients include all jobs; other sums include the jobs of their group.
    """
    return total.name == ALL_CLIENTS or total.group == job.group


def _listed(reasons: list[str], limit: int = 3) -> str | None:
    """Return the first few reasons in one sentence, since a failing disk causes thousands."""
    further = f"; and {len(reasons) - limit} more" if len(reasons) > limit else ""
    return "; ".join(reasons[:limit]) + further or None


def _kind(metric: str) -> tuple[str, Better]:
    if metric.startswith("cpu_") or metric == "latency_depth":
        return "1", Better.NONE
    if metric.endswith("_bw"):
        return "B/s", Better.HIGHER
    return ("1/s", Better.HIGHER) if metric.endswith("_iops") else ("s", Better.LOWER)


def _nothing(scan: JsonScan, wrong: list[str]) -> ParseError:
    """Return the error for output without measurements, with fio's own message if there is one."""
    for pattern in (FATAL, COMPLAINT):
        for n, match in matches(pattern, scan.around):
            return ParseError("fio", "a job that did I/O", line=n, got=match.string.strip())
    if wrong:
        return ParseError("fio", "a job that did I/O", got=wrong[0])
    if scan.broken:
        cut = scan.broken[0]
        return ParseError("fio", f"whole JSON from line {cut.line} on", line=cut.error_line, got=cut.reason)
    if scan.documents:
        document = scan.documents[0]
        content = (
            "jobs without any I/O"
            if _entries(document.value)
            else f"JSON with {', '.join(list(document.value)[:5]) or 'nothing'}"
        )
        return ParseError("fio", 'a job that did I/O under "jobs" or "client_stats"', line=document.line, got=content)
    first = next(((n, line) for n, line in numbered(scan.around) if line.strip()), None)
    if first is None:
        return ParseError("fio", "fio's output", got="nothing")
    return ParseError("fio", "fio's JSON, terse or normal output", line=first[0], got=first[1].strip())
