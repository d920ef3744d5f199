"""Classes, live: weights that can be changed, a score per host made with them, and the headline made of the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from planner.comparison import WORK_MIX, Candidate
from planner.contrast import Pairing
from planner.equivalence import MIX_SENSITIVE, Basis, Equivalence
from planner.ratio import Ratio
from reports.comparison.titles import class_title
from reports.comparison.xlsx import ratios
from reports.comparison.xlsx.grid import FIRST_COLUMN, FIRST_ROW, Grid
from reports.kit.workbook import GRID, INTEGER, LOG, PERCENT, RATIO, Head, Sheet, cell, literal

_Logs = npt.NDArray[np.float64]
# Columns of the tab Weights.
CANDIDATE, CLASS, BENCHMARK, WEIGHT, COUNTED, SHARE, DELTA, OWN, WHY, HOURS, OF_HOURS = range(11)
_YOURS = ("workload_lo", "workload_hi")
_ENDS = ("lowest", "lowest_title", "highest", "highest_title")
_BEFORE = ("candidate", "class", "kind", *ratios.KEYS, "p_adjusted", *_YOURS, *_ENDS, "note")
_BEHIND = (
    *ratios.WORKINGS,
    "inside",
    "count",
    "below",
    "above",
    "resampled_lo",
    "resampled_hi",
    "label",
)
AT = {name: place for place, name in enumerate((*_BEFORE, *_BEHIND))}  # columns of the tab Classes


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A line of the tab Classes: a class of one candidate, or its headline for equal work. ``kind``: a Kind; ``row``:
    where it stands there; ``first``: the row of the tab Weights where its benchmarks begin; ``score``: the row of its
    hosts' scores.
    """

    candidate: Candidate
    class_: str
    kind: str
    equivalence: Equivalence
    equal_work: bool
    row: int
    first: int
    score: int

    @property
    def ratio(self) -> Ratio | None:
        """The headline."""
        return self.equivalence.work if self.equal_work else self.equivalence.ratio

    @property
    def basis(self) -> Basis:
        """Return what the ratio rests on: totals of a mix are those for equal work alone."""
        e = self.equivalence
        of_work = e.basis is Basis.TOTALS and e.work is not None
        return Basis.MEAN if of_work and not self.equal_work else e.basis

    @property
    def live(self) -> bool:
        """Return whether formulas over the hosts' scores compute the headline.

        Headlines from mixed models, repeats, clusters, totals and strata are written as values.
        """
        e, ratio = self.equivalence, self.ratio
        return ratio is not None and self.basis is Basis.MEAN and not (e.gaps or ratio.of_repeats or ratio.clusters)

    @property
    def live_weights(self) -> bool:
        """Return whether the weights are inputs: those of the class, which its headline for equal work shares."""
        line = replace(self, equal_work=False)
        return line.live or line.ratio is None

    @property
    def judged(self) -> bool:
        """Whether the line carries a verdict: of a mix that for equal work does."""
        return self.equal_work or self.class_ != WORK_MIX


def lines(grid: Grid) -> list[ClassRow]:
    """Every line: candidate by candidate; those without a headline after all others, so that a chart can end there."""
    rows: list[ClassRow] = []
    first = score = FIRST_ROW
    for candidate in grid.comparison.candidates:
        for name, equivalence in sorted(candidate.classes.items(), key=lambda c: (c[0] != WORK_MIX, c[0])):
            kind = grid.comparison.kind(name)
            for equal_work in (True, False) if name == WORK_MIX else (False,):
                rows.append(ClassRow(candidate, name, kind, equivalence, equal_work, 0, first, score))
                score += 2 if grid.comparison.pairing is Pairing.SAME_HOSTS else 1  # a row of differences below it
            first += len(grid.of(name))
    rows.sort(key=lambda line: (line.ratio is None, line.kind != Kind.CAPACITY))
    return [replace(line, row=row) for row, line in enumerate(rows, FIRST_ROW)]


def title(line: ClassRow) -> Message | str:
    """What a line is called."""
    if line.equal_work:
        return message("{class_}, equal work", class_=class_title(line.class_))
    if line.class_ == WORK_MIX:
        return message("{class_}, geometric mean", class_=class_title(line.class_))
    return class_title(line.class_)


