"""Measure how many runs ``fleetmark design`` needs to decide as all runs would, on published results.

``python -m benchmarks.predict.decision [--width 0.5] [--error 0.05] [--seed 1]``: each machine in turn is compared with
a random other one, its family left out of what is learned. The question is whether it is worth a threshold, drawn
within ``width`` (of logarithms) of the truth. Benchmarks are run in the order of the design until it is decided.
A row per record; machines of a family count together. The tables are found through FLEETMARK_CORPUS.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.transfer import ROOT, accelerators, one_copy
from fleetmark.planner.predict.decision import is_decided, learned, level, order

MOST_MACHINES = 600
ACCELERATED = 8  # benchmarks of accelerators: those that most systems have together


def servers() -> tuple[pd.DataFrame, dict[str, str]]:
    """Return cloud servers by Spare Cores, and the processor of each."""
    table = pd.read_csv(ROOT / "sparecores_published" / "sc_servers.csv").drop_duplicates(["vendor", "server"])
    table.index = pd.Index(table["vendor"] + " " + table["server"])
    figures = table[list(table.columns[7:21])].apply(pd.to_numeric, errors="coerce")
    logs = np.log(figures.where(figures > 0))
    logs = logs.loc[:, logs.notna().mean() > 0.6].dropna()
    return logs, table["cpu_model"].fillna("unknown").to_dict()


def records() -> Iterator[tuple[str, pd.DataFrame, dict[str, str]]]:
    """Yield the name, the complete figures and the families of each record."""
    yield ("Spare Cores", *servers())
    ones = one_copy()
    logs = ones.history.loc[:, ones.history.notna().mean() > 0.5].dropna()
    yield "SPEC CPU of one copy", logs, dict(ones.families)
    chips = accelerators()
    columns: list[str] = []
    while len(columns) < ACCELERATED:
        left = [str(c) for c in chips.history if c not in columns]
        columns.append(max(left, key=lambda c: int(chips.history[[*columns, c]].notna().all(axis=1).sum())))
    yield "MLPerf Inference", chips.history[columns].dropna(), dict(chips.families)


def decided(
    logs: pd.DataFrame, families: dict[str, str], width: float, error: float, seed: int
) -> tuple[float, float, int]:
    """Return the share of runs, the share of decisions that all runs confirm, and the number of machines."""
    random = np.random.default_rng(seed)
    family = pd.Series({machine: families[str(machine)] for machine in logs.index})
    machines = list(logs.index)
    if len(machines) > MOST_MACHINES:
        machines = [machines[n] for n in sorted(random.choice(len(machines), MOST_MACHINES, replace=False))]
    panels = {}
    rows = []
    for machine in machines:
        if family[machine] not in panels:
            others = logs[family != family[machine]]
            panel = learned(others, families)
            panels[family[machine]] = panel, [title for title, _ in order(panel)], others.mean(axis=1)
        panel, titles, levels = panels[family[machine]]
        truth = float(logs.loc[machine].mean() - levels.iloc[random.integers(len(levels))])
        threshold = truth + random.uniform(-width, width)
        offset = float(logs.loc[machine].mean()) - truth
        for count in range(1, len(titles) + 1):
            figures = {title: float(logs.loc[machine, title]) for title in titles[:count]}
            above = level(panel, figures).above(offset + threshold)
            if is_decided(min(above, 1 - above), error):
                break
        rows.append((family[machine], count / len(titles), (above > 0.5) == (truth > threshold)))
    frame = pd.DataFrame(rows, columns=["family", "runs", "agrees"]).groupby("family").mean()
    return float(frame["runs"].mean()), float(frame["agrees"].mean()), len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=float, nargs="+", default=[0.5, 0.2])
    parser.add_argument("--error", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| record | machines | benchmarks | thresholds within | runs needed | same decision |")
    print("|-|-|-|-|-|-|")
    for name, logs, families in records():
        for width in options.width:
            runs, agrees, machines = decided(logs, families, width, options.error, options.seed)
            within = math.expm1(width)
            print(f"| {name} | {machines} | {logs.shape[1]} | {within:.0%} | {runs:.0%} | {agrees:.1%} |", flush=True)


if __name__ == "__main__":
    main()
