"""Simulate the coverage of confidence intervals and the rate of false verdicts.

The simulation covers unequal fleet sizes, gaps, batches, totals of mixed fleets, strata and benchmarks selected by
value.

``python -m benchmarks.coverage [--trials 2000] [--jobs 1] [--only fleet tables] [--output FILE]`` simulates the grid,
prints a table and writes ``benchmarks/results/coverage.json``. ``python -m benchmarks.coverage --docs`` only updates
the tables in ``docs/reference/coverage.md`` from that file.

The standard deviation between hosts is 3%, and half of that for each benchmark within a host. All results come from the
estimators of ``fleetmark compare``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks import measuring
from fleetmark.base.measurement import Better
from fleetmark.planner.clustered import strongest
from fleetmark.planner.contrast import Contrast, Figures, Pairing, TooFewFiguresError, another_workload
from fleetmark.planner.equivalence import ENDS, Basis, compare
from fleetmark.planner.estimate import CONFIDENCE, deviate
from fleetmark.planner.fieller import fieller
from fleetmark.planner.guardrail import Held, guardrail, judged_together
from fleetmark.planner.ratio import Mean, Ratio, Verdict, among, between, satterthwaite
from fleetmark.planner.strata import join
from fleetmark.planner.totals import total, totalled

Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

RESULTS = measuring.RESULTS / "coverage.json"
DOCS = Path(__file__).parent.parent / "docs" / "reference" / "coverage.md"
BEGIN, END = "<!-- coverage.json: begin -->\n", "<!-- coverage.json: end -->\n"

BASELINES, CANDIDATES = (2, 3, 4, 5, 10, 20), (2, 5, 20, 60)
SPREADS = {"equal": (1, 1), "baseline": (3, 1), "candidate": (1, 3)}  # spread factors of both sides
MISSING = (0, 30, 50)  # percentage of missing figures
HOST_SD, CELL_SD = 0.03, 0.015
BENCHMARKS = 8
TABLES = (50, 300)  # number of benchmarks
GAIN = 0.10  # true gain, used to estimate the power
GUARDRAILS = 100
PICKED = (8, 50)  # number of benchmarks from which the extremes are selected
BATCHES = [(2, 4), (2, 10), (2, 20), (3, 6), (3, 15), (4, 8), (4, 20), (6, 12)]  # (batches, hosts) on each side
ICCS = (0.0, 0.3, 0.6, 0.8)
FAMILIES = (3, 5)
MIXED_SD = 0.3  # standard deviation of the hosts of a mixed fleet, large enough for totals to be the headline
MIXED = [(2, 10), (3, 15), (4, 20), (6, 12), (6, 30), (12, 24)]  # (batches, hosts) of mixed fleets
MIXED_ICCS = (0.0, 0.3, 0.8)
SIZES = [(2, 0), (2, 30), (3, 30)]  # (strata, percentage of missing figures)
STRATA = [(2, 2), (3, 3), (3, 20), (5, 5), (20, 20)]  # (baseline, candidate) hosts per stratum
MOST_TRIES = 20  # maximum attempts per trial, since fleets with gaps may have no headline


@dataclass(frozen=True, slots=True)
class Case:
    """One simulated configuration: its ``section``, settings, number of ``trials`` and ``seed``."""

    section: str
    settings: Mapping[str, Any]
    trials: int
    seed: int


# --- fleets -----------------------------------------------------------------------------------------------------------


def _sides(settings: Mapping[str, Any], benchmarks: int, rng: np.random.Generator) -> list[Floats]:
    """Return the logs of both sides, hosts by benchmarks, with no true difference between the sides."""
    sides = []
    for hosts, times in zip((settings["baseline"], settings["candidate"]), SPREADS[settings["wider"]], strict=True):
        effect = rng.normal(0, HOST_SD * times, (hosts, 1))
        sides.append(effect + rng.normal(0, CELL_SD * times, (hosts, benchmarks)))
    return sides


def _figures(logs: Floats) -> Figures:
    nothing = np.full_like(logs, np.nan)
    return Figures(logs, nothing, nothing)


def _contrast(sides: Sequence[Floats]) -> Contrast | None:
    """Return the contrast over the benchmarks of both sides, or None if there is no headline."""
    both = np.flatnonzero(np.logical_and(*((~np.isnan(y)).any(axis=0) for y in sides))).tolist()
    try:
        return Contrast.from_sides((_figures(sides[0]), _figures(sides[1])), both, Pairing.APART) if both else None
    except TooFewFiguresError:
        return None


def _even(number: int) -> Floats:
    return np.full(number, 1 / number)


def _held(ratio: Ratio | None, truth: float = 0.0) -> bool:
    return (
        ratio is not None and ratio.interval is not None and ratio.interval[0] <= math.exp(truth) <= ratio.interval[1]
    )


# --- sections: each returns the results of a case ---------------------------------------------------------------------


def fleet(case: Case) -> Row:
    """Return coverage, median half-width and power of the fleet's interval; the last two for Welch's interval too."""
    rng = np.random.default_rng(case.seed)
    held = tried = detected = detected_by_welch = 0
    halves: list[float] = []
    of_welch: list[float] = []
    while len(halves) < case.trials and tried < MOST_TRIES * case.trials:
        sides = _sides(case.settings, BENCHMARKS, rng)
        tried += 1
        for y in sides:
            y[rng.random(y.shape) < case.settings["missing"] / 100] = np.nan
        contrast = _contrast(sides)
        ratio = contrast.ratio(_even(len(contrast.deltas))) if contrast else None
        if ratio is None or ratio.interval is None:
            continue
        held += _held(ratio)
        halves.append(math.log(ratio.interval[1] / ratio.interval[0]) / 2)
        if case.settings["missing"] == 0:
            shifted = _contrast([sides[0], sides[1] + math.log1p(GAIN)])
            detected += shifted is not None and shifted.ratio(_even(BENCHMARKS)).verdict is Verdict.BETTER
            a, b = (Mean.from_logs(side.mean(axis=1)) for side in sides)
            of_welch.append(deviate(CONFIDENCE, satterthwaite([a, b])) * math.sqrt(a.variance + b.variance))
            detected_by_welch += b.value - a.value + math.log1p(GAIN) > of_welch[-1]
    n = len(halves)
    row = {"coverage": held / n, "half": float(np.median(halves)), "without": 1 - n / tried, "trials": n}
    if of_welch:
        row |= {"half_welch": float(np.median(of_welch)), "power": detected / n, "power_welch": detected_by_welch / n}
    return row


def fiellers(case: Case) -> Row:
    """Return the coverage of Fieller's interval for a true ratio of 2; unbounded intervals count as covering."""
    rng = np.random.default_rng(case.seed)
    held, halves = 0, []
    for _ in range(case.trials):
        a, b = (np.exp(y[:, 0]) for y in _sides(case.settings, 1, rng))
        ratio = fieller(2 * b / math.exp(_bias(case, 1)), a / math.exp(_bias(case, 0)))
        held += ratio.interval is None or ratio.interval[0] <= 2 <= ratio.interval[1]
        halves.append(math.inf if ratio.interval is None else (ratio.interval[1] - ratio.interval[0]) / 4)
    return {"coverage": held / case.trials, "half": float(np.median(halves)), "trials": case.trials}


