"""Parse MLPerf Inference: LoadGen's summary and detail log, accuracy.txt, and reports of MLPerf's endpoints client.

Case: the scenario (``SingleStream``, ``MultiStream``, ``Server``, ``Interactive``, ``Offline``), or ``accuracy``.
LoadGen runs Interactive as Server. The limits of TTFT and TPOT, or the word in the command, distinguish the two.

Metrics, in 1/s and higher unless stated otherwise: ``samples_per_second`` and ``tokens_per_second`` (the completed ones
in Server), ``inferred_tokens_per_second`` (samples times a factor, gptj), ``scheduled_samples_per_second`` (the
requested rate, only descriptive), ``qps_with_overhead`` and ``qps_without_overhead``, and the same names with ``tps_``.
In s, lower (only descriptive in Offline, where all samples wait from the start): ``latency_min``, ``_max``, ``_mean``,
``_p50`` to ``_p99.9``, ``ttft_*`` and ``tpot_*`` likewise, ``*_early_stopping`` with the label ``percentile``. In
MultiStream, these cover queries, and ``sample_latency_*`` covers samples. ``latency`` is the score of SingleStream and
MultiStream: the early-stopping estimate at percentile 90 or 99 (or the log's own target) if it is printed, otherwise
that percentile; a note says which. Descriptive counts: ``queries``, ``samples``. ``samples_per_query`` (higher) is the
score of MultiStream up to v1.1.

Accuracy: ``accuracy``, ``auc``, ``map`` are fractions, whether printed as percent or not. Everything printed with a
percent sign also becomes a fraction. ``rouge1``, ``rougel``, ``f1``, ``exact_match``, ``bleu``, ``fid_score`` (lower)
and the like stay as printed, usually from 0 to 100. Counts: ``good``, ``total``, ``gen_len``, ``tokens_per_sample``.

Source: LoadGen v0.5 to v6.0 (results.cc, test_settings_internal.cc), the endpoints client 0.1.0 (report.py), and the
inference rules: runs of 600 s (60 s up to v0.7), latency limits, compliance tests TEST01 to TEST09. Logs of accuracy
mode, mlperf_log_accuracy.json and detail logs before v1.0 have no result. Results that MLCommons did not publish are
unverified, so every result is marked as such. A log or report without its last line is truncated and therefore invalid.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Measurement, Parsed, Standing
from fleetmark.parsers.kit.mllog import MARK, DamagedError, MllogLines, records
from fleetmark.parsers.kit.text import decode, find_json, number
from fleetmark.parsers.mlperf_inference.accuracy import CASE as ACCURACY
from fleetmark.parsers.mlperf_inference.accuracy import AccuracyReader
from fleetmark.parsers.mlperf_inference.detail import OTHERS, WANTED, DetailReader, take_result
from fleetmark.parsers.mlperf_inference.report import Report, ReportReader, from_json
from fleetmark.parsers.mlperf_inference.run import CUT, TOOL, Run, hint
from fleetmark.parsers.mlperf_inference.summary import SummaryReader

_LONGEST_TEXT = 20_000  # bytes of a line that is not a record
_LARGEST_JSON = 2 << 20
_RESPONSE = re.compile(rb'\[?\s{0,20}\{\s{0,9}"seq_id"\s{0,9}:')
_NO_RESPONSES = "a result; this is mlperf_log_accuracy.json, the responses of a run"
_OLD_DETAIL = re.compile(r'"pid": [0-9]{1,20}, "tid": [0-9]{1,20}, "ts": ')
# A line of NVIDIA's harness, used if nothing else of the log is in the text.
_HARNESS = re.compile(
    r"(?:.{0,200}\s)?(result_\w{1,40}|early_stopping_latency_[sm]s): (\S{1,40}), {1,2}"
    r"Result is (VALID|INVALID)\b.{0,300}"
)
_TAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,60}\Z")


class _Reader:
    """Read a stream of lines with a fixed amount of memory."""

    def __init__(self) -> None:
        self.detail, self.summary = DetailReader(), SummaryReader()
        self.report, self.accuracy = ReportReader(), AccuracyReader()
        self.documents: list[Report] = []
        self.harness: list[Run] = []
        self.cut: int | None = None  # the last line, left out because it may be incomplete
        self.old_detail: int | None = None
        self.last: tuple[int, str] | None = None
        self._first: bytes | None = None  # the beginning of the first line that is not blank
        self._json: list[bytes] | None = None  # all lines, if the text begins as a JSON object
        self._json_size = 0

    def read(self, lines: MllogLines) -> None:
        """Read to the end. Raise ParseError early for another kind of file, and DamagedError for damaged input."""
        others, mark = OTHERS.match, MARK
        n = 0
        for n, line in enumerate(lines, 1):
            if others(line) and line.find(mark, 1) < 0:
                continue
            if mark in line:
                for record in records(line, WANTED):
                    self.detail.take(n, record)
            elif line or self._json is not None:
                self._take_text(n, line, lines.open_end)
        if self._json is not None:
            self._take_json(b"\n".join(self._json))
        self.last = self.last or ((n, "") if n else None)

    @property
    def empty_list(self) -> bool:
        """Return whether the text is only ``[`` and ``]``, as LoadGen writes if no responses are logged."""
        return self._first is not None and self._first.strip() == b"[" and self.last is not None and self.last[1] == "]"

    def _take_text(self, n: int, raw: bytes, open_end: bool) -> None:
        if self._first is None and raw.strip():
            self._first = raw.lstrip()[:100]
            self._json = [b""] * (n - 1) if self._first.startswith(b"{") and n < 1000 else None
        if self._first is not None and self._first.startswith(b"[") and n < 100 and _RESPONSE.match(raw.lstrip()):
            raise ParseError(TOOL, _NO_RESPONSES, line=n)
        self._keep_json(raw)
        for part in raw.split(b"\r") if b"\r" in raw else (raw,):
            if len(part) > _LONGEST_TEXT:
                continue
            text = decode(part) if b"\x1b" in part or b"\0" in part else part.decode("utf-8", "replace")
            if open_end and not text.startswith("hash="):
                text = self._without_cut(n, text)
            self._take_line(n, text, open_end)

    def _without_cut(self, n: int, text: str) -> str:
        """Return ``text``, an unterminated line, without a figure at its end, because it may have lost digits."""
        tail = _TAIL.search(text)
        if tail is None or not any(c.isdigit() for c in tail[0]):
            return text
        self.cut = n
        return text[: tail.start()]

    def _take_line(self, n: int, text: str, open_end: bool) -> None:
        stripped = text.strip()
        if not stripped:
            return
        self.last = (n, stripped)
        if stripped.startswith('"pid"') and _OLD_DETAIL.match(text):
            self.old_detail = self.old_detail or n
        elif not self.report.take(n, text):
            self.summary.take(n, text)
            self.accuracy.take(n, text, open_end)
            if "Result is" in text and (match := _HARNESS.fullmatch(text)):
                self._take_harness(n, match)

    def _take_harness(self, n: int, match: re.Match[str]) -> None:
        value = number(match[2])
        if value is None or len(self.harness) >= 1000:
            return
        run = Run(line=n, titled=True, verdict=match[3], ended=True)
        name = match[1]
        run.scenario = {"ss": "SingleStream", "ms": "MultiStream"}.get(name[-2:])
        if run.scenario is None:
            run.scenario = "Server" if "completed" in name or "scheduled" in name else "Offline"
        take_result(run, name, value)
        if "10-min runtime requirement met: False" in match[0]:
            run.say("short: the harness reports that the run took less than 10 minutes")
        run.finish()
        self.harness.append(run)

    def _keep_json(self, raw: bytes) -> None:
        if self._json is not None:
            self._json_size += len(raw) + 1
            self._json.append(raw)
            if self._json_size > _LARGEST_JSON:
                self._json = None

    def _take_json(self, raw: bytes) -> None:
        for document in find_json(decode(raw)).documents:
            if "traceEvents" in document.value:
                raise ParseError(TOOL, "a result; this is a trace", line=document.line)
            if report := from_json(document.value, document.line):
                self.documents.append(report)
            elif document.end > document.line:
                self.accuracy.take_object(document.value)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the results in ``raw``, as ``parse_stream`` does."""
    return parse_stream(io.BytesIO(raw), command)


