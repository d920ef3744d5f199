"""Build the first tab of a comparison's workbook: servers, costs and break-even prices, computed from its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, message
from fleetmark.planner.comparison import WORK_MIX
from fleetmark.planner.cost import HOURS_PER_YEAR, ROUNDING, Offer, Terms, break_even, cost, needed
from fleetmark.planner.estimate import Estimate
from fleetmark.reports.comparison.cell import Line
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.sentences.answer import leaders
from fleetmark.reports.comparison.workbook.classes import ClassRow
from fleetmark.reports.comparison.workbook.grid import figure
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Section
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular
from fleetmark.reports.kit.workbook import INTEGER, PERCENT, RATIO

SERVERS, YEARS, ENERGY = "servers_replaced", "years_of_service", "energy_price"  # names of inputs
_PRICE = "#,##0.00"
_SUM = "[<99.995]#,##0.00;#,##0"
_TABLE = "answer"
_YEAR = f"{HOURS_PER_YEAR:g}"


def section(face: Face, rows: Sequence[ClassRow]) -> Section:
    """Return the tab. If whole servers are compared, ratios are live copies of cells in the tab Classes."""
    return Section("tab-answer", message("Answer"), (_inputs(face), _bills(face, rows)), ("xlsx",), is_sheet=True)


def _inputs(face: Face) -> Tabular:
    costs = face.front.costs
    terms, unit = costs.terms, costs.offers.unit or costs.terms.currency
    currency = unit.split(" ", maxsplit=1)[0]
    listed: list[tuple[Message, float | None, str, str, tuple[float, float]]] = [
        (message("baseline servers to replace"), float(terms.servers), SERVERS, "", (0, 1e9)),
        (message("years of service"), terms.years, YEARS, "", (0, 100)),
        (message("price of 1 kWh"), terms.energy, ENERGY, currency, (0, 1e6)),
    ]
    rows = tuple(
        (
            Cell(title),
            Cell(
                "" if value is None else f"{value:g}",
                value,
                is_input=True,
                name=name,
                limits=limits,
                hint=message("a number from {lo} to {hi}", lo=f"{limits[0]:g}", hi=f"{limits[1]:g}"),
            ),
            Cell(shown),
        )
        for title, value, name, shown, limits in listed
    )
    columns = (
        Column("input", message("input"), "name"),
        Column("value", message("value"), "number"),
        Column("unit", message("unit")),
    )
    note = message("Yellow cells are inputs. Servers, costs and break-even prices follow them.")
    return Tabular("terms", face.front.answer, columns, rows, notes=(note,))


def _bills(face: Face, rows: Sequence[ClassRow]) -> Tabular:
    costs = face.front.costs
    unit = costs.offers.unit
    currency, servers = unit.split(" ", maxsplit=1)[0], message("servers")
    times = message("× baseline")
    columns = (
        Column("side", message("server"), "side"),
        Column("work", message("for")),
        Column("price", message("price of a server"), "number", unit=unit, form=_PRICE, has_interval=False),
        Column("ratio", message("replaces"), "number", unit=times, form=RATIO, has_interval=False),
        Column("lo", message("from"), "number", unit=times, form=RATIO, has_interval=False),
        Column("hi", message("to"), "number", unit=times, form=RATIO, has_interval=False),
        Column("servers", message("servers needed"), "number", form=INTEGER, has_interval=False),
        Column("fewest", message("from"), "number", unit=servers, form=INTEGER, has_interval=False),
        Column("most", message("to"), "number", unit=servers, form=INTEGER, has_interval=False),
        Column("total", message("total"), "number", unit=unit, form=_SUM, has_interval=False),
        Column("yearly", message("per year"), "number", unit=currency, form=_SUM, has_interval=False),
        Column("change", message("change"), "number", form=PERCENT, has_interval=False),
        Column("even", message("break-even price"), "number", unit=unit, form=_PRICE, has_interval=False),
        Column("even_lo", message("from"), "number", unit=unit, form=_PRICE, has_interval=False),
        Column("even_hi", message("to"), "number", unit=unit, form=_PRICE, has_interval=False),
        Column("watts", message("power of a server"), "number", unit="W", form="#,##0", has_interval=False),
        Column("energy", message("energy per server and year"), "number", unit=currency, form="#,##0"),
        Column("power", message("power"), "number", unit="kW", form="#,##0.0", has_interval=False),
        Column("units", message("rack units of a server"), "number", form="0.##", has_interval=False),
        Column("all_units", message("rack units"), "number", form="#,##0", has_interval=False),
    )
    note = message("Break-even price: the same work then costs the same on both sides.")
    title = message("Servers and costs for the work of the baseline servers")
    unprinted = _unprinted(costs.offers.by_side.values())
    printed = tuple(replace(column, is_working=column.key in unprinted) for column in columns)
    return Tabular(_TABLE, title, printed, tuple(_rows(face, rows)), notes=(note,))


def _unprinted(offers: Collection[Offer]) -> tuple[str, ...]:
    """Return the last columns if no side has a value for them: they are inputs on a screen, and empty on paper."""
    racks = () if any(offer.rack_units for offer in offers) else ("units", "all_units")
    return racks if not racks or any(offer.watts for offer in offers) else ("watts", "energy", "power", *racks)


def _rows(face: Face, rows: Sequence[ClassRow]) -> Iterator[Row]:
    costs = face.front.costs
    terms, offers, hours = costs.terms, costs.offers.by_side, costs.offers.hours
    lead: Sequence[Line] = [x for x in leaders([x for x in costs.lines if x.kind == Kind.CAPACITY]) if not x.service]
    places = {(row.candidate.title, row.class_): row for row in rows if row.class_ != WORK_MIX or row.equal_work}
    works = [
        (side, line, e)
        for k, side in enumerate(face.candidates)
        for line in lead
        if (e := line.cells[k].estimate) is not None
    ]
    base, count = offers[face.comparison.baseline], len(works) + 1
    yield _row(face.comparison.baseline, "", None, None, (base, base), 0, 0, count, terms, hours)
    first: dict[str, int] = {}
    for number, (side, line, estimate) in enumerate(works, 1):
        row = places.get((side, line.class_)) if face.comparison.per == "server" else None
        first.setdefault(side, number)
        shown = line.title if len(lead) > 1 else ""
        yield _row(side, shown, estimate, row, (base, offers[side]), number, first[side], count, terms, hours)


def _row(
    side: str,
    work: str,
    ratio: Estimate | None,
    live: ClassRow | None,
    offers: tuple[Offer, Offer],
    number: int,
    first: int,
    count: int,
    terms: Terms,
    hours: float | None,
) -> Row:
    base, offer = offers
    servers = terms.servers if ratio is None else needed(terms.servers, ratio.value)
    mine, before = cost(offer, servers, terms), cost(base, terms.servers, terms)
    even = None if ratio is None else break_even(ratio, base, offer, terms)
    ends = (None, None) if ratio is None else (ratio.hi, ratio.lo)
    pair = (before.yearly, mine.yearly) if before.yearly and mine.yearly else (before.total, mine.total)
    change = pair[1] / pair[0] - 1 if ratio is not None and pair[0] and pair[1] else None
    fewest, maximum = (None if not end else float(needed(terms.servers, end)) for end in ends)
    cells: Mapping[str, Cell] = {
        "price": _input("price", offer.price, number, first),
        **{
            key: figure(value, f'=IF({live.cell(key)}="","",{live.cell(key)})' if live else "")
            for key, value in zip(
                ("ratio", "lo", "hi"), (ratio.value, ratio.lo, ratio.hi) if ratio else (None, None, None), strict=True
            )
        },
        "servers": figure(servers, f"={SERVERS}" if ratio is None else _count("ratio")),
        "fewest": figure(fewest, "" if ratio is None else _count("hi")),
        "most": figure(maximum, "" if ratio is None else _count("lo")),
        "total": figure(mine.total, '=IF(OR({price}="",{servers}=""),"",{servers}*{price})'),
        "yearly": figure(mine.yearly, _yearly(hours)),
        "change": figure(change, "" if ratio is None else _CHANGE),
        **{
            key: figure(value, "" if ratio is None else _even(ratio_key, hours))
            for key, ratio_key, value in zip(
                ("even", "even_lo", "even_hi"),
                ("ratio", "lo", "hi"),
                (even.value, even.lo, even.hi) if even else (None, None, None),
                strict=True,
            )
        },
        "watts": _input("watts", offer.watts, number, first),
        "energy": figure(offer.energy(terms), _energy(count)),
        "power": figure(
            None if mine.power is None else mine.power / 1000,
            '=IF(OR({watts}="",{servers}=""),"",{servers}*{watts}/1000)',
        ),
        "units": _input("units", offer.rack_units, number, first),
        "all_units": figure(mine.rack_units, '=IF(OR({units}="",{servers}=""),"",{servers}*{units})'),
    }
    return (Cell(fmt.clean(side)), Cell(work), *(cells[key] for key in _ORDER))


_ORDER = (
    *("price", "ratio", "lo", "hi", "servers", "fewest", "most", "total", "yearly", "change"),
    *("even", "even_lo", "even_hi", "watts", "energy", "power", "units", "all_units"),
)
_CHANGE = (
    f"=IF(AND(ISNUMBER({{yearly}}),ISNUMBER([{_TABLE}!yearly!0])),{{yearly}}/[{_TABLE}!yearly!0]-1,"
    f'IF(AND(ISNUMBER({{total}}),ISNUMBER([{_TABLE}!total!0])),{{total}}/[{_TABLE}!total!0]-1,""))'
)


def _input(key: str, value: float | None, number: int, first: int) -> Cell:
    """Return an input cell of a side, or a copy of it in the side's further rows."""
    if number == first:
        hint = message("a number above 0, or empty")
        return Cell("" if value is None else repr(value), value, is_input=True, limits=(0, 1e12), hint=hint)
    place = f"[{_TABLE}!{key}!{first}]"
    return figure(value, f'=IF({place}="","",{place})')