def _bias(case: Case, side: int) -> float:
    """Return the log of the mean of figures whose logs are normal with mean 0."""
    return (HOST_SD**2 + CELL_SD**2) / 2 * SPREADS[case.settings["wider"]][side] ** 2


def tables(case: Case) -> Row:
    """Return the share of tables of unchanged benchmarks with at least one verdict of better or worse.

    Benchmarks with |t| below 1.96 are skipped, since their p exceeds 5% for any degrees of freedom and cannot change a
    verdict.
    """
    rng = np.random.default_rng(case.seed)
    number = case.settings["benchmarks"]
    false = 0
    for _ in range(case.trials):
        a, b = (_means(y) for y in _sides(case.settings, number, rng))
        t = np.abs(b[0] - a[0]) / np.sqrt(a[1] + b[1])
        ratios = {str(n): Ratio(1.0, p=1.0) for n in range(number)}
        for n in np.flatnonzero(t >= 1.9599).tolist():
            means = [Mean(float(m[n]), float(v[n]), k - 1.0, k) for m, v, k in (a, b)]
            ratios[str(n)] = between(means[0], means[1], (a[2], b[2]))
        verdicts = (replace(ratios[n], p_adjusted=p).verdict for n, p in among(ratios).items())
        false += any(v in (Verdict.BETTER, Verdict.WORSE) for v in verdicts)
    return {"false": false / case.trials, "trials": case.trials}


