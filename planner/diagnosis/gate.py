"""Check acceptance rules: declared bounds on measurements, each passed, failed, or without the necessary data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Say what follows if a rule is not met."""

    FAIL = "fail"
    WARN = "warn"


class CheckVerdict(StrEnum):
    """Name the result of a rule on a host."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"  # the data that it needs: that is not a pass


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit in a base ``unit`` that a value must reach (``least``) or may not pass. ``of_peers``: as a multiple of
    what the host's peers have as their median; ``of_peak``: as a share of what the machine could do at most.
    """

    limit: float
    unit: str
    least: bool
    of_peers: bool = False
    of_peak: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """What a host measured in one ``benchmark``, by how many repeats ``n``. ``peers``: what others of its cohort
    measured; ``peak``: what its machine could reach, None if that is not known; ``bits`` and ``percent``: how people
    read it.
    """

    benchmark: str
    value: float
    unit: str
    n: int
    higher: bool | None = True
    peers: Sequence[float] = ()
    peak: float | None = None
    bits: bool = False
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One rule on one host and benchmark. ``limit``: in the value's unit. ``why``: what is missing.
    ``evidence``: the raw file of what failed, relative to the campaign. ``near``: a benchmark that was measured, and
    that the rule may mean. ``texts``: of a rule on a list, what the host has and what is allowed, or what is not if
    ``is_refusal``. ``is_strict``: the value may not equal the limit."""

    rule: str
    severity: Severity
    host: str
    benchmark: str
    verdict: CheckVerdict
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    least: bool = True
    reason: str = ""
    numbers: tuple[int, int] = (0, 0)  # how many there are, how many are needed
    evidence: str = ""
    bits: bool = False
    percent: bool = False
    near: str = ""
    texts: tuple[str, str] = ("", "")
    is_refusal: bool = False
    is_strict: bool = False


NOT_MEASURED, REPEATS, PEERS, UNIT, PEAK, FACT = "not measured", "repeats", "peers", "unit", "peak", "fact"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its ``bounds`` hold for every benchmark that it names, with ``repeats`` passed runs at least."""

    name: str
    bounds: tuple[Bound, ...]
    severity: Severity = Severity.FAIL
    repeats: int = 1
    least_peers: int = 8


def judge(rule: Rule, values: Mapping[str, Sequence[Value]]) -> list[Result]:
    """``rule`` on every host of ``values``, what each measured of its benchmarks. A host without any has a result too:
    missing data is not a pass."""
    results = []
    for host, measured in values.items():
        if not measured:
            results.append(missing(rule.name, rule.severity, host))
        results += [_one(rule, bound, host, value) for value in measured for bound in rule.bounds]
    return results


def missing(rule: str, severity: Severity, host: str, benchmark: str = "", near: str = "") -> Result:
    """Return the result for a host that lacks the measurement that a rule names."""
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
            value.value,
            limit,
            value.unit,
            bound.least,
            reason,
            numbers,
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
    """Return the value that a bound is a multiple of."""
    if bound.of_peers:
        return statistics.median(value.peers)
    return value.peak if bound.of_peak and value.peak is not None else 1.0


def accepted(results: Sequence[Result]) -> bool:
    """Return whether there is a rule of severity ``fail`` and all such rules are met."""
    return bool(results) and all(r.verdict is CheckVerdict.PASSED for r in results if r.severity is Severity.FAIL)
