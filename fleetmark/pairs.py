"""Which hosts meet when: rounds of disjoint pairs, so that no host is in two pairs at once."""

from __future__ import annotations

import random
from collections.abc import Sequence

Round = tuple[tuple[str, str], ...]


def rounds(hosts: Sequence[str]) -> list[Round]:
    """Every pair of ``hosts`` exactly once by the circle method: N - 1 rounds for an even number, N for an odd one.

    Each round's pairs share no host (Kirkman's round-robin tournament).
    """
    if len(hosts) < 2:
        return []
    ring: list[str | None] = [*hosts] if len(hosts) % 2 == 0 else [*hosts, None]
    made = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]), strict=True)
        made.append(tuple((a, b) for a, b in met if a is not None and b is not None))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return made


def sample_rounds(every: Sequence[Round], count: int, seed: int) -> list[Round]:
    """``count`` of the rounds, chosen by ``seed``: each host meets about that many others."""
    if count >= len(every):
        return list(every)
    return random.Random(f"{seed}/rounds").sample(list(every), count)
