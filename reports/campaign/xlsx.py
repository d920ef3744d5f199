"""A campaign as a workbook: headlines per generation, values and spreads per host, measurements and failures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.measurement import Centre, Status
from fleetmark.base.text import Message, message
from fleetmark.base.words import word
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.values import PASSED
from planner.centre import LEAST
from reports import sheets
from reports.campaign.deviation import title
from reports.campaign.view import View, meaning
from reports.comparison.xlsx.hosts import MOST_SHOWN
from reports.comparison.xlsx.sources import LIVE
from reports.kit import format as fmt
from reports.kit.prose import Prose
from reports.kit.workbook import COLOURS, INTEGER, MOST_FORMULA, Book, Head, Sheet
from reports.report import Report

_FIRST_ROW = 4
_ABOUT = ("workload", "case", "metric", "subject", "labels", "standing", "unit", "better")
_FIRST_COLUMN = len(_ABOUT)
_MOST_PARTS = 200
_MOST_FIGURES = 500_000  # maximum figures of hosts in the workbook
_RAW = ("workload", "case", "metric", "subject", "labels", "standing", "host", "repeat", "value", "unit")
_REST = ("tool_version", "time", "raw")
_VALUE = _RAW.index("value")

_POINT = (
    Head(message("workload")),
    Head(message("case")),
    Head(message("metric")),
    Head(message("subject")),
    Head(message("labels")),
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The positions of figures in the workbook.

    ``metrics``: metric to row. ``columns``: host to column. ``generations``: generation to first and last column.
    ``ranges``: (metric, host) to the row ranges in the tab Raw, each of which gives one value.
    """

    view: View
    metrics: Mapping[Metric, int]
    columns: Mapping[str, int]
    generations: Mapping[str, tuple[int, int]]
    ranges: Mapping[tuple[Metric, str], Sequence[tuple[int, int]]]


def render(report: Report, every: bool = False) -> bytes:
    """Return the workbook of a campaign. ``every``: include all values even if they are too many for formulas."""
    title = message("Campaign {id}", id=report.campaign.id)
    number = sum(int(part["n"].sum()) for part in report.view.of_hosts)
    live = number <= LIVE
    measured = _scored(report.view) if live else schema.frame()
    book = Book(title, report.date, report.language, on_disk=every and not live)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    headlines = book.sheet(message("Headlines"), COLOURS[0])
    parts = sheets.parts(book, report)
    hosts = book.sheet(message("Per host"), COLOURS[2])
    spread = book.sheet(message("Spread"), COLOURS[2])
    raw = book.sheet(message("Raw"), COLOURS[2], in_rows=every and not live)
    failed = book.sheet(message("Not passed"), COLOURS[5])
    facts = book.sheet(message("Facts"), COLOURS[5])
    layout = _layout(report.view, measured)
    if live:
        _raw(raw, measured)
    elif every:
        _every(raw, report.view)
    else:
        _elsewhere(raw, number, report)
    few = len(report.view.of_merged) <= _MOST_FIGURES
    first = report.front
    _values(hosts, layout, raw, few)
    _spreads(spread, layout, raw)
    _headlines(headlines, layout, hosts if few else None)
    failed.top(message("What did not pass, and why"))
    sheets.excluded(failed, report, _FIRST_ROW - 1)
    facts.top(message("Hosts side by side"), sheets.ALIKE)
    sheets.facts(facts, report, _FIRST_ROW - 1)
    prose = Prose(readme, readme.top(title) - 1)
    prose.heading(message("Summary"))
    prose.pair(message("status"), first.status)
    for label, lines in (
        (message("machines"), first.machines),
        (message("What it means"), first.means),
        (message("What is odd"), first.odd),
    ):
        for i, line in enumerate(lines):
            prose.pair(label if i == 0 else " ", line)
    for i, (advice, command) in enumerate(first.next):
        prose.pair(
            message("What to do next") if i == 0 else " ",
            message("{advice}: {command}", advice=advice, command=command),
        )
    prose.heading(message("What was measured"))
    counts = report.view.results.outcomes["status"].value_counts()
    prose.pair(message("Hosts"), f"{len(report.view.hosts):,}")
    prose.pair(message("Runs"), ", ".join(f"{int(counts[s]):,} {book.words(word(s))}" for s in Status if s in counts))
    prose.pair(message("Measurements that passed"), f"{number:,}")
    tabs = _TABS if live else _TABS_OF_EVERY if every else _TABS_OF_VALUES
    about = dict(zip((headlines, hosts, spread, raw, failed, facts), tabs, strict=True))
    prose.tabs({sheet.name: text for sheet, text in {headlines: about[headlines], **parts, **about}.items()})
    sheets.provenance(prose, report)
    return book.bytes()


