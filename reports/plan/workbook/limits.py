"""Build the tables that compare the plan with its limits: sizing, failure domains, racks, power, refresh, scenarios."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fleetmark.base.text import joined, message
from fleetmark.demand.columns import AMOUNT
from fleetmark.planner.capacity.ledger import over
from fleetmark.planner.capacity.resources import bound
from fleetmark.planner.capacity.series import in_period
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.workbook.cells import across, by_period, down, grid, live, names, numbers, ref
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers, servers_for
from fleetmark.reports.plan.workbook.stock import pair_labels

_WORK, _WHOLE, _SHARE = "#,##0.##;-#,##0.##;0", "#,##0", "0.0%"
_MULTIPLIERS = (0.8, 1.0, 1.2)
_OTHER = 1.5  # initial value of the multiplier's input


def rounded_up(demand: str, one: str) -> str:
    """Return the formula of servers for a demand. It rounds the quotient, because noise differs between programs."""
    return f"ROUNDUP(ROUND({demand}/({one}),6),0)"


def able(n: Numbers, workload: str) -> list[str]:
    """Return the SKUs that can serve a workload."""
    return [s for s in n.skus if workload in n.question.skus[s].worth]


def sizing(n: Numbers) -> Iterator[Tabular]:
    """Yield, for each workload, the number of servers needed if all are of one SKU."""
    for i, w in enumerate(n.workloads):
        skus = able(n, w)
        one = numbers("rate", message("E u: work of one server"), "#,##0.0000", width=16)
        labels = (*names(sku=message("SKU")), one)
        rows = []
        for s in skus:
            e, u = n.worth_cells(w, s)
            rows.append((Cell(s), live(f"{e}*{u}", n.question.rate(s, w))))

        def cell(j: int, t: int, i: int = i, w: str = w, skus: Sequence[str] = skus) -> Cell:
            formula = rounded_up(ref("planned", t, i), "{rate}")
            return live(formula, servers_for(n.planned[i, t], n.question.rate(skus[j], w)))

        title = message("Servers needed for {workload}", workload=w)
        yield by_period(n, f"sizing_{i}", title, labels, rows, cell, _WHOLE)


Places = tuple[tuple[int, int], ...]  # failure domains lost together: site, and number of the domain there


def losses(n: Numbers) -> list[tuple[int, Places]]:
    """Return the losses of failure domains: workload, and positions of the domains."""
    places = [(k, d) for k in range(len(n.sites)) for d in range(n.most_domains)]
    together = list(itertools.combinations(places, min(max(n.question.survive, 1), len(places))))
    return [(i, lost) for i in range(len(n.workloads)) for lost in together]


def lost(n: Numbers) -> Iterator[Tabular]:
    """Yield the capacity left without each failure domain, and its margin above the planned demand."""
    listed = losses(n)
    labels = names(
        workload=message("workload"), site=message("without the domain of"), domain=message("failure domain")
    )
    rows = [
        (Cell(n.workloads[i]), Cell(joined(dict.fromkeys(n.sites[k] for k, _ in places))), _domains(n, places))
        for i, places in listed
    ]
    left = [n.delivered(i, case) if (case := n.lost(places)) else None for i, places in listed]
    domains = down("sites", "domains", 0, len(n.sites) - 1)
    all_sites = f"ROW({domains})-ROW({ref('sites', 'domains')})+1"

    def remaining(line: int, t: int) -> Cell:
        cells = [ref("sites", f"domain_{d}", k) for k, d in listed[line][1]]
        stays = "*".join(f'ISERROR(FIND(","&{cell}&",",{domains}))' for cell in cells)
        is_workload = f"{down('allocation', 'workload_no')},{listed[line][0] + 1}"
        work = f"SUMIFS({down('allocation', f'work_{t}')},{is_workload},{down('allocation', 'site_no')},{all_sites})"
        values = left[line]
        return live(f'IF({{domain}}="","",SUMPRODUCT({stays}*{work}))', None if values is None else values[t])

    def above(line: int, t: int) -> Cell:
        values, i = left[line], listed[line][0]
        slack = None if values is None else round(float(values[t] - n.planned[i, t]), 6) + 0.0
        capacity = ref("left", t, line)
        return live(f'IF({capacity}="","",ROUND({capacity}-{ref("planned", t, i)},6))', slack)

    yield by_period(n, "left", message("Capacity left, in the unit of the workload"), labels, rows, remaining, _WORK)
    table = by_period(n, "above", message("Capacity left, less the planned demand"), labels, rows, above, _WORK)
    yield ruled(table, n, "{period}<-1E-6")


def _domains(n: Numbers, places: Places) -> Cell:
    """Return the names of lost failure domains; empty if one of the sites has fewer."""
    cells = [ref("sites", f"domain_{d}", k) for k, d in places]
    names_of_all = '&", "&'.join(cells)
    if len(cells) > 1:
        missing = ",".join(f'{cell}=""' for cell in cells)
        names_of_all = f'IF(OR({missing}),"",{names_of_all})'
    return live(names_of_all, ", ".join(n.lost(places)))


def ruled(table: Tabular, n: Numbers, rule: str) -> Tabular:
    """Return the table, with bad news marked where the ``rule`` about a ``{period}`` is true."""
    keys = {f"p{t}" for t in range(n.periods)}
    columns = tuple(
        replace(c, rules=((rule.replace("{period}", f"{{{c.key}}}"), "bad"),)) if c.key in keys else c
        for c in table.columns
    )
    return replace(table, columns=columns)


def rack(n: Numbers) -> Iterator[Tabular]:
    """Yield power, rack units, ports, positions and money spent, against each site's limits."""
    q, positions = n.question, message("positions")
    power = message("Power of all installed servers, as it counts against the limit")
    yield _limited(n, "power", power, "W", "power_w", "peak", n.budgeted_w)
    yield _limited(n, "units", message("Rack units"), "U", "rack_units", "rack_units", n.rack_units)
    yield _limited(n, "ports", message("Ports"), message("ports"), "ports", "ports", n.ports)
    racks, liquid = (n.racks(liquid=is_liquid) for is_liquid in (False, True))
    yield _limited(n, "racks", message("Positions for racks"), positions, "racks", "racks", racks)
    yield _limited(n, "liquid", message("Liquid-cooled positions"), positions, "liquid_racks", "liquid", liquid)
    spent = message("Money for purchases, since the start")
    yield _limited(n, "spent", spent, q.currency, "budget", "", n.spent)
    yield by_period(
        n,
        "power_limit",
        message("Power limits for charts"),
        names(site=message("site")),
        [[Cell(site)] for site in n.sites],
        lambda k, t: live(limit_cell(n, "power", k, t), in_period(q.sites[n.sites[k]].power_w, t)),
        _WHOLE,
        is_working=True,
    )


