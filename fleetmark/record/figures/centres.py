"""The centre of each benchmark on each machine on record, with how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.measurement import Better, Centre, Kind, Status
from fleetmark.record.figures.statement import RULES, groups, rule_of
from fleetmark.record.values import Values, create_tables, described, ranges, source
from fleetmark.record.values.engine import Engine, duckdb, literal
from fleetmark.record.values.named import engine
from workloads.declared import about

BENCHMARK = (*schema.KEY, "better", "class", "kind")  # campaigns of several versions may differ in the last three
_IDENTITY = [*BENCHMARK, "members", "rule"]
DEVICES_POWER = "accelerator_power"
HEADLINES, EVERYTHING = "headline", "true"  # which rows are read
_TINY = math.log(1e-30)  # stands for the logarithm of zero
OF_MEDIAN = math.sqrt(math.pi / 2)  # the standard error of a median over that of a mean, for normal values


def of_metrics(*names: str) -> str:
    """Which rows are read: those of the metrics ``names``."""
    return f"metric in ({', '.join(map(literal, names))})"


POWER = of_metrics("power", DEVICES_POWER)


@dataclass(frozen=True, slots=True)
class Figures:
    """What machines measured, by machine and benchmark.

    ``machines``: (campaign, host) of each, whose place is ``record``. ``keys``: a row per benchmark and subject, whose
    place is ``key``, with the columns BENCHMARK, ``members``, ``rule`` (a Centre) and ``inferred`` (whether a file left
    its kind open). ``rows``: ``record``, ``key``,
    ``n`` values, ``log``, the natural logarithm of their centre, and, where the spread was asked for, ``log_sd``, the
    standard deviation of the values' logarithms, and ``error``, the centre's standard error by it (NaN for one value).
    ``left_out``: ``record``, ``key``, ``why`` and the ``n``
    values that are not scored. ``files``: campaign to its Parquet file; ``which``: the rows of them that were read.
    """

    machines: Sequence[tuple[str, str]]
    keys: pd.DataFrame
    rows: pd.DataFrame
    left_out: pd.DataFrame
    files: Mapping[str, Path]
    which: str


def read(
    files: Mapping[str, Path],
    machines: Sequence[tuple[str, str]],
    *,
    which: str = HEADLINES,
    spread: bool = False,
    describing: bool = False,
) -> Figures:
    """The figures of ``machines`` (campaign, host), those that ``which`` says; ``files``: campaign to its file.
    ``spread``: with what tells how sure each is; ``describing``: those that only describe too.

    Raises DamagedFileError for a file that is no whole Parquet file or lacks a column that nothing goes without.
    """
    with _opened(engine, files, machines, which, describing) as (con, keys, number):
        zeros = bool((keys["kind"] == Kind.GUARDRAIL).any())
        rules = [rule for rule in RULES if rule in set(keys["rule"])] or RULES[:1]
        # Process one rule and one range of hosts at a time to save memory.
        parts = ranges(number, [host for _, host in machines])
        rows = _joined([_centres(con, rule, spread, zeros, part) for part in parts for rule in rules])
        left_out = pd.DataFrame({"record": [], "key": [], "why": [], "n": []})
        if rows["unscored"].any():
            why = f"case when status <> '{Status.PASSED}' then status else 'zero or negative' end as why"
            columns = f"host_id as record, metric_id as key, {why}, count(*)::int as n"
            left_out = con.execute(f"select {columns} from value where not scored group by all").df()
    del rows["unscored"]
    rows = rows if (rows["n"] > 0).all() else rows[rows["n"] > 0]
    return Figures(machines, keys, rows, left_out, files, which)


def values(figures: Figures, parts: pd.DataFrame) -> pd.DataFrame:
    """The values behind ``parts`` (rows of Figures, by ``record`` and ``key``): those two, ``value``, ``repeat``,
    ``time``, ``tool_version`` and the path of the ``raw`` file, part by part in the order of the repeats.
    """
    with _opened(duckdb, figures.files, figures.machines, figures.which) as (con, _keys, _number):
        con.register("parts", parts[["record", "key"]])  # the same rows give the same keys
        frame: pd.DataFrame = con.execute(
            "select host_id as record, metric_id as key, value, repeat, time, tool_version, raw from value "
            "semi join parts p on p.record = host_id and p.key = metric_id where scored order by all"
        ).df()
        return frame


@contextmanager
def _opened(
    opener: Callable[[], AbstractContextManager[Engine]],
    files: Mapping[str, Path],
    machines: Sequence[tuple[str, str]],
    which: str,
    describing: bool = False,
) -> Iterator[tuple[Engine, pd.DataFrame, int]]:
    """Open the tables of ``machines``; yield their database, the keys, and the number of values in ``files``."""
    values = Values(schema.frame(), *(source(path, campaign) for campaign, path in files.items()))
    place = {campaign: n for n, campaign in enumerate(files)}
    listed = [(place[campaign], host, n) for n, (campaign, host) in enumerate(machines) if campaign in place]
    hosts = pd.DataFrame(listed, columns=["file", "host", "id"])
    with opener() as con, values.opened_in(con):
        metrics, keys = _numbered(described(con, which), describing)
        create_tables(con, hosts, metrics, which)
        yield con, keys, len(values)


def _numbered(metrics: pd.DataFrame, describing: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``metrics`` with ``id``, ``rule`` and ``least``, and the keys that the ids number."""
    rules = [rule_of(*row).value for row in zip(metrics["centre"], metrics["class"], strict=True)]
    today = _with_kinds(metrics.assign(rule=rules))
    today = today if describing else today[today["better"] != Better.NONE]
    grouped = today.groupby(_IDENTITY)
    # A guardrail may be zero, as a loss of nothing is the best there is.
    least = (today["kind"] != Kind.GUARDRAIL).reindex(metrics.index, fill_value=True) * math.ulp(0.0)
    ids = grouped.ngroup().reindex(metrics.index, fill_value=-1)
    return metrics.assign(id=ids, rule=rules, least=least), grouped["inferred"].any().reset_index()


def _with_kinds(keys: pd.DataFrame) -> pd.DataFrame:
    """``keys`` with the class, kind and direction of today where a file declares no kind, and ``inferred`` there."""
    lacking = (keys["kind"] == "") & (keys["better"] != Better.NONE)
    keys = keys.assign(inferred=lacking)
    if not lacking.any():
        return keys
    columns = ["workload", "case", "metric", "class", "unit", "better"]
    declared = [about(*values) for values in keys.loc[lacking, columns].itertuples(index=False, name=None)]
    keys.loc[lacking, ["class", "kind", "better"]] = [[a.class_, a.kind, str(a.better)] for a in declared]
    return keys


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The rows of ``parts``, which are emptied meanwhile: they are not held twice."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0].columns)}
    return pd.DataFrame(columns, copy=False)


def _centres(con: Engine, rule: Centre, spread: bool, zeros: bool, part: str) -> pd.DataFrame:
    widening = OF_MEDIAN if rule is Centre.MEDIAN else 1.0
    widened = f", log_sd, log_sd / sqrt(n) * {widening} as error" if spread else ""
    # Only guardrails have zeros: their centre is then the arithmetic mean, or zero itself.
    log = f"case when low > 0 then log when value > 0 then ln(value) else {_TINY} end as log" if zeros else "log"
    rows = f"select host_id as record, metric_id as key, rule, value from value where {part}"
    frame: pd.DataFrame = con.execute(
        f"select record, key, n, unscored, {log}{widened} from ({groups(rows, 'record, key', rule)})"
    ).df()
    return frame
