"""The one SQL statement that makes figures of values: the centre by the metric's rule, how many, the spread."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Centre
from planner.centre import LEAST, Interval

RULES = (Centre.GEOMEAN, Centre.MEDIAN)  # that a metric can have; an arithmetic mean stands in where it must
MEDIANS_OF_OLD = ("disk", "net")  # how classes begin whose figures are medians where a file names no rule


def rule_of(centre: str, class_: str) -> Centre:
    """The rule of a metric, of what its rows say."""
    if centre in RULES:
        return Centre(centre)
    return Centre.MEDIAN if class_.partition("-")[0] in MEDIANS_OF_OLD else Centre.GEOMEAN


def groups(rows: str, by: str, rule: Centre, about: Sequence[str] = ()) -> str:
    """A row per group of those ``rows`` whose rule is ``rule``; they have the columns ``by``, ``rule`` and ``value``
    (NULL where it is not scored). ``about``: further columns, text that is the same within a group.

    ``n`` values that are scored and ``unscored`` ones that are not; ``value``, their centre, and its natural logarithm
    ``log``. Where no geometric mean exists (a value that is not positive) the arithmetic one stands, and ``rule`` says
    so. ``mean``, ``sd``, ``log_sd`` (of logarithms), ``low``, ``high``, and ``ordered``, the values of a median. What a
    query does not ask for DuckDB does not work out.
    """
    names = "".join(f'min("{name}") as "{name}", ' for name in about)
    if rule is Centre.MEDIAN:
        log, ordered = "ln(nullif(median(value), 0))", "list_sort(list(value) filter (where value is not null))"
        value, resolved = "median(value)", f"'{rule}'"
    else:
        log, ordered = "avg(ln(value)) filter (where value > 0)", "null::double[]"
        value = f"case when count(value) = 1 then min(value) when min(value) <= 0 then avg(value) else exp({log}) end"
        resolved = f"case when min(value) <= 0 then '{Centre.MEAN}' else '{rule}' end"
    return f"""
        select {by}, {names}count(value)::int as n, (count(*) - count(value))::int as unscored, {value} as value,
            {log} as log, {resolved} as rule, avg(value) as mean, stddev_samp(value) as sd,
            stddev_samp(ln(value)) filter (where value > 0) as log_sd, min(value) as low, max(value) as high,
            {ordered} as ordered
        from ({rows}) where rule = '{rule}' group by {by}"""


def spread(table: str) -> str:
    """The rows of ``table``, a table of ``groups``, with ``lo``, ``hi``, ``interval`` and ``cv``.

    The table ``ends`` (``planner.centre.ends``) has what depends on the number of values alone.
    """
    return f"""
        select g.* exclude (unscored, ordered, mean, sd, log, log_sd),
            case when g.n = 1 then null
                 when g.n < {LEAST} then g.low
                 when g.rule = '{Centre.MEDIAN}' then g.ordered[e.lo_rank]
                 when g.rule = '{Centre.GEOMEAN}' then exp(g.log - e.half * g.log_sd)
                 else g.mean - e.half * g.sd end as lo,
            case when g.n = 1 then null
                 when g.n < {LEAST} then g.high
                 when g.rule = '{Centre.MEDIAN}' then g.ordered[e.hi_rank]
                 when g.rule = '{Centre.GEOMEAN}' then exp(g.log + e.half * g.log_sd)
                 else g.mean + e.half * g.sd end as hi,
            case when g.n = 1 then '{Interval.NONE}' when g.n < {LEAST} then '{Interval.RANGE}'
                 when g.rule = '{Centre.MEDIAN}' then '{Interval.ORDER}' else '{Interval.STUDENT}' end as interval,
            case when g.mean <> 0 then g.sd / abs(g.mean) end as cv
        from {table} g join ends e using (n)"""
