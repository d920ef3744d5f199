"""Draw a roofline as a Vega-Lite specification: the roofs of machines, and the points below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.reports.kit.axes import Spec
from fleetmark.reports.kit.charts import COLOURS, DESCRIBED, MANY_HOVER, WIDTH, on_hover

_LONG = 300.0  # an axis with at least this ratio of its ends has ticks only at powers of ten


@dataclass(frozen=True, slots=True)
class Dot:
    """A point below a roof: its class, its position, and a text."""

    series: str
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A roof: y is at most the smaller of ``rate`` times x and ``level``, either of which may be infinite.

    ``name``: the name in the legend. ``theory``: the roof is theoretical and drawn beside the measured roof of the same
    name.
    """

    name: str
    rate: float = math.inf
    level: float = math.inf
    theory: bool = False


def roofline(ceilings: Sequence[Ceiling], dots: Sequence[Dot], x_title: str, y_title: str) -> Spec:
    """Return the specification of ceilings, at least one of which is level, and the points below them on log axes."""
    top = max(c.level for c in ceilings if math.isfinite(c.level))
    rates = [c.rate for c in ceilings if math.isfinite(c.rate)]
    if dots:
        low, high = min(d.x for d in dots) / 1.5, max(4.0 * top / max(rates), 1.5 * max(d.x for d in dots))
        bottom = min(d.y for d in dots) / 2
    else:
        low, high = top / max(rates) / 30, 6 * top / min(rates)
        bottom = min(rates) * low
    short = "datum.value < 0.001 ? format(datum.value, '.0e') : format(datum.value, '~g')"  # writes 1e-4 for 0.0001
    x: Spec = {"field": "x", "type": "quantitative", "title": x_title}
    x |= {"axis": {"values": _ticks(low, high), "labelExpr": short}}
    x |= {"scale": {"type": "log", "domain": [low, high], "nice": False}}
    y: Spec = {"field": "y", "type": "quantitative", "title": y_title}
    y |= {"axis": {"values": _ticks(bottom, 1.6 * top)} | ({"format": "~s"} if top > 1e3 else {"labelExpr": short})}
    y |= {"scale": {"type": "log", "domain": [bottom, 1.6 * top], "nice": False}}
    names = list(dict.fromkeys(c.name for c in ceilings if c.name))
    colour = _legend(names) if names else None
    layers = [_ceiling(c, (low, high), (bottom, top), max(rates), {"x": x, "y": y}, colour) for c in ceilings]
    return {"width": 1.4 * WIDTH, "height": 300, "layer": [*layers, *([_dots(dots, x, y)] if dots else [])]}


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, on a short axis also 2 and 5 times these; Vega's default ticks crowd a logarithmic axis."""
    steps = (1,) if high / low >= _LONG else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = (float(f"{step}e{power}") for power in powers for step in steps)
    return [value for value in values if low <= value <= high]


def _legend(names: Sequence[str]) -> Spec:
    return {
        "field": "s",
        "type": "nominal",
        "legend": {
            "orient": "top",
            "title": None,
            "symbolOpacity": 1,
            "labelLimit": 300,
            "columns": 2,
            "columnPadding": 24,
        },
        "scale": {"domain": list(names), "range": [COLOURS[i % len(COLOURS)] for i in range(len(names))]},
    }


def _ceiling(
    c: Ceiling,
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    fastest: float,
    axes: Spec,
    colour: Spec | None,
) -> Spec:
    (low, high), (bottom, top) = x_ends, y_ends
    points = []
    if math.isfinite(c.rate):
        start = max(low, bottom / c.rate)
        points = [(start, c.rate * start), (min(c.level, top) / c.rate, min(c.level, top))]
    if math.isfinite(c.level):
        points += [(c.level / min(c.rate, fastest), c.level), (high, c.level)]
    mark: Spec = {"type": "line", "strokeWidth": 1.8} | ({} if c.name else {"color": "currentColor"})
    if c.theory:
        mark |= {"strokeDash": [5, 4], "strokeWidth": 1.2}
    encoding = axes | ({"color": colour} if c.name and colour else {})
    return {"data": {"values": [{"s": c.name, "x": a, "y": b} for a, b in points]}, "mark": mark, "encoding": encoding}


def _dots(dots: Sequence[Dot], x: Spec, y: Spec) -> Spec:
    names = list(dict.fromkeys(dot.series for dot in dots))
    colour = _legend(names)
    shape = {"field": "s", "type": "nominal", "scale": {"domain": names}, "legend": None}
    values = [{"s": d.series, "x": d.x, "y": d.y} | on_hover(len(dots), f"{d.series} {d.text}") for d in dots]
    hover = len(dots) <= MANY_HOVER
    mark: Spec = {"type": "point", "filled": True, "size": 26, "opacity": 0.75} | ({"aria": True} if hover else {})
    encoding = {"x": x, "y": y, "color": colour, "shape": shape, **DESCRIBED[hover]}
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}
