"""Draw the charts of a campaign: headlines per host, curves over size, depth or load, pairs of hosts, and telemetry."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.curves import CURVE, curve_point
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.values import PASSED
from fleetmark.record.values.engine import literal, quoted
from fleetmark.reports.campaign.maps import of_devices, of_hosts
from fleetmark.reports.campaign.view import View, by_metric, headlines, title_of
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.axes import Spec
from fleetmark.reports.kit.charts import Across, Box, Chart, Line, folded
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Kind
from fleetmark.workloads import declared

FEW = 6  # minimum figures for a chart of a single host
LEAST_POINTS = 3  # minimum points of a line
MOST = 60  # maximum charts of a kind; box plots, used for very many hosts, have a lower limit
MOST_BOXES = 24
NAMED = 12  # maximum names of omitted charts
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def sections(view: View, language: Language | None, only: tuple[Kind, ...]) -> list[Section]:
    """Return the charts of ``view``, one section per kind. Axis titles are in ``language``."""
    _ = language or Language()
    listed: list[Section] = []
    for key, (title, note, drawn, limit) in _kinds(view, _).items():
        charts_ = list(drawn)
        exhibits: list[Exhibit] = [Note(note, quiet=True)] if note and charts_ else []
        exhibits += charts_[:limit]
        if omitted := [chart.title for chart in charts_[limit:]]:
            more = message("and {n} more", n=f"{len(omitted) - NAMED:,}") if len(omitted) > NAMED else None
            titles = joined([*omitted[:NAMED], more], "; ")
            exhibits.append(Note(message("No room for the charts of {titles}", titles=titles), quiet=True))
        if key == "pairs" and len(view.hosts) > charts.MANY_CELLS and ("pairs",) in view.of_merged.distinct("over"):
            exhibits.append(Note(_no_matrix(view), quiet=True))
        listed.append(Section(key, title, tuple(exhibits), only))
    return listed


def _kinds(view: View, _: Language) -> dict[str, tuple[Message, Message | None, Iterable[Chart], int]]:
    """Return the kinds of charts: title, note, charts, and the maximum number of charts."""
    strips = MOST_BOXES if len(view.hosts) > charts.MANY_DOTS else MOST
    range_ = message("Axes show the range that was measured; they do not begin at zero.")
    return {
        "charts": (message("Headlines, host by host"), range_, _strips(view, _, strips), strips),
        "curves": (message("Against size"), None, _curves(view, _), MOST),
        "depths": (message("Against queue depth"), None, _depths(view, _), MOST),
        "loaded": (message("Latency under load"), None, _loaded(view, _), MOST),
        "pairs": (message("Between hosts"), None, of_hosts(view, _), MOST),
        "devices": (message("Between devices"), None, of_devices(view, _), MOST),
        "telemetry": (message("While it ran"), None, _telemetry(view, _), MOST),
    }


def _no_matrix(view: View) -> Message:
    return message(
        "No matrix of pairs: {hosts} are more than can be read; the tables have each host's figures.",
        hosts=count(len(view.hosts), "host"),
    )


def first(listed: Sequence[Section], limit: int) -> tuple[Chart, ...]:
    """Return the first charts of every kind, at most ``limit`` in total."""
    kinds = [[e for e in section.exhibits if isinstance(e, Chart)] for section in listed]
    turns = chain.from_iterable([kind[n] for kind in kinds if n < len(kind)] for n in range(limit))
    chosen = {id(chart) for chart, _ in zip(turns, range(limit), strict=False)}
    return tuple(chart for kind in kinds for chart in kind if id(chart) in chosen)


def axis_title(metric: str, shown: fmt.Shown, better: str, _: Language) -> str:
    """Return the title of an axis, such as ``triad, GB/s (higher is better)``."""
    text = ", ".join(p for p in (metric, shown.unit) if p)
    return f"{text} ({_(fmt.better(better))})" if fmt.better(better) else text


# --- host by host ----------------------------------------------------------------------------------------------------


def _strips(view: View, _: Language, limit: int) -> Iterator[Chart]:
    colours = charts.colour_of(view.generations)
    if len(view.hosts) > charts.MANY_ROWS:
        yield from _crowds(view, _, colours, limit)
        return
    merged = list(view.by_metric(_of_worth(headlines(view.merged))))
    sources = _dots(view, [metric for metric, rows, _shown in merged if _says_more(view, metric, rows)][:limit])
    for metric, rows, shown in merged:
        axis = axis_title(fmt.clean(metric.metric), shown, rows["better"].iloc[0], _)
        if not _says_more(view, metric, rows):
            continue
        have = set(rows["host"])
        absent = {h.name: view.why_absent(h.name, metric) for h in view.hosts if h.name not in have}
        names = [fmt.clean(h.name) for h in view.hosts if absent.get(h.name) != ""]
        dots = [(fmt.clean(h), view.generation[h] or "", v * shown.factor) for h, v in sources[metric]]
        ticks = [(fmt.clean(h), v * shown.factor) for h, v in zip(rows["host"], rows["value"], strict=True)]
        reasons = {fmt.clean(name): _(word(reason)) for name, reason in absent.items() if reason}
        pairs, one = rows["over"].iloc[0] != "repeats", len(have) == 1
        note = {
            (False, True): message("A dot per repeat, tick at the value of the host."),
            (False, False): message("A dot per repeat, ticks at the values of hosts."),
            (True, True): message("A dot per pair of hosts, tick at the value of the host."),
            (True, False): message("A dot per pair of hosts, ticks at the values of hosts."),
        }[pairs, one]
        yield folded(title_of(metric), note, partial(charts.strip, names, dots, ticks, reasons, colours, axis))


def _of_worth(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows to chart, without purely descriptive ones such as uptime."""
    return frame[(frame["better"] != Better.NONE) | (frame["class"] != "none")]


