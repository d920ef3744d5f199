"""Measure how well ``planner.predict.transfer`` predicts machines of an unseen family, on published results.

``python -m benchmarks.transfer [WORD ...]`` prints a row per task (those whose name has one of the words), beside a
geometric mean of the known ratios and, for CPUs, cores x clock. The tables are found through FLEETMARK_CORPUS.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from fleetmark.planner.predict.transfer import transfer

ROOT = Path(os.environ.get("FLEETMARK_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
SPEC, MLPERF = ROOT / "spec_published", ROOT / "mlperf_published"
RESAMPLED = 10_000
MIXED_UP = 1.25  # rate results of one system that differ more are of other numbers of chips: the join did not ask
MISTAKEN = 10
FIRST_FITS = Sequence[tuple[str, str]]

# The list's own generations, and where it is silent or mistaken.
PROCESSORS: FIRST_FITS = [
    (r"Xeon 63\d\dP|E-24\d\d", "Raptor Lake-E"),
    (r"Xeon 6\d{3}E", "Sierra Forest"),
    (r"Xeon 6\d{3}P", "Granite Rapids"),
    (r"Celeron G49|Core i\d-[89]|Pentium Gold G5|E-2[12]\d\d", "Coffee Lake"),
    (r"Pentium Gold G6", "Comet Lake"),
    (r"G4560|i3-7300|v6$", "Kaby Lake"),
    (r"v5$", "Skylake client"),
    (r"v4$", "Broadwell"),
    (r"Core Ultra", "Arrow Lake"),
    (r"W-21", "Intel Xeon - 1st Gen Scalable"),
    (r"W-22", "Intel Xeon - 2nd Gen Scalable"),
    (r"PRO 39", "AMD EPYC - 2nd Gen"),
    (r"5800X", "AMD EPYC - 3rd Gen"),
    (r"7950X", "AMD EPYC - 4th Gen"),
]
CORES: FIRST_FITS = [
    (r"EPYC_7551|Hygon", "Zen"),
    (r"EPYC_7..2", "Zen 2"),
    (r"EPYC_7..3|5700X", "Zen 3"),
    (r"EPYC_9..4|7500F", "Zen 4"),
    (r"EPYC_9..5|9950X", "Zen 5"),
    (r"Graviton_3", "Neoverse V1"),
    (r"Graviton_4|C4A", "Neoverse V2"),
    (r"Graviton_5", "Neoverse V3"),
    (r"Altra", "Neoverse N1"),
    (r"Yitian", "Neoverse N2"),
    (r"N4A", "Neoverse N3"),
    (r"Apple.*P-Core", "Apple P"),
    (r"Apple.*E-Core", "Apple E"),
    (r"Kirin|Kunpeng", "TaiShan"),
    (r"POWER8", "POWER8"),
    (r"Core_i[79]-1[234].*P-Core|6430|857|858|3595X", "Golden Cove"),
    (r"Core_i[79]-1[234].*E-Core", "Gracemont"),
    (r"10980XE|D-2146", "Skylake-X"),
    (r"697|6982P", "Redwood Cove"),
    (r"v4$", "Broadwell"),
    (r"3A6000|3C6000", "LA664"),
]
ACCELERATORS: FIRST_FITS = [
    (r"MI325X.*MI300X|MI300X.*MI325X", ""),  # both in one system: of no family
    *((name, name) for name in ("GB300", "GB200", "GH200", "B200", "H200", "H100", "A100", "MI325X", "MI300X")),
    (r"A10\b", "A10"),
    (r"A2\b", "A2"),
    (r"L4\b", "L4"),
    *((name, name) for name in ("A30", "A40", "L40S", "L40", "T4", "RTX 4090", "RTX PRO 6000")),
    (r"RTX.*Ada", "RTX Ada"),
    *((name, name) for name in ("Orin NX", "Orin", "Xavier", "TPU v5e", "TPU v6", "UntetherAI", "RecAccel", "SAPEON")),
    (r"AI 100 Ultra", "AI 100 Ultra"),
    (r"AI 100", "AI 100"),
    (r"Gaudi", "Gaudi 2"),
    (r"Mali.G52", "Mali-G52"),
]
ARCHITECTURES = {
    "Hopper": ("H100", "H200", "GH200"),
    "Blackwell": ("B200", "GB200", "GB300", "RTX PRO 6000"),
    "Ampere": ("A100", "A30", "A40", "A10", "A2", "NVIDIA RTX A5000 GPU", "Orin", "Orin NX"),
    "Ada": ("L40S", "L40", "L4", "RTX 4090", "RTX Ada"),
    "CDNA 3": ("MI300X", "MI325X"),
    "AI 100": ("AI 100", "AI 100 Ultra"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """Machines on record, as planner.predict.transfer takes them. ``peak``: log of cores x clock."""

    history: pd.DataFrame
    families: Mapping[str, str]
    facts: pd.DataFrame | None = None
    peak: pd.Series | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Figures to predict, and from what.

    ``plain``: what the geometric mean works on, where ratios of whole machines would not apply.
    """

    name: str
    table: Table
    targets: Sequence[str]
    may_know: Callable[[str, str], bool]
    facts: Sequence[str] = ()
    _: KW_ONLY
    plain: pd.DataFrame | None = None
    least_known: int = 1


