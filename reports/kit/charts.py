"""Draw charts as Vega-Lite specifications, rendered to SVG that inherits the text colour of the page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from html import escape
from importlib.util import find_spec
from typing import Any

from fleetmark.base.errors import required
from fleetmark.base.facts import Facts
from fleetmark.base.units import significant
from fleetmark.record.results import HostInfo
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.axes import Spec, round_ticks
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.tabular import Tabular

# The colour-blind safe palette of Okabe and Ito. Colours with contrast on both white and near-black come first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
MANY_ROWS = 24  # maximum hosts for strips by host; above it, strips show generations
MANY_DOTS = 200  # maximum hosts whose dots a strip shows; above it, dots become boxes
MANY_LINES = 12  # maximum hosts for lines by host; above it, lines show generations
MANY_HOVER = 600  # maximum marks that show their values on hover
MANY_CELLS = 40  # maximum hosts in a matrix of pairs
WIDTH = 400

Point = tuple[float, float, float, float]  # x, y, and the range of y


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its heading, a note on how to read it, and the SVG.

    ``spec``: a function that creates the specification of a chart without an SVG, called only by formats that show it.
    ``is_folded``: a page on a screen shows the heading first. ``small``: shown side by side with others. ``lines``: the
    drawing for a terminal. ``table``: the figures behind the chart, for formats without pictures. ``native``: the chart
    of a workbook. ``series``: names from which the reader of a page may choose one; the texts of marks begin with the
    name of their series.
    """

    title: str
    note: str
    svg: str = ""
    _: KW_ONLY
    small: bool = False
    lines: tuple[str, ...] = ()
    table: Tabular | None = None
    spec: Callable[[], Spec] | None = None
    is_folded: bool = False
    native: Native | None = None
    series: tuple[str, ...] = ()


def folded(title: str, note: str, spec: Callable[[], Spec]) -> Chart:
    """Return a chart that a page shows folded. ``spec``: a function that creates its specification when it is drawn."""
    return Chart(title, note, spec=spec, is_folded=True)


# A mark with a description. The description becomes a title, which browsers show on hover, unlike an ARIA label.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # characters that XML forbids
_LABELLED = re.compile(r'<path aria-label="([^"]*)"([^>]*?)/>')
_ROLES = re.compile(r' (?:role="graphics-(?:symbol|object)"|aria-roledescription="[^"]*")')


def _titled(match: re.Match[str]) -> str:
    return f"<path{match[2]}><title>{match[1]}</title></path>"


def can_draw() -> bool:
    """Return whether vl-convert, which draws charts, is installed."""
    return find_spec("vl_convert") is not None


def _legal(part: Any) -> Any:
    """Return the part of a specification without characters that make the engine abort, such as U+FFFE."""
    match part:
        case str():
            return _FORBIDDEN.sub("\ufffd", part)
        case dict():
            return {_legal(key): _legal(value) for key, value in part.items()}
        case list() | tuple():
            return [_legal(value) for value in part]
    return part


def to_svg(spec: Spec, number: int) -> str:
    """Render ``spec`` as SVG; ``number`` makes the ids of this SVG unique on the page.

    Raise FleetmarkError if vl-convert is not installed.
    """
    vl_convert = required("vl_convert", "charts", "a chart")
    full_spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", **_STYLE, **spec}
    svg: str = vl_convert.vegalite_to_svg(_legal(full_spec))
    svg = _ROLES.sub("", _LABELLED.sub(_titled, svg))
    for i, name in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', svg))):  # ids continue across charts
        svg = svg.replace(f' id="{name}"', f' id="c{number}-{i}"').replace(f"#{name})", f"#c{number}-{i})")
    return svg


def titled(svg: str, title: str) -> str:
    """Return the SVG with a title, which screen readers announce."""
    return svg.replace(">", f"><title>{escape(title)}</title>", 1)


