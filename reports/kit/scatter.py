"""Draw the points of several series on two logarithmic axes, with lines through the points that no other one beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.axes import Spec, round_ticks
from fleetmark.reports.kit.charts import DESCRIBED, MANY_HOVER, WIDTH, on_hover

_COLUMNS, _ROWS = 64, 14  # size of a text drawing
_SIGNS = "o^+*x#%&=~"  # signs of the series; more series have no text drawing


@dataclass(frozen=True, slots=True)
class Spot:
    """A point: its position, a descriptive text, and whether no other point of its series beats it."""

    x: float
    y: float
    text: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class Cloud:
    """The points of a series, with its name and colour."""

    name: str
    colour: str
    spots: Sequence[Spot]


def scatter(clouds: Sequence[Cloud], overall: Sequence[Spot], x_title: str, y_title: str) -> Spec:
    """Return the points of all series. Lines join the best points of each; a dashed line joins the best ``overall``."""
    spots = [(cloud, spot) for cloud in clouds for spot in cloud.spots]
    x = _axis("x", x_title, [spot.x for _, spot in spots]) | {"field": "x"}
    y = _axis("y", y_title, [spot.y for _, spot in spots]) | {"field": "y"}
    names = [cloud.name for cloud in clouds]
    scale = {"domain": names, "range": [cloud.colour for cloud in clouds]}
    legend: Spec = {
        "orient": "top",
        "title": None,
        "columns": 3,
        "columnPadding": 30,
        "symbolOpacity": 1,
        "labelLimit": 260,
    }
    colour = {"field": "s", "type": "nominal", "scale": scale, "legend": legend if len(names) > 1 else None}
    shape = {"field": "s", "type": "nominal", "scale": {"domain": names}, "legend": None}
    hover = len(spots) <= MANY_HOVER
    points = [
        {"s": cloud.name, "x": spot.x, "y": spot.y, "best": spot.is_best}
        | on_hover(len(spots), f"{cloud.name}: {spot.text}")
        for cloud, spot in spots
    ]
    opacity = {"condition": {"test": "datum.best", "value": 0.95}, "value": 0.35}
    order = {"field": "x", "type": "quantitative"}
    line: Spec = {"type": "line", "strokeWidth": 1.6}
    edge: Spec = {"type": "line", "strokeWidth": 5, "opacity": 0.16, "color": "currentColor"}
    joined = [p | {"d": f"{p['s']}:"} for p in points if p["best"]]
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": s.x, "y": s.y} for s in overall]},
            "mark": edge,
            "encoding": {"x": x, "y": y, "order": order},
        },
        {
            "data": {"values": joined},
            "mark": line | ({"aria": True} if hover else {}),
            "encoding": {"x": x, "y": y, "color": colour, "order": order, **DESCRIBED[hover]},
        },
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 40} | ({"aria": True} if hover else {}),
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "opacity": opacity, **DESCRIBED[hover]},
        },
    ]
    return {"width": 1.4 * WIDTH, "height": 300, "layer": layers}


def _axis(name: str, title: str, values: Sequence[float]) -> Spec:
    low, high = min(values) / 1.15, max(values) * 1.15
    axis = {"values": round_ticks(low, high), "format": ".6~g", "grid": name == "y"}
    return {
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": axis,
    }


def drawing(clouds: Sequence[Cloud], x_title: str, y_title: str) -> tuple[str, ...]:
    """Return the points as lines of text for a terminal: a sign for each series, and a legend below.

    Return no lines if there are more series than signs.
    """
    if len(clouds) > len(_SIGNS):
        return ()
    spots = [(n, spot) for n, cloud in enumerate(clouds) for spot in cloud.spots]
    xs, ys = [math.log(s.x) for _, s in spots], [math.log(s.y) for _, s in spots]
    grid = [[" "] * _COLUMNS for _ in range(_ROWS)]
    for (n, spot), x, y in sorted(zip(spots, xs, ys, strict=True), key=lambda item: item[0][1].is_best):
        grid[_place(ys, y, _ROWS)][_place(xs, x, _COLUMNS)] = _SIGNS[n] if spot.is_best else "."
    ends = [fmt.figure(math.exp(end)) for end in (max(ys), min(ys))]
    room = max(map(len, ends))
    labels = [ends[0], *[""] * (_ROWS - 2), ends[1]]
    lines = [f"{label:>{room}} |{''.join(row).rstrip()}" for label, row in zip(labels, reversed(grid), strict=True)]
    left, right = (fmt.figure(math.exp(end)) for end in (min(xs), max(xs)))
    lines.append(f"{'':{room}} +{'-' * _COLUMNS}")
    lines.append(f"{'':{room}}  {left}{right:>{_COLUMNS - len(left)}}")
    legend = [f"{_SIGNS[n]} {cloud.name}" for n, cloud in enumerate(clouds)]
    return (y_title, *lines, f"{'':{room}}  {x_title}", *legend)


def _place(values: Sequence[float], value: float, cells: int) -> int:
    low, high = min(values), max(values)
    return round((value - low) / (high - low) * (cells - 1)) if high > low else cells // 2