_TABS: Sequence[Message] = (
    message("The headline metrics per generation: geometric mean over hosts with its interval, live."),
    message("The value of every metric on every host, live from the tab Raw."),
    message("The coefficient of variation of each of these values."),
    message("Every measurement that passed, with the file it was read from."),
    message("Excluded data and failed runs, with the reasons."),
    message("The hardware and configuration of the hosts, side by side."),
)
_TABS_OF_VALUES: Sequence[Message] = (
    message("The headline metrics per generation: geometric mean over hosts with its interval, as numbers."),
    message("The value of every metric on every host, as numbers, where there are not too many."),
    message("The coefficient of variation behind each of those values, where there are not too many."),
    message("The location of all measurements, which are too many for this workbook."),
    *_TABS[4:],
)
_TABS_OF_EVERY: Sequence[Message] = (
    *_TABS_OF_VALUES[:3],
    message("Every measurement that passed: a row for each host and repeat, a column for each metric."),
    *_TABS[4:],
)


def _scored(view: View) -> pd.DataFrame:
    """Return the measurements behind the values, sorted so that those of one value are adjacent.

    The column ``merged`` is the subject under which pairs of hosts are merged.
    """
    order = view.stats.reset_index(names="place")[["place", *METRIC, "host"]]
    m = (
        view.results.values.where(PASSED)
        .astype(schema.PANDAS)
        .merge(order, on=[*METRIC, "host"])
        .sort_values(["place", "repeat"], kind="stable", ignore_index=True)
    )
    return m.assign(merged=pair_subjects(m, view.generation))


def _layout(view: View, measured: pd.DataFrame) -> _Layout:
    metrics = [Metric(*columns) for columns in view.of_merged.distinct(*METRIC)]
    columns = {host.name: n for n, host in enumerate(view.hosts, _FIRST_COLUMN)}
    generations: dict[str, tuple[int, int]] = {}
    for host in view.hosts:
        first, _ = generations.get(host.generation or "", (columns[host.name],) * 2)
        generations[host.generation or ""] = (first, columns[host.name])
    ranges: dict[tuple[Metric, str], list[tuple[int, int]]] = {}
    if not measured.empty:
        for at in measured.groupby("place", sort=False).indices.values():
            row = measured.iloc[at[0]]
            metric = Metric(*(str(row["merged" if c == "subject" else c]) for c in METRIC))
            span = (_FIRST_ROW + int(at[0]), _FIRST_ROW + int(at[-1]))
            ranges.setdefault((metric, str(row["host"])), []).append(span)
    return _Layout(view, {m: n for n, m in enumerate(metrics, _FIRST_ROW)}, columns, generations, ranges)


def _metrics(frame: pd.DataFrame) -> list[Metric]:
    """Return the metric of each row of ``frame``."""
    return [Metric(*columns) for columns in zip(*(frame[c].astype(str).tolist() for c in METRIC), strict=True)]


def _every(sheet: Sheet, view: View) -> None:
    """Write every value, with a row per host and repeat and a column per metric.

    To limit memory, the sheet is written row by row, and the values of only some hosts are read at a time.
    """
    sheet.top(
        message("Measurements"),
        message("Measurements that passed, in base units: a row for each host and repeat, a column for each metric."),
    )
    values = view.results.values
    keys, hosts = values.distinct(*METRIC, where=PASSED), values.distinct("host", where=PASSED)["host"].tolist()
    heads = [Head(message("host"), "", 18), Head(message("repeat"), message("from 0"), 9)]
    for metric in _metrics(keys):
        heads.append(Head(title(metric), fmt.clean(metric.unit), 16))
    sheet.heads(_FIRST_ROW - 1, heads)
    row = _FIRST_ROW
    for part in values.host_by_host(hosts, keys, PASSED):
        row = _some_hosts(sheet, row, part, hosts)
    sheet.filtered(_FIRST_ROW - 1, row - 1, len(heads), frozen_columns=2)


