"""Define the workbook's input tables for SKUs and sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetmark.base.text import Message, message
from fleetmark.demand.columns import AMOUNT, INTEGER, MOST, PRICE, Column, Rule
from fleetmark.planner.capacity.sku import COOLING, MONEY, YEARLY, Declared, Kind, Sku, declared_fields

_LONGEST = 1000  # periods
# The usual hint, the bounds and the number format of each kind of field.
_NUMBERS: Mapping[Kind, tuple[Message, float, float | None, str]] = {
    Kind.NUMBER: (message("a number"), 0, None, AMOUNT),
    Kind.COUNT: (message("a count"), 0, None, INTEGER),
    Kind.SHARE: (message("a share"), 0, None, "0.0%"),
    Kind.CHANGE: (message("a change"), -0.99, 100, "0.0%"),
    Kind.WATTS: (message("a power"), 0, None, AMOUNT),
    Kind.GIGABYTES: (message("a size"), 0, None, AMOUNT),
    Kind.MONEY: (message("a sum of money"), 0, None, PRICE),
    Kind.RATE: (message("a sum of money"), 0, None, PRICE),
    Kind.PRICE: (message("a price"), 0, None, PRICE),
    Kind.PERIODS: (message("a duration"), 0, _LONGEST, INTEGER),
    Kind.AGE: (message("an age"), 0, _LONGEST, INTEGER),
    Kind.TIME: (message("a duration"), 0, _LONGEST, "0.####"),
}
_TEXTS: Mapping[Kind, tuple[Message, tuple[str, ...]]] = {
    Kind.TEXT: (message("a name"), ()),
    Kind.BREAKS: (message("100: 11000, 500: 10500"), ()),
    Kind.SLIPS: (message("1: 20%, 2: 5%"), ()),
    Kind.COOLING: (message("an answer"), COOLING),
}


def skus(money: str = "") -> tuple[Column, ...]:
    """Return the columns of the table with one row per SKU."""
    name = Column("sku_name", message("SKU"), Rule(message("a name"), text=True))
    return (name, *columns_of(Sku, "sku", money))


def columns_of(owner: type, table: str, money: str) -> Iterator[Column]:
    """Yield the columns of a dataclass with declared fields, with ``money`` as the currency."""
    units = {MONEY: money, YEARLY: message("{money} a year", money=money)}
    for field in declared_fields(owner):
        declared = field.declared
        if declared.title is not None:
            yield Column(
                f"{table}_{field.column}", declared.title, *_cell(declared, units.get(declared.unit, declared.unit))
            )


def _cell(declared: Declared, unit: str) -> tuple[Rule, str, str]:
    """Return the rule, the unit and the number format of a declared field's cells."""
    is_optional, empty = declared.empty is not None, declared.empty or ""
    if declared.kind in _TEXTS:
        hint, words = _TEXTS[declared.kind]
        return Rule(hint, text=True, words=words, optional=is_optional, empty=empty), unit, "General"
    hint, minimum, maximum, form = _NUMBERS[declared.kind]
    rule = Rule(
        declared.hint or hint,
        minimum=minimum or declared.minimum or 0.0,
        maximum=declared.maximum or maximum or MOST,
        integer=form == INTEGER,
        optional=is_optional,
        empty=empty,
    )
    return rule, unit, form


def sites(money: str = "") -> tuple[Column, ...]:
    """Return the columns of the table with one row per site."""
    free = message("no limit")
    general = message("as in Inputs")
    return (
        Column("site_name", message("site"), Rule(message("a name"), text=True)),
        Column(
            "site_domain",
            message("fails together with"),
            Rule(message("a failure domain"), text=True, optional=True, empty=message("itself alone")),
            message("failure domain"),
        ),
        Column(
            "site_power_w", message("power limit"), Rule(message("a power"), optional=True, empty=free), "W", AMOUNT
        ),
        Column(
            "site_rack_units", message("space"), Rule(message("rack units"), optional=True, empty=free), "U", AMOUNT
        ),
        Column("site_ports", message("ports"), Rule(message("a count"), optional=True, empty=free), "", AMOUNT),
        Column(
            "site_budget",
            message("money for purchases"),
            Rule(message("a sum of money"), optional=True, empty=free),
            money,
            PRICE,
        ),
        Column(
            "site_spares",
            message("spares"),
            Rule(message("idle servers of each SKU in use"), integer=True),
            message("servers"),
            INTEGER,
        ),
        Column(
            "site_energy_price",
            message("energy price"),
            Rule(message("an energy price"), optional=True, empty=general),
            f"{money}/kWh",
            "0.0000",
        ),
        Column(
            "site_pue",
            message("PUE"),
            Rule(message("a PUE"), minimum=1, maximum=10, optional=True, empty=general),
            "",
            "0.00",
        ),
        Column(
            "site_racks",
            message("positions for racks"),
            Rule(message("a count"), optional=True, empty=free),
            "",
            AMOUNT,
        ),
        Column(
            "site_liquid_racks",
            message("liquid-cooled positions"),
            Rule(message("a count"), optional=True, empty=message("none")),
            "",
            AMOUNT,
        ),
        Column(
            "site_rack_w",
            message("power of a rack"),
            Rule(message("a power"), above=True, optional=True, empty=free),
            "W",
            AMOUNT,
        ),
        Column(
            "site_windows",
            message("servers are retired only in"),
            Rule(message("the names of periods"), text=True, optional=True, empty=message("any period")),
            message("periods"),
        ),
        Column(
            "site_maintenance",
            message("out of service for maintenance"),
            Rule(message("a share"), maximum=1, optional=True, empty=message("none")),
            message("share of servers"),
            "0.0%",
        ),
        Column(
            "site_spare_share",
            message("spares, as a share"),
            Rule(message("a share of the installed servers"), maximum=1, optional=True, empty=message("none")),
            message("share of servers"),
            "0.0%",
        ),
    )