@dataclass(frozen=True, slots=True)
class _Scored:
    """What Python computes for a line: share of each benchmark (and that of the candidate's hours, for equal work),
    logs of their ratios over the hosts that have all (NaN elsewhere), and the hosts' scores (NaN where there is none).
    """

    share: _Logs
    hours: _Logs
    delta: _Logs
    a: _Logs
    b: _Logs


def write(grid: Grid, weights: Sheet, scores: Sheet, logs: Sheet, classes: Sheet) -> list[ClassRow]:
    """The tabs Weights, Host scores and Classes. ``logs`` has the hosts' logs where ``grid`` says."""
    rows = lines(grid)
    for candidate in grid.comparison.candidates:
        for line in (m for m in rows if m.candidate is candidate):
            scored = _scored(grid, line)
            if not line.equal_work:
                _weights(grid, line, scored, weights, scores, logs, classes)
            _scores(grid, line, scored, weights, scores, logs)
            _class(grid, line, scored, classes, weights, scores)
    _heads(grid, weights, scores, classes, rows)
    return rows


def _of(line: ClassRow, grid: Grid) -> tuple[list[float], list[bool]]:
    """The weight of each benchmark of the class, and whether it is in the headline."""
    e, titles = line.equivalence, grid.of(line.class_)
    weights = [float(e.weights.get(t, 0.0)) for t in titles]
    return weights, [w > 0 and t in e.each for w, t in zip(weights, titles, strict=True)]


def _scored(grid: Grid, line: ClassRow) -> _Scored:
    weights, inside = _of(line, grid)
    weight = np.where(inside, weights, 0.0)
    share = weight / weight.sum() if weight.any() else weight
    titles = list(grid.of(line.class_))
    x, y = (grid.frames[side][titles].to_numpy(float) for side in (grid.comparison.baseline, line.candidate.title))
    chosen = share > 0
    a, b = (_dot(side, share, chosen) for side in (x, y))
    complete_a, complete_b = ~np.isnan(a), ~np.isnan(b)
    if grid.comparison.pairing is Pairing.SAME_HOSTS:
        complete_a = complete_b = complete_a & complete_b
    delta = np.full(len(titles), np.nan)
    if chosen.any() and complete_a.any() and complete_b.any():
        delta[chosen] = y[complete_b][:, chosen].mean(axis=0) - x[complete_a][:, chosen].mean(axis=0)
    if not line.live_weights:
        each = line.equivalence.each
        delta = np.array([math.log(each[t].value) if s > 0 else math.nan for s, t in zip(share, titles, strict=True)])
    hours = np.where(np.isnan(delta), 0.0, share * np.exp(-np.nan_to_num(delta)))
    if line.equal_work and hours.any():
        a, b = (_dot(side, hours / hours.sum(), chosen) for side in (x, y))
    return _Scored(share, hours, delta, a, b)


def _dot(side: _Logs, share: _Logs, chosen: npt.NDArray[np.bool_]) -> _Logs:
    """A score per host, NaN where it has not all that is chosen."""
    if not chosen.any():
        return np.full(len(side), np.nan)
    scores: _Logs = side[:, chosen] @ share[chosen]
    return scores


