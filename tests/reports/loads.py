"""Loads of a language model server: work, speed and wait at several numbers of streams."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tests.records import Bench

LOADS = {1: (100.0, 0.05), 16: (60.0, 0.2), 64: (25.0, 0.6), 128: (24.0, 3.0)}  # tokens/s of a user, TTFT
PRICE = {"price": "4", "currency": "USD", "term": "hour", "provisioned_w": "2000"}


def measured(
    hosts: list[str],
    factor: float,
    subject: str = "host",
    spread: float = 0.01,
    loads: Mapping[int, tuple[float, float]] | None = None,
) -> dict[tuple[str, Bench], list[float]]:
    rows: dict[tuple[str, Bench], list[float]] = {}
    for n, host in enumerate(hosts):
        for streams, (speed, ttft) in (loads or LOADS).items():
            work = (factor or 1.0) * 0.9 * streams * speed * math.exp(spread * n)
            work *= 0.4 if streams == 128 else 1.0  # beyond the machine's capacity
            figures = {
                "output_tokens_per_second": (work, "1/s", "higher"),
                "interactivity": (speed, "1/s", "higher"),
                "ttft_p50": (ttft, "s", "lower"),
                "accelerators": (2.0, "1", "none"),
            }
            for metric, (value, unit, better) in figures.items():
                case = f"p512-o128-c{streams}"
                labels = (("model", "m"),)
                bench = Bench(
                    "llm_serve", case, metric, unit, better, "gpu-server", labels, kind="capacity", subject=subject
                )
                rows[host, bench] = [value, value]
    return rows
