"""Check the facts of hosts against rules: amounts, exact values and lists of allowed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.facts import Facts
from fleetmark.base.units import parse_quantity
from fleetmark.planner.diagnosis.gate import FACT, CheckVerdict, Result, Severity
from fleetmark.planner.diagnosis.specification import FACTS, Scalar

Amount = str | int | float


def check_fact(name: str) -> str:
    """Return the name of a fact. Raise FleetmarkError, with a suggestion, if there is none of that name."""
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


def held(
    title: str,
    name: str,
    severity: Severity,
    hosts: Sequence[str],
    facts: Mapping[str, Callable[[], Facts | None]],
    *,
    at_least: Scalar | None = None,
    at_most: Scalar | None = None,
    one_of: Sequence[Scalar] = (),
) -> list[Result]:
    """Return the result of a rule named ``title`` on the fact ``name`` of each host. Every device must keep it."""
    unit, read = FACTS[name]
    results = []
    for host in hosts:
        known = facts[host]()
        values = read(known) if known is not None else ()
        if not values:
            results.append(Result(title, severity, host, name, CheckVerdict.MISSING, reason=FACT))
            continue
        if one_of:
            wrong = [v for v in values if v not in one_of]
            verdict = CheckVerdict.FAILED if wrong else CheckVerdict.PASSED
            texts = (_text((wrong or values)[0]), " or ".join(map(_text, one_of)))
            results.append(Result(title, severity, host, name, verdict, texts=texts))
        for limit, is_least in ((at_least, True), (at_most, False)):
            if limit is None:
                continue
            worst = (min if is_least else max)(float(v) for v in values)
            kept = worst >= float(limit) if is_least else worst <= float(limit)
            verdict = CheckVerdict.PASSED if kept else CheckVerdict.FAILED
            results.append(
                Result(
                    title,
                    severity,
                    host,
                    name,
                    verdict,
                    worst,
                    float(limit),
                    unit,
                    is_least,
                    bits=unit == "B/s",
                )
            )
    return results


def _text(value: Scalar) -> str:
    return f"{value:g}" if isinstance(value, float) else value
