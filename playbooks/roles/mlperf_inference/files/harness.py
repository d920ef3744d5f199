"""Run one scenario of MLPerf Inference on this host: the real LoadGen with a network that has synthetic weights.

Settings come from LoadGen's own mlperf.conf for the current rules. A run shorter than the rules require is marked as
short. Leaves LoadGen's logs and harness.json in the current folder.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import platform
import re
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LOGS = ("mlperf_log_summary.txt", "mlperf_log_detail.txt")
LARGE = 256 << 10  # detail logs with more bytes are compressed
WARM_S = 3.0  # time for the warm-up, and for measuring the pace; shorter in runs below 12 s
SPARE = 1.2  # Offline: factor of samples beyond the pace, so that a faster phase does not end the run early
LONGER, MORE = 3, 1.5  # maximum number of runs if runs end early, and the safety factor of each repetition
FEWEST_SERVED = 662  # minimum number of requests; LoadGen's early stopping then allows one late request
PROBES, ATTEMPTS, NEAR = 5, 6, 1.04  # Server: short runs, full runs, and the ratio of rates that are close enough
IDLE_S = 120.0  # time without a query or an answer after which LoadGen has failed
LONGEST_GAP = 20  # Server: how many mean times between requests this time is longer; the times are exponential
# Server: a search ends after this many full runs at Offline's rate, and its short runs after half of that time.
SEARCH = 8


class Refusal(Exception):
    """Report why a run is impossible, and what to do."""


class Harness:
    """Run a scenario with one network."""

    def __init__(self, options: argparse.Namespace) -> None:
        import networks
        import placement
        from engine import Engine

        self.options = options
        self.ends = time.monotonic() + options.deadline
        self.warm_s = min(WARM_S, options.duration / 4)
        self.too_short = False  # whether LoadGen had too few samples for the duration of the last run
        self.network = networks.NETWORKS[options.model]
        self.limit_s = options.latency_limit or self.network.limit_s
        path, weights = networks.write(self.network, Path.cwd(), options.seed)
        self.count = self.network.samples
        if self.network.is_image:  # images must not stay in a cache
            self.count = max(self.count, -(-2 * options.cache_bytes // self.network.sample_bytes))
        instances = 1 if options.scenario == "SingleStream" else options.instances
        cpus, placed = placement.place(instances, options.threads)
        self.report: dict[str, Any] = {
            "network": options.model,
            "weights": weights,
            "seed": options.seed,
            "scenario": options.scenario,
            "duration_s": options.duration,
            "instances": instances,
            "threads": options.threads,
            "placement": placed,
            "batch": options.batch,
            "provider": options.provider,
            "samples": self.count,
            "python": platform.python_version(),
            "versions": versions("mlcommons-loadgen", "onnxruntime", "onnxruntime-gpu", "onnx", "numpy"),
        }
        for key, value in self.report.items():
            say(f"{key}: {value}")
        samples = self.network.make(self.count, options.seed)
        gather = options.scenario == "Server"
        self.engine = Engine(
            path, samples, cpus, options.threads, options.batch, gather, options.provider, options.devices
        )

    def run(self) -> None:
        """Run the scenario from the warm-up to its logs."""
        self._afford(0, "its duration")
        begun = time.monotonic()
        while time.monotonic() - begun < self.warm_s:
            self.engine.seconds(self.engine.instances * self.options.batch)
        getattr(self, "_" + self.options.scenario.lower())()
        self.report["short"] = self.report["loadgen_min_duration_s"] < self.rules("SingleStream").min_duration_ms / 1000
        Path("harness.json").write_text(json.dumps(self.report, indent=1) + "\n")

    # -- the scenarios

    def _singlestream(self) -> None:
        settings = self.settings()
        pace = self._pace(1)
        settings.single_stream_expected_latency_ns = int(pace * 1e9 / 2)  # a hint: LoadGen generates queries in advance
        self._afford(settings.min_query_count * pace, f"at least {settings.min_query_count} requests, one by one")
        self._finish_in_full(settings, "single_stream_expected_latency_ns", faster=False)

    def _multistream(self) -> None:
        settings = self.settings()
        at_once = settings.multi_stream_samples_per_query
        pace = self._pace(at_once)
        settings.multi_stream_expected_latency_ns = int(pace * 1e9 / 2)
        needed = f"at least {settings.min_query_count} queries of {at_once} samples, one by one"
        self._afford(settings.min_query_count * pace, needed)
        self._finish_in_full(settings, "multi_stream_expected_latency_ns", faster=False)

    def _offline(self) -> None:
        settings = self.settings()
        rate = self._rate()
        settings.offline_expected_qps = rate * SPARE
        self._afford(settings.min_query_count / rate, f"at least {settings.min_query_count} samples")
        self._finish_in_full(settings, "offline_expected_qps", faster=True)

    def _finish_in_full(self, settings: Any, expected: str, *, faster: bool) -> None:
        """Run, and repeat with more samples if LoadGen had too few samples for the duration.

        This happens if other processes slowed the host while the pace was measured. ``expected``: the setting that
        determines the number of samples; ``faster``: whether a higher value means more samples.
        """
        tried = self.report["attempts"] = []
        for _ in range(LONGER):
            begun = time.monotonic()
            valid = self._finish(settings)
            tried.append({expected: getattr(settings, expected), "valid": valid})
            took = time.monotonic() - begun
            missing = max(1.0, self.options.duration / took)
            if valid or not self.too_short or self.ends - time.monotonic() < 2 * MORE * missing * took:
                break
            before, times = getattr(settings, expected), MORE * missing
            setattr(settings, expected, before * times if faster else max(1, int(before / times)))

    def _server(self) -> None:
        settings = self.settings()
        settings.server_target_latency_ns = int(self.limit_s * 1e9)
        settings.min_query_count = max(settings.min_query_count, FEWEST_SERVED)
        self.report["latency_limit_s"] = self.limit_s
        if self.options.server_qps:
            settings.server_target_qps = self.options.server_qps
            self._afford_requests(settings)
            self._finish(settings)
            return
        alone, rate = self._pace(1), self._rate()
        if alone > self.limit_s:  # the short run below is the official result
            say(f"a request alone takes {alone:.4g} s: no rate keeps to {self.limit_s:g} s")
            settings.server_target_qps, settings.min_query_count = rate / 4, 1
            self._finish(settings)
            return
        begun, length = time.monotonic(), max(self.options.duration, settings.min_query_count / rate)
        settings.server_target_qps = self._probe(rate, begun + SEARCH * length / 2)
        self._narrow(settings, begun + SEARCH * length)

    def _probe(self, rate: float, until: float) -> float:
        """Return the highest rate that met the limit in short runs, by bisection up to Offline's rate.

        No run starts after ``until`` except the first.
        """
        low, high = 0.0, rate
        probes = self.report["probes"] = []
        while not probes or (len(probes) < PROBES and time.monotonic() < until):
            settings = self.settings()
            settings.server_target_latency_ns = int(self.limit_s * 1e9)
            settings.server_target_qps = (low + high) / 2
            settings.min_duration_ms = int(max(1000, settings.min_duration_ms / 6))
            self._afford_requests(settings)
            text = self._start(settings, Path("probe"))
            shutil.rmtree("probe")
            p99 = figure(r"99\.00 percentile latency \(ns\) *: *([0-9]+)", text) / 1e9
            say(f"probe: {settings.server_target_qps:.6g}/s, 99th percentile {p99:.4g} s")
            probes.append({"qps": settings.server_target_qps, "p99_s": p99})
            if p99 <= self.limit_s:
                low = settings.server_target_qps
            else:
                high = settings.server_target_qps
        return low or high

    def _narrow(self, settings: Any, until: float) -> None:
        """Run at full length, starting at the rate that short runs suggest.

        Lower the rate until a run is valid, then bisect between this rate and the last invalid one, as long as runs
        can end by ``until``. Keep the logs of the best valid run, or of the last run if none is valid.
        """
        self._afford_requests(settings)
        low, high, back = 0.0, 0.0, 0.1
        tried = self.report["attempts"] = []
        for _ in range(ATTEMPTS):
            begun = time.monotonic()
            qps = settings.server_target_qps
            valid = self._finish(settings, keep=not low)
            tried.append({"qps": qps, "valid": valid})
            if valid:
                low = qps
            else:
                high = qps
            took = time.monotonic() - begun
            ends = min(until, self.ends) if low else self.ends
            if not high or (low and high / low < NEAR) or ends - time.monotonic() < 1.5 * took:
                break
            settings.server_target_qps = (low + high) / 2 if low else high * (1 - back)
            back = min(2 * back, 0.5)

    # -- rough speed

    def _pace(self, count: int) -> float:
        """Return the median duration of a few queries of ``count`` samples in seconds."""
        taken: list[float] = []
        begun = time.monotonic()
        while len(taken) < 3 or (time.monotonic() - begun < self.warm_s and len(taken) < 1000):
            taken.append(self.engine.seconds(count))
        pace = statistics.median(taken)
        say(f"pace: {count} in {pace:.4g} s")
        return pace

    def _rate(self) -> float:
        """Return the samples per second with all instances working."""
        some = 2 * self.engine.instances * self.options.batch
        count = max(some, int(some * self.warm_s / self.engine.seconds(some)))
        rate: float = count / self.engine.seconds(count)
        say(f"rate: {rate:.6g} samples/s")
        return rate

    def _afford_requests(self, settings: Any) -> None:
        qps = settings.server_target_qps
        self._afford(settings.min_query_count / qps, f"at least {settings.min_query_count} requests at {qps:.3g}/s")

    def _afford(self, seconds: float, need: str) -> None:
        """Refuse a run that would exceed the timeout."""
        left = self.ends - time.monotonic()
        needed = max(seconds, self.options.duration)
        if needed > left:
            raise Refusal(
                f"{self.options.scenario} needs {need}, which takes {needed:.0f} s here, and only {left:.0f} s are "
                f"left: set mlperf_inference.timeout higher, or leave out {self.options.scenario}"
            )

    # -- LoadGen

    def rules(self, scenario: str) -> Any:
        """Return LoadGen's own configuration for this network."""
        import mlperf_loadgen as loadgen

        settings = loadgen.TestSettings()
        settings.FromConfig("", self.network.rules, scenario, 0)
        settings.scenario = getattr(loadgen.TestScenario, scenario)
        settings.mode = loadgen.TestMode.PerformanceOnly
        return settings

    def settings(self) -> Any:
        """Return the settings of the rules, limited by the duration."""
        settings = self.rules(self.options.scenario)
        settings.performance_sample_count_override = self.count
        if 1000 * self.options.duration < settings.min_duration_ms and self.options.scenario == "Offline":
            settings.min_query_count = 1  # let the duration determine the number of samples
        settings.min_duration_ms = int(1000 * self.options.duration)
        self.report["loadgen_min_duration_s"] = settings.min_duration_ms / 1000
        return settings

    def _finish(self, settings: Any, keep: bool = True) -> bool:
        """Run, and keep the logs if the run is valid or ``keep`` is set. Return whether the run is valid."""
        text = self._start(settings, Path("run"))
        valid = re.search(r"Result is *: *VALID", text) is not None
        self.too_short = re.search(r"Min duration satisfied *: *NO", text) is not None
        rate = f" at {settings.server_target_qps:.6g}/s" if self.options.scenario == "Server" else ""
        say(f"LoadGen says {'VALID' if valid else 'INVALID'}{rate}")
        if valid or keep:
            for name in LOGS:
                os.replace(Path("run") / name, name)
            packed = Path(LOGS[1] + ".gz")
            packed.unlink(missing_ok=True)
            if Path(LOGS[1]).stat().st_size > LARGE:
                with open(LOGS[1], "rb") as source, gzip.open(packed, "wb") as out:
                    shutil.copyfileobj(source, out)
                Path(LOGS[1]).unlink()
        shutil.rmtree("run")
        return valid

    def _start(self, settings: Any, folder: Path) -> str:
        """Run LoadGen once with its logs in ``folder``, and return the summary."""
        import mlperf_loadgen as loadgen

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        logs = loadgen.LogSettings()
        logs.log_output.outdir = str(folder)
        logs.enable_trace = False
        answer, complete = loadgen.QuerySampleResponse, loadgen.QuerySamplesComplete

        def done(ids: Sequence[int], answers: Any) -> None:
            size = answers.nbytes // len(ids)
            complete([answer(one, answers.ctypes.data + i * size, size) for i, one in enumerate(ids)])

        self.engine.done = done
        nothing = lambda indices: None  # noqa: E731  # all samples are in memory already, as the rules require
        library = loadgen.ConstructQSL(self.count, self.count, nothing, nothing)
        tested = loadgen.ConstructFastSUT(self.engine.issue, self.engine.flush)
        gap_s = 1 / settings.server_target_qps if self.options.scenario == "Server" else 0.0
        with self.engine.watched(IDLE_S + LONGEST_GAP * gap_s):
            loadgen.StartTestWithLogSettings(tested, library, settings, logs)
        loadgen.DestroyFastSUT(tested)
        loadgen.DestroyQSL(library)
        return (folder / LOGS[0]).read_text()


