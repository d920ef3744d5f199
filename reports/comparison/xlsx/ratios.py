"""Ratios as live formulas: Welch's, Student's on pairs or against a pinned figure, as planner.ratio has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.base.text import message
from fleetmark.base.words import word
from planner.contrast import Pairing
from planner.ratio import NOTHING, Ratio, Verdict
from reports.kit.workbook import (
    GENERAL,
    INTEGER,
    LOG,
    P_VALUE,
    RATIO,
    Book,
    Head,
    Sheet,
    cell,
    literal,
    t_quantile,
    t_two_sided,
)

CONFIDENCE_NAME, SAME_NAME = "confidence", "same_margin"
VERDICTS = {Verdict.BETTER: "better", Verdict.WORSE: "worse", Verdict.SAME: "same", Verdict.CANNOT_TELL: "unsure"}
_SCIENCE = "0.00E+00"
_Logs = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Formulas:
    """Formulas for the parts of a ratio (without the leading =): hosts counted, the log of the ratio, the
    variances of both means (of the mean difference, in ``var_b``, where there is but one), and the ratio where it is
    not just exp of that log. ``pairing`` as everywhere.
    """

    pairing: Pairing
    n_a: str
    n_b: str
    delta: str
    var_a: str
    var_b: str
    ratio: str = ""
    only_if: str = "TRUE"


@dataclass(frozen=True, slots=True)
class Values:
    """The same as Python computes it; None is an empty cell."""

    n_a: int
    n_b: int
    delta: float | None
    var_a: float | None
    var_b: float | None
    se: float | None
    ratio: Ratio | None


# In the order of their columns: first the results, then the workings.
KEYS = ("ratio", "lo", "hi", "p", "verdict")
WORKINGS = ("n_a", "n_b", "delta", "var_a", "var_b", "se", "df", "t")

AMONG = Head(message("p among all"), message("Benjamini-Hochberg"), 12)


def heads(baseline: str, candidate: str = "") -> dict[str, Head]:
    """The head of each of KEYS and WORKINGS."""
    other = candidate or message("candidate")
    return {
        "ratio": Head(message("ratio"), message("× baseline"), 10),
        "lo": Head(message("from"), message("× baseline"), 10),
        "hi": Head(message("to"), message("× baseline"), 10),
        "p": Head("p", message("two-sided"), 10),
        "verdict": Head(message("verdict"), "", 12),
        "n_a": Head(message("hosts, baseline"), baseline, 10),
        "n_b": Head(message("hosts, candidate"), other, 10),
        "delta": Head(message("ln ratio"), "", 11),
        "var_a": Head(message("variance of the mean, baseline"), message("ln²"), 12),
        "var_b": Head(message("variance of the mean, candidate"), message("ln²"), 12),
        "se": Head(message("standard error"), "ln", 11),
        "df": Head(message("degrees of freedom"), "", 11),
        "t": Head("t", "", 9),
    }


def of_hosts(a: str, b: str, pairing: Pairing) -> Formulas:
    """Over cells of hosts that hold a number or nothing at all."""
    if pairing is Pairing.SAME_HOSTS:
        both = f"ISNUMBER({a})*ISNUMBER({b})"
        n = f"SUMPRODUCT({both})"
        return Formulas(
            pairing,
            n,
            n,
            f"SUMPRODUCT({both}*({b}-{a}))/{{n_b}}",
            "",
            f"SUMPRODUCT({both}*({b}-{a}-{{delta}})^2)/({{n_b}}-1)/{{n_b}}",
        )
    return _means(a, b, pairing)


def of_scores(a: str, b: str, differences: str, pairing: Pairing, only_if: str, ratio: str = "") -> Formulas:
    """Over scores, which are a number or an empty text; ``differences``: those of pairs, of the same hosts."""
    if pairing is Pairing.SAME_HOSTS:
        n, mean = f"COUNT({differences})", f"AVERAGE({differences})"
        return Formulas(pairing, n, n, mean, "", f"VAR({differences})/{{n_b}}", ratio, only_if)
    means = _means(a, b, pairing)
    return Formulas(pairing, means.n_a, means.n_b, means.delta, means.var_a, means.var_b, ratio, only_if)


def _means(a: str, b: str, pairing: Pairing) -> Formulas:
    var_a = "" if pairing is Pairing.PINNED else f"VAR({a})/{{n_a}}"
    return Formulas(pairing, f"COUNT({a})", f"COUNT({b})", f"AVERAGE({b})-AVERAGE({a})", var_a, f"VAR({b})/{{n_b}}")


def worked_out(x: _Logs, y: _Logs, pairing: Pairing, ratio: Ratio | None) -> Values:
    """What the workings come to for the logs of both sides (NaN where a host has none)."""
    if pairing is Pairing.SAME_HOSTS:
        d = (y - x)[~np.isnan(x) & ~np.isnan(y)]
        n_a = n_b = len(d)
        delta = float(d.mean()) if n_b else None
        var_a, var_b = None, _variance(d)
    else:
        x, y = x[~np.isnan(x)], y[~np.isnan(y)]
        n_a, n_b = len(x), len(y)
        delta = float(y.mean() - x.mean()) if n_a and n_b else None
        var_a, var_b = None if pairing is Pairing.PINNED else _variance(x), _variance(y)
    variances = [v for v in (var_a, var_b) if v is not None]
    enough = ratio is not None and len(variances) == (2 if pairing is Pairing.APART else 1)
    se = math.sqrt(sum(variances)) if enough else None
    return Values(n_a, n_b, delta if ratio else None, var_a, var_b, se, ratio)


def _variance(logs: _Logs) -> float | None:
    """The variance of a mean."""
    return float(logs.var(ddof=1)) / len(logs) if len(logs) > 1 else None


def write(sheet: Sheet, row: int, at: Mapping[str, int], f: Formulas, v: Values, *, judged: bool = True) -> None:
    """KEYS and WORKINGS in the columns ``at``, live. The adjusted p, where there is a column for it, is as many times p
    as it was: how others change it is not in it. A line that is not ``judged`` has no verdict.
    """
    cells = {name: cell(row, column) for name, column in at.items()}

    def put(name: str, formula: str, value: float | str | None, form: str, role: str = "computed") -> None:
        sheet.formula(row, at[name], f"={formula}", value, form, role)

    def filled(formula: str) -> str:
        return formula.format(**cells)

    ratio = v.ratio
    put("n_a", f.n_a, v.n_a, INTEGER)
    put("n_b", f.n_b, v.n_b, INTEGER)
    put("delta", f'IF(AND({f.only_if},{cells["n_a"]}>0,{cells["n_b"]}>0),{filled(f.delta)},"")', v.delta, LOG)
    for name, n, formula, value in (("var_a", "n_a", f.var_a, v.var_a), ("var_b", "n_b", f.var_b, v.var_b)):
        if formula:
            put(name, f'IF({cells[n]}<2,"",{filled(formula)})', value, _SCIENCE)
    variances = [cells[name] for name, formula in (("var_a", f.var_a), ("var_b", f.var_b)) if formula]
    lacking = ",".join(f'{cells[name]}=""' for name in ("delta", *(["var_a"] if f.var_a else []), "var_b"))
    put("se", f'IF(OR({lacking}),"",SQRT({"+".join(variances)}))', v.se, LOG)
    put("df", _df(f, cells), ratio.df if ratio else None, "0.00")
    t = v.delta / v.se if ratio and ratio.df is not None and v.delta is not None and v.se else None
    put("t", f'IF({cells["df"]}="","",{cells["delta"]}/{cells["se"]})', t, "0.00")
    put(
        "ratio",
        f'IF({cells["delta"]}="","",{f.ratio or "EXP(" + cells["delta"] + ")"})',
        _figure(ratio, "value"),
        RATIO,
        "key",
    )
    half = f"{t_quantile(CONFIDENCE_NAME, cells['df'])}*{cells['se']}"
    for name, sign in (("lo", "-"), ("hi", "")):
        end = f"{cells['ratio']}*EXP({sign}{half})"
        put(name, f'IF({cells["se"]}="","",IF({cells["df"]}="",{cells["ratio"]},{end}))', _figure(ratio, name), RATIO)
    certain = f"IF({cells['delta']}=0,1,0)"
    if f.pairing is Pairing.PINNED:  # a single host does not represent its type, so nothing is tested
        if judged:
            sheet.text(row, at["verdict"], word(ratio.verdict) if ratio else "")
        return
    p = t_two_sided(cells["t"], cells["df"])
    put("p", f'IF({cells["se"]}="","",IF({cells["df"]}="",{certain},{p}))', _figure(ratio, "p"), P_VALUE)
    if "p_adjusted" in at:
        among = _figure(ratio, "p" if ratio and ratio.p_adjusted is None else "p_adjusted")
        factor = among / ratio.p if ratio and ratio.p and among else 1.0
        put("p_adjusted", f'IF({cells["p"]}="","",MIN(1,{cells["p"]}*{factor!r}))', among, P_VALUE)
    if judged:
        put("verdict", _verdict(sheet.book, cells), word(ratio.verdict) if ratio else None, GENERAL, "word")


def stand(sheet: Sheet, row: int, at: Mapping[str, int], ratio: Ratio, *, judged: bool = True) -> None:
    """KEYS and those of WORKINGS that there are, as values: a ratio that formulas over hosts do not give."""
    for name, value in (("ratio", ratio.value), ("lo", ratio.lo), ("hi", ratio.hi)):
        sheet.number(row, at[name], value, RATIO, "value")
    for name in ("p", "p_adjusted"):
        if name in at:
            sheet.number(row, at[name], _figure(ratio, name), P_VALUE, "value")
    if judged:
        sheet.text(row, at["verdict"], word(ratio.verdict))
    for name, hosts in zip(("n_a", "n_b"), ratio.n, strict=True):
        sheet.number(row, at[name], hosts, INTEGER, "value")
    sheet.number(row, at["delta"], math.log(ratio.value), LOG, "value")
    sheet.number(row, at["se"], ratio.log_error, LOG, "value")
    sheet.number(row, at["df"], ratio.df, "0.00", "value")


def _figure(ratio: Ratio | None, name: str) -> float | None:
    return None if ratio is None else getattr(ratio, name)


def _df(f: Formulas, cells: Mapping[str, str]) -> str:
    """Return the formula for the degrees of freedom: ``planner.ratio.degrees``, or those of the only sample."""
    a, b, n_a, n_b = (cells[name] for name in ("var_a", "var_b", "n_a", "n_b"))
    if f.pairing is Pairing.APART:
        formula = f"({a}+{b})^2/({a}^2/({n_a}-1)+{b}^2/({n_b}-1))"
        # If all hosts are identical, the variance is zero and both sides count equally.
        formula = f"IF({a}+{b}<={NOTHING!r},1/(0.25/({n_a}-1)+0.25/({n_b}-1)),{formula})"
        ceiling = f"(MIN({n_a},{n_b})-1)^2*(1+MIN({n_a},{n_b})/MAX({n_a},{n_b}))"
        formula = f"IF({n_a}={n_b},{formula},MIN({formula},{ceiling}))"
    else:
        formula = f"{n_b}-1"
    return f'IF({cells["se"]}="","",IF({cells["se"]}^2<{NOTHING!r},"",{formula}))'


def _verdict(book: Book, cells: Mapping[str, str]) -> str:
    better, worse, same, unsure = (literal(book.words(word(v))) for v in VERDICTS)
    lo, hi = cells["lo"], cells["hi"]
    near_lo, near_hi = f"{lo}>=1-{SAME_NAME}", f"{hi}<=1+{SAME_NAME}"
    one_of_many = f"{cells['p_adjusted']}>1-{CONFIDENCE_NAME}" if "p_adjusted" in cells else "FALSE"
    by_interval = (
        f"IF(AND({near_lo},{near_hi}),{same},IF({one_of_many},{unsure},"
        f"IF({lo}>1,{better},IF({hi}<1,{worse},{unsure}))))"
    )
    return f'IF({cells["ratio"]}="","",IF({lo}="",{unsure},{by_interval}))'


def paint(sheet: Sheet, first_row: int, last_row: int, column: int) -> None:
    """Colours beside the words of verdicts."""
    words = {sheet.book.words(word(v)): role for v, role in VERDICTS.items()}
    sheet.paint(f"{cell(first_row, column)}:{cell(last_row, column)}", words)
