"""Charts as Vega-Lite specifications, rendered to SVG that takes its text colour from the page around it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert

from fleetmark.facts import Facts
from fleetmark.results import HostInfo
from reports import format as fmt

# Okabe & Ito's colour-blind safe set, those first that stand out on white and on near-black alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
MANY_ROWS = 24  # above this, strips show generations instead of hosts
MANY_LINES = 12  # above this, lines show generations instead of hosts
MANY_CELLS = 40  # hosts above which a matrix of pairs is no longer drawn
_WIDTH = 400

Spec = dict[str, Any]
Point = tuple[float, float, float, float]  # x, y, and the range of y


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure: its heading, what a reader must know to read it, and the SVG."""

    title: str
    note: str
    svg: str


def to_svg(spec: Spec, number: int) -> str:
    """Render ``spec``; ``number`` makes the ids of this SVG differ from those of its neighbours on the page."""
    svg: str = vl_convert.vegalite_to_svg(
        {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **_STYLE, **spec}
    )
    for name in set(re.findall(r' id="([^"]+)"', svg)):
        svg = svg.replace(f' id="{name}"', f' id="c{number}-{name}"').replace(f"#{name})", f"#c{number}-{name})")
    return svg


_STYLE: Spec = {
    "background": "transparent",
    "padding": 4,
    "config": {
        "aria": False,  # the figure's caption speaks; a label per dot would only be noise
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {
            **{f"{part}Color": "currentColor" for part in ("label", "title", "grid", "tick", "domain")},
            "gridOpacity": 0.13,
            "domainOpacity": 0.4,
            "tickOpacity": 0.4,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelLimit": 125,
        },
        "legend": {
            "labelColor": "currentColor",
            "titleColor": "currentColor",
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelLimit": 125,
        },
        "text": {"color": "currentColor", "fontSize": 11},
    },
}


def warm() -> None:
    """Start the chart engine ahead of the first chart; it takes half a second."""
    to_svg({"mark": "point", "data": {"values": []}}, 0)


def colour_of(generations: Iterable[str]) -> dict[str, str]:
    """A colour per generation, in their order."""
    return {g: COLOURS[i % len(COLOURS)] for i, g in enumerate(generations)}


# --- one figure, host by host ----------------------------------------------------------------------------------------


def strip(
    rows: Sequence[str],
    dots: Sequence[tuple[str, str, float]],
    ticks: Sequence[tuple[str, float]],
    absent: Mapping[str, str],
    colours: Mapping[str, str],
    axis: str,
) -> Spec:
    """Dots along a line per row, with a tick at the median.

    ``dots`` are (row, generation, value), ``ticks`` (row, value), both in the axis's unit; ``absent`` says why a row
    has no dots.
    """
    values = [v for _, _, v in dots] + [v for _, v in ticks]
    y: Spec = {"field": "r", "type": "nominal", "sort": list(rows), "title": None, "scale": {"domain": list(rows)}}
    y |= {"axis": {"grid": True, "ticks": False, "domain": False, "labelPadding": 8}}
    x: Spec = {"field": "v", "type": "quantitative", "title": axis}
    x |= {"scale": {"domain": _domain(values), "nice": False, "zero": False}, "axis": {"tickCount": 5, "grid": False}}
    scale = {"domain": list(colours), "range": list(colours.values())}
    crowd = len(dots) > 40 * len(rows)
    offset: Spec = (
        {"yOffset": {"field": "j", "type": "quantitative", "scale": {"domain": [-0.2, 1.2]}}} if crowd else {}
    )
    return {
        "width": _WIDTH,
        "height": {"step": 64 if crowd else 19},
        "layer": [
            {
                # Golden-ratio steps spread a crowd evenly and always alike.
                "data": {"values": [{"r": r, "g": g, "v": v, "j": i * 0.618 % 1} for i, (r, g, v) in enumerate(dots)]},
                "mark": {"type": "point", "filled": True, "size": 18 if crowd else 34, "opacity": 0.7},
                "encoding": {
                    "x": x,
                    "y": y,
                    **offset,
                    "color": {"field": "g", "type": "nominal", "scale": scale, "legend": None},
                },
            },
            {
                "data": {"values": [{"r": r, "v": v} for r, v in ticks]},
                "mark": {"type": "tick", "thickness": 2, "size": 44 if crowd else 14, "color": "currentColor"},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": [{"r": r, "t": t} for r, t in absent.items()]},
                "mark": {"type": "text", "align": "left", "fontStyle": "italic", "opacity": 0.8, "x": 4},
                "encoding": {"y": y, "text": {"field": "t"}},
            },
        ],
    }


