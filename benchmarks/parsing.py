"""Measure the speed of the parsers, beside ``json.loads`` over the same bytes if the format is JSON.

``python -m benchmarks.parsing [--mb 20]`` builds large files out of real output (run here, or from the corpus): fio with many jobs and
with json+ bins, iperf3 with many intervals, STREAM, lmbench and iperf3 as text. Best of five; MB/s of 10^6 bytes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from fleetmark import parsers

FIXTURES = Path(__file__).parents[1] / "tests" / "parsers" / "fixtures"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=20.0)
    size = int(parser.parse_args().mb * 1e6)
    print(f"{'what':<34} {'MB':>6} {'parser MB/s':>12} {'json.loads MB/s':>16} {'share':>6}")
    for name, tool, raw in _inputs(size):
        ours = _rate(lambda r=raw, t=tool: parsers.parse(t, r), len(raw))  # type: ignore[misc]
        try:
            json.loads(raw)
        except ValueError:
            print(f"{name:<34} {len(raw) / 1e6:6.1f} {ours:12.1f} {'(not JSON)':>16}")
            continue
        theirs = _rate(lambda r=raw: json.loads(r), len(raw))  # type: ignore[misc]
        print(f"{name:<34} {len(raw) / 1e6:6.1f} {ours:12.1f} {theirs:16.1f} {ours / theirs:6.0%}", flush=True)


def _rate(work: Callable[[], object], size: int, runs: int = 5) -> float:
    best = float("inf")
    for _ in range(runs):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return size / 1e6 / best


def _inputs(size: int) -> list[tuple[str, str, bytes]]:
    inputs = []
    for name in ("2.1.11_randrw", "3.42_randrw"):
        doc = json.loads((FIXTURES / "fio" / f"{name}.json").read_text())
        count = max(1, size // len(json.dumps(doc["jobs"][0], indent=2)))
        doc["jobs"] = [{**doc["jobs"][0], "jobname": f"job{n}"} for n in range(count)]
        inputs.append((f"fio {name}, {count} jobs", "fio", json.dumps(doc, indent=2).encode()))
    doc = json.loads((FIXTURES / "iperf3" / "3.12_reverse.json").read_text())
    count = max(1, size // len(json.dumps(doc["intervals"][0], indent=2)))
    doc["intervals"] = [doc["intervals"][0]] * count
    inputs.append((f"iperf3 3.12, {count} intervals", "iperf3", json.dumps(doc, indent=2).encode()))
    for tool, kind in (("stream", "txt"), ("lmbench", "txt")):
        text = max((FIXTURES / tool).glob(f"*.{kind}"), key=lambda p: p.stat().st_size)
        inputs.append((f"{tool} text, repeated", tool, text.read_bytes() * max(1, size // 20 // text.stat().st_size)))
    return inputs


if __name__ == "__main__":
    main()