@dataclass(kw_only=True, frozen=True, slots=True)
class TransferScore:
    """What came of a task. Errors are |predicted / true - 1|; of machines, and the mean of family means.

    ``rivals``: name to the same pair; ``gains``: name to the rival's error less ours, family means, with a 95% interval
    by the bootstrap over families.
    """

    cases: pd.DataFrame
    error: tuple[float, float]
    coverage: tuple[float, float]
    width: float
    rivals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    gains: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


def first_fit(name: str, patterns: FIRST_FITS, otherwise: str) -> str:
    return next((family for pattern, family in patterns if re.search(pattern, name)), otherwise)


def systems() -> Table:
    """SPEC CPU 2017 integer, speed and rate: a row per processor, chips and cores, the median over makers' systems."""
    d = pd.read_csv(SPEC / "cpu2017_int_speed_rate_joined_202507.csv")
    d.columns = [c.strip() for c in d.columns]
    d = d[(d["Base Speed Result"] > 0) & (d["Base Rate Result"] > 0) & (d["# Cores"] > 0)].copy()
    d["cpu"] = d["Processor"].str.replace(r"\s+", " ", regex=True).str.strip()
    rate, chips = (d.groupby("System")[c] for c in ("Base Rate Result", "# Chips"))
    d = d[(chips.transform("nunique") == 1) & (rate.transform("max") / rate.transform("min") <= MIXED_UP)].copy()
    per_chip = d["# Cores"] / d["# Chips"]
    usual = per_chip.groupby(d["cpu"]).transform(lambda x: x.mode().iloc[0])
    d = d[
        (per_chip == usual) & (d["cpu"] != "redacted")
    ].copy()  # elsewhere threads were counted, or cores switched off
    figures = ["Base Speed Result", "Peak Speed Result", "Base Rate Result", "Peak Rate Result"]
    d[figures] = np.log(d[figures].where(d[figures] > 0))
    d["clock"] = np.log(pd.to_numeric(d["System"].str.extract(r"(\d\.\d+) ?GHz", flags=re.IGNORECASE)[0]))
    d["L3"] = np.log(d["3rd Level Cache"].str.extract(r"([\d.]+) MB")[0].astype(float) * d["# Chips"])
    d["DIMMs"] = np.log(d["Memory"].str.extract(r"\((\d+) x")[0].astype(float))
    rated = d["Memory"].str.extract(r"PC\d-(\d{4})\D")[0].astype(float)
    d["MT/s"] = np.log(d["Memory"].str.extract(r"running at (\d{4})\b")[0].astype(float).fillna(rated))
    threads = d.groupby("cpu")["# Enabled Threads Per Core"].transform("max").clip(1, 2)
    d["cores"], d["threads"] = np.log(d["# Cores"]), np.log(d["# Cores"] * threads)
    of_machine = ["cpu", "# Chips", "# Cores"]
    per_system = d.groupby([*of_machine, "System"]).agg(
        dict.fromkeys(figures, "mean")
        | dict.fromkeys(["clock", "L3", "DIMMs", "MT/s", "cores", "threads"], "median")
        | {"Generation": "first"}
    )
    numbers = [c for c in per_system if c != "Generation"]
    m = per_system.groupby(of_machine)[numbers].median()
    m["Generation"] = per_system.groupby(of_machine)["Generation"].first()
    clock = m.groupby("cpu")["clock"].transform("median")
    cpu = m.index.get_level_values("cpu")
    m.index = pd.Index([f"{c}, {chips} chips, {cores} cores" for c, chips, cores in m.index])
    families = [first_fit(c, PROCESSORS, g.split(" (")[0]) for c, g in zip(cpu, m["Generation"], strict=True)]
    named = {"Result": "", "Base": "base", "Peak": "peak", "Speed": "speed", "Rate": "rate"}
    history = m[figures].rename(columns=lambda c: " ".join(filter(None, (named[w] for w in c.split()))))
    facts = m[["cores", "threads", "L3", "DIMMs", "MT/s"]]
    peak = pd.Series(m["cores"].to_numpy() + clock.to_numpy(), index=m.index)
    return Table(history, dict(zip(m.index, families, strict=True)), facts, peak)


