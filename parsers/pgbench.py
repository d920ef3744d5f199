"""Parse pgbench's report, of PostgreSQL 9 to 17, from a manual run or from Fleetmark's driver.

Case: the script (``tpcb-like``, ``select-only``, ``simple-update``, the name of a file). Metrics:
``transactions_per_second`` in 1/s (higher is better), without the time to connect; ``latency_mean`` and ``_stddev`` in
s (lower is better); ``_p50``, ``_p95``, ``_p99``, which Fleetmark's driver computes from the log of all transactions;
``failed``, the number of failed transactions (lower is better); ``clients``, the number of connections.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.load import last, latencies
from fleetmark.parsers.kit.text import decode, number

_TOOL = "pgbench"
_VERSION = re.compile(r"^pgbench \((?:PostgreSQL\) )?([0-9]{1,2}\.[0-9]{1,3})\b", re.MULTILINE)
_RATE = re.compile(r"^tps = ([0-9.]{1,18}) \((?:without initial connection time|excluding connections establishing)\)$")
_SCRIPT = re.compile(r"^transaction type: (.{1,80})$", re.MULTILINE)
_CLIENTS = re.compile(r"^number of clients: ([0-9]{1,7})$", re.MULTILINE)
_MILLISECONDS = re.compile(r"^latency (average|stddev) = ([0-9.]{1,18}) ms$", re.MULTILINE)
_WITHIN = re.compile(r"^fleetmark: (50|95|99)% of [0-9]{1,12} transactions within ([0-9.]{1,18}) s$", re.MULTILINE)
_NONE = "number of transactions actually processed: 0"
_FAILED = re.compile(r"^number of failed transactions: ([0-9]{1,15}) ", re.MULTILINE)
_NAMES = {"TPC-B (sort of)": "tpcb-like", "select only": "select-only", "simple update": "simple-update"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the run that counts. Raise ParseError if it has no transaction or no rate."""
    load = last(decode(raw))
    text = load.section.text
    rates = [value for _, line in load.section.lines if (match := _RATE.match(line)) and (value := number(match[1]))]
    if not rates and (idle := next(((n, line) for n, line in load.section.lines if line == _NONE), None)):
        raise ParseError(_TOOL, "a finished transaction (raise pgbench.duration)", line=idle[0], got=idle[1])
    if not rates:
        n, line = next(((n, line) for n, line in reversed(load.section.lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "pgbench's line tps without the time to connect", line=n, got=line)
    case = _case(text)
    measurements = [Measurement(_TOOL, case, "transactions_per_second", rates[-1], "1/s", better=Better.HIGHER)]
    times = {"mean" if m[1] == "average" else m[1]: _scaled(m[2], 1e-3) for m in _MILLISECONDS.finditer(text)}
    times |= {f"p{match[1]}": _scaled(match[2], 1.0) for match in _WITHIN.finditer(text)}
    measurements += latencies(_TOOL, case, times)
    if match := _FAILED.search(text):
        measurements.append(Measurement(_TOOL, case, "failed", float(match[1]), "1", better=Better.LOWER))
    if match := _CLIENTS.search(text):
        measurements.append(Measurement(_TOOL, case, "clients", float(match[1]), "1", better=Better.NONE))
    version = _VERSION.search(text)
    return Parsed(_TOOL, tuple(measurements), version and version[1], load.invalid(times.get("p99")))


def _scaled(figure: str, factor: float) -> float | None:
    value = number(figure)
    return None if value is None else value * factor


def _case(text: str) -> str:
    match = _SCRIPT.search(text)
    script = match[1].removeprefix("<builtin: ").removesuffix(">") if match else ""
    return _NAMES.get(script, script.strip()) or "pgbench"
