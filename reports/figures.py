"""Which charts a campaign's results give: headline strips, curves over size or queue depth, matrices of pairs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from fleetmark.model import Status
from planner import summary
from planner.curves import CURVE, curve_point
from reports import charts
from reports import format as fmt
from reports.charts import Chart, Line, Spec
from reports.view import Key, View, by_metric, groups, headlines

FEW = 6  # dots
Drawn = tuple[str, str, Spec]  # title, note, specification
_Against = tuple[Key, pd.DataFrame, pd.DataFrame]  # metric, rows per host, rows per generation


def figures(view: View) -> dict[str, list[Chart]]:
    """The charts by kind (strips, curves, depths, pairs); a kind without any is an empty list."""
    found = {"strips": list(_strips(view)), "curves": list(_curves(view)), "depths": list(_depths(view))}
    found["pairs"] = list(_matrices(view))
    number = iter(range(10**6))
    return {
        kind: [Chart(title, note, charts.to_svg(spec, next(number))) for title, note, spec in drawn]
        for kind, drawn in found.items()
    }


def title_of(key: Key) -> str:
    """``stream 64t: triad``."""
    return f"{fmt.clean(key[0])} {fmt.clean(key[1])}: {fmt.point(key[2], key[3], key[4], key[5])}"


def axis_title(metric: str, shown: fmt.Shown, better: str) -> str:
    """``triad, GB/s (higher is better)``."""
    text = ", ".join(p for p in (metric, shown.unit) if p)
    return f"{text} ({fmt.better(better)})" if fmt.better(better) else text


def _strips(view: View) -> Iterator[Drawn]:
    many = len(view.hosts) > charts.MANY_ROWS
    colours = charts.colour_of(view.generations)
    sources = {} if many else _dots(view)
    generational = dict(groups(view.generational, summary.METRIC))
    for key, rows, shown in by_metric(headlines(view.merged)):
        axis = axis_title(fmt.clean(key[2]), shown, rows["better"].iloc[0])
        if many:
            mine = generational[key]
            names = [view.title_of(g) for g in mine["generation"]]
            ticks = list(zip(names, mine["median"] * shown.factor, strict=True))
            own = [view.generation[h] or "" for h in rows["host"]]
            dots = [(view.title_of(g), g, v * shown.factor) for g, v in zip(own, rows["median"], strict=True)]
            yield (
                title_of(key),
                "A dot per host, ticks at the medians.",
                charts.strip(names, dots, ticks, {}, colours, axis),
            )
            continue
        have = set(rows["host"])
        absent = {h.name: view.why_absent(h.name, key) for h in view.hosts if h.name not in have}
        names = [fmt.clean(h.name) for h in view.hosts if absent.get(h.name) != ""]
        dots = [(fmt.clean(h), view.generation[h] or "", v * shown.factor) for h, v in sources[key]]
        ticks = [(fmt.clean(h), v * shown.factor) for h, v in zip(rows["host"], rows["median"], strict=True)]
        if len(dots) < FEW and len(names) == 1:
            continue  # a few dots of one host say nothing that the spread in the table does not
        said = {fmt.clean(name): why for name, why in absent.items() if why}
        over = "repeat" if rows["over"].iloc[0] == "repeats" else "pair of hosts"
        note = f"A dot per {over}, tick{'s' if len(have) > 1 else ''} at the median{'s' if len(have) > 1 else ''}."
        yield title_of(key), note, charts.strip(names, dots, ticks, said, colours, axis)


def _dots(view: View) -> dict[Key, list[tuple[str, float]]]:
    """What stands behind each host's headline median, as (host, value): its repeats, or its pairs' medians."""
    passed = view.results.measurements[view.results.measurements["status"] == Status.PASSED]
    found: dict[Key, list[tuple[str, float]]] = defaultdict(list)
    for frame, value, pairs in ((headlines(passed), "value", False), (headlines(view.stats), "median", True)):
        subject = summary.pair_subjects(frame, view.generation)
        wanted = frame.assign(subject=subject)[(subject != frame["subject"]) == pairs]
        for key, rows in groups(wanted, summary.METRIC):
            found[key] += zip(rows["host"], rows[value], strict=True)
    return found


def _lines(view: View, hosts: pd.DataFrame, generational: pd.DataFrame, factor: float) -> tuple[list[Line], str]:
    """A line per host, or per generation where hosts are many. Both frames carry a column ``x``."""
    colours = charts.colour_of(view.generations)
    if hosts["host"].nunique() > charts.MANY_LINES:
        lines = [
            Line(view.title_of(g), colours[g], i, _points(rows, factor, ("low", "high")))
            for i, ((g,), rows) in enumerate(groups(generational, ["generation"]))
        ]
        return lines, "A line per generation: the median of its hosts; the band reaches from the lowest to the highest."
    lines, kin = [], dict.fromkeys(view.generations, 0)
    for i, ((name,), rows) in enumerate(groups(hosts, ["host"])):
        generation = view.generation[name] or ""
        colour = colours[generation] if len(view.generations) > 1 else charts.COLOURS[i % len(charts.COLOURS)]
        lines.append(Line(fmt.clean(name), colour, kin[generation], _points(rows, factor)))
        kin[generation] += 1
    return lines, "Medians." if len(lines) == 1 else "A line per host, through its medians."


def _points(rows: pd.DataFrame, factor: float, ends: tuple[str, str] | None = None) -> list[charts.Point]:
    scaled = (rows["median"] * factor).tolist()
    blank = [math.nan] * len(rows)
    lows, highs = ((rows[end] * factor).tolist() for end in ends) if ends else (blank, blank)
    return sorted(zip(rows["x"].astype(float).tolist(), scaled, lows, highs, strict=True))


def _against(view: View, name: str, split: Callable[[str], tuple[str, float] | None]) -> Iterator[_Against]:
    """Figures that differ only in a number within column ``name``; ``split`` parts it into the rest and the number."""
    found = {text: part for text in view.merged[name].unique() if (part := split(text)) is not None}
    frames = []
    for frame in (view.merged, view.generational):
        kept = frame[frame[name].isin(list(found))]
        parts = [found[text] for text in kept[name]]
        columns: dict[str, Any] = {name: [rest for rest, _ in parts], "x": [number for _, number in parts]}
        frames.append(kept.assign(**columns))
    generational = dict(groups(frames[1], summary.METRIC))
    for key, rows in groups(frames[0], summary.METRIC):
        yield key, rows, generational[key]


def _curves(view: View) -> Iterator[Drawn]:
    """Every metric measured at CURVE sizes or more (label ``size``), a chart per combination of its other labels."""
    colours = charts.colour_of(view.generations) if len(view.generations) > 1 else {}
    for key, rows, generational in _against(view, "labels", curve_point):
        if rows["x"].nunique() < CURVE:
            continue
        first = rows.iloc[0]
        shown = fmt.fit([(float(rows["median"].median()), math.nan, math.nan)], key[-1], bits=bool(first["bits"]))
        lines, note = _lines(view, rows, generational, shown.factor)
        edges = charts.caches(view.hosts, colours) if str(first["class"]).startswith("mem-") else []
        inside = [e for e in edges if rows["x"].min() < e[0] < rows["x"].max()]
        if inside:
            note += " Upright: where one data cache of each level ends."
        axis = axis_title(fmt.clean(key[2]), shown, first["better"])
        yield title_of(key), note, charts.curve(lines, "size", axis, size=True, marks=inside)


def _depths(view: View) -> Iterator[Drawn]:
    """Every metric that is a headline at some queue depth, of cases that differ in their depth only (``…-qd32``)."""
    for key, rows, generational in _against(view, "case", charts.depth):
        if rows["x"].nunique() < 2 or not rows["headline"].any():
            continue
        first = rows.iloc[0]
        shown = fmt.fit([(float(rows["median"].median()), math.nan, math.nan)], key[-1], bits=bool(first["bits"]))
        lines, note = _lines(view, rows, generational, shown.factor)
        axis = axis_title(fmt.clean(key[2]), shown, first["better"])
        yield f"{title_of(key)} against queue depth", note, charts.curve(lines, "queue depth", axis, size=False)


def _matrices(view: View) -> Iterator[Drawn]:
    """Every headline metric of pairs of hosts, as long as a matrix of them can be read."""
    stats = headlines(view.stats)
    pairs = stats[stats["subject"] != summary.pair_subjects(stats, view.generation)]
    cells: dict[Any, list[tuple[str, str, float]]] = defaultdict(list)
    names = {h.name: fmt.clean(h.name) for h in view.hosts}
    if len(names) > charts.MANY_CELLS:
        return
    for key, rows in groups(pairs, ["workload", "case", "metric", "labels", "standing", "unit", "better", "bits"]):
        for host, subject, median in zip(rows["host"], rows["subject"], rows["median"], strict=True):
            other = summary.peer(host, subject, names)
            if other is not None:
                ends = (host, other) if subject.startswith(f"{host}>") else (other, host)
                cells[key].append((names[ends[0]], names[ends[1]], median))
    for key, found in cells.items():
        workload, case, metric, label_text, standing, unit, better, bits = key
        seen = {name for a, b, _ in found for name in (a, b)}
        if len(seen) < 3:
            continue
        shown = fmt.fit(((v, math.nan, math.nan) for _, _, v in found), unit, bits=bool(bits))
        values = [(a, b, v * shown.factor, shown.number(v)) for a, b, v in found]
        title = title_of((workload, case, metric, "host", label_text, standing))
        note = (
            ", ".join(p for p in ("Medians, row to column", fmt.better(better)) if p) + "; blank where nothing passed."
        )
        yield title, note, charts.matrix([n for n in names.values() if n in seen], values, shown.unit)