def _says_more(view: View, metric: Metric, rows: pd.DataFrame) -> bool:
    """Return whether a chart shows more than the table does. A few dots of a single host do not."""
    have = set(rows["host"])
    named = [h for h in view.hosts if h.name in have or view.why_absent(h.name, metric)]
    return int(rows["n"].sum()) >= FEW or len(named) > 1


def _crowds(view: View, _: Language, colours: Mapping[str, str], limit: int) -> Iterator[Chart]:
    """Yield charts with a row per generation: a dot per host, or a box if there are very many hosts."""
    if len(view.hosts) > charts.MANY_DOTS:
        note = message(
            "Hosts: the box holds the middle half, the line nine in ten, the tick is the median, the dots are the "
            "lowest and the highest."
        )
    else:
        note = message("A dot per host, ticks at the geometric means.")
    metrics = (metric for part in view.headlines_in_parts() for metric in view.by_metric(_of_worth(part)))
    for number, (metric, rows, shown) in enumerate(metrics):
        values = _by_side(view, rows, shown) if number < limit else {}  # charts beyond the limit are not drawn
        axis = axis_title(fmt.clean(metric.metric), shown, rows["better"].iloc[0], _)
        yield folded(title_of(metric), note, partial(_crowd, view, _, colours, axis, values))


def _by_side(view: View, rows: pd.DataFrame, shown: fmt.Shown) -> dict[str, list[float]]:
    """Return the figures of each generation's hosts, in the unit shown."""
    by_side: dict[str, list[float]] = {g: [] for g in view.generations}
    for host, value in zip(rows["host"], rows["value"], strict=True):
        if host in view.generation:
            by_side[view.generation[host] or ""].append(value * shown.factor)
    return {g: values for g, values in by_side.items() if values}


def _centre(values: Sequence[float]) -> float:
    """Return the geometric mean, or the arithmetic mean if a figure is zero."""
    return float(np.exp(np.mean(np.log(values)))) if min(values) > 0 else float(np.mean(values))


def _crowd(
    view: View, _: Language, colours: Mapping[str, str], axis: str, values: Mapping[str, Sequence[float]]
) -> Spec:
    names = {g: _(view.title_of(g)) for g in values}
    if len(view.hosts) > charts.MANY_DOTS:
        boxes = [Box(names[g], g, np.quantile(v, _QUANTILES).tolist()) for g, v in values.items()]
        return charts.boxes(boxes, colours, axis)
    ticks = [(names[g], _centre(v)) for g, v in values.items()]
    dots = [(names[g], g, value) for g, v in values.items() for value in v]
    return charts.strip(list(names.values()), dots, ticks, {}, colours, axis)


def _dots(view: View, metrics: Sequence[Metric]) -> dict[Metric, list[tuple[str, float]]]:
    """Return the (host, value) dots of each metric. A value is a repeat, or a pair's figure if pairs are merged."""
    passed = view.results.values.select(f"{PASSED} and ({_one_of(metrics)})")
    dots: dict[Metric, list[tuple[str, float]]] = defaultdict(list)
    for frame, pairs in ((passed, False), (view.stats, True)):
        subject = pair_subjects(frame, view.generation)
        chosen = frame.assign(subject=subject)[(subject != frame["subject"].astype(object)) == pairs]
        for metric, rows in by_metric(chosen):
            dots[metric] += zip(rows["host"], rows["value"], strict=True)
    return dots


