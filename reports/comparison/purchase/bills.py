"""Build the table of costs: what each side costs to do the work of the baseline's servers."""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import message
from fleetmark.reports.comparison.purchase.bought import exact_price, years_of
from fleetmark.reports.comparison.purchase.costs import Bill, Costs, currency_of, interval, span, summed
from fleetmark.reports.comparison.titles import spaced
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, compact, figure, number

MOST_BILLS = 24  # maximum number of rows in a terminal and on paper


def table(all_costs: Costs, baseline: str) -> Tabular | None:
    """Return the bills as a table, the baseline first; None without prices."""
    if not all_costs.bills:
        return None
    unit = next((bill.unit for bill in all_costs.bills if bill.unit), "")
    currency = currency_of(unit)
    pieces = {bill.piece for bill in all_costs.bills}
    price, servers = message("price of a server"), message("servers")
    if pieces != {""}:
        price, servers = message("unit price"), message("units")
    if len(pieces) == 1 and (piece := next(iter(pieces))):
        price, servers = message("price of one {piece}", piece=piece), message("{piece}s", piece=piece)
    columns = (
        Column("side", message("server"), "side"),
        Column("work", message("for")),
        Column("price", price, "number", unit=unit),
        Column("servers", servers, "number"),
        Column("total", message("total"), "number", unit=unit),
        Column("yearly", message("per year"), "number", unit=currency),
        Column("lifetime", message("over the term"), "number", unit=currency),
        Column("change", message("change"), "number", has_interval=False),
        Column("power", message("power"), "number", unit="kW"),
        Column("rack_units", message("rack units"), "number"),
        Column("break_even", message("break-even price"), "number", unit=unit),
    )
    works = {bill.class_ for bill in all_costs.bills if bill.class_}
    rows = tuple(_row(bill, several=len(works) > 1) for bill in all_costs.bills)
    title = message("Cost of the work of {n} {baseline}", n=f"{all_costs.terms.servers:,}", baseline=baseline)
    limits = {"terminal": MOST_BILLS, "pdf": MOST_BILLS}
    table = Tabular("costs", title, columns, rows, notes=tuple(_notes(all_costs)), limits=limits)  # type: ignore[arg-type]
    return compact(table)


def _row(bill: Bill, *, several: bool) -> Row:
    cost, even = bill.cost, bill.break_even
    ends = "" if bill.minimum is None or bill.maximum is None else span(f"{n:,}" for n in (bill.minimum, bill.maximum))
    return (
        Cell(bill.side),
        Cell(bill.work if several or bill.piece else ""),
        Cell() if bill.offer.price is None else Cell(exact_price(bill.offer.price), bill.offer.price),
        Cell(f"{cost.servers:,}", cost.servers, lo=bill.minimum, hi=bill.maximum, ends=ends if "–" in ends else ""),
        _money(cost.total),
        _money(cost.yearly),
        _money(cost.lifetime),
        Cell() if bill.change is None else Cell(f"{bill.change:+.0%}", bill.change),
        Cell() if cost.power is None else figure(cost.power / 1000),
        number(cost.rack_units),
        Cell()
        if even is None
        else Cell(fmt.price(even.value), even.value, lo=even.lo, hi=even.hi, ends=interval(even)),
    )


def _money(value: float | None) -> Cell:
    return Cell() if value is None else Cell(summed(value), value)


def _notes(all_costs: Costs) -> Iterator[str]:
    if any(bill.break_even for bill in all_costs.bills):
        yield message("Break-even price: the same work then costs the same on both sides.")
    if any(bill.maximum is not None for bill in all_costs.bills):
        yield message("Brackets: 95% confidence intervals of the ratio, as servers or prices.")
    if all_costs.terms.years:
        term = years_of(all_costs.terms.years)
        if all_costs.terms.energy is not None:
            energy = spaced(f"{all_costs.terms.energy:g}", all_costs.terms.currency)
            yield message("Term: {term}; energy at {energy} per kWh.", energy=energy, term=term)
        else:
            yield message("Term: {term}; energy is not included.", term=term)
