"""Search the goodput of queues whose true goodput is known exactly, and count how often the search is wrong.

``python -m benchmarks.clients.goodput [--searches N] [--record]``: M/M/c by Erlang's C and M/D/1 by Crommelin's distribution, as
in tests/workloads/test_goodput.py, with N (200) searches each from random starts. ``--record`` writes
benchmarks/results/goodput.json. It takes 15 s of one free core.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

from tests.llm.queues import SERVICE, deterministic, exact, searched

RESULT = Path(__file__).parents[1] / "results" / "goodput.json"
QUEUES = ((4, 1.0, 0.99, False), (16, 0.3, 0.99, False), (4, 1.0, 0.9, False), (1, 3.0, 0.99, True))
COLUMNS = (
    *("queue", "share within the target", "true goodput, 1/s", "reported above it", "missed rate below it"),
    *("median of reported over true", "requests of a search, median"),
)


def row(servers: int, limit: float, share: float, is_constant: bool, searches: int) -> list[str]:
    """Return the row of one queue. ``limit``: the longest wait that keeps the target, in mean services."""
    truth = deterministic(limit, share) if is_constant else exact(servers, limit, share)
    ends = [searched(seed, servers, limit, share, is_constant, truth) for seed in range(1000, 1000 + searches)]
    kept = [end.kept / truth for end, _ in ends if end.kept]
    above = sum(ratio > 1 for ratio in kept)
    below = sum((end.missed or math.inf) < truth for end, _ in ends)
    return [
        *("M/D/1" if is_constant else f"M/M/{servers}", f"{share:.0%}", f"{truth:.2f}"),
        *(f"{count / searches:.1%} of {searches}" for count in (above, below)),
        *(f"{statistics.median(kept):.2f}", f"{statistics.median(taken for _, taken in ends):,.0f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    print(f"stated error of each end: {SERVICE.ERROR:.0%}", "  ".join(COLUMNS), sep="\n", flush=True)
    rows = []
    for queue in QUEUES:
        rows.append(row(*queue, chosen.searches))
        print("  ".join(rows[-1]), flush=True)
    if chosen.record:
        old = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**old, "columns": COLUMNS, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