_KEYS = {"power": "power", "units": "rack_units", "ports": "ports", "racks": "racks", "liquid": "liquid_racks"}


def limit_cell(n: Numbers, block: str, k: int, t: int) -> str:
    """Return the reference of a site's limit in a period."""
    return n.series_cell(_KEYS.get(block, ""), n.sites[k], t) or ref(block, "limit", k)


def _limited(n: Numbers, key: str, title: str, unit: str, limit: str, figure: str, used: Floats) -> Tabular:
    """Return the use of a limit at each site: by installed servers, or the sum of orders without a ``figure``."""
    labels = (
        *names(site=message("site")),
        Column("unit", message("unit")),
        numbers("limit", message("limit"), "#,##0.##", width=14),
    )
    rows = []
    for k, site in enumerate(n.sites):
        source = ref("sites", limit, k)
        value = getattr(n.question.sites[site], limit)
        if isinstance(value, tuple):
            largest = f"MAX({limit_cell(n, key, k, 0)}:{limit_cell(n, key, k, n.periods - 1)})"
            rows.append((Cell(site), Cell(unit), live(largest, max(value))))
        else:
            rows.append((Cell(site), Cell(unit), live(f'IF({source}="","",{source})', value)))
    site_no = down("figures", "site_no")

    def cell(k: int, t: int) -> Cell:
        each, servers = (down("figures", figure), "installed") if figure else (down("paid", t), "buy")
        before = "" if figure or not t else f"{{p{t - 1}}}+"
        return live(f"{before}SUMPRODUCT(({site_no}={k + 1})*{each}*{down(servers, t)})", used[k, t])

    def highest(k: int) -> Cell:
        maximum, span = getattr(n.question.sites[n.sites[k]], limit), f"{{p0}}:{{p{n.periods - 1}}}"
        if isinstance(maximum, tuple):
            sizes = f"{limit_cell(n, key, k, 0)}:{limit_cell(n, key, k, n.periods - 1)}"
            share = None if not any(maximum) else float(over(used[k], np.array(maximum)).max())
            highest_use = f"SUMPRODUCT(MAX({span}/({sizes}+({sizes}=0)*1E+99)))"
            return live(f'IF(N({{limit}})=0,"",{highest_use})', share)
        share = None if not maximum else used[k].max() / maximum
        return live(f'IF(N({{limit}})=0,"",MAX({span})/{{limit}})', share)

    top = numbers("highest", message("highest use of the limit"), _SHARE, width=14), highest
    table = by_period(n, key, title, labels, rows, cell, _WHOLE, last=[top])
    return ruled(table, n, 'AND({limit}<>"",{period}>{limit}*(1+1E-9))')


