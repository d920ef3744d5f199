"""Draw heat maps of measurements between pairs of hosts, or between pairs of devices of a host."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, joined, message
from fleetmark.planner import peak
from fleetmark.planner.peak import Peak
from fleetmark.record.figures.metric import Metric
from fleetmark.record.figures.pairs import pair_subjects, peer
from fleetmark.reports.campaign.against import Machines, machines_of
from fleetmark.reports.campaign.view import View, headlines, title_of
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart, folded
from fleetmark.reports.kit.language import Language
from fleetmark.workloads import declared

Cell = tuple[str, str, float]  # from, to, figure
_BEYOND = 1.02  # a larger share of a link's peak cannot be explained by rounding


def of_hosts(view: View, _: Language) -> Iterator[Chart]:
    """Yield a map per headline metric of pairs of hosts, or nothing if there are too many hosts for a readable map."""
    names = {h.name: fmt.clean(h.name) for h in view.hosts}
    if len(names) > charts.MANY_CELLS:
        return
    stats = headlines(view.stats)
    pairs = stats[stats["subject"] != pair_subjects(stats, view.generation)]
    cells: dict[Any, list[tuple[str, str, float]]] = defaultdict(list)
    columns = ["workload", "case", "metric", "labels", "standing", "unit", "better", "bits", "percent"]
    for key, rows in pairs.groupby(columns, sort=False, observed=True):
        for host, subject, median in zip(rows["host"], rows["subject"], rows["value"], strict=True):
            other = peer(host, subject, names)
            if other is not None:
                ends = (host, other) if subject.startswith(f"{host}>") else (other, host)
                cells[key].append((names[ends[0]], names[ends[1]], median))
    for key, triples in cells.items():
        workload, case, metric, label_text, standing, unit, better, bits, percent = key
        seen = {name for a, b, _v in triples for name in (a, b)}
        if len(seen) < 3:
            continue
        shown = fmt.fit(
            ((v, math.nan, math.nan) for _a, _b, v in triples),
            unit,
            bits=bool(bits),
            percent=bool(percent),
            counted=declared.counted(workload, metric),
        )
        away = _from_their_kind(triples, {names[h]: g or "" for h, g in view.generation.items()}, better)
        values = [(a, b, 100 * part, shown.number(v)) for (a, b, v), part in zip(triples, away, strict=True)]
        title = title_of(Metric(workload, case, metric, "host", label_text, standing, unit))
        note = joined(
            [
                message("Values in {unit}, row to column; blank if nothing passed.", unit=shown.unit),
                message("Colour: % from the median between the same two generations, blue is better."),
            ],
            " ",
        )
        axis_titles = (_(message("source")), _(message("destination")))
        hosts = [n for n in names.values() if n in seen]
        legend = _(message("% from the median"))
        yield folded(title, note, partial(charts.matrix, hosts, hosts, values, legend, axis_titles, shown.unit))


def _from_their_kind(
    triples: Sequence[tuple[str, str, float]], generation: Mapping[str, str], better: str
) -> list[float]:
    """Return each value's relative deviation from the median between the same two generations. Positive is better."""
    by_kind: dict[tuple[str, str], list[float]] = defaultdict(list)
    for a, b, value in triples:
        by_kind[generation[a], generation[b]].append(value)
    middle = {kind: float(np.median(values)) for kind, values in by_kind.items()}
    ratios = [value / m if (m := middle[generation[a], generation[b]]) else 1.0 for a, b, value in triples]
    return [(1 / r if r else 1.0) - 1 if better == Better.LOWER else r - 1 for r in ratios]


