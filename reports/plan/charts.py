"""Draw the charts of a capacity plan: demand with its band and capacity, cost by year, power by site, sensitivity.

A SKU has the same colour in all charts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.series import figures
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.axes import Spec
from fleetmark.reports.kit.charts import COLOURS, Chart, colour_of
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan.model import PlanView, cost_colours, kind

MOST_CHARTS = 40  # maximum charts of one kind
MOST_BARS = 12  # maximum inputs of a tornado chart
_WIDTH = 440
_LEGEND: Spec = {
    "orient": "top",
    "title": None,
    "columns": 4,
    "symbolOpacity": 1,
    "labelLimit": 260,
    "columnPadding": 30,
}


def demand(v: PlanView, futures: Futures | None, _: Language) -> list[Chart]:
    """Return a chart per workload: demand, planned demand, capacity, and what is served if nothing is bought.

    A band shows demand between the 5% and 95% quantiles of the futures.
    """
    result = []
    for name, workload in list(v.question.workloads.items())[:MOST_CHARTS]:
        rows = v.supply_of(name)
        periods = [fmt.clean(v.question.periods[s.period]) for s in rows]
        lines = [
            _Line(_(message("capacity")), [s.capacity for s in rows], COLOURS[2], [1, 0], 6),
            _Line(_(message("planned for")), [s.planned for s in rows], COLOURS[1], [6, 3], 2),
            _Line(_(message("demand, median")), [s.demand for s in rows], COLOURS[0], [1, 0], 2),
            _Line(_(message("if nothing is bought")), [s.nothing for s in rows], COLOURS[6], [2, 2], 2),
        ]
        band = _band(futures, name)
        note = message("shaded: demand in 5 to 95% of futures") if band else ""
        title = message("{workload}: demand against capacity", workload=fmt.clean(name))
        result.append(Chart(title, note, spec=partial(_lines, periods, lines, band, fmt.clean(workload.unit))))
    return result


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a chart over periods, labelled at its end."""

    name: str
    values: Sequence[float]
    colour: str
    dash: Sequence[int]
    width: int


def _band(futures: Futures | None, workload: str) -> list[tuple[float, float]]:
    if futures is None:
        return []
    rows = futures.table[futures.table["workload"] == workload].sort_values("period")
    band = [(float(lo), float(hi)) for lo, hi in zip(rows["demand_p5"], rows["demand_p95"], strict=True)]
    return band if any(hi > lo for lo, hi in band) else []


def _x(periods: Sequence[str]) -> Spec:
    crowded = sum(map(len, periods)) * 6.5 > _WIDTH - 130  # px for the labels
    axis = {"labelAngle": -45 if crowded else 0, "grid": False, "labelOverlap": True}
    return {"field": "x", "type": "ordinal", "sort": list(periods), "title": None, "axis": axis}


def _lines(periods: Sequence[str], lines: Sequence[_Line], band: Sequence[tuple[float, float]], unit: str) -> Spec:
    """Return lines with their names at their right ends. The first line is wide, so that a line over it is visible."""
    y: Spec = {"field": "y", "type": "quantitative", "title": unit, "scale": {"zero": True}, "axis": {"tickCount": 6}}
    x = _x(periods)
    area = [{"x": period, "lo": lo, "hi": hi} for period, (lo, hi) in zip(periods, band, strict=False)]
    layers: list[Spec] = [
        {
            "data": {"values": area},
            "mark": {"type": "area", "opacity": 0.16, "color": COLOURS[0]},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}},
        }
    ]
    top = max([v for line in lines for v in line.values] + [hi for _, hi in band] or [1.0]) or 1.0
    heights = _apart([line.values[-1] for line in lines], 0.07 * top)
    for line, height in zip(lines, heights, strict=True):
        points = [{"x": period, "y": value} for period, value in zip(periods, line.values, strict=True)]
        mark = {"type": "line", "strokeWidth": line.width, "strokeDash": line.dash, "color": line.colour}
        if line.width > 2:
            mark["opacity"] = 0.45
        data = {"values": points}
        layers.append({"data": data, "mark": mark, "encoding": {"x": x, "y": y}})
        if len(points) == 1:  # no visible line
            layers.append({"data": data, "mark": {"type": "point", "color": line.colour}, "encoding": {"x": x, "y": y}})
        label = {"type": "text", "align": "left", "dx": 8, "color": line.colour, "fontWeight": "bold"}
        data = {"values": [{"x": periods[-1], "y": height, "t": line.name}]}
        layers.append({"data": data, "mark": label, "encoding": {"x": x, "y": y, "text": {"field": "t"}}})
    padding = {"left": 4, "top": 4, "bottom": 4, "right": 28}  # leaves room for fonts with wider names
    return {"width": _WIDTH - 110, "height": 220, "padding": padding, "layer": layers if area else layers[1:]}


def _apart(values: Sequence[float], room: float) -> list[float]:
    """Return heights for labels of ``values``: in the same order, each at least ``room`` above the one below."""
    heights = list(values)
    below = -math.inf
    for place in sorted(range(len(values)), key=lambda n: (values[n], -n)):
        heights[place] = below = max(values[place], below + room)
    return heights


