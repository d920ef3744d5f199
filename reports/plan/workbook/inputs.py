"""Build the tables that a planner edits: settings, periods, sites, fleet, SKUs, equivalence, utilisation, demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fleetmark.base.text import message
from fleetmark.demand import columns as demand
from fleetmark.demand import equipment, tables
from fleetmark.demand.columns import NO, PRICE, TWO, YES
from fleetmark.planner.capacity.question import HOURS, NORMAL, SURVIVES, Question, Site
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.planner.capacity.sku import LIQUID, Field, Kind, Sku, declared_fields
from fleetmark.planner.estimate import CONFIDENCE
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.kit.workbook import literal, t_quantile
from fleetmark.reports.plan.workbook import resources
from fleetmark.reports.plan.workbook.cells import (
    SPARE,
    down,
    entry,
    grid,
    live,
    names,
    numbers,
    plain,
    ref,
)
from fleetmark.reports.plan.workbook.numbers import Numbers
from fleetmark.reports.plan.workbook.series import follows

Say = Callable[[str], str]


def _inputs(
    key: str,
    title: str,
    columns: Sequence[demand.Column],
    rows: Sequence[Sequence[object]],
    spare: int = SPARE,
    *,
    more: Sequence[Column] = (),
    results: Callable[[int], Iterable[Cell]] | None = None,
    choices: Mapping[str, str] | None = None,
    follow: Callable[[int, str, Cell], Cell] = lambda i, field, cell: cell,
    notes: tuple[str, ...] = (),
) -> Tabular:
    """Return a table of inputs with empty rows below. ``results``: the values of a row's columns ``more``."""
    listed = [
        Column(c.field, c.title, "text" if c.rule.text else "number", unit=c.unit, name=c.name, has_interval=False)
        for c in columns
    ]
    listed[0] = replace(listed[0], role="name")

    def row(i: int) -> Sequence[Cell]:
        values = rows[i] if i < len(rows) else [None] * len(columns)
        cells = [
            follow(i, c.field, entry(c, x, (choices or {}).get(c.field, "")))
            for c, x in zip(columns, values, strict=True)
        ]
        calculated = list(results(i)) if results else []
        return (*cells, *calculated, *[Cell()] * (len(more) - len(calculated)))

    return grid(key, title, (*listed, *more), len(rows) + spare, row, notes=notes)


def _listed(entries: Iterable[tuple[object, float]]) -> str:
    """Return entries as the text of a cell, such as ``1: 0.2, 2: 0.05``, with full precision."""
    return ", ".join(f"{key}: {value!r}" for key, value in entries)


def _setting(q: Question, field: str) -> object:
    """Return a setting of the question, formatted for its cell."""
    if field == "currencies":
        return _listed(q.rates.items())
    if field.startswith("shock_"):
        return None if q.shock is None else getattr(q.shock, field.removeprefix("shock_"))
    if field in ("energy_price_change", "depreciation", "reviews"):
        return getattr(q, field) or None
    listed: dict[str, object] = {
        "correlation": _listed(q.correlation.items()) or None,
        "carbon_by_year": ", ".join(f"{year}: {kg:.15g}" for year, kg in q.carbon_by_year.items()) or None,
        "survive": (NO, YES, TWO)[q.survive],
        "domain_power": _listed(q.domains_w.items()),
    }
    return listed[field] if field in listed else getattr(q, field)


def _first(value: object) -> object:
    """Return the first figure of a series, or a constant."""
    return value[0] if isinstance(value, tuple) else value


def _of_site(q: Question, site: Site, field: str) -> object:
    """Return a field of a site as its cell shows it."""
    if field in ("maintenance", "spare_share"):
        return _first(getattr(site, field)) or None
    if field == "windows":
        return None if site.windows is None else ", ".join(q.periods[t] for t in sorted(site.windows))
    return _first(getattr(site, field))


