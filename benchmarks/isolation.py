"""How many group runs it takes to name faulty nodes and links, and whom the search names wrongly, in simulation.

``python -m benchmarks.isolation [TRIALS]`` (200). A group is as slow as its slowest part: faults lose 10%, a run varies by 2%. Runs are counted until
the last fault is named; ``done``: until all others are known to be sound too.
Beside it stand all pairs, and plain bisection of one fault without noise (2 log2 N).
"""

from __future__ import annotations

import math
import sys

import numpy as np

from planner.diagnosis.isolation import isolate

SEED, NOISE, SLOW = 18, 0.02, 0.10


def trial(n: int, nodes: int, links: int, number: int) -> tuple[bool, bool, int, int]:
    """Whether all faults were named and nothing else; whether a sound node was named; how many runs named
    them, and how many it took in all."""
    rng = np.random.default_rng([SEED, n, nodes, links, number])
    members = [f"n{i:03d}" for i in range(n)]
    chosen = [str(c) for c in rng.choice(members, nodes + 2 * links, replace=False)]
    bad, pairs = set(chosen[:nodes]), {frozenset(chosen[nodes + 2 * i : nodes + 2 * i + 2]) for i in range(links)}

    def probe(group: tuple[str, ...]) -> float:
        here = set(group)
        slow = bool(here & bad) or any(pair <= here for pair in pairs)
        return (math.log1p(-SLOW) if slow else 0.0) + float(rng.normal(0, NOISE))

    result = isolate(members, probe, noise=NOISE, deficit=SLOW)
    right = set(result.nodes) == bad and {frozenset(link) for link in result.links} == pairs
    return right, bool(set(result.nodes) - bad), result.named_after, len(result.runs)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"seed {SEED}, {trials} trials each; noise {NOISE:.0%}, faults {SLOW:.0%}")
    print(
        "   N nodes links |  all named  sound node named  runs median  95%  limit all named within  done, median | all pairs  bisection of one"
    )
    for n in (64, 512):
        for nodes, links in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (4, 0), (2, 2)):
            results = [trial(n, nodes, links, number) for number in range(trials)]
            runs = sorted(r[2] for r in results)
            limit = 2 * math.log2(n) * (nodes + links) + 4
            within = sum(r[0] and r[2] <= limit for r in results) / trials
            done = sorted(r[3] for r in results)[trials // 2]
            right, blamed = (sum(r[i] for r in results) / trials for i in (0, 1))
            ends = f"{runs[trials // 2]:11} {runs[int(0.95 * trials)]:4} {limit:6.0f} {within:16.1%} {done:13}"
            others = f"{n * (n - 1) // 2:9} {2 * math.log2(n):17.0f}"
            print(f"{n:4} {nodes:5} {links:5} | {right:10.1%} {blamed:17.1%} {ends} | {others}", flush=True)


if __name__ == "__main__":
    main()
