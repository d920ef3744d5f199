"""Build the tab of each class in a comparison's workbook: editable weights, scores of hosts, and headlines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import WORK_MIX, Candidate
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.equivalence import MIX_SENSITIVE, Basis, Equivalence
from fleetmark.planner.ratio import Ratio
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.comparison.workbook import ratios
from fleetmark.reports.comparison.workbook.grid import FIRST_COLUMN, Grid, Say, cells, figure, quoted
from fleetmark.reports.comparison.workbook.hosts import LOGS
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular
from fleetmark.reports.kit.workbook import INTEGER, LOG, PERCENT, RATIO

WEIGHTS, SCORES, HEADLINES = "weights", "scores", "headlines"  # keys of tables
_Logs = npt.NDArray[np.float64]
_CANDIDATE, _CLASS, _BENCHMARK, _WEIGHT, _COUNTED, _SHARE, _DELTA, _OWN, _WHY, _HOURS, _HOURS_SHARE = range(11)
_YOURS = ("workload_lo", "workload_hi")
_ENDS = ("lowest", "lowest_title", "highest", "highest_title")
_KEYS = (
    *("candidate", "class", "kind", *ratios.KEYS, "p_adjusted", *_YOURS, *_ENDS, "note", *ratios.WORKINGS),
    *("inside", "count", "below", "above", "resampled_lo", "resampled_hi", "label"),
)
_PLACES = {key: place for place, key in enumerate(_KEYS)}  # columns of the tab Classes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """A row of the tab Classes: a class of one candidate, or its headline for equal work.

    ``kind``: a Kind. ``row``: the row's number in the tab. ``first``: the row of the tab Weights where its benchmarks
    begin. ``score``: the row of its hosts' scores.
    """

    candidate: Candidate
    class_: str
    kind: str
    equivalence: Equivalence
    equal_work: bool
    row: int
    first: int
    score: int

    def cell(self, key: str) -> str:
        """Return the cell of this row in a column of the tab Classes."""
        return cells(HEADLINES, (self.row, _PLACES[key]))

    def weights(self, column: int, benchmarks: int) -> str:
        """Return the cells of the row's benchmarks in a column of the tab Weights."""
        return cells(WEIGHTS, (self.first, column), (self.first + benchmarks - 1, column))

    @property
    def ratio(self) -> Ratio | None:
        """Return the headline."""
        return self.equivalence.work if self.equal_work else self.equivalence.ratio

    @property
    def basis(self) -> Basis:
        """Return the basis of the ratio. Only the headline for equal work of a mix is based on totals."""
        e = self.equivalence
        is_work = e.basis is Basis.TOTALS and e.work is not None
        return Basis.MEAN if is_work and not self.equal_work else e.basis

    @property
    def is_live(self) -> bool:
        """Return whether formulas over the hosts' scores compute the headline.

        Headlines from mixed models, repeats, clusters, totals and strata are written as values.
        """
        e, ratio = self.equivalence, self.ratio
        return ratio is not None and self.basis is Basis.MEAN and not (e.gaps or ratio.of_repeats or ratio.clusters)

    @property
    def has_live_weights(self) -> bool:
        """Return whether the weights are inputs: those of the class, shared with its headline for equal work."""
        line = replace(self, equal_work=False)
        return line.is_live or line.ratio is None

    @property
    def is_judged(self) -> bool:
        """Return whether the row has a verdict. For a mix, only the headline for equal work has one."""
        return self.equal_work or self.class_ != WORK_MIX


