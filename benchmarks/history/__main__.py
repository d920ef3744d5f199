"""Measure the detection of change points over a host's campaigns: hits and false alarms, beside ruptures if installed.

``python -m benchmarks.history [TRIALS]`` (400). A campaign's figure varies by 1%; half of the series drop for good at a place
of chance, at least two campaigns from either end. ruptures (PELT, cost l2) gets the usual penalty 2 sigma^2 ln n with
the true sigma, and the same least effect, 3%; 3 ln n asks for more.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import numpy as np

from fleetmark.planner.diagnosis import history

SEED, NOISE, EFFECT = 18, 0.01, 0.03
Finder = Callable[[np.ndarray], list[int]]


def ours(values: np.ndarray) -> list[int]:
    return [c.position for c in history.changes(values, np.full(len(values), np.nan), EFFECT)]


def pelt(factor: float) -> Finder | None:
    try:
        import ruptures
    except ImportError:
        return None

    def find(values: np.ndarray) -> list[int]:
        search = ruptures.Pelt(model="l2", min_size=history.LEAST, jump=1).fit(values[:, None])
        ends = [0, *search.predict(pen=factor * NOISE**2 * np.log(len(values)))]
        means = [values[a:b].mean() for a, b in itertools.pairwise(ends)]
        steps = zip(ends[1:], means, means[1:], strict=False)
        return [step for step, before, after in steps if abs(after - before) >= -np.log1p(-EFFECT)]

    return find


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    finders = {"binary segmentation, t": ours, "ruptures PELT 2": pelt(2), "ruptures PELT 3": pelt(3)}
    print(f"seed {SEED}, {trials} series each, noise {NOISE:.0%}; at least {EFFECT:.0%} counts")
    print("campaigns drop | method                  changed and near (+-1)  of sound: invented  outlier: invented")
    for n in (8, 12, 24, 52):
        for drop in (0.05, 0.1):
            for name, find in finders.items():
                if find is None:
                    continue
                rng = np.random.default_rng([SEED, n, int(100 * drop)])
                hits = invented = fooled = 0
                for _ in range(trials):
                    sound = rng.normal(0, NOISE, n)
                    position = int(rng.integers(2, n - 1))
                    changed = sound + np.where(np.arange(n) >= position, np.log1p(-drop), 0.0)
                    odd = sound + np.where(np.arange(n) == position, np.log1p(-2 * drop), 0.0)
                    named = find(changed)
                    hits += len(named) == 1 and abs(named[0] - position) <= 1
                    invented += bool(find(sound))
                    fooled += bool(find(odd))
                shares = f"{hits / trials:18.1%} {invented / trials:19.1%} {fooled / trials:18.1%}"
                print(f"{n:9} {drop:4.0%} | {name:23} {shares}", flush=True)


if __name__ == "__main__":
    main()