def _some_hosts(sheet: Sheet, first: int, part: pd.DataFrame, hosts: Sequence[str]) -> int:
    """Write the rows of some hosts, starting at row ``first``. Return the next free row."""
    again = part.groupby(["key", "host", "repeat"], sort=False).cumcount()
    row = part.assign(again=again).groupby(["host", "repeat", "again"], sort=False).ngroup().to_numpy()
    about = part.loc[~pd.Series(row).duplicated(), ["host", "repeat"]].itertuples(index=False, name=None)
    order = np.lexsort((part["key"].to_numpy(), row))
    ends = np.cumsum(np.bincount(row)).tolist()
    amounts, columns = part["value"].to_numpy(float)[order].tolist(), part["key"].to_numpy()[order].tolist()
    for n, (host, repeat) in enumerate(about):
        sheet.text(first + n, 0, hosts[host])
        sheet.number(first + n, 1, repeat, INTEGER)
        for place in range(ends[n - 1] if n else 0, ends[n]):
            sheet.number(first + n, 2 + columns[place], amounts[place], "0.000000E+00")
    return first + len(ends)


def _elsewhere(sheet: Sheet, number: int, report: Report) -> None:
    """Write where the measurements are, if they are too many for the workbook."""
    text = message(
        "{n} measurements are too many for formulas over each (at most {most}): the tabs hold numbers. Every "
        "measurement is in measurements.parquet in {path}.",
        n=f"{number:,}",
        most=f"{LIVE:,}",
        path=str(report.campaign.path),
    )
    sheet.top(message("Measurements"), text)


def _raw(sheet: Sheet, measured: pd.DataFrame) -> None:
    sheet.top(
        message("Measurements"),
        message("Measurements that passed. Filter rows as you like, but do not sort: Per host refers to ranges."),
    )
    for n, values in enumerate(measured[[*_RAW, *_REST]].itertuples(index=False), _FIRST_ROW):
        for column, value in enumerate(values):
            if column == _VALUE:
                sheet.number(n, column, float(value), "0.000000E+00")
            elif column == _RAW.index("repeat"):
                sheet.number(n, column, int(value), INTEGER)
            else:
                sheet.text(n, column, "" if value == "{}" else value)
    heads = [
        *_POINT,
        *(Head(message("standing")), Head(message("host")), Head(message("repeat"), message("from 0"), 9)),
        *(Head(message("value"), message("base unit"), 16), Head(message("unit"))),
        *(Head(message("tool version")), Head(message("time")), Head(message("raw file"))),
    ]
    sheet.heads(_FIRST_ROW - 1, heads)
    sheet.filtered(_FIRST_ROW - 1, _FIRST_ROW + len(measured) - 1, len(heads))


def _about(sheet: Sheet, row: int, metric: Metric, better: str, unit: str) -> None:
    """Write the names of a metric, and the ``unit`` of its row."""
    known = dict(zip(METRIC, metric.columns, strict=True)) | {"unit": unit}
    texts = {
        **known,
        "labels": fmt.labels(known["labels"]),
        "better": word(better),
        "standing": word(known["standing"]),
    }
    for column, name in enumerate(_ABOUT):
        sheet.text(row, column, texts[name], "strong" if name == "metric" else "text")


def _matrix(sheet: Sheet, layout: _Layout) -> None:
    heads = [
        *_POINT,
        *(Head(message("standing"), "", 10), Head(message("unit"), "", 8), Head(message("direction"), "", 10)),
    ]
    heads += [Head(h.name, "", 16) for h in layout.view.hosts]
    for generation, (first, _) in layout.generations.items():
        sheet.text(_FIRST_ROW - 2, first, layout.view.title_of(generation), "heading")
    sheet.heads(_FIRST_ROW - 1, heads)
    sheet.filtered(_FIRST_ROW - 1, _FIRST_ROW + len(layout.metrics) - 1, len(heads), frozen_columns=3)


