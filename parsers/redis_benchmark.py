"""Parse ``redis-benchmark --csv``, of Redis 2 to 7 and Valkey, from a manual run or from Fleetmark's driver.

Case: the test (``SET``, ``LRANGE_100 (first 100 elements)``). Metrics: ``requests_per_second`` in 1/s (higher);
``latency_mean``, ``_min``, ``_p50``, ``_p95``, ``_p99``, ``_max`` in s (lower; from 6.2 on); ``clients``, connections.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.load import last, latencies
from fleetmark.parsers.kit.text import decode, number

_TOOL = "redis_benchmark"
_COLUMNS = ("avg", "min", "p50", "p95", "p99", "max")
_HEADING = ["test", "rps", *(f"{column}_latency_ms" for column in _COLUMNS)]
_LONGEST = 200  # maximum characters of a row


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the rows of the run that counts. Raise ParseError if there is none."""
    text = decode(raw)
    load = last(text)
    rows = dict(_rows(load.section.lines))
    if not rows:
        n, line = next(((n, line) for n, line in reversed(load.section.lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "a row of redis-benchmark --csv", line=n, got=line)
    measurements = [m for test, figures in rows.items() for m in _measurements(test, figures)]
    for test in rows:
        measurements += load.clients(_TOOL, test)
    p99 = max((m.value for m in measurements if m.metric == "latency_p99"), default=None)
    return Parsed(_TOOL, tuple(measurements), invalid=load.invalid(p99))


def _rows(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, list[float]]]:
    """Yield each test with its rate, and with its latencies in ms if a heading names them."""
    for _, line in lines:
        if len(line) > _LONGEST or not line.startswith('"'):
            continue
        cells = next(csv.reader([line]))
        figures = [value for cell in cells[1:] if (value := number(cell)) is not None]
        if cells != _HEADING and cells[0].strip() and len(figures) == len(cells) - 1 in (1, len(_COLUMNS) + 1):
            yield cells[0].strip(), figures


def _measurements(test: str, figures: Sequence[float]) -> Iterator[Measurement]:
    yield Measurement(_TOOL, test, "requests_per_second", figures[0], "1/s", better=Better.HIGHER)
    names = ("mean" if column == "avg" else column for column in _COLUMNS)
    yield from latencies(_TOOL, test, {name: ms / 1e3 for name, ms in zip(names, figures[1:], strict=False)})
