"""Define the input tables of the plan's workbook: title, unit and rule of each column.

Both the writer and the reader of the workbook use them. Every column is a named range, so planners can insert rows and
columns and rename tabs. ``equipment`` has the tables of SKUs and sites.
"""

from __future__ import annotations

from fleetmark.base.text import message
from fleetmark.demand.columns import AMOUNT, INTEGER, NO, PRICE, TWO, YES, Column, Rule
from fleetmark.planner.capacity.question import AVAILABILITY
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.planner.review.promise import MOST


def settings(money: str = "") -> tuple[Column, ...]:
    """Return the settings of the question, one cell each."""
    return (
        Column(
            "question_date",
            message("date of prices and of present value"),
            Rule(message("a date, 2027-01-31"), text=True),
        ),
        Column(
            "question_discount",
            message("discount rate"),
            Rule(message("a discount rate"), maximum=1),
            message("a year"),
            "0.00%",
        ),
        Column(
            "question_energy_price", message("energy price"), Rule(message("an energy price")), f"{money}/kWh", "0.0000"
        ),
        Column(
            "question_energy_price_change",
            message("change of energy prices"),
            Rule(message("a change"), minimum=-0.99, maximum=100, optional=True, empty=message("none")),
            message("a year"),
            "0.0%",
        ),
        Column(
            "question_depreciation",
            message("purchases are depreciated over"),
            Rule(message("a duration"), maximum=1000, integer=True, optional=True, empty=message("no depreciation")),
            message("periods"),
            INTEGER,
        ),
        Column("question_pue", message("PUE"), Rule(message("a PUE"), minimum=1, maximum=10), "", "0.00"),
        Column(
            "question_carbon_price", message("carbon price"), Rule(message("a carbon price")), f"{money}/t CO2e", "0.00"
        ),
        Column(
            "question_grid", message("carbon of the grid"), Rule(message("carbon of the grid")), "kg CO2e/kWh", "0.000"
        ),
        Column(
            "question_quantile",
            message("share of futures in which demand must be met"),
            Rule(message("a share"), minimum=0.5, maximum=0.999),
            "",
            "0.0%",
        ),
        Column(
            "question_reviews",
            message("reviews that share the futures that may fail"),
            Rule(message("a count"), maximum=MOST, integer=True, optional=True, empty=message("none")),
            "",
            INTEGER,
        ),
        Column(
            "question_survive",
            message("capacity suffices with any one failure domain gone, or any two (2)"),
            Rule(message("an answer"), text=True, words=(YES, NO, TWO)),
        ),
        Column(
            "question_outage",
            message("share of time in which one failure domain is down"),
            Rule(message("a share"), maximum=1),
            "",
            "0.00%",
        ),
        Column(
            "question_currencies",
            message("what one of another currency is"),
            Rule(message("USD: 0.92, GBP: 1.17"), text=True, optional=True),
            money,
        ),
        Column(
            "question_domain_power",
            message("power limit of failure domains (rows, feeds)"),
            Rule(message("row 1: 80 kW, feed A: 200 kW"), text=True, optional=True, empty=message("no limit")),
        ),
        Column(
            "question_correlation",
            message("correlation of demands"),
            Rule(message("all: 0.3, web + batch: 0.6"), text=True, optional=True, empty=message("independent")),
        ),
        Column(
            "question_shock_chance",
            message("share of futures in which all demands jump"),
            Rule(message("a share"), maximum=1, optional=True, empty=message("none")),
            "",
            "0.0%",
        ),
        Column(
            "question_shock_demand",
            message("factor on all demands after the jump"),
            Rule(message("a factor"), maximum=100, above=True, optional=True, empty=message("none")),
            "",
            "0.00",
        ),
        Column(
            "question_carbon_limit",
            message("limit on carbon over all periods"),
            Rule(message("a mass"), optional=True, empty=message("no limit")),
            "kg CO2e",
            AMOUNT,
        ),
        Column(
            "question_carbon_by_year",
            message("limit on carbon by year"),
            Rule(message("2027: 400000, 2028: 350000"), text=True, optional=True, empty=message("no limit")),
            "kg CO2e",
        ),
    )


def periods(money: str = "") -> tuple[Column, ...]:
    """Return the columns of the table of periods."""
    return (
        Column(
            "period_budget",
            message("money for purchases"),
            Rule(message("a sum of money"), optional=True, empty=message("no limit")),
            money,
            PRICE,
        ),
    )