def _none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _weights(grid: Grid, line: ClassRow, v: _Scored, sheet: Sheet, scores: Sheet, logs: Sheet, classes: Sheet) -> None:
    """The benchmarks of a class with their weights, which are inputs."""
    of_titles, _ = _of(line, grid)
    e, candidate = line.equivalence, line.candidate
    total = classes.at(line.row, AT["inside"])
    baseline, other = (grid.hosts(scores, line.score, side) for side in (grid.comparison.baseline, candidate.title))
    mixed = line.class_ == WORK_MIX
    live = line.live_weights
    of_hours = sheet.span(line.first, HOURS, line.first + len(of_titles) - 1, HOURS)
    for n, name in enumerate(grid.of(line.class_)):
        row = line.first + n
        sheet.text(row, CANDIDATE, candidate.title)
        sheet.text(row, CLASS, word(line.class_))
        sheet.text(row, BENCHMARK, name)
        comparable = name in e.each
        sheet.number(row, WEIGHT, of_titles[n], "0.0000", "input" if live else "value")
        sheet.number(row, COUNTED, float(comparable), INTEGER, "input" if comparable and live else "value")
        if not live:
            own = e.each.get(name) if v.share[n] > 0 else None
            sheet.number(row, SHARE, v.share[n], PERCENT, "value")
            sheet.number(row, DELTA, math.log(own.value) if own else None, LOG, "value")
            sheet.number(row, OWN, own.value if own else None, RATIO, "value")
            if mixed:
                sheet.number(row, HOURS, v.hours[n], "0.0000", "value")
                hours_cell = cell(row, HOURS)
                part = f"=IF({hours_cell}=0,0,{hours_cell}/SUM({of_hours}))"
                sheet.formula(row, OF_HOURS, part, v.hours[n] / v.hours.sum() if v.hours.any() else 0.0, PERCENT)
            sheet.text(row, WHY, candidate.excluded.get(name) or e.left_out.get(name, ""), "note")
            continue
        if comparable:
            sheet.must_be_one_of(row, COUNTED, [1, 0])
        sheet.must_be_number(row, WEIGHT, 0, 1e6, message("a weight is 0 or more; weights need not sum to 1"))
        weight, counted, share, delta = (cell(row, c) for c in (WEIGHT, COUNTED, SHARE, DELTA))
        sheet.formula(row, SHARE, f"=IF(AND({counted}=1,{weight}>0),{weight}/{total},0)", v.share[n], PERCENT)
        at = grid.row(name)
        a, b = (grid.hosts(logs, at, side) for side in (grid.comparison.baseline, candidate.title))
        mean = _mean_over(grid.comparison.pairing, a, b, baseline, other)
        sheet.formula(row, DELTA, f'=IF(OR({share}=0,{mean[0]}=0,{mean[1]}=0),"",{mean[2]})', _none(v.delta[n]), LOG)
        sheet.formula(row, OWN, f'=IF({delta}="","",EXP({delta}))', _none(math.exp(v.delta[n])), RATIO)
        if mixed:
            sheet.formula(row, HOURS, f'=IF({delta}="",0,{share}*EXP(-{delta}))', v.hours[n], "0.0000")
            hours = v.hours[n] / v.hours.sum() if v.hours.any() else 0.0
            hours_cell = cell(row, HOURS)
            sheet.formula(row, OF_HOURS, f"=IF({hours_cell}=0,0,{hours_cell}/SUM({of_hours}))", hours, PERCENT)
        sheet.text(row, WHY, candidate.excluded.get(name) or e.left_out.get(name, ""), "note")


def _mean_over(pairing: Pairing, a: str, b: str, score_a: str, score_b: str) -> tuple[str, str, str]:
    """How many hosts of both sides have a score, and the difference of their mean logs, as formulas."""
    if pairing is Pairing.SAME_HOSTS:
        both = f"ISNUMBER({score_a})*ISNUMBER({score_b})"
        n = f"SUMPRODUCT({both})"
        return n, n, f"SUMPRODUCT({both}*({b}-{a}))/{n}"
    n_a, n_b = f"COUNT({score_a})", f"COUNT({score_b})"
    return n_a, n_b, f"SUMPRODUCT(ISNUMBER({score_b})*{b})/{n_b}-SUMPRODUCT(ISNUMBER({score_a})*{a})/{n_a}"


