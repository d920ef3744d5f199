"""Measure the cost of telemetry: CPU time per sample as a share of one core, beside merely reading the same files.

Run as ``python -m benchmarks.telemetry [--seconds 5]``, on a quiet machine for the smallest figures. CPU time is
what is counted, so other load matters less than it would to wall time.

files      what one sample reads here; a server with sensors has up to about 40
bare       pread of those files and nothing else: the cost of the kernel
sample     Sampler.sample(): reading, parsing and keeping
beside     a whole step of --seconds with one sample a second, everything counted from before to after it
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

AGENT = Path(__file__).parents[1] / "playbooks" / "agent"


def load() -> ModuleType:
    """Return the sampler as the host imports it: from the folder of the agent, not from a package."""
    sys.path.insert(0, str(AGENT))
    spec = importlib.util.spec_from_file_location("telemetry", AGENT / "telemetry.py")
    if spec is None or spec.loader is None:
        sys.exit(f"{AGENT / 'telemetry.py'} cannot be read")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_seconds(call: Callable[[], object], times: int) -> float:
    """CPU seconds of this thread, user and kernel, for one ``call``; the least of five rounds of ``times``."""
    least = float("inf")
    for _ in range(5):
        before = time.thread_time()
        for _ in range(times):
            call()
        least = min(least, (time.thread_time() - before) / times)
    return least


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=5.0)
    seconds = options.parse_args().seconds
    telemetry = load()
    sampler = telemetry.Sampler()
    files = [reader.fd for reader in sampler.readers]
    bare = cpu_seconds(lambda: [os.pread(fd, 4096, 0) for fd in files], 500)
    full = cpu_seconds(sampler.sample, 500)

    begun = resource.getrusage(resource.RUSAGE_SELF)
    step = telemetry.Sampler(interval=1.0)
    step.start()
    time.sleep(seconds)
    result = step.stop(step_cpu_s=0.0)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
    print(f"files   {len(files)}")
    print(f"bare    {bare * 1e6:8.1f} µs of CPU a sample   {bare * 100:7.4f} % of one core at one a second")
    print(f"sample  {full * 1e6:8.1f} µs of CPU a sample   {full * 100:7.4f} % of one core at one a second")
    print(f"        {full / bare:8.1f} times the bare reading")
    wall = result["wall_s"]
    print(f"beside  {cpu_s * 1e6 / step.count:8.1f} µs of CPU a sample   {cpu_s / wall * 100:7.4f} % of one core")
    print(f"        over {wall:.1f} s, {step.count} samples; of itself it says {result['cost_s'] / wall:.4%}")


if __name__ == "__main__":
    main()
