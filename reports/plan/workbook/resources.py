"""Build the tables of resources: what demand needs, what servers have, and what limits each workload's servers.

Each row of Equivalence states how much demand the resources of one server serve. This may lower the utilisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import message
from fleetmark.demand import tables
from fleetmark.planner.capacity.resources import bound
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.kit.workbook import literal
from fleetmark.reports.plan.workbook.cells import SHARE, SPARE, by_period, down, entry, grid, live, names, numbers
from fleetmark.reports.plan.workbook.numbers import Numbers


def columns(n: Numbers) -> tuple[Column, ...]:
    """Return the columns of Equivalence to the right of the utilisation, if any workload needs resources."""
    if not n.resources:
        return ()
    unit = message("unit of the workload")
    return (
        numbers("speed", message("utilisation by speed alone"), "0.0%", unit=message("share of a server"), width=14),
        *(
            numbers(f"units_{j}", message("its {resource} serves", resource=name), "#,##0.0000", unit=unit, width=14)
            for j, name in enumerate(n.resources)
        ),
        Column("bound", message("bound by"), width=14),
    )


def used(n: Numbers, sku: str, workload: str, general: str) -> Iterator[Cell]:
    """Yield the utilisation of one server, and the cells of ``columns``. ``general``: the workload's utilisation."""
    q = n.question
    speed = f'IF({{utilisation}}="",{general},{{utilisation}})'
    if not n.resources:
        yield live(speed, q.utilisation(sku, workload))
        return
    span = f"{{units_0}}:{{units_{len(n.resources) - 1}}}"
    scarce = f"COUNT({span})>0"
    yield live(f"IF({scarce},MIN({{speed}},MIN({span})/{{value}}),{{speed}})", q.utilisation(sku, workload))
    yield live(speed, q.speed_limit(sku, workload))
    has, needs = q.skus[sku].has, q.workloads[workload].needs
    for name in n.resources:
        need, stock = _amount(tables.NEEDS, "{workload}", name), _amount(tables.HAS, "{sku}", name)
        value = bound(has, {name: needs[name]})[0] if name in needs else None
        yield live(f'IF({need}=0,"",{stock}/{need})', value)
    first = '""'
    for j, name in reversed(list(enumerate(n.resources))):
        first = f"IF({{units_{j}}}=MIN({span}),{literal(name)},{first})"
    binds = f"MIN({span})<{{value}}*{{speed}}"
    yield live(f'IF({scarce},IF({binds},{first},""),"")', q.binding(sku, workload))


def _amount(kind: str, owner: str, name: str) -> str:
    """Return the formula of an amount in the table of resources; 0 if the table lacks it."""
    rows = f"EXACT(resource_kind,{literal(kind)})*EXACT(resource_owner,{owner})*EXACT(resource_name,{literal(name)})"
    return f"SUMPRODUCT({rows}*resource_amount)"


def table(n: Numbers) -> Tabular:
    """Return the resources that one unit of each demand needs, and the resources of each server."""
    columns = tables.resources()
    q = n.question
    rows = [(tables.NEEDS, w, name, need) for w, work in q.workloads.items() for name, need in work.needs.items()]
    rows += [(tables.HAS, s, name, amount) for s, sku in q.skus.items() for name, amount in sku.has.items()]

    def row(i: int) -> tuple[Cell, ...]:
        return tuple(map(entry, columns, rows[i] if i < len(rows) else [None] * len(columns)))

    *labels, amount = columns
    heads = [Column(c.field, c.title, "name", unit=c.unit, name=c.name) for c in labels]
    last = numbers(amount.field, amount.title, amount.form, unit=amount.unit, name=amount.name, width=18)
    return grid("resources", message("Resources"), (*heads, last), len(rows) + SPARE, row)


def bound_by(n: Numbers) -> Tabular:
    """Return the share of each workload's servers that each resource limits, by period."""
    works = [(i, w) for i, w in enumerate(n.workloads) if n.question.workloads[w].needs]
    shares = [(i, w, name, values) for i, w in works for name, values in n.bound_by(i).items()]
    labels = [(Cell(w), Cell(name) if name else Cell(message("speed"))) for _, w, name, _ in shares]

    def cell(j: int, t: int) -> Cell:
        i, _, name, values = shares[j]
        servers = f"({down('allocation', 'workload_no')}={i + 1})*{down('allocation', f'share_{t}')}"
        servers += f"*{down('allocation', f'servers_{t}')}"
        mine = f"SUMPRODUCT(EXACT({down('allocation', 'bound')},{literal(name)})*{servers})"
        return live(f"IF(SUMPRODUCT({servers})=0,0,{mine}/SUMPRODUCT({servers}))", values[t])

    title = message("Share of the servers whose work it bounds")
    heads = names(workload=message("workload"), resource=message("resource"))
    return by_period(n, "bound_by", title, heads, labels, cell, SHARE)
