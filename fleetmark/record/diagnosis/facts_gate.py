"""Check the facts of hosts against rules: limits, and lists of allowed and refused values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.facts import Facts
from fleetmark.base.units import parse_quantity
from fleetmark.planner.diagnosis.gate import FACT, CheckVerdict, Result, Severity
from fleetmark.planner.diagnosis.specification import FACTS, Scalar

Amount = str | int | float


def check_fact(name: str) -> str:
    """Return the name of a fact. Raise FleetmarkError, with a suggestion, if there is no such fact."""
    if name not in FACTS:
        near = suggest(name, list(FACTS))
        raise FleetmarkError(f"no fact {name!r}{near}: there are {', '.join(FACTS)}")
    return name


def scalar(name: str, amount: Amount) -> Scalar:
    """Return a value of the fact in its base unit. Raise FleetmarkError for another unit."""
    unit = FACTS[check_fact(name)][0]
    if not unit:
        return str(amount)
    value, given_unit = parse_quantity(amount)
    if given_unit != unit and not (given_unit == "1" and unit == "W"):
        raise FleetmarkError(f"{name}: {amount} is in {given_unit}, the fact is in {unit}")
    return value


@dataclass(kw_only=True, frozen=True, slots=True)
class FactBounds:
    """The bounds for all values of a fact in base units. ``above`` and ``below`` are exclusive limits."""

    at_least: Scalar | None = None
    at_most: Scalar | None = None
    above: Scalar | None = None
    below: Scalar | None = None
    one_of: Sequence[Scalar] = ()
    none_of: Sequence[Scalar] = ()


def held(
    title: str,
    name: str,
    severity: Severity,
    hosts: Sequence[str],
    facts: Mapping[str, Callable[[], Facts | None]],
    bounds: FactBounds,
) -> list[Result]:
    """Return the results of the rule ``title`` on the fact ``name`` of each host. Every device must meet the rule."""
    results = []
    for host in hosts:
        known = facts[host]()
        values = FACTS[name][1](known) if known is not None else ()
        if not values:
            results.append(Result(title, severity, host, name, CheckVerdict.MISSING, reason=FACT))
            continue
        base = Result(title, severity, host, name, CheckVerdict.PASSED)
        results += [*_listed(base, values, bounds), *_limited(base, values, bounds, FACTS[name][0])]
    return results


def _listed(base: Result, values: Sequence[Scalar], bounds: FactBounds) -> Iterator[Result]:
    """Yield the results for lists of allowed and forbidden values."""
    for allowed, is_refusal in ((bounds.one_of, False), (bounds.none_of, True)):
        if allowed:
            wrong = [v for v in values if (v in allowed) is is_refusal]
            verdict = CheckVerdict.FAILED if wrong else CheckVerdict.PASSED
            texts = (_text((wrong or values)[0]), " or ".join(map(_text, allowed)))
            yield replace(base, verdict=verdict, texts=texts, is_refusal=is_refusal)


def _limited(base: Result, values: Sequence[Scalar], bounds: FactBounds, unit: str) -> Iterator[Result]:
    """Yield the results for limits. The worst device decides each result."""
    limits: list[tuple[Scalar | None, bool, Callable[[float, float], bool]]] = [
        (bounds.at_least, True, operator.ge),
        (bounds.at_most, False, operator.le),
        (bounds.above, True, operator.gt),
        (bounds.below, False, operator.lt),
    ]
    for limit, is_least, keeps in limits:
        if limit is not None:
            worst = (min if is_least else max)(float(v) for v in values)
            yield replace(
                base,
                verdict=CheckVerdict.PASSED if keeps(worst, float(limit)) else CheckVerdict.FAILED,
                value=worst,
                limit=float(limit),
                unit=unit,
                least=is_least,
                is_strict=keeps in (operator.gt, operator.lt),
                bits=unit == "B/s",
            )


def _text(value: Scalar) -> str:
    return f"{value:g}" if isinstance(value, float) else value
