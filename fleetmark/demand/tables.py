"""The input tables of the plan's workbook: what each column is called, which unit it has and what a cell may hold.

The workbook is written by it and read back by it: every column is a named range, so that rows and
columns may be inserted and tabs renamed without the way back being lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.text import Said, said
from planner.capacity.queueing import CAP

MOST = 1e15
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a cell may hold: a number from ``least`` (not it itself where ``above``) to ``most``, a text, or one of
    ``words``. ``optional``: it may be empty, which means ``empty``.
    """

    what: Said
    least: float = 0.0
    most: float = MOST
    above: bool = False
    whole: bool = False
    text: bool = False
    words: tuple[str, ...] = ()
    optional: bool = False
    empty: str = ""

    @property
    def hint(self) -> Said:
        """What may be typed, for the person who is about to."""
        if self.words:
            return said("{what}: {words}", what=self.what, words=", ".join(self.words))
        if self.text:
            return self.what
        kind = said("a whole number") if self.whole else said("a number")
        if self.above:
            span = said("above {least}", least=f"{self.least:g}")
        elif self.most >= MOST:
            span = said("{least} or more", least=f"{self.least:g}")
        else:
            span = said("{least} to {most}", least=f"{self.least:g}", most=f"{self.most:g}")
        if self.above and self.most < MOST:
            span = said("above {least}, up to {most}", least=f"{self.least:g}", most=f"{self.most:g}")
        if self.optional:
            return said(
                "{what}: {kind}, {span}; empty: {empty}", what=self.what, kind=kind, span=span, empty=self.empty
            )
        return said("{what}: {kind}, {span}", what=self.what, kind=kind, span=span)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of inputs: the ``name`` of its range, its ``title`` and ``unit``, and the ``rule`` of its cells."""

    name: str
    title: Said
    rule: Rule
    unit: str = ""
    form: str = "General"

    @property
    def field(self) -> str:
        """The field of the table's class: what stands behind the first underscore."""
        return self.name.split("_", 1)[1]


INTEGER, AMOUNT, PRICE = "#,##0", "#,##0.##", "#,##0.00"


def settings(money: str = "") -> tuple[Column, ...]:
    """What holds for the whole question, one cell each."""
    return (
        Column(
            "question_date", said("date of prices and of present value"), Rule(said("a date, 2027-01-31"), text=True)
        ),
        Column(
            "question_discount", said("discount rate"), Rule(said("a discount rate"), most=1), said("a year"), "0.00%"
        ),
        Column("question_energy_price", said("energy price"), Rule(said("an energy price")), f"{money}/kWh", "0.0000"),
        Column("question_pue", said("PUE"), Rule(said("a PUE"), least=1, most=10), "", "0.00"),
        Column("question_carbon_price", said("carbon price"), Rule(said("a carbon price")), f"{money}/t CO2e", "0.00"),
        Column("question_grid", said("carbon of the grid"), Rule(said("carbon of the grid")), "kg CO2e/kWh", "0.000"),
        Column(
            "question_quantile",
            said("share of futures in which demand shall be met"),
            Rule(said("a share"), least=0.5, most=0.999),
            "",
            "0.0%",
        ),
        Column(
            "question_survive",
            said("capacity suffices with any one failure domain gone"),
            Rule(said("an answer"), text=True, words=(YES, NO)),
        ),
    )


def periods(money: str = "") -> tuple[Column, ...]:
    """What may be typed in the table of periods."""
    return (
        Column(
            "period_budget",
            said("money for purchases"),
            Rule(said("a sum of money"), optional=True, empty=said("no limit")),
            money,
            PRICE,
        ),
    )


def workloads() -> tuple[Column, ...]:
    """A row per workload."""
    return (
        Column("workload_name", said("workload"), Rule(said("a name"), text=True)),
        Column("workload_unit", said("unit of its demand"), Rule(said("a unit"), text=True)),
        Column(
            "workload_utilisation",
            said("utilisation"),
            Rule(said("a utilisation"), most=CAP, above=True),
            said("share of a server"),
            "0.0%",
        ),
        Column(
            "workload_dedicated",
            said("servers of its own"),
            Rule(said("an answer"), text=True, words=(YES, NO)),
            said("yes or no"),
        ),
    )


