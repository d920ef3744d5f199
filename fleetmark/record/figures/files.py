"""The figures of machines on record, by DuckDB over the Parquet files of their campaigns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Centre, Kind, Status
from fleetmark.record.figures.engine import Engine, literal, quoted
from fleetmark.record.figures.engine import duckdb as in_process
from fleetmark.record.figures.footer import footer
from fleetmark.record.figures.hashed import ranges, told_apart
from fleetmark.record.figures.named import engine
from fleetmark.record.figures.statement import RULES, groups, rule_of
from workloads.declared import about

BENCHMARK = (*schema.KEY, "better", "class", "kind")  # campaigns of several versions may differ in the last three
_KEY = (*BENCHMARK, "centre", "members")
_DETAIL = ("repeat", "time", "tool_version", "raw")
_MEND = "`fleetmark parse` rebuilds it from raw files; for a table, import it again"
DEVICES_POWER = "accelerator_power"
HEADLINES, EVERYTHING = "headline", "true"  # which rows are read
_TINY = math.log(1e-30)  # stands for the logarithm of zero
OF_MEDIAN = math.sqrt(math.pi / 2)  # times the standard error of a mean that of a median, of normal values


def of_metrics(*names: str) -> str:
    """Which rows are read: those of the metrics ``names``."""
    return f"metric in ({', '.join(map(literal, names))})"


POWER = of_metrics("power", DEVICES_POWER)


class DamagedFileError(FleetmarkError):
    """The measurements of one ``campaign`` cannot be read."""

    def __init__(self, campaign: str, why: str) -> None:
        self.campaign = campaign
        super().__init__(why)


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
    with engine() as con:
        try:
            keys = _prepare(con, files, machines, which, describing)
            zeros = bool((keys["kind"] == Kind.GUARDRAIL).any())
            rules = [rule for rule in RULES if rule in set(keys["rule"])] or RULES[:1]
            # Process one rule and one range of hosts at a time to save memory.
            number = sum(footer(path).num_rows for path in files.values())
            parts = ranges(number, [host for _, host in machines])
            rows = _joined([_centres(con, rule, spread, zeros, own) for own in parts for rule in rules])
            why = f"case when status <> '{Status.PASSED}' then status else 'zero or negative' end as why"
            left_out = pd.DataFrame({"record": [], "key": [], "why": [], "n": []})
            if rows["unscored"].any():
                left_out = con.execute(
                    f"select record, key, {why}, count(*)::int as n from ({_rows()}) where not scored group by all"
                ).df()
        except duckdb.Error as error:
            raise _damage(error, files, machines, which) from error
    del rows["unscored"]
    rows = rows if (rows["n"] > 0).all() else rows[rows["n"] > 0]
    return Figures(machines, keys, rows, left_out, files, which)


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The rows of ``parts``, which are emptied meanwhile: they are not held twice."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0].columns)}
    return pd.DataFrame(columns, copy=False)


def _centres(con: Engine, rule: Centre, spread: bool, zeros: bool, which: str) -> pd.DataFrame:
    widening = OF_MEDIAN if rule is Centre.MEDIAN else 1.0
    widened = f", log_sd, log_sd / sqrt(n) * {widening} as error" if spread else ""
    # Only guardrails have zeros: their centre is then the arithmetic mean, or zero itself.
    log = f"case when low > 0 then log when value > 0 then ln(value) else {_TINY} end as log" if zeros else "log"
    columns = f"record, key, n, unscored, {log}{widened}"
    grouped = groups(f"{_values()} where {which}", "record, key", rule)
    frame: pd.DataFrame = con.execute(f"select {columns} from ({grouped})").df()
    return frame


def _damage(
    error: duckdb.Error, files: Mapping[str, Path], machines: Sequence[tuple[str, str]], which: str
) -> FleetmarkError:
    """Which file it was: DuckDB does not always say."""
    for campaign, path in files.items():
        if len(files) == 1:
            return DamagedFileError(campaign, f"{path}: not a complete Parquet file ({_first_line(error)}); {_MEND}")
        try:
            read({campaign: path}, [m for m in machines if m[0] == campaign], which=which)
        except FleetmarkError as damage:
            return damage
    return FleetmarkError(f"the record cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _prepare(
    con: Engine,
    files: Mapping[str, Path],
    machines: Sequence[tuple[str, str]],
    which: str,
    describing: bool = False,
) -> pd.DataFrame:
    """The view ``measurements`` and the tables ``machines`` and ``hashes`` (of a key's columns, to its number and
    rule); the keys."""
    number = {campaign: n for n, campaign in enumerate(files)}
    of = [(number[c], host, n) for n, (c, host) in enumerate(machines) if c in number]
    con.register("machine_frame", pd.DataFrame(of, columns=["file", "host", "record"]))
    con.execute(
        "create temp table machines as select file::int as file, host, record::int as record from machine_frame"
    )
    scan = " union all ".join(_scans(con, files, number, which)) or _NOTHING
    con.execute(f"create temp view measurements as {scan}")
    con.execute(f"create temp table kinds as select distinct {quoted(_KEY)} from measurements")
    raw, hashed = told_apart(con, "kinds")
    raw = raw.fillna({name: str(schema.DEFAULTS.get(name, "")) for name in _KEY})
    raw["rule"] = [rule_of(c, of_class).value for c, of_class in zip(raw["centre"], raw["class"], strict=True)]
    raw = _with_kinds(raw)
    raw = raw if describing else raw[raw["better"] != Better.NONE]
    columns_of = [*BENCHMARK, "members", "rule"]
    keys = raw.groupby(columns_of)["inferred"].any().reset_index()
    hashes = raw.merge(keys.drop(columns="inferred").reset_index(names="key"), on=columns_of)
    # The least value that is scored: of a guardrail zero is, as a loss of nothing is the best there is.
    hashes["least"] = (hashes["kind"] != Kind.GUARDRAIL) * math.ulp(0.0)
    con.register("hash_frame", hashes[["h", "key", "rule", "least"]])
    con.execute(
        f"create temp table hashes as select h::{con.hash_type} as h, key::int as key, rule::varchar as rule, "
        "least::double as least from hash_frame"
    )
    con.execute(f"create temp view hashed as select *, {hashed} as h from measurements")
    return keys


def _with_kinds(keys: pd.DataFrame) -> pd.DataFrame:
    """``keys`` with the class, kind and direction of today where a file declares no kind, and ``inferred`` there."""
    lacking = (keys["kind"] == "") & (keys["better"] != Better.NONE)
    keys = keys.assign(inferred=lacking)
    if not lacking.any():
        return keys
    columns = ["workload", "case", "metric", "class", "unit", "better"]
    described = [about(*values) for values in keys.loc[lacking, columns].itertuples(index=False, name=None)]
    keys.loc[lacking, ["class", "kind", "better"]] = [[a.class_, a.kind, str(a.better)] for a in described]
    return keys


_COLUMNS = ("host", "status", "value", *_KEY, *_DETAIL)
_NOTHING = "select " + ", ".join(f'null as "{c}"' for c in ("file", *_COLUMNS)) + " where false"


def _scans(con: Engine, files: Mapping[str, Path], number: Mapping[str, int], which: str) -> list[str]:
    """Return a select for each set of columns that files have, with defaults for missing columns."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for campaign, path in files.items():
        try:
            columns = footer(path).schema.to_arrow_schema().names
        except FleetmarkError as error:
            raise DamagedFileError(campaign, str(error)) from error
        except (pa.ArrowException, OSError) as error:
            raise DamagedFileError(
                campaign, f"{path}: not a complete Parquet file ({_first_line(error)}); {_MEND}"
            ) from error
        if lacking := sorted(schema.NEEDED - set(columns)):
            raise DamagedFileError(campaign, f"{path}: lacks the columns {', '.join(lacking)}; {_MEND}")
        alike.setdefault(tuple(columns), []).append(campaign)
    scans = []
    for columns_of, campaigns in alike.items():
        picked = [f'"{c}"' if c in columns_of else f'{literal(schema.DEFAULTS[c])} as "{c}"' for c in _COLUMNS]
        rows, names = con.scan([files[c] for c in campaigns])
        place = " ".join(f"when {literal(name)} then {number[c]}" for name, c in zip(names, campaigns, strict=True))
        scans.append(f"select case filename {place} end::int as file, {', '.join(picked)} from {rows} where {which}")
    return scans


