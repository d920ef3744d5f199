"""Parse OSU Micro-Benchmarks 3 to 7 (MPI, including device memory).

Case: the test by its heading (``latency``, ``bandwidth``, ``allreduce``). Labels: ``size`` (bytes). Metrics:
``latency`` in s (lower is better; the mean over processes for collectives), ``bandwidth`` in B/s (MB/s are 1e6) and
``message_rate`` in 1/s (higher is better). ``least_latency`` is the latency of the smallest size; ``peak_bandwidth``
and ``peak_message_rate`` are the best of all sizes. The output is complete if it reaches the size in the command
(``-m``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "osu"
_TITLE = re.compile(r"# OSU MPI(?:-[A-Z0-9]{2,8})? (.{3,60}?) Test(?:s)?(?: v([0-9][0-9.]{0,10}))?")
_COLUMNS = re.compile(
    r"#? ?(?:Size {2,30})?((?:[A-Z][A-Za-z]{0,12} )?(?:Latency ?\(us\)|Bandwidth ?\(MB/s\)|MB/s)).{0,200}"
)
_FIGURE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the rows of every test. Raise ParseError if there is none."""
    measurements: list[Measurement] = []
    case, version, columns, last, rows = "", None, "", (1, "no output"), 0
    missing = ""
    for n, text in numbered(decode(raw)):
        line = text[:300].strip()
        if not line:
            continue
        last = (n, line)
        if title := _TITLE.fullmatch(line):
            missing = missing or (f"{case} has no rows" if case and not rows else "")
            case, version, columns, rows = _case(title[1]), title[2] or version, "", 0
        elif case and (heading := _COLUMNS.fullmatch(line)):
            columns = line
            sized = "Size" in heading[0]
        elif columns and (cells := line.split()) and len(cells) <= 8 and all(map(_FIGURE.fullmatch, cells)):
            read = list(_row(case, columns, cells, sized))
            measurements += read
            rows += bool(read)
    if not measurements:
        raise ParseError(_TOOL, "a row of an OSU test", line=last[0], got=last[1])
    if case and not rows:
        missing = missing or f"{case} has no rows"
    missing = missing or _short(measurements, command) or _inside(last)
    invalid = cut(missing) if missing else None
    return Parsed(_TOOL, (*measurements, *_best(measurements)), version=version, invalid=invalid)


def _short(measurements: Sequence[Measurement], command: Sequence[str]) -> str:
    """Return a sentence if the output ends before the largest size that ``command`` requests; otherwise None."""
    wanted = next((number(b) for a, b in itertools.pairwise(command) if a == "-m"), None)
    sizes = [int(m.labels["size"]) for m in measurements if "size" in m.labels]
    return f"it ends at {max(sizes)} of {wanted:g} bytes" if wanted and sizes and 2 * max(sizes) <= wanted else ""


def _inside(last: tuple[int, str]) -> str:
    """Return a sentence if the last line ends inside a figure; otherwise None.

    All figures except counts have two decimals.
    """
    cell = last[1].split()[-1]
    return f"line {last[0]} ends inside a figure" if re.fullmatch(r"[0-9]+\.[0-9]?", cell) else ""


def _case(title: str) -> str:
    """Return a title such as ``MPI Bidirectional Bandwidth`` as one word."""
    short = {"Multiple Bandwidth / Message Rate": "message_rate", "Bi-Directional Bandwidth": "bidirectional_bandwidth"}
    return short.get(title) or re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=.) Latency$", "", title).lower()).strip("_")


def _row(case: str, columns: str, cells: Sequence[str], sized: bool) -> Iterator[Measurement]:
    figures = [number(cell) or 0.0 for cell in cells]
    labels = {"size": str(int(figures[0]))} if sized else {}
    values = figures[1:] if sized else figures
    if values and "Latency" in columns:
        if values[0] > 0:
            yield Measurement(_TOOL, case, "latency", values[0] * 1e-6, "s", better=Better.LOWER, labels=labels)
        return
    for value, (metric, factor, unit) in zip(
        values, (("bandwidth", 1e6, "B/s"), ("message_rate", 1.0, "1/s")), strict=False
    ):
        if value > 0:
            yield Measurement(_TOOL, case, metric, value * factor, unit, better=Better.HIGHER, labels=labels)


def _best(measurements: Sequence[Measurement]) -> Iterator[Measurement]:
    """Yield for each test the latency of the smallest message, the best bandwidth and the best message rate."""
    cases: dict[str, list[Measurement]] = {}
    for m in measurements:
        cases.setdefault(m.case, []).append(m)
    for case, rows in cases.items():
        latencies = [(int(m.labels.get("size", 0)), m.value) for m in rows if m.metric == "latency"]
        if latencies:
            yield Measurement(_TOOL, case, "least_latency", min(latencies)[1], "s", better=Better.LOWER)
        for metric, unit in (("bandwidth", "B/s"), ("message_rate", "1/s")):
            if rates := [m.value for m in rows if m.metric == metric]:
                yield Measurement(_TOOL, case, f"peak_{metric}", max(rates), unit, better=Better.HIGHER)