def lines(grid: Grid) -> list[ClassRow]:
    """Return all rows, candidate by candidate; rows without a headline come last, after the rows of the chart."""
    rows: list[ClassRow] = []
    first = score = 0
    for candidate in grid.comparison.candidates:
        for name, equivalence in sorted(candidate.classes.items(), key=lambda c: (c[0] != WORK_MIX, c[0])):
            kind = grid.comparison.kind(name)
            for equal_work in (True, False) if name == WORK_MIX else (False,):
                rows.append(
                    ClassRow(
                        candidate=candidate,
                        class_=name,
                        kind=kind,
                        equivalence=equivalence,
                        equal_work=equal_work,
                        row=0,
                        first=first,
                        score=score,
                    )
                )
                score += 2 if grid.comparison.pairing is Pairing.SAME_HOSTS else 1  # room for the row of differences
            first += len(grid.members(name))
    rows.sort(key=lambda line: (line.ratio is None, line.kind != Kind.CAPACITY))
    return [replace(line, row=row) for row, line in enumerate(rows)]


def title(line: ClassRow) -> Message | str:
    """Return the title of a row."""
    if line.equal_work:
        return message("{class_}, same jobs", class_=class_title(line.class_))
    if line.class_ == WORK_MIX:
        return message("{class_}, geometric mean", class_=class_title(line.class_))
    return class_title(line.class_)


@dataclass(frozen=True, slots=True)
class _Scored:
    """The values that Python computes for a row.

    ``share``: the share of each benchmark. ``hours``: the candidate's hours for each benchmark, for equal work.
    ``delta``: the logarithm of its ratio over the hosts that have all benchmarks. ``a``, ``b``: the scores of hosts.
    Missing figures are NaN.
    """

    share: _Logs
    hours: _Logs
    delta: _Logs
    a: _Logs
    b: _Logs


def tables(grid: Grid, rows: Sequence[ClassRow], say: Say) -> tuple[Tabular, Tabular, Tabular]:
    """Return the tabs Weights, Host scores and Classes. ``say``: translates the words in formulas."""
    scored = {line.score: _scored(grid, line) for line in rows}
    in_order = sorted(rows, key=lambda line: line.score)
    has_hours = any(line.equal_work for line in rows)
    weighted = [line for line in in_order if not line.equal_work]
    weights = [row for line in weighted for row in _weights(grid, line, scored[line.score], has_hours)]
    scores = [row for line in in_order for row in _scores(grid, line, scored[line.score])]
    headlines = [_class(grid, line, scored[line.score], say) for line in rows]
    return (
        Tabular(
            WEIGHTS,
            message("Weights of benchmarks in their class"),
            _weight_columns(has_hours),
            tuple(weights),
            notes=(
                message(
                    "Yellow cells are inputs. Change a weight or exclude a benchmark to recalculate the headlines."
                ),
            ),
        ),
        Tabular(
            SCORES,
            message("Each host's score: the weighted sum of its logarithms"),
            (*_SCORE_COLUMNS, *grid.host_columns(LOG)),
            tuple(scores),
            notes=(message("A host without every benchmark of the headline has no score."),),
        ),
        Tabular(
            HEADLINES,
            message("Classes: how many servers one candidate replaces, and how fast it is"),
            _class_columns(grid, say),
            tuple(headlines),
            notes=(message("Live from the hosts' scores. The range of the benchmarks is next to each headline."),),
        ),
    )


def _inputs(line: ClassRow, grid: Grid) -> tuple[list[float], list[bool]]:
    """Return the weight of each benchmark of the class, and whether the headline includes it."""
    e, titles = line.equivalence, grid.members(line.class_)
    weights = [float(e.weights.get(t, 0.0)) for t in titles]
    return weights, [w > 0 and t in e.each for w, t in zip(weights, titles, strict=True)]


