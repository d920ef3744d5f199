"""The tab Checks: formulas for the slack of every limit of the plan, and whether the limit is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fleetmark.base.text import Message, joined, message
from fleetmark.demand import equipment, tables
from fleetmark.demand.columns import YES
from fleetmark.planner.capacity.question import SURVIVES
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.reports.kit.workbook import Head, cell
from fleetmark.reports.plan.xlsx.inputs import columns_at, quoted
from fleetmark.reports.plan.xlsx.layout import Block, Places, period_heads, right_aligned
from fleetmark.reports.plan.xlsx.numbers import Floats, Numbers
from fleetmark.reports.plan.xlsx.plan import figure, pairs_of_pools

TOLERANCE = 1e-6  # rounding of the solver, as a share of the limit, or of 1 if the limit is less
_DIGITS = 6
_FIRST = 8  # the row of the first check
_SLACK = "#,##0.####;[Red]-#,##0.####;0"

Cell = tuple[str, float | None]  # a formula and its value
Formula = Callable[[int], str]  # period to formula
Value = Callable[[int], float | None]


@dataclass(frozen=True, slots=True)
class Check:
    """A limit: its ``kind``, ``what`` it applies to, the ``unit`` of its ``slack`` (one cell, or one per period), and
    the ``size`` of the limit, for the tolerance.
    """

    kind: Message
    what: str
    unit: Message | str
    slack: Sequence[Cell]
    size: Cell = ("1", 1.0)


def write(at: Places, n: Numbers) -> int:
    """Write the tab. Return the number of limits that are not kept."""
    sheet = at.verdict.sheet
    checks = list(_checks(at, n))
    heads = [
        Head(message("limit"), width=44),
        Head(message("of"), width=34),
        Head(message("unit"), width=16),
        Head(message("kept"), width=9),
        Head(message("least slack"), width=14),
        Head(message("size of the limit"), width=14),
    ]
    periods = period_heads(n)
    sheet.heads(_FIRST - 1, [*heads, *periods])
    right_aligned(sheet, _FIRST - 1, 4, [*heads[4:], *periods])
    last = _FIRST + len(checks) - 1
    broken = 0
    for row, check in enumerate(checks, _FIRST):
        sheet.text(row, 0, check.kind, "strong")
        sheet.text(row, 1, check.what)
        sheet.text(row, 2, check.unit)
        span = f"{cell(row, 6)}:{cell(row, 5 + len(check.slack))}"
        slacks = [v for _, v in check.slack if v is not None]
        least = min(slacks) if slacks else None
        size, scale = check.size
        limit = max(1.0, scale or 0.0)
        holds = (least or 0.0) >= -TOLERANCE * limit
        broken += not holds
        sheet.formula(row, 3, f"=N({cell(row, 4)})>=-{at.tolerance.at(0)}*MAX(1,{cell(row, 5)})", holds)
        sheet.formula(row, 4, f'=IF(COUNT({span})=0,"",MIN({span}))', least, _SLACK)
        sheet.formula(row, 5, f"=N({size})", scale or 0.0, "#,##0.##")
        for t, (formula, value) in enumerate(check.slack):
            sheet.formula(row, 6 + t, f"={formula}", value, _SLACK)
    holds_column = f"D{_FIRST + 1}:D{last + 1}"
    sheet.text(2, 0, message("all limits are kept"), "strong")
    sheet.formula(2, 3, f"=AND({holds_column})", broken == 0)
    sheet.text(3, 0, message("limits that are not kept"))
    sheet.formula(3, 3, f"=COUNTIF({holds_column},FALSE)", broken, "0")
    sheet.text(4, 0, message("tolerance: share of the limit, of 1 where it is less"))
    sheet.number(4, 3, TOLERANCE, "0.0E+00", "input")
    sheet.text(
        5, 0, message("Slack: by how much a limit is kept; below 0 it is broken; empty: there is no limit."), "note"
    )
    for where in ("D3", holds_column):
        sheet.paint(where, {True: "ok", False: "bad"})
    sheet.filtered(_FIRST - 1, last, 6 + n.periods, frozen_columns=4)
    return broken


def _checks(at: Places, n: Numbers) -> Iterator[Check]:
    for i in range(len(n.workloads)):
        yield _demand(at, n, i)
        for line, (j, k, d) in enumerate(at.losses):
            if j == i:
                yield _survival(at, n, i, line, n.lost(k, d))
    for i in range(len(n.workloads)):
        yield _allowed(at, n, i)
        yield _as_solved(at, n, i)
    yield from _of_allocation(at, n)
    yield from _of_sites(at, n)
    yield from _of_domains(at, n)
    yield from _of_supply(at, n)
    yield _budget(at, n)
    for p in range(len(n.pairs)):
        yield from _of_pair(at, n, p)
    yield from _of_inputs(at, n)


def _row(n: Numbers, slack: Formula, value: Value, unless: Formula | None = None) -> list[Cell]:
    """Return a cell with the rounded slack per period, or an empty cell if the formula ``unless`` is true.

    Rounding removes the numerical noise of a difference between large numbers.
    """
    cells: list[Cell] = []
    for t in range(n.periods):
        result, formula = value(t), f"ROUND({slack(t)},{_DIGITS})"
        cells.append(
            (
                f'IF({unless(t)},"",{formula})' if unless else formula,
                None if result is None else round(result, _DIGITS) + 0.0,
            )
        )
    return cells


def _size(at: Places, n: Numbers, i: int) -> Cell:
    """Return the largest planned demand of a workload."""
    return f"MAX({at.planned.line(i)})", float(n.planned[i].max())


def _demand(at: Places, n: Numbers, i: int) -> Check:
    slack = n.done(i) - n.planned[i]
    cells = _row(n, lambda t: f"{at.done.at(i, t)}-{at.planned.at(i, t)}", lambda t: float(slack[t]))
    work = n.question.workloads[n.workloads[i]]
    return Check(message("demand is met"), work.name, work.unit, cells, _size(at, n, i))


def _survival(at: Places, n: Numbers, i: int, line: int, lost: str) -> Check:
    slack = n.delivered(i, lost) - n.planned[i]
    lasts = bool(lost) and n.question.survives(n.workloads[i])
    cells = _row(
        n,
        lambda t: at.above.at(line, t),
        lambda t: float(slack[t]) if lasts else None,
        lambda t: f'OR({at.above.at(line, t)}="",{at.available.at(i)}<>"{SURVIVES}")',
    )
    work = n.question.workloads[n.workloads[i]]
    what = joined([work.name, n.sites[at.losses[line][1]]])
    return Check(message("demand is met with a domain gone"), what, work.unit, cells, _size(at, n, i))


def _allowed(at: Places, n: Numbers, i: int) -> Check:
    work = n.question.workloads[n.workloads[i]]
    mine = [(c, n.pairs[p][1]) for c, (w, p) in enumerate(n.combos) if w == work.name]
    wrong = [c for c, site in mine if work.sites and site not in work.sites]
    cells = _row(
        n,
        lambda t: f"-SUMIFS({at.share.down(t)},{at.combo.down(3)},{i + 1},{at.combo.down(8)},0)",
        lambda t: -float(n.share[wrong, t].sum()),
    )
    return Check(message("runs only where it may"), work.name, message("share of a server"), cells)


def _as_solved(at: Places, n: Numbers, i: int) -> Check:
    """Check that a workload still uses the pool for which the plan was solved."""
    name, pool = n.workloads[i], n.question.pool(n.workloads[i])
    own, other = at.workload.at(i, 3), at.workload.at(i, columns_at(tables.workloads(), "pool"))
    now = f'IF({own}="{YES}",{at.workload.at(i, 0)},{other}&"")'
    slack = f'IF(OR({now}="",EXACT({now},{quoted(pool)})),0,-1)'
    return Check(message("shares servers as solved"), name, message("1 or 0"), [(slack, 0.0)])


def _of_allocation(at: Places, n: Numbers) -> Iterator[Check]:
    """Yield the checks of server shares and of dedicated pools."""
    if not n.combos:
        return
    what, unit = message("shares in Allocation"), message("share of a server")
    fewer = _row(
        n,
        lambda t: f"SUMPRODUCT(MIN({at.share.down(t)}-{at.working.down(t)}))",
        lambda t: float((n.share[:, t] - n.share_working[:, t]).min()),
    )
    yield Check(message("no more work than are there for it"), what, unit, fewer)
    slack = _row(n, lambda t: f"MIN({at.share.down(t)})", lambda t: float(n.share[:, t].min()))
    yield Check(message("not below 0"), what, unit, slack)
    for j, (name, p) in enumerate(n.own):
        cells = [at.pools.at(j, t) for t in range(n.periods)]
        servers = n.pooled[name][p]
        slack = _row(
            n,
            lambda t, cells=cells: f"MIN({cells[t]},-ABS({cells[t]}-ROUND({cells[t]},0)))",  # type: ignore[misc]
            lambda t, servers=servers: min(0.0, float(servers[t])),  # type: ignore[misc]
        )
        yield Check(message("whole servers, none below 0"), joined([name, *n.pairs[p]]), message("servers"), slack)
        mine = [c for c, own in enumerate(n.own_of) if own == j]
        yield _shared(at, n, joined([name, *n.pairs[p]]), mine, 10, j + 1)


def _shared(at: Places, n: Numbers, what: str, mine: Sequence[int], col: int, number: int) -> Check:
    """Check that the shares of a pool's servers add up to at most all of them.

    The pool's rows of the tab Allocation have ``number`` in the column ``col``.
    """
    stays = np.array([not n.question.yields(n.combos[c][0]) for c in mine], dtype=bool)
    common = f",{at.combo.down(10)},0" if col != 10 else ""
    rows = f"{at.combo.down(col)},{number}{common}"
    used = np.maximum(n.share_working[mine].sum(axis=0), n.share[mine][stays].sum(axis=0))
    cells = _row(
        n,
        lambda t: f"1-MAX(SUMIFS({at.working.down(t)},{rows}),SUMIFS({at.share.down(t)},{rows},{at.combo.down(9)},1))",
        lambda t: float(1 - used[t]),
    )
    return Check(message("no server is used twice"), what, message("share of a server"), cells)


def _of_sites(at: Places, n: Numbers) -> Iterator[Check]:
    q = n.question
    racks, liquid = n.racks(liquid=False), n.racks(liquid=True)
    for k, site in enumerate(q.sites.values()):
        yield _limit(n, at.power, k, message("power of the site"), "W", site.power_w, n.budgeted_w)
        yield _limit(n, at.units, k, message("rack units of the site"), "U", site.rack_units, n.rack_units)
        yield _limit(n, at.ports, k, message("ports of the site"), message("ports"), site.ports, n.ports)
        yield _limit(n, at.racks, k, message("positions for racks"), message("positions"), site.racks, racks)
        cooled = site.liquid_racks
        yield _limit(n, at.liquid, k, message("liquid-cooled positions"), message("positions"), cooled, liquid)
        yield _limit(n, at.spent, k, message("money for purchases at the site"), q.currency, site.budget, n.spent)


def _limit(
    n: Numbers, block: Block, k: int, kind: Message, unit: Message | str, limit: float | None, used: Floats
) -> Check:
    head = block.sheet.at(block.row + k, 2)
    cells = _row(
        n,
        lambda t: f"{head}-{block.at(k, t)}",
        lambda t: None if limit is None else limit - float(used[k, t]),
        lambda _: f'{head}=""',
    )
    return Check(kind, n.sites[k], unit, cells, (head, limit))


def _of_domains(at: Places, n: Numbers) -> Iterator[Check]:
    """Yield the checks of the power of rows and feeds, against the planned limits."""
    for name, most in n.question.domains_w.items():
        here = [k for k, site in enumerate(n.sites) if name in n.question.domains(site)]
        drawn = n.domain_w(name)

        def slack(t: int, most: float = most, here: Sequence[int] = here) -> str:
            return f"{most!r}-({'+'.join(at.power.at(k, t) for k in here) or '0'})"

        cells = _row(n, slack, lambda t, most=most, drawn=drawn: float(most - drawn[t]))  # type: ignore[misc]
        yield Check(message("power of the row or feed"), name, "W", cells, (repr(most), most))


def _of_supply(at: Places, n: Numbers) -> Iterator[Check]:
    """Yield the checks that the supply covers the orders."""
    for j, supply in enumerate(n.question.supply):
        of, ordered = n.question.supplied(supply), n.supplied(supply)
        mine = [p for p, (s, _) in enumerate(n.pairs) if s in of]

        def slack(t: int, j: int = j, mine: Sequence[int] = mine) -> str:
            return f"{at.supply.at(j, 1)}-({'+'.join(at.buy.at(p, t) for p in mine) or '0'})"

        def unless(t: int, j: int = j) -> str:
            when = at.supply.at(j, 2)
            return f'AND({when}<>"",{when}&""<>{at.period.at(t, 1)}&"")'

        values = [float(supply.maximum - ordered[t]) if supply.period in (None, t) else None for t in range(n.periods)]
        cells = _row(n, slack, values.__getitem__, unless)
        yield Check(message("can be had"), supply.item, message("servers"), cells)


def _budget(at: Places, n: Numbers) -> Check:
    budget = list(n.question.budget) or [None] * n.periods
    spent = n.kinds["purchase"]

    def slack(t: int) -> float | None:
        limit = budget[t]
        return None if limit is None else limit - float(spent[t])

    cells = _row(n, lambda t: f"{at.period.at(t, 4)}-{at.kinds.at(0, t)}", slack, lambda t: f'{at.period.at(t, 4)}=""')
    size = (f"MAX({at.period.down(4)})", max((b for b in budget if b is not None), default=0.0))
    return Check(message("money for purchases in the period"), message("all sites"), n.question.currency, cells, size)


def _of_pair(at: Places, n: Numbers, p: int) -> Iterator[Check]:
    s, k = n.pairs[p]
    sku, site = n.question.skus[s], n.question.sites[k]
    what, servers = joined([s, k]), message("servers")
    spares, least = (at.figures.at(p, figure(at, name)) for name in ("spares", "minimum"))
    price = at.sku.at(n.skus.index(s), columns_at(equipment.skus(), "price"))
    lot = at.sku.at(n.skus.index(s), columns_at(equipment.skus(), "lot"))
    windows = at.site.at(n.sites.index(k), columns_at(equipment.sites(), "windows"))
    listed = f'","&SUBSTITUTE({windows}&"",", ",",")&","'
    buy, active, installed = n.buy[p], n.active[p], n.installed[p]
    late = np.cumsum(n.retire[p]) - n.must_leave[p]

    def idle(t: int) -> str:
        return f"{at.installed.at(p, t)}-{at.active.at(p, t)}-IF({at.active.at(p, t)}>0,{spares},0)"

    def integer_slack(t: int) -> str:
        cells = [block.at(p, t) for block in (at.buy, at.retire, at.active)]
        return f"MIN({','.join([at.installed.at(p, t), *cells, *(f'-ABS({c}-ROUND({c},0))' for c in cells)])})"

    def least_count(t: int) -> float:
        counts = [float(a[p, t]) for a in (n.buy, n.retire, n.active)]
        return min(float(installed[t]), *counts, *(-abs(c - round(c)) for c in counts))

    rows: Sequence[tuple[Message, Formula, Value, Formula | None]] = (
        (
            message("active are installed, spares beside them"),
            idle,
            lambda t: float(installed[t] - active[t] - (site.spares if active[t] > 0 else 0)),
            None,
        ),
        (
            message("gone at the age limit"),
            lambda t: f"{at.have_left.at(p, t)}-{at.must_leave.at(p, t)}",
            lambda t: float(late[t]),
            None,
        ),
        (
            message("orders are of the minimum at least"),
            lambda t: f"{at.buy.at(p, t)}-{least}",
            lambda t: float(buy[t] - sku.minimum_order) if buy[t] else None,
            lambda t: f"{at.buy.at(p, t)}=0",
        ),
        (
            message("ordered only while sold"),
            lambda t: f"-{at.buy.at(p, t)}",
            lambda t: -float(buy[t]) if sku.price is None else None,
            lambda t: f'{price}<>""',
        ),
        (
            message("orders are of whole lots"),
            lambda t: f"-MOD({at.buy.at(p, t)},MAX(N({lot}),1))",
            lambda t: -float(buy[t] % sku.lot),
            None,
        ),
        (
            message("retired in the site's windows"),
            lambda t: f"-{at.retire.at(p, t)}",
            lambda t: None if site.windows is None or t in site.windows else -float(n.retire[p, t]),
            lambda t: f'OR({windows}="",ISNUMBER(FIND(","&{at.period.at(t, 1)}&",",{listed})))',
        ),
        (message("whole servers, none below 0"), integer_slack, least_count, None),
    )
    for kind, formula, value, unless in rows:
        yield Check(kind, what, servers, _row(n, formula, value, unless))
    mine = [c for c, (_, pair) in enumerate(n.combos) if pair == p and n.own_of[c] is None]
    if mine:
        yield _shared(at, n, what, mine, 4, p + 1)
    if n.own:
        rest = f"SUMIFS({{}},{pairs_of_pools(at)},{p + 1})"
        fit = _row(
            n, lambda t: f"{at.active.at(p, t)}-{rest.format(at.pools.down(t))}", lambda t: float(n.common[p, t])
        )
        yield Check(message("servers of pools are active"), what, servers, fit)


def _of_inputs(at: Places, n: Numbers) -> Iterator[Check]:
    q = n.question
    for i, (s, w) in enumerate(at.pairs_of_worth):
        slack = (f"{CAP:g}-{at.worth_used.at(i)}", CAP - q.utilisation(s, w))
        most = message("utilisation at most {cap}", cap=f"{CAP:.0%}")
        yield Check(most, joined([w, s]), message("share of a server"), [slack])
    start = at.figures.down(figure(at, "start"))
    missing = float(n.start.sum() - sum(c.count for c in q.fleet if not c.ordered))
    cells = [(f'SUM({start})-SUMPRODUCT((fleet_arrives="")*fleet_count)', missing)]
    yield Check(message("all servers in place are in the plan"), message("Fleet"), message("servers"), cells)