def _scores(grid: Grid, line: ClassRow, v: _Scored, weights: Sheet, scores: Sheet, logs: Sheet) -> None:
    """A score per host: its logs weighted, where it has all that have a share."""
    row, last = line.score, line.first + len(grid.of(line.class_)) - 1
    share = weights.span(line.first, SHARE, last, SHARE)
    used = weights.span(line.first, OF_HOURS, last, OF_HOURS) if line.equal_work else share
    scores.text(row, 0, line.candidate.title)
    scores.text(row, 1, title(line))
    scores.text(row, 2, message("score"))
    for side, values in ((grid.comparison.baseline, v.a), (line.candidate.title, v.b)):
        for n, value in enumerate(values, grid.first[side]):
            host = grid.benchmarks(logs, line.class_, n)
            complete = f'AND(COUNTIF({share},">0")>0,SUMPRODUCT(({share}>0)*ISNUMBER({host}))=COUNTIF({share},">0"))'
            scores.formula(row, n, f'=IF({complete},SUMPRODUCT({used},{host}),"")', _none(value), LOG)
    if grid.comparison.pairing is Pairing.SAME_HOSTS:
        scores.text(row + 1, 0, line.candidate.title)
        scores.text(row + 1, 1, title(line))
        scores.text(row + 1, 2, message("difference"))
        before = grid.first[grid.comparison.baseline]
        for n, difference in enumerate(v.b - v.a):
            a, b = cell(row, before + n), cell(row, grid.first[line.candidate.title] + n)
            formula = f'=IF(AND(ISNUMBER({a}),ISNUMBER({b})),{b}-{a},"")'
            scores.formula(row + 1, grid.first[line.candidate.title] + n, formula, _none(difference), LOG)


def _class(grid: Grid, line: ClassRow, v: _Scored, sheet: Sheet, weights_tab: Sheet, scores: Sheet) -> None:
    """The headline of a class: its ratio and interval, from the hosts' scores."""
    row, e, ratio = line.row, line.equivalence, line.ratio
    last = line.first + len(grid.of(line.class_)) - 1
    at = {name: cell(row, place) for name, place in AT.items()}
    weight_cells, counted, share, delta, hours = (
        weights_tab.span(line.first, c, last, c) for c in (WEIGHT, COUNTED, SHARE, DELTA, HOURS)
    )
    sheet.text(row, AT["candidate"], line.candidate.title, "strong")
    sheet.text(row, AT["class"], title(line), "strong")
    sheet.text(row, AT["kind"], word(line.kind))
    sheet.text(row, AT["label"], joined([line.candidate.title, title(line)]))
    weights, inside = _of(line, grid)
    chosen = [x for x, counts in zip(weights, inside, strict=True) if counts]
    sheet.formula(
        row, AT["inside"], f"=SUMPRODUCT(({counted}=1)*({weight_cells}>0)*{weight_cells})", sum(chosen), "0.0000"
    )
    sheet.formula(row, AT["count"], f'=COUNTIF({share},">0")', len(chosen), INTEGER)
    if not line.live:
        _standing(line, sheet)
        return
    _note(line, sheet, at)
    no_headline = f'{at["ratio"]}=""'
    a, b = (grid.hosts(scores, line.score, side) for side in (grid.comparison.baseline, line.candidate.title))
    differences = grid.hosts(scores, line.score + 1, line.candidate.title)
    formulas = ratios.of_scores(
        a, b, differences, grid.comparison.pairing, f"{at['count']}>0", f"1/SUM({hours})" if line.equal_work else ""
    )
    values = ratios.worked_out(v.a, v.b, grid.comparison.pairing, ratio)
    ratios.write(sheet, row, AT, formulas, values, judged=line.judged)
    names = weights_tab.span(line.first, BENCHMARK, last, BENCHMARK)
    for name, formula, value in (("lowest", "MIN", e.lowest), ("highest", "MAX", e.highest)):
        sheet.formula(row, AT[name], f'=IF({no_headline},"",EXP({formula}({delta})))', value if ratio else None, RATIO)
        which = f"INDEX({names},MATCH({formula}({delta}),{delta},0))"
        end = e.lowest_title if name == "lowest" else e.highest_title
        sheet.formula(row, AT[f"{name}_title"], f'=IF({no_headline},"",{which})', end, role="word")
    _yours(line, sheet)
    below = above = 0.0
    if ratio and ratio.interval:
        below, above = ratio.value - ratio.interval[0], ratio.interval[1] - ratio.value
    sheet.formula(row, AT["below"], f'=IF({at["lo"]}="",0,{at["ratio"]}-{at["lo"]})', below, RATIO)
    sheet.formula(row, AT["above"], f'=IF({at["lo"]}="",0,{at["hi"]}-{at["ratio"]})', above, RATIO)
    if e.resampled and not line.equal_work:
        sheet.number(row, AT["resampled_lo"], e.resampled.lo, RATIO, "value")
        sheet.number(row, AT["resampled_hi"], e.resampled.hi, RATIO, "value")