def workloads() -> tuple[Column, ...]:
    """Return the columns of the table with one row per workload."""
    return (
        Column("workload_name", message("workload"), Rule(message("a name"), text=True)),
        Column("workload_unit", message("unit of its demand"), Rule(message("a unit"), text=True)),
        Column(
            "workload_utilisation",
            message("utilisation"),
            Rule(message("a utilisation"), maximum=CAP, above=True),
            message("share of a server"),
            "0.0%",
        ),
        Column(
            "workload_dedicated",
            message("servers of its own"),
            Rule(message("an answer"), text=True, words=(YES, NO)),
            message("yes or no"),
        ),
        Column(
            "workload_availability",
            message("when a failure domain is lost"),
            Rule(
                message("an answer"),
                text=True,
                words=AVAILABILITY,
                optional=True,
                empty=message("as in Inputs"),
            ),
            ", ".join(AVAILABILITY),
        ),
        Column(
            "workload_gpus",
            message("GPUs for one unit"),
            Rule(message("a count"), integer=True, optional=True, empty=message("none")),
            "",
            INTEGER,
        ),
        Column(
            "workload_gpu_memory",
            message("memory of a GPU, at least"),
            Rule(message("a size"), optional=True, empty=message("any")),
            "GB",
            AMOUNT,
        ),
        Column(
            "workload_pool",
            message("pool of servers"),
            Rule(message("a name"), text=True, optional=True, empty=message("those that all others share")),
        ),
        Column(
            "workload_revenue",
            message("revenue of one unit of demand"),
            Rule(message("a sum of money"), optional=True, empty=message("none")),
            message("money a year"),
            PRICE,
        ),
    )


RUNS = Rule(message("an answer"), text=True, words=(YES, NO), optional=True, empty=message("anywhere, if all are"))


def fleet() -> tuple[Column, ...]:
    """Return the columns of the table with one row per cohort of servers in place."""
    return (
        Column("fleet_sku", message("SKU"), Rule(message("the name of a SKU"), text=True)),
        Column("fleet_site", message("site"), Rule(message("the name of a site"), text=True)),
        Column("fleet_count", message("in place"), Rule(message("a count"), integer=True), message("servers"), INTEGER),
        Column(
            "fleet_age",
            message("age at the start"),
            Rule(message("an age"), maximum=1000, integer=True),
            message("periods"),
            INTEGER,
        ),
        Column(
            "fleet_arrives",
            message("on order: arrives in"),
            Rule(message("the name of a period"), text=True, optional=True, empty=message("in place")),
            message("period"),
        ),
    )


NEEDS, HAS = "needs", "has"


def resources() -> tuple[Column, ...]:
    """Return the columns of the table of resources: those that a unit of demand needs, and those that servers have."""
    return (
        Column(
            "resource_kind",
            message("what it says"),
            Rule(message("what it says"), text=True, words=(NEEDS, HAS)),
            message("needs (one unit of demand) or has (one server)"),
        ),
        Column("resource_owner", message("workload or SKU"), Rule(message("a name"), text=True)),
        Column("resource_name", message("resource"), Rule(message("a name"), text=True)),
        Column(
            "resource_amount",
            message("amount"),
            Rule(message("an amount")),
            message("B, B/s or a plain number"),
            AMOUNT,
        ),
    )


SERIES = ("price", "energy_price", "power", "rack_units", "ports", "racks", "liquid_racks", "maintenance")
SERIES_VALUE = "series_value"  # the named range of the table's figures


def series() -> tuple[Column, ...]:
    """Return the names in the table of series, which has one row per figure that changes over time."""
    return (
        Column("series_key", message("figure"), Rule(message("a figure"), text=True, words=SERIES)),
        Column(
            "series_name",
            message("of the SKU or site"),
            Rule(message("a name"), text=True, optional=True, empty=message("all sites")),
        ),
    )


def supply() -> tuple[Column, ...]:
    """Return the columns of the table with one row per limit on orders."""
    return (
        Column("supply_item", message("SKU or vendor"), Rule(message("the name of a SKU or vendor"), text=True)),
        Column(
            "supply_maximum",
            message("can be ordered"),
            Rule(message("a count"), integer=True),
            message("servers"),
            INTEGER,
        ),
        Column(
            "supply_period",
            message("in"),
            Rule(message("the name of a period"), text=True, optional=True, empty=message("each period")),
            message("period"),
        ),
    )


def worths() -> tuple[Column, ...]:
    """Return the columns of the table with one row per SKU and workload that runs on it."""
    return (
        Column("worth_sku", message("SKU"), Rule(message("the name of a SKU"), text=True)),
        Column("worth_workload", message("workload"), Rule(message("the name of a workload"), text=True)),
        Column(
            "worth_value",
            message("E: what one server serves at full use"),
            Rule(message("an equivalence"), above=True),
            message("unit of the workload"),
            "#,##0.0000",
        ),
        Column(
            "worth_se", message("standard error of ln E"), Rule(message("a standard error"), maximum=10), "", "0.0000"
        ),
        Column(
            "worth_df",
            message("degrees of freedom"),
            Rule(message("degrees of freedom"), above=True, optional=True, empty=message("as good as known")),
            "",
            "#,##0.0",
        ),
        Column(
            "worth_utilisation",
            message("utilisation"),
            Rule(
                message("a utilisation"), maximum=CAP, above=True, optional=True, empty=message("that of the workload")
            ),
            message("share of a server"),
            "0.0%",
        ),
        Column(
            "worth_hosts",
            message("measured on"),
            Rule(message("names of hosts"), text=True, optional=True, empty=message("an error of its own")),
        ),
    )


MIX = Column("demand_mix", message("factor on the demand"), Rule(message("a factor"), maximum=1000), "", "0.00")
MEDIAN = Column("demand_median", message("median demand"), Rule(message("a demand")), "", AMOUNT)
SIGMA = Column(
    "demand_sd",
    message("standard deviation of ln demand"),
    Rule(message("a standard deviation"), maximum=10),
    "",
    "0.0000",
)