def parse_stream(file: BinaryIO, command: Sequence[str] = ()) -> Parsed:
    """Return the results in ``file``, with or without gzip.

    The file is read as a stream, so a large detail log needs little memory. ``command`` may add what the log lacks: the
    Interactive scenario, a compliance test, a search for the peak. Runs that break their rules are omitted if there
    are other runs; otherwise they are kept and ``invalid``. Raise ParseError if the file has no result.
    """
    reader = _Reader()
    try:
        reader.read(MllogLines(file))
    except DamagedError as error:
        raise ParseError(TOOL, "a whole log", got=str(error)) from error
    runs = _loadgen(reader)
    reports = reader.report.finish() + reader.documents
    scores = reader.accuracy.finish()
    if not runs and not reports and not scores:
        raise _nothing(reader)
    notes: list[str] = []
    measurements, invalid = _settle([*runs, *reports], command, notes)
    if scores and not runs and not reports:
        invalid = _no_score(reader, command)
    invalid = invalid or _cut(reader, [*runs, *reports])
    notes += reader.accuracy.notes
    if reader.cut is not None:
        notes.append(f"line {reader.cut}: the text ends within a line, which is left out")
    if left_out := reader.summary.left_out + reader.detail.left_out:
        notes.append(f"{left_out} more runs, left out")
    taken = {(m.metric, tuple(sorted(m.labels.items()))) for m in measurements if m.case == ACCURACY}
    measurements += [s for s in scores if (s.metric, tuple(sorted(s.labels.items()))) not in taken]
    return Parsed(
        TOOL,
        tuple(measurements),
        _version(runs, reports),
        invalid,
        tuple(dict.fromkeys(notes)),
        standing=Standing.UNVERIFIED,
    )


