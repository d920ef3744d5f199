"""Parse the output of HPCG: the summary of HPCG 3.0 and 3.1 from any vendor, and NVIDIA's format of 2017.

Case: ``Np``, where N is the number of MPI processes, or ``run`` if the output does not state it. Metrics, all higher
is better: ``hpcg`` (the rating), ``spmv`` and ``multigrid`` in FLOP/s, ``memory_bandwidth`` in B/s. Descriptive
metrics: ``solve_time`` in s, ``ranks`` and ``threads``.
A result is ``invalid`` if HPCG reports INVALID or one of its checks FAILED.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered, untagged

_TOOL = "hpcg"
_LONGEST = 400  # maximum line length in characters; longer lines are skipped
_OFFICIAL_S = 1800.0  # minimum duration of an official run by HPCG's rules, in seconds
_PAIR = re.compile(r"([A-Za-z][^=]{1,200}?)(=|:(?=\s|$))\s*(\S.{0,120})?")
_RATING = re.compile(r".{0,60}HPCG result is VALID with a GFLOP/s rating of[=: ]\s*(\S{1,24}(?!\S))")
_INVALID = re.compile(r".{0,60}HPCG result is[=: ]\s*INVALID")
_PHASE = re.compile(r"(SpMV|SymGS|total|final)\s+=\s+(\S{1,16}) GF \(\s*(\S{1,16}) GB/s Effective\)")
_PHASES = {"final": "hpcg", "SpMV": "spmv", "SymGS": "multigrid"}
_FIGURES = {
    "GFLOP/s Summary::Raw SpMV": ("spmv", 1e9, "FLOP/s", Better.HIGHER),
    "GFLOP/s Summary::Raw MG": ("multigrid", 1e9, "FLOP/s", Better.HIGHER),
    "GB/s Summary::Raw Total B/W": ("memory_bandwidth", 1e9, "B/s", Better.HIGHER),
    "Benchmark Time Summary::Total": ("solve_time", 1.0, "s", Better.NONE),
    "Machine Summary::Distributed Processes": ("ranks", 1.0, "1", Better.NONE),
    "Machine Summary::Threads per processes": ("threads", 1.0, "1", Better.NONE),
}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the rating and its components. Raise ParseError if the output has neither a rating nor INVALID."""
    text = decode(raw)
    lines = [(n, untagged(line)) for n, line in numbered(text) if len(line) <= _LONGEST]
    pairs = _pairs(lines)
    rating = _rating(lines)
    rates = rating or _phases(lines)
    refused = any(_INVALID.match(line) for _, line in lines)
    figures = [(*rate, "FLOP/s" if rate[0] != "memory_bandwidth" else "B/s", Better.HIGHER) for rate in rates.items()]
    for key, (metric, factor, unit, better) in _FIGURES.items():
        value = number(pairs.get(key))
        if value and value > 0 and metric not in rates:
            figures.append((metric, value * factor, unit, better))
    if "hpcg" not in rates and not (refused and figures):
        last = next(((n, line) for n, line in reversed(lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "HPCG result is VALID with a GFLOP/s rating of", line=last[0], got=last[1])
    case = f"{processes:.0f}p" if (processes := number(pairs.get("Machine Summary::Distributed Processes"))) else "run"
    measurements = [
        Measurement(_TOOL, case, m, v, unit, better=better) for m, v, unit, better in figures if v > 0 and number(v)
    ]
    failed = [key.rpartition("::")[0] for key, value in pairs.items() if key.endswith("::Result") and value == "FAILED"]
    reasons = ["HPCG calls the result INVALID"] if refused else []
    reasons += [f"{failed[0]}: FAILED"] if failed else []
    reasons += filter(None, [_cut(text, lines, stated=bool(rating) or refused)])
    seconds = number(pairs.get("Benchmark Time Summary::Total"))
    notes = (
        [f"{seconds:g} s, but an official result needs {_OFFICIAL_S:g} s"] if seconds and seconds < _OFFICIAL_S else []
    )
    notes += [] if rating or refused else ["the output contains neither VALID nor INVALID"]
    version = next((value for key, value in pairs.items() if key.endswith("version") and value), None)
    return Parsed(_TOOL, tuple(measurements), version, invalid="; ".join(reasons) or None, notes=tuple(notes))


def _pairs(lines: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Return the summary as keys ``A::B``, as in version 3.1. In version 3.0's YAML, B is indented below A."""
    pairs: dict[str, str] = {}
    section = ""
    for _, line in lines:
        if match := _PAIR.fullmatch(line.rstrip()):
            key, value = match[1].strip(), (match[3] or "").strip()
            if match[2] == ":" and not value:
                section = key
            pairs[f"{section}::{key}" if match[2] == ":" and section and value else key] = value
    return pairs


def _rating(lines: Sequence[tuple[int, str]]) -> Mapping[str, float]:
    values = [
        value for _, line in lines if (match := _RATING.match(line)) and (value := number(match[1])) and value > 0
    ]
    return {"hpcg": values[-1] * 1e9} if values else {}


def _phases(lines: Sequence[tuple[int, str]]) -> dict[str, float]:
    """Return the rates in NVIDIA's lines, such as ``final =  202.6 GF (1536.3 GB/s Effective)``."""
    rates: dict[str, float] = {}
    for _, line in lines:
        if match := _PHASE.match(line):
            rate, bandwidth = number(match[2]), number(match[3])
            if rate and rate > 0 and match[1] in _PHASES:
                rates[_PHASES[match[1]]] = rate * 1e9
            if bandwidth and match[1] == "total":
                rates["memory_bandwidth"] = bandwidth * 1e9
    return rates if "hpcg" in rates else {}


def _cut(text: str, lines: Sequence[tuple[int, str]], *, stated: bool) -> str | None:
    if not stated:  # NVIDIA's format of 2017
        return None if "end of application..." in text else cut("end of application... is missing")
    return cut_in_line(text) if _RATING.match(lines[-1][1]) else None  # nothing after the rating is parsed
