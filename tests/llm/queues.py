"""Queues whose goodput is known exactly, and the search of the LLM client in them."""

from __future__ import annotations

import heapq
import importlib.util
import math
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tests.llm.running import FILES


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"llm_serve_{name}", FILES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FILES))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FILES))
    return module


SERVICE, LOADS = _module("service"), _module("loads")


def waits(rng: random.Random, rate: float, servers: int, is_constant: bool, warmup: int) -> Iterator[float]:
    """Yield the waits of Poisson arrivals at ``servers`` places whose mean service is 1 s, by Kiefer and Wolfowitz."""
    free, now = [0.0] * servers, 0.0
    for count in range(1 << 40):
        now += rng.expovariate(rate)
        wait = max(0.0, free[0] - now)
        heapq.heapreplace(free, now + wait + (1.0 if is_constant else rng.expovariate(1.0)))
        if count >= warmup:
            yield wait


def missing(rate: float, servers: int, limit: float) -> float:
    """Return the share of waits above ``limit`` in M/M/c, by Erlang's C."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = rate * blocked / (k + rate * blocked)
    queued = blocked / (1 - rate / servers * (1 - blocked))
    return float(queued * math.exp(-(servers - rate) * limit))


def exact(servers: int, limit: float, share: float) -> float:
    """Return the rate at which exactly ``share`` of the waits in M/M/c keep ``limit``."""
    low, high = 1e-3, servers * 0.99999
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if missing(middle, servers, limit) > 1 - share else (middle, high)
    return low


def deterministic(limit: float, share: float) -> float:
    """Return the same of M/D/1, by Crommelin's (1932) distribution of its waits in closed form."""

    def above(rate: float) -> float:
        terms = int(limit) + 1
        kept = sum((rate * (k - limit)) ** k / math.factorial(k) * math.exp(-rate * (k - limit)) for k in range(terms))
        return 1 - (1 - rate) * kept

    low, high = 1e-3, 0.9999
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) > 1 - share else (middle, high)
    return low


def searched(seed: int, servers: int, limit: float, share: float, is_constant: bool, truth: float) -> tuple[Any, int]:
    """Return the end of one search that begins somewhere below or above the truth, and the requests that it took."""
    rng = random.Random(seed)
    taken = [0]

    def trial(rate: float, kept_error: float, missed_error: float) -> tuple[str, None]:
        source = waits(rng, rate, servers, is_constant, SERVICE.least(share) // 10)
        values: list[float] = []
        for count in SERVICE.looks(share):
            values += [next(source) for _ in range(count - len(values))]
            is_early = count < SERVICE.least(share)
            if word := SERVICE.verdict([(values, limit)], share, kept_error, missed_error, is_early):
                break
        taken[0] += len(values)
        return word, None

    return SERVICE.climb(trial, truth * rng.uniform(0.6, 1.1)), taken[0]
