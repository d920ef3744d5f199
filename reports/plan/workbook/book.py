"""Build the tabs of the plan's editable workbook: inputs, live formulas, the solver's decisions and checks.

Sizing, power, cost and checks update with a price, a demand or an equivalence. The solver's decisions do not change;
``fleetmark.demand.workbook`` reads the inputs back for another solve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from fleetmark.base.text import Message, message
from fleetmark.demand.columns import INTEGER, PRICE
from fleetmark.planner.capacity.question import KINDS
from fleetmark.reports.kit.charts import COLOURS, Chart
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.native import Native, Series
from fleetmark.reports.kit.tabular import Cell, Column, LazyRows, Row, Tabular
from fleetmark.reports.kit.workbook import literal
from fleetmark.reports.plan.model import PlanView, cost_colours, kind
from fleetmark.reports.plan.workbook import (
    checks,
    demands,
    glance,
    inputs,
    limits,
    money,
    resources,
    sensitivity,
    series,
    stock,
)
from fleetmark.reports.plan.workbook.cells import across, down, live, names, numbers
from fleetmark.reports.plan.workbook.inputs import Say
from fleetmark.reports.plan.workbook.numbers import Numbers

Limits = Callable[[], Sequence[checks.Check]]  # limits of a plan, computed when a workbook needs them
_GUIDE: Sequence[tuple[Cell, Message]] = (
    (
        Cell(message("input: edit it"), is_input=True),
        message(
            "Prices, demands, equivalences, limits. Each cell shows its valid values. All results are recalculated, "
            "in Excel and in LibreOffice."
        ),
    ),
    (
        Cell(message("decided by the solver"), is_decided=True),
        message(
            "Orders, retirements, active servers, allocation, margins. They do not change when inputs change; "
            "Checks shows whether they are still valid. Change them to try your own plan."
        ),
    ),
    (Cell(message("live")), message("Formulas. Select one and trace its precedents.")),
    (
        Cell(message("rounding")),
        message("Servers are rounded up after rounding at 6 decimals, so that rounding noise never adds a server."),
    ),
    (
        Cell(message("solving again")),
        message("Save the workbook, then run: fleetmark plan --from plan.xlsx --xlsx new.xlsx"),
    ),
    (
        Cell(message("what is read")),
        message(
            "The inputs of this workbook, and nothing else. Save it in Excel or LibreOffice before, so that inputs "
            "which are formulas have a value."
        ),
    ),
    (
        Cell(message("new rows")),
        message(
            "A SKU, a site, a cohort of servers or an equivalence goes in the empty coloured rows of SKU & TCO, Sites, "
            "Fleet and Equivalence, or in rows inserted there. A new SKU needs its equivalences, a new site its "
            "columns may run. A workload goes below the others in Utilisation, with its demand in the empty rows of "
            "Demand and its equivalences; a period below the others in Inputs, with its demand to the right of the "
            "others. They take part after the next solve. To remove one, clear its cells there."
        ),
    ),
    (
        Cell(message("what to leave")),
        message(
            "Do not delete columns or tabs. Tabs may be renamed: every input is found by its name (Formulas, Name "
            "Manager)."
        ),
    ),
)


def sections(v: PlanView, say: Say) -> Iterator[Section]:
    """Yield the tabs. ``say``: translates the words in formulas."""
    n = Numbers(v.question, v.plan)
    limits_of_plan = cache(lambda: list(checks.every(n)))
    yield _tab(
        "now",
        message("Plan"),
        message("The plan now, with the inputs as they are, and how to work with this workbook."),
        (_now(v, n, limits_of_plan, say), _guide(v)),
    )
    yield _tab(
        "glance",
        message("At a glance"),
        message("Money, purchases, servers and power by year, the promise, the largest risks and the next decision."),
        glance.tables(v, n, say),
    )
    yield _tab(
        "charts",
        message("Charts"),
        message("Demand against capacity, cost by year, power by site. They follow the cells."),
        _charts(n),
    )
    yield _tab(
        "inputs",
        message("Inputs"),
        message("Prices and rates for all sites, and the periods with their budgets."),
        (inputs.settings(n), inputs.periods(n)),
    )
    yield _tab(
        "sites",
        message("Sites"),
        message(
            "Limits of each site, its failure domains, and the workloads that may run there. Enter new sites in the "
            "empty rows."
        ),
        (inputs.sites(n),),
    )
    yield _tab(
        "fleet",
        message("Fleet"),
        message("Servers in place at the start, and when they reach their age limit. New rows go in the empty ones."),
        (inputs.fleet(n, say),),
    )
    yield _tab(
        "benchmarks",
        message("Benchmarks"),
        message("The worth of each SKU, measured or given, at the time of the plan."),
        (inputs.benchmarks(n),),
    )
    yield _tab(
        "equivalence",
        message("Equivalence"),
        message("What one server of a SKU serves of a workload at full use, with its 95% interval: exp(ln E ± t se)."),
        (inputs.equivalence(n, say),),
    )
    yield _tab(
        "resources",
        message("Resources"),
        message(
            "Memory, disk, IOPS and others: the amounts that one unit of demand needs from its server, and the "
            "amounts that servers have. The scarcest resource limits the work of a server."
        ),
        (resources.table(n),),
    )
    yield _tab(
        "demand",
        message("Demand"),
        message(
            "Demand by workload and period, its quantiles, what is planned for, and the capacity that the plan gives."
        ),
        (*demands.demands(n), *((resources.bound_by(n),) if n.resources else ())),
    )
    yield _tab(
        "series",
        message("Over time"),
        message(
            "Prices, energy prices and limits of sites that change from period to period; power is in W. Each replaces "
            "the constant; a SKU that cannot be ordered in a period is not sold."
        ),
        (series.table(n),),
    )
    yield _tab(
        "skus",
        message("SKU & TCO"),
        message(
            "What servers cost, draw and need, and what one costs over all periods. New SKUs go in the empty rows."
        ),
        (inputs.skus(n),),
    )
    yield _tab(
        "utilisation",
        message("Utilisation"),
        message("How far servers are used for each workload: given, or the most that keeps its latency."),
        (inputs.utilisation(n),),
    )
    yield from _results(v, n, limits_of_plan)


def _results(v: PlanView, n: Numbers, limits_of_plan: Limits) -> Iterator[Section]:
    yield _tab(
        "sizing",
        message("Sizing"),
        message("Servers of one SKU that the planned demand of one workload alone needs: D / (E u), rounded up."),
        limits.sizing(n),
    )
    yield _tab(
        "lost",
        message("N+1"),
        message(
            "Capacity left when the failure domain of a site is gone, and how far it lies above the planned demand."
        ),
        limits.lost(n),
    )
    yield _tab(
        "rack",
        message("Rack & power"),
        message(
            "Power at the peak of all installed servers, rack units, ports and money spent, against each site's limits."
        ),
        limits.rack(n),
    )
    yield _tab(
        "refresh",
        message("Refresh"),
        message("How many servers will have reached their age limit, and how many have been retired, since the start."),
        limits.refresh(n),
    )
    yield _tab(
        "variants",
        message("Scenarios"),
        message(
            "Servers of one SKU that one workload would need in a period, by demand and by the ends of E's interval."
        ),
        limits.scenarios(n),
    )
    yield _tab(
        "supply",
        message("Supply"),
        message("The most that can be ordered of a SKU or from a vendor. New rows go in the empty ones."),
        (inputs.supply(n),),
    )
    yield _tab(
        "sensitivity",
        message("Sensitivity"),
        message("Each input varied alone (live), and stored results of simulations and further solutions."),
        sensitivity.tables(n, v),
    )
    yield _tab(
        "stock",
        message("Purchase plan"),
        message(
            "What to order, retire and switch on, as the solver decided (green), and what is in place then (live)."
        ),
        stock.tables(n),
    )
    yield _tab(
        "allocation",
        message("Allocation"),
        message(
            "Which share of whole servers serves what (green, as the solver decided), and the work that it can do "
            "(live)."
        ),
        (stock.allocation(n),),
    )
    yield _tab(
        "pools",
        message("Pools"),
        message("Servers of pools that share none with others: whole, and among the active ones (as solved)."),
        (stock.pools(n),),
    )
    yield _tab(
        "money", message("Cost"), message("Money by kind and period, its present value, and by year."), money.tables(n)
    )
    yield _tab(
        "checks",
        message("Checks"),
        message("Every limit of the plan: by how much it is kept (below 0: broken), period by period."),
        (checks.table(n, limits_of_plan),),
    )


def _tab(key: str, title: Message, note: Message, exhibits: Iterable[Exhibit]) -> Section:
    return Section(f"tab-{key}", title, (Note(note), *exhibits), ("xlsx",), is_sheet=True)


def _now(v: PlanView, n: Numbers, limits_of_plan: Limits, say: Say) -> Tabular:
    """Return the plan under the inputs as they are."""
    q = v.question
    yes, no = say(message("all are kept")), say(message("are not kept: see Checks"))
    last = f"p{n.periods - 1}!{len(n.pairs) - 1}"
    count = f"COUNTIF({down('checks', 'kept')},FALSE)"
    limit = f'IF({count}=0,{literal(yes)},{count}&" "&{literal(no)})'
    kept = (("{value}=" + literal(yes), "good"), ("ISNUMBER(FIND(" + literal(no) + ",{value}))", "bad"))
    servers = message("servers")
    hint = message("a tolerance: a number, 0 to 1")

    def rows() -> Iterator[Row]:
        broken = sum(not check.is_kept for check in limits_of_plan())
        yield from (
            (Cell(message("limits")), live(limit, f"{broken} {no}" if broken else yes), Cell()),
            glance.decisions(n, say),
            (
                Cell(message("present value")),
                live("total_present_value", n.total, PRICE, tone="strong"),
                Cell(q.currency),
            ),
            *(
                (
                    Cell(label),
                    live(f"SUM([{key}!p0!0:{last}])" if n.pairs else "0", values.sum(), INTEGER, tone="strong"),
                    Cell(servers),
                )
                for key, label, values in (
                    ("buy", message("servers to order"), n.buy),
                    ("retire", message("servers to retire"), n.retire),
                )
            ),
            (
                Cell(message("tolerance of limits")),
                Cell(
                    "",
                    checks.TOLERANCE,
                    is_input=True,
                    limits=(0, 1),
                    hint=hint,
                    name="checks_tolerance",
                    form="0.0E+00",
                ),
                Cell(message("share of the limit, of 1 where it is less")),
            ),
        )

    columns = (
        *names(figure=message("figure")),
        numbers("value", message("value"), width=34, rules=(*kept, *glance.rules(say))),
        Column("unit", message("unit"), width=60, rules=glance.rules(say)),
    )
    return Tabular("now", message("The plan now"), columns, LazyRows(rows, 6))


def _guide(v: PlanView) -> Tabular:
    money = message(
        "All money is {money} of {date}, undiscounted except where it says present value.",
        money=v.question.currency,
        date=v.question.date,
    )
    rows = (*((cell, Cell(), Cell(text)) for cell, text in _GUIDE), (Cell(message("money")), Cell(), Cell(money)))
    columns = (
        *names(cell=message("cells")),
        Column("gap", message("")),
        Column("meaning", message("meaning"), "note"),
    )
    return Tabular("guide", message("How to work with it"), columns, rows)


def _charts(n: Numbers) -> Iterator[Chart]:
    """Yield cost by year, demand and capacity by workload, and power by site."""
    q, last = n.question, n.periods - 1
    years = max(n.years) - 1
    colours = cost_colours()
    kinds = tuple(
        Series(kind(name), across("years", i, years), "column", colours[name]) for i, name in enumerate(KINDS)
    )
    by_year = Native(category=f"[years!p0!-1:p{years}!-1]", series=kinds, axis=q.currency, form="#,##0")
    yield Chart(message("Cost by year, undiscounted"), "", native=by_year)
    for i, w in enumerate(n.workloads):
        title = message("{workload}: demand and capacity", workload=w)
        unit = q.workloads[w].unit
        series = tuple(_demand(n, i))
        yield Chart(title, "", native=Native(category=down("periods", "name"), series=series, axis=unit, form="#,##0"))
    for k, site in enumerate(n.sites):
        series = (Series(message("power"), across("power", k, last), "column", COLOURS[5]),)
        if q.sites[site].power_w is not None:
            series += (Series(message("limit"), across("power_limit", k, last), "line", COLOURS[1]),)
        title = message("{site}: power at peak of what is installed", site=site)
        yield Chart(title, "", native=Native(category=down("periods", "name"), series=series, axis="kW", form="#,##0,"))


def _demand(n: Numbers, i: int) -> Iterator[Series]:
    """Yield a workload's demand with its band, the planned demand, and the capacity."""

    def line(table: str) -> str:
        return across(table, i, n.periods - 1)

    yield Series(message("below 5% of demand"), line("low"), "area")
    yield Series(message("demand, 5% to 95%"), line("band"), "area", COLOURS[0], transparency=84)
    yield Series(message("median demand"), line("mixed"), "line", COLOURS[0], "dash")
    yield Series(message("planned demand"), line("planned"), "line", COLOURS[1])
    if n.question.survives(n.workloads[i]):
        yield Series(message("capacity, all sites up"), line("delivered"), "line", COLOURS[2], "round_dot")
    yield Series(message("capacity"), line("counted"), "line", COLOURS[2])