def _of_sku(sku: Sku, field: Field) -> object:
    """Return a field of a SKU as its cell shows it: empty for the default if the cell may be empty."""
    value = getattr(sku, field.name)
    if field.declared.empty is not None and value == field.default:
        return None
    match field.declared.kind:
        case Kind.COOLING:
            return LIQUID
        case Kind.BREAKS:
            return _listed(value)
        case Kind.SLIPS:
            return _listed((n, share) for n, share in enumerate(value) if n and share)
    return value


# --- settings, periods, sites, fleet, supply -------------------------------------------------------------------------


def settings(n: Numbers) -> Tabular:
    """Return the settings of the question."""
    q = n.question
    rows = [
        (Cell(message("currency")), Cell(q.currency, name="question_currency"), Cell()),
        (Cell(message("length of a period")), Cell("", q.years, name="question_years"), Cell(message("years"))),
    ]
    for column in tables.settings(q.currency):
        cell = follows(n, entry(column, _first(_setting(q, column.field))), column.field, "")
        rows.append((Cell(column.title), replace(cell, name=column.name), Cell(column.unit)))
    value = numbers("value", message("value"), width=20)
    return Tabular(
        "settings",
        message("Settings"),
        (*names(setting=message("setting")), value, Column("unit", message("unit"))),
        rows,
    )


def periods(n: Numbers) -> Tabular:
    """Return the periods with their budgets. Nothing may be below them, so that users can add periods."""
    q = n.question
    (budget,) = tables.periods(q.currency)
    columns = (
        numbers("no", message("no."), "0"),
        Column("name", message("period"), name="period_name"),
        numbers("begins", message("begins"), "0.00", unit=message("years from the start")),
        numbers("weight", message("present value of 1"), "0.0000"),
        numbers("energy", message("energy price over the first"), "0.0000"),
        numbers("budget", budget.title, unit=budget.unit, name=budget.name),
    )

    def row(t: int) -> Sequence[Cell]:
        return (
            plain(t + 1),
            Cell(q.periods[t]),
            live("({no}-1)*question_years", t * q.years),
            live("(1+question_discount)^-{begins}", q.weight(t)),
            live("(1+N(question_energy_price_change))^{begins}", q.energy_level(t)),
            entry(budget, q.budget[t] if q.budget else None),
        )

    return grid("periods", message("Periods"), columns, n.periods, row)


def sites(n: Numbers) -> Tabular:
    """Return the limits of each site, where workloads may run, and its failure domains."""
    q, columns = n.question, equipment.sites(n.question.currency)
    domains = range(n.most_domains)
    may = message("may run: yes or no")
    more = (
        *(numbers(f"runs_{j}", w, unit=may, name="site_runs", width=14) for j, w in enumerate(n.workloads)),
        *(Column(f"domain_{d}", message("failure domain"), width=14) for d in domains),
        Column("domains", message("its domains")),
        numbers("kwh", message("one W over a period"), "0.0000", unit="kWh"),
        numbers("watt", message("one W over a period"), "0.0000", unit=q.currency),
    )
    runs = demand.Column("site_runs", message("may run: yes or no"), tables.RUNS)

    def one(d: int) -> str:
        """Return a formula for the d-th name of a comma-separated list, or for the site itself if there is no list."""
        part = f'TRIM(MID(SUBSTITUTE({{domain}},",",REPT(" ",200)),{200 * d + 1},200))'
        return f'IF({{domain}}="",{"{name}" if d == 0 else chr(34) * 2},{part})'

    def results(i: int) -> Iterator[Cell]:
        for work in q.workloads.values():
            given = bool(work.sites) and i < len(n.sites)
            yield entry(runs, (YES if n.sites[i] in work.sites else NO) if given and work.sites else None)
        if i >= len(n.sites):
            return
        k = n.sites[i]
        yield from (live(one(d), n.domain(i, d)) for d in domains)
        # Each name is enclosed in commas, so that FIND, which has no wildcards, matches whole names only.
        listed = '&","&'.join(['","', *(f"{{domain_{d}}}" for d in domains), '""'])
        yield live(listed, "," + "".join(f",{n.domain(i, d)}" for d in domains) + ",")
        yield live(f'{HOURS:g}/1000*question_years*IF({{pue}}="",question_pue,{{pue}})', q.energy(k))
        price = 'IF({energy_price}="",question_energy_price,{energy_price})'
        yield live(f"{{kwh}}*{price}", q.energy(k) * q.price_of_energy(k, 0))

    note = message(
        "May run: a workload with an empty column runs at all sites; otherwise it runs at the sites with yes in its "
        "column."
    )
    rows = [[_of_site(q, site, c.field) for c in columns] for site in q.sites.values()]

    def follow(i: int, field: str, cell: Cell) -> Cell:
        key = "power" if field == "power_w" else field
        return follows(n, cell, key, n.sites[i]) if i < len(n.sites) else cell

    return _inputs("sites", message("Sites"), columns, rows, more=more, results=results, follow=follow, notes=(note,))


