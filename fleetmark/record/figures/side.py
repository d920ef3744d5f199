"""Select the figures of one side of a comparison: hosts measured alone, in pairs, or in a group."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pandas as pd

from fleetmark.record.figures.centres import BENCHMARK, Figures
from fleetmark.record.figures.statement import RULES, groups
from fleetmark.record.values.database import connect

PAIRS = "pairs"  # the subject of all pairs of hosts of the same side
SHARED = "shared with hosts of another side"

# The figures of the side's hosts. A pair of hosts belongs to a side if both of them do.
_OF_SIDE = """
    select f.* replace (h.place as record), k.benchmark from {table} f
    join host h on f.record = h.id join metric k on f.key = k.id
    left join host peer on peer.campaign = h.campaign and starts_with(k.subject, h.name || '>')
        and peer.name = substr(k.subject, length(h.name) + 2)
    where not contains(k.subject, '>') or peer.id is not null"""
# The runs with a member outside the side. The first host of a run represents all its members.
_SHARED = """
    select distinct h.place as record, f.key from figure f join member m on f.key = m.metric
    join host h on f.record = h.id anti join host other on other.campaign = h.campaign and other.name = m.name"""


@dataclass(frozen=True, slots=True)
class SideFigures:
    """The figures of a side. ``record`` is the position of a host in the side.

    ``benchmarks``: a row per benchmark with the columns BENCHMARK; all pairs of hosts are one subject. ``benchmark`` is
    a position in it. ``rows``: ``record``, ``benchmark``, the number ``n`` of values, ``log``, the natural logarithm of
    their centre (for pairs, the centre of the pairs' centres), and its standard ``error`` (NaN if unknown). ``parts``:
    the rows that each centre is computed from, with ``key`` (as in Figures). ``left_out``: ``record``, ``benchmark``,
    ``why``, ``n``.
    """

    benchmarks: pd.DataFrame
    rows: pd.DataFrame
    parts: pd.DataFrame
    left_out: pd.DataFrame


def of_side(figures: Figures, side: str = "") -> SideFigures:
    """Return the figures of the hosts of ``side``, without measurements shared with hosts of another side."""
    keys = figures.keys
    subjects = keys["subject"].where(~keys["subject"].str.contains(">", regex=False), PAIRS)
    columns = keys.assign(subject=subjects)[list(BENCHMARK)]
    benchmarks = columns.drop_duplicates(ignore_index=True)
    numbers = columns.merge(benchmarks.reset_index(names="benchmark"), how="left", on=list(BENCHMARK))["benchmark"]
    metrics = keys[["subject", "rule"]].assign(id=range(len(keys)), benchmark=numbers.to_numpy())
    members = [(n, name) for n, text in enumerate(keys["members"]) if text for name in json.loads(text)]
    hosts = [host for host in figures.hosts if host.side == side]
    places = [(host.id, host.campaign, host.name, place) for place, host in enumerate(hosts)]
    counted = ", ".join(["record", "key", "benchmark", "n", "log", *({"error"} & set(figures.rows))])
    with connect(len(figures.rows)) as con:
        con.register("figure", figures.rows)
        con.register("rejected", figures.left_out)
        con.register("metric", metrics.astype({"subject": object}))
        con.register("member", pd.DataFrame(members, columns=["metric", "name"]).astype({"metric": int}))
        con.register("host", pd.DataFrame(places, columns=["id", "campaign", "name", "place"]))
        mine = _OF_SIDE.format(table="figure")
        unshared, several = "", ""
        if members:
            unshared = f"anti join ({_SHARED}) using (record, key)"
            several = (
                f" union all select record, benchmark, '{SHARED}', n from ({mine}) "
                f"semi join ({_SHARED}) using (record, key)"
            )
        parts = con.execute(f"select {counted} from ({mine}) {unshared}").df()
        rejected = _OF_SIDE.format(table="rejected")
        left_out = con.execute(f"select record, benchmark, why, n from ({rejected}){several}").df()
        rows = parts.drop(columns="key")
        if len(benchmarks) < len(keys):
            con.register("part", parts)
            values = "select p.*, k.rule, exp(p.log) as value from part p join metric k on p.key = k.id"
            rules = [rule for rule in RULES if rule in set(keys["rule"])]
            centres = " union all ".join(groups(values, "record, benchmark", rule) for rule in rules)
            # The standard error of the mean of the parts, if it is known for each of them.
            error = ", case when count(error) = count(*) then sqrt(sum(error * error)) / count(*) end as error"
            sums = f"sum(n)::int as n{error if 'error' in parts else ''}"
            rows = con.execute(
                f"select c.record, c.benchmark, s.* exclude (record, benchmark), c.log from ({centres}) c join "
                f"(select record, benchmark, {sums} from part group by all) s using (record, benchmark)"
            ).df()
    return SideFigures(benchmarks, rows, parts, left_out)