def _bars(
    rows: Sequence[Mapping[str, Any]],
    x: Sequence[str],
    colours: Mapping[str, str],
    unit: str,
    limit: Sequence[float] = (),
) -> Spec:
    """Return bars stacked by kind, each in its colour. ``limit``: a rule across, or a step for each of ``x``."""
    colour = {
        "field": "s",
        "type": "nominal",
        "sort": list(colours),
        "legend": _LEGEND,
        "scale": {"domain": list(colours), "range": list(colours.values())},
    }
    y = {"field": "y", "type": "quantitative", "title": unit, "axis": {"tickCount": 6}}
    order = {"field": "n", "type": "quantitative"}
    layers: list[Spec] = [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "bar"},
            "encoding": {"x": _x(x), "y": y, "color": colour, "order": order},
        }
    ]
    dashed = {"strokeDash": [5, 3], "strokeWidth": 1.6, "color": "currentColor"}
    encoding: Spec = {"y": {"field": "y", "type": "quantitative"}}
    if len(limit) == 1:
        layers.append({"data": {"values": [{"y": limit[0]}]}, "mark": {"type": "rule"} | dashed, "encoding": encoding})
    elif limit:
        steps = [{"x": name, "y": size} for name, size in zip(x, limit, strict=True)]
        mark = {"type": "line", "interpolate": "step"} | dashed
        layers.append({"data": {"values": steps}, "mark": mark, "encoding": encoding | {"x": _x(x)}})
    return {"width": _WIDTH, "height": 200, "layer": layers}


def costs(v: PlanView, _: Language) -> list[Chart]:
    """Return a chart of the cost by year, undiscounted, stacked by kind."""
    scale = _money_scale(v)
    kinds = {name: _(kind(name)) for name in v.costs}
    colours = cost_colours()
    rows = [
        {"x": year, "y": by_year[t] / scale[0], "s": kinds[name], "n": n}
        for n, (name, (by_year, _present)) in enumerate(v.costs.items())
        for t, year in enumerate(v.years)
    ]
    shown = {title: colours[name] for name, title in kinds.items()}
    spec = partial(_bars, rows, v.years, shown, f"{scale[1]}{v.question.currency}")
    return [Chart(message("Cost by year"), message("undiscounted"), spec=spec)]


def _money_scale(v: PlanView) -> tuple[float, str]:
    top = max((sum(c[0][t] for c in v.costs.values()) for t in range(len(v.years))), default=0.0)
    return (1e6, "M ") if top >= 2e6 else (1e3, "k ") if top >= 2e3 else (1.0, "")


def power(v: PlanView, _: Language) -> list[Chart]:
    """Return a chart per site: peak power of its servers by SKU, and its limit."""
    result = []
    stock = v.plan.stock
    colours = colour_of(v.question.skus)
    for name, site in list(v.question.sites.items())[:MOST_CHARTS]:
        here = stock[(stock["site"] == name) & (stock["peak_w"] > 0)]
        if here.empty:
            continue
        sizes = () if site.power_w is None else figures(site.power_w)
        top = max([float(here.groupby("period")["peak_w"].sum().max()), *sizes])
        factor, unit = (1e-6, "MW") if top >= 2e6 else (1e-3, "kW")
        skus = [s for s in v.question.skus if s in set(here["sku"])]
        rows = [
            {
                "x": fmt.clean(v.question.periods[int(r["period"])]),
                "y": r["peak_w"] * factor,
                "s": fmt.clean(r["sku"]),
            }
            | {"n": skus.index(r["sku"])}
            for r in here.to_dict("records")
        ]
        limit = [size * factor for size in sizes]
        periods = [fmt.clean(p) for p in v.question.periods]
        spec = partial(_bars, rows, periods, {fmt.clean(s): colours[s] for s in skus}, unit, limit)
        note = (
            message("all installed servers at their peak; no limit")
            if not limit
            else message("all installed servers at their peak; dashed: the limit")
        )
        result.append(Chart(message("Power at {site}", site=fmt.clean(name)), note, spec=spec))
    return result


def tornado(v: PlanView, effects: Sequence[Effect], _: Language) -> list[Chart]:
    """Return a chart of the inputs with the largest effect on cost, each varied alone over its range."""
    shown = effects[:MOST_BARS]
    ends = [abs(x) for e in shown for x in (e.at_low, e.at_high) if x is not None]
    top = max(ends, default=1.0)
    scale, prefix = (1e6, "M ") if top >= 2e6 else (1e3, "k ") if top >= 2e3 else (1.0, "")
    low, high, none = _(message("input at its low end")), _(message("at its high end")), _(message("no plan"))
    names = [fmt.clean(_(e.name)) for e in shown]
    rows = [
        {"r": name, "x": 0.0 if x is None else x / scale, "s": end, "t": none if x is None else ""}
        for name, e in zip(names, shown, strict=True)
        for end, x in ((low, e.at_low), (high, e.at_high))
    ]
    y: Spec = {"field": "r", "type": "nominal", "sort": names, "title": None}
    y |= {
        "axis": {"ticks": False, "domain": False, "labelLimit": 220, "minExtent": 6.4 * min(36, max(map(len, names)))}
    }
    offset = {"field": "s", "sort": [low, high]}
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": f"{prefix}{v.question.currency}",
        "axis": {"tickCount": 6},
    }
    colour = {
        "field": "s",
        "type": "nominal",
        "scale": {"domain": [low, high], "range": list(COLOURS[:2])},
        "legend": _LEGEND,
    }
    spec: Spec = {
        "width": _WIDTH - 110,
        "height": {"step": 13},
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "bar"},
                "encoding": {"x": x, "y": y, "yOffset": offset, "color": colour},
            },
            {
                "data": {"values": [r for r in rows if r["t"]]},
                "mark": {"type": "text", "align": "left", "dx": 4, "fontStyle": "italic", "baseline": "middle"},
                "encoding": {"x": x, "y": y, "yOffset": offset, "text": {"field": "t"}},
            },
        ],
    }
    note = message("when one input alone moves over its range: 5 to 95%, or ±10% if no range is known")
    return [Chart(message("Change of the present value"), note, spec=lambda: spec)]
