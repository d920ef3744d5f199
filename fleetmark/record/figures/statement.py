"""Define the SQL statement that computes figures of values: their centre, number and spread."""

from __future__ import annotations

import math

from fleetmark.base.measurement import Centre, Kind
from fleetmark.planner.centre import LEAST, Interval

RULES = (Centre.GEOMEAN, Centre.MEDIAN)  # the rules that a metric can have
MEDIAN_CLASSES = ("disk", "net")  # start of classes with medians, for files that do not name a rule
# How the values of a median, of a geometric mean, and of an arithmetic mean are spread, by number in SQL.
INTERVALS = (Interval.NONE, Interval.RANGE, Interval.ORDER, Interval.STUDENT)
CENTRES = (Centre.GEOMEAN, Centre.MEDIAN, Centre.MEAN)


def rule_of(centre: str, class_: str) -> Centre:
    """Return the rule of a metric: the declared ``centre``, else the usual rule of its class."""
    if centre in RULES:
        return Centre(centre)
    return Centre.MEDIAN if class_.partition("-")[0] in MEDIAN_CLASSES else Centre.GEOMEAN


def lowest(kind: str) -> float:
    """Return the smallest value of a metric that is scored: ``PASSED`` in Python, for kinds that a file lacks."""
    return {"": -math.inf, Kind.GUARDRAIL.value: 0.0}.get(kind, math.ulp(0.0))


def groups(rows: str, columns: str, rule: Centre) -> str:
    """Return a SELECT with a row per group of those ``rows`` whose rule is ``rule``.

    ``rows`` have the ``columns``, ``rule`` and ``value`` (NULL if it is not scored). The result has the number ``n``
    of scored values and the number ``unscored``; ``value``, their centre, and its natural logarithm ``log``; ``mean``,
    ``sd``, ``log_sd`` (of logarithms), ``low``, ``high``, and ``ordered``, the values of a median.

    If a scored value is not positive, which only guardrails and descriptive metrics have, no geometric mean exists.
    ``value`` is then the arithmetic mean, and ``rule`` is ``mean``. DuckDB computes only columns that a query uses.
    """
    if rule is Centre.MEDIAN:
        log, ordered = "ln(nullif(median(value), 0))", "list_sort(list(value) filter (where value is not null))"
        value, resolved = "median(value)", f"'{rule}'"
    else:
        log, ordered = "avg(ln(value)) filter (where value > 0)", "null::double[]"
        value = f"case when count(value) = 1 then min(value) when min(value) <= 0 then avg(value) else exp({log}) end"
        resolved = f"case when min(value) <= 0 then '{Centre.MEAN}' else '{rule}' end"
    return f"""
        select {columns}, count(value)::int as n, (count(*) - count(value))::int as unscored, {value} as value,
            {log} as log, {resolved} as rule, avg(value) as mean, stddev_samp(value) as sd,
            stddev_samp(ln(value)) filter (where value > 0) as log_sd, min(value) as low, max(value) as high,
            {ordered} as ordered
        from ({rows}) where rule = '{rule}' group by {columns}"""


def spread(table: str, columns: str) -> str:
    """Return a SELECT of ``columns`` of ``table``, which has rows of ``groups``, with their spread.

    It adds ``lo``, ``hi``, ``cv``, and the positions of the rule in CENTRES (``rule_number``) and of the interval in
    INTERVALS (``interval_number``). The table ``ends`` (``planner.centre.ends``) has the constants of each ``n``.
    """
    lo, hi = (
        f"""case when g.n = 1 then null
                 when g.n < {LEAST} then g.{extreme}
                 when g.rule = '{Centre.MEDIAN}' then g.ordered[e.{end}_rank]
                 when g.rule = '{Centre.GEOMEAN}' then exp(g.log {sign} e.half * g.log_sd)
                 else g.mean {sign} e.half * g.sd end as {end}"""
        for end, extreme, sign in (("lo", "low", "-"), ("hi", "high", "+"))
    )
    rules = " ".join(f"when '{rule}' then {number}" for number, rule in enumerate(CENTRES))
    none, extremes, order, student = range(len(INTERVALS))
    return f"""
        select {columns}, {lo}, {hi}, case g.rule {rules} end::int as rule_number,
            case when g.n = 1 then {none} when g.n < {LEAST} then {extremes}
                 when g.rule = '{Centre.MEDIAN}' then {order} else {student} end::int as interval_number,
            case when g.mean <> 0 then g.sd / abs(g.mean) end as cv
        from {table} g join ends e on g.n = e.n"""