def fleet(n: Numbers, say: Say) -> Tabular:
    """Return the servers in place at the start, and when they reach their age limit."""
    q = n.question
    rows = [[c.sku, c.site, c.count, c.age, None if c.arrives is None else q.periods[c.arrives]] for c in q.fleet]
    more = (
        numbers("limit", message("age limit"), unit=message("periods")),
        Column("gone", message("gone from"), unit=message("period")),
    )
    never, after = (say(text) for text in (message("never"), message("after the horizon")))

    def results(i: int) -> Iterator[Cell]:
        if i >= len(q.fleet):
            return
        cohort = q.fleet[i]
        limit = q.skus[cohort.sku].age_limit
        source = ref("skus", "age_limit", n.skus.index(cohort.sku))
        yield live(f'IF({source}="","",{source})', limit)
        leaves = None if limit is None else max(limit - cohort.age + (cohort.arrives or 0), 0)
        gone = never if leaves is None else q.periods[leaves] if leaves < n.periods else after
        first, listed = down("periods", "no"), down("periods", "name")
        age = f'({{age}}-IF({{arrives}}="",0,MATCH({{arrives}},{listed},0)-1))'
        inside = f"INDEX({listed},MAX({{limit}}-{age},0)+1)"
        later = f"IF({{limit}}-{age}>=MAX({first}),{literal(after)},{inside})"
        yield live(f'IF({{limit}}="",{literal(never)},{later})', gone)

    choices = {"sku": "sku_name", "site": "site_name"}
    return _inputs("fleet", message("Fleet"), tables.fleet(), rows, more=more, results=results, choices=choices)


def supply(n: Numbers) -> Tabular:
    """Return the maximum number of servers that can be ordered."""
    q = n.question
    rows = [[s.item, s.maximum, None if s.period is None else q.periods[s.period]] for s in q.supply]
    return _inputs("supply", message("Supply"), tables.supply(), rows)


# --- work per server -----------------------------------------------------------------------------------------------


def benchmarks(n: Numbers) -> Tabular:
    """Return the equivalence of each SKU with which the plan was solved.

    These cells are not editable, so that edits of Equivalence show.
    """
    value, se, df = (column.form for column in tables.worths()[2:5])
    columns = (
        Column("sku", message("SKU"), "name", name="planned_sku"),
        Column("workload", message("workload"), "name", name="planned_workload"),
        Column("unit", message("unit"), name="planned_unit"),
        numbers("value", message("E: what one server serves at full use"), value, name="planned_value"),
        numbers("se", message("standard error of ln E"), se, name="planned_se"),
        numbers("df", message("degrees of freedom"), df, name="planned_df"),
        Column("source", message("source"), width=60, name="planned_source"),
        numbers("utilisation", message("utilisation"), "0.0%", name="planned_utilisation"),
        Column("why", message("why this utilisation"), width=60, name="planned_why"),
    )

    def row(i: int) -> Sequence[Cell]:
        s, w = n.pairs_of_worth[i]
        worth = n.question.skus[s].worth[w]
        figures = (plain(None if math.isinf(x) else x) for x in (worth.value, worth.se, worth.df))
        unit, used = Cell(n.question.workloads[w].unit), plain(worth.utilisation)
        return (Cell(s), Cell(w), unit, *figures, Cell(worth.source), used, Cell(worth.reason))

    return grid("benchmarks", message("Benchmarks"), columns, len(n.pairs_of_worth), row)


