"""Build the tabs of a campaign's workbook: headlines, figures and spreads of hosts as formulas, and measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Centre
from fleetmark.base.text import Message, message
from fleetmark.base.words import word
from fleetmark.planner.centre import LEAST
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.values import PASSED
from fleetmark.reports.campaign import headlines
from fleetmark.reports.campaign.against import Against
from fleetmark.reports.campaign.deviation import title
from fleetmark.reports.campaign.view import MetricRows, View, meaning
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Section
from fleetmark.reports.kit.layout import FIRST_ROW, HEAD_ROW
from fleetmark.reports.kit.tabular import Cell, Column, LazyRows, Row, Tabular
from fleetmark.reports.kit.workbook import INTEGER, MOST_FORMULA, cell

LIVE = 20_000  # maximum measurements for which figures are formulas
MOST_FIGURES = 500_000  # maximum figures of hosts in the workbook
MOST_SPREADS = 50_000
_MOST_PARTS = 200  # maximum pairs of hosts in a formula
_SCIENTIFIC = "0.000000E+00"
_MEASURED = ("workload", "case", "metric", "subject", "labels", "standing", "host", "repeat", "value", "unit")
_SOURCES = ("tool_version", "time", "raw")
_NAMES = (*(column for column in headlines.identity() if column.only == headlines.WORKED),)
_FIRST_HOST = len(_NAMES) + 1  # number of the column of the first host
_FUNCTIONS = {Centre.GEOMEAN: "GEOMEAN", Centre.MEDIAN: "MEDIAN", Centre.MEAN: "AVERAGE"}
Spans = Sequence[tuple[int, int]]  # first and last rows of the tab of measurements


def sections(view: View, against: Against, has_every_value: bool) -> list[Section]:
    """Return the tabs, with rows that are computed when they are written.

    ``has_every_value``: write all measurements even if there are too many for formulas.
    """
    number = int(view.of_hosts.rows["n"].sum())
    tabs = _Tabs(view, number)
    raw = tabs.measurements if tabs.is_live else tabs.every_value() if has_every_value else tabs.elsewhere()
    tables = (
        (message("Headlines"), tabs.headlines(against)),
        (message("Per host"), tabs.per_host()),
        (message("Spread"), tabs.spreads()),
        (message("Raw"), raw),
    )
    return [Section(table.key, name, (table,), ("xlsx",)) for name, table in tables]


class _Tabs:
    """Tables with formulas that refer to each other."""

    def __init__(self, view: View, number: int) -> None:
        self.view, self.number, self.is_live = view, number, number <= LIVE
        self.has_figures = len(view.of_merged) <= MOST_FIGURES
        metrics = [Metric(*columns) for columns in view.of_merged.distinct(*METRIC)]
        self.rows = {metric: FIRST_ROW + n for n, metric in enumerate(metrics)}
        self.columns = {host.name: n for n, host in enumerate(view.hosts, _FIRST_HOST)}

    # ------------------------------------------------------------ measurements

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Return the measurements behind the figures, sorted so that those of one figure are adjacent.

        The column ``merged`` is the subject under which pairs of hosts are merged.
        """
        keys = [*METRIC, "host"]
        text = dict.fromkeys(keys, object)  # either frame may have categories
        order = self.view.stats.reset_index(names="place")[["place", *keys]].astype(text)
        values = self.view.results.values.select(PASSED).astype(text).merge(order, on=keys)
        values = values.sort_values(["place", "repeat"], kind="stable", ignore_index=True)
        return values.assign(merged=pair_subjects(values, self.view.generation))

    @cached_property
    def spans(self) -> Mapping[tuple[Metric, str], Spans]:
        """Return where the measurements of each metric and host are; pairs of hosts have several spans."""
        spans: dict[tuple[Metric, str], list[tuple[int, int]]] = {}
        if not self.is_live:
            return spans
        columns = [self.measured["merged" if name == "subject" else name].astype(str) for name in METRIC]
        keys = list(zip(*columns, strict=True))
        hosts = self.measured["host"].tolist()
        for places in self.measured.groupby("place", sort=False).indices.values():
            first, last = int(places[0]), int(places[-1])
            key = (Metric(*keys[first]), str(hosts[first]))
            spans.setdefault(key, []).append((FIRST_ROW + first, FIRST_ROW + last))
        return spans

    @property
    def measurements(self) -> Tabular:
        """Return every measurement that passed, one row each."""
        columns = (
            *(Column(name, _TITLES[name], "name" if name == "metric" else "text") for name in _MEASURED[:7]),
            Column("repeat", message("repeat"), "number", unit=message("from 0"), has_interval=False),
            Column(
                "value", message("value"), "number", unit=message("base unit"), form=_SCIENTIFIC, has_interval=False
            ),
            *(Column(name, _TITLES[name]) for name in ("unit", *_SOURCES)),
        )
        note = message("Measurements that passed. Filter rows as you like, but do not sort: Per host refers to ranges.")
        rows = LazyRows(self._measurements, self.number)
        return Tabular("raw", message("Measurements"), columns, rows, notes=(note,))

    def _measurements(self) -> Iterator[Row]:
        for values in self.measured[[*_MEASURED, *_SOURCES]].itertuples(index=False, name=None):
            texts = [Cell("" if v == "{}" else fmt.clean(v)) for v in values]
            texts[7] = Cell(str(values[7]), float(values[7]))
            texts[8] = Cell(str(values[8]), float(values[8]))
            yield tuple(texts)

    def elsewhere(self) -> Tabular:
        """Return an empty table that names the folder with the measurements."""
        note = message(
            "{n} measurements are too many for formulas over each (at most {most}): the tabs hold numbers. Every "
            "measurement is in measurements.parquet in {path}.",
            n=f"{self.number:,}",
            most=f"{LIVE:,}",
            path=str(self.view.results.campaign.path),
        )
        return Tabular("raw", message("Measurements"), (Column("host", message("host"), "name"),), (), notes=(note,))

    def every_value(self) -> Tabular:
        """Return every measurement: a row for each host and repeat, a column for each metric."""
        keys = self.view.results.values.distinct(*METRIC, condition=PASSED)
        metrics = [Metric(*map(str, row)) for row in keys.itertuples(index=False, name=None)]
        columns = (
            Column("host", message("host"), "name"),
            Column("repeat", message("repeat"), "number", unit=message("from 0"), form=INTEGER, has_interval=False),
            *(
                Column(f"m{n}", title(m), "number", unit=fmt.clean(m.unit), form=_SCIENTIFIC, has_interval=False)
                for n, m in enumerate(metrics)
            ),
        )
        note = message(
            "Measurements that passed, in base units: a row for each host and repeat, a column for each metric."
        )
        rows = LazyRows(partial(self._every_value, keys), self.number)
        return Tabular("raw", message("Measurements"), columns, rows, notes=(note,), is_large=True)

    def _every_value(self, keys: pd.DataFrame) -> Iterator[Row]:
        """Yield the rows of some hosts at a time, to limit memory."""
        values = self.view.results.values
        hosts = values.distinct("host", condition=PASSED)["host"].tolist()
        for part in values.host_by_host(hosts, keys, PASSED):
            again = part.groupby(["key", "host", "repeat"], sort=False).cumcount()
            row = part.assign(again=again).groupby(["host", "repeat", "again"], sort=False).ngroup().to_numpy()
            names = part.loc[~pd.Series(row).duplicated(), ["host", "repeat"]].itertuples(index=False, name=None)
            order = np.lexsort((part["key"].to_numpy(), row))
            ends = np.cumsum(np.bincount(row)).tolist()
            figures = part["value"].to_numpy(float)[order].tolist()
            places = part["key"].to_numpy()[order].tolist()
            first = 0
            for (host, repeat), last in zip(names, ends, strict=True):
                cells = [Cell()] * (2 + len(keys))
                cells[0], cells[1] = Cell(fmt.clean(hosts[host])), Cell(str(repeat), repeat)
                for n in range(first, last):
                    cells[2 + places[n]] = Cell("", figures[n])
                first = last
                yield tuple(cells)

    # ------------------------------------------------------------ figures of hosts

    def _matrix(self, key: str, heading: Message, make: Callable[[], Iterator[Row]], limit: int, note: str) -> Tabular:
        """Return a table with a row per metric and a column per host."""
        sides = len(self.view.generations) > 1
        hosts = (
            Column(
                f"host{n}",
                fmt.clean(host.name),
                "number",
                group=self.view.title_of(host.generation or "") if sides else "",
                has_interval=False,
            )
            for n, host in enumerate(self.view.hosts)
        )
        columns = (*_NAMES, Column("better", message("direction")), *hosts)
        if len(self.view.of_merged) > limit:
            n = f"{len(self.view.of_merged):,}"
            text = message("{n} figures are too many for this table; Headlines has the spread over hosts.", n=n)
            return Tabular(key, heading, columns, (), notes=(text,))
        return Tabular(key, heading, columns, LazyRows(make, len(self.rows)), notes=(note,))

    def per_host(self) -> Tabular:
        """Return the figure of every metric on every host."""
        heading = message("Value of each metric on each host")
        return self._matrix("per_host", heading, self._figures, MOST_FIGURES, meaning(self.view))

    def _figures(self) -> Iterator[Row]:
        for metric, rows, shown in self.view.by_metric(self.view.merged):
            cells: dict[str, Cell] = {}
            for host, value, rule in zip(rows["host"], rows["value"], rows["rule"], strict=True):
                formula = _centre(self.spans.get((metric, host), ()), rule)
                if formula and metric.unit == "B/s" and shown.unit.endswith("bit/s"):
                    formula = f"=8*{formula[1:]}"
                cells[host] = Cell(shown.quantity(value), float(value), metric.unit, formula=formula)
            yield (*_named(metric, rows), *(cells.get(host, Cell()) for host in self.columns))

    def spreads(self) -> Tabular:
        """Return the coefficient of variation of every metric on every host."""
        heading = message("Coefficient of variation of each metric on each host")
        note = message(
            "Standard deviation over mean: of the repeats; of the pairs' values where the subject is a generation."
        )
        return self._matrix("spread", heading, self._variations, MOST_SPREADS, note)

    def _variations(self) -> Iterator[Row]:
        for metric, rows, _ in self.view.by_metric(self.view.merged):
            cells: dict[str, Cell] = {}
            for host, cv in zip(rows["host"], rows["cv"], strict=True):
                spans = self.spans.get((metric, host), ())
                formula = f"=STDEV({_span(spans[0])})/ABS(AVERAGE({_span(spans[0])}))" if len(spans) == 1 else ""
                cells[host] = replace(headlines.variation(cv), formula=formula) if not math.isnan(cv) else Cell()
            yield (*_named(metric, rows), *(cells.get(host, Cell()) for host in self.columns))

    # ------------------------------------------------------------ headlines

    def headlines(self, against: Against) -> Tabular:
        """Return the headlines with formulas over the figures of hosts."""
        frame = self.view.generational
        is_headline = frame["headline"].to_numpy(bool)
        listed = list(self.view.by_metric(frame[is_headline] if is_headline.any() else frame))
        table = headlines.table(self.view, against, listed).for_format("xlsx")
        rows = LazyRows(partial(self._headlines, table, listed), len(table.rows))
        note = message(
            "Geometric mean over hosts. From and to: its 95% interval (Student's t on logarithms) from 6 hosts on, "
            "below that the range."
        )
        return replace(table, title=message("Headlines per generation"), rows=rows, notes=(note,))

    def _headlines(self, table: Tabular, listed: Sequence[MetricRows]) -> Iterator[Row]:
        records = ((metric, row) for metric, rows, _ in listed for row in headlines.records(rows))
        keys = [column.key for column in table.columns]
        for cells, (metric, record) in zip(table.rows, records, strict=True):
            formulas = self._of_generation(metric, record) if self.has_figures else {}
            yield tuple(
                replace(shown, formula=formulas[key]) if key in formulas and shown.text else shown
                for key, shown in zip(keys, cells, strict=True)
            )

    def _of_generation(self, metric: Metric, record: Mapping[str, Any]) -> dict[str, str]:
        """Return the formulas of a row of headlines by the key of their column."""
        columns = [self.columns[h.name] for h in self.view.hosts if (h.generation or "") == record["generation"]]
        figures = f"[per_host]!{cell(self.rows[metric], columns[0])}:{cell(self.rows[metric], columns[-1])}"
        hosts = f"[per_host]!{cell(HEAD_ROW, columns[0])}:{cell(HEAD_ROW, columns[-1])}"
        rule, n = record["rule"], int(record["n"])
        return {
            "n": f"=COUNT({figures})",
            "value": f"={_mean(figures, rule)}",
            "low": f"={_end(figures, rule, n, -1)}",
            "high": f"={_end(figures, rule, n, 1)}",
            "cv": f"=STDEV({figures})/ABS(AVERAGE({figures}))",
            "low_host": f"=INDEX({hosts},MATCH(MIN({figures}),{figures},0))",
            "high_host": f"=INDEX({hosts},MATCH(MAX({figures}),{figures},0))",
        }


