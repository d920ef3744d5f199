"""How many group runs it takes to name faulty nodes and links, and whom the search names wrongly, in simulation.

``python -m benchmarks.isolation [TRIALS]`` (200). A group is as slow as its slowest part: faults lose 10%, a run varies by 2%. Runs are counted until
the last fault is named; ``done``: until all others are known to be sound too. The first table knows how fast a sound group of any size is; the second,
which is the search of `diagnose --isolate`, does not, and rates fall with the size of the group.
Beside it stand all pairs, and plain bisection of one fault without noise (2 log2 N).
"""

from __future__ import annotations

import math
import sys

import numpy as np

from planner.diagnosis import groups
from planner.diagnosis.isolation import isolate

SEED, NOISE, SLOW = 18, 0.02, 0.10
BY_SIZE = 0.1  # ln of what a group loses when it is e times as large


def trial(n: int, nodes: int, links: int, number: int, *, known: bool) -> tuple[bool, bool, int, int]:
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

    if known:
        result = isolate(members, probe, noise=NOISE, deficit=SLOW)
        named, named_links, runs = set(result.nodes), {frozenset(link) for link in result.links}, len(result.runs)
    else:

        def together(group: tuple[str, ...]) -> list[float]:
            return [probe(group) - BY_SIZE * math.log(len(group))]

        result = groups.isolate({}, members, lambda _: {}, together, deficit=SLOW, noise=NOISE)
        named = {f.of[0] for f in result.faults if f.kind == "node"}
        named_links, runs = {frozenset(f.of) for f in result.faults if f.kind == "link"}, result.runs
    return named == bad and named_links == pairs, bool(named - bad), result.named_after, runs


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"seed {SEED}, {trials} trials each; noise {NOISE:.0%}, faults {SLOW:.0%}")
    for known in (True, False):
        print(f"what a sound group reaches is {'' if known else 'not '}known")
        print(
            "   N nodes links |  all named  sound node named  runs median  95%  limit all named within  done, median | all pairs  bisection of one"
        )
        for n in (8, 64, 512):
            for nodes, links in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (4, 0), (2, 2)):
                if nodes + links <= n // 8:
                    results = [trial(n, nodes, links, number, known=known) for number in range(trials)]
                    print(line(n, nodes, links, results), flush=True)


def line(n: int, nodes: int, links: int, results: list[tuple[bool, bool, int, int]]) -> str:
    """The results of trials as a row of the table."""
    trials = len(results)
    runs = sorted(r[2] for r in results)
    limit = 2 * math.log2(n) * (nodes + links) + 4
    within = sum(r[0] and r[2] <= limit for r in results) / trials
    done = sorted(r[3] for r in results)[trials // 2]
    right, blamed = (sum(r[i] for r in results) / trials for i in (0, 1))
    ends = f"{runs[trials // 2]:11} {runs[int(0.95 * trials)]:4} {limit:6.0f} {within:16.1%} {done:13}"
    return f"{n:4} {nodes:5} {links:5} | {right:10.1%} {blamed:17.1%} {ends} | {n * (n - 1) // 2:9} {2 * math.log2(n):17.0f}"


if __name__ == "__main__":
    main()