def equivalence(n: Numbers, say: Say) -> Tabular:
    """Return how much of a workload one server of a SKU serves, with its interval, and whether that was edited."""
    q = n.question
    worths = [q.skus[s].worth[w] for s, w in n.pairs_of_worth]
    rows = [
        [s, w, e.value, e.se, None if math.isinf(e.df) else e.df, e.utilisation, e.hosts or None]
        for (s, w), e in zip(n.pairs_of_worth, worths, strict=True)
    ]
    as_planned, edited = (say(text) for text in (message("as planned"), message("edited")))
    more = (
        numbers("lo", message("lo"), "#,##0.0000", unit="95%", width=12),
        numbers("hi", message("hi"), "#,##0.0000", unit="95%", width=12),
        numbers("used", message("utilisation that counts"), "0.0%", unit=message("share of a server"), width=14),
        *resources.columns(n),
        Column("unit", message("unit"), width=16),
        Column("state", message("as planned"), rules=((f"{{state}}={literal(edited)}", "unsure"),), width=12),
        Column("source", message("source"), width=50),
        Column("why", message("why this utilisation"), width=50),
    )
    normal = f"NORMSINV({(1 + CONFIDENCE) / 2:g})"
    reach = f'IF({{df}}="",{normal},{t_quantile(f"{CONFIDENCE:g}", "{df}")})*{{se}}'

    def results(i: int) -> Iterator[Cell]:
        if i >= len(worths):
            return
        s, w = n.pairs_of_worth[i]
        work, estimate = n.workloads.index(w), worths[i].estimate
        yield live(f"{{value}}*EXP(-{reach})", estimate.lo)
        yield live(f"{{value}}*EXP({reach})", estimate.hi)
        yield from resources.used(n, s, w, ref("workloads", "utilisation", work))
        yield live(ref("workloads", "unit", work), q.workloads[w].unit)
        fields = ("value", "se", "df", "utilisation")
        alike = ",".join(f'{{{field}}}&""={ref("benchmarks", field, i)}&""' for field in fields)
        yield live(f"IF(AND({alike}),{literal(as_planned)},{literal(edited)})", as_planned)
        yield from (Cell(worths[i].source), Cell(worths[i].reason or q.workloads[w].reason))

    choices = {"sku": "sku_name", "workload": "workload_name"}
    title, columns = message("Equivalence"), tables.worths()
    return _inputs("worth", title, columns, rows, 2 * SPARE, more=more, results=results, choices=choices)


def utilisation(n: Numbers) -> Tabular:
    """Return the utilisation of servers for each workload, and the effect of a lost failure domain on it."""
    q = n.question
    rows = [
        (
            *(w.name, w.unit, w.utilisation, YES if w.dedicated else NO, w.availability),
            *(w.gpus or None, w.gpu_memory or None, w.pool, w.revenue or None),
        )
        for w in q.workloads.values()
    ]
    up_to = (("{up_to}=FALSE", "bad"), ("{up_to}=TRUE", "good"))
    more = (
        Column("counts", message("availability that counts"), width=14),
        numbers("planned", message("when planned"), "0.0%", unit=message("share of a server"), name="workload_planned"),
        Column("why", message("why"), width=60, name="workload_why"),
        numbers("up_to", message("up to {cap}", cap=f"{CAP:.0%}"), rules=up_to, width=10),
    )
    general = f'IF(question_survive="{NO}","{NORMAL}","{SURVIVES}")'

    def results(i: int) -> Iterator[Cell]:
        work = q.workloads[n.workloads[i]]
        yield live(f'IF({{availability}}="",{general},{{availability}})', q.availability(work.name))
        yield from (plain(work.utilisation), Cell(work.reason))
        yield live(f"{{utilisation}}<={CAP:g}", work.utilisation <= CAP)

    title, columns = message("Utilisation"), tables.workloads()
    return _inputs("workloads", title, columns, rows, 0, more=more, results=results)


