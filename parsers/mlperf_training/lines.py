"""Read the records of MLPerf Training logs: ``:::MLLOG`` (v0.7 and later), ``:::MLL`` (v0.6) and ``:::MLPv0.5.0``.

Times become milliseconds since the epoch, as mllog prints them; the two older formats and ``time_s`` are in seconds.
The text of a record stays unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from typing import Any

from fleetmark.parsers.kit.mllog import MARK, MllogLines, records
from fleetmark.parsers.kit.text import number

UNREADABLE = "unreadable"  # the key of a line with a record that is truncated or damaged
SYSTEM = "system"  # the key of NVIDIA's description of the system
_LATEST = 1e14  # latest valid time, in ms: the year 5138

_KEYS = rb"""run_(?:start|stop)|eval_(?:accuracy|error|result|target|start|stop)|(?:epoch|block)_(?:start|stop)
|target_accuracy|seed|run_set_random_seed|global_batch_size|submission_(?:benchmark|org|platform)|throughput
|loadgen_version|init_start""".replace(b"\n", b"")
_WANTED = re.compile(rb'"(?:%b)"' % _KEYS)  # avoids decoding most lines
_TRAILING_COMMA = re.compile(rb",\s{0,9}\}")
# Up to v0.6: a timestamp, a key, a JSON object.
_MLL = re.compile(rb":::MLL ([0-9]{1,15}(?:\.[0-9]{0,12})?) (%b) ?: {1,9}(\S.*)" % _KEYS)
# v0.5: the benchmark, a timestamp, the position in the source, a key, and possibly a value.
_MLP = re.compile(
    rb":::MLPv([0-9.]{1,12}) ([\w-]{1,40}) ([0-9]{1,15}(?:\.[0-9]{0,12})?) "
    rb"\([^()\s]{0,300}\) (%b)(?: ?: {0,9}(\S.*)|\s*$)" % _KEYS
)
_SYSTEM = re.compile(rb"^(?:\s{0,9}\d{1,7}: )?:::SYSJSON (\{.*)")
_OLDER = b":::ML"
_KEY = re.compile(rb'"key"\s{0,9}:\s{0,9}"(\w{1,40})"')
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True, slots=True)
class Record:
    """One record on ``line``. ``time`` is in ms; None if the text has no valid time."""

    line: int
    key: str
    value: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    time: float | None = None
    _: KW_ONLY
    benchmark: str | None = None  # if each line names it (v0.5)
    version: str | None = None  # version of the format, if each line names it


class Reader:
    """Extract the relevant records from a stream of lines, and note where other formats appear."""

    def __init__(self) -> None:
        self.line = 0  # the last line that is not blank
        self.loadgen = 0  # the line on which LoadGen (MLPerf Inference) names itself
        self.last = b""  # the beginning of ``line``

    def read(self, lines: MllogLines) -> Iterator[Record]:
        """Yield every record with a key of interest. Raise DamagedError."""
        for n, line in enumerate(lines, 1):
            if line and not line.isspace():
                self.line, self.last = n, line[:500]
            if MARK in line:
                if _WANTED.search(line):
                    for record in _modern(n, line):
                        self.loadgen = self.loadgen or (n if record.key == "loadgen_version" else 0)
                        yield record
            elif _OLDER in line:
                yield from _older(n, line, lines.open_end)
            elif match := _SYSTEM.match(line):
                value = _json(match[1])
                if isinstance(value, dict):
                    yield Record(n, SYSTEM, value)


def _modern(n: int, line: bytes) -> Iterator[Record]:
    found_records = list(records(line)) or list(records(_TRAILING_COMMA.sub(b"}", line)))
    for record in found_records:
        key, metadata = record.get("key"), record.get("metadata")
        if isinstance(key, str):
            time = _time(record.get("time_ms")) or _time(record.get("time_s"), 1000)
            yield Record(n, key, record.get("value"), metadata if isinstance(metadata, dict) else {}, time)
    if len(found_records) < line.count(MARK):
        yield _unreadable(n, line)


def _unreadable(n: int, line: bytes) -> Record:
    key = _KEY.search(line)
    return Record(n, UNREADABLE, key[1].decode() if key else None)


def _older(n: int, line: bytes, cut: bool) -> Iterator[Record]:
    """Yield the record of a line of v0.6 or v0.5.

    A last line without a line end may have lost digits, unless it is JSON.
    """
    if match := _MLL.search(line):
        value = _json(match[3])
        if not isinstance(value, dict):
            yield Record(n, UNREADABLE, match[2].decode())
            return
        metadata = value.get("metadata")
        time = _time(Decimal(match[1].decode()), 1000)
        yield Record(n, match[2].decode(), value.get("value"), metadata if isinstance(metadata, dict) else {}, time)
    elif match := _MLP.search(line):
        value = _json(match[5]) if match[5] else None
        if cut and not isinstance(value, dict):
            return
        if match[5] and value is None and not match[5].startswith(b"null"):
            yield Record(n, UNREADABLE, match[4].decode())
            return
        metadata = value if isinstance(value, dict) else {}
        version, benchmark, key = match[1].decode().strip(".") or None, match[2].decode(), match[4].decode()
        inner = metadata.get("value") if metadata else value
        yield Record(
            n, key, inner, metadata, _time(Decimal(match[3].decode()), 1000), benchmark=benchmark, version=version
        )


def _time(value: object, factor: int = 1) -> float | None:
    """Return ``value`` times ``factor`` as ms; None if it is not a time since the epoch.

    Zero means no time in some logs.
    """
    seconds = float(value * factor) if isinstance(value, Decimal) else number(value)
    if seconds is None:
        return None
    if not isinstance(value, Decimal):
        seconds *= factor
    return seconds if 0 < seconds < _LATEST else None


def _json(raw: bytes) -> Any:
    """Return the JSON value at the start of ``raw``; None if there is none."""
    try:
        return _DECODER.raw_decode(raw.decode("utf-8", "replace").replace("\0", ""))[0]
    except (ValueError, RecursionError):
        return None
