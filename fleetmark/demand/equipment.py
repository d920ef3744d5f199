"""Define the workbook's input tables for SKUs and sites."""

from __future__ import annotations

from fleetmark.base.text import message
from fleetmark.demand.columns import AIR, AMOUNT, COOLING, INTEGER, PRICE, Column, Rule


def skus(money: str = "") -> tuple[Column, ...]:
    """Return the columns of the table with one row per SKU."""
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
            Rule(message("a lead time"), maximum=1000, integer=True),
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
            Rule(message("an age"), maximum=1000, integer=True, optional=True, empty=message("none")),
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
            Rule(message("a count"), minimum=1, integer=True, optional=True, empty="1"),
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
            Rule(message("a share"), maximum=1, optional=True, empty=message("nothing")),
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
            "sku_price_change",
            message("change of its price"),
            Rule(message("a change"), minimum=-0.99, maximum=100, optional=True, empty=message("none")),
            message("a year"),
            "0.0%",
        ),
        Column(
            "sku_slips",
            message("share of orders that come late"),
            Rule(message("1: 20%, 2: 5%"), text=True, optional=True),
            message("periods late: share"),
        ),
        Column(
            "sku_rent",
            message("rent"),
            Rule(message("a sum of money"), optional=True, empty=message("none")),
            year,
            PRICE,
        ),
        Column(
            "sku_term",
            message("least service"),
            Rule(message("a duration"), maximum=1000, integer=True, optional=True, empty=message("none")),
            message("periods"),
            INTEGER,
        ),
        Column(
            "sku_failure_rate",
            message("failure rate"),
            Rule(message("a rate"), maximum=10, optional=True, empty=message("none")),
            message("a year"),
            "0.0%",
        ),
        Column(
            "sku_repair",
            message("time to repair"),
            Rule(message("a duration"), maximum=1000, optional=True, empty=message("none")),
            message("periods"),
            "0.####",
        ),
    )


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
