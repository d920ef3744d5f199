"""All hosts' figures as compact JSON within the page, for the tables that a reader opens per metric."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from reports.campaign.deviation import title
from reports.campaign.rows import Rows
from reports.campaign.view import View, of_metrics
from reports.kit import format as fmt

Places = npt.NDArray[np.int64]

MOST = 5_200_000  # characters, so that the whole page stays below 6 MB
_A_FIGURE, _A_SPREAD = 7, 16  # approximate characters of a figure, without and with its interval


@dataclass(frozen=True, slots=True)
class Embedded:
    """The embedded figures.

    ``json``: hosts, their sides, and the figures of each metric in the order of the hosts. ``numbers``: metric to its
    position there. ``left_out``: number of metrics that did not fit.
    """

    json: str
    numbers: dict[Metric, int]
    left_out: int


def embedded(view: View) -> Embedded:
    """Return the figures of ``view.merged``, headlines first, as many as fit."""
    spreads = len(view.of_merged) * _A_SPREAD <= MOST
    room = MOST // (_A_SPREAD if spreads else _A_FIGURE)
    places = {h.name: i for i, h in enumerate(view.hosts)}
    headline = {Metric(*columns): first for *columns, first in view.of_merged.distinct(*METRIC, "headline")}
    listed = sorted(headline, key=lambda metric: not headline[metric])
    metrics = dict.fromkeys(listed[: room // max(1, len(places))], "")
    for part in view.of_merged:
        for metric, rows, shown in view.by_metric(of_metrics(part, metrics)):
            where = np.array([places[host] for host in rows["host"].tolist()])
            metrics[metric] = _metric(metric, rows, where, shown, len(places), spreads=spreads)
    head = {
        "hosts": [fmt.clean(h.name) for h in view.hosts],
        "sides": [view.generations.index(h.generation or "") for h in view.hosts],
        "titles": [str(view.title_of(g)) for g in view.generations],
    }
    texts = ",".join(metrics.values())
    text = f'{{{json.dumps(head, ensure_ascii=False, separators=(",", ":"))[1:-1]},"metrics":[{texts}]}}'
    return Embedded(_inert(text), {metric: n for n, metric in enumerate(metrics)}, len(listed) - len(metrics))


def _metric(metric: Metric, rows: Rows, where: Places, shown: fmt.Shown, size: int, *, spreads: bool) -> str:
    """Return one metric as JSON: title, unit with its size in base units, decimals, and columns.

    The columns are the value, the distances to its lowest and highest value in units of the last digit, and repeats.
    """
    about = {
        "t": title(metric),
        "u": shown.unit,
        "f": 1 / shown.factor,
        "b": metric.unit,
        "d": shown.decimals,
    }
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))[:-1]
    values = rows["value"]
    text += f',"v":[{",".join(_numbers(values, where, size, shown))}]'
    for name, column in (("l", "lo"), ("h", "hi")) if spreads else ():
        text += f',"{name}":[{_steps(rows[column], values, where, size, shown)}]'
    counts = rows["n"].tolist()
    return text + f',"n":{json.dumps(counts[0] if len(set(counts)) == 1 else _spread(counts, where, size))}}}'


def _numbers(column: npt.NDArray[np.float64], where: Places, size: int, shown: fmt.Shown) -> list[str]:
    """Return each host's figure in the unit shown, with the column's decimals; ``null`` if missing."""
    values = np.full(size, math.nan)
    values[where] = column * shown.factor
    texts = (f"%.{shown.decimals}f," * size % tuple(values.tolist())).split(",")[:size]
    for i in np.flatnonzero(~np.isfinite(values)):
        texts[i] = "null"
    for i in np.flatnonzero((np.abs(values) < 0.5 * 10.0**-shown.decimals) & (values != 0)):
        texts[i] = f"{values[i]:.2g}"  # a small figure must not look like 0
    return texts


def _steps(
    ends: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    where: Places,
    size: int,
    shown: fmt.Shown,
) -> str:
    """Return the distance from each host's value to one end of its spread, both rounded, in units of the last digit."""
    unit = 10.0**shown.decimals
    steps = np.full(size, math.nan)
    steps[where] = np.round(ends * shown.factor * unit) - np.round(values * shown.factor * unit)
    known = np.isfinite(steps)
    text = ("%d," * size % tuple(np.where(known, steps, 0).astype(np.int64).tolist()))[:-1]
    if known.all():
        return text
    texts = text.split(",")
    return ",".join(text if is_known else "null" for text, is_known in zip(texts, known.tolist(), strict=True))


def _spread(values: Sequence[int], where: Places, size: int) -> list[int | None]:
    spread: list[int | None] = [None] * size
    for i, value in zip(where.tolist(), values, strict=True):
        spread[i] = value
    return spread


def _inert(text: str) -> str:
    """Escape JSON so that it cannot end the script element around it."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
