"""What machines on record measured, read out of many Parquet files in little memory: numbers, and codes for names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status

KEY = (*schema.KEY, "better", "class")  # files of several versions may differ in what they say of a metric
PAIRS = "pairs"  # the subject of what a host measured against others of its side
_BATCH = 1 << 20
_MOST = 1 << 62
_MEND = "for a campaign `fleetmark parse` makes it anew from raw; import a table again"

Codes = npt.NDArray[np.int64]


class DamagedFileError(FleetmarkError):
    """The measurements of one ``campaign`` cannot be read."""

    def __init__(self, campaign: str, why: str) -> None:
        self.campaign = campaign
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Readings:
    """One row per value that passed: ``record`` (place in the list asked for), ``key`` (place in ``keys``) and
    the natural ``log`` of the value. ``keys`` has the columns KEY. ``left_out``: (workload, case, metric, why) to how
    many values.
    """

    record: Codes
    key: Codes
    log: npt.NDArray[np.float64]
    keys: pd.DataFrame
    left_out: Mapping[tuple[str, str, str, str], int]


def read(files: Mapping[str, Path], records: Sequence[tuple[str, str]], *, headlines: bool = True) -> Readings:
    """The readings of ``records`` (campaign, host), of headline metrics or of all; ``files``: campaign to its file.

    Raises DamagedFileError for a file that is no whole Parquet file or lacks a column that nothing goes without.
    """
    keys: dict[tuple[str, ...], int] = {}
    left_out: Counter[tuple[str, str, str, str]] = Counter()
    parts = []
    for campaign, path in files.items():
        place = {host: n for n, (c, host) in enumerate(records) if c == campaign}
        try:
            there = set(pq.read_schema(path).names)
            if lacking := sorted(schema.NEEDED - there):
                raise DamagedFileError(campaign, f"{path}: lacks the columns {', '.join(lacking)}; {_MEND}")
            text = [c for c in (*KEY, "host", "status", "members") if c in there]
            with pq.ParquetFile(path, read_dictionary=text) as file:
                for batch in file.iter_batches(_BATCH, columns=[*text, "headline", "value"]):
                    parts.append(_part(batch, place, keys, left_out, headlines))
        except (pa.ArrowException, OSError) as error:
            why = (str(error).splitlines() or [""])[0]
            raise DamagedFileError(campaign, f"{path}: no whole Parquet file ({why}); {_MEND}") from error
    record, key, log = (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else _nothing()
    return Readings(record, key, log, pd.DataFrame(list(keys), columns=list(KEY)), left_out)


def _nothing() -> tuple[Codes, Codes, npt.NDArray[np.float64]]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


def _part(
    batch: pa.RecordBatch,
    place: Mapping[str, int],
    keys: dict[tuple[str, ...], int],
    left_out: Counter[tuple[str, str, str, str]],
    headlines: bool,
) -> tuple[Codes, Codes, npt.NDArray[np.float64]]:
    hosts, names = _coded(batch, "host")
    record = np.array([place.get(n, -1) for n in names] or [-1])[hosts]
    better, ways = _coded(batch, "better")
    described = np.array([w == Better.NONE for w in ways] or [False])[better]
    chosen = (record >= 0) & ~described
    if headlines:
        chosen &= batch.column("headline").fill_null(False).to_numpy(zero_copy_only=False)
    batch, record = batch.filter(pa.array(chosen)), record[chosen]
    batch, record = _own_pairs(batch, record, place)
    batch, record = _own_members(batch, record, place, left_out)
    value = batch.column("value").to_numpy(zero_copy_only=False)
    code, tuples = _keys(batch)
    status, words = _coded(batch, "status")
    passed = np.array([w == Status.PASSED for w in words] or [False])[status]
    good = passed & (value > 0)
    for bad, n in Counter(zip(code[~good].tolist(), status[~good].tolist(), strict=True)).items():
        why = words[bad[1]] if words[bad[1]] != Status.PASSED else "zero or negative"
        left_out[(*tuples[bad[0]][:3], why)] += n
    number = np.array([keys.setdefault(t, len(keys)) for t in tuples] or [0])
    return record[good], number[code[good]], np.log(value[good])


def _coded(batch: pa.RecordBatch, name: str) -> tuple[Codes, list[str]]:
    """A column of text as codes and what they stand for: its default where an older file has nothing."""
    default = str(schema.DEFAULTS.get(name, ""))
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), [default]
    column: Any = batch.column(name)
    codes = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [*(word or default for word in column.dictionary.to_pylist()), default]


def _own_pairs(batch: pa.RecordBatch, record: Codes, place: Mapping[str, int]) -> tuple[pa.RecordBatch, Codes]:
    """Without what was measured against hosts of another side; a pair counts for the host it begins with."""
    subject, names = _coded(batch, "subject")
    pairs = np.array([">" in n for n in names] or [False])[subject]
    if not pairs.any():
        return batch, record
    host, hosts = _coded(batch, "host")
    kept = {
        (h, s): names[s].startswith(f"{hosts[h]}>") and names[s].removeprefix(f"{hosts[h]}>") in place
        for h, s in set(zip(host[pairs].tolist(), subject[pairs].tolist(), strict=True))
    }
    keep = ~pairs
    keep[pairs] = [kept[p] for p in zip(host[pairs].tolist(), subject[pairs].tolist(), strict=True)]
    return batch.filter(pa.array(keep)), record[keep]


def _own_members(
    batch: pa.RecordBatch, record: Codes, place: Mapping[str, int], left_out: Counter[tuple[str, str, str, str]]
) -> tuple[pa.RecordBatch, Codes]:
    """Without runs that hosts of another side took part in; the host that led a run speaks for all its members."""
    members, texts = _coded(batch, "members")
    own = np.array([not text or set(json.loads(text)) <= place.keys() for text in texts])[members]
    if own.all():
        return batch, record
    shared = [_coded(batch.filter(pa.array(~own)), name) for name in ("workload", "case", "metric")]
    for codes in zip(*(column.tolist() for column, _ in shared), strict=True):
        workload, case, metric = (words[code] for code, (_, words) in zip(codes, shared, strict=True))
        left_out[workload, case, metric, "shared with hosts of another side"] += 1
    return batch.filter(pa.array(own)), record[own]


def _keys(batch: pa.RecordBatch) -> tuple[Codes, list[tuple[str, ...]]]:
    """Each row's key as a code, and the keys."""
    code = np.zeros(batch.num_rows, np.int64)
    columns, size = [], 1
    for name in KEY:
        part, words = _coded(batch, name)
        if name == "subject":
            words = [PAIRS if ">" in w else w for w in words]
        if size * len(words) > _MOST:
            code, seen = pd.factorize(code)
            size = len(seen)
        code, size = code * len(words) + part, size * len(words)
        columns.append((part, words))
    numbers, first = pd.factorize(code)
    where = np.zeros(len(first), np.int64)
    where[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # a row of each key
    return numbers, [tuple(words[part[w]] for part, words in columns) for w in where.tolist()]


def means(found: Readings, heavy_tailed: Sequence[str]) -> pd.DataFrame:
    """``record``, ``key``, ``n``, ``mean``: the mean of the ``n`` logs that a record has of a key; for ``heavy_tailed``
    classes the median.
    """
    count = len(found.keys)
    group = found.record * count + found.key
    heavy = found.keys["class"].isin(list(heavy_tailed)).to_numpy()
    each = np.bincount(group)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(group, weights=found.log) / each
    rows = heavy[found.key]
    if rows.any():
        groups, values = group[rows], found.log[rows]
        order = np.lexsort((values, groups))
        groups, values = groups[order], values[order]
        first = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        n = np.diff(np.r_[first, len(groups)])
        mean[groups[first]] = (values[first + (n - 1) // 2] + values[first + n // 2]) / 2
    there = np.flatnonzero(each)
    return pd.DataFrame({"record": there // count, "key": there % count, "n": each[there], "mean": mean[there]})