def one_copy() -> Table:
    """Estimated SPEC scores of one copy: a row per core, a column per suite, compiler and flags."""
    d = pd.read_csv(SPEC / "spec_rate1_estimated_jiegec.csv", dtype=str)
    d = d[d["distro"].isin(["bookworm", "trixie"])].copy()
    d["y"] = np.log(d["est_base_score"].astype(float))
    gcc = d["distro"].map({"bookworm": "GCC 12", "trixie": "GCC 14"})
    d["column"] = d["suite"].str.replace("_rate1", "") + " " + gcc + " -" + d["flags"]
    history = d.groupby(["cpu", "column"])["y"].mean().unstack()
    return Table(history, {str(c): first_fit(str(c), CORES, str(c)) for c in history.index})


def accelerators() -> Table:
    """MLPerf Inference, closed, all rounds: a row per round, submitter and platform.

    Throughput per accelerator; a latency by its reciprocal. Slices of accelerators (MIG) are left out. A result at 99.9%
    accuracy meets 99% too, so the better of the two is the model's. Columns carry the unit: gptj in samples is another
    benchmark than in tokens. Where one of Server and Offline is MISTAKEN times the other, one is a mistake: both go.
    """
    d = pd.read_csv(MLPERF / "mlperf_inference_all_rounds.csv", dtype=str)
    units = {"Samples/s": "samples", "Queries/s": "samples", "Tokens/s": "tokens", "Latency (ms)": "ms"}
    count = pd.to_numeric(d["accelerators_per_node"], errors="coerce") * d["nodes"].astype(float)
    result = d["result"].astype(float)
    d["unit"] = d["units"].map(units)
    # Published as samples, but 300 times the Server results in queries: these are tokens, as they are from v4.1 on.
    early = (d["round"] == "v4.0") & d["model"].str.startswith("llama2-70b") & (d["scenario"] == "Offline")
    d.loc[early & (d["unit"] == "samples"), "unit"] = "tokens"
    accelerated = d["accelerator"].notna() & (d["accelerator"] != "-") & (count > 0)
    accelerated &= ~(d["accelerator"] + d["platform"]).str.contains("MIG", na=False)
    d = d[(d["division"] == "closed") & accelerated & d["unit"].notna() & (result > 0)].copy()
    d["family"] = [first_fit(a, ACCELERATORS, a) for a in d["accelerator"]]
    d = d[d["family"] != ""].copy()
    late = d["unit"] == "ms"
    d["y"] = np.where(late, -np.log(result[d.index]), np.log(result[d.index] / count[d.index]))
    model = d["model"].str.replace(r"-99(\.9)?$", "", regex=True).replace("resnet", "resnet50")
    d["column"] = model + " " + d["scenario"] + " " + d["unit"]
    d["machine"] = d["family"] + ": " + d["round"] + " " + d["submitter"] + " " + d["platform"]
    history = d.groupby(["machine", "column"])["y"].max().unstack()
    for server in [str(c) for c in history if " Server " in str(c)]:
        offline = server.replace("Server", "Offline")
        if offline not in history:
            continue
        mistaken = (history[server] - history[offline]).abs() > np.log(MISTAKEN)
        history.loc[mistaken, [server, offline]] = np.nan
    return Table(history, {str(m): str(m).split(": ")[0] for m in history.index})