def _means(logs: Floats) -> tuple[Floats, Floats, int]:
    """Return the means over hosts, the variances of these means, and the number of hosts."""
    return logs.mean(axis=0), logs.var(axis=0, ddof=1) / len(logs), len(logs)


def guardrails(case: Case) -> Row:
    """Return the share of tables of unchanged guardrails with at least one reported as broken."""
    rng = np.random.default_rng(case.seed)
    false = 0
    for _ in range(case.trials):
        sides = [pd.DataFrame(y) for y in _sides(case.settings, GUARDRAILS, rng)]
        guards = {
            str(n): guardrail(sides[0][n], sides[1][n], Better.LOWER, None, Pairing.APART) for n in range(GUARDRAILS)
        }
        false += any(g.held is Held.BROKEN for g in judged_together(guards).values())
    return {"false": false / case.trials, "trials": case.trials}


def ends(case: Case) -> Row:
    """Return the coverage of the intervals of the lowest and highest benchmarks, with and without adjustment."""
    rng = np.random.default_rng(case.seed)
    number = case.settings["benchmarks"]
    held = plain = 0
    for _ in range(case.trials):
        gain = rng.normal(0, case.settings["apart"] / 100, number)
        a, b = _sides(case.settings, number, rng)
        contrast = Contrast.from_sides((_figures(a), _figures(b + gain)), range(number), Pairing.APART)
        for n in (int(np.argmin(contrast.deltas)), int(np.argmax(contrast.deltas))):
            ratio = contrast.ratio(np.eye(number)[n])
            interval = ratio.selected(ENDS, number)
            held += interval is not None and interval[0] <= math.exp(gain[n]) <= interval[1]
            plain += _held(ratio, gain[n])
    return {"coverage": held / case.trials / 2, "plain": plain / case.trials / 2, "trials": case.trials}


def batches(case: Case) -> Row:
    """Return the coverage for fleets whose hosts come in batches, with intervals by clusters and by hosts."""
    rng = np.random.default_rng(case.seed)
    held = by_hosts = clustered = 0
    hosts, icc = case.settings["hosts"], case.settings["icc"]
    batch = np.arange(hosts) % case.settings["batches"]
    groups = pd.DataFrame({"batch": batch.astype(str)})
    w = _even(BENCHMARKS)
    for _ in range(case.trials):
        sides = []
        for _side in range(2):
            effect = rng.normal(0, HOST_SD * math.sqrt(icc), case.settings["batches"])[batch]
            effect += rng.normal(0, HOST_SD * math.sqrt(1 - icc), hosts)
            sides.append(_figures(effect[:, None] + rng.normal(0, CELL_SD, (hosts, BENCHMARKS))))
        contrast = Contrast.from_sides((sides[0], sides[1]), range(BENCHMARKS), Pairing.APART)
        by_hosts += _held(contrast.ratio(w))
        alike = [None if s is None else strongest(s, groups) for s in contrast.scores(w)]
        clustered += sum(c is not None for c in alike)
        sides = [s if c is None else replace(s, clusters=c.codes) for s, c in zip(sides, alike, strict=True)]
        held += _held(Contrast.from_sides((sides[0], sides[1]), range(BENCHMARKS), Pairing.APART).ratio(w))
    n = case.trials
    return {"coverage": held / n, "by_hosts": by_hosts / n, "clustered": clustered / n / 2, "trials": n}