def _values(sheet: Sheet, layout: _Layout, raw: Sheet, few: bool) -> None:
    title = message("Value of each metric on each host")
    if not few:
        sheet.top(title, _too_many(layout.view))
        return
    sheet.top(title, meaning(layout.view))
    for metric, rows, shown in layout.view.by_metric(layout.view.merged):
        row = layout.metrics[metric]
        form = decimals(shown)
        _about(sheet, row, metric, str(rows["better"][0]), shown.unit)
        for host, value, rule in rows.each("host", "value", "rule"):
            formula = _centre(raw, layout.ranges.get((metric, host), ()), rule)
            if formula:
                scaled = formula if shown.factor == 1 else f"{formula}*{shown.factor!r}"
                sheet.formula(row, layout.columns[host], f"={scaled}", float(value) * shown.factor, form)
            else:
                sheet.number(row, layout.columns[host], float(value) * shown.factor, form, "value")
    _matrix(sheet, layout)


def decimals(shown: fmt.Shown) -> str:
    """Return the number format of figures in the unit shown, with the same decimals as other documents."""
    return f"#,##0.{'0' * shown.decimals}" if shown.decimals else "#,##0"


_FUNCTION = {Centre.GEOMEAN: "GEOMEAN", Centre.MEDIAN: "MEDIAN", Centre.MEAN: "AVERAGE"}


def _centre(raw: Sheet, ranges: Sequence[tuple[int, int]], rule: str) -> str:
    """Return the formula for the centre of ranges in the tab Raw; for pairs, the centre of the pairs' centres.

    The result is empty if the formula would be too long.
    """
    function = _FUNCTION[Centre(rule)]
    each = [f"{function}({raw.span(first, _VALUE, last, _VALUE)})" for first, last in ranges]
    formula = each[0] if len(each) == 1 else f"{function}({','.join(each)})" if each else ""
    return formula if len(each) <= _MOST_PARTS and len(formula) < MOST_FORMULA else ""


def _spreads(sheet: Sheet, layout: _Layout, raw: Sheet) -> None:
    title = message("Coefficient of variation of each metric on each host")
    if len(layout.view.of_merged) > MOST_SHOWN:
        sheet.top(title, _too_many(layout.view))
        return
    merged = layout.view.merged
    text = message(
        "Standard deviation over mean: of the repeats; of the pairs' values where the subject is a generation."
    )
    sheet.top(title, text)
    for metric, host, cv, better in zip(_metrics(merged), merged["host"], merged["cv"], merged["better"], strict=True):
        row, column = layout.metrics[metric], layout.columns[host]
        _about(sheet, row, metric, str(better), metric.unit)
        ranges = layout.ranges.get((metric, host), ())
        if math.isnan(cv):
            continue
        if len(ranges) == 1:
            cells = raw.span(ranges[0][0], _VALUE, ranges[0][1], _VALUE)
            sheet.formula(row, column, f"=STDEV({cells})/ABS(AVERAGE({cells}))", float(cv), fmt.CV_FORM)
        else:
            sheet.number(row, column, float(cv), fmt.CV_FORM, "value")
    _matrix(sheet, layout)
    last = max(layout.columns.values(), default=_FIRST_COLUMN)
    rows = (_FIRST_ROW, max(layout.metrics.values(), default=_FIRST_ROW))
    sheet.scale(rows[0], _FIRST_COLUMN, rows[1], last)


def _ends(layout: _Layout) -> dict[tuple[Metric, str], tuple[str, str]]:
    """Return the hosts with the lowest and highest value of each metric and generation. Ties go to the leftmost."""
    of = {h.name: h.generation or "" for h in layout.view.hosts}
    merged = layout.view.merged[[*METRIC, "host", "value"]].astype({"host": object})
    merged = merged.assign(generation=merged["host"].map(of), column=merged["host"].map(layout.columns))
    merged = merged.sort_values("column", kind="stable", ignore_index=True)
    values = merged.groupby([*METRIC, "generation"], sort=False, observed=True)["value"]
    low, high = (merged.loc[rows, [*METRIC, "generation", "host"]] for rows in (values.idxmin(), values.idxmax()))
    return {
        (metric, str(generation)): (str(a), str(b))
        for metric, generation, a, b in zip(_metrics(low), low["generation"], low["host"], high["host"], strict=True)
    }


def _too_many(view: View) -> str:
    return message(
        "{n} figures are too many to stand here; Headlines has the spread over hosts.", n=f"{len(view.of_merged):,}"
    )


def _mean(cells: str, rule: str) -> str:
    """Return the formula for the mean of ``cells``, ignoring empty ones.

    A geometric mean uses logarithms, because a product would overflow.
    """
    if rule == Centre.MEAN:
        return f"AVERAGE({cells})"
    return f"EXP({_MEAN_LOG.format(cells=cells)})"