def tasks() -> Iterator[Task]:
    """Yield every task for which there is a table."""
    if SPEC.is_dir():
        yield from _of_processors()
    if MLPERF.is_dir():
        yield from _of_accelerators()


def _of_processors() -> Iterator[Task]:
    def only(*names: str) -> Callable[[str, str], bool]:
        return lambda known, target: known in names

    table = systems()
    assert table.facts is not None
    facts = [str(c) for c in table.facts]
    per_core = table.history.copy()
    for name in ("base rate", "peak rate"):
        per_core[name] -= table.facts["cores"]
    speed, rate = only("base speed"), only("base rate")
    yield Task("rate from speed, cores and threads", table, ["base rate"], speed, facts[:2], plain=per_core)
    yield Task("rate from speed, cores, threads, L3, memory", table, ["base rate"], speed, facts, plain=per_core)
    yield Task("speed from rate, cores, threads, L3, memory", table, ["base speed"], rate, facts, plain=per_core)
    yield Task("peak rate from base rate", table, ["peak rate"], rate)
    yield Task("peak speed from base speed", table, ["peak speed"], speed)
    ones = one_copy()
    for gcc in ("GCC 12", "GCC 14"):
        integer, floating = (f"{s}2017 {gcc} -O3" for s in ("int", "fp"))
        both = only(integer, floating)
        yield Task(f"fp from int, {gcc}", ones, [floating], only(integer))
        yield Task(f"fp -march=native from int and fp, {gcc}", ones, [f"{floating}-march=native"], both, least_known=2)
        yield Task(f"int -flto -ljemalloc from int and fp, {gcc}", ones, [f"{integer}-flto-ljemalloc"], both)
    old = only("int2017 GCC 14 -O3", "fp2017 GCC 14 -O3")
    yield Task("int 2026 from int and fp 2017", ones, ["int2026 GCC 14 -O3"], old, least_known=2)
    yield Task("fp 2026 from int and fp 2017", ones, ["fp2026 GCC 14 -O3"], old, least_known=2)


def _of_accelerators() -> Iterator[Task]:
    chips = accelerators()
    of_chip = {chip: name for name, several in ARCHITECTURES.items() for chip in several}
    wider = Table(chips.history, {m: of_chip.get(f, f) for m, f in chips.families.items()})
    columns = [str(c) for c in chips.history]
    for table, left_out in ((chips, "chip"), (wider, "architecture")):
        from_scenarios = f"MLPerf: from other scenarios of the model, {left_out} left out"
        yield Task(from_scenarios, table, columns, lambda k, t: k.split(" ")[0] == t.split(" ")[0])
        other = f"MLPerf: from other models, {left_out} left out"
        yield Task(other, table, columns, lambda k, t: k.split(" ")[0] != t.split(" ")[0], least_known=2)


