"""Build the table of checks: formulas for the slack of every limit of the plan, and whether the limit is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fleetmark.base.text import Message, joined, message
from fleetmark.demand.columns import NO, YES
from fleetmark.planner.capacity.question import SURVIVES, Case
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.planner.capacity.series import Series, figures, in_period
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.kit.workbook import literal
from fleetmark.reports.plan.workbook.cells import across, down, grid, live, numbers, periods, ref
from fleetmark.reports.plan.workbook.limits import limit_cell, losses
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers

TOLERANCE = 1e-6  # rounding tolerance of the solver, relative to the limit, or to 1 for smaller limits
_DIGITS = 6
_SLACK = "#,##0.####;[Red]-#,##0.####;0"

Slack = tuple[str, float | None]  # a formula and its value
Formula = Callable[[int], str]  # maps a period to its formula
Value = Callable[[int], float | None]


@dataclass(frozen=True, slots=True)
class Check:
    """A limit.

    ``kind``: the kind of limit. ``subject``: what it applies to. ``unit``: the unit of ``slack``, which is one cell or
    one cell per period. ``size``: the size of the limit, for the tolerance.
    """

    kind: Message
    subject: str
    unit: Message | str
    slack: Sequence[Slack]
    size: Slack = ("1", 1.0)

    @property
    def least(self) -> float | None:
        """Return the smallest slack of all periods; None if there is no limit."""
        return min((value for _, value in self.slack if value is not None), default=None)

    @property
    def is_kept(self) -> bool:
        """Return whether the limit is kept."""
        return (self.least or 0.0) >= -TOLERANCE * max(1.0, self.size[1] or 0.0)


def table(n: Numbers, checks: Callable[[], Sequence[Check]]) -> Tabular:
    """Return the table of the tab Checks. ``checks`` is called when the table is read."""
    kept: tuple[tuple[str, str], ...] = (("{kept}=FALSE", "bad"), ("{kept}=TRUE", "good"))
    columns = (
        Column("kind", message("limit"), "name", width=44),
        Column("subject", message("of"), "name", width=34),
        Column("unit", message("unit"), width=16),
        numbers("kept", message("kept"), rules=kept, width=9),
        numbers("least", message("least slack"), _SLACK, width=14),
        numbers("size", message("size of the limit"), "#,##0.##", width=14),
        *periods(n, _SLACK),
    )

    def row(i: int) -> Sequence[Cell]:
        check = checks()[i]
        slacks = [live(formula, value) for formula, value in check.slack]
        span = f"{{p0}}:{{p{len(slacks) - 1}}}"
        size, scale = check.size
        return (
            Cell(check.kind),
            Cell(check.subject),
            Cell(check.unit),
            live("N({least})>=-checks_tolerance*MAX(1,{size})", check.is_kept),
            live(f'IF(COUNT({span})=0,"",MIN({span}))', check.least),
            live(f"N({size})", scale or 0.0),
            *slacks,
            *[Cell()] * (n.periods - len(slacks)),
        )

    note = message("Slack: by how much a limit is kept; below 0 it is broken; empty: there is no limit.")
    return grid("checks", message("Checks"), columns, lambda: len(checks()), row, notes=(note,))


def every(n: Numbers) -> Iterator[Check]:
    """Yield every limit of the plan."""
    for i in range(len(n.workloads)):
        yield _demand(n, i)
        for line, (j, places) in enumerate(losses(n)):
            if j == i:
                yield _survival(n, i, line, n.lost(places))
    for i in range(len(n.workloads)):
        yield _allowed(n, i)
        yield _as_solved(n, i)
    yield _failures_as_solved(n)
    yield from _of_allocation(n)
    yield from _of_sites(n)
    yield from _of_domains(n)
    yield from _of_supply(n)
    yield _budget(n)
    yield _carbon(n)
    yield from _carbon_by_year(n)
    for p in range(len(n.pairs)):
        yield from _of_pair(n, p)
    yield from _of_inputs(n)


def _row(n: Numbers, slack: Formula, value: Value, unless: Formula | None = None) -> list[Slack]:
    """Return a cell with the rounded slack per period, or an empty cell if the formula ``unless`` is true.

    Rounding removes the numerical noise of a difference between large numbers.
    """
    cells: list[Slack] = []
    for t in range(n.periods):
        result, formula = value(t), f"ROUND({slack(t)},{_DIGITS})"
        cells.append(
            (
                f'IF({unless(t)},"",{formula})' if unless else formula,
                None if result is None else round(result, _DIGITS) + 0.0,
            )
        )
    return cells


def _size(n: Numbers, i: int) -> Slack:
    """Return the largest planned demand of a workload."""
    return f"MAX({across('planned', i, n.periods - 1)})", float(n.planned[i].max())


def _demand(n: Numbers, i: int) -> Check:
    slack = n.done(i) - n.planned[i]
    cells = _row(n, lambda t: f"{ref('done', t, i)}-{ref('planned', t, i)}", lambda t: float(slack[t]))
    work = n.question.workloads[n.workloads[i]]
    return Check(message("demand is met"), work.name, work.unit, cells, _size(n, i))


def _survival(n: Numbers, i: int, line: int, lost: Case) -> Check:
    slack = n.delivered(i, lost) - n.planned[i]
    lasts = bool(lost) and n.question.survives(n.workloads[i])
    cells = _row(
        n,
        lambda t: ref("above", t, line),
        lambda t: float(slack[t]) if lasts else None,
        lambda t: f'OR({ref("above", t, line)}="",{ref("workloads", "counts", i)}<>"{SURVIVES}")',
    )
    work = n.question.workloads[n.workloads[i]]
    subject = joined([work.name, *dict.fromkeys(n.sites[k] for k, _ in losses(n)[line][1])])
    return Check(message("demand is met with a domain gone"), subject, work.unit, cells, _size(n, i))


def _allowed(n: Numbers, i: int) -> Check:
    work = n.question.workloads[n.workloads[i]]
    mine = [(c, n.pairs[p][1]) for c, (w, p) in enumerate(n.combos) if w == work.name]
    wrong = [c for c, site in mine if work.sites and site not in work.sites]
    cells = _row(
        n,
        lambda t: (
            f"-SUMIFS({down('allocation', f'share_{t}')},{down('allocation', 'workload_no')},{i + 1},"
            f"{down('allocation', 'may')},0)"
        ),
        lambda t: -float(n.share[wrong, t].sum()),
    )
    return Check(message("runs only where it may"), work.name, message("share of a server"), cells)


def _as_solved(n: Numbers, i: int) -> Check:
    """Check that a workload still uses the pool for which the plan was solved."""
    name, pool = n.workloads[i], n.question.pool(n.workloads[i])
    dedicated, other = ref("workloads", "dedicated", i), ref("workloads", "pool", i)
    now = f'IF({dedicated}="{YES}",{ref("workloads", "name", i)},{other}&"")'
    slack = f'IF(OR({now}="",EXACT({now},{literal(pool)})),0,-1)'
    return Check(message("shares servers as solved"), name, message("1 or 0"), [(slack, 0.0)])


def _failures_as_solved(n: Numbers) -> Check:
    """Check that the plan was solved for as many simultaneous failure domain losses as the inputs ask for."""
    failures = f'IF(question_survive="{YES}",1,IF(question_survive="{NO}",0,VALUE(question_survive)))'
    slack = f"MIN(0,{max(n.question.survive, 1)}-{failures})"
    return Check(
        message("failures at once as solved"), message("all workloads"), message("failure domains"), [(slack, 0.0)]
    )


def _of_allocation(n: Numbers) -> Iterator[Check]:
    """Yield the checks of server shares and of dedicated pools."""
    if not n.combos:
        return
    subject, unit = message("shares in Allocation"), message("share of a server")
    fewer = _row(
        n,
        lambda t: f"SUMPRODUCT(MIN({down('allocation', f'share_{t}')}-{down('allocation', f'working_{t}')}))",
        lambda t: float((n.share[:, t] - n.share_working[:, t]).min()),
    )
    yield Check(message("no more work than are there for it"), subject, unit, fewer)
    slack = _row(n, lambda t: f"MIN({down('allocation', f'share_{t}')})", lambda t: float(n.share[:, t].min()))
    yield Check(message("not below 0"), subject, unit, slack)
    for j, (name, p) in enumerate(n.dedicated_pools):
        cells = [ref("pools", t, j) for t in range(n.periods)]
        servers = n.pooled[name][p]
        slack = _row(
            n,
            lambda t, cells=cells: f"MIN({cells[t]},-ABS({cells[t]}-ROUND({cells[t]},0)))",  # type: ignore[misc]
            lambda t, servers=servers: min(0.0, float(servers[t])),  # type: ignore[misc]
        )
        yield Check(message("whole servers, none below 0"), joined([name, *n.pairs[p]]), message("servers"), slack)
        mine = [c for c, pool_no in enumerate(n.own_of) if pool_no == j]
        yield _shared(n, joined([name, *n.pairs[p]]), mine, "pool_no", j + 1)


def _shared(n: Numbers, subject: str, mine: Sequence[int], col: str, number: int) -> Check:
    """Check that the shares of a pool's servers add up to at most 1.

    ``number``: the value that the pool's rows of the tab Allocation have in the column ``col``.
    """
    stays = np.array([not n.question.yields(n.combos[c][0]) for c in mine], dtype=bool)
    common = f",{down('allocation', 'pool_no')},0" if col != "pool_no" else ""
    rows = f"{down('allocation', col)},{number}{common}"
    used = np.maximum(n.share_working[mine].sum(axis=0), n.share[mine][stays].sum(axis=0))
    cells = _row(
        n,
        lambda t: (
            f"1-MAX(SUMIFS({down('allocation', f'runs_{t}')},{rows}),"
            f"SUMIFS({down('allocation', f'share_{t}')},{rows},{down('allocation', 'stays')},1))"
        ),
        lambda t: float(1 - used[t]),
    )
    return Check(message("no server is used twice"), subject, message("share of a server"), cells)


def _of_sites(n: Numbers) -> Iterator[Check]:
    q = n.question
    racks, liquid = n.racks(liquid=False), n.racks(liquid=True)
    for k, site in enumerate(q.sites.values()):
        yield _limit(n, "power", k, message("power of the site"), "W", site.power_w, n.budgeted_w)
        yield _limit(n, "units", k, message("rack units of the site"), "U", site.rack_units, n.rack_units)
        yield _limit(n, "ports", k, message("ports of the site"), message("ports"), site.ports, n.ports)
        yield _limit(n, "racks", k, message("positions for racks"), message("positions"), site.racks, racks)
        cooled = site.liquid_racks
        yield _limit(n, "liquid", k, message("liquid-cooled positions"), message("positions"), cooled, liquid)
        yield _limit(n, "spent", k, message("money for purchases at the site"), q.currency, site.budget, n.spent)


def _limit(
    n: Numbers, block: str, k: int, kind: Message, unit: Message | str, limit: Series | None, used: Floats
) -> Check:
    head = ref(block, "limit", k)

    def slack(t: int) -> float | None:
        size = in_period(limit, t)
        return None if size is None else size - float(used[k, t])

    cells = _row(
        n,
        lambda t: f"{limit_cell(n, block, k, t)}-{ref(block, t, k)}",
        slack,
        lambda t: f'{limit_cell(n, block, k, t)}=""',
    )
    return Check(kind, n.sites[k], unit, cells, (head, None if limit is None else max(figures(limit))))


def _of_domains(n: Numbers) -> Iterator[Check]:
    """Yield the checks of the power of rows and feeds, against the planned limits."""
    for name, limit_w in n.question.domains_w.items():
        here = [k for k, site in enumerate(n.sites) if name in n.question.domains(site)]
        drawn = n.domain_w(name)

        def slack(t: int, limit_w: float = limit_w, here: Sequence[int] = here) -> str:
            return f"{limit_w!r}-({'+'.join(ref('power', t, k) for k in here) or '0'})"

        cells = _row(n, slack, lambda t, limit_w=limit_w, drawn=drawn: float(limit_w - drawn[t]))  # type: ignore[misc]
        yield Check(message("power of the row or feed"), name, "W", cells, (repr(limit_w), limit_w))


def _of_supply(n: Numbers) -> Iterator[Check]:
    """Yield the checks that the supply covers the orders."""
    for j, supply in enumerate(n.question.supply):
        skus, ordered = n.question.supplied(supply), n.supplied(supply)
        mine = [p for p, (s, _) in enumerate(n.pairs) if s in skus]

        def slack(t: int, j: int = j, mine: Sequence[int] = mine) -> str:
            return f"{ref('supply', 'maximum', j)}-({'+'.join(ref('buy', t, p) for p in mine) or '0'})"

        def unless(t: int, j: int = j) -> str:
            period = ref("supply", "period", j)
            return f'AND({period}<>"",{period}&""<>{ref("periods", "name", t)}&"")'

        values = [float(supply.maximum - ordered[t]) if supply.period in (None, t) else None for t in range(n.periods)]
        cells = _row(n, slack, values.__getitem__, unless)
        yield Check(message("available"), supply.item, message("servers"), cells)


def _budget(n: Numbers) -> Check:
    budget = list(n.question.budget) or [None] * n.periods
    spent = n.kinds["purchase"]

    def slack(t: int) -> float | None:
        limit = budget[t]
        return None if limit is None else limit - float(spent[t])

    cells = _row(
        n,
        lambda t: f"{ref('periods', 'budget', t)}-{ref('kinds', t)}",
        slack,
        lambda t: ref("periods", "budget", t) + '=""',
    )
    size = (f"MAX({down('periods', 'budget')})", max((b for b in budget if b is not None), default=0.0))
    return Check(message("money for purchases in the period"), message("all sites"), n.question.currency, cells, size)


def _carbon(n: Numbers) -> Check:
    limit = n.question.carbon_limit
    emitted = ref("emitted", "total")
    slack = f'IF(question_carbon_limit="","",question_carbon_limit-{emitted})'
    size = ("question_carbon_limit", limit)
    return Check(
        message("carbon over all periods"),
        message("all sites"),
        "kg CO2e",
        [(slack, None if limit is None else limit - n.carbon)],
        size,
    )


def _carbon_by_year(n: Numbers) -> Iterator[Check]:
    """Yield the checks of each year's carbon, against the limits listed in one cell."""
    emitted = n.embodied + n.question.grid * n.kwh
    for year in n.year_names:
        mine = [t for t, name in enumerate(n.question.year_names) if name == year]
        limit = n.question.carbon_by_year.get(year)
        listed = '","&SUBSTITUTE(question_carbon_by_year&""," ","")&","'
        rest = f'MID({listed},FIND(",{year}:",{listed})+{len(year) + 2},99)'
        written = (
            f'IF(ISNUMBER(question_carbon_by_year),question_carbon_by_year,VALUE(LEFT({rest},FIND(",",{rest})-1)))'
        )
        total = "+".join(ref("emitted", t) for t in mine)
        slack = f'IF(ISERROR({written}),"",{written}-({total}))'
        value = None if limit is None else limit - float(emitted[mine].sum())
        size = (f"IF(ISERROR({written}),0,{written})", limit)
        yield Check(message("carbon of {year}", year=year), message("all sites"), "kg CO2e", [(slack, value)], size)