def _domain(values: Sequence[float]) -> list[float]:
    """Around all values, and at least 2% to both sides of their middle: noise must not look like a difference."""
    if not values:
        return [0.0, 1.0]
    lo, hi = min(values), max(values)
    room = max((hi - lo) * 0.06, (abs(lo + hi) * 0.02 - (hi - lo)) / 2, 0.0)
    return [lo - room, hi + room] if hi > lo or room > 0 else [lo - 1, hi + 1]


# --- a figure against a size or a depth ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """Points in the axes' units; the range of y is NaN unless the line stands for many hosts."""

    name: str
    colour: str
    dash: int
    points: Sequence[Point]


def curve(
    lines: Sequence[Line], x_title: str, y_title: str, *, size: bool, marks: Sequence[tuple[float, str, str]] = ()
) -> Spec:
    """Lines over a log2 x axis: sizes in bytes, or a count such as a queue depth.

    ``marks`` are (x, text, colour): upright rules, where a cache ends, say.
    """
    xs = sorted({p[0] for line in lines for p in line.points})
    ys = [v for line in lines for p in line.points for v in p[1:] if math.isfinite(v)]
    log = min(ys) > 0 and max(ys) / min(ys) >= 4
    x_axis: Spec = {"values": xs, "format": "d"}
    if size:
        powers = range(math.ceil(math.log2(xs[0])), math.floor(math.log2(xs[-1])) + 1, 4)
        steps = ((30, "GiB"), (20, "MiB"), (10, "KiB"))
        label = " : ".join(f"datum.value >= {2**e} ? datum.value / {2**e} + ' {unit}'" for e, unit in steps)
        x_axis = {"values": [2.0**e for e in powers], "labelExpr": f"{label} : datum.value + ' B'"}
    x: Spec = {"field": "x", "type": "quantitative", "title": x_title, "axis": {**x_axis, "grid": False}}
    x |= {"scale": {"type": "log", "base": 2, "domain": [xs[0], xs[-1]], "nice": False}}
    y: Spec = {"field": "y", "type": "quantitative", "title": y_title, "axis": {"tickCount": 6, "format": ".6~g"}}
    # On a log scale: room above for what is written at the marks.
    room = [min(ys) / 1.15, max(ys) * (1.8 if marks else 1.15)]
    y |= {"scale": {"type": "log", "domain": room, "nice": False} if log else {"zero": True}}

    names = [line.name for line in lines]
    legend: Spec = {"orient": "top", "title": None, "columns": 4}
    legend |= {"symbolType": "stroke", "symbolSize": 220, "symbolOpacity": 1, "symbolStrokeWidth": 2}
    keyed: Spec = {"field": "s", "type": "nominal", "legend": legend if len(lines) > 1 else None}
    colour = {**keyed, "scale": {"domain": names, "range": [line.colour for line in lines]}}
    dash = {**keyed, "scale": {"domain": names, "range": [DASHES[line.dash % len(DASHES)] for line in lines]}}
    points = [{"s": line.name, "x": p[0], "y": p[1]} for line in lines for p in line.points]
    band = [
        {"s": line.name, "x": p[0], "lo": p[2], "hi": p[3]}
        for line in lines
        for p in line.points
        if math.isfinite(p[2]) and p[2] < p[3]
    ]
    dots = {"size": 28, "filled": True} if len(xs) <= 12 else False
    layers: list[Spec] = [
        *_marks(marks, x),
        {
            "data": {"values": band},
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "color": colour},
        },
        {
            "data": {"values": points},
            "mark": {"type": "line", "strokeWidth": 1.6, "point": dots},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
    ]
    return {"width": _WIDTH, "height": 210, "layer": layers}