def _scored(grid: Grid, line: ClassRow) -> _Scored:
    weights, inside = _inputs(line, grid)
    weight = np.where(inside, weights, 0.0)
    share = weight / weight.sum() if weight.any() else weight
    titles = list(grid.members(line.class_))
    x, y = (grid.frames[side][titles].to_numpy(float) for side in (grid.comparison.baseline, line.candidate.title))
    chosen = share > 0
    a, b = (_dot(side, share, chosen) for side in (x, y))
    complete_a, complete_b = ~np.isnan(a), ~np.isnan(b)
    if grid.comparison.pairing is Pairing.SAME_HOSTS:
        complete_a = complete_b = complete_a & complete_b
    delta = np.full(len(titles), np.nan)
    if chosen.any() and complete_a.any() and complete_b.any():
        delta[chosen] = y[complete_b][:, chosen].mean(axis=0) - x[complete_a][:, chosen].mean(axis=0)
    if not line.has_live_weights:
        each = line.equivalence.each
        delta = np.array([math.log(each[t].value) if s > 0 else math.nan for s, t in zip(share, titles, strict=True)])
    hours = np.where(np.isnan(delta), 0.0, share * np.exp(-np.nan_to_num(delta)))
    if line.equal_work and hours.any():
        a, b = (_dot(side, hours / hours.sum(), chosen) for side in (x, y))
    return _Scored(share, hours, delta, a, b)


def _dot(side: _Logs, share: _Logs, chosen: npt.NDArray[np.bool_]) -> _Logs:
    """Return a score per host, NaN for a host that lacks a chosen benchmark."""
    if not chosen.any():
        return np.full(len(side), np.nan)
    scores: _Logs = side[:, chosen] @ share[chosen]
    return scores


def _none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _weights(grid: Grid, line: ClassRow, v: _Scored, has_hours: bool) -> Iterator[Row]:
    """Yield the benchmarks of a class with their weights, which are inputs if formulas compute the headline."""
    weights, _ = _inputs(line, grid)
    members = grid.members(line.class_)
    sides = (grid.comparison.baseline, line.candidate.title)
    scores = [grid.hosts(SCORES, line.score, side) for side in sides]
    hours = line.weights(_HOURS, len(members))
    total = v.hours.sum()
    is_mixed, is_live = line.class_ == WORK_MIX, line.has_live_weights
    for n, name in enumerate(members):
        comparable = name in line.equivalence.each
        names = (Cell(line.candidate.title), Cell(word(line.class_)), Cell(name))
        reason = Cell(line.candidate.excluded.get(name) or line.equivalence.left_out.get(name, ""))
        measured = line.equivalence.each.get(name) if v.share[n] > 0 else None
        hint = message("a weight is 0 or more; weights need not sum to 1")
        if is_live:
            limits = (0.0, 1e6)
            weight = Cell(repr(weights[n]), weights[n], is_input=True, limits=limits, hint=hint)
            counted = figure(0.0)
            if comparable:
                yes_or_no = message("1 yes, 0 no")
                counted = Cell("1", 1.0, is_input=True, limits=(0.0, 1.0), hint=yes_or_no)
            share = figure(
                float(v.share[n]), f"=IF(AND({{counted}}=1,{{weight}}>0),{{weight}}/{line.cell('inside')},0)"
            )
            row = grid.titles.index(name)
            a, b = (grid.hosts(LOGS, row, side) for side in sides)
            n_a, n_b, mean = _mean_over(grid.comparison.pairing, a, b, *scores)
            delta = figure(_none(v.delta[n]), f'=IF(OR({{share}}=0,{n_a}=0,{n_b}=0),"",{mean})')
            ratio = figure(_none(math.exp(v.delta[n])), '=IF({delta}="","",EXP({delta}))')
        else:
            weight, counted, share = figure(weights[n]), figure(float(comparable)), figure(float(v.share[n]))
            delta, ratio = (
                figure(math.log(measured.value) if measured else None),
                figure(measured.value if measured else None),
            )
        row_cells = (*names, weight, counted, share, delta, ratio, reason)
        if is_mixed:
            part = v.hours[n] / total if v.hours.any() else 0.0
            spent = '=IF({delta}="",0,{share}*EXP(-{delta}))' if is_live else ""
            yield (
                *row_cells,
                figure(float(v.hours[n]), spent),
                figure(float(part), f"=IF({{hours}}=0,0,{{hours}}/SUM({hours}))"),
            )
        else:
            yield (*row_cells, *((Cell(), Cell()) if has_hours else ()))