def _loadgen(reader: _Reader) -> list[Run]:
    """Return LoadGen's runs. A run that the text contains both as summary and as records counts once."""
    summaries, details = reader.summary.finish(), reader.detail.finish()
    for detail in details:
        matches = [run for run in summaries if run.scenario == detail.scenario and run.verdict == detail.verdict]
        for run in matches:
            run.version = run.version or detail.version
            run.audited |= detail.audited
            run.say("the detail log's records beside the summary tell the same run")
        if not matches:
            summaries.append(detail)
    return summaries or reader.harness


def _settle(
    runs: Iterable[Run | Report], command: Sequence[str], notes: list[str]
) -> tuple[list[Measurement], str | None]:
    """Return the measurements of the valid runs, or of all runs and the reason if none is valid."""
    judged = [(run, run.case(command), "; ".join(run.wrong(command))) for run in runs]
    used = [entry for entry in judged if not entry[2]] or judged
    several = len(judged) > 1
    notes += [f"{case}: a run left out: {reason}" for run, case, reason in judged if (run, case, reason) not in used]
    measurements: list[Measurement] = []
    for run, case, _ in used:
        measurements += run.measure(case)
        notes += [f"{case}: {remark}" if several else remark for remark in run.remarks()]
    cases = [case for _, case, _ in used]
    if len(set(cases)) < len(cases):
        notes.append(f"{len(cases)} runs: repeats of a case have the same names")
    return measurements, (used[0][2] or None) if used else None


def _cut(reader: _Reader, runs: Iterable[Run | Report]) -> str | None:
    """Return a sentence if the text ends within one of several results and others are complete."""
    if any(not run.ended for run in runs):
        return CUT.format("one of its results ends before its last line")
    if begun := reader.summary.begun:
        return CUT.format(f"the run that begins on line {begun} has no figure")
    return CUT.format(reader.accuracy.cut) if reader.accuracy.cut else None


def _no_score(reader: _Reader, command: Sequence[str]) -> str | None:
    """Return why an accuracy without a run does not come from an accuracy run; None if it does."""
    if reader.accuracy.verification is not None:
        return "a compliance test's verification, not the accuracy of a run"
    word = hint(command)
    return f"not an accuracy run by its command: {word}" if word else None


def _version(runs: list[Run], reports: list[Report]) -> str | None:
    for run in runs:
        if run.version:
            return run.version
    return next((f"endpoints-{report.version}" for report in reports if report.version), None)


def _nothing(reader: _Reader) -> ParseError:
    """Return the error that names what is missing, as precisely as the text allows."""
    line: int | None
    got: str | None
    line, got = reader.last or (None, "no output")
    details, summary = reader.detail.runs, reader.summary
    if any((run.mode or "").startswith("Accuracy") for run in details + summary.runs):
        expected, got = "a performance result; this is a log of an accuracy-mode run, which has none", None
    elif details:
        expected = "LoadGen's result_* records after its settings"
        line, got = reader.detail.last_key or (details[-1].line, "")
    elif summary.title is not None:
        expected = "samples per second or latencies in LoadGen's summary"
    elif reader.old_detail is not None:
        expected = "result_* records; detail logs before LoadGen 1.0 have none, their results are in the summary"
        line, got = reader.old_detail, None
    elif reader.accuracy.verification is not None:
        expected = "a result; this is the verification of a compliance test"
        line, got = reader.accuracy.verification, None
    elif reader.accuracy.hash is not None:
        expected = "a score beside the hash of a run's responses"
        line, got = reader.accuracy.hash, None
    elif summary.ending is not None:
        expected = "a performance result; this is the summary of an accuracy-mode run, which has none"
        line, got = summary.ending, None
    elif reader.empty_list:
        expected, got = _NO_RESPONSES, None
    else:
        expected = "LoadGen's summary or detail log, accuracy.txt, or a report of MLPerf's endpoints client"
    return ParseError(TOOL, expected, line=line, got=got or None)