def skus(n: Numbers) -> Tabular:
    """Return the prices, power and space of servers, and the cost of one server over all periods."""
    q, columns = n.question, equipment.skus(n.question.currency)
    yearly = message("{money} a year", money=q.currency)
    present = message("{money}, present value", money=q.currency)
    tco = [message("TCO of one unit: {workload}", workload=w) for w in n.workloads]
    more = (
        numbers("idle_year", message("energy and carbon, idle"), PRICE, unit=yearly, width=12),
        numbers("peak_year", message("energy and carbon, peak"), PRICE, unit=yearly, width=12),
        numbers("idle_life", message("one server over the horizon, idle"), PRICE, unit=present, width=16),
        numbers("peak_life", message("one server over the horizon, peak"), PRICE, unit=present, width=16),
        *(numbers(f"tco_{j}", title, PRICE, unit=q.currency, width=14) for j, title in enumerate(tco)),
    )
    watt = f"{HOURS:g}/1000*question_pue*(question_energy_price+question_carbon_price*question_grid/1000)"
    annuity = f"SUM({down('periods', 'weight')})*question_years"
    base = f"N({{price}})+question_carbon_price/1000*{{embodied}}+{annuity}*(N({{rent}})+{{support}}+{{space}})"

    def results(i: int) -> Iterator[Cell]:
        if i >= len(n.skus):
            return
        sku = q.skus[n.skus[i]]
        idle, peak = (watts * n.watt_year() for watts in (sku.idle_w, sku.peak_w))
        fixed = (
            (sku.price or 0.0) + q.carbon_price / 1000 * sku.embodied + n.annuity * (sku.rent + sku.support + sku.space)
        )
        yield from (live(f"{{idle_w}}*{watt}", idle), live(f"{{peak_w}}*{watt}", peak))
        yield live(f"{base}+{annuity}*{{idle_year}}", fixed + n.annuity * idle)
        yield live(f"{base}+{annuity}*{{peak_year}}", fixed + n.annuity * peak)
        for w in n.workloads:
            if w not in sku.worth:
                yield Cell(message("cannot run it"), tone="unsure")
                continue
            e, u = n.worth_cells(w, sku.name)
            used = q.utilisation(sku.name, w)
            value = (fixed + n.annuity * (idle + (peak - idle) * used)) / q.rate(sku.name, w)
            yield live(f"({{idle_life}}+({{peak_life}}-{{idle_life}})*{u})/({e}*{u})", value)

    note = message(
        "TCO: price, energy with its carbon at the PUE of Inputs and the first period's prices, support, space and "
        "embodied carbon over all periods, as present value. TCO of one unit: at the utilisation of the workload."
    )
    shown = [field for field in declared_fields(Sku) if field.declared.title]
    rows = [[sku.name, *(_of_sku(sku, field) for field in shown)] for sku in q.skus.values()]

    def follow(i: int, field: str, cell: Cell) -> Cell:
        return follows(n, cell, field, n.skus[i]) if field == "price" and i < len(n.skus) else cell

    title = message("SKU & TCO")
    return _inputs("skus", title, columns, rows, more=more, results=results, follow=follow, notes=(note,))