def of_devices(view: View, _: Language) -> Iterator[Chart]:
    """Yield a map per generation for each metric between devices, with the medians of the generation's hosts.

    In the manifest, the labels ``from`` and ``to`` of such a metric name devices.
    """
    mapped = {pair for pair in view.of_hosts.distinct("workload", "metric") if declared.between_devices(*pair)}
    if not mapped:
        return
    stats = view.of_hosts.select(["workload", "metric"], mapped)
    cells: dict[Any, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = ["workload", "case", "metric", "standing", "unit", "better", "bits", "percent"]
    for key, rows in stats.groupby(columns, sort=False, observed=True):
        for host, text, value in zip(rows["host"], rows["labels"], rows["value"], strict=True):
            labels = json.loads(text)
            ends = labels.pop("from", None), labels.pop("to", None)
            if None not in ends:
                rest = json.dumps(labels, sort_keys=True, separators=(",", ":"))
                cells[*key, rest, view.generation[host] or ""][ends].append(value)
    machines = machines_of(view)
    for key, of_ends in cells.items():
        *metric, standing, unit, better, bits, percent, rest, generation = key
        triples = [(fmt.clean(a), fmt.clean(b), float(np.median(v))) for (a, b), v in of_ends.items()]
        sources, targets = (
            sorted(names, key=_in_order) for names in ({t[0] for t in triples}, {t[1] for t in triples})
        )
        if len(triples) < 2 or max(len(sources), len(targets)) > charts.MANY_CELLS:
            continue
        everything = ((v, math.nan, math.nan) for _a, _b, v in triples)
        shown = fmt.fit(everything, unit, bits=bool(bits), percent=bool(percent))
        away = _from_their_like(triples, better)
        shares, links = _of_peaks(metric, triples, machines[generation])
        texts = [f"{shown.number(v)}\n{share}".rstrip() for (_a, _b, v), share in zip(triples, shares, strict=True)]
        values = [(a, b, 100 * part, t) for (a, b, _v), part, t in zip(triples, away, texts, strict=True)]
        title = title_of(Metric(metric[0], metric[1], metric[2], "host", rest, standing, unit))
        if len(view.generations) > 1:
            title = joined([title, view.title_of(generation)], ", ")
        note = joined(
            [
                message("Values in {unit}, row to column: medians of the hosts.", unit=shown.unit),
                message("Colour: % from the median of like pairs of devices, blue is better."),
                *links,
            ],
            " ",
        )
        axis_titles, legend = (_(message("source")), _(message("destination"))), _(message("% from the median"))
        yield folded(title, note, partial(charts.matrix, sources, targets, values, legend, axis_titles, shown.unit))


def _of_peaks(metric: Sequence[str], triples: Sequence[Cell], machines: Machines) -> tuple[list[str], list[Message]]:
    """Return, for each cell, the share of its link's peak (empty if unknown), and a sentence for each kind of link.

    A value above the link's peak has no share, because the data took another path, such as an integrated GPU's memory.
    """
    workload, case, name = metric
    held = declared.peak(workload, case, name)
    of_links: dict[tuple[str, str, Peak], dict[int, float]] = defaultdict(dict)
    for n, (a, b, value) in enumerate(triples):
        top = machines.component(peak.between(a, b)) if held and held.part == "ends" else None
        if held and top:
            of_links[_in_order(a)[0], _in_order(b)[0], top][n] = value * held.traffic / top.rate
    of_links = {link: parts for link, parts in of_links.items() if max(parts.values()) <= _BEYOND}
    known = {n: part for parts in of_links.values() for n, part in parts.items()}
    shares = [fmt.share(known[n], 0) if n in known else "" for n in range(len(triples))]
    sentences = [
        message(
            "From {start} to {end}: {share} of {rate} GB/s one way, the slowest {least} ({basis}).",
            start=start,
            end=end,
            share=fmt.share(float(np.median([*parts.values()])), 0),
            rate=f"{top.rate / 1e9:.3g}",
            least=fmt.share(min(parts.values()), 0),
            basis=top.basis,
        )
        for (start, end, top), parts in of_links.items()
    ]
    return shares, [message("Below each value: its share of the link's peak."), *sentences] if sentences else []


def _in_order(name: str) -> tuple[str, int]:
    """Return a sort key that puts ``gpu10`` after ``gpu9``."""
    number = re.search(r"\d+$", name)
    return (name[: number.start()], int(number[0])) if number else (name, -1)


def _from_their_like(triples: Sequence[Cell], better: str) -> list[float]:
    """Return each value's relative deviation from the median of similar pairs. Positive is better.

    Pairs are similar if they have the same two kinds of device, and both are within one device or between two.
    """
    like = [(_in_order(a)[0], _in_order(b)[0], a == b) for a, b, _v in triples]
    by_kind: dict[tuple[str, str, bool], list[float]] = defaultdict(list)
    for kind, (_a, _b, value) in zip(like, triples, strict=True):
        by_kind[kind].append(value)
    middles = {kind: float(np.median(values)) for kind, values in by_kind.items()}
    ratios = [v / m if (m := middles[kind]) else 1.0 for kind, (_a, _b, v) in zip(like, triples, strict=True)]
    return [(1 / r if r else 1.0) - 1 if better == Better.LOWER else r - 1 for r in ratios]