def refresh(n: Numbers) -> Iterator[Tabular]:
    """Yield how many servers will have reached their age limit, and how many have been retired, since the start."""
    rows = [(live(ref("buy", "sku", i), s), live(ref("buy", "site", i), k)) for i, (s, k) in enumerate(n.pairs)]
    retired = np.cumsum(n.retire, axis=1)

    def leaving(i: int, t: int, key: str = "age_limit") -> Cell:
        limit, number = ref("figures", key, i), ref("periods", "no", t)
        arrivals = across("arrive", i, n.periods - 1)
        bought = f"IF({number}>{limit},SUM({ref('arrive', 0, i)}:INDEX({arrivals},{number}-{limit})),0)"
        in_place = (
            'SUMPRODUCT(EXACT(fleet_sku,{sku})*EXACT(fleet_site,{site})*(fleet_arrives="")'
            f"*(fleet_age+{number}-1>={limit})*fleet_count)"
        )
        none = '""' if key == "age_limit" else "0"
        values = n.must_leave if key == "age_limit" else n.may_leave
        return live(f"IF({limit}={none},0,{in_place}+{bought})", values[i, t])

    def left(i: int, t: int) -> Cell:
        before = f"{{p{t - 1}}}+" if t else ""
        return live(f"{before}{ref('retire', t, i)}", retired[i, t])

    must = message("Servers at their age limit by then")
    yield by_period(n, "must_leave", must, pair_labels(), rows, leaving, _WHOLE)
    may = message("Servers past their least term by then")
    served = partial(leaving, key="term")
    yield by_period(n, "may_leave", may, pair_labels(), rows, served, _WHOLE, is_working=True)
    yield by_period(n, "have_left", message("Servers retired by then"), pair_labels(), rows, left, _WHOLE)


def scenarios(n: Numbers) -> Iterator[Tabular]:
    """Yield the servers of one SKU that a workload needs, by demand and by the bounds of the interval of E."""
    chosen = Cell("", n.periods, is_input=True, choices=tuple(str(t + 1) for t in range(n.periods)), form="0")
    hint = message("a multiple of the demand: a number, 0 to 1000")
    multiplier = Cell("", _OTHER, is_input=True, limits=(0, 1000), hint=hint, form="0.00")
    period = live(f"INDEX({down('periods', 'name')},scenario_period)", n.question.periods[-1])
    value = numbers("value", message("value"))
    rows = (
        (Cell(message("period (number, see Inputs)")), replace(chosen, name="scenario_period"), period),
        (
            Cell(message("demand, a multiple of the median, of your own")),
            replace(multiplier, name="scenario_multiplier"),
            Cell(),
        ),
    )
    columns = (*names(input=message("input")), value, Column("shown", message("period")))
    yield Tabular("scenario_inputs", message("Scenario"), columns, rows)
    yield by_workload(n)
    ends = (("lo", message("E at lo")), ("value", message("E")), ("hi", message("E at hi")))
    times = (*_MULTIPLIERS, None)
    for i, w in enumerate(n.workloads):
        columns = (
            *names(sku=message("SKU")),
            *(
                numbers(f"{end}_{m}", message("demand × {m}", m="…" if m is None else f"{m:g}"), _WHOLE, group=title)
                for end, title in ends
                for m in times
            ),
        )

        def row(j: int, i: int = i, w: str = w) -> Iterator[Cell]:
            s = able(n, w)[j]
            worth, place = n.question.skus[s].worth[w], n.pairs_of_worth.index((s, w))
            lo, hi = worth.estimate.interval or (worth.value, worth.value)
            yield Cell(s)
            for (end, _), value in zip(ends, (lo, worth.value, hi), strict=True):
                one = work_of(n, end, place)
                for m in times:
                    factor = "scenario_multiplier" if m is None else f"{m:g}"
                    demand = (_OTHER if m is None else m) * n.point[i, -1]
                    units, _ = bound(n.question.skus[s].has, n.question.workloads[w].needs)
                    needed = servers_for(demand, min(value * n.question.speed_limit(s, w), units))
                    yield live(rounded_up(f"{factor}*{ref('scenario_demand', 'demand', i)}", one), needed)

        title = message("Servers needed for {workload}", workload=w)
        yield grid(f"scenario_{i}", title, columns, len(able(n, w)), row)


def work_of(n: Numbers, end: str, place: int) -> str:
    """Return the formula of the work of one server at one ``end`` of its interval."""
    if not n.resources:
        return f"{ref('worth', end, place)}*{ref('worth', 'used', place)}"
    units = f"[worth!units_0!{place}:units_{len(n.resources) - 1}!{place}]"
    return f"MIN({ref('worth', end, place)}*{ref('worth', 'speed', place)},{units})"


def by_workload(n: Numbers) -> Tabular:
    """Return the median demand of each workload in the chosen period."""
    columns = (*names(workload=message("workload")), numbers("demand", message("median demand"), AMOUNT))

    def row(i: int) -> Sequence[Cell]:
        demand = live(f"INDEX({across('mixed', i, n.periods - 1)},scenario_period)", n.point[i, -1])
        unit = live(ref("workloads", "unit", i), n.question.workloads[n.workloads[i]].unit)
        return (Cell(n.workloads[i]), demand, unit)

    unit = Column("unit", message("unit"))
    return grid("scenario_demand", message("Median demand in that period"), (*columns, unit), len(n.workloads), row)
