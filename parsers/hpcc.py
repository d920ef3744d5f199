"""Parse HPC Challenge's hpccoutf.txt, of HPCC 1.0 to 1.5, from a manual run or from Fleetmark's launcher.

Case: ``Np``, the number of MPI processes. Metrics come from the summary: ``hpl``, ``dgemm`` (per process, with all
processes busy), ``dgemm_alone``, ``fft`` in FLOP/s; ``transpose``, ``triad``, ``triad_alone``, ``ring_bandwidth`` in
B/s; ``random_access`` in 1/s (all higher is better); ``ring_latency``, ``pingpong_latency`` in s (lower is better);
``ranks``; ``order`` of HPL's matrix. A test that did not run has 0 in the summary and gives no measurement. hpcc
appends to its file, so the last summary counts. A summary is ``invalid`` if it does not report success, or has more
wrong memory updates than the rules allow (1%).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "hpcc"
_LONGEST = 200  # maximum line length in characters
_VERSION = re.compile(r"HPC Challenge Benchmark version ([0-9.]{1,12})\b")
_BLAS = re.compile(r"fleetmark: (OpenBLAS .{1,40})")
_PAIR = re.compile(r"([A-Za-z]\w{0,60})=(\S{1,40})", re.ASCII)
_FIGURES = {
    "HPL_Tflops": ("hpl", 1e12, "FLOP/s"),
    "StarDGEMM_Gflops": ("dgemm", 1e9, "FLOP/s"),
    "SingleDGEMM_Gflops": ("dgemm_alone", 1e9, "FLOP/s"),
    "MPIFFT_Gflops": ("fft", 1e9, "FLOP/s"),
    "PTRANS_GBs": ("transpose", 1e9, "B/s"),
    "StarSTREAM_Triad": ("triad", 1e9, "B/s"),
    "SingleSTREAM_Triad": ("triad_alone", 1e9, "B/s"),
    "MPIRandomAccess_GUPs": ("random_access", 1e9, "1/s"),
    "RandomlyOrderedRingBandwidth_GBytes": ("ring_bandwidth", 1e9, "B/s"),
    "RandomlyOrderedRingLatency_usec": ("ring_latency", 1e-6, "s"),
    "MaxPingPongLatency_usec": ("pingpong_latency", 1e-6, "s"),
}
_SETTINGS = {"CommWorldProcs": "ranks", "HPL_N": "order"}
_MOST_WRONG = 0.01


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the last summary. Raise ParseError if no summary has a figure."""
    text = decode(raw)
    version, blas = _VERSION.search(text), _BLAS.search(text)
    summaries, ended, last = _summaries(text)
    summary = summaries[-1] if summaries else {}
    measurements = _measurements(summary)
    if not measurements:
        raise ParseError(_TOOL, "the summary section of hpccoutf.txt", line=last[0], got=last[1])
    notes = [f"{len(summaries)} summaries in the file: the last counts"] if len(summaries) > 1 else []
    if not blas:
        notes.append("the output does not show which BLAS was used")
    named = ", ".join(match[1] for match in (version, blas) if match)
    invalid = _wrong(summary) if ended else cut("the summary section has no end")
    return Parsed(_TOOL, measurements, named or None, invalid, tuple(notes))


def _summaries(text: str) -> tuple[list[dict[str, float]], bool, tuple[int, str]]:
    """Return the summaries as dicts, whether the last one is complete, and the last line that is not empty."""
    summaries: list[dict[str, float]] = []
    ended, last = False, (1, "no output")
    for n, line in numbered(text):
        if line.startswith("Begin of Summary section."):
            summaries.append({})
            ended = False
        elif line.startswith("End of Summary section."):
            ended = True
        elif summaries and not ended and len(line) <= _LONGEST and (match := _PAIR.fullmatch(line)):
            value = number(match[2])
            if value is not None:
                summaries[-1][match[1]] = value
        last = (n, line) if line.strip() else last
    return summaries, ended, last


def _measurements(summary: Mapping[str, float]) -> tuple[Measurement, ...]:
    case = f"{summary.get('CommWorldProcs', 0):.0f}p"
    figures = []
    for key, (metric, factor, unit) in _FIGURES.items():
        if summary.get(key, 0.0) > 0:
            better = Better.LOWER if unit == "s" else Better.HIGHER
            figures.append(Measurement(_TOOL, case, metric, summary[key] * factor, unit, better=better))
    if figures:
        for key, metric in _SETTINGS.items():
            if summary.get(key, 0.0) > 0:
                figures.append(Measurement(_TOOL, case, metric, summary[key], "1", better=Better.NONE))
    return tuple(figures)


def _wrong(summary: Mapping[str, float]) -> str | None:
    if summary.get("Success") != 1:
        return "hpcc's own checks did not all pass"
    share = summary.get("MPIRandomAccess_ErrorsFraction", 0.0)
    return f"{share:.3g} of the random updates went wrong" if share > _MOST_WRONG else None
