"""Test the figures of machines and hosts against a simple computation, for random files of several versions."""

from __future__ import annotations

import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base import schema
from fleetmark.record import figures
from fleetmark.record.figures.hosts import METRIC, per_host
from fleetmark.record.values import Values, source
from fleetmark.record.values.host import numbered
from tests.records import row

OPTIONAL = ("subject", "standing", "kind", "centre", "members", "labels", "class", "raw")
ROWS = st.fixed_dictionaries(
    {
        "host": st.sampled_from(["h1", "h2", "it's"]),
        "metric": st.sampled_from(["read_iops", "m2", "note"]),
        "subject": st.sampled_from(["host", "gpu0"]),
        "labels": st.sampled_from(["{}", '{"size":"4096"}']),
        "members": st.sampled_from(["", '["h1","h2"]']),
        "kind": st.sampled_from(["capacity", "guardrail"]),
        "centre": st.sampled_from(["", "median", "geomean"]),
        "status": st.sampled_from(["passed", "passed", "passed", "failed", "invalid"]),
        "headline": st.sampled_from([True, True, False]),
        "value": st.one_of(st.floats(0.001, 1e9), st.sampled_from([0.0, -1.0, math.nan, math.inf])),
    }
)


def filled(measured: dict[str, Any], dropped: set[str], nulls: set[str]) -> dict[str, Any]:
    """Return ``measured`` as read from a file in which some columns are missing or null."""
    lacking = dropped | nulls
    empty = {
        name: "" if name in nulls and name not in dropped and name not in schema.DEFAULTS else None for name in lacking
    }
    return {**measured, **{name: schema.DEFAULTS.get(name, value) for name, value in empty.items()}}


def write(path: Path, rows: list[dict[str, Any]], dropped: set[str], nulls: set[str]) -> None:
    table = pa.Table.from_pylist([{**r, **dict.fromkeys(nulls)} for r in rows], schema.arrow())
    pq.write_table(table.drop_columns(sorted(dropped)), path, row_group_size=7)


def centre(rule: str, values: list[float]) -> float:
    return statistics.median(values) if rule == "median" else statistics.geometric_mean(values)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(ROWS, max_size=25), min_size=1, max_size=2),
    st.sets(st.sampled_from(OPTIONAL), max_size=3),
    st.sets(st.sampled_from(OPTIONAL), max_size=2),
)
def test_figures_are_those_of_a_plain_computation(
    measured: list[list[dict[str, Any]]], dropped: set[str], nulls: set[str]
) -> None:
    """Use two files with the same hosts, which are different machines. The first lacks columns and has nulls."""
    files, values, kept = {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for campaign, columns in zip(("c1", "c2"), measured, strict=False):
            without = (dropped, nulls - dropped) if campaign == "c1" else (set(), set())
            rows = [row(**{**r, "workload": "own", "class": "mem-bw", "campaign": campaign}) for r in columns]
            files[campaign] = Path(folder) / f"{campaign}.parquet"
            write(files[campaign], rows, *without)
            kept += [filled(r, *without) for r in rows]
        hosts = numbered((campaign, host) for campaign in files for host in ("h1", "h2", "it's", "absent"))
        table = figures.read(files, hosts, condition=figures.EVERYTHING, spread=True)
        for campaign, file in files.items():
            values[campaign] = per_host(Values(schema.frame(), source(file, campaign))).frame
        parts = figures.values(table, table.rows)
    _compare_machines(table, parts, kept)
    for campaign, frame in values.items():
        _compare_hosts(frame, [r for r in kept if r["campaign"] == campaign])


def _compare_machines(table: figures.Figures, parts: pd.DataFrame, kept: list[dict[str, Any]]) -> None:
    expected: dict[tuple[Any, ...], list[float]] = {}
    left_out: dict[tuple[Any, ...], int] = {}
    for r in kept:
        rule = "median" if r["centre"] == "median" else "geomean"
        # For a file without kinds, the current manifests apply; an undeclared metric has no kind.
        kind = r["kind"] or "capacity"
        key = (r["campaign"], r["host"], *(r[name] for name in METRIC), r["members"], rule, kind)
        scored = (
            r["status"] == "passed"
            and math.isfinite(r["value"])
            and r["value"] >= (0 if kind == "guardrail" else 1e-300)
        )
        if scored:
            expected.setdefault(key, []).append(r["value"])
        else:
            left_out[key] = left_out.get(key, 0) + 1

    def key_of(record: int, key: int) -> tuple[Any, ...]:
        keys = table.keys.loc[key]
        return (
            table.hosts[record].campaign,
            table.hosts[record].name,
            *(keys[name] for name in METRIC),
            keys["members"],
            keys["rule"],
            keys["kind"],
        )

    assert {key_of(r.record, r.key): r.n for r in table.rows.itertuples()} == {k: len(v) for k, v in expected.items()}
    for r in table.rows.itertuples():
        mine = expected[key_of(r.record, r.key)]
        if min(mine) > 0:
            rule = table.keys.loc[r.key, "rule"]
            assert r.log == pytest.approx(math.log(centre(rule, mine)), abs=1e-9)
            assert (
                math.isnan(r.log_sd)
                if len(mine) == 1
                else r.log_sd == pytest.approx(statistics.stdev(map(math.log, mine)), abs=1e-9)
            )
    counted: dict[tuple[Any, ...], int] = {}
    for r in table.left_out.itertuples():
        counted[key_of(int(r.record), int(r.key))] = counted.get(key_of(int(r.record), int(r.key)), 0) + r.n
    assert counted == left_out
    behind = parts.groupby(["record", "key"])["value"].apply(sorted) if len(parts) else {}
    for (record, key), numbers in behind.items():
        assert numbers == sorted(expected[key_of(record, key)])


def _compare_hosts(frame: pd.DataFrame, kept: list[dict[str, Any]]) -> None:
    expected: dict[tuple[Any, ...], list[float]] = {}
    rules: dict[tuple[Any, ...], set[str]] = {}
    for r in kept:
        scored = r["value"] > 0 or r["kind"] == "" or (r["kind"] == "guardrail" and r["value"] == 0)
        if r["status"] == "passed" and math.isfinite(r["value"]) and scored:
            key = (r["host"], *(r[name] for name in METRIC))
            expected.setdefault(key, []).append(r["value"])
            rules.setdefault(key, set()).add("median" if r["centre"] == "median" else "geomean")
    plain = frame.astype(dict.fromkeys((*METRIC, "host"), object))
    assert set(plain[["host", *METRIC]].itertuples(index=False, name=None)) == set(expected)
    for r in plain.to_dict("records"):
        key = (r["host"], *(r[name] for name in METRIC))
        if len(rules[key]) == 1:  # a metric has one rule in files of one version
            (rule,) = rules[key]
            mine = expected[key]
            value = centre(rule, mine) if rule == "median" or min(mine) > 0 else statistics.fmean(mine)
            assert (r["n"], r["value"]) == (len(mine), pytest.approx(value, rel=1e-9))