def families(case: Case) -> Row:
    """Return the coverage of the prediction interval for a new family, computed over families and over benchmarks.

    Families of three benchmarks have a standard deviation of 15%, and benchmarks within a family of 5%. Each side has
    six hosts.
    """
    rng = np.random.default_rng(case.seed)
    number = 3 * case.settings["families"]
    family_ids = np.repeat(np.arange(case.settings["families"]), 3)
    held = plain = given = 0
    for _ in range(case.trials):
        gain = rng.normal(0, 0.15, case.settings["families"])[family_ids] + rng.normal(0, 0.05, number)
        new = math.exp(rng.normal(0, 0.15) + rng.normal(0, 0.05))
        a, b = _sides({"baseline": 6, "candidate": 6, "wider": "equal"}, number, rng)
        contrast = Contrast.from_sides((_figures(a), _figures(b + gain)), range(number), Pairing.APART)
        by_family = [np.flatnonzero(family_ids == n).tolist() for n in range(case.settings["families"])]
        interval, _why = another_workload(contrast, _even(number), by_family)
        alone, _why = another_workload(contrast, _even(number), [[n] for n in range(number)])
        if interval and interval.interval and alone and alone.interval:
            given += 1
            held += interval.interval[0] <= new <= interval.interval[1]
            plain += alone.interval[0] <= new <= alone.interval[1]
    return {"coverage": held / given, "by_benchmarks": plain / given, "trials": given}


def totals(case: Case) -> Row:
    """Return the coverage of the headline of a mixed baseline in batches, and that of totals by hosts.

    The baseline's logs are normal, so the mean of its figures is known. The candidate has as many batches and differs
    by HOST_SD. ``totals`` is the share of fleets whose headline is the ratio of totals, ``without`` that of headlines
    without an interval, which count as covering.
    """
    rng = np.random.default_rng(case.seed)
    hosts, icc = case.settings["hosts"], case.settings["icc"]
    batch = np.arange(hosts) % case.settings["batches"]
    truth = (HOST_SD**2 - MIXED_SD**2) / 2
    held = by_hosts = chosen = without = 0
    for _ in range(case.trials):
        frames, groups = [], []
        for name, sd in (("a", MIXED_SD), ("b", HOST_SD)):
            effect = rng.normal(0, sd * math.sqrt(icc), case.settings["batches"])[batch]
            effect += rng.normal(0, sd * math.sqrt(1 - icc), hosts)
            index = [f"{name}{n}" for n in range(hosts)]
            frames.append(pd.DataFrame({"x": effect}, index))
            groups.append(pd.DataFrame({"batch": batch.astype(str)}, index))
        a, b = frames
        e = totalled(compare(a, b, groups=(groups[0], groups[1])), a, b, Pairing.APART)
        chosen += e.basis is Basis.TOTALS
        unbounded = e.headline is None or e.headline.interval is None
        without += unbounded
        held += unbounded or _held(e.headline, truth)
        by_hosts += _held(total(np.exp(a["x"].to_numpy()), np.exp(b["x"].to_numpy())), truth)
    n = case.trials
    return {"coverage": held / n, "by_hosts": by_hosts / n, "totals": chosen / n, "without": without / n, "trials": n}


def strata(case: Case) -> Row:
    """Return the coverage of the ratio joined over strata whose gains differ.

    The baseline has ``baseline`` hosts in the first stratum and twice as many in each further one; the candidate has
    ``candidate`` hosts in each. The gain rises by GAIN from one stratum to the next.
    """
    rng = np.random.default_rng(case.seed)
    shares = [1.0, *[2.0] * (case.settings["strata"] - 1)]
    truth = float(np.average(GAIN * np.arange(len(shares)), weights=shares))
    held = given = 0
    for _ in range(case.trials):
        parts: list[tuple[float, Ratio]] = []
        for n, share in enumerate(shares):
            a, b = _sides({**case.settings, "baseline": int(share) * case.settings["baseline"]}, BENCHMARKS, rng)
            for y in (a, b):
                y[rng.random(y.shape) < case.settings["missing"] / 100] = np.nan
            if contrast := _contrast((a, b + GAIN * n)):
                parts.append((share, contrast.ratio(_even(len(contrast.deltas)))))
        ratio = join(parts) if len(parts) == len(shares) else None
        if ratio is not None and ratio.interval is not None:
            given += 1
            held += _held(ratio, truth)
    return {"coverage": held / given, "without": 1 - given / case.trials, "trials": given}


SECTIONS: Mapping[str, Callable[[Case], Row]] = {
    "fleet": fleet,
    "fieller": fiellers,
    "tables": tables,
    "guardrails": guardrails,
    "ends": ends,
    "batches": batches,
    "families": families,
    "totals": totals,
    "strata": strata,
}


