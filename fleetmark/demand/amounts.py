"""Convert amounts in a planner's input: numbers, shares, watts, times, money, and figures per period."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Discriminator, Tag

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import parse_quantity, parse_seconds
from fleetmark.demand import periods

NOT_SOLD = "not sold"
HISTORY = "history"
LARGEST_GROWTH = 3.0  # per year, as a plain number
_LARGEST = 1e15
_DIGITS = 15  # significant digits: parse 99.9% as exactly 0.999; in floating point, 99.9 / 100 is slightly off
_AMOUNT = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_CURRENCY = re.compile(r"[A-Z]{3}")
Written = float | str  # how an amount is written in a file: a number, or a number with a unit
_KILOGRAMS = {"": 1.0, "kg": 1.0, "t": 1e3}
_TIMES_A_YEAR = {
    "year": 1.0,
    "half": 2.0,
    "quarter": 4.0,
    "month": 12.0,
    "week": 365.25 / 7,
    "day": 365.25,
    "hour": 8766.0,
}
_WATTS = {"": 1.0, "w": 1.0, "kw": 1e3, "mw": 1e6}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and the unit written after it, which is empty if there is none."""

    value: float
    unit: str = ""


def _split(value: object) -> tuple[float, str]:
    """Return a number from YAML or a sheet, and the text after it."""
    if value is None:
        raise ValueError("is empty: write a number, or remove the key if it is optional")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{_shown(value)} is not a number")
    return float(match[1]), match[2]


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else f"{value}"
    return text if len(text) <= 60 else text[:59] + "…"


def _within(value: float, minimum: float, maximum: float, above: bool = False) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if value < minimum or (above and value == minimum):
        raise ValueError(f"{value:g} is {'not above' if above else 'below'} {minimum:g}")
    if value > maximum:
        raise ValueError(f"{value:g} is above {maximum:g}")
    return value


def plain(minimum: float = 0.0, maximum: float = _LARGEST, *, above: bool = False) -> BeforeValidator:
    def read(value: object) -> float:
        number, rest = _split(value)
        if rest:
            raise ValueError(f"{_shown(value)} is not a plain number: write it without separators, unit or currency")
        return _within(number, minimum, maximum, above)

    return BeforeValidator(read, json_schema_input_type=Written)


def integer(minimum: int = 0, maximum: int = 10**9) -> BeforeValidator:
    def read(value: object) -> int:
        number, rest = _split(value)
        if rest or not number.is_integer():
            raise ValueError(f"{_shown(value)} is not a whole number")
        return int(_within(number, minimum, maximum))

    return BeforeValidator(read, json_schema_input_type=Written)


def share(minimum: float = 0.0, maximum: float = 1.0, *, above: bool = False) -> BeforeValidator:
    def read(value: object) -> float:
        number, rest = _split(value)
        if rest not in ("", "%"):
            raise ValueError(f"{_shown(value)} is not a share: write 8% or 0.08")
        return _within(round(number / 100, _DIGITS) if rest else number, minimum, maximum, above)

    return BeforeValidator(read, json_schema_input_type=Written)


def growth(value: object) -> float:
    """Return the growth per year.

    A plain number above 3 is more often a mistake than a growth of 300%, so larger growth needs a percent sign.
    """
    number, rest = _split(value)
    if not rest and number > LARGEST_GROWTH:
        raise ValueError(
            f"{number:g} is {number:,.0%} a year: write {number:g}%, or {100 * number:g}% if you mean that"
        )
    if rest not in ("", "%"):
        raise ValueError(f"{_shown(value)} is not a growth: write 30% or 0.3")
    return _within(number / 100 if rest else number, -0.99, 100)


def _watts(value: object) -> float:
    number, unit = _split(value)
    if unit.lower() not in _WATTS:
        raise ValueError(f"{_shown(value)} is not a power: write 450 W, 120 kW or 1.2 MW")
    return _within(number * _WATTS[unit.lower()], 0, _LARGEST)


def _kilograms(value: object) -> float:
    number, unit = _split(value)
    if unit not in _KILOGRAMS:
        raise ValueError(f"{_shown(value)} is not a mass: write 900 kg or 120 t")
    return _within(number * _KILOGRAMS[unit], 0, _LARGEST)


def _yearly_money(value: object) -> Quantity:
    """Return an amount of money per year; a plain number is per year, too.

    ``unit`` is its currency, or empty for the file's currency.
    """
    number, rest = _split(value)
    before, per, span = rest.partition("per ")
    name = before.strip()
    times = _TIMES_A_YEAR.get(span.strip()) if per else 1.0
    if times is None or (name and not _CURRENCY.fullmatch(name)):
        raise ValueError(
            f"{_shown(value)} is not money per time: write 900 per month, 10800 per year or 2.5 USD per hour"
        )
    return Quantity(_within(number * times, 0, _LARGEST), name)