def yours(line: ClassRow) -> list[tuple[str, float | None]]:
    """The interval of your workload, with the weights as they came: the names of its columns, and its ends."""
    workload = None if line.equal_work else line.equivalence.workload
    return list(zip(_YOURS, (workload.lo, workload.hi) if workload else (None, None), strict=True))


def _yours(line: ClassRow, sheet: Sheet) -> None:
    for name, value in yours(line):
        sheet.number(line.row, AT[name], value, RATIO, "value")


def _standing(line: ClassRow, sheet: Sheet) -> None:
    """A headline that formulas cannot give, as a value; or why there is none."""
    row, e, ratio = line.row, line.equivalence, line.ratio
    if ratio is None:
        sheet.text(row, AT["note"], why(line))
        return
    of_basis = {Basis.TOTALS: _TOTALS, Basis.STRATA: _STRATA, Basis.MEAN: _value(ratio)}
    sheet.text(row, AT["note"], joined([of_basis[line.basis], _mix(line)], "; "))
    _yours(line, sheet)
    sheet.text(row, AT["lowest_title"], e.lowest_title)
    sheet.text(row, AT["highest_title"], e.highest_title)
    ratios.stand(sheet, row, AT, ratio, judged=line.judged)
    lo, hi = ratio.interval or (ratio.value, ratio.value)
    beside = {"lowest": e.lowest, "highest": e.highest, "below": ratio.value - lo, "above": hi - ratio.value}
    for name, value in beside.items():
        sheet.number(row, AT[name], value, RATIO, "value")


_NOTHING = message("no headline: nothing that is counted has a weight")
_GAPS = message("a value, not a formula: hosts lack some of these benchmarks, and a mixed model gives the headline")
_TOTALS = message("a value, not a formula: the hosts of a side differ, so the ratio compares their totals")
_STRATA = message("a value, not a formula: compared size by size, weighted by the baseline's shares")
_REPEATS = message("a value, not a formula: by repeats of one host on a side; these machines, not their kinds")
_CLUSTERS = message("a value, not a formula: the interval counts clusters of similar hosts")
_MIX = message("the mix decides: the headline for equal work differs by more than 5%")


def _value(ratio: Ratio) -> Message:
    """Return the reason why a headline is a value and not a formula."""
    if ratio.of_repeats:
        return _REPEATS
    return _CLUSTERS if ratio.clusters else _GAPS


def _mix(line: ClassRow) -> Message | None:
    return _MIX if line.equal_work and line.equivalence.mix_sensitive else None


def why(line: ClassRow) -> str:
    """Why a line without a ratio has none."""
    return line.equivalence.why


def _note(line: ClassRow, sheet: Sheet, at: dict[str, str]) -> None:
    """Why there is no headline any more; of the one for equal work, whether it differs from the other."""
    words = sheet.book.words
    formula, value = f'IF({at["count"]}=0,{literal(words(_NOTHING))},"")', ""
    if line.equal_work:
        other = cell(line.row + 1, AT["ratio"])
        apart = f"ABS({other}/{at['ratio']}-1)>{MIX_SENSITIVE!r}"
        formula = f'IF({at["ratio"]}="",{formula},IF({apart},{literal(words(_MIX))},""))'
        value = words(_MIX) if line.equivalence.mix_sensitive else ""
    sheet.formula(line.row, AT["note"], f"={formula}", value, role="word")


