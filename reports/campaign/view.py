"""Compute the data that all reports of a campaign share: ordered hosts, and figures per host and generation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Centre, Standing, Status
from fleetmark.base.text import joined, message
from fleetmark.planner.centre import Interval
from fleetmark.planner.curves import CURVE, curve_point
from fleetmark.record.figures import hosts as figures
from fleetmark.record.figures.hosts import METRIC, HostFigures
from fleetmark.record.figures.metric import Metric
from fleetmark.record.results import HostInfo, Results
from fleetmark.reports.campaign.problems import absences
from fleetmark.reports.kit import format as fmt
from fleetmark.workloads import declared

MetricRows = tuple[Metric, pd.DataFrame, fmt.Shown]  # a metric, its rows, and how its figures are written


@dataclass(frozen=True, kw_only=True)
class View:
    """A campaign prepared for reports.

    ``hosts``: sorted by generation, then by name. ``generations``: the name of each generation, with "" (last) for
    hosts without one. ``of_hosts``: a row per host and subject. ``of_merged``: the same with pairs of hosts merged.
    ``generational``: a row per generation. All three frames come from ``record.figures.hosts``. ``absent``: why a
    (host, workload, case) has no figure. ``scales``: the unit and digits of each metric, the same in every document.
    """

    results: Results
    hosts: tuple[HostInfo, ...]
    generation: Mapping[str, str | None]
    generations: tuple[str, ...]
    of_hosts: HostFigures
    of_merged: HostFigures
    generational: pd.DataFrame
    absent: Mapping[tuple[str, str, str], Status]
    scales: Mapping[Metric, fmt.Shown] = field(default_factory=dict)

    @property
    def stats(self) -> pd.DataFrame:
        """Return all rows of ``of_hosts``. Iterate over its parts instead if there may be very many rows."""
        return self.of_hosts.frame

    @property
    def merged(self) -> pd.DataFrame:
        """Return all rows of ``of_merged``. Iterate over its parts instead if there may be very many rows."""
        return self.of_merged.frame

    @cached_property
    def _only_headlines(self) -> bool:
        return len(self.of_merged.distinct("headline")) > 1

    def headlines_in_parts(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of ``headlines(merged)`` in frames of some metrics each."""
        for part in self.of_merged:
            yield _without_curves(part[part["headline"].to_numpy(bool)] if self._only_headlines else part)

    @property
    def summed(self) -> pd.DataFrame:
        """Return the summary of each metric: the figures of the only host, or of each generation."""
        return self.merged if len(self.hosts) == 1 else self.generational

    @cached_property
    def headlines(self) -> tuple[MetricRows, ...]:
        """Return the headlines of ``summed``, metric by metric."""
        return tuple(self.by_metric(headlines(self.summed)))

    def by_metric(self, frame: pd.DataFrame) -> Iterator[MetricRows]:
        """Yield the rows of ``frame`` metric by metric, each with the unit and digits of its figures."""
        for metric, rows in by_metric(frame):
            yield metric, rows, self.shown(metric, rows)

    def shown(self, metric: Metric, rows: pd.DataFrame) -> fmt.Shown:
        """Return how a metric's figures are written, the same in every table and document.

        ``rows``: for a single pair of hosts, its rows, from which the scale is derived.
        """
        return self.scales.get(metric) or shown_as(rows, metric.unit)

    def title_of(self, generation: str) -> str:
        """Return the name of a generation for display."""
        return fmt.clean(generation) or (
            message("all hosts") if len(self.generations) == 1 else message("no generation")
        )

    def why_absent(self, host: str, metric: Metric) -> str:
        """Return how the runs of a missing figure ended, as one word; empty if no run was planned."""
        # A step may have several cases (``step/part``), and an outcome may apply to a whole workload (``*``).
        for name in (metric.case, metric.case.split("/")[0], "*"):
            if (host, metric.workload, name) in self.absent:
                return str(self.absent[host, metric.workload, name])
        return ""


def view(results: Results, first: Sequence[str] = ()) -> View:
    """Compute everything that the reports of ``results`` share.

    Generations in ``first`` keep their order and come first; the others are sorted by name.
    """
    generation = {h.name: h.generation for h in results.hosts}
    values = results.values
    # Include hosts that campaign.json does not list, because it was damaged or they have no facts.
    for name in (*results.outcomes["host"].unique(), *values.distinct("host")["host"]):
        generation.setdefault(str(name), None)
    known = {h.name: h for h in results.hosts}
    hosts = [known.get(name, HostInfo(name=name)) for name in generation]
    named = sorted({g or "" for g in generation.values()}, key=lambda g: (g == "", fmt.natural(g)))
    generations = [*(g for g in first if g in named), *(g for g in named if g not in first)]
    hosts.sort(key=lambda h: (generations.index(h.generation or ""), fmt.natural(h.name)))
    as_printed = [str(m) for m in values.distinct("metric")["metric"]]
    orders = {"metric": as_printed, "workload": results.campaign.workloads, "generation": generations}
    rank = partial(_places, orders)
    of_hosts = figures.per_host(values, rank)
    of_merged = figures.merge_pairs(of_hosts, generation, rank)
    generational = figures.per_generation(of_merged, generation, rank)
    return View(
        results=results,
        hosts=tuple(hosts),
        generation=generation,
        generations=tuple(generations),
        of_hosts=of_hosts,
        of_merged=of_merged,
        generational=generational,
        absent=absences(results),
        scales=_scales(generational if len(hosts) > 1 else of_merged.frame),
    )


