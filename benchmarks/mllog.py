"""Measure the speed and memory of reading a large LoadGen detail log, beside ``json.loads`` of its lines.

``python -m benchmarks.mllog [--mb 1000] [--runs 3]`` writes the log to a temporary folder: the settings and results of
a run as LoadGen prints them, and between them what makes such logs long: loaded sample sets, generated queries and the
logger's counters, round after round. Each reading is a process of its own, ours and theirs in turn, after the file is
in the page cache. Medians; MB of 10^6 bytes, memory as the kernel's peak of the process.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fleetmark import parsers
from fleetmark.base.errors import ParseError

HEAD = {
    "loadgen_version": "6.0.17 @ 0123456789",
    "sut_name": "BenchSUT",
    "qsl_reported_total_count": 50000,
    "requested_scenario": "Server",
    "requested_test_mode": "PerformanceOnly",
    "effective_scenario": "Server",
    "effective_min_duration_ms": 600000,
    "effective_min_query_count": 100,
}
TAIL = {
    "result_validity": "VALID",
    "result_min_duration_met": True,
    "result_min_queries_met": True,
    "early_stopping_met": True,
    "early_stopping_result": " * Run successful.",
    "result_query_count": 1267425,
    "result_scheduled_samples_per_sec": 2112.4,
    "result_completed_samples_per_sec": 2111.9,
    "result_99.00_percentile_latency_ns": 13820114,
    "num_errors": 0,
}
LOGGER = (
    "swap_request_slots_retry_count",
    "swap_request_slots_retry_retry_count",
    "swap_request_slots_retry_reencounter_count",
    "start_reading_entries_retry_count",
    "tls_total_log_cas_fail_count",
    "tls_total_swap_buffers_slot_retry_count",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=1000.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--read", nargs=2, metavar=("HOW", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(_read(options.read[0], Path(options.read[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "mlperf_log_detail.txt"
        lines = _write(log, int(options.mb * 1e6))
        size = log.stat().st_size / 1e6
        print(f"{size:.1f} MB, {lines} lines, {size * 1e6 / lines:.0f} bytes a line")
        taken: dict[str, list[dict[str, float]]] = {reader: [] for reader in READINGS}
        _warm(log)
        for _ in range(options.runs):
            for reader, results in taken.items():
                results.append(_measure(reader, log))
    print(f"{'reading':<12} {'seconds':>8} {'MB/s':>8} {'peak MB':>8}   each run")
    for reader, results in taken.items():
        seconds, peak = (statistics.median(r[key] for r in results) for key in ("seconds", "peak_mb"))
        each = " ".join(f"{r['seconds']:.2f}" for r in results)
        print(f"{reader:<12} {seconds:8.2f} {size / seconds:8.1f} {peak:8.1f}   {each}")
    ours, theirs = (statistics.median(r["seconds"] for r in taken[reader]) for reader in ("fleetmark", "json.loads"))
    print(f"fleetmark reads at {theirs / ours:.2f} times the speed of json.loads")


def _measure(reader: str, log: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.mllog", "--read", reader, str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _read(reader: str, log: Path) -> dict[str, float]:
    began = time.perf_counter()
    READINGS[reader](log)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def _fleetmark(log: Path) -> None:
    with log.open("rb") as file:
        try:
            parsed = parsers.parse_file("mlperf_inference", file)
        except ParseError as error:
            sys.exit(str(error))
    if {m.metric: m.value for m in parsed.measurements}["samples_per_second"] != 2111.9:
        sys.exit("the figures read are not those written")


def _json_loads(log: Path) -> None:
    with log.open("rb") as file:
        for line in file:
            json.loads(line[len(":::MLLOG ") :])


READINGS: dict[str, Callable[[Path], None]] = {"fleetmark": _fleetmark, "json.loads": _json_loads}


def _warm(log: Path) -> None:
    with log.open("rb") as file:
        while file.read(1 << 20):
            pass


def _write(log: Path, size: int) -> int:
    """Write the log; the number of its lines."""
    rounds = [_round(random.Random(seed)) for seed in range(50)]
    head, tail = ["".join(_line(k, v) for k, v in part.items()) for part in (HEAD, TAIL)]
    written, lines, n = 0, len(HEAD) + len(TAIL), 0
    with log.open("w") as file:
        file.write(head)
        while written < size:
            block, count = rounds[n % len(rounds)]
            written += file.write(block)
            lines, n = lines + count, n + 1
        file.write(tail)
    return lines


def _round(pick: random.Random) -> tuple[str, int]:
    """Return the output of one round of loading, issuing and logging, and its number of lines."""
    keys = list(_round_values(pick))
    return "".join(_line(key, value, pick.random() * 1e6) for key, value in keys), len(keys)


def _round_values(pick: random.Random) -> Iterator[tuple[str, object]]:
    yield "loaded_qsl_set", [pick.randrange(50000) for _ in range(pick.choice((8, 64, 256)))]
    yield "generated_query_count", pick.randrange(10**6)
    yield "generated_samples_per_query", 1
    yield "generated_query_duration", pick.randrange(10**12)
    yield "generic_message", "Starting performance mode"
    for name in LOGGER:
        yield f"logger_{name}", pick.randrange(3)
    yield "power_begin", "11-21-2025 09:00:12.481"
    yield "power_end", "11-21-2025 09:10:13.007"


def _line(key: str, value: object, time_ms: float = 0.1) -> str:
    return (
        f':::MLLOG {{"key": "{key}", "value": {json.dumps(value, separators=(",", ":"))}, "time_ms": {time_ms:.6f}, '
        '"namespace": "mlperf::logging", "event_type": "POINT_IN_TIME", "metadata": {"is_error": false, '
        '"is_warning": false, "file": "loadgen.cc", "line_no": 427, "pid": 4711, "tid": 4712}}\n'
    )


if __name__ == "__main__":
    main()