def figure(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise Refusal(f"LoadGen's summary has no {pattern}")
    return float(match[1])


def versions(*names: str) -> dict[str, str]:
    result = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            result[name] = version(name)
    return result


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def options_of(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run one scenario of MLPerf Inference.")
    parser.add_argument("model")
    parser.add_argument("scenario", choices=["SingleStream", "MultiStream", "Server", "Offline"])
    parser.add_argument("--duration", type=float, required=True, help="LoadGen's minimum, seconds")
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each instance")
    parser.add_argument("--batch", type=int, default=1, help="maximum samples in a pass")
    parser.add_argument("--server-qps", type=float, default=0, help="requests per second; 0: found by search")
    parser.add_argument("--latency-limit", type=float, default=0, help="seconds; 0: the rules'")
    parser.add_argument("--cache-bytes", type=int, default=0, help="cache size; the samples must exceed twice this")
    parser.add_argument("--provider", default="CPUExecutionProvider", help="of onnxruntime")
    parser.add_argument("--devices", type=int, default=0, help="number of devices of the provider")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds until this process is ended")
    return parser.parse_args(words)


def main() -> int:
    for old in (*LOGS, LOGS[1] + ".gz", "harness.json"):
        Path(old).unlink(missing_ok=True)
    try:
        Harness(options_of(sys.argv[1:])).run()
    except (Refusal, ImportError, OSError, MemoryError) as error:
        sys.stderr.write(f"{error or type(error).__name__}\n")
        return 1
    sys.stdout.flush()
    os._exit(0)  # the threads of instances still wait for queries


if __name__ == "__main__":
    sys.exit(main())