_LOGS = "LN({cells}+({cells}=0))"  # 0 for an empty cell
_MEAN_LOG = f"SUMPRODUCT({_LOGS})/COUNT({{cells}})"


def _end(cells: str, rule: str, n: int, sign: int) -> str:
    """Return the formula for an end of the mean's interval; with few hosts, the minimum or maximum."""
    if n < LEAST:
        return f"{'MIN' if sign < 0 else 'MAX'}({cells})"
    half = f"{'-' if sign < 0 else '+'}TINV(0.05,{n - 1})*{{}}/SQRT({n})"
    if rule == Centre.MEAN:
        return f"AVERAGE({cells}){half.format(f'STDEV({cells})')}"
    mean = _MEAN_LOG.format(cells=cells)
    squares = f"SUMPRODUCT(({_LOGS.format(cells=cells)}-{mean})^2*({cells}<>0))"
    return f"EXP({mean}{half.format(f'SQRT({squares}/{n - 1})')})"


def _headlines(sheet: Sheet, layout: _Layout, hosts: Sheet | None) -> None:
    """Write a row per headline metric and generation: the mean over hosts, its interval or range, and extreme hosts.

    The cells are formulas if the tab ``hosts`` has the figures, else numbers.
    """
    sheet.top(
        message("Headlines per generation"),
        message(
            "Geometric mean over hosts. From and to: its 95% interval (Student's t on logarithms) from 6 hosts on, "
            "below that the range."
        ),
    )
    frame = layout.view.generational
    frame = frame[frame["headline"].astype(bool)] if frame["headline"].astype(bool).any() else frame
    heads = [
        *_POINT,
        *(Head(message("standing"), "", 10), Head(message("unit"), "", 8), Head(message("direction"), "", 10)),
        *(Head(message("generation")), Head(message("hosts"), "", 8), Head(message("value"), "", 16)),
        *(Head(message("from"), "", 16), Head(message("to"), "", 16), Head(message("variation"), "%", 11)),
        *(Head(message("lowest"), message("host"), 16), Head(message("highest"), message("host"), 16)),
    ]
    row, head = _FIRST_ROW, _FIRST_ROW - 1
    ends = {} if hosts is None else _ends(layout)
    for metric, about in zip(_metrics(frame), frame.to_dict("records"), strict=True):
        shown = layout.view.scales[metric]
        form = decimals(shown)
        _about(sheet, row, metric, str(about["better"]), shown.unit)
        generation = str(about["generation"])
        sheet.text(row, 8, layout.view.title_of(generation))
        n = int(about["n"])
        lowest, highest = ends.get((metric, generation), (about["low_host"], about["high_host"]))
        cells = names = ""
        if hosts is not None:
            first, last = layout.generations[generation]
            cells = hosts.span(layout.metrics[metric], first, layout.metrics[metric], last)
            names = hosts.span(head, first, head, last)
        figures: list[tuple[str, int | float | str, str, str]] = [
            (f"COUNT({cells})", n, INTEGER, "computed"),
            (_mean(cells, about["rule"]), float(about["value"]) * shown.factor, form, "key"),
            (_end(cells, about["rule"], n, -1), float(about["lo"]) * shown.factor, form, "computed"),
            (_end(cells, about["rule"], n, 1), float(about["hi"]) * shown.factor, form, "computed"),
            (f"STDEV({cells})/ABS(AVERAGE({cells}))", float(about["cv"]), fmt.CV_FORM, "computed"),
            (f"INDEX({names},MATCH(MIN({cells}),{cells},0))", lowest, "", "computed"),
            (f"INDEX({names},MATCH(MAX({cells}),{cells},0))", highest, "", "computed"),
        ]
        for column, (formula, value, shape, role) in enumerate(figures, 9):
            if isinstance(value, float) and math.isnan(value):
                continue  # there is only a single host
            if hosts is not None:
                sheet.formula(row, column, f"={formula}", value, shape, role)
            elif isinstance(value, str):
                sheet.text(row, column, value)
            else:
                sheet.number(row, column, value, shape, "value")
        row += 1
    sheet.heads(head, heads)
    sheet.filtered(head, row - 1, len(heads), frozen_columns=3)
