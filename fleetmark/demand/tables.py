"""The input tables of the plan's workbook: title, unit and rule of each column.

Both the writer and the reader of the workbook use them. Every column is a named range, so that planners can insert rows
and columns and rename tabs.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.text import Message, message
from planner.capacity.question import AVAILABILITY
from planner.capacity.queueing import CAP

MOST = 1e15
YES, NO = "yes", "no"
AIR, LIQUID = COOLING = ("air", "liquid")


@dataclass(frozen=True, slots=True)
class Rule:
    """Valid values of a cell: a number from ``least`` (exclusive if ``above``) to ``most``, a text, or one of
    ``words``. ``integer``: the number is an integer. ``optional``: it may be empty, which means ``empty``.
    """

    what: Message
    least: float = 0.0
    most: float = MOST
    above: bool = False
    integer: bool = False
    text: bool = False
    words: tuple[str, ...] = ()
    optional: bool = False
    empty: str = ""

    @property
    def hint(self) -> Message:
        """The valid values in words, for the person who types."""
        if self.words:
            return message("{what}: {words}", what=self.what, words=", ".join(self.words))
        if self.text:
            return self.what
        kind = message("a whole number") if self.integer else message("a number")
        if self.above:
            span = message("above {least}", least=f"{self.least:g}")
        elif self.most >= MOST:
            span = message("{least} or more", least=f"{self.least:g}")
        else:
            span = message("{least} to {most}", least=f"{self.least:g}", most=f"{self.most:g}")
        if self.above and self.most < MOST:
            span = message("above {least}, up to {most}", least=f"{self.least:g}", most=f"{self.most:g}")
        if self.optional:
            return message(
                "{what}: {kind}, {span}; empty: {empty}", what=self.what, kind=kind, span=span, empty=self.empty
            )
        return message("{what}: {kind}, {span}", what=self.what, kind=kind, span=span)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of inputs: the ``name`` of its range, its ``title`` and ``unit``, and the ``rule`` of its cells."""

    name: str
    title: Message
    rule: Rule
    unit: str = ""
    form: str = "General"

    @property
    def field(self) -> str:
        """The field of the table's class: the name after the first underscore."""
        return self.name.split("_", 1)[1]


INTEGER, AMOUNT, PRICE = "#,##0", "#,##0.##", "#,##0.00"