def _of_pair(n: Numbers, p: int) -> Iterator[Check]:
    s, k = n.pairs[p]
    sku, site = n.question.skus[s], n.question.sites[k]
    subject, servers = joined([s, k]), message("servers")
    spares, spare_share, least, unavailable = (
        ref("figures", name, p) for name in ("spares", "spare_share", "minimum_order", "unavailable")
    )
    price = ref("skus", "price", n.skus.index(s))
    lot = ref("skus", "lot", n.skus.index(s))
    windows = ref("sites", "windows", n.sites.index(k))
    listed = f'","&SUBSTITUTE({windows}&"",", ",",")&","'
    buy, active, installed = n.buy[p], n.active[p], n.installed[p]
    late = np.cumsum(n.retire[p]) - n.must_leave[p]

    def idle(t: int) -> str:
        servers_there = ref("installed", t, p)
        maintained = n.series_cell("maintenance", k, t) or ref("sites", "maintenance", n.sites.index(k))
        share = f"{servers_there}*({spare_share}+N({maintained}))+{spares}"
        failed = f"IF({unavailable}>0,CRITBINOM({servers_there},{unavailable},question_quantile),0)"
        return f"{servers_there}-{ref('active', t, p)}-IF({ref('active', t, p)}>0,{share}+{failed},0)"

    def integer_slack(t: int) -> str:
        cells = [ref(table, t, p) for table in ("buy", "retire", "active")]
        return f"MIN({','.join([ref('installed', t, p), *cells, *(f'-ABS({c}-ROUND({c},0))' for c in cells)])})"

    def least_count(t: int) -> float:
        counts = [float(a[p, t]) for a in (n.buy, n.retire, n.active)]
        return min(float(installed[t]), *counts, *(-abs(c - round(c)) for c in counts))

    rows: Sequence[tuple[Message, Formula, Value, Formula | None]] = (
        (
            message("active servers are up, apart from spares and maintenance"),
            idle,
            lambda t: float(
                installed[t] - active[t] - (n.question.reserved(s, k, t, installed[t]) if active[t] > 0 else 0)
            ),
            None,
        ),
        (
            message("gone at the age limit"),
            lambda t: f"{ref('have_left', t, p)}-{ref('must_leave', t, p)}",
            lambda t: float(late[t]),
            None,
        ),
        (
            message("retired after their term"),
            lambda t: f"{ref('may_leave', t, p)}-{ref('have_left', t, p)}",
            lambda t: None if not sku.term else float(n.may_leave[p, t] - np.cumsum(n.retire[p])[t]),
            lambda t: f"{ref('figures', 'term', p)}=0",
        ),
        (
            message("orders are of the minimum at least"),
            lambda t: f"{ref('buy', t, p)}-{least}",
            lambda t: float(buy[t] - sku.minimum_order) if buy[t] else None,
            lambda t: f"{ref('buy', t, p)}=0",
        ),
        (
            message("ordered only while sold"),
            lambda t: f"-{ref('buy', t, p)}",
            lambda t: None if sku.sold_in(t) else -float(buy[t]),
            lambda t: f"ISNUMBER({n.series_cell('price', s, t) or price})",
        ),
        (
            message("orders are of whole lots"),
            lambda t: f"-MOD({ref('buy', t, p)},MAX(N({lot}),1))",
            lambda t: -float(buy[t] % sku.lot),
            None,
        ),
        (
            message("retired in the site's windows"),
            lambda t: f"-{ref('retire', t, p)}",
            lambda t: None if site.windows is None or t in site.windows else -float(n.retire[p, t]),
            lambda t: f'OR({windows}="",ISNUMBER(FIND(","&{ref("periods", "name", t)}&",",{listed})))',
        ),
        (message("whole servers, none below 0"), integer_slack, least_count, None),
    )
    for kind, formula, value, unless in rows:
        yield Check(kind, subject, servers, _row(n, formula, value, unless))
    mine = [c for c, (_, pair) in enumerate(n.combos) if pair == p and n.own_of[c] is None]
    if mine:
        yield _shared(n, subject, mine, "pair_no", p + 1)
    if n.dedicated_pools:
        rest = f"SUMIFS({{}},{down('pools', 'pair_no')},{p + 1})"
        fit = _row(
            n, lambda t: f"{ref('active', t, p)}-{rest.format(down('pools', t))}", lambda t: float(n.common[p, t])
        )
        yield Check(message("servers of pools are active"), subject, servers, fit)


def _of_inputs(n: Numbers) -> Iterator[Check]:
    q = n.question
    for i, (s, w) in enumerate(n.pairs_of_worth):
        slack = (f"{CAP:g}-{ref('worth', 'used', i)}", CAP - q.utilisation(s, w))
        text = message("utilisation at most {cap}", cap=f"{CAP:.0%}")
        yield Check(text, joined([w, s]), message("share of a server"), [slack])
    start = down("figures", "start")
    missing = float(n.start.sum() - sum(c.count for c in q.fleet if not c.ordered))
    cells = [(f'SUM({start})-SUMPRODUCT((fleet_arrives="")*fleet_count)', missing)]
    yield Check(message("all servers in place are in the plan"), message("Fleet"), message("servers"), cells)