def run(task: Task) -> TransferScore:
    """Leave-one-family-out over a task, and its rivals on the same cases."""
    table = task.table
    facts = table.facts[list(task.facts)] if table.facts is not None and task.facts else None
    history = _with_enough(task)
    cases = leave_family_out(history, table.families, task.targets, task.may_know, facts=facts)
    plain = history if task.plain is None else task.plain
    one, over_all = geometric(plain, table.families, cases, task.may_know)
    rivals = {"geometric mean": one, "geometric mean over all": over_all}
    if table.peak is not None and task.targets == ["base rate"]:
        rivals["cores x clock"] = from_peak(table, cases)
    for name, errors in rivals.items():
        cases[name] = errors
    cases["ours"] = np.abs(np.exp(cases["log"] - cases["truth"]) - 1)
    predicted = cases[cases["log"].notna()]
    inside = (predicted["lo"] <= predicted["truth"]) & (predicted["truth"] <= predicted["hi"])
    width = float(np.exp(np.median(predicted["hi"] - predicted["log"])) - 1)
    scores = {n: both(predicted[n], predicted["family"]) for n in rivals}
    gains = {n: gain(predicted, n) for n in rivals}
    error, coverage = both(predicted["ours"], predicted["family"]), both(inside.astype(float), predicted["family"])
    return TransferScore(cases=cases, error=error, coverage=coverage, width=width, rivals=scores, gains=gains)