@dataclass(frozen=True, slots=True)
class Reserve:
    """The number of idle servers: a ``count``, or a ``share`` of the installed servers."""

    count: int = 0
    share: float = 0.0


def _spares(value: object) -> Reserve:
    """Return a share if the text has a percent sign, else a number of servers."""
    if isinstance(value, Reserve):
        return value
    number, rest = _split(value)
    if rest == "%":
        return Reserve(share=_within(number / 100, 0, 1))
    if not rest and 0 < number < 1:
        raise ValueError(f"{number:g} is part of a server: write {100 * number:g}% for a share, or a number of servers")
    if rest or not number.is_integer():
        raise ValueError(f"{_shown(value)} is neither a number of servers nor a share of them: write 2 or 3%")
    return Reserve(int(_within(number, 0, 10**9)))


def _seconds(value: object) -> float:
    if value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("is not a time: write 50ms, 0.2s or 30")
    return _within(parse_seconds(value.replace(" ", "") if isinstance(value, str) else value), 0, _LARGEST, True)


def _resource(value: object) -> Quantity:
    """Return an amount of a resource in its base unit; cores and IOPS have no unit."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("is not an amount: write 8 GB, 0.5 Gbit/s, or a number")
    try:
        number, unit = parse_quantity(value)
    except FleetmarkError:
        raise ValueError(f"{_shown(value)} is not an amount: write 8 GB, 0.5 Gbit/s, or a number") from None
    return Quantity(_within(number, 0, _LARGEST * 1e6), "" if unit in ("1", "1/s") else unit)


def _span(value: object) -> tuple[float, str]:
    if value is None:
        raise ValueError("is empty: write 2 quarters, 6 months, or a number of periods")
    return periods.duration(value)


def _quantity(value: object) -> Quantity:
    number, unit = _split(value)
    return Quantity(_within(number, 0, _LARGEST), " ".join(unit.split()))


def positive(value: object) -> Quantity:
    quantity = _quantity(value)
    _within(quantity.value, 0, _LARGEST, True)
    return quantity


def price(value: object) -> Quantity | None:
    """Return the price of one server, or None if it is not sold.

    ``unit`` is its currency, or empty for the file's currency.
    """
    if isinstance(value, str) and value.strip().lower() == NOT_SOLD:
        return None
    number, rest = _split(value)
    if rest and not _CURRENCY.fullmatch(rest):
        raise ValueError(
            f"{_shown(value)} is not a price: write a plain number in the currency of the file, "
            f"12000 USD for another, or `{NOT_SOLD}`"
        )
    return Quantity(_within(number, 0, _LARGEST), rest)


def _money(value: object) -> Quantity:
    number, rest = _split(value)
    if rest and not _CURRENCY.fullmatch(rest):
        raise ValueError(
            f"{_shown(value)} is not a plain number: write it without separators and unit; another currency as 700 USD"
        )
    return Quantity(_within(number, 0, _LARGEST), rest)


def above(value: float) -> float:
    """Return ``value``. Raise ValueError if it is not above 0."""
    return _within(value, 0, _LARGEST, True)


def entries(value: object) -> object:
    """Return a mapping; a text such as ``100: 11000, 500: 10500`` from a cell is split."""
    if not isinstance(value, str):
        return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else value
    pairs = [part.rpartition(":") for part in value.split(",") if part.strip()]
    if not all(key.strip() and rest.strip() for key, _, rest in pairs):
        raise ValueError(f"{_shown(value)} is not a list of entries: write them as 100: 11000, 500: 10500")
    if len({key.strip() for key, _, _ in pairs}) < len(pairs):
        raise ValueError(f"{_shown(value)} has an entry twice")
    return {key.strip(): rest.strip() for key, _, rest in pairs}


def correlation(value: object) -> float | None:
    """Return a correlation, or None if the histories determine it."""
    if isinstance(value, str) and value.strip().lower() == HISTORY:
        return None
    try:
        number, rest = _split(value)
    except ValueError:
        number, rest = 0.0, "?"
    if rest not in ("", "%"):
        raise ValueError(f"{_shown(value)} is not a correlation: write 0.6, or {HISTORY}")
    return _within(number / 100 if rest else number, -1, 1)


def correlations(value: object) -> object:
    """Return the correlations by workloads; a single number applies to all workloads."""
    single = not isinstance(value, Mapping) and (not isinstance(value, str) or ":" not in value)
    return {"all": value} if single else entries(value)


def _limit(value: object) -> float | None:
    """Return an amount of money, or None for no limit."""
    if isinstance(value, str) and value.strip().lower() == "none":
        return None
    number, rest = _split(value)
    if rest:
        raise ValueError(f"{_shown(value)} is not a sum of money: write a plain number, or none")
    return _within(number, 0, _LARGEST)


def _text(value: object) -> str:
    if isinstance(value, bool):
        raise ValueError(f"{value} is how YAML reads yes, no, on and off: put the word in quotes")
    if value is None or isinstance(value, Mapping | list | tuple) or not str(value).strip():
        raise ValueError(f"{_shown(value)} is not a text" if value else "is empty")
    return str(value).strip()


def yes(value: object) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError(f"{_shown(value)} is neither yes nor no")
    return words[str(value).lower()]


def failures(value: object) -> int:
    """Return how many failure domains may be lost simultaneously; ``yes`` counts as 1."""
    if isinstance(value, bool) or str(value).strip().lower() not in ("1", "2"):
        try:
            return int(yes(value))
        except ValueError:
            raise ValueError(f"{_shown(value)} is neither yes, no nor 2 (two failure domains at once)") from None
    return int(str(value))


def date(value: object) -> str:
    try:
        return datetime.date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a date: write 2027-01-31") from None


def currency(value: object) -> str:
    if not _CURRENCY.fullmatch(str(value)):
        raise ValueError(f"{_shown(value)} is not a currency: write its three letters (ISO 4217), EUR or USD")
    return str(value)


def texts(value: object) -> object:
    """Return a list of names.

    A text from a cell is split at commas. A cell may contain the name 2027 as a number.
    """
    value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


written_entries = BeforeValidator(entries, json_schema_input_type=dict[str, Written] | str)
written_texts = BeforeValidator(texts, json_schema_input_type=list[str | int] | str | int)
Correlations = Annotated[
    dict[str, Annotated[float | None, BeforeValidator(correlation, json_schema_input_type=Written)]],
    BeforeValidator(correlations, json_schema_input_type=dict[str, Written] | Written),
]
Number = Annotated[float, plain()]
Integer = Annotated[int, integer()]
Yearly = Annotated[float, BeforeValidator(growth, json_schema_input_type=Written)]
Price = Annotated[Quantity | None, BeforeValidator(price, json_schema_input_type=Written)]
Resource = Annotated[Quantity, BeforeValidator(_resource, json_schema_input_type=Written)]
Money = Annotated[Quantity, BeforeValidator(_money, json_schema_input_type=Written)]
Rate = Annotated[Quantity, BeforeValidator(_yearly_money, json_schema_input_type=Written)]
Kilograms = Annotated[float, BeforeValidator(_kilograms, json_schema_input_type=Written)]
Spares = Annotated[Reserve, BeforeValidator(_spares, json_schema_input_type=Written)]
Watts = Annotated[float, BeforeValidator(_watts, json_schema_input_type=Written)]
Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=Written)]
Span = Annotated[tuple[float, str], BeforeValidator(_span, json_schema_input_type=Written)]
Amount = Annotated[Quantity, BeforeValidator(_quantity, json_schema_input_type=Written)]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | float)]
Yes = Annotated[bool, BeforeValidator(yes, json_schema_input_type=bool | str | int)]
Survived = Annotated[int, BeforeValidator(failures, json_schema_input_type=bool | str | int)]
Limit = Annotated[float | None, BeforeValidator(_limit, json_schema_input_type=Written)]


def _shape(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "map" if isinstance(value, Mapping) else "one"


def _from_cell(value: object) -> object:
    """Return the entries of one cell, such as ``2027-Q1: 200 kW, 2027-Q3: 400 kW``, as a mapping."""
    return entries(value) if isinstance(value, Mapping) or (isinstance(value, str) and ":" in value) else value


T = TypeVar("T")
# A figure per period: one figure for all periods, a list in their order, or a mapping by name.
ByPeriod = Annotated[
    Annotated[T, Tag("one")] | Annotated[list[T], Tag("list")] | Annotated[dict[str, T], Tag("map")],
    Discriminator(_shape),
    BeforeValidator(_from_cell),
]
Series = ByPeriod[Amount]
Limits = ByPeriod[Limit]
Prices = ByPeriod[Price]
Deviations = ByPeriod[Annotated[float, plain(0, 10)]]