def _marks(marks: Sequence[tuple[float, str, str]], x: Spec) -> Iterator[Spec]:
    """An upright rule for each mark, and its text at the top, in as many lines as there are colours."""
    rows = len({colour for _, _, colour in marks})
    for i, (at, text, colour) in enumerate(marks):
        here = {"values": [{"x": at, "t": text}]}
        rule = {"type": "rule", "strokeDash": [2, 3], "opacity": 0.7, "color": colour}
        words = {"type": "text", "align": "left", "dx": 3, "fontSize": 10, "y": 6 + 12 * (i % rows), "color": colour}
        yield {"data": here, "mark": rule, "encoding": {"x": x}}
        yield {"data": here, "mark": words, "encoding": {"x": x, "text": {"field": "t"}}}


def caches(hosts: Sequence[HostInfo], colours: Mapping[str, str]) -> list[tuple[float, str, str]]:
    """Where one data cache of each level ends: (bytes, text, colour). A generation's first host speaks for it."""
    seen: dict[str, Facts] = {}
    for host in hosts:
        if host.facts is not None:
            seen.setdefault(host.generation or "", host.facts)
    found = [
        (float(cache.size), f"L{cache.level} {fmt.size(cache.size)}", colours.get(generation, "currentColor"))
        for generation, facts in seen.items()
        for cache in facts.cpu.caches
        if cache.type != "instruction" and cache.size > 0
    ]
    return sorted(set(found))


# --- pairs of hosts --------------------------------------------------------------------------------------------------


def matrix(hosts: Sequence[str], cells: Sequence[tuple[str, str, float, str]], unit: str) -> Spec:
    """A heat map from rows to columns; ``cells`` are (from, to, value, value as text). What is missing stays blank."""
    side = min(_WIDTH, max(26, 44 if len(hosts) <= 12 else 14) * len(hosts))
    values = [c[2] for c in cells]
    lo, hi = min(values), max(values)
    # Below 2% of difference a full colour scale would only paint noise.
    lo = min(lo, hi * 0.98)
    axis = {"type": "nominal", "sort": list(hosts), "scale": {"domain": list(hosts)}}
    ends: Spec = {
        "x": {
            "field": "b",
            **axis,
            "title": "to",
            "axis": {"orient": "top", "labelAngle": -45, "ticks": False, "domain": False, "labelLimit": 90},
        },
        "y": {"field": "a", **axis, "title": "from", "axis": {"ticks": False, "domain": False}},
    }
    legend = {"title": unit, "titleLimit": 0, "gradientLength": min(side, 160)}
    colour: Spec = {
        "field": "v",
        "type": "quantitative",
        "legend": legend,
        "scale": {"scheme": "cividis", "domain": [lo, hi]},
    }
    spec: Spec = {
        "width": side,
        "height": side,
        "data": {"values": [{"a": a, "b": b, "v": v, "t": t} for a, b, v, t in cells]},
        "layer": [
            {
                "mark": {"type": "rect", "tooltip": None},
                "encoding": {
                    **ends,
                    "color": colour,
                },
            }
        ],
    }
    if len(hosts) <= 12:
        ink = {"condition": {"test": f"datum.v > {(lo + hi) / 2}", "value": "#111"}, "value": "#fff"}
        spec["layer"].append(
            {"mark": {"type": "text", "fontSize": 10}, "encoding": {**ends, "text": {"field": "t"}, "color": ink}}
        )
    return spec


def depth(case: str) -> tuple[str, float] | None:
    """A case named after its queue depth, ``randread-4k-qd32``, as (the rest, depth); None for any other."""
    match = re.fullmatch(r"(.*?)-?(?:qd|iodepth)(\d+)(.*)", case)
    return (match[1] + match[3], float(match[2])) if match and int(match[2]) > 0 else None