def _scales(rows: pd.DataFrame) -> dict[Metric, fmt.Shown]:
    """Return the unit and digits of each metric, chosen to suit its ``rows``."""
    return {metric: shown_as(of_metric, metric.unit) for metric, of_metric in by_metric(rows)}


def _places(orders: Mapping[str, Sequence[str]], name: str, values: Sequence[str]) -> list[int]:
    """Return the position of each value of a column, in natural order or in the order given by ``orders``."""
    listed = {value: position for position, value in enumerate(orders.get(name, ()))}
    order = sorted(values, key=lambda v: (listed.get(v, len(listed)), v == "", fmt.natural(v)))
    place = {value: position for position, value in enumerate(order)}
    return [place[v] for v in values]


def by_metric(frame: pd.DataFrame) -> Iterator[tuple[Metric, pd.DataFrame]]:
    """Yield the rows of ``frame`` metric by metric, in the order of their first rows."""
    for columns, rows in frame.groupby(METRIC, sort=False, observed=True):
        yield Metric(*map(str, columns)), rows


def of_metrics(frame: pd.DataFrame, metrics: Iterable[Metric]) -> pd.DataFrame:
    """Return the rows of ``frame`` whose metric is among ``metrics``."""
    known = {*metrics}
    number = frame.groupby(METRIC, sort=False, observed=True).ngroup().to_numpy()
    first = frame[METRIC].iloc[np.unique(number, return_index=True)[1]]  # text is read once per metric
    return frame[np.array([columns in known for columns in first.itertuples(index=False, name=None)], bool)[number]]


def point(metric: Metric) -> str:
    """Return a metric's name without its workload and case."""
    return fmt.point(metric.metric, metric.subject, metric.labels, metric.standing)


def title_of(metric: Metric) -> str:
    """Return the heading of a metric's chart, such as ``stream 64t: triad``."""
    return f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)}: {point(metric)}"


def shown_as(rows: pd.DataFrame, unit: str) -> fmt.Shown:
    """Return how a metric's ``rows`` (value, lo, hi, bits, percent) are written. ``unit``: the base unit."""
    figures = zip(rows["value"], rows["lo"], rows["hi"], strict=True)
    bits, percent = bool(rows["bits"].iloc[0]), bool(rows["percent"].iloc[0])
    counted = declared.counted(str(rows["workload"].iloc[0]), str(rows["metric"].iloc[0]))
    return fmt.fit(figures, unit, bits=bits, percent=percent, counted=counted)


def headlines(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of headline metrics, or all rows if no metric is a headline.

    A metric measured over many sizes (a curve) is represented by its largest size.
    """
    headline = frame["headline"].to_numpy(bool)
    return _without_curves(frame[headline] if headline.any() and not headline.all() else frame)


def _without_curves(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return ``chosen`` with only the largest size of each metric that was measured over many sizes (a curve)."""
    split = {text: curve_point(text) for text in chosen["labels"].unique()}
    if not any(split.values()):
        return chosen
    sized = chosen[chosen["labels"].isin([text for text, point in split.items() if point is not None])]
    if sized.empty:
        return chosen
    parts = sized["labels"].astype(object).map(split)
    size, rest = parts.str[1].astype(float), parts.str[0]
    line = [sized["workload"], sized["case"], sized["metric"], rest]
    inner = (size.groupby(line).transform("nunique") >= CURVE) & (size < size.groupby(line).transform("max"))
    return chosen.drop(index=inner[inner].index)


def spread(shown: fmt.Shown, lo: float, hi: float, interval: str) -> str:
    """Return ``(a–b)`` for a confidence interval, ``a–b`` for a range, or an empty string for a single value."""
    if interval in (Interval.ORDER, Interval.STUDENT):
        return f"({shown.number(lo)}–{shown.number(hi)})"
    return f"{shown.number(lo)}–{shown.number(hi)}" if interval == Interval.RANGE else ""


def footnotes(standings: Iterable[str]) -> list[str]:
    """Return the footnotes that the owners of benchmarks require for figures with these ``standings``."""
    return [Standing(name).footnote for name in sorted({*standings}) if name]


def meaning(view: View) -> str:
    """Return sentences that explain how the values of one host and of several hosts are computed."""
    rules = view.of_hosts.distinct("workload", "rule")
    medians = sorted(workload for workload, rule in rules if rule == Centre.MEDIAN)
    if not medians:
        of_host = message("Value: the geometric mean over repeats.")
    elif len(medians) == len(rules):
        of_host = message("Value: the median over repeats.")
    else:
        of_host = message(
            "Value: the geometric mean over repeats; for {workloads} the median.", workloads=joined(medians)
        )
    over_hosts = message("Over hosts: the geometric mean of their values.") if len(view.hosts) > 1 else None
    return joined([of_host, over_hosts], " ")


def legend(intervals: Container[str]) -> str:
    """Return a sentence that explains the given kinds of ``intervals``."""
    confidence = message("(a–b), 95% confidence interval (Student's t on logarithms; of medians order statistics)")
    kinds = [
        confidence if Interval.STUDENT in intervals or Interval.ORDER in intervals else None,
        message("a–b, smallest to largest of fewer than 6 values") if Interval.RANGE in intervals else None,
        message("none, a single value") if Interval.NONE in intervals else None,
    ]
    return message("Spread: {kinds}", kinds=joined(kinds, "; "))
