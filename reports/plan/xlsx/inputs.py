"""The tabs that a planner edits: settings and periods, sites, fleet, SKUs, equivalence, utilisation, demand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from fleetmark.base.text import message
from fleetmark.demand import equipment, tables
from fleetmark.demand.columns import AMOUNT, LIQUID, NO, PRICE, YES, Column
from fleetmark.planner.capacity.question import HOURS, NORMAL, SURVIVES, Question, Site, Sku
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.planner.estimate import CONFIDENCE
from fleetmark.reports.kit.format import FIGURE_FORM
from fleetmark.reports.kit.workbook import Book, Head, Sheet, cell, t_quantile
from fleetmark.reports.plan.xlsx.layout import HEAD, Block, Places, headed, named
from fleetmark.reports.plan.xlsx.numbers import BAND, Numbers, quantile


def write(book: Book, at: Places, n: Numbers) -> None:
    """Write the input tabs."""
    _settings(book, at, n)
    _periods(book, at, n)
    _sites(book, at, n)
    _fleet(book, at, n)
    _supply(book, at, n)
    _equivalence(book, at, n)
    _utilisation(book, at, n)
    _demand(book, at, n)
    _skus(book, at, n)


# ---------------------------------------------------------------- parts of a table


def _cell(sheet: Sheet, row: int, col: int, column: Column, value: object) -> None:
    """Write an input cell with its validation."""
    rule = column.rule
    if value is None or value == "":
        sheet.number(row, col, None, column.form, "input")
    elif rule.text:
        sheet.text(row, col, value, "input")
    else:
        sheet.number(row, col, float(str(value)), column.form, "input")
    if rule.words:
        sheet.must_be_one_of(row, col, rule.words)
    elif not rule.text:
        least = math.nextafter(rule.minimum, math.inf) if rule.above else rule.minimum
        sheet.must_be_number(row, col, least, rule.maximum, rule.hint)


def _table(
    book: Book, block: Block, columns: Sequence[Column], rows: Sequence[Sequence[object]], more: Sequence[Head] = ()
) -> None:
    """Write a table of inputs with headings, names and a filter. ``more``: headings of the columns to its right."""
    sheet = block.sheet
    sheet.heads(block.row - 1, [*(Head(c.title, c.unit) for c in columns), *more], block.col)
    for i in range(block.rows):
        for j, column in enumerate(columns):
            _cell(sheet, block.row + i, block.col + j, column, rows[i][j] if i < len(rows) else None)
    for j, column in enumerate(columns):
        named(book, column.name, Block(sheet, block.row, block.col + j, block.rows))
    sheet.frozen(block.row, block.col + 1)
    sheet.inner.repeat_rows(block.row - 1)


def _one_of(block: Block, col: int, names: str) -> None:
    """Restrict the cells of a column to the names in a named range."""
    block.sheet.inner.data_validation(
        block.row,
        col,
        block.row + block.rows - 1,
        col,
        {"validate": "list", "source": f"={names}", "error_type": "warning"},
    )


def _listed(entries: Iterable[tuple[object, float]]) -> str:
    """Return entries as the text of a cell, such as ``1: 0.2, 2: 0.05``, with full precision."""
    return ", ".join(f"{key}: {value!r}" for key, value in entries)


def _entries(q: Question, field: str) -> object:
    """Return a setting of the question in the form of its cell."""
    if field == "currencies":
        return _listed(q.rates.items())
    return _listed(q.domains_w.items()) if field == "domain_power" else getattr(q, field)


def _of_site(q: Question, site: Site, field: str) -> object:
    """Return a field of a site in the form of its cell."""
    if field == "windows":
        return None if site.windows is None else ", ".join(q.periods[t] for t in sorted(site.windows))
    return getattr(site, field)


def _of_sku(sku: Sku, field: str) -> object:
    """Return a field of a SKU in the form of its cell."""
    shown: dict[str, object] = {
        "cooling": LIQUID if sku.liquid else None,
        "price_breaks": _listed(sku.breaks),
        "slips": _listed((n, share) for n, share in enumerate(sku.slips) if n and share),
        "lot": sku.lot if sku.lot > 1 else None,
        "racks": sku.racks or None,
        "residual": sku.residual or None,
    }
    return shown[field] if field in shown else getattr(sku, field)


# ---------------------------------------------------------------- tabs


def _settings(book: Book, at: Places, n: Numbers) -> None:
    q, sheet = n.question, at.settings.sheet
    sheet.heads(HEAD, [Head(message("setting")), Head(message("value"), width=14), Head(message("unit"))])
    row = HEAD + 1
    for label, value, name in (
        (message("currency"), q.currency, "question_currency"),
        (message("length of a period"), q.years, "question_years"),
    ):
        sheet.text(row, 0, label)
        if isinstance(value, str):
            sheet.text(row, 1, value, "value")
        else:
            sheet.number(row, 1, value, "General", "value")
            sheet.text(row, 2, message("years"))
        named(book, name, Block(sheet, row, 1, 1))
        row += 1
    for column in tables.settings(q.currency):
        sheet.text(row, 0, column.title)
        setting = _entries(q, column.field)
        _cell(sheet, row, 1, column, (YES if setting else NO) if isinstance(setting, bool) else setting)
        sheet.text(row, 2, column.unit)
        named(book, column.name, Block(sheet, row, 1, 1))
        row += 1
    sheet.frozen(HEAD + 1)


def _periods(book: Book, at: Places, n: Numbers) -> None:
    q, block = n.question, at.period
    (budget,) = tables.periods(q.currency)
    block.sheet.heads(
        HEAD,
        [
            Head(message("no.")),
            Head(message("period"), width=12),
            Head(message("begins"), message("years from the start")),
            Head(message("present value of 1")),
            Head(budget.title, budget.unit, 16),
        ],
        block.col,
    )
    for t, name in enumerate(q.periods):
        row = block.row + t
        block.sheet.number(row, block.col, t + 1, role="value")
        block.sheet.text(row, block.col + 1, name)
        block.sheet.formula(row, block.col + 2, f"=({block.near(t)}-1)*question_years", t * q.years, "0.00")
        power = f"=(1+question_discount)^-{block.near(t, 2)}"
        block.sheet.formula(row, block.col + 3, power, q.weight(t), "0.0000")
        _cell(block.sheet, row, block.col + 4, budget, q.budget[t] if q.budget else None)
    for j, name in ((1, "period_name"), (4, budget.name)):
        named(book, name, Block(block.sheet, block.row, block.col + j, block.rows))


def _sites(book: Book, at: Places, n: Numbers) -> None:
    q, sheet, block = n.question, at.site.sheet, at.site
    columns = equipment.sites(q.currency)
    rows = [[_of_site(q, site, c.field) for c in columns] for site in q.sites.values()]
    live = [
        *(Head(message("failure domain")) for _ in range(n.most_domains)),
        Head(message("its domains")),
        Head(message("one W over a period"), "kWh"),
        Head(message("one W over a period"), q.currency),
    ]
    runs = [Head(w, message("may run: yes or no"), 14) for w in n.workloads]
    _table(book, block, columns, rows, [*runs, *live])
    for j, work in enumerate(q.workloads.values()):
        for i in range(block.rows):
            allowed = None
            if work.sites and i < len(n.sites):
                allowed = YES if n.sites[i] in work.sites else NO
            _cell(sheet, block.row + i, at.runs.col + j, Column("runs", message(""), tables.RUNS), allowed)
    named(book, "site_runs", at.runs)
    name, domain, price, pue = (columns_at(columns, f) for f in ("name", "domain", "energy_price", "pue"))

    def one(i: int, d: int) -> str:
        """Return a formula for the d-th name of a comma-separated list, or the site itself if there is no list."""
        part = f'TRIM(MID(SUBSTITUTE({block.near(i, domain)},",",REPT(" ",200)),{200 * d + 1},200))'
        itself = block.near(i, name) if d == 0 else '""'
        return f'=IF({block.near(i, domain)}="",{itself},{part})'

    at.site_domain.live(one, n.lost, role="word")
    # Each name is between commas, so that FIND, which has no wildcards, matches whole names only.
    at.site_list.live(
        lambda i, _: "=" + '&","&'.join(['","', *(at.site_domain.near(i, d) for d in range(n.most_domains)), '""']),
        lambda i, _: "," + "".join(f",{n.lost(i, d)}" for d in range(n.most_domains)) + ",",
        role="word",
    )
    at.site_kwh.live(
        lambda i, _: f'={HOURS:g}/1000*question_years*IF({block.near(i, pue)}="",question_pue,{block.near(i, pue)})',
        lambda i, _: q.energy(n.sites[i]),
        "0.0000",
    )
    at.site_watt.live(
        lambda i, _: (
            f'={at.site_kwh.near(i)}*IF({block.near(i, price)}="",question_energy_price,{block.near(i, price)})'
        ),
        lambda i, _: q.energy(n.sites[i]) * q.price_of_energy(n.sites[i]),
        "0.0000",
    )
    sheet.text(
        HEAD - 2,
        0,
        message("May run: a workload whose column is all empty runs anywhere; else it runs where its column says yes."),
        "note",
    )


def columns_at(columns: Sequence[Column], field: str) -> int:
    """Return the index of a field among columns."""
    return next(j for j, c in enumerate(columns) if c.field == field)


def _fleet(book: Book, at: Places, n: Numbers) -> None:
    q, block = n.question, at.fleet
    columns = tables.fleet()
    rows = [[c.sku, c.site, c.count, c.age, None if c.arrives is None else q.periods[c.arrives]] for c in q.fleet]
    _table(
        book,
        block,
        columns,
        rows,
        [Head(message("age limit"), message("periods")), Head(message("gone from"), message("period"))],
    )
    _one_of(block, block.col, "sku_name")
    _one_of(block, block.col + 1, "site_name")
    numbers, names = at.period.down(0), at.period.down(1)
    for i, cohort in enumerate(q.fleet):
        limit = q.skus[cohort.sku].age_limit
        row = n.skus.index(cohort.sku)
        cells = at.sku.at(row, columns_at(equipment.skus(), "age_limit"))
        block.sheet.formula(block.row + i, 5, f'=IF({cells}="","",{cells})', limit)
        leaves = None if limit is None else max(limit - cohort.age + (cohort.arrives or 0), 0)
        gone = book.words(message("never")) if limit is None else None
        if leaves is not None:
            gone = q.periods[leaves] if leaves < n.periods else book.words(message("after the horizon"))
        e, order = cell(block.row + i, 5), block.near(i, 4)
        age = f'({block.near(i, 3)}-IF({order}="",0,MATCH({order},{names},0)-1))'
        never, after = (quoted(book.words(text)) for text in (message("never"), message("after the horizon")))
        block.sheet.formula(
            block.row + i,
            6,
            f'=IF({e}="",{never},IF({e}-{age}>=MAX({numbers}),{after},INDEX({names},MAX({e}-{age},0)+1)))',
            gone,
            role="word",
        )


def quoted(text: str) -> str:
    """Return a text as a literal in a formula."""
    return '"' + text.replace('"', '""') + '"'


def _supply(book: Book, at: Places, n: Numbers) -> None:
    q = n.question
    rows = [[s.item, s.maximum, None if s.period is None else q.periods[s.period]] for s in q.supply]
    _table(book, at.supply, tables.supply(), rows)


def _equivalence(book: Book, at: Places, n: Numbers) -> None:
    q, block = n.question, at.worth
    columns = tables.worths()
    worths = [q.skus[s].worth[w] for s, w in at.pairs_of_worth]
    rows = [
        [s, w, worth.value, worth.se, None if math.isinf(worth.df) else worth.df, worth.utilisation]
        for (s, w), worth in zip(at.pairs_of_worth, worths, strict=True)
    ]
    more = [
        Head(message("lo"), "95%", 12),
        Head(message("hi"), "95%", 12),
        Head(message("utilisation that counts"), message("share of a server"), 14),
        Head(message("unit"), "", 16),
        Head(message("as planned"), "", 12),
        Head(message("source"), "", 50),
        Head(message("why this utilisation"), "", 50),
    ]
    _table(book, block, columns, rows, more)
    _one_of(block, block.col, "sku_name")
    _one_of(block, block.col + 1, "workload_name")
    confidence = f"{CONFIDENCE:g}"
    normal = f"NORMSINV({(1 + CONFIDENCE) / 2:g})"

    def reach(i: int) -> str:
        df = block.near(i, 4)
        return f'IF({df}="",{normal},{t_quantile(confidence, df)})*{block.near(i, 3)}'

    estimates = [w.estimate for w in worths]
    at.worth_lo.live(lambda i, _: f"={block.near(i, 2)}*EXP(-{reach(i)})", lambda i, _: estimates[i].lo, "#,##0.0000")
    at.worth_hi.live(lambda i, _: f"={block.near(i, 2)}*EXP({reach(i)})", lambda i, _: estimates[i].hi, "#,##0.0000")

    def used(i: int, _: int) -> str:
        general = at.workload.at(n.workloads.index(at.pairs_of_worth[i][1]), 2)
        return f'=IF({block.near(i, 5)}="",{general},{block.near(i, 5)})'

    at.worth_used.live(used, lambda i, _: q.utilisation(*at.pairs_of_worth[i]), "0.0%")
    yes, no = (book.words(t) for t in (message("as planned"), message("edited")))
    for i, (s, w) in enumerate(at.pairs_of_worth):
        row = block.row + i
        unit = at.workload.at(n.workloads.index(w), 1)
        block.sheet.formula(row, 9, f"={unit}", q.workloads[w].unit, role="word")
        planned = {2: 3, 3: 4, 4: 5, 5: 7}  # columns here to columns of Benchmarks
        same = ",".join(f'{block.near(i, j)}&""={at.benchmarks.at(i, c)}&""' for j, c in planned.items())
        block.sheet.formula(row, 10, f"=IF(AND({same}),{quoted(yes)},{quoted(no)})", yes)
        block.sheet.text(row, 11, q.skus[s].worth[w].source)
        block.sheet.text(row, 12, q.skus[s].worth[w].why or q.workloads[w].why)
    block.sheet.paint(f"K{block.row + 1}:K{block.row + block.rows}", {no: "differs"})


def _utilisation(book: Book, at: Places, n: Numbers) -> None:
    q, block, sheet = n.question, at.workload, at.workload.sheet
    columns = tables.workloads()
    rows = [
        [
            w.name,
            w.unit,
            w.utilisation,
            YES if w.dedicated else NO,
            w.availability,
            w.gpus or None,
            w.gpu_memory or None,
            w.pool,
        ]
        for w in q.workloads.values()
    ]
    more = [
        Head(message("availability that counts"), "", 14),
        Head(message("when planned"), message("share of a server"), 14),
        Head(message("why"), "", 60),
        Head(message("up to {cap}", cap=f"{CAP:.0%}"), "", 10),
    ]
    _table(book, block, columns, rows, more)
    for i, work in enumerate(q.workloads.values()):
        row = block.row + i
        general = f'IF(question_survive="{YES}","{SURVIVES}","{NORMAL}")'
        own = block.near(i, 4)
        sheet.formula(row, 8, f'=IF({own}="",{general},{own})', q.availability(work.name), role="word")
        sheet.number(row, 9, work.utilisation, "0.0%", "value")
        sheet.text(row, 10, work.why)
        sheet.formula(row, 11, f"={block.near(i, 2)}<={CAP:g}", work.utilisation <= CAP)
    sheet.paint(f"L{block.row + 1}:L{block.row + block.rows}", {True: "ok", False: "bad"})
    named(book, "workload_planned", Block(sheet, block.row, 9, block.rows))
    named(book, "workload_why", Block(sheet, block.row, 10, block.rows))


def _demand(book: Book, at: Places, n: Numbers) -> None:
    q = n.question
    sheet = at.median.sheet
    labels = [Head(message("workload"), width=22), Head(message("unit"), width=20)]

    def block(place: Block, title: str, prefix: str = "") -> None:
        headed(place, title, labels, n)
        for i, work in enumerate(q.workloads.values()):
            sheet.text(place.row + i, 0, work.name, "strong")
            sheet.text(place.row + i, 1, prefix or work.unit)

    for place, column, values in ((at.median, tables.MEDIAN, n.point), (at.sigma, tables.SIGMA, n.sigma)):
        block(place, column.title, "1" if column is tables.SIGMA else "")
        for i in range(place.rows):
            for t in range(place.cols):
                _cell(sheet, place.row + i, place.col + t, column, values[i, t] if i < len(values) else None)
        named(book, column.name, place)
        named(book, f"{column.name}_of", Block(sheet, place.row, 0, place.rows))

    def spread(place: Block, share: str, at_share: float, title: str) -> None:
        block(place, title)
        place.live(
            lambda i, t: f"={at.median.near(i, t)}*EXP(NORMSINV({share})*{at.sigma.near(i, t)})",
            lambda i, t: quantile(n.point[i, t], n.sigma[i, t], at_share),
            AMOUNT,
        )

    spread(at.low, f"{BAND[0]:g}", BAND[0], message("demand at 5%"))
    spread(at.high, f"{BAND[1]:g}", BAND[1], message("demand at 95%"))
    spread(
        at.quantile, "question_quantile", q.quantile, message("demand at the share of futures in which it must be met")
    )
    block(
        at.margin, message("margin: what the solver multiplied the median by, for demand and equivalence together"), "1"
    )
    at.margin.numbers(n.margin, "0.0000", "solver")
    block(at.planned, message("planned demand: median times margin; the plan must meet it"))
    at.planned.live(lambda i, t: f"={at.median.near(i, t)}*{at.margin.near(i, t)}", n.planned, FIGURE_FORM)
    work_of = at.combo.down(3)
    block(at.done, message("work done, all sites up"))
    at.done.live(
        lambda i, t: f"=SUMPRODUCT(({work_of}={i + 1})*{at.combo.down(6)}*{at.working.down(t)}*{at.pool.down(t)})",
        lambda i, t: n.done(i)[t],
        FIGURE_FORM,
    )
    block(at.delivered, message("capacity, all sites up"))
    at.delivered.live(
        lambda i, t: f"=SUMIFS({at.capacity.down(t)},{work_of},{i + 1})",
        lambda i, t: n.delivered(i)[t],
        FIGURE_FORM,
    )
    block(at.counted, message("capacity"))
    losses = len(n.sites) * n.most_domains
    counted = np.array([n.counted(i) for i in range(len(n.workloads))])

    def counts(i: int, t: int) -> str:
        least = f"MIN({at.left.down(t, i * losses, (i + 1) * losses - 1)})"
        return f'=IF({at.available.at(i)}="{SURVIVES}",{least},{at.delivered.near(i, t)})'

    at.counted.live(counts, counted, FIGURE_FORM)
    sheet.frozen(3, 2)


def _skus(book: Book, at: Places, n: Numbers) -> None:
    q, block, sheet = n.question, at.sku, at.sku.sheet
    columns = equipment.skus(q.currency)
    more = [
        Head(message("energy and carbon, idle"), message("{money} a year", money=q.currency), 12),
        Head(message("energy and carbon, peak"), message("{money} a year", money=q.currency), 12),
        Head(message("one server over the horizon, idle"), message("{money}, present value", money=q.currency), 16),
        Head(message("one server over the horizon, peak"), message("{money}, present value", money=q.currency), 16),
        *(Head(message("TCO of one unit: {workload}", workload=w), q.currency, 14) for w in n.workloads),
    ]
    _table(book, block, columns, [[_of_sku(sku, c.field) for c in columns] for sku in q.skus.values()], more)
    sheet.text(
        HEAD - 2,
        0,
        message(
            "TCO: price, energy with its carbon at the prices and PUE of Inputs, support, space and embodied carbon "
            "over all periods, as present value. TCO of one unit: at the utilisation of the workload."
        ),
        "note",
    )
    f = {c.field: columns_at(columns, c.field) for c in columns}
    watt = f"{HOURS:g}/1000*question_pue*(question_energy_price+question_carbon_price*question_grid/1000)"
    annuity = f"SUM({at.period.down(3)})*question_years"
    first = len(columns)
    for i, sku in enumerate(q.skus.values()):
        row = block.row + i
        energy = [sku.idle_w * n.watt_year(), sku.peak_w * n.watt_year()]
        fixed = (sku.price or 0.0) + q.carbon_price / 1000 * sku.embodied + n.annuity * (sku.support + sku.space)
        base = (
            f"N({block.near(i, f['price'])})+question_carbon_price/1000*{block.near(i, f['embodied'])}"
            f"+{annuity}*({block.near(i, f['support'])}+{block.near(i, f['space'])})"
        )
        for j, field in enumerate(("idle_w", "peak_w")):
            sheet.formula(row, first + j, f"={block.near(i, f[field])}*{watt}", energy[j], PRICE)
            sheet.formula(
                row,
                first + 2 + j,
                f"={base}+{annuity}*{cell(row, first + j)}",
                fixed + n.annuity * energy[j],
                PRICE,
            )
        for j, work in enumerate(q.workloads.values()):
            if work.name not in sku.worth:
                sheet.text(row, first + 4 + j, message("cannot run it"), "note")
                continue
            place, used = at.worth_row(sku.name, work.name), q.utilisation(sku.name, work.name)
            u, e = at.worth_used.at(place), at.worth.at(place, 2)
            idle, peak = cell(row, first + 2), cell(row, first + 3)
            value = fixed + n.annuity * (energy[0] + (energy[1] - energy[0]) * used)
            sheet.formula(
                row,
                first + 4 + j,
                f"=({idle}+({peak}-{idle})*{u})/({e}*{u})",
                value / q.rate(sku.name, work.name),
                PRICE,
            )