_JOINED = "hashed v join hashes k using (h) join machines m using (file, host)"


_SCORED = f"v.status = '{Status.PASSED}' and v.value >= k.least and isfinite(v.value)"


def _rows() -> str:
    """Every value of a machine and benchmark that is asked for, and whether it is scored."""
    return f"select m.record, k.key, k.rule, v.status, v.value, coalesce({_SCORED}, false) as scored from {_JOINED}"


def _values() -> str:
    return f"select m.record, k.key, k.rule, case when {_SCORED} then v.value end as value from {_JOINED}"


def values(figures: Figures, parts: pd.DataFrame) -> pd.DataFrame:
    """The values behind ``parts`` (rows of Figures, by ``record`` and ``key``): those two, ``value``, ``repeat``,
    ``time``, ``tool_version`` and the path of the ``raw`` file, part by part in the order of the repeats.
    """
    with in_process() as con:
        _prepare(con, figures.files, figures.machines, figures.which)  # the same rows give the same keys
        con.register("parts", parts[["record", "key"]])
        columns = ", ".join(f"v.{name}" for name in ("value", *_DETAIL))
        frame: pd.DataFrame = con.execute(
            f"select m.record, k.key, {columns} from {_JOINED} "
            f"semi join parts p on p.record = m.record and p.key = k.key where {_SCORED} order by all"
        ).df()
        return frame