def settings(money: str = "") -> tuple[Column, ...]:
    """Settings of the question, one cell each."""
    return (
        Column(
            "question_date",
            message("date of prices and of present value"),
            Rule(message("a date, 2027-01-31"), text=True),
        ),
        Column(
            "question_discount",
            message("discount rate"),
            Rule(message("a discount rate"), most=1),
            message("a year"),
            "0.00%",
        ),
        Column(
            "question_energy_price", message("energy price"), Rule(message("an energy price")), f"{money}/kWh", "0.0000"
        ),
        Column("question_pue", message("PUE"), Rule(message("a PUE"), least=1, most=10), "", "0.00"),
        Column(
            "question_carbon_price", message("carbon price"), Rule(message("a carbon price")), f"{money}/t CO2e", "0.00"
        ),
        Column(
            "question_grid", message("carbon of the grid"), Rule(message("carbon of the grid")), "kg CO2e/kWh", "0.000"
        ),
        Column(
            "question_quantile",
            message("share of futures in which demand must be met"),
            Rule(message("a share"), least=0.5, most=0.999),
            "",
            "0.0%",
        ),
        Column(
            "question_survive",
            message("capacity suffices with any one failure domain gone"),
            Rule(message("an answer"), text=True, words=(YES, NO)),
        ),
        Column(
            "question_outage",
            message("share of time in which one failure domain is down"),
            Rule(message("a share"), most=1),
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
    )


def periods(money: str = "") -> tuple[Column, ...]:
    """The inputs of the table of periods."""
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
    """A row per workload."""
    return (
        Column("workload_name", message("workload"), Rule(message("a name"), text=True)),
        Column("workload_unit", message("unit of its demand"), Rule(message("a unit"), text=True)),
        Column(
            "workload_utilisation",
            message("utilisation"),
            Rule(message("a utilisation"), most=CAP, above=True),
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
    )


def skus(money: str = "") -> tuple[Column, ...]:
    """A row per SKU."""
    year = message("{money} a year", money=money)
    return (
        Column("sku_name", message("SKU"), Rule(message("a name"), text=True)),
        Column(
            "sku_price",
            message("price"),
            Rule(message("a price"), optional=True, empty=message("not sold")),
            money,
            PRICE,
        ),
        Column("sku_idle_w", message("power idle"), Rule(message("a power")), "W", AMOUNT),
        Column("sku_peak_w", message("power peak"), Rule(message("a power")), "W", AMOUNT),
        Column("sku_rack_units", message("rack units"), Rule(message("rack units")), "U", AMOUNT),
        Column("sku_gpus", message("GPUs"), Rule(message("a count"), integer=True), "", INTEGER),
        Column("sku_ports", message("ports"), Rule(message("a count"), integer=True), "", INTEGER),
        Column(
            "sku_lead",
            message("lead time"),
            Rule(message("a lead time"), most=1000, integer=True),
            message("periods"),
            INTEGER,
        ),
        Column("sku_support", message("support"), Rule(message("a sum of money")), year, PRICE),
        Column("sku_space", message("space"), Rule(message("a sum of money")), year, PRICE),
        Column("sku_migration", message("moving off one"), Rule(message("a sum of money")), money, PRICE),
        Column(
            "sku_minimum_order",
            message("minimum order"),
            Rule(message("a count"), integer=True),
            message("servers"),
            INTEGER,
        ),
        Column(
            "sku_age_limit",
            message("age limit"),
            Rule(message("an age"), most=1000, integer=True, optional=True, empty=message("none")),
            message("periods"),
            INTEGER,
        ),
        Column("sku_embodied", message("embodied carbon"), Rule(message("embodied carbon")), "kg CO2e", AMOUNT),
        Column(
            "sku_gpu_memory",
            message("memory of a GPU"),
            Rule(message("a size"), optional=True, empty=message("none")),
            "GB",
            AMOUNT,
        ),
        Column(
            "sku_provisioned_w",
            message("power against the limit"),
            Rule(message("a power"), optional=True, empty=message("its peak")),
            "W",
            AMOUNT,
        ),
        Column("sku_vendor", message("vendor"), Rule(message("a name"), text=True, optional=True)),
        Column(
            "sku_lot",
            message("sold in multiples of"),
            Rule(message("a count"), least=1, integer=True, optional=True, empty="1"),
            message("servers"),
            INTEGER,
        ),
        Column(
            "sku_racks",
            message("positions for racks"),
            Rule(message("a count"), optional=True, empty=message("by its power")),
            "",
            AMOUNT,
        ),
        Column(
            "sku_cooling",
            message("cooling"),
            Rule(message("an answer"), text=True, words=COOLING, optional=True, empty=AIR),
            ", ".join(COOLING),
        ),
        Column(
            "sku_residual",
            message("keeps of its price"),
            Rule(message("a share"), most=1, optional=True, empty=message("nothing")),
            message("a year"),
            "0.0%",
        ),
        Column(
            "sku_price_breaks",
            message("price from a count on"),
            Rule(message("100: 11000, 500: 10500"), text=True, optional=True),
            money,
        ),
        Column(
            "sku_slips",
            message("share of orders that come late"),
            Rule(message("1: 20%, 2: 5%"), text=True, optional=True),
            message("periods late: share"),
        ),
    )


def sites(money: str = "") -> tuple[Column, ...]:
    """A row per site."""
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
            Rule(message("a count"), integer=True),
            message("servers per SKU in use"),
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
            Rule(message("a PUE"), least=1, most=10, optional=True, empty=general),
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
    )


RUNS = Rule(message("an answer"), text=True, words=(YES, NO), optional=True, empty=message("anywhere, where all are"))


def fleet() -> tuple[Column, ...]:
    """A row per cohort of servers in place."""
    return (
        Column("fleet_sku", message("SKU"), Rule(message("the name of a SKU"), text=True)),
        Column("fleet_site", message("site"), Rule(message("the name of a site"), text=True)),
        Column("fleet_count", message("in place"), Rule(message("a count"), integer=True), message("servers"), INTEGER),
        Column(
            "fleet_age",
            message("age at the start"),
            Rule(message("an age"), most=1000, integer=True),
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


def supply() -> tuple[Column, ...]:
    """A row per limit of what can be ordered."""
    return (
        Column("supply_of", message("SKU or vendor"), Rule(message("the name of a SKU or vendor"), text=True)),
        Column(
            "supply_most",
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
    """A row per SKU and workload that runs on it."""
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
        Column("worth_se", message("standard error of ln E"), Rule(message("a standard error"), most=10), "", "0.0000"),
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
            Rule(message("a utilisation"), most=CAP, above=True, optional=True, empty=message("that of the workload")),
            message("share of a server"),
            "0.0%",
        ),
    )


MEDIAN = Column("demand_median", message("median demand"), Rule(message("a demand")), "", AMOUNT)
SIGMA = Column(
    "demand_sd",
    message("standard deviation of ln demand"),
    Rule(message("a standard deviation"), most=10),
    "",
    "0.0000",
)