# --- the grid ---------------------------------------------------------------------------------------------------------


def cases(trials: int, seed: int, only: Sequence[str] = tuple(SECTIONS)) -> list[Case]:
    """Return all cases of the sections ``only``; each seed depends on the position in the whole grid."""
    return [
        Case(section, settings, max(1, int(trials * part)), seed + n)
        for n, (section, settings, part) in enumerate(_grid())
        if section in only
    ]


def _grid() -> Iterator[tuple[str, Row, float]]:
    """Yield the section, settings and share of trials of each case."""
    pairs = [
        {"baseline": a, "candidate": b, "wider": wider} for a in BASELINES for b in CANDIDATES for wider in SPREADS
    ]
    yield from (("fleet", pair | {"missing": missing}, 1.0) for missing in MISSING for pair in pairs)
    yield from (("fieller", pair, 1.0) for pair in pairs)
    yield from (("tables", pair | {"benchmarks": n}, 0.5) for n in TABLES for pair in pairs)
    some = [pair for pair in pairs if (pair["baseline"], pair["candidate"]) in ((2, 20), (3, 20), (5, 5), (20, 20))]
    yield from (("guardrails", pair, 0.15) for pair in some if pair["wider"] == "equal")
    yield from (("ends", pair | {"benchmarks": n, "apart": x}, 0.5) for n in PICKED for x in (0, 5) for pair in some)
    yield from (("batches", {"batches": k, "hosts": n, "icc": icc}, 0.5) for k, n in BATCHES for icc in ICCS)
    yield from (("families", {"families": n}, 0.5) for n in FAMILIES)
    yield from (("totals", {"batches": k, "hosts": n, "icc": icc}, 1.0) for k, n in MIXED for icc in MIXED_ICCS)
    for k, missing in SIZES:
        for a, b in STRATA:
            pair = {"strata": k, "baseline": a, "candidate": b, "missing": missing}
            yield from (("strata", pair | {"wider": wider}, 1.0) for wider in SPREADS)


def simulate(case: Case) -> Row:
    """Return the settings of ``case`` together with its results."""
    return {"section": case.section, **case.settings, **SECTIONS[case.section](case)}


