"""Parse the output of HPL: Netlib's HPL 1.0 to 2.3, and Intel's, AMD's and NVIDIA's, with or without launcher tags.

Case: ``nN-nbNB-PxQ``: the order of the matrix, the block size and the process grid. Metrics in FLOP/s: ``hpl`` (higher
is better) and, from NVIDIA's program, ``hpl_per_gpu``. Descriptive metrics: ``solve_time`` in s, ``residual``,
``order`` (N), ``block`` (NB), ``grid_rows`` (P), ``grid_columns`` (Q) and ``ranks``. Gflops are 1e9 FLOP/s. A case is
valid only if it has residual checks and all of them say PASSED; otherwise it is ``invalid``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered, untagged

_TOOL = "hpl"
_LONGEST = 400  # maximum line length in characters; longer lines are skipped
_FIGURE = r"(\S{1,24})"
_ROW = re.compile(
    r"(W[RC]\w{1,12})\s+([0-9]{1,9})\s+([0-9]{1,6})\s+([0-9]{1,7})\s+([0-9]{1,7})"
    rf"\s+{_FIGURE}\s+{_FIGURE}(?:\s+\(\s*{_FIGURE}\s*\))?"
)
_CHECK = re.compile(rf"\|\|Ax-b\|\|_oo ?/ ?\(.{{1,120}}\)\s*=\s*{_FIGURE} \.+ (PASSED|FAILED)")
_UNCHECKED = re.compile(r"\s*([0-9]{1,9}) tests completed without checking")
_SKIPPED = re.compile(r"\s*([0-9]{1,9}) tests skipped because of illegal input values")
_VERSION = re.compile(r"(HPLinpack [0-9.]{1,12}|HPL-NVIDIA [0-9.]{1,16})\b")
_ERROR = re.compile(r"HPL ERROR|>>> .+ <<<")


@dataclass(kw_only=True, slots=True)
class _Solved:
    """A solved system of equations: its result row, and its residual checks (printed value, whether it passed)."""

    variant: str
    order: int
    block: int
    rows: int
    columns: int
    seconds: float
    rate: float
    rate_per_gpu: float | None
    checks: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def case(self) -> str:
        return f"n{self.order}-nb{self.block}-{self.rows}x{self.columns}"

    @property
    def fault(self) -> str | None:
        """Return why this case is invalid; None if it is valid."""
        failed = [residual for residual, passed in self.checks if not passed]
        if failed:
            return f"the residual check of {self.case} FAILED: {failed[0]}"
        return None if self.checks else f"{self.case} has no residual check"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the results of every solved system. Raise ParseError if there is none."""
    lines = [(n, untagged(line)) for n, line in numbered(decode(raw)) if len(line) <= _LONGEST]
    solved = list(_solved(lines))
    if not solved:
        shown = [(n, line) for n, line in lines if line.strip()]
        last = next(((n, line) for n, line in shown if _ERROR.search(line)), shown[-1] if shown else (1, "no output"))
        raise ParseError(_TOOL, "a row with T/V, N, NB, P, Q, Time and Gflops", line=last[0], got=last[1])
    versions = dict.fromkeys(match[1] for _, line in lines if (match := _VERSION.search(line)))
    best, repeated = _best(solved)
    notes = [f"{repeated} more rows with the same N, NB, P, Q and variant: the fastest counts"] if repeated else []
    notes += [f"{n} tests skipped because of illegal input values" for n in _counts(lines, _SKIPPED)]
    faults = {row.case: row.fault for row in solved if row.fault}
    reasons = list(faults.values())[:1] + [f"{len(faults) - 1} more such cases"] * (len(faults) > 1)
    reasons += [f"{n} tests completed without checking" for n in _counts(lines, _UNCHECKED)]
    ended = any(line.startswith("End of Tests.") for _, line in lines)
    if not ended:
        reasons.append(cut("End of Tests. is missing"))
    return Parsed(
        _TOOL,
        tuple(m for row in best for m in _measurements(row, several=len({(r.case) for r in best}) < len(best))),
        version=", ".join(versions) or None,
        invalid="; ".join(filter(None, reasons)) or None,
        notes=tuple(notes),
        invalid_cases=tuple(faults) if ended else (),
    )


def _solved(lines: Sequence[tuple[int, str]]) -> Iterator[_Solved]:
    current: _Solved | None = None
    for _, line in lines:
        if match := _ROW.fullmatch(line.rstrip()):
            if current:
                yield current
            current = _row(match)
        elif current and (match := _CHECK.match(line)):
            current.checks.append((match[1], match[2] == "PASSED"))
    if current:
        yield current


def _row(match: re.Match[str]) -> _Solved | None:
    variant, order, block, rows, columns = match.groups()[:5]
    seconds, rate, per_gpu = number(match[6]), number(match[7]), number(match[8])
    if seconds is None or not rate or rate < 0:
        return None
    return _Solved(
        variant=variant,
        order=int(order),
        block=int(block),
        rows=int(rows),
        columns=int(columns),
        seconds=seconds,
        rate=rate,
        rate_per_gpu=per_gpu,
    )


def _best(solved: Sequence[_Solved]) -> tuple[list[_Solved], int]:
    """Return the fastest row of each case and variant, and the number of dropped rows. Keep every faulty row."""
    best: dict[tuple[str, str], _Solved] = {}
    for row in solved:
        held = best.get((row.case, row.variant))
        if held is None or (bool(row.fault), row.rate) > (bool(held.fault), held.rate):
            best[row.case, row.variant] = row
    return list(best.values()), len(solved) - len(best)


def _counts(lines: Sequence[tuple[int, str]], pattern: re.Pattern[str]) -> list[int]:
    return [int(match[1]) for _, line in lines if (match := pattern.match(line)) and int(match[1])]


def _measurements(row: _Solved, *, several: bool) -> Iterator[Measurement]:
    labels = {"variant": row.variant} if several else {}
    figures = [
        ("hpl", row.rate * 1e9, "FLOP/s", Better.HIGHER),
        ("hpl_per_gpu", (row.rate_per_gpu or 0) * 1e9, "FLOP/s", Better.HIGHER),
        ("solve_time", row.seconds, "s", Better.NONE),
        ("order", row.order, "1", Better.NONE),
        ("block", row.block, "1", Better.NONE),
        ("grid_rows", row.rows, "1", Better.NONE),
        ("grid_columns", row.columns, "1", Better.NONE),
        ("ranks", row.rows * row.columns, "1", Better.NONE),
    ]
    residuals = [value for printed, _ in row.checks if (value := number(printed)) is not None]
    figures += [("residual", max(residuals), "1", Better.NONE)] if residuals else []
    for metric, value, unit, better in figures:
        if number(value) and value > 0:
            yield Measurement(_TOOL, row.case, metric, float(value), unit, better=better, labels=labels)
