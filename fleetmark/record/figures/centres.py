"""Compute the centre of each benchmark on each recorded machine, with its standard error."""

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
from fleetmark.record.figures.statement import RULES, groups, lowest, rule_of
from fleetmark.record.values import Values, create_tables, described, ranges, source
from fleetmark.record.values.engine import Engine, duckdb, literal
from fleetmark.record.values.host import Host
from fleetmark.record.values.named import engine
from fleetmark.workloads.declared import declaration

BENCHMARK = (*schema.KEY, "better", "class", "kind")  # campaigns of different versions may differ in the last three
_IDENTITY = [*BENCHMARK, "members", "rule"]
DEVICES_POWER = "accelerator_power"
HEADLINES, EVERYTHING = "headline", "true"  # SQL conditions that select rows
_DETAILS = ("repeat", "time", "tool_version", "raw")
_TINY = math.log(1e-30)  # replaces the logarithm of zero
OF_MEDIAN = math.sqrt(math.pi / 2)  # the standard error of a median over that of a mean, for normal values


def of_metrics(*names: str) -> str:
    """Return the SQL condition that selects the rows of the metrics ``names``."""
    return f"metric in ({', '.join(map(literal, names))})"


POWER = of_metrics("power", DEVICES_POWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Store figures by host and benchmark. ``record`` and ``key`` are positions in ``hosts`` and ``keys``.

    ``keys``: a row per benchmark and subject, with the columns BENCHMARK,
    ``members``, ``rule`` (a Centre) and ``inferred`` (whether a file did not declare its kind). ``rows``: ``record``,
    ``key``, the number ``n`` of values, and ``log``, the natural logarithm of their centre. With the spread, also
    ``log_sd``, the standard deviation of the values' logarithms, and ``error``, the standard error of the centre
    (NaN for one value). ``left_out``: ``record``, ``key``, ``why``, and the number ``n`` of values that are not scored.
    ``files``: the Parquet file of each campaign. ``condition``: the SQL condition that selected the rows.
    """

    hosts: Sequence[Host]
    keys: pd.DataFrame
    rows: pd.DataFrame
    left_out: pd.DataFrame
    files: Mapping[str, Path]
    condition: str
    metrics: pd.DataFrame  # as in ``record.values.create_tables``; ``id`` is a position in ``keys``


def read(
    files: Mapping[str, Path],
    hosts: Sequence[Host],
    *,
    condition: str = HEADLINES,
    spread: bool = False,
    describing: bool = False,
) -> Figures:
    """Return the figures of ``hosts`` from the rows that meet the SQL ``condition``.

    ``files``: the file of each campaign. ``spread``: add the standard deviation and error. ``describing``: include
    metrics that have no better direction. Raise DamagedFileError if a file is not a complete Parquet file or lacks a
    required column.
    """
    with _opened(engine, files) as (con, number):
        metrics, keys = _numbered(described(con, condition), describing)
        _create_tables(con, files, hosts, metrics, condition)
        zeros = bool((keys["kind"] == Kind.GUARDRAIL).any())
        rules = [rule for rule in RULES if rule in set(keys["rule"])] or RULES[:1]
        # Process one rule and one range of hosts at a time to save memory.
        parts = ranges(number, [host.name for host in hosts])
        rows = _joined([_centres(con, rule, spread, zeros, part) for part in parts for rule in rules])
        left_out = pd.DataFrame({"record": [], "key": [], "why": [], "n": []})
        if rows["unscored"].any():
            reason = f"case when status <> '{Status.PASSED}' then status else 'zero or negative' end as why"
            columns = f"host_id as record, metric_id as key, {reason}, count(*)::int as n"
            left_out = con.execute(f"select {columns} from value where not scored group by all").df()
    del rows["unscored"]
    rows = rows if (rows["n"] > 0).all() else rows[rows["n"] > 0]
    return Figures(
        hosts=hosts, keys=keys, rows=rows, left_out=left_out, files=files, condition=condition, metrics=metrics
    )


def values(figures: Figures, parts: pd.DataFrame, columns: Sequence[str] = _DETAILS) -> pd.DataFrame:
    """Return the single values of ``parts`` (``record`` and ``key`` of rows of Figures), sorted by part and value.

    The columns are ``record``, ``key``, ``value`` and the named ``columns``; ``raw`` is a path.
    """
    with _opened(duckdb, figures.files) as (con, _number):
        _create_tables(con, figures.files, figures.hosts, figures.metrics, figures.condition)
        con.register("parts", parts[["record", "key"]])
        frame: pd.DataFrame = con.execute(
            f"select {', '.join(('host_id as record', 'metric_id as key', 'value', *columns))} from value "
            "semi join parts p on p.record = host_id and p.key = metric_id where scored order by all"
        ).df()
        return frame


@contextmanager
def _opened(
    opener: Callable[[float], AbstractContextManager[Engine]], files: Mapping[str, Path]
) -> Iterator[tuple[Engine, int]]:
    """Open ``files``; yield their database and their number of values."""
    values = Values(schema.frame(), *(source(path, campaign) for campaign, path in files.items()))
    with opener(len(values)) as con, values.opened_in(con):
        yield con, len(values)


def _create_tables(
    con: Engine, files: Mapping[str, Path], hosts: Sequence[Host], metrics: pd.DataFrame, condition: str
) -> None:
    """Create the tables for the rows of these hosts that meet ``condition``."""
    place = {campaign: n for n, campaign in enumerate(files)}
    listed = [(place[host.campaign], host.name, host.id) for host in hosts if host.campaign in place]
    create_tables(con, pd.DataFrame(listed, columns=["file", "host", "id"]), metrics, condition)


def _numbered(metrics: pd.DataFrame, describing: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``metrics`` with ``id``, ``rule`` and ``lowest``, and the keys whose row numbers are the ids."""
    rules = [rule_of(*row).value for row in zip(metrics["centre"], metrics["class"], strict=True)]
    today = _with_kinds(metrics.assign(rule=rules))
    today = today if describing else today[today["better"] != Better.NONE]
    grouped = today.groupby(_IDENTITY)
    values = today["kind"].map(lowest).astype("float64").reindex(metrics.index, fill_value=0.0)
    ids = grouped.ngroup().reindex(metrics.index, fill_value=-1)
    return metrics.assign(id=ids, rule=rules, lowest=values), grouped["inferred"].any().reset_index()


def _with_kinds(keys: pd.DataFrame) -> pd.DataFrame:
    """Fill in the class, kind and direction from current manifests if a file declares no kind; set ``inferred``."""
    lacking = (keys["kind"] == "") & (keys["better"] != Better.NONE)
    keys = keys.assign(inferred=lacking)
    if not lacking.any():
        return keys
    columns = ["workload", "case", "metric", "class", "unit", "better"]
    declared = [declaration(*values) for values in keys.loc[lacking, columns].itertuples(index=False, name=None)]
    keys.loc[lacking, ["class", "kind", "better"]] = [[a.class_, a.kind, str(a.better)] for a in declared]
    return keys


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate ``parts``. The parts are emptied meanwhile, so that no column is in memory twice."""
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
