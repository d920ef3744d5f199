"""Sample a host's accelerators while one step runs, in addition to the sampler of the host itself.

Imported by the job runner on the host. Standard library only, Python 3.6 and later. It runs in its own thread, so that
a hung driver loses only its own samples.
"""

import os
import threading
import time
from functools import lru_cache

from accelerator_sources import REASONS, SLOW_SOURCE_S, find, source_of

BUDGET = 0.0025  # maximum share of one core for sampling in this process
MOST = 600  # maximum samples; beyond it, every other one is dropped and the interval doubled
PATIENCE_S = 2.0  # timeout for a driver, so that the step's result need not wait for it
GAUGES = ("power_w", "clock_hz", "memory_clock_hz", "temp_c", "memory_temp_c", "memory_used", "busy", "memory_busy")
COUNTERS = ("corrected", "uncorrected")  # counters of memory errors
DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/davinci_manager", "/sys/module/nvidia", "/sys/module/amdgpu")


def watch_of(interval):
    """Start to sample the host's accelerators, if there is a device and a tool for it."""
    return Watch(interval=interval) if any(map(os.path.exists, DEVICES)) or has_tools() else Nothing()


@lru_cache(maxsize=None)  # tools do not change while a job runs
def has_tools():
    return any(find(name) for name in ("nvidia-smi", "npu-smi"))


class Nothing(object):
    """Sample nothing on a host without accelerators."""

    def start(self):
        pass

    def stop(self):
        return None


class Watch(object):
    """Sample all accelerators of the host from creation to ``stop``. Sample nothing on a host without accelerators.

    ``root`` is the parent of /sys, for tests.
    """

    def __init__(self, interval=1.0, root=""):
        self.interval, self.root = max(0.1, float(interval)), root
        self.source, self.rows, self.asleep = None, [], threading.Event()
        self.begun = time.monotonic()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def start(self):
        """Mark the beginning of the step. Earlier samples do not count."""
        self.begun = time.monotonic()

    def work(self):
        try:
            self.source = source_of(self.root, self.interval)
            if self.source is not None:
                self.sample()
        except (OSError, ValueError):
            pass  # the source no longer answers

    def sample(self):
        source = self.source
        spent, count = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID), 0
        pause = max(self.interval, SLOW_SOURCE_S) if source.name == "npu-smi" else self.interval
        while not self.asleep.is_set():
            readings = source.read()
            if readings is None:
                return
            self.rows.append((time.monotonic(), readings))
            count += 1
            if len(self.rows) > MOST:
                del self.rows[1::2]
                pause *= 2
            if getattr(source, "paces", False):
                continue
            cost = (time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - spent) / count
            pause = max(pause, cost / BUDGET)
            self.asleep.wait(pause)

    def stop(self):
        """End, and return the samples since ``start`` as a dict for JSON, or None if there are none."""
        ended = time.monotonic()
        self.asleep.set()
        if self.source is not None and getattr(self.source, "paces", False):
            self.source.close()  # its thread is waiting for a line
        self.thread.join(PATIENCE_S)
        if self.source is None:
            return None
        if not self.thread.is_alive() and not getattr(self.source, "paces", False):
            self.source.close()
        rows = [(t - self.begun, readings) for t, readings in list(self.rows) if self.begun <= t <= ended]
        count = max([len(readings) for _, readings in rows] or [0])
        if not count:
            return None
        rows = [(t, readings + [{}] * (count - len(readings))) for t, readings in rows]
        names = list(self.source.names) + ["?"] * count
        return {
            "source": self.source.name,
            "samples": together(rows),
            "devices": [device(n, names[n][:100], [(t, readings[n]) for t, readings in rows]) for n in range(count)],
        }


def together(rows):
    """Return columns over all devices: total power, lowest and mean clocks, highest temperature and memory use."""
    columns = {"t": [tidy(t) for t, _ in rows]}

    def reduced(name, key, reduce):
        values = [[reading.get(key) for reading in readings] for _, readings in rows]
        column = [None if None in row else tidy(reduce(row)) for row in values]
        if any(value is not None for value in column):
            columns[name] = column

    reduced("gpu_power_w", "power_w", sum)
    reduced("gpu_clock_hz_min", "clock_hz", min)
    reduced("gpu_clock_hz_mean", "clock_hz", mean)
    reduced("gpu_temp_c_max", "temp_c", max)
    reduced("gpu_memory_used_max", "memory_used", max)
    reduced("gpu_busy_mean", "busy", mean)
    reduced("gpu_slowed", "reasons", lambda row: mean([float(bool(slowed(bits))) for bits in row]))
    return columns


def device(index, name, rows):
    """Summarise one device over the step: {min, mean, max} by gauge, energy, shares of throttled samples, errors."""
    result = {"index": index, "name": name, "gauges": {}}
    for gauge in GAUGES:
        values = [reading[gauge] for _, reading in rows if gauge in reading]
        if values:
            result["gauges"][gauge] = {"min": tidy(min(values)), "mean": tidy(mean(values)), "max": tidy(max(values))}
    joules = energy(rows)
    if joules is not None:
        result["energy_j"] = tidy(joules)
    reasons = [slowed(reading["reasons"]) for _, reading in rows if "reasons" in reading]
    if reasons:
        named = sorted({reason for each in reasons for reason in each})
        result["slowed"] = {r: tidy(sum(r in each for each in reasons) / float(len(reasons))) for r in named}
    for counter in COUNTERS:
        counts = [reading[counter] for _, reading in rows if counter in reading]
        if counts:
            result.setdefault("errors", {})[counter] = [int(counts[0]), int(counts[-1])]
    return result


def energy(rows):
    """Return the energy (J) between the first and last sample, from the device's counter or else from its power."""
    counted = [reading["energy_j"] for _, reading in rows if "energy_j" in reading]
    if len(counted) > 1 and counted[-1] >= counted[0]:
        return counted[-1] - counted[0]
    drawn = [(t, reading["power_w"]) for t, reading in rows if "power_w" in reading]
    if len(drawn) < 2:
        return None
    return sum((drawn[n][0] - drawn[n - 1][0]) * (drawn[n][1] + drawn[n - 1][1]) / 2 for n in range(1, len(drawn)))


def slowed(bits):
    """Return the reasons in ``bits`` for a reduced clock under load."""
    return [name for bit, name in sorted(REASONS.items()) if int(bits) & bit]


def mean(values):
    return sum(values) / float(len(values))


def tidy(value):
    """Round to five significant digits, because a step's samples are sent over the network and stored."""
    return value if isinstance(value, int) else float("{:.5g}".format(value))