_TITLES: Mapping[str, Message] = {
    "workload": message("workload"),
    "case": message("case"),
    "metric": message("metric"),
    "subject": message("subject"),
    "labels": message("labels"),
    "standing": message("standing"),
    "host": message("host"),
    "unit": message("unit"),
    "tool_version": message("tool version"),
    "time": message("time"),
    "raw": message("raw file"),
}


def _named(metric: Metric, rows: pd.DataFrame) -> tuple[Cell, ...]:
    return (*headlines.names(metric)[1:], Cell(word(str(rows["better"].iloc[0]))))


def _span(rows: tuple[int, int]) -> str:
    column = _MEASURED.index("value")
    return f"[raw]!{cell(rows[0], column)}:{cell(rows[1], column)}"


def _centre(spans: Spans, rule: str) -> str:
    """Return the formula for the centre of measurements; for pairs of hosts, it is the centre of their centres.

    The result is empty if the formula would be too long.
    """
    function = _FUNCTIONS[Centre(rule)]
    each = [f"{function}({_span(span)})" for span in spans]
    formula = f"={each[0]}" if len(each) == 1 else f"={function}({','.join(each)})" if each else ""
    return formula if len(each) <= _MOST_PARTS and len(formula) < MOST_FORMULA else ""


def _mean(cells: str, rule: str) -> str:
    """Return the formula for the mean of ``cells``, ignoring empty ones.

    A geometric mean uses logarithms, because a product would overflow.
    """
    if rule == Centre.MEAN:
        return f"AVERAGE({cells})"
    return f"EXP({_mean_of_logs(cells)})"


def _logs(cells: str) -> str:
    return f"LN({cells}+({cells}=0))"  # 0 for an empty cell


def _mean_of_logs(cells: str) -> str:
    return f"SUMPRODUCT({_logs(cells)})/COUNT({cells})"


def _end(cells: str, rule: str, n: int, sign: int) -> str:
    """Return the formula for one end of the mean's interval; with few hosts, the minimum or maximum."""
    if n < LEAST:
        return f"{'MIN' if sign < 0 else 'MAX'}({cells})"
    half = f"{'-' if sign < 0 else '+'}TINV(0.05,{n - 1})*{{}}/SQRT({n})"
    if rule == Centre.MEAN:
        return f"AVERAGE({cells}){half.format(f'STDEV({cells})')}"
    mean = _mean_of_logs(cells)
    squares = f"SUMPRODUCT(({_logs(cells)}-{mean})^2*({cells}<>0))"
    return f"EXP({mean}{half.format(f'SQRT({squares}/{n - 1})')})"
