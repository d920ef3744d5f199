"""Find slow nodes and links in measurements between hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis import links, outliers, places, traits
from fleetmark.planner.diagnosis.cohorts import Cohort
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record.diagnosis import shared
from fleetmark.record.diagnosis.table import BENCHMARK, title
from fleetmark.record.figures import Figures
from fleetmark.record.figures.pairs import peer

BETTER_PAIRS = 0.75  # quantile over a host's pairs that one or two slow partners hardly change
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
    measured: Figures,
    hosts: Sequence[str],
    groups: Sequence[Cohort],
    known: shared.Known | None = None,
    least: Mapping[str, float] | None = None,
) -> tuple[list[Finding], list[Message], int]:
    """Return slow borders, groups, nodes and links, notes on parts that cannot be evaluated, and the number of
    evaluated values.

    ``least``: the smallest relevant deficit by class of metrics ("": every class).
    """
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
        wanted = (least or {}).get(benchmark["class"], (least or {}).get(""))
        deficit = outliers.LARGE if wanted is None else wanted
        borders, lost = _borders(pairs, hosts, known.labels if known else {}, benchmark)
        slower, group_losses = _groups(
            pairs.assign(value=pairs["value"] + lost), hosts, kinds, known, benchmark, deficit
        )
        lost += group_losses
        findings += [*(border for border in borders if border.deficit >= (wanted or 0.0)), *slower]
        corrected = pairs[["a", "b", "value"]].assign(value=pairs["value"] + lost)
        nodes, slow = links.judge(corrected, len(hosts), deficit)
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


def _groups(
    pairs: pd.DataFrame,
    hosts: Sequence[str],
    kinds: Mapping[str, str],
    known: shared.Known | None,
    benchmark: dict[str, str],
    deficit: float,
) -> tuple[list[Finding], np.ndarray]:
    """Return the groups of hosts of a kind that are slow even with their better partners, and the loss of each pair.

    The loss of a pair counts once, even if both of its hosts are in the group, because the slower host limits the pair.
    """
    a, b = pairs["a"].to_numpy(np.int64), pairs["b"].to_numpy(np.int64)
    values = pairs["value"].to_numpy(np.float64)
    lost, findings = np.zeros(len(values)), []
    by_host = pd.Series(np.tile(values, 2)).groupby(np.concatenate([a, b]))
    levels = by_host.quantile(BETTER_PAIRS)[by_host.size() >= links.PARTNERS].reindex(range(len(hosts))).to_numpy()
    sign = -1.0 if benchmark["better"] == Better.LOWER else 1.0
    for kind in dict.fromkeys(kinds.values()) if known else ():
        numbers = np.array([n for n, host in enumerate(hosts) if kinds.get(host) == kind])
        members = [hosts[n] for n in numbers]
        candidates = known.traits(members) if known else []
        for group in traits.slower_groups(levels[None, numbers], candidates, np.array([deficit])):
            inside = np.isin(np.stack([a, b]), numbers[group.members]).sum(axis=0)
            rest = values + lost
            for ends in (1, 2):
                chosen = inside == ends
                if chosen.any() and (inside == 0).any():
                    lost[chosen] += max(0.0, float(np.median(rest[inside == 0]) - np.median(rest[chosen])))
            findings.append(
                shared.finding(
                    group,
                    levels[numbers],
                    lambda level: float(np.exp(sign * level)),
                    benchmark,
                    kind,
                    members,
                    candidates,
                )
            )
    return findings, lost


def _borders(
    pairs: pd.DataFrame, hosts: Sequence[str], labels: Mapping[str, Mapping[str, str]], benchmark: Mapping[str, str]
) -> tuple[list[Finding], np.ndarray]:
    """Return the slow borders and uplinks of places, and the loss of each pair there as a logarithm.

    Labels with few values come first, because a border between sites is also a border between racks.
    """
    a, b = pairs["a"].to_numpy(np.int64), pairs["b"].to_numpy(np.int64)
    values = pairs["value"].to_numpy(np.float64)
    lost = np.zeros(len(values))
    findings = []
    sign = -1.0 if benchmark["better"] == Better.LOWER else 1.0
    named = {label: [str(labels.get(host, {}).get(label) or "") for host in hosts] for label in places.NAMES}
    for label, texts in sorted(named.items(), key=lambda item: len({*item[1]})):
        names = sorted({*texts} - {""})
        place = np.array([names.index(text) if text else -1 for text in texts])
        for border in places.slow_borders(a, b, values + lost, place, two=label not in places.APART):
            lost[border.pairs] += border.shift
            ends = [names[n] for n in border.places]
            across = np.union1d(a[border.pairs], b[border.pairs])
            findings.append(
                Finding(
                    Kind.BORDER,
                    "",
                    benchmark,
                    deficit=float(-np.expm1(-border.shift)),
                    value=float(np.exp(sign * (border.level - border.shift))),
                    expected=float(np.exp(sign * border.level)),
                    n=len(border.pairs),
                    z=border.z,
                    members=tuple(hosts[int(h)] for h in across),
                    because=((label, " to ".join(ends), ""),),
                    uplink=len(ends) == 1,
                )
            )
    return findings, lost