def _mean_over(pairing: Pairing, a: str, b: str, score_a: str, score_b: str) -> tuple[str, str, str]:
    """Return formulas for the number of hosts with a score on each side, and for the difference of their mean logs."""
    if pairing is Pairing.SAME_HOSTS:
        both = f"ISNUMBER({score_a})*ISNUMBER({score_b})"
        n = f"SUMPRODUCT({both})"
        return n, n, f"SUMPRODUCT({both}*({b}-{a}))/{n}"
    n_a, n_b = f"COUNT({score_a})", f"COUNT({score_b})"
    return n_a, n_b, f"SUMPRODUCT(ISNUMBER({score_b})*{b})/{n_b}-SUMPRODUCT(ISNUMBER({score_a})*{a})/{n_a}"


def _scores(grid: Grid, line: ClassRow, v: _Scored) -> Iterator[Row]:
    """Yield a row of scores, and for paired hosts a row of differences. Hosts that lack a benchmark have no score."""
    number = len(grid.members(line.class_))
    share = line.weights(_SHARE, number)
    used = line.weights(_HOURS_SHARE, number) if line.equal_work else share
    places = {side: range(first, first + len(grid.frames[side])) for side, first in grid.first.items()}
    values = {grid.comparison.baseline: v.a, line.candidate.title: v.b}

    def score(column: int, value: float) -> Cell:
        host = grid.benchmarks(LOGS, line.class_, column)
        complete = f'AND(COUNTIF({share},">0")>0,SUMPRODUCT(({share}>0)*ISNUMBER({host}))=COUNTIF({share},">0"))'
        return figure(_none(value), f'=IF({complete},SUMPRODUCT({used},{host}),"")')

    names = (Cell(line.candidate.title), Cell(title(line)))
    scores = (
        score(column, values[side][n]) if side in values else Cell()
        for side in grid.frames
        for n, column in enumerate(places[side])
    )
    yield (*names, Cell(message("score")), Cell(), *scores)
    if grid.comparison.pairing is not Pairing.SAME_HOSTS:
        return
    before = grid.first[grid.comparison.baseline]
    differences = (
        figure(_none(v.b[n] - v.a[n]), _difference(line.score, before + n, column)) if side == names[0].text else Cell()
        for side in grid.frames
        for n, column in enumerate(places[side])
    )
    yield (*names, Cell(message("difference")), Cell(), *differences)


def _difference(row: int, before: int, after: int) -> str:
    a, b = (cells(SCORES, (row, column)) for column in (before, after))
    return f'=IF(AND(ISNUMBER({a}),ISNUMBER({b})),{b}-{a},"")'


def _class(grid: Grid, line: ClassRow, v: _Scored, say: Say) -> Row:
    """Return the headline of a class: its ratio and interval, computed from the hosts' scores."""
    number = len(grid.members(line.class_))
    weights, counted, share = (line.weights(column, number) for column in (_WEIGHT, _COUNTED, _SHARE))
    inputs, inside = _inputs(line, grid)
    chosen = [weight for weight, is_inside in zip(inputs, inside, strict=True) if is_inside]
    parts = {
        "candidate": Cell(line.candidate.title),
        "class": Cell(title(line)),
        "kind": Cell(word(line.kind)),
        "label": Cell(joined([line.candidate.title, title(line)])),
        "inside": figure(sum(chosen), f"=SUMPRODUCT(({counted}=1)*({weights}>0)*{weights})"),
        "count": figure(len(chosen), f'=COUNTIF({share},">0")'),
        **(_live(grid, line, v, say) if line.is_live else _fixed(line)),
    }
    for key in ("ratio", "lo", "hi"):
        if key in parts:
            name = f"{line.candidate.title}_{line.class_}{'_equal_work' if line.equal_work else ''}"
            parts[key] = replace(parts[key], name=f"E{'' if key == 'ratio' else f'_{key}'}_{name}")
    return tuple(parts.get(key, Cell()) for key in _KEYS)


