"""Write ratios as live formulas: Welch's, paired Student's or against a pinned figure, as in ``planner.ratio``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fleetmark.base.text import message
from fleetmark.base.words import word
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.ratio import NOTHING, Ratio, Verdict
from fleetmark.reports.comparison.workbook.grid import Say, figure, quoted
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, Tone
from fleetmark.reports.kit.workbook import INTEGER, LOG, P_VALUE, RATIO, t_quantile, t_two_sided

CONFIDENCE_NAME, SAME_NAME = "confidence", "same_margin"
VERDICTS: Mapping[Verdict, Tone] = {
    Verdict.BETTER: "good",
    Verdict.WORSE: "bad",
    Verdict.SAME: "",
    Verdict.CANNOT_TELL: "unsure",
}
_SCIENCE = "0.00E+00"
_Logs = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Formulas:
    """Formulas for the parts of a ratio, without the leading =.

    ``n_a``, ``n_b``: the numbers of hosts. ``delta``: the log of the ratio. ``var_a``, ``var_b``: the variances of both
    means; a single variance, such as that of the mean difference, is in ``var_b``. ``ratio``: the ratio if it is not
    exp of ``delta``.
    """

    pairing: Pairing
    n_a: str
    n_b: str
    delta: str
    var_a: str
    var_b: str
    ratio: str = ""
    only_if: str = "TRUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of the formulas as Python computes them; None is an empty cell."""

    n_a: int
    n_b: int
    delta: float | None
    var_a: float | None
    var_b: float | None
    se: float | None
    ratio: Ratio | None


# In the order of the columns: first the results, then the workings.
KEYS = ("ratio", "lo", "hi", "p", "verdict")
WORKINGS = ("n_a", "n_b", "delta", "var_a", "var_b", "se", "df", "t")


def columns(baseline: str, keys: Sequence[str], say: Say) -> dict[str, Column]:
    """Return the columns of KEYS, WORKINGS and the adjusted p, by key."""
    times, log = message("× baseline"), message("ln²")
    listed = (
        Column("ratio", message("ratio"), "number", unit=times, form=RATIO),
        Column("lo", message("from"), "number", unit=times, form=RATIO),
        Column("hi", message("to"), "number", unit=times, form=RATIO),
        Column("p", "p", "number", unit=message("two-sided"), form=P_VALUE),
        Column("p_adjusted", message("p among all"), "number", unit=message("Benjamini-Hochberg"), form=P_VALUE),
        Column("verdict", message("verdict"), "verdict", rules=verdict_rules("verdict", say)),
        Column("n_a", message("hosts, baseline"), "number", unit=fmt.clean(baseline), form=INTEGER),
        Column("n_b", message("hosts, candidate"), "number", unit=message("candidate"), form=INTEGER),
        Column("delta", message("ln ratio"), "number", form=LOG),
        Column("var_a", message("variance of the mean, baseline"), "number", unit=log, form=_SCIENCE),
        Column("var_b", message("variance of the mean, candidate"), "number", unit=log, form=_SCIENCE),
        Column("se", message("standard error"), "number", unit="ln", form=LOG),
        Column("df", message("degrees of freedom"), "number", form="0.00"),
        Column("t", "t", "number", form="0.00"),
    )
    return {c.key: replace(c, is_working=c.key in WORKINGS) for c in listed if c.key in keys}


def verdict_rules(key: str, say: Say) -> tuple[tuple[str, Tone], ...]:
    """Return the tones of a column of verdicts, which depend on the words that its formulas return."""
    words = ((say(word(verdict)), tone) for verdict, tone in VERDICTS.items() if tone)
    return tuple((f"{{{key}}}={quoted(text)}", tone) for text, tone in words)


