"""Check acceptance rules: declared bounds on measurements, each passed, failed, or without the necessary data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """The consequence of a rule that is not met."""

    FAIL = "fail"
    WARN = "warn"


class CheckVerdict(StrEnum):
    """The result of a rule on a host."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"  # the necessary data is missing, which does not count as passed


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit in a base ``unit``: a minimum if ``least``, else a maximum.

    With ``of_peers``, the limit is a multiple of the median of the host's peers. With ``of_peak``, it is a share of the
    machine's theoretical peak.
    """

    limit: float
    unit: str
    least: bool
    of_peers: bool = False
    of_peak: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A host's measurement of one ``benchmark`` with ``n`` repeats.

    ``peers`` are the values of the other hosts of its cohort. ``peak`` is the theoretical peak of the machine, or None
    if it is unknown. ``bits`` and ``percent`` select the displayed unit.
    """

    benchmark: str
    value: float
    unit: str
    n: int
    higher: bool | None = True
    _: KW_ONLY
    peers: Sequence[float] = ()
    peak: float | None = None
    bits: bool = False
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one rule on one host and benchmark.

    - ``limit``: in the value's unit
    - ``reason``: the kind of missing data, or PORT
    - ``evidence``: the raw file of a failed value, relative to the campaign
    - ``near``: a measured benchmark that the rule may mean
    - ``texts``: for a rule on a list, the host's values and the allowed values, or the refused ones if ``is_refusal``
    - ``is_strict``: True if the value must differ from the limit
    """

    rule: str
    severity: Severity
    host: str
    benchmark: str
    verdict: CheckVerdict
    _: KW_ONLY
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    least: bool = True
    reason: str = ""
    numbers: tuple[int, int] = (0, 0)  # existing number, required number
    evidence: str = ""
    bits: bool = False
    percent: bool = False
    near: str = ""
    texts: tuple[str, str] = ("", "")
    is_refusal: bool = False
    is_strict: bool = False


NOT_MEASURED, REPEATS, PEERS, UNIT, PEAK, FACT = "not measured", "repeats", "peers", "unit", "peak", "fact"
SPECIFICATION = "specification"  # nothing states which hardware the machine should have
PORT = "port"  # a network port runs below the required share of the speed that it supports
MACHINE = "machine"  # no entry of ``machines`` selects the host


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its ``bounds`` apply to every benchmark that it names, with at least ``repeats`` passed runs."""

    name: str
    bounds: tuple[Bound, ...]
    severity: Severity = Severity.FAIL
    repeats: int = 1
    least_peers: int = 8


def judge(rule: Rule, values: Mapping[str, Sequence[Value]]) -> list[Result]:
    """Apply ``rule`` to every host of ``values``, which has each host's measurements of the rule's benchmarks.

    A host without measurements has a result, too: missing data does not count as passed.
    """
    results = []
    for host, measured in values.items():
        if not measured:
            results.append(missing(rule.name, rule.severity, host))
        results += [_one(rule, bound, host, value) for value in measured for bound in rule.bounds]
    return results


def missing(rule: str, severity: Severity, host: str, benchmark: str = "", near: str = "") -> Result:
    """Return the result for a host without the measurement that a rule requires."""
    return Result(rule, severity, host, benchmark, CheckVerdict.MISSING, reason=NOT_MEASURED, near=near)


def _one(rule: Rule, bound: Bound, host: str, value: Value) -> Result:
    def result(
        verdict: CheckVerdict, limit: float | None, reason: str = "", numbers: tuple[int, int] = (0, 0)
    ) -> Result:
        return Result(
            rule.name,
            rule.severity,
            host,
            value.benchmark,
            verdict,
            value=value.value,
            limit=limit,
            unit=value.unit,
            least=bound.least,
            reason=reason,
            numbers=numbers,
            bits=value.bits,
            percent=value.percent,
        )

    if value.n < rule.repeats:
        return result(CheckVerdict.MISSING, None, REPEATS, (value.n, rule.repeats))
    if bound.of_peers and len(value.peers) < rule.least_peers - 1:
        return result(CheckVerdict.MISSING, None, PEERS, (len(value.peers), rule.least_peers - 1))
    if bound.of_peak and value.peak is None:
        return result(CheckVerdict.MISSING, None, PEAK)
    if not (bound.of_peers or bound.of_peak) and bound.unit != value.unit:
        return result(CheckVerdict.MISSING, None, UNIT)
    limit = bound.limit * _full(bound, value)
    kept = value.value >= limit if bound.least else value.value <= limit
    return result(CheckVerdict.PASSED if kept else CheckVerdict.FAILED, limit)


def _full(bound: Bound, value: Value) -> float:
    """Return the value that a bound's limit multiplies."""
    if bound.of_peers:
        return statistics.median(value.peers)
    return value.peak if bound.of_peak and value.peak is not None else 1.0


def accepted(results: Sequence[Result]) -> bool:
    """Return whether there are results, and all rules of severity ``fail`` passed."""
    return bool(results) and all(r.verdict is CheckVerdict.PASSED for r in results if r.severity is Severity.FAIL)