def _one_of(metrics: Sequence[Metric]) -> str:
    """Return an SQL condition for the values of ``metrics``. It ignores the subject and so matches all pairs."""
    columns = [name for name in METRIC if name != "subject"]
    rows = dict.fromkeys(", ".join(literal(getattr(metric, name)) for name in columns) for metric in metrics)
    return f"({quoted(columns)}) in ({', '.join(f'({row})' for row in rows)})" if rows else "false"


# --- curves ----------------------------------------------------------------------------------------------------------


def _lines(
    view: View, _: Language, hosts: pd.DataFrame, generational: pd.DataFrame, points: Callable[..., list[charts.Point]]
) -> tuple[list[Line], str]:
    """Return a line per host, or per generation if there are many hosts, and a note.

    ``points``: a function that returns the points of a line from its rows and the names of the two columns of its band.
    """
    colours, count = charts.colour_of(view.generations), len(set(hosts["host"]))
    sides = {str(g): rows for g, rows in generational.groupby("generation", sort=False, observed=True)}
    if count > charts.MANY_LINES or count > len(sides) > 1:
        lines = [
            Line(_(view.title_of(g)), colours[g], i, points(sides[g], ("low", "high")))
            for i, g in enumerate(view.generations)
            if g in sides
        ]
        note = message("Each line is the geometric mean of its hosts.")
        if all(math.isnan(p[2]) for line in lines for p in line.points):
            return lines, note
        return lines, joined([note, message("Its band reaches from the lowest host to the highest.")], " ")
    lines, kin = [], dict.fromkeys(view.generations, 0)
    for i, (name, rows) in enumerate(hosts.groupby("host", sort=False, observed=True)):
        generation = view.generation[str(name)] or ""
        colour = colours[generation] if len(view.generations) > 1 else charts.COLOURS[i % len(charts.COLOURS)]
        lines.append(Line(fmt.clean(name), colour, kin[generation], points(rows, None)))
        kin[generation] += 1
    return lines, message("Values.") if len(lines) == 1 else message("A line per host.")


def headlines_first(listed: Sequence[tuple[bool, Chart]]) -> Iterator[Chart]:
    """Yield charts, headlines first. ``listed``: each chart, and whether its metric is not a headline."""
    yield from (chart for _, chart in sorted(listed, key=lambda item: item[0]))


def _rising(factor: float) -> Callable[..., list[charts.Point]]:
    """Return a function that creates points sorted by ``x``, with ``value`` and the band multiplied by ``factor``."""

    def points(rows: pd.DataFrame, ends: tuple[str, str] | None) -> list[charts.Point]:
        scaled = (rows["value"] * factor).tolist()
        blank = [math.nan] * len(rows)
        lows, highs = ((rows[end] * factor).tolist() for end in ends) if ends else (blank, blank)
        return sorted(zip(rows["x"].astype(float).tolist(), scaled, lows, highs, strict=True))

    return points


def _against(view: View, name: str, split: Callable[[str, str], tuple[str, float] | None]) -> Iterator[_Against]:
    """Yield groups of figures that differ only in a number within the column ``name``.

    ``split``: a function that splits a workload's text in that column into the number and the remaining text.
    """
    texts = view.of_merged.distinct("workload", name)
    parts = [(workload, text, *part) for workload, text in texts if (part := split(workload, text)) is not None]
    if not parts:
        return
    table = pd.DataFrame(parts, columns=["workload", name, "rest", "x"])
    known = {(workload, text) for workload, text, *_ in parts}
    merged = view.of_merged.select(["workload", name], known)
    frames = []
    for frame in (merged, view.generational):
        kept = frame.merge(table, on=["workload", name])
        frames.append(kept.assign(**{name: kept["rest"]}))
    generational = dict(by_metric(frames[1]))
    for metric, rows in by_metric(frames[0]):
        yield metric, rows, generational[metric]


_Against = tuple[Metric, pd.DataFrame, pd.DataFrame]  # metric, rows per host, rows per generation


def _fit(values: pd.Series, unit: str, *, bits: bool = False, percent: bool = False, counted: str = "") -> fmt.Shown:
    return fmt.fit([(float(np.median(values)), math.nan, math.nan)], unit, bits=bits, percent=percent, counted=counted)


def _fit_of(rows: pd.DataFrame, column: str, unit: str) -> fmt.Shown:
    """Return how the values of ``column`` in a metric's rows are written."""
    counted = declared.counted(str(rows["workload"].iloc[0]), str(rows["metric"].iloc[0]))
    bits, percent = bool(rows["bits"].iloc[0]), bool(rows["percent"].iloc[0])
    return _fit(rows[column], unit, bits=bits, percent=percent, counted=counted)