_STYLE: Spec = {
    "background": "transparent",
    "padding": 4,
    "config": {
        "aria": False,  # screen readers get the caption; a label per dot would be noise
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
    """Start the chart engine before the first chart, because startup takes half a second."""
    if can_draw():
        to_svg({"mark": "point", "data": {"values": []}}, 0)


def colour_of(generations: Iterable[str]) -> dict[str, str]:
    """Return a colour for each generation."""
    return {g: COLOURS[i % len(COLOURS)] for i, g in enumerate(generations)}


# --- one metric per host ---------------------------------------------------------------------------------------------


def strip(
    rows: Sequence[str],
    dots: Sequence[tuple[str, str, float]],
    ticks: Sequence[tuple[str, float]],
    absent: Mapping[str, str],
    colours: Mapping[str, str],
    axis: str,
) -> Spec:
    """Return a strip plot: dots along a line per row, with ticks.

    ``dots`` are (row, generation, value) and ``ticks`` (row, value), both in the axis's unit. ``absent``: the reason
    why a row has no dots.
    """
    values = [v for _, _, v in dots] + [v for _, v in ticks]
    y: Spec = {"field": "r", "type": "nominal", "sort": list(rows), "title": None, "scale": {"domain": list(rows)}}
    y |= {"axis": {"grid": True, "ticks": False, "domain": False, "labelPadding": 8}}
    x: Spec = {"field": "v", "type": "quantitative", "title": axis}
    x |= {"scale": {"domain": _domain(values), "nice": False, "zero": False}, "axis": {"tickCount": 5, "grid": False}}
    scale = {"domain": list(colours), "range": list(colours.values())}
    crowd = len(dots) > 40 * len(rows)
    legend = {"orient": "top", "title": None} if 1 < len(colours) < len(rows) else None
    offset: Spec = (
        {"yOffset": {"field": "j", "type": "quantitative", "scale": {"domain": [-0.2, 1.2]}}} if crowd else {}
    )
    return {
        "width": WIDTH,
        "height": {"step": 64 if crowd else 19},
        "layer": [
            {
                # Steps of the golden ratio spread the dots evenly and reproducibly.
                "data": {
                    "values": [
                        {"r": r, "g": g, "v": v, "j": i * 0.618 % 1} | on_hover(len(dots), f"{r}: {significant(v, 4)}")
                        for i, (r, g, v) in enumerate(dots)
                    ]
                },
                "mark": {"type": "point", "filled": True, "size": 18 if crowd else 34, "opacity": 0.7}
                | ({"aria": True} if len(dots) <= MANY_HOVER else {}),
                "encoding": {
                    **DESCRIBED[len(dots) <= MANY_HOVER],
                    "x": x,
                    "y": y,
                    **offset,
                    "color": {"field": "g", "type": "nominal", "scale": scale, "legend": legend},
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


DESCRIBED: tuple[Spec, Spec] = ({}, {"description": {"field": "d", "type": "nominal"}})


def on_hover(marks: int, text: str) -> Spec:
    """Return the field with the text that a mark shows on hover; no field if there are very many marks."""
    return {"d": text} if marks <= MANY_HOVER else {}


@dataclass(frozen=True, slots=True)
class Box:
    """A row of a box plot. ``quantiles``: lowest, 5%, 25%, median, 75%, 95% and highest, in the axis's unit."""

    name: str
    generation: str
    quantiles: Sequence[float]


def boxes(rows: Sequence[Box], colours: Mapping[str, str], axis: str) -> Spec:
    """Return box plots: a box over the middle half, whiskers over 90%, a tick at the median, dots at the extremes."""
    names = [row.name for row in rows]
    fields = ("low", "q5", "q25", "q50", "q75", "q95", "high")
    y: Spec = {"field": "r", "type": "nominal", "sort": names, "title": None, "scale": {"domain": names}}
    y |= {"axis": {"grid": True, "ticks": False, "domain": False, "labelPadding": 8}}
    x: Spec = {"type": "quantitative", "title": axis, "axis": {"tickCount": 5, "grid": False}}
    x |= {"scale": {"domain": _domain([v for row in rows for v in row.quantiles]), "nice": False, "zero": False}}
    scale = {"domain": list(colours), "range": list(colours.values())}
    colour = {"color": {"field": "g", "type": "nominal", "scale": scale, "legend": None}}

    def part(mark: Spec, start: str, end: str | None = None) -> Spec:
        ends = {"x": {**x, "field": start}} | ({"x2": {"field": end}} if end else {})
        return {"mark": mark, "encoding": {"y": y, **ends, **({} if mark["type"] == "tick" else colour)}}

    return {
        "width": WIDTH,
        "height": {"step": 26},
        "data": {
            "values": [{"r": r.name, "g": r.generation, **dict(zip(fields, r.quantiles, strict=True))} for r in rows]
        },
        "layer": [
            part({"type": "rule"}, "q5", "q95"),
            part({"type": "bar", "height": 13, "opacity": 0.55}, "q25", "q75"),
            part({"type": "point", "filled": True, "size": 16}, "low"),
            part({"type": "point", "filled": True, "size": 16}, "high"),
            part({"type": "tick", "thickness": 2, "size": 17, "color": "currentColor"}, "q50"),
        ],
    }


def _domain(values: Sequence[float]) -> list[float]:
    """Return an axis range that contains all values and extends at least 2% to both sides of their middle.

    In a narrower range, noise would look like a difference.
    """
    if not values:
        return [0.0, 1.0]
    lo, hi = min(values), max(values)
    room = max((hi - lo) * 0.06, (abs(lo + hi) * 0.02 - (hi - lo)) / 2, 0.0)
    return [lo - room, hi + room] if hi > lo or room > 0 else [lo - 1, hi + 1]


# --- curves ----------------------------------------------------------------------------------------------------------


class Across(Enum):
    """The quantity on the x axis of a curve, which determines its scale and labels."""

    SIZE = "bytes, log2"
    COUNT = "a count such as a queue depth, log2"
    SECONDS = "time from 0"
    LOAD = "another figure; lines go through their points in the order in which these stand"
    SPEED = "a rate above 0, log10"


@dataclass(frozen=True, slots=True)
class Line:
    """A line with points in the axes' units. The range of y is NaN unless the line represents several hosts."""

    name: str
    colour: str
    dash: int
    points: Sequence[Point]


def curve(
    lines: Sequence[Line], x_title: str, y_title: str, across: Across, marks: Sequence[tuple[float, str, str]] = ()
) -> Spec:
    """Return lines over a common x axis. ``marks``: (x, text, colour) of vertical rules, such as cache sizes."""
    xs = sorted({p[0] for line in lines for p in line.points})
    ys = [v for line in lines for p in line.points for v in p[1:] if math.isfinite(v)]
    log = min(ys) > 0 and max(ys) / min(ys) >= 4
    x: Spec = {"field": "x", "type": "quantitative", "title": x_title, **_x_scale(xs, across)}
    y: Spec = {"field": "y", "type": "quantitative", "title": y_title, "axis": {"tickCount": 6, "format": ".6~g"}}
    # On a log scale, leave room above for the text of the marks.
    room = [min(ys) / 1.15, max(ys) * (1.8 if marks else 1.15)]
    close = across is Across.SECONDS and max(ys) - min(ys) < 0.5 * max(ys)  # so that a 5% drop in clock is visible
    scale: Spec = {"domain": _domain(ys), "nice": False, "zero": False} if close else {"zero": True}
    y |= {"scale": {"type": "log", "domain": room, "nice": False} if log else scale}

    names = [line.name for line in lines]
    legend: Spec = {"orient": "top", "title": None, "columns": 4}
    legend |= {"symbolType": "stroke", "symbolSize": 220, "symbolOpacity": 1, "symbolStrokeWidth": 2}
    keyed: Spec = {"field": "s", "type": "nominal", "legend": legend if len(lines) > 1 else None}
    colour = {**keyed, "scale": {"domain": names, "range": [line.colour for line in lines]}}
    dash = {**keyed, "scale": {"domain": names, "range": [DASHES[line.dash % len(DASHES)] for line in lines]}}
    number = sum(len(line.points) for line in lines)
    points = [
        {"s": line.name, "x": p[0], "y": p[1], "i": i} | on_hover(number, f"{line.name}: {_at(p, across)}")
        for line in lines
        for i, p in enumerate(line.points)
    ]
    in_order = {"order": {"field": "i", "type": "quantitative"}} if across is Across.LOAD else {}
    band = [
        {"s": line.name, "x": p[0], "lo": p[2], "hi": p[3]}
        for line in lines
        for p in line.points
        if math.isfinite(p[2]) and p[2] < p[3]
    ]
    few = len(xs) <= 12 or across in (Across.LOAD, Across.SPEED)
    dots = {"size": 28, "filled": True} if few else False
    layers: list[Spec] = [
        *_marks(marks, x, xs),
        {
            "data": {"values": band},
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"x": x, "y": {**y, "field": "lo"}, "y2": {"field": "hi"}, "color": colour},
        },
        {
            "data": {"values": points},
            "mark": {"type": "line", "strokeWidth": 1.6, "point": dots},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, **in_order},
        },
    ]
    if number <= MANY_HOVER:  # the hover area is larger than the visible mark
        touched = {"type": "point", "filled": True, "size": 90, "opacity": 0, "aria": True}
        encoding = {"x": x, "y": y, **DESCRIBED[True]}
        layers.append({"data": {"values": points}, "mark": touched, "encoding": encoding})
    return {"width": WIDTH, "height": 210, "layer": layers}


def _at(point: Point, across: Across) -> str:
    """Return a point as text: its y, and x in parentheses."""
    x = fmt.size(point[0]) if across is Across.SIZE else significant(point[0], 4)
    return f"{significant(point[1], 4)} ({x})"


def _x_scale(xs: Sequence[float], across: Across) -> Spec:
    """Return the scale and the axis of x."""
    axis: Spec
    if across is Across.LOAD:
        return {"scale": {"zero": True}, "axis": {"tickCount": 6, "format": ".6~g", "grid": False}}
    if across is Across.SPEED:
        low, high = xs[0] / 1.1, xs[-1] * 1.1
        axis = {"values": round_ticks(low, high), "format": ".6~g", "grid": False}
        return {"scale": {"type": "log", "domain": [low, high], "nice": False}, "axis": axis}
    if across is Across.SECONDS:
        return {"scale": {"domain": [0, xs[-1]], "nice": False}, "axis": {"tickCount": 6, "grid": False}}
    axis = {"values": list(xs), "format": "d"}
    if across is Across.SIZE:
        powers = range(math.ceil(math.log2(xs[0])), math.floor(math.log2(xs[-1])) + 1, 4)
        steps = ((30, "GiB"), (20, "MiB"), (10, "KiB"))
        label = " : ".join(f"datum.value >= {2**e} ? datum.value / {2**e} + ' {unit}'" for e, unit in steps)
        axis = {"values": [2.0**e for e in powers], "labelExpr": f"{label} : datum.value + ' B'"}
    scale = {"type": "log", "base": 2, "domain": [xs[0], xs[-1]], "nice": False}
    return {"scale": scale, "axis": {**axis, "grid": False}}


def _marks(marks: Sequence[tuple[float, str, str]], x: Spec, xs: Sequence[float]) -> Iterator[Spec]:
    """Yield a vertical rule for each mark, with its text at the top in the first line that avoids an overlap."""
    ends: list[float] = []  # the end of the last text of each line, in px
    span = math.log2(xs[-1] / xs[0]) if xs and xs[0] > 0 and xs[-1] > xs[0] else 1.0
    for position, text, colour in sorted(marks):
        begins = WIDTH * math.log2(position / xs[0]) / span if xs and xs[0] > 0 else 0.0
        line = next((n for n, end in enumerate(ends) if end <= begins), len(ends))
        ends[line:] = [begins + 6.2 * len(text) + 8, *ends[line + 1 :]]
        data = {"values": [{"x": position, "t": text}]}
        rule = {"type": "rule", "strokeDash": [2, 3], "opacity": 0.7, "color": colour}
        words = {"type": "text", "align": "left", "dx": 3, "fontSize": 10, "y": 6 + 12 * line, "color": colour}
        yield {"data": data, "mark": rule, "encoding": {"x": x}}
        yield {"data": data, "mark": words, "encoding": {"x": x, "text": {"field": "t"}}}


def caches(hosts: Sequence[HostInfo], colours: Mapping[str, str]) -> list[tuple[float, str, str]]:
    """Return (bytes, text, colour) for one data cache per level, from the first host of each generation."""
    facts_of: dict[str, Facts] = {}
    for host in hosts:
        if host.facts is not None:
            facts_of.setdefault(host.generation or "", host.facts)
    ends = [
        (float(cache.size), f"L{cache.level} {fmt.size(cache.size)}", colours.get(generation, "currentColor"))
        for generation, facts in facts_of.items()
        for cache in facts.cpu.caches
        if cache.type != "instruction" and cache.size > 0
    ]
    return sorted(set(ends))


# --- pairs of hosts --------------------------------------------------------------------------------------------------


def _ordinal(names: Sequence[str]) -> Spec:
    return {"type": "nominal", "sort": list(names), "scale": {"domain": list(names)}}


def matrix(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[tuple[str, str, float, str]],
    legend: str,
    axis_titles: tuple[str, str],
    unit: str,
) -> Spec:
    """Return a heat map from rows to columns. Missing cells stay blank.

    ``cells``: (from, to, deviation in percent, text). The text is the value in ``unit``, optionally with another figure
    on a second line. ``legend``: the reference value of the deviation. ``axis_titles``: the titles of rows and columns.
    """
    count = max(len(rows), len(columns))
    step = min(WIDTH / count, max(26, 44 if count <= 12 else 14))
    width, height = step * len(columns), step * len(rows)
    # The colour scale covers at least 5%, so that noise gets no colour.
    limit = max([5.0, *(abs(c[2]) for c in cells)])
    y_axis = {"ticks": False, "domain": False, "titlePadding": 14}  # page fonts are wider than the engine's font
    ends: Spec = {
        "x": {
            "field": "b",
            **_ordinal(columns),
            "title": axis_titles[1],
            "axis": {"orient": "top", "labelAngle": -45, "ticks": False, "domain": False, "labelLimit": 90},
        },
        "y": {"field": "a", **_ordinal(rows), "title": axis_titles[0], "axis": y_axis},
    }
    colour: Spec = {
        "field": "v",
        "type": "quantitative",
        "legend": {"title": legend, "titleLimit": 0, "orient": "bottom", "gradientLength": min(max(width, 60), 200)},
        "scale": {"domain": [-limit, 0, limit], "range": [COLOURS[1], "#F2F2F2", COLOURS[0]]},
    }
    data = [
        {"a": a, "b": b, "v": v, "t": t}
        | on_hover(len(cells), f"{a} → {b}: {_with_unit(t, unit)} ({fmt.change(v / 100)})")
        for a, b, v, t in cells
    ]
    hover = len(cells) <= MANY_HOVER
    spec: Spec = {
        "width": width,
        "height": height,
        # Leave room for the legend's title, because browser fonts are wider than the engine's font.
        "padding": {"left": 4, "top": 4, "bottom": 4, "right": 4 + len(legend)},
        "data": {"values": data},
        "layer": [
            {
                "mark": {"type": "rect", "tooltip": None} | ({"aria": True} if hover else {}),
                "encoding": {**ends, **DESCRIBED[hover], "color": colour},
            }
        ],
    }
    if count <= 12:
        ink = {"condition": {"test": f"abs(datum.v) > {0.75 * limit}", "value": "#fff"}, "value": "#111"}
        second = any("\n" in c[3] for c in cells)
        text = {"type": "text", "fontSize": 10} | ({"lineBreak": "\n", "dy": -6} if second else {})
        spec["layer"].append({"mark": text, "encoding": {**ends, "text": {"field": "t"}, "color": ink}})
    return spec


def _with_unit(text: str, unit: str) -> str:
    """Return the ``text`` of a cell as one line, with the unit after its first figure."""
    first, _, second = text.partition("\n")
    return f"{first} {unit}, {second}" if second else f"{first} {unit}"
