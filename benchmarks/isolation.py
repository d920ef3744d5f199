"""Count the group runs that name faulty nodes, links and borders, and the wrong names, in simulation.

``python -m benchmarks.isolation [TRIALS] [N ...]`` (100 64 512). The search is that of ``diagnose --isolate``: it does not know how fast a
healthy group is, and rates fall with the size of the group. A group is as slow as its slowest part: faults lose 10%, a run
varies by 2%. Group runs are counted until the last fault is named, the runs of two hosts that confirm each fault beside
them, and all runs until everybody else is known to be sound too. Beside it stand all pairs, and plain bisection of one
fault without noise (2 log2 N). The result is written to benchmarks/results/isolation.json.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass

import numpy as np

from benchmarks.measuring import RESULTS, circumstances
from fleetmark.planner.diagnosis.isolation import groups

SEED, NOISE, SLOW = 18, 0.02, 0.10
BY_SIZE = 0.1  # ln of what a group loses when it is e times as large
MOST = 4
RACKS = 8  # where a border between two of them is slow
MIXES = [
    (faults - links, links, 0) for faults in range(MOST + 1) for links in range(faults + 1)
]  # nodes, links, borders
MIXES += [(0, 0, 1), (1, 0, 1)]


@dataclass(frozen=True, slots=True)
class Trial:
    """``right``: all faults were named and nothing else; ``blamed``: a healthy node was named. Runs of ``groups`` until
    the last was named, runs of two hosts that confirmed (``pairs``), and runs in ``all``."""

    right: bool
    blamed: bool
    groups: int
    pairs: int
    all: int


def trial(n: int, nodes: int, links: int, number: int, borders: int = 0) -> Trial:
    rng = np.random.default_rng([SEED, n, nodes, links, number])
    members = [f"n{i:03d}" for i in range(n)]
    chosen = [str(c) for c in rng.choice(members, nodes + 2 * links, replace=False)]
    bad, pairs = set(chosen[:nodes]), {frozenset(chosen[nodes + 2 * i : nodes + 2 * i + 2]) for i in range(links)}
    labels = {member: f"r{place % RACKS}" for place, member in enumerate(members)} if borders else {}
    ends = {f"r{rack}" for rack in rng.choice(RACKS, 2 * borders, replace=False)}

    def together(group: tuple[str, ...]) -> list[float]:
        here = set(group)
        slow = bool(here & bad) or any(pair <= here for pair in pairs)
        slow |= borders > 0 and ends <= {labels[member] for member in group}
        rate = (math.log1p(-SLOW) if slow else 0.0) + float(rng.normal(0, NOISE))
        return [rate - BY_SIZE * math.log(len(group))]

    result = groups.isolate({}, members, lambda _: {}, together, deficit=SLOW, noise=NOISE, labels={"rack": labels})
    named = {f.members[0] for f in result.faults if f.kind == "node"}
    named_links = {frozenset(f.members) for f in result.faults if f.kind == "link"}
    named_borders = [set(f.members) for f in result.faults if f.kind == "border"]
    right = named == bad and named_links == pairs and named_borders == [ends] * borders
    return Trial(right, bool(named - bad), result.named_after, result.confirming, result.runs)


COLUMNS = """
N; nodes; links; borders; trials; all named; healthy node reported; group runs, median; 95%; limit; all named within
pairs, median; in all, median; all pairs
"""


def main() -> None:
    trials, *sizes = [int(a) for a in sys.argv[1:]] or [100]
    columns = COLUMNS.strip().replace("\n", "; ").split("; ")
    print(" | ".join(columns))
    rows = []
    for n in sizes or (64, 512):
        for nodes, links, borders in MIXES:
            if nodes + links + borders <= n // 8:
                results = [trial(n, nodes, links, number, borders) for number in range(trials)]
                rows.append(row(n, nodes, links, borders, results))
                print(" | ".join(rows[-1]), flush=True)
    document = {
        "section": "How accurate it is",
        "title": "Isolating hosts and links",
        "description": f"Simulated search of `--isolate`: faults lose {SLOW:.0%}, runs vary by {NOISE:.0%}. "
        "The limit is 2 log2 N x faults + 4 group runs.",
        "command": f"python -m benchmarks.isolation {' '.join(sys.argv[1:]) or trials}",
        **circumstances(),
        "machine": f"simulation, seed {SEED}",
        "load": None,
        "columns": columns,
        "rows": rows,
    }
    (RESULTS / "isolation.json").write_text(json.dumps(document, indent=1) + "\n")


def row(n: int, nodes: int, links: int, borders: int, results: list[Trial]) -> list[str]:
    """Return the results of trials as a row of the table."""
    trials = len(results)
    runs = sorted(r.groups for r in results)
    limit = 2 * math.log2(n) * (nodes + links + borders) + 4
    within = sum(r.right and r.groups <= limit for r in results) / trials
    pairs, every = (sorted(getattr(r, name) for r in results)[trials // 2] for name in ("pairs", "all"))
    right, blamed = (sum(getattr(r, name) for r in results) / trials for name in ("right", "blamed"))
    counts = (n, nodes, links, borders, trials)
    shares = (f"{right:.1%}", f"{blamed:.1%}")
    spread = (f"{runs[trials // 2]}", f"{runs[int(0.95 * trials)]}", f"{limit:.0f}", f"{within:.1%}")
    return [*map(str, counts), *shares, *spread, f"{pairs}", f"{every}", f"{n * (n - 1) // 2}"]


if __name__ == "__main__":
    main()