def _live(grid: Grid, line: ClassRow, v: _Scored, say: Say) -> dict[str, Cell]:
    number, e, ratio = len(grid.members(line.class_)), line.equivalence, line.ratio
    delta, hours, names = (line.weights(column, number) for column in (_DELTA, _HOURS, _BENCHMARK))
    pairing = grid.comparison.pairing
    a, b = (grid.hosts(SCORES, line.score, side) for side in (grid.comparison.baseline, line.candidate.title))
    differences = grid.hosts(SCORES, line.score + 1, line.candidate.title)
    same_work = f"1/SUM({hours})" if line.equal_work else ""
    formulas = ratios.of_scores(a, b, differences, pairing, "{count}>0", same_work)
    values = ratios.worked_out(v.a, v.b, pairing, ratio)
    verdict = ratios.verdict_formula(say)
    parts = ratios.live(formulas, values, verdict, has_adjusted=True, is_judged=line.is_judged)
    extremes = (("lowest", "MIN", e.lowest, e.lowest_title), ("highest", "MAX", e.highest, e.highest_title))
    for name, function, value, benchmark in extremes:
        parts[name] = figure(value if ratio else None, f'=IF({{ratio}}="","",EXP({function}({delta})))')
        place = f"INDEX({names},MATCH({function}({delta}),{delta},0))"
        parts[f"{name}_title"] = Cell(benchmark, formula=f'=IF({{ratio}}="","",{place})')
    below, above = (ratio.value - ratio.lo, ratio.hi - ratio.value) if ratio and ratio.lo and ratio.hi else (0.0, 0.0)
    parts["below"] = figure(below, '=IF({lo}="",0,{ratio}-{lo})')
    parts["above"] = figure(above, '=IF({lo}="",0,{hi}-{ratio})')
    if e.resampled and not line.equal_work:
        parts |= {"resampled_lo": figure(e.resampled.lo), "resampled_hi": figure(e.resampled.hi)}
    return parts | {name: figure(value) for name, value in yours(line)} | {"note": _note(line, say)}


def yours(line: ClassRow) -> list[tuple[str, float | None]]:
    """Return the prediction interval for another workload with the original weights: its columns and ends."""
    workload = None if line.equal_work else line.equivalence.workload
    return list(zip(_YOURS, (workload.lo, workload.hi) if workload else (None, None), strict=True))


def _fixed(line: ClassRow) -> dict[str, Cell]:
    """Return the values of a headline that formulas cannot compute, or the reason why there is none."""
    e, ratio = line.equivalence, line.ratio
    if ratio is None:
        return {"note": Cell(line.equivalence.reason)}
    of_mean = _REPEATS if ratio.of_repeats else _CLUSTERS if ratio.clusters else _GAPS
    reasons = {Basis.TOTALS: _TOTALS, Basis.STRATA: _STRATA, Basis.MEAN: of_mean}
    mix = _MIX if line.equal_work and line.equivalence.mix_sensitive else None
    lo, hi = ratio.interval or (ratio.value, ratio.value)
    return {
        **ratios.fixed(ratio, is_judged=line.is_judged),
        **{name: figure(value) for name, value in yours(line)},
        "note": Cell(joined([reasons[line.basis], mix], "; ")),
        "lowest": figure(e.lowest),
        "lowest_title": Cell(e.lowest_title),
        "highest": figure(e.highest),
        "highest_title": Cell(e.highest_title),
        "below": figure(ratio.value - lo),
        "above": figure(hi - ratio.value),
    }


_NOTHING = message("no overall figure: no counted benchmark has a weight")
_GAPS = message("a value, not a formula: hosts lack some of these benchmarks, and a mixed model gives the headline")
_TOTALS = message("a value, not a formula: the hosts of a side differ, so the ratio compares their totals")
_STRATA = message("a value, not a formula: compared size by size, weighted by the baseline's shares")
_REPEATS = message("a value, not a formula: from repeats of one host per side; for these machines, not their kinds")
_CLUSTERS = message("a value, not a formula: the interval counts clusters of similar hosts")
_MIX = message("the mix decides: the figure for the same jobs differs by more than 5%")


