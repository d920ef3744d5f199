"""Read the hosts, repeats, raw files and commands that the figures of a comparison come from."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import is_whole
from fleetmark.planner.curves import CURVE
from fleetmark.record.archive import Archive
from fleetmark.record.figures import PAIRS
from fleetmark.record.figures.hosts import HostFigures
from fleetmark.record.sides.titles import title_of
from fleetmark.record.values import PASSED, Values
from fleetmark.record.values.engine import one_of, quoted

MOST_RUNS = 20_000  # maximum number of listed values
_KEY = [*schema.KEY]
_TOLD = ["workload", "case", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRuns:
    """The runs of a benchmark on one ``host``, or on one ``subject`` of it, such as a disk or a pair of hosts.

    ``value``: the host's figure. ``repeats``: the single values. ``files``: the source of each value, which is a raw
    file below the results folder or a position in an imported table. Values are in base units.
    """

    host: str
    subject: str
    value: float
    repeats: tuple[float, ...]
    files: tuple[str, ...]


def chosen(figures: HostFigures, benchmarks: pd.DataFrame, limit: int = MOST_RUNS) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of ``figures`` for the titles of ``benchmarks``, and the titles that exceed ``limit``.

    ``benchmarks``: as in ``planner.comparison.Comparison``. The rows have ``metric``, ``host``, ``value``, ``n`` and
    ``title``. Titles are included in order until their metrics have more than ``limit`` values.
    """
    metrics = figures.metrics[_KEY].reset_index(drop=True)
    metrics = metrics[metrics.set_index(_TOLD).index.isin(benchmarks.set_index(_TOLD).index)]
    pairs = metrics["subject"].str.contains(">", regex=False)
    kinds = metrics.assign(subject=metrics["subject"].where(~pairs, PAIRS))[[n for n in _KEY if n != "standing"]]
    kind = kinds.groupby(list(kinds), sort=False).ngroup()
    first = kinds.groupby(kind).first().to_dict("records")
    named = pd.DataFrame(
        {
            "full": [title_of(b) for b in first],
            "bare": [title_of(b, sized=False) for b in first],
            "size": [float(size) if (size := _size(str(b["labels"]))) else 0.0 for b in first],
        }
    )
    of_metric = named.iloc[kind.to_numpy()].set_index(metrics.index)
    total = figures.rows.groupby("metric")["n"].sum()
    of_metric = of_metric.assign(n=total.reindex(of_metric.index).fillna(0))
    ends = of_metric.groupby("bare")["n"].sum().sort_index().cumsum()
    fits = of_metric["bare"].isin(ends.index[ends <= limit])
    omitted = {*of_metric.loc[~fits, "full"], *of_metric.loc[~fits, "bare"]} & {*benchmarks.index}
    of_metric = of_metric[fits].drop(columns="n")
    counted = figures.rows.loc[figures.rows["metric"].isin(of_metric.index), ["metric", "host", "value", "n"]]
    rows = counted.merge(of_metric, left_on="metric", right_index=True)
    line = rows.groupby(["host", "bare"])["size"]
    number, is_largest = line.transform("nunique"), rows["size"] == line.transform("max")
    by_name = (rows["size"] > 0) & ((number == 1) | (number >= CURVE)) & is_largest
    rows["title"] = rows["full"].where(~by_name, rows["bare"])
    return rows[rows["title"].isin(benchmarks.index)], sorted(map(str, omitted))


def _size(labels: str) -> str:
    size = str(json.loads(labels).get("size") or "")
    return size if is_whole(size.replace(".", "", 1)) else ""


def runs(root: Path, values: Values, figures: HostFigures, rows: pd.DataFrame) -> Iterator[tuple[str, list[HostRuns]]]:
    """Yield each title of ``rows`` (from ``chosen``) with the runs of its hosts. ``root``: the results root."""
    wanted = figures.metrics[_KEY].iloc[sorted(set(rows["metric"]))].reset_index(names="metric_id")
    names = (one_of(name, sorted(set(wanted[name]))) for name in ("workload", "metric"))
    among = " and ".join([f"({PASSED})", *names])
    with values.opened() as database:
        database.register("wanted", wanted.astype(dict.fromkeys(_KEY, object)))
        values_of_rows = database.execute(
            f"select w.metric_id as metric, e.host, e.file, e.value, e.raw from (select * from every where {among}) e "
            f"join wanted w using ({quoted(_KEY)}) order by e.row"
        ).df()
    folders = [_folder(root, source.file) for source in values.sources]
    repeats: dict[tuple[int, str], list[tuple[float, str]]] = {}
    for metric, host, file, value, raw in values_of_rows.itertuples(index=False, name=None):
        place = f"{folders[file]}/{raw}" if raw.startswith("raw/") else f"{folders[file]}: {raw}" if raw else ""
        repeats.setdefault((metric, host), []).append((value, place))
    subjects = figures.metrics["subject"].tolist()
    for title, of_title in rows.groupby("title", sort=True):
        listed = []
        for metric, place, value in of_title[["metric", "host", "value"]].itertuples(index=False, name=None):
            host, subject = str(figures.hosts[place]), str(subjects[metric])
            repeats_of_host = repeats.get((metric, host), [])
            listed.append(
                HostRuns(
                    host=host,
                    subject="" if subject in ("host", "lo") else subject,
                    value=float(value),
                    repeats=tuple(v for v, _ in repeats_of_host),
                    files=tuple(f for _, f in repeats_of_host),
                )
            )
        yield str(title), listed


def _folder(root: Path, file: Path | None) -> str:
    """Return the path of a measurement file's folder below ``root``."""
    if file is None:
        return ""
    try:
        return str(file.resolve().parent.relative_to(root.resolve()))
    except ValueError:
        return str(file.parent)


def command(root: Path, file: str, campaigns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the command that measured the raw ``file`` (a path below ``root``), or that of its campaign.

    ``campaigns``: the command of each campaign by its id.
    """
    campaign, raw, path = file.partition("/raw/")
    if raw:
        archive = Archive(root / campaign)
        # A campaign may have been copied without its raw files.
        with contextlib.suppress(FleetmarkError, ValueError):
            return tuple(archive.step((archive.path / "raw" / path).parent)["argv"])
    return tuple(campaigns.get(campaign.partition(":")[0], ()))