def skus(money: str = "") -> tuple[Column, ...]:
    """A row per SKU."""
    year = said("{money} a year", money=money)
    return (
        Column("sku_name", said("SKU"), Rule(said("a name"), text=True)),
        Column("sku_price", said("price"), Rule(said("a price"), optional=True, empty=said("not sold")), money, PRICE),
        Column("sku_idle_w", said("power idle"), Rule(said("a power")), "W", AMOUNT),
        Column("sku_peak_w", said("power peak"), Rule(said("a power")), "W", AMOUNT),
        Column("sku_rack_units", said("rack units"), Rule(said("rack units")), "U", AMOUNT),
        Column("sku_gpus", said("GPUs"), Rule(said("a count"), whole=True), "", INTEGER),
        Column("sku_ports", said("ports"), Rule(said("a count"), whole=True), "", INTEGER),
        Column(
            "sku_lead", said("lead time"), Rule(said("a lead time"), most=1000, whole=True), said("periods"), INTEGER
        ),
        Column("sku_support", said("support"), Rule(said("a sum of money")), year, PRICE),
        Column("sku_space", said("space"), Rule(said("a sum of money")), year, PRICE),
        Column("sku_migration", said("moving off one"), Rule(said("a sum of money")), money, PRICE),
        Column("sku_minimum_order", said("minimum order"), Rule(said("a count"), whole=True), said("servers"), INTEGER),
        Column(
            "sku_age_limit",
            said("age limit"),
            Rule(said("an age"), most=1000, whole=True, optional=True, empty=said("none")),
            said("periods"),
            INTEGER,
        ),
        Column("sku_embodied", said("embodied carbon"), Rule(said("embodied carbon")), "kg CO2e", AMOUNT),
    )


def sites(money: str = "") -> tuple[Column, ...]:
    """A row per site."""
    free = said("no limit")
    general = said("as in Inputs")
    return (
        Column("site_name", said("site"), Rule(said("a name"), text=True)),
        Column(
            "site_domain",
            said("fails together with"),
            Rule(said("a failure domain"), text=True, optional=True, empty=said("itself alone")),
            said("failure domain"),
        ),
        Column("site_power_w", said("power limit"), Rule(said("a power"), optional=True, empty=free), "W", AMOUNT),
        Column("site_rack_units", said("space"), Rule(said("rack units"), optional=True, empty=free), "U", AMOUNT),
        Column("site_ports", said("ports"), Rule(said("a count"), optional=True, empty=free), "", AMOUNT),
        Column(
            "site_budget",
            said("money for purchases"),
            Rule(said("a sum of money"), optional=True, empty=free),
            money,
            PRICE,
        ),
        Column(
            "site_spares", said("spares"), Rule(said("a count"), whole=True), said("servers per SKU in use"), INTEGER
        ),
        Column(
            "site_energy_price",
            said("energy price"),
            Rule(said("an energy price"), optional=True, empty=general),
            f"{money}/kWh",
            "0.0000",
        ),
        Column(
            "site_pue", said("PUE"), Rule(said("a PUE"), least=1, most=10, optional=True, empty=general), "", "0.00"
        ),
    )


RUNS = Rule(said("an answer"), text=True, words=(YES, NO), optional=True, empty=said("anywhere, where all are"))


def fleet() -> tuple[Column, ...]:
    """A row per cohort of servers in place."""
    return (
        Column("fleet_sku", said("SKU"), Rule(said("the name of a SKU"), text=True)),
        Column("fleet_site", said("site"), Rule(said("the name of a site"), text=True)),
        Column("fleet_count", said("in place"), Rule(said("a count"), whole=True), said("servers"), INTEGER),
        Column(
            "fleet_age", said("age at the start"), Rule(said("an age"), most=1000, whole=True), said("periods"), INTEGER
        ),
    )


def worths() -> tuple[Column, ...]:
    """A row per SKU and workload that runs on it."""
    return (
        Column("worth_sku", said("SKU"), Rule(said("the name of a SKU"), text=True)),
        Column("worth_workload", said("workload"), Rule(said("the name of a workload"), text=True)),
        Column(
            "worth_value",
            said("E: what one server serves at full use"),
            Rule(said("an equivalence"), above=True),
            said("unit of the workload"),
            "#,##0.0000",
        ),
        Column("worth_se", said("standard error of ln E"), Rule(said("a standard error"), most=10), "", "0.0000"),
        Column(
            "worth_df",
            said("degrees of freedom"),
            Rule(said("degrees of freedom"), above=True, optional=True, empty=said("as good as known")),
            "",
            "#,##0.0",
        ),
    )


MEDIAN = Column("demand_median", said("median demand"), Rule(said("a demand")), "", AMOUNT)
SIGMA = Column(
    "demand_sd",
    said("standard deviation of ln demand"),
    Rule(said("a standard deviation"), most=10),
    "",
    "0.0000",
)
