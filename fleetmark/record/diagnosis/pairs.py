"""Find slow nodes and links in what hosts measured with one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis import links, outliers
from fleetmark.planner.diagnosis.cohorts import Cohort
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record.diagnosis.table import BENCHMARK, title
from fleetmark.record.figures import Figures
from fleetmark.record.figures.pairs import peer

COLUMNS = tuple(c for c in BENCHMARK if c != "subject")


def rows_of(measured: Figures, hosts: Sequence[str]) -> pd.DataFrame:
    """Return a row per pair, direction and benchmark.

    Its columns are COLUMNS, ``a`` and ``b`` (positions of hosts), ``value`` (oriented logarithm) and ``n`` (repeats).
    """
    between = measured.keys[measured.keys["subject"].str.contains(">", regex=False)]
    place = {host: n for n, host in enumerate(hosts)}
    rows = measured.rows[measured.rows["key"].isin(between.index)]
    rows = rows.join(between[[*COLUMNS, "subject"]], on="key")
    names = np.array(hosts, dtype=object)[rows["record"].to_numpy(int)]
    others = [peer(h, s, place) for h, s in zip(names, rows["subject"], strict=True)]
    rows = rows.assign(
        a=rows["record"].to_numpy(int),
        b=np.array([place[o] if o is not None else -1 for o in others], dtype=int),
        value=rows["log"] * np.where(rows["better"] == Better.LOWER.value, -1.0, 1.0),
    )
    return rows[rows["b"] >= 0]


def judge(
    measured: Figures, hosts: Sequence[str], groups: Sequence[Cohort]
) -> tuple[list[Finding], list[Message], int]:
    """Return slow nodes and links, notes on benchmarks that cannot be judged, and the number of judged values."""
    findings, notes, judged = [], [], 0
    kinds = {host: c.kind for c in groups for host in c.hosts}
    for key, pairs in rows_of(measured, hosts).groupby(list(COLUMNS), sort=False):
        benchmark = dict(zip(COLUMNS, map(str, key), strict=True)) | {"subject": "pairs"}
        if len({*pairs["a"], *pairs["b"]}) < outliers.LEAST:
            notes.append(
                message(
                    "{benchmark} was measured between fewer than {least} hosts, so neither nodes nor links are judged.",
                    benchmark=title(benchmark),
                    least=outliers.LEAST,
                )
            )
            continue
        judged += len(pairs)
        nodes, slow = links.judge(pairs[["a", "b", "value"]], len(hosts), outliers.LARGE)
        sign = -1.0 if benchmark["better"] == Better.LOWER else 1.0
        middle = float(pairs["value"].median())
        for r in [*nodes.to_dict("records"), *slow.to_dict("records")]:
            node = "host" in r
            host = hosts[int(r["host"] if node else r["a"])]
            findings.append(
                Finding(
                    Kind.NODE if node else Kind.LINK,
                    host,
                    benchmark,
                    deficit=float(r["deficit"]),
                    value=float(np.exp(sign * (middle + np.log1p(-r["deficit"])))),
                    expected=float(np.exp(sign * middle)),
                    n=int(r["partners"]) if node else int(r["n"]) - 1,
                    z=float(r["z"]),
                    q=float(r["q"]),
                    sure=float(r["q"]) <= outliers.DISCOVERY,
                    other="" if node else hosts[int(r["b"])],
                    either=not node and bool(r["either"]),
                    cohort=kinds.get(host, ""),
                )
            )
    return findings, notes, judged