def _curves(view: View, _: Language) -> Iterator[Chart]:
    """Yield a chart per metric and combination of its other labels, if it has at least CURVE sizes (label ``size``)."""
    colours = charts.colour_of(view.generations) if len(view.generations) > 1 else {}
    listed: list[tuple[bool, Chart]] = []
    for metric, rows, generational in _against(view, "labels", lambda _, text: curve_point(text)):
        if len(set(rows["x"])) < CURVE:
            continue
        shown = _fit_of(rows, "value", metric.unit)
        lines, note = _lines(view, _, rows, generational, _rising(shown.factor))
        edges = charts.caches(view.hosts, colours) if str(rows["class"].iloc[0]).startswith("mem-") else []
        inside = [e for e in edges if rows["x"].min() < e[0] < rows["x"].max()]
        if inside:
            note = joined([note, message("Dotted lines: sizes of one L1d, L2 and L3 cache.")], " ")
        axis = axis_title(fmt.clean(metric.metric), shown, rows["better"].iloc[0], _)
        spec = partial(charts.curve, lines, _(message("size")), axis, Across.SIZE, inside)
        listed.append((not rows["headline"].any(), folded(title_of(metric), note, spec)))
    yield from headlines_first(listed)


def _depths(view: View, _: Language) -> Iterator[Chart]:
    """Yield a chart per metric over queue depth, for cases that differ only in their depth.

    The metric must be a headline at one of the depths.
    """
    for metric, rows, generational in _against(view, "case", declared.depth):
        if len(set(rows["x"])) < LEAST_POINTS or not rows["headline"].any():
            continue
        shown = _fit_of(rows, "value", metric.unit)
        lines, note = _lines(view, _, rows, generational, _rising(shown.factor))
        axis = axis_title(fmt.clean(metric.metric), shown, rows["better"].iloc[0], _)
        title = message("{what} against queue depth", what=title_of(metric))
        yield folded(title, note, partial(charts.curve, lines, _(message("queue depth")), axis, Across.COUNT))


# --- latency under load ----------------------------------------------------------------------------------------------


def _loaded(view: View, _: Language) -> Iterator[Chart]:
    """Yield charts of latency against bandwidth, for workloads that measure both at several loads."""
    loading = _loading(view)
    if not loading:
        return
    merged = view.of_merged.select(["workload"], loading)
    both = [_with_bandwidth(frame, side) for frame, side in ((merged, "host"), (view.generational, "generation"))]
    generational = dict(by_metric(both[1]))
    listed: list[tuple[bool, Chart]] = []
    for metric, rows in by_metric(both[0]):
        if len(set(rows["step"])) < CURVE:
            continue
        latency, bandwidth = _fit_of(rows, "value", metric.unit), _fit_of(rows, "x", "B/s")
        lines, note = _lines(view, _, rows, generational[metric], _by_step(bandwidth.factor, latency.factor))
        note = joined([note, message("Each point is one rate of injection.")], " ")
        axis = axis_title(fmt.clean(metric.metric), latency, rows["better"].iloc[0], _)
        across = axis_title(rows["bandwidth"].iloc[0], bandwidth, "higher", _)
        title = message("{what} against bandwidth", what=title_of(metric))
        spec = partial(charts.curve, lines, across, axis, Across.LOAD)
        listed.append((not rows["headline"].any(), folded(title, note, spec)))
    yield from headlines_first(listed)


def _loading(view: View) -> set[tuple[str, ...]]:
    """Return the workloads that measure latency under load."""
    metrics = view.of_merged.distinct("workload", "metric")
    return {(workload,) for workload, metric in metrics if declared.plot(workload, metric) is not None}


def _by_step(x: float, y: float) -> Callable[..., list[charts.Point]]:
    """Return a function that creates points in the order of their steps. ``x``, ``y``: the factors of the axes."""

    def points(rows: pd.DataFrame, ends: tuple[str, str] | None) -> list[charts.Point]:
        # No band, because it would be ambiguous for a line that turns back on itself.
        ordered = rows.sort_values("step", kind="stable")
        blank = [math.nan] * len(ordered)
        return list(zip(ordered["x"] * x, ordered["value"] * y, blank, blank, strict=True))

    return points