def _heads(grid: Grid, weights: Sheet, scores: Sheet, classes: Sheet, rows: Sequence[ClassRow]) -> None:
    baseline = grid.comparison.baseline
    worked = ratios.heads(baseline)
    heads = worked | {
        "candidate": Head(message("candidate"), "", 18),
        "class": Head(message("class"), "", 26),
        "kind": Head(message("kind"), "", 14),
        "lo": Head(message("from"), message("fleet, × baseline"), 10),
        "hi": Head(message("to"), message("fleet, × baseline"), 10),
        "p_adjusted": ratios.AMONG,
        "workload_lo": Head(message("your workload from"), message("× baseline, a value"), 12),
        "workload_hi": Head(message("your workload to"), message("× baseline, a value"), 12),
        "lowest": Head(message("lowest benchmark"), message("× baseline"), 11),
        "lowest_title": Head(message("which is lowest"), "", 30),
        "highest": Head(message("highest benchmark"), message("× baseline"), 11),
        "highest_title": Head(message("which is highest"), "", 30),
        "note": Head(message("note"), "", 70),
        "inside": Head(message("weight in the headline"), "", 11),
        "count": Head(message("benchmarks in it"), "", 11),
        "below": Head(message("interval below"), message("× baseline"), 10),
        "above": Head(message("interval above"), message("× baseline"), 10),
        "resampled_lo": Head(message("bootstrap from"), message("× baseline"), 11),
        "resampled_hi": Head(message("bootstrap to"), message("× baseline"), 11),
        "label": Head(message("label of the chart"), "", 24),
    }
    heads["ratio"] = Head(message("ratio"), message("worth, or so fast"), 10)
    classes.heads(FIRST_ROW - 1, [heads[name] for name in AT])
    classes.filtered(FIRST_ROW - 1, FIRST_ROW + len(rows) - 1, len(AT), frozen_columns=2)
    mixed = [
        Head(message("candidate's hours for it"), message("per baseline hour"), 14),
        Head(message("share of those hours"), "%", 12),
    ]
    weights.heads(
        FIRST_ROW - 1,
        [
            Head(message("candidate")),
            Head(message("class"), "", 16),
            Head(message("benchmark")),
            Head(message("weight"), message("input; a value where the class is one"), 14),
            Head(message("counted"), message("1 yes, 0 no"), 11),
            Head(message("share in the headline"), "%", 12),
            Head(
                message("ln ratio over hosts that have all"),
                message("that of the benchmark where the class is a value"),
                18,
            ),
            Head(message("ratio"), message("× baseline"), 10),
            Head(message("why it is left out"), "", 50),
            *(mixed if any(line.equal_work for line in rows) else []),
        ],
    )
    last = max((m.first + len(grid.of(m.class_)) for m in rows), default=FIRST_ROW) - 1
    weights.filtered(FIRST_ROW - 1, last, WHY + 1, frozen_columns=3)
    hosts = [Head(h, side, 14) for side, frame in grid.frames.items() for h in frame.index]
    behind = [Head(message("candidate"), "", 18), Head(message("class"), "", 18), Head("", "", 12), Head("", "", 3)]
    scores.heads(FIRST_ROW - 1, [*behind, *hosts])
    last = max((m.score for m in rows), default=FIRST_ROW) + (grid.comparison.pairing is Pairing.SAME_HOSTS)
    scores.filtered(FIRST_ROW - 1, last, FIRST_COLUMN + len(hosts), frozen_columns=FIRST_COLUMN)


def forest(sheet: Sheet, rows: Sequence[ClassRow], named: Message) -> None:
    """Below the table of classes: every headline with its interval. Only the table and this go on paper."""
    last = max((line.row for line in rows if line.ratio), default=0)
    below = rows[-1].row + 3 if rows else FIRST_ROW
    if not last:
        sheet.printed(below, len(_BEFORE) - 1)
        return
    ends = {name: f"={sheet.span(FIRST_ROW, AT[name], last, AT[name])}" for name in ("ratio", "below", "above")}
    chart = sheet.book.chart("bar", named)
    chart.add_series(
        {
            "categories": f"={sheet.span(FIRST_ROW, AT['label'], last, AT['label'])}",
            "values": ends["ratio"],
            "fill": {"color": "#A9CCE8"},
            "gap": 40,
            "y_error_bars": {"type": "custom", "plus_values": ends["above"], "minus_values": ends["below"]}
            | {"line": {"color": "#1F3A5F", "width": 1.75}},
        }
    )
    chart.set_legend({"none": True})
    chart.set_y_axis({"reverse": True})
    axis = {"name": sheet.book.words(message("× baseline")), "num_format": "0.0", "min": 0, "label_position": "high"}
    chart.set_x_axis(axis | GRID)
    height = min(150 + 26 * (last - FIRST_ROW + 1), 1500)
    sheet.place(chart, below, 0, 900, height)
    sheet.printed(below + height // 18 + 1, len(_BEFORE) - 1)