def _note(line: ClassRow, say: Say) -> Cell:
    """Return a note if edits remove the headline or, for equal work, make it differ from the geometric mean."""
    formula, value = f'IF({{count}}=0,{quoted(say(_NOTHING))},"")', ""
    if line.equal_work:
        other = cells(HEADLINES, (line.row + 1, _PLACES["ratio"]))
        apart = f"ABS({other}/{{ratio}}-1)>{MIX_SENSITIVE!r}"
        formula = f'IF({{ratio}}="",{formula},IF({apart},{quoted(say(_MIX))},""))'
        value = _MIX if line.equivalence.mix_sensitive else ""
    return Cell(value, formula=f"={formula}")


_SCORE_COLUMNS = (
    Column("candidate", message("candidate")),
    Column("class", message("class")),
    Column("score", message("score")),
    Column("gap", ""),
)
assert len(_SCORE_COLUMNS) == FIRST_COLUMN


def _class_columns(grid: Grid, say: Say) -> tuple[Column, ...]:
    times = message("× baseline")
    worked = ratios.columns(grid.comparison.baseline, _KEYS, say)
    listed = (
        Column("candidate", message("candidate"), "name"),
        Column("class", message("class"), "name"),
        Column("kind", message("kind")),
        Column("workload_lo", message("your workload from"), "number", unit=message("× baseline, a value"), form=RATIO),
        Column("workload_hi", message("your workload to"), "number", unit=message("× baseline, a value"), form=RATIO),
        Column("lowest", message("lowest benchmark"), "number", unit=times, form=RATIO),
        Column("lowest_title", message("which is lowest")),
        Column("highest", message("highest benchmark"), "number", unit=times, form=RATIO),
        Column("highest_title", message("which is highest")),
        Column("note", message("note"), "note"),
        Column("inside", message("weight in the headline"), "number", form="0.0000"),
        Column("count", message("benchmarks in it"), "number", form=INTEGER),
        Column("below", message("interval below"), "number", unit=times, form=RATIO),
        Column("above", message("interval above"), "number", unit=times, form=RATIO),
        Column("resampled_lo", message("bootstrap from"), "number", unit=times, form=RATIO),
        Column("resampled_hi", message("bootstrap to"), "number", unit=times, form=RATIO),
        Column("label", message("label of the chart")),
    )
    by_key = {column.key: column for column in listed} | worked
    return tuple(by_key[key] for key in _KEYS)


def _weight_columns(has_hours: bool) -> tuple[Column, ...]:
    columns = (
        Column("candidate", message("candidate"), "name"),
        Column("class", message("class")),
        Column("benchmark", message("benchmark"), "name"),
        Column(
            "weight",
            message("weight"),
            "number",
            unit=message("input; a value where the class is one"),
            form="0.0000",
        ),
        Column("counted", message("counted"), "number", unit=message("1 yes, 0 no"), form=INTEGER),
        Column("share", message("share in the headline"), "number", unit="%", form=PERCENT),
        Column(
            "delta",
            message("ln ratio over hosts that have all"),
            "number",
            unit=message("that of the benchmark where the class is a value"),
            form=LOG,
        ),
        Column("ratio", message("ratio"), "number", unit=message("× baseline"), form=RATIO),
        Column("why", message("why it is left out"), "note"),
    )
    hours = (
        Column(
            "hours", message("candidate's hours for it"), "number", unit=message("per baseline hour"), form="0.0000"
        ),
        Column("hours_share", message("share of those hours"), "number", unit="%", form=PERCENT),
    )
    return (*columns, *hours) if has_hours else columns


def forest(rows: Sequence[ClassRow]) -> Iterator[Chart]:
    """Yield a native chart of every headline with its interval."""
    number = sum(line.ratio is not None for line in rows)
    if number:
        native = Native(
            kind="bar",
            table=HEADLINES,
            category="label",
            values=("ratio",),
            rows=number,
            ends=("below", "above"),
            axis=message("× baseline"),
        )
        yield Chart(message("Ratio of each class, with its interval"), "", "", native=native)