def _with_bandwidth(frame: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return latencies under load with the bandwidth of the same point.

    The label that numbers the points moves to the column ``step``. ``bandwidth`` is the name of the bandwidth metric,
    and the column ``x`` has its value.
    """
    metrics = frame[["workload", "metric"]].drop_duplicates().itertuples(index=False, name=None)
    plots = [(w, m, plot.bandwidth, plot.each) for w, m in metrics if (plot := declared.plot(w, m)) is not None]
    table = pd.DataFrame(plots, columns=["workload", "metric", "bandwidth", "each"])
    identity = ["workload", "case", "subject", "labels", side]
    moved = frame.loc[frame["metric"].isin(table["bandwidth"]), [*identity, "metric", "value"]]
    moved = moved.rename(columns={"metric": "bandwidth", "value": "x"})
    rows = frame.merge(table, on=["workload", "metric"]).merge(moved, on=[*identity, "bandwidth"])
    pairs = list(zip(rows["labels"], rows["each"], strict=True))
    split = {pair: _step(*pair) for pair in dict.fromkeys(pairs)}
    parts = [split[pair] for pair in pairs]
    rows = rows.assign(labels=[rest for rest, _ in parts], step=[number for _, number in parts])
    return rows[rows["step"].notna()]


def _step(label_text: str, name: str) -> tuple[str, float]:
    """Return the labels without ``name``, and the number in that label, or NaN if there is none."""
    labels = json.loads(label_text)
    step = str(labels.pop(name, ""))
    return json.dumps(labels, sort_keys=True, separators=(",", ":")), float(step) if step.isdigit() else math.nan


# --- telemetry -------------------------------------------------------------------------------------------------------

_BINS = 60  # points of a chart over time
_UNITS = {
    "clock_hz_mean": "Hz",
    "temp_c_max": "degC",
    "power_w": "W",
    "gpu_clock_hz_mean": "Hz",
    "gpu_temp_c_max": "degC",
    "gpu_power_w": "W",
}


def _telemetry(view: View, _: Language) -> Iterator[Chart]:
    """Yield charts of clock, temperature and power during the longest case of each workload."""
    telemetry = view.results.telemetry
    shown_here = telemetry.samples["column"].isin(list(_UNITS))
    for workload, rows in telemetry.samples[shown_here].groupby("workload", sort=False):
        ends = rows.groupby(["case", "host", "repeat"], sort=True)["t"].max().groupby("case", sort=True).median()
        case, length = str(ends.idxmax()), float(ends.max())
        mine = rows[rows["case"] == case]
        if mine["t"].nunique() < CURVE:
            continue
        read = message(
            "Medians over the runs of a host; telemetry of {n} of {of} runs was read.",
            n=telemetry.read,
            of=telemetry.available,
        )
        for column, values in mine.groupby("column", sort=False):
            hosts, generational = _over_time(view, values, length)
            shown = _fit(hosts["value"], _UNITS[str(column)])
            lines, note = _lines(view, _, hosts, generational, _rising(shown.factor))
            quantity, title = _quantity(str(column), f"{fmt.clean(workload)} {fmt.clean(case)}")
            axis = ", ".join([_(quantity), shown.unit])
            spec = partial(charts.curve, lines, _(message("seconds since the run began")), axis, Across.SECONDS)
            yield folded(title, joined([note, read], " "), spec)


def _quantity(column: str, workload: str) -> tuple[str, str]:
    """Return the title of a telemetry column for an axis and for a heading about the ``workload``."""
    if column == "clock_hz_mean":
        return message("mean clock"), message("{what}: clock during the runs", what=workload)
    if column == "temp_c_max":
        return message("hottest CPU sensor"), message("{what}: temperature during the runs", what=workload)
    if column == "gpu_clock_hz_mean":
        return message("mean clock of accelerators"), message(
            "{what}: accelerators' clock during the runs", what=workload
        )
    if column == "gpu_temp_c_max":
        title = message("{what}: accelerators' temperature during the runs", what=workload)
        return message("hottest accelerator"), title
    if column == "gpu_power_w":
        return message("power of accelerators"), message("{what}: accelerators' power during the runs", what=workload)
    return message("power"), message("{what}: power during the runs", what=workload)


def _over_time(view: View, samples: pd.DataFrame, length: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the medians of samples per time bin, for each host and for each generation."""
    bins = (samples["t"] / length * _BINS).round().clip(upper=_BINS) * (length / _BINS)
    hosts = samples.groupby(["host", bins.rename("x")], sort=True)["value"].median().reset_index()
    assigned = hosts.assign(generation=[view.generation[h] or "" for h in hosts["host"]])
    generational = assigned.groupby(["generation", "x"])["value"].agg(["median", "min", "max"]).reset_index()
    return hosts, generational.rename(columns={"median": "value", "min": "low", "max": "high"})