def faults(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each value outside its bounds."""
    least = 0.93
    match row["section"]:
        case "fleet" | "fieller" | "strata":
            maximum = 0.98 if min(row["baseline"], row["candidate"]) >= 3 else 1.0
            if not least <= row["coverage"] <= maximum:
                yield f"coverage {row['coverage']:.1%}"
            equal = row["baseline"] == row["candidate"] and "half_welch" in row
            if equal and row["half"] > 1.15 * row["half_welch"]:
                yield f"half-width {row['half'] / row['half_welch']:.2f} times Welch's"
        case "tables" | "guardrails":
            if row["false"] > 0.05:
                yield f"false verdicts {row['false']:.1%}"
        case _:
            if row["coverage"] < least:
                yield f"coverage {row['coverage']:.1%}"


def main(arguments: Sequence[str]) -> int:
    """Run the simulation, print it and write the results, or update the tables of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args(arguments)
    if options.docs:
        DOCS.write_text(documented(DOCS.read_text(), json.loads(RESULTS.read_text())))
        return 0
    start, rows, circumstances = time.perf_counter(), [], measuring.circumstances()
    with ProcessPoolExecutor(options.jobs) as pool:
        for row in pool.map(simulate, cases(options.trials, options.seed, options.only)):
            rows.append(row)
            print(_line(row), flush=True)
    seconds = round(time.perf_counter() - start)
    out = [f"{_line(row)}: {fault}" for row in rows for fault in faults(row)]
    print(f"\n{len(rows)} rows in {seconds:,} s; out of bounds: {len(out)}", *out, sep="\n")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(json.dumps(row) for row in rows)
    head = json.dumps(circumstances | {"trials": options.trials, "seed": options.seed, "seconds": seconds})[:-1]
    options.output.write_text(f'{head}, "rows": [\n{text}\n]}}\n')
    return 0


def _line(row: Mapping[str, Any]) -> str:
    shown = (f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if k != "section")
    return f"{row['section']:10} " + ", ".join(shown)


# --- the documentation ------------------------------------------------------------------------------------------------


def documented(page: str, results: Mapping[str, Any]) -> str:
    """Return ``page`` with the tables between its markers regenerated from ``results``."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{markdown(results)}{END}{after}"


def markdown(results: Mapping[str, Any]) -> str:
    """Return the tables for the documentation."""
    rows = results["rows"]
    tables_of = {name: [r for r in rows if r["section"] == name] for name in SECTIONS}
    lines = [f"{results['trials']:,} simulated fleets per figure ({results['date']}, commit {results['commit']}).", ""]
    lines += ["| hosts | 0% missing | 30% missing | 50% missing | Fieller | 50 benchmarks | 300 benchmarks |"]
    lines += ["|-|-|-|-|-|-|-|"]
    for a in BASELINES:
        for b in CANDIDATES:
            parts = [[r for r in tables_of["fleet"] if r["missing"] == m] for m in MISSING] + [tables_of["fieller"]]
            cells = [_three(part, a, b, "coverage") for part in parts]
            cells += [_three([r for r in tables_of["tables"] if r["benchmarks"] == n], a, b, "false") for n in TABLES]
            lines.append(f"| {a} v {b} | " + " | ".join(cells) + " |")
    lines += ["", "| batches per side | hosts per side | " + " | ".join(f"ICC {icc:g}" for icc in ICCS) + " |"]
    lines += ["|-|-|" + "-|" * len(ICCS)]
    for k, n in BATCHES:
        rows_by_icc = {r["icc"]: r for r in tables_of["batches"] if (r["batches"], r["hosts"]) == (k, n)}
        cells = [f"{_percent(rows_by_icc[icc]['coverage'])} ({_percent(rows_by_icc[icc]['by_hosts'])})" for icc in ICCS]
        lines.append(f"| {k} | {n} | " + " | ".join(cells) + " |")
    lines += ["", "| hosts | 8 equal | 8 different | 50 equal | 50 different | 100 guardrails |", "|-|-|-|-|-|-|"]
    for a, b in sorted({(r["baseline"], r["candidate"]) for r in tables_of["ends"]}):
        parts = [
            [r for r in tables_of["ends"] if (r["benchmarks"], r["apart"]) == (n, x)] for n in PICKED for x in (0, 5)
        ]
        cells = [_three(part, a, b, "coverage") for part in parts] + [_three(tables_of["guardrails"], a, b, "false")]
        lines.append(f"| {a} v {b} | " + " | ".join(cells) + " |")
    lines += ["", "| batches per side | hosts per side | " + " | ".join(f"ICC {icc:g}" for icc in MIXED_ICCS) + " |"]
    lines += ["|-|-|" + "-|" * len(MIXED_ICCS)]
    for k, n in MIXED:
        rows_by_icc = {r["icc"]: r for r in tables_of["totals"] if (r["batches"], r["hosts"]) == (k, n)}
        cells = [
            f"{_percent(rows_by_icc[icc]['coverage'])} ({_percent(rows_by_icc[icc]['by_hosts'])})" for icc in MIXED_ICCS
        ]
        lines.append(f"| {k} | {n} | " + " | ".join(cells) + " |")
    lines += ["", "| hosts per size | " + " | ".join(f"{k} sizes, {m}% missing" for k, m in SIZES) + " |"]
    lines += ["|-|" + "-|" * len(SIZES)]
    for a, b in STRATA:
        parts = [[r for r in tables_of["strata"] if (r["strata"], r["missing"]) == key] for key in SIZES]
        lines.append(f"| {a} v {b} | " + " | ".join(_three(part, a, b, "coverage") for part in parts) + " |")
    return "\n".join(lines) + "\n"


def _three(rows: Sequence[Mapping[str, Any]], a: int, b: int, figure: str) -> str:
    """Return a figure for equal spreads, and for a baseline or candidate with three times the spread."""
    coverage_by_spread = {r["wider"]: r[figure] for r in rows if (r["baseline"], r["candidate"]) == (a, b)}
    return " / ".join(_percent(coverage_by_spread[wider]) for wider in SPREADS if wider in coverage_by_spread)


def _percent(part: float) -> str:
    return f"{100 * part:.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