def of_hosts(a: str, b: str, pairing: Pairing) -> Formulas:
    """Return formulas over the cells of hosts; a cell contains a number or is empty."""
    if pairing is Pairing.SAME_HOSTS:
        both = f"ISNUMBER({a})*ISNUMBER({b})"
        n = f"SUMPRODUCT({both})"
        return Formulas(
            pairing=pairing,
            n_a=n,
            n_b=n,
            delta=f"SUMPRODUCT({both}*({b}-{a}))/{{n_b}}",
            var_a="",
            var_b=f"SUMPRODUCT({both}*({b}-{a}-{{delta}})^2)/({{n_b}}-1)/{{n_b}}",
        )
    return _means(a, b, pairing)


def of_scores(a: str, b: str, differences: str, pairing: Pairing, only_if: str, ratio: str = "") -> Formulas:
    """Return formulas over scores, each of which is a number or an empty text.

    ``differences``: the score differences of paired hosts.
    """
    if pairing is Pairing.SAME_HOSTS:
        n, mean = f"COUNT({differences})", f"AVERAGE({differences})"
        return Formulas(
            pairing=pairing,
            n_a=n,
            n_b=n,
            delta=mean,
            var_a="",
            var_b=f"VAR({differences})/{{n_b}}",
            ratio=ratio,
            only_if=only_if,
        )
    means = _means(a, b, pairing)
    return Formulas(
        pairing=pairing,
        n_a=means.n_a,
        n_b=means.n_b,
        delta=means.delta,
        var_a=means.var_a,
        var_b=means.var_b,
        ratio=ratio,
        only_if=only_if,
    )


def _means(a: str, b: str, pairing: Pairing) -> Formulas:
    var_a = "" if pairing is Pairing.PINNED else f"VAR({a})/{{n_a}}"
    return Formulas(
        pairing=pairing,
        n_a=f"COUNT({a})",
        n_b=f"COUNT({b})",
        delta=f"AVERAGE({b})-AVERAGE({a})",
        var_a=var_a,
        var_b=f"VAR({b})/{{n_b}}",
    )


def worked_out(x: _Logs, y: _Logs, pairing: Pairing, ratio: Ratio | None) -> Values:
    """Return the values of the workings for the logs of both sides (NaN if a host has none)."""
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
    return Values(n_a=n_a, n_b=n_b, delta=delta if ratio else None, var_a=var_a, var_b=var_b, se=se, ratio=ratio)


def _variance(logs: _Logs) -> float | None:
    """Return the variance of a mean."""
    return float(logs.var(ddof=1)) / len(logs) if len(logs) > 1 else None


def live(f: Formulas, v: Values, verdict: str, *, has_adjusted: bool, is_judged: bool = True) -> dict[str, Cell]:
    """Return KEYS and WORKINGS as formulas over columns of the same row. ``verdict``: the formula of the verdict.

    The adjusted p keeps its original ratio to p, so it does not follow changes of other benchmarks. A row that is not
    evaluated has no verdict.
    """
    ratio = v.ratio
    parts = {
        "n_a": figure(v.n_a, f"={f.n_a}"),
        "n_b": figure(v.n_b, f"={f.n_b}"),
        "delta": figure(v.delta, f'=IF(AND({f.only_if},{{n_a}}>0,{{n_b}}>0),{f.delta},"")'),
    }
    for name, n, formula, value in (("var_a", "n_a", f.var_a, v.var_a), ("var_b", "n_b", f.var_b, v.var_b)):
        if formula:
            parts[name] = figure(value, f'=IF({{{n}}}<2,"",{formula})')
    variances = [f"{{{name}}}" for name, formula in (("var_a", f.var_a), ("var_b", f.var_b)) if formula]
    lacking = ",".join(f'{{{name}}}=""' for name in ("delta", *(["var_a"] if f.var_a else []), "var_b"))
    parts["se"] = figure(v.se, f'=IF(OR({lacking}),"",SQRT({"+".join(variances)}))')
    parts["df"] = figure(ratio.df if ratio else None, _df(f))
    t = v.delta / v.se if ratio and ratio.df is not None and v.delta is not None and v.se else None
    parts["t"] = figure(t, '=IF({df}="","",{delta}/{se})')
    parts["ratio"] = figure(_part(ratio, "value"), f'=IF({{delta}}="","",{f.ratio or "EXP({delta})"})')
    half = f"{t_quantile(CONFIDENCE_NAME, '{df}')}*{{se}}"
    for name, sign in (("lo", "-"), ("hi", "")):
        end = f"{{ratio}}*EXP({sign}{half})"
        parts[name] = figure(_part(ratio, name), f'=IF({{se}}="","",IF({{df}}="",{{ratio}},{end}))')
    if f.pairing is Pairing.PINNED:  # a single host does not represent its type, so nothing is tested
        return parts | ({"verdict": shown_verdict(ratio)} if is_judged and ratio else {})
    p = t_two_sided("{t}", "{df}")
    parts["p"] = figure(_part(ratio, "p"), f'=IF({{se}}="","",IF({{df}}="",IF({{delta}}=0,1,0),{p}))')
    if has_adjusted:
        among = _part(ratio, "p" if ratio and ratio.p_adjusted is None else "p_adjusted")
        factor = among / ratio.p if ratio and ratio.p and among else 1.0
        parts["p_adjusted"] = figure(among, f'=IF({{p}}="","",MIN(1,{{p}}*{factor!r}))')
    if is_judged:
        parts["verdict"] = replace(shown_verdict(ratio), formula=verdict)
    return parts


