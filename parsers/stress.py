"""Parse the output of stress-ng (text from version 0.05 on, or YAML) and of Fleetmark's monitor beside it.

Case: ``soak``. Metrics: the monitor's counters (``faults`` is their sum; lower is better), ``temperature_max`` in degC,
``clock_min`` in Hz, and with a label ``stressor`` ``instances`` that passed and ``bogo_ops_per_second`` in 1/s of wall
time, which is only descriptive. A rate that stress-ng calls untrustworthy is omitted, with a note. A soak is
``invalid`` if a fault occurred, a result failed verification, a stressor failed or was skipped, or stress-ng did not
report success. The YAML does not state whether a stressor failed; a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "stress"
_LONGEST = 1000  # maximum line length in characters
_COUNTERS = {
    "throttles": "throttled {n} times because of heat or power",
    "quota_throttles": "was throttled {n} times by a quota",
    "corrected_errors": "corrected {n} memory errors",
    "uncorrected_errors": "had {n} uncorrected memory errors",
    "machine_checks": "had {n} machine checks",
    "gpu_slowdowns": "had GPUs that slowed down for heat or power in {n} samples",
    "gpu_uncorrected_errors": "had {n} uncorrected GPU memory errors",
}
_WATCH = re.compile(r"fleetmark: ([a-z_]{1,40}) ([0-9]{1,15}(?:\.[0-9]{1,3})?)")
_EARLY = re.compile(r"fleetmark: (the command beside it ended early with exit status -?[0-9]{1,5})")
_SAID = re.compile(r"stress-ng: (\w{4,5}):? +\[[0-9]{1,10}\] (.*)")
_SUMMARY = re.compile(r"(skipped|failed): ([1-9][0-9]{0,9}:? .{1,120})")
_INSTANCES = re.compile(r"(passed|metrics untrustworthy): [1-9][0-9]{0,9}: (.{1,400})")
_COUNT = re.compile(r"([a-z0-9-]{1,40}) \(([0-9]{1,9})\)")
_TIME = r" +[0-9.]{1,20}"
_ROW = re.compile(rf"([a-z0-9-]{{1,40}}) +[0-9]{{1,20}}{_TIME}{_TIME}{_TIME} +([0-9.]{{1,24}}) +[0-9.]{{1,24}}(?: .*)?")
_YAML = re.compile(r" {4,6}(?:- )?(stressor|bogo-ops-per-second-real-time): (\S{1,60})")
_GAUGES = {"temperature_max": "degC", "clock_min": "Hz"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return counters and rates. Raise ParseError if there are none."""
    text = decode(raw)
    lines = [(n, line) for n, line in numbered(text) if len(line) <= _LONGEST]
    doubted = sorted(_instances(lines, "metrics untrustworthy"))
    measurements = {
        (m.metric, m.labels.get("stressor", "")): m
        for m in _measurements(lines)
        if m.metric != "bogo_ops_per_second" or m.labels["stressor"] not in doubted
    }
    for stressor, count in _instances(lines, "passed").items():
        labels = {"stressor": stressor}
        measurements["instances", stressor] = Measurement(
            _TOOL, "soak", "instances", float(count), "1", better=Better.NONE, labels=labels
        )
    if not measurements:
        last = next(((n, line) for n, line in reversed(lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "stress-ng's metrics", line=last[0], got=last[1])
    counts = {m.metric: m.value for m in measurements.values()}
    faults = [words.format(n=f"{counts[name]:g}") for name, words in _COUNTERS.items() if counts.get(name)]
    broken = [f"the host {', '.join(faults)}"] if faults else []
    broken += [match[1] for _, line in lines if (match := _EARLY.fullmatch(line))]
    broken += _failures(lines)
    invalid = "; ".join(broken) or _unfinished(text, lines)
    notes = ["stress-ng's YAML does not show whether a stressor failed"] if _is_yaml(lines) else []
    if doubted:
        notes.append(f"stress-ng calls its rates of {', '.join(doubted)} untrustworthy: they are left out")
    return Parsed(_TOOL, tuple(measurements.values()), None, invalid, tuple(notes))


def _instances(lines: Sequence[tuple[int, str]], kind: str) -> dict[str, int]:
    """Return the instances by stressor that stress-ng 0.16 and later counts as ``kind`` at the end."""
    words = (match[2] for _, line in lines if (match := _SAID.fullmatch(line)))
    counted = (match for word in words if (match := _INSTANCES.fullmatch(word)) and match[1] == kind)
    return {name: int(count) for match in counted for name, count in _COUNT.findall(match[2])}


def _measurements(lines: Sequence[tuple[int, str]]) -> Iterator[Measurement]:
    stressor = ""
    for _, line in lines:
        if match := _WATCH.fullmatch(line):
            name, value = match[1], float(match[2])
            if name in _GAUGES and value:
                yield Measurement(_TOOL, "soak", name, value, _GAUGES[name], better=Better.NONE)
            elif name == "faults" or name in _COUNTERS:
                yield Measurement(_TOOL, "soak", name, value, "1", better=Better.LOWER)
        elif (match := _SAID.fullmatch(line)) and match[1] in ("info", "metrc") and (row := _ROW.fullmatch(match[2])):
            yield from _rate(row[1], row[2])
        elif match := _YAML.fullmatch(line):
            if match[1] == "stressor":
                stressor = match[2]
            elif stressor:
                yield from _rate(stressor, match[2])


def _rate(stressor: str, figure: str) -> Iterator[Measurement]:
    if rate := number(figure):
        labels = {"stressor": stressor}
        yield Measurement(_TOOL, "soak", "bogo_ops_per_second", rate, "1/s", better=Better.NONE, labels=labels)


def _failures(lines: Sequence[tuple[int, str]]) -> list[str]:
    """Return the failures that stress-ng reports: its first error, and stressors that did not pass.

    stress-ng 0.16 and later count stressors by result. A stressor that calls _exit() counts as failed, although
    stress-ng still reports a successful run.
    """
    words = [match for _, line in lines if (match := _SAID.fullmatch(line))]
    wrong = [
        m[2].strip()[:200]
        for m in words
        if m[1] == "fail" or "terminated with an error" in m[2] or m[2].startswith("unsuccessful run")
    ]
    counted = [f"stressors {m[1]}: {m[2].strip()}" for word in words if (m := _SUMMARY.fullmatch(word[2]))]
    return wrong[:1] + counted


def _is_yaml(lines: Sequence[tuple[int, str]]) -> bool:
    return any(line.rstrip() == "..." for _, line in lines)  # the end of a YAML document


def _unfinished(text: str, lines: Sequence[tuple[int, str]]) -> str | None:
    if _is_yaml(lines):
        return None
    if not any("successful run completed in" in line for _, line in lines):
        return cut("stress-ng did not report a successful end")
    watched = any(line.startswith("fleetmark: ") for _, line in lines)
    ended = any(line.startswith("fleetmark: faults ") for _, line in lines)
    return cut_in_line(text) or (cut("the monitor printed no sum of faults") if watched and not ended else None)