def _count(ratio: str) -> str:
    return f'=IF({{{ratio}}}="","",ROUNDUP({SERVERS}/{{{ratio}}}-{ROUNDING:.6f},0))'


def _energy(count: int) -> str:
    """Return the formula for a year's energy cost: 0 unless the energy price and every side's power are known."""
    return f'=IF(OR({ENERGY}="",COUNT([{_TABLE}!watts])<{count}),0,{{watts}}/1000*{_YEAR}*{ENERGY})'


def _yearly(hours: float | None) -> str:
    if hours is not None:
        return f'=IF(OR({{price}}="",{{servers}}=""),"",{{servers}}*({{price}}*{_YEAR}/{hours:g}+{{energy}}))'
    known = f'OR({{price}}="",{{servers}}="",{YEARS}="")'
    return f'=IF({known},"",{{servers}}*({{price}}/{YEARS}+{{energy}}))'


def _even(ratio: str, hours: float | None) -> str:
    """Return the formula for the price at which the same work costs the same, at one end of the ratio's interval."""
    price, energy = f"[{_TABLE}!price!0]", f"[{_TABLE}!energy!0]"
    blank = f'OR({price}="",{{{ratio}}}="")'
    if hours is not None:
        yearly = f"({price}*{_YEAR}/{hours:g}+{energy})*{{{ratio}}}-{{energy}}"
        return f'=IF({blank},"",({yearly})*{hours:g}/{_YEAR})'
    yearly = f"({price}/{YEARS}+{energy})*{{{ratio}}}-{{energy}}"
    return f'=IF({blank},"",IF({YEARS}="",{price}*{{{ratio}}},({yearly})*{YEARS}))'