def leave_family_out(
    history: pd.DataFrame,
    families: Mapping[str, str],
    targets: Sequence[str],
    may_know: Callable[[str, str], bool],
    *,
    facts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return every recorded figure of ``targets``, predicted from the machine's other figures without its family.

    ``may_know(benchmark, target)``: whether the one may be used for the other. A row per figure for which the machine
    has others to predict it from: machine, family, target, truth, log, lo, hi (NaN if there is no prediction), why.
    """
    rows = []
    family = pd.Series({m: families[str(m)] for m in history.index})
    for one in sorted(set(family)):
        rest = history[family != one]
        rest_facts = None if facts is None else facts.reindex(rest.index)
        for machine, figures in history[family == one].iterrows():
            present = figures.dropna()
            machine_facts = {} if facts is None else facts.loc[machine].dropna().to_dict()
            for target in (t for t in targets if t in present.index):
                usable = {str(c): float(v) for c, v in present.items() if c != target and may_know(str(c), target)}
                if not usable:
                    continue
                p = transfer(rest, families, usable, [target], facts=rest_facts, known_facts=machine_facts)[target]
                numbers = (p.log.value, p.log.lo, p.log.hi) if p.log else (math.nan,) * 3
                rows.append((str(machine), one, target, float(present[target]), *numbers, p.reason))
    return pd.DataFrame(rows, columns=["machine", "family", "target", "truth", "log", "lo", "hi", "why"])


def _with_enough(task: Task) -> pd.DataFrame:
    """Return the history without machines that have too few figures. They cannot be predicted and add little."""
    history = task.table.history
    return history[history.notna().sum(axis=1) > task.least_known]


def both(x: pd.Series, family: pd.Series) -> tuple[float, float]:
    return float(x.mean()), float(x.groupby(family).mean().mean())


def geometric(
    plain: pd.DataFrame, families: Mapping[str, str], cases: pd.DataFrame, may_know: Callable[[str, str], bool]
) -> tuple[list[float], list[float]]:
    """Errors of: the target's ratio is the geometric mean of the known ratios.

    First against one baseline machine of another family: the mean error over those that share the most known figures.
    Then of the mean prediction over all machines of other families, by the weights of planner.predict.transfer: that is
    not done by hand, and is harder to beat.
    """
    family = np.array([families[str(m)] for m in plain.index])
    row_of = {str(m): i for i, m in enumerate(plain.index)}
    values, columns = plain.to_numpy(float), [str(c) for c in plain]
    one, over_all = [], []
    for machine, own_family, target in zip(cases["machine"], cases["family"], cases["target"], strict=True):
        row, t = row_of[machine], columns.index(target)
        known = [i for i, c in enumerate(columns) if i != t and may_know(c, target) and not np.isnan(values[row, i])]
        others = np.flatnonzero((family != own_family) & ~np.isnan(values[:, t]))
        shared = (~np.isnan(values[others][:, known])).sum(axis=1)
        others, shared = others[shared > 0], shared[shared > 0]
        if not len(others):
            one.append(np.nan)
            over_all.append(np.nan)
            continue
        ratios = np.nanmean(values[row, known] - values[others][:, known], axis=1)
        errors = values[others, t] + ratios - values[row, t]
        one.append(float(np.abs(np.exp(errors[shared == shared.max()]) - 1).mean()))
        _, family_of_row, count = np.unique(family[others], return_inverse=True, return_counts=True)
        over_all.append(float(abs(np.exp(np.average(errors, weights=count[family_of_row] ** -0.5)) - 1)))
    return one, over_all


def from_peak(table: Table, cases: pd.DataFrame) -> list[float]:
    """Errors of: the target goes with cores x clock; the factor is that of the other families."""
    assert table.peak is not None
    family_of_row = np.array([table.families[str(m)] for m in table.history.index])
    errors = []
    for machine, family, target in zip(cases["machine"], cases["family"], cases["target"], strict=True):
        rest = table.history[target] - table.peak
        errors.append(float(abs(np.exp(rest[family_of_row != family].median() - rest[machine]) - 1)))
    return errors


def gain(predicted: pd.DataFrame, rival: str, seed: int = 1) -> tuple[float, float, float]:
    """Return the rival's mean error minus ours, over families, with a 95% interval from resampled families."""
    cases = predicted[predicted[rival].notna()]
    per_family = (cases[rival] - cases["ours"]).groupby(cases["family"]).mean().to_numpy()
    drawn = np.random.default_rng(seed).choice(per_family, (RESAMPLED, len(per_family))).mean(axis=1)
    return float(per_family.mean()), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def main() -> None:
    words = [w.lower() for w in sys.argv[1:]]
    print("error and coverage: of machines (mean of families); gain: points of error saved, families, 95% interval\n")
    print("| task | cases, families | cannot tell | error | coverage of 90% | reach | rival | its error | gain |")
    print("|-|-|-|-|-|-|-|-|-|")
    scores = {}
    for task in tasks():
        if words and not any(w in task.name.lower() for w in words):
            continue
        began = time.perf_counter()
        score = scores[task.name] = run(task)
        predicted = score.cases[score.cases["log"].notna()]
        lead = (
            f"| {task.name} | {len(predicted)}, {predicted['family'].nunique()} | {len(score.cases) - len(predicted)}"
        )
        lead += f" | {_pair(score.error)} | {_pair(score.coverage, 0)} | +{score.width:.0%}"
        for rival, its in score.rivals.items():
            mean, lo, hi = (100 * x for x in score.gains[rival])
            print(f"{lead} | {rival} | {_pair(its)} | {mean:.1f} ({lo:.1f} to {hi:.1f}) |")
            lead = "| | | | | |"
        print(f"{task.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    covered = [s.coverage for name, s in scores.items() if not name.startswith("MLPerf")]
    if covered:
        print(
            f"\ncoverage, mean of the {len(covered)} tasks of processors: {_pair((float(np.mean([c[0] for c in covered])), float(np.mean([c[1] for c in covered]))))}"
        )
    if not SPEC.is_dir() or not MLPERF.is_dir():
        print(f"tables are missing under {ROOT}: set FLEETMARK_CORPUS", file=sys.stderr)


def _pair(x: tuple[float, float], digits: int = 1) -> str:
    return f"{x[0]:.{digits}%} ({x[1]:.{digits}%})"


if __name__ == "__main__":
    main()