def fixed(ratio: Ratio, *, is_judged: bool = True) -> dict[str, Cell]:
    """Return the ratio and its workings as values, for a ratio that formulas over hosts cannot compute."""
    parts = {
        "ratio": figure(ratio.value),
        "lo": figure(ratio.lo),
        "hi": figure(ratio.hi),
        "p": figure(ratio.p),
        "p_adjusted": figure(ratio.p_adjusted),
        "n_a": figure(ratio.n[0]),
        "n_b": figure(ratio.n[1]),
        "delta": figure(math.log(ratio.value)),
        "se": figure(ratio.log_error),
        "df": figure(ratio.df),
    }
    return parts | ({"verdict": shown_verdict(ratio)} if is_judged else {})


def shown_verdict(ratio: Ratio | None) -> Cell:
    """Return the cell of a verdict."""
    return Cell(word(ratio.verdict), tone=VERDICTS[ratio.verdict]) if ratio else Cell()


def _part(ratio: Ratio | None, name: str) -> float | None:
    return None if ratio is None else getattr(ratio, name)


def _df(f: Formulas) -> str:
    """Return the formula for the degrees of freedom: ``planner.ratio.degrees``, or those of the only sample."""
    if f.pairing is Pairing.APART:
        formula = "({var_a}+{var_b})^2/({var_a}^2/({n_a}-1)+{var_b}^2/({n_b}-1))"
        # If all hosts are identical, the variance is zero and both sides count equally.
        formula = f"IF({{var_a}}+{{var_b}}<={NOTHING!r},1/(0.25/({{n_a}}-1)+0.25/({{n_b}}-1)),{formula})"
        ceiling = "(MIN({n_a},{n_b})-1)^2*(1+MIN({n_a},{n_b})/MAX({n_a},{n_b}))"
        formula = f"IF({{n_a}}={{n_b}},{formula},MIN({formula},{ceiling}))"
    else:
        formula = "{n_b}-1"
    return f'=IF({{se}}="","",IF({{se}}^2<{NOTHING!r},"",{formula}))'


def verdict_formula(say: Say) -> str:
    """Return the formula of a verdict, with its words in the reader's language."""
    better, worse, equal, unsure = (quoted(say(word(verdict))) for verdict in VERDICTS)
    near = f"{{lo}}>=1-{SAME_NAME},{{hi}}<=1+{SAME_NAME}"
    one_of_many = f"{{p_adjusted}}>1-{CONFIDENCE_NAME}"
    by_interval = (
        f"IF(AND({near}),{equal},IF({one_of_many},{unsure},IF({{lo}}>1,{better},IF({{hi}}<1,{worse},{unsure}))))"
    )
    return f'=IF({{ratio}}="","",IF({{lo}}="",{unsure},{by_interval}))'
