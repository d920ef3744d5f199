"""The one SQL statement that makes figures of values: the centre by the metric's rule, how many, the spread."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Centre
from planner.centre import LEAST, Interval

MEDIANS_OF_OLD = ("disk", "net")  # how classes begin whose figures are medians where a file names no rule


def rule_of(centre: str, class_: str) -> Centre:
    """The rule of a metric, of what its rows say."""
    if centre in set(Centre):
        return Centre(centre)
    return Centre.MEDIAN if class_.partition("-")[0] in MEDIANS_OF_OLD else Centre.GEOMEAN


def groups(rows: str, by: str, about: Sequence[str] = ()) -> str:
    """A row per group of ``rows``, which have the columns ``by``, ``rule`` and ``value`` (NULL where it is not scored).
    ``about``: further columns, text that is the same within a group.

    ``n`` values that are scored and ``unscored`` ones that are not; ``value``, their centre by ``rule``, which is the
    arithmetic mean where a geometric one does not exist (a value that is not positive); ``mean``, ``sd``, ``log_sd``
    (of natural logs), ``low``, ``high``, and ``ordered``, the values of a median. What a query does not ask for DuckDB
    does not work out.
    """
    names = "".join(f'"{name}", ' for name in about)
    smallest = "".join(f'min("{name}") as "{name}", ' for name in about)
    return f"""
        select *,
            case when n = 1 then low
                 when rule = '{Centre.MEDIAN}' then (ordered[(n + 1) // 2] + ordered[n // 2 + 1]) / 2
                 when rule = '{Centre.GEOMEAN}' then exp(log) else mean end as value
        from (
            select {by}, {names}n, unscored, mean, sd, log, log_sd, low, high, list_sort(list_of) as ordered,
                case when wanted = '{Centre.GEOMEAN}' and low <= 0 then '{Centre.MEAN}' else wanted end as rule
            from (
                select {by}, {smallest}min(rule) as wanted, count(value)::int as n,
                    (count(*) - count(value))::int as unscored, avg(value) as mean,
                    stddev_samp(value) as sd, avg(ln(value)) filter (value > 0) as log,
                    stddev_samp(ln(value)) filter (value > 0) as log_sd, min(value) as low, max(value) as high,
                    list(value) filter (rule = '{Centre.MEDIAN}' and value is not null) as list_of
                from ({rows}) group by {by}
            )
        )"""


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
