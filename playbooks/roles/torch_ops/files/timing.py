"""Time calls on a device within a time budget, with a cleared cache, and with events if the device has them."""

import statistics
import time
from collections import namedtuple

# Seconds of each call on the device, seconds that the host needs to start each call (empty on CPUs), and
# the number of calls that were dropped because the device throttled.
Times = namedtuple("Times", "seconds host dropped")
# The mean of back-to-back calls in seconds, and the device's median clock (Hz) and power (W), None if unknown.
Sustained = namedtuple("Sustained", "seconds clock power")

LEAST, MOST = 3, 2000  # timed calls
CHUNK = 10  # calls between two checks for throttling
# NVML's reasons for a reduced clock that invalidate a time: hardware and thermal slowdown, power brake.
SPOILING = 0x8 | 0x20 | 0x40 | 0x80


class Clock:
    """Time calls on ``device``, number ``index`` of its kind. ``throttle``: the source of throttling reports,
    ``nvml`` or ``none``.
    """

    def __init__(self, torch, device, index=0):
        self.torch, self.device, self.index = torch, device, index
        self.accelerated = device != "cpu"
        self.throttle, self.handle = "none", None
        if self.accelerated:
            cache = 256 << 20  # at least as large as the L2 of any device so far
            self.sweep = torch.empty(cache, dtype=torch.int8, device=device)
        if device == "cuda":
            self._open_nvml()

    def _open_nvml(self):
        try:
            import pynvml

            pynvml.nvmlInit()
            uuid = "GPU-" + str(self.torch.cuda.get_device_properties(self.index).uuid)
            self.handle, self.nvml, self.throttle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()), pynvml, "nvml"
        except Exception:  # no such module, or an unsupported driver
            self.handle = None

    def throttled(self):
        """Return whether the device is throttled for a reason that invalidates a time."""
        if self.handle is None:
            return False
        try:
            return bool(self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle) & SPOILING)
        except Exception:
            return False

    def wait(self):
        if self.accelerated:
            self.torch.accelerator.synchronize()

    def once(self, call):
        """Return the seconds of one call, including everything."""
        self.wait()
        start = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - start

    def sample(self, call, budget):
        """Return the Times of calls within ``budget`` seconds."""
        return self._by_events(call, budget) if self.accelerated else Times(self._by_wall(call, budget), [], 0)

    def sustained(self, call, once, seconds):
        """Return the Sustained of back-to-back calls for ``seconds``. The first third is excluded, because

        clock rates drop. ``once``: the approximate seconds of one call.
        """
        chunk = max(1, min(1000, int(0.05 / max(once, 1e-6))))
        begin = time.perf_counter()
        start, calls, readings = None, 0, []
        while True:
            for _ in range(chunk):
                call()
            readings.append(self._reading())  # while the device is still busy
            self.wait()
            now = time.perf_counter()
            if start is None:
                if now - begin >= seconds / 3:
                    start, readings = now, []
                continue
            calls += chunk
            if now - begin >= seconds:
                break
        known = [[value for value in column if value] for column in zip(*readings)]  # noqa: B905  Python 3.9
        clock, power = (statistics.median(column) if column else None for column in known)
        return Sustained((now - start) / calls, clock, power)

    def _reading(self):
        if self.handle is None:
            return None, None
        try:
            clock = self.nvml.nvmlDeviceGetClockInfo(self.handle, 1) * 1e6  # of the SMs, MHz
            return clock, self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1e3
        except Exception:
            return None, None

    def captured(self, call):
        """Return a call that replays ``call`` as one CUDA graph and None, or None and why it cannot be captured."""
        torch = self.torch
        if self.device != "cuda":
            return None, "only CUDA devices capture calls"
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    call()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call()
            return graph.replay, None
        except Exception as error:  # libraries raise errors of many types inside a capture
            return None, (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

    def _by_wall(self, call, budget):
        samples, until = [], time.perf_counter() + budget
        while len(samples) < LEAST or (time.perf_counter() < until and len(samples) < MOST):
            start = time.perf_counter()
            call()
            samples.append(time.perf_counter() - start)
        return samples

    def _by_events(self, call, budget):
        torch = self.torch
        until = time.perf_counter() + budget / 4  # the clock rises under load
        while time.perf_counter() < until:
            call()
            self.wait()
        samples, host, dropped, until = [], [], 0, time.perf_counter() + budget
        while len(samples) + dropped < LEAST or (time.perf_counter() < until and len(samples) < MOST):
            pairs = [[torch.Event(device=self.device, enable_timing=True) for _ in range(2)] for _ in range(CHUNK)]
            slow, starting = self.throttled(), []
            for start, end in pairs:
                self.sweep.zero_()
                start.record()
                before = time.perf_counter()
                call()
                starting.append(time.perf_counter() - before)
                end.record()
            self.wait()
            times = [start.elapsed_time(end) / 1e3 for start, end in pairs]
            if slow or self.throttled():
                dropped += len(times)
            else:
                samples += times
                host += starting
        return Times(samples, host, dropped)


def spread(samples):
    """Return the minimum, the median, and the first and third quartile of ``samples``, in seconds."""
    if len(samples) < 2:
        return {"best": samples[0], "median": samples[0], "q1": samples[0], "q3": samples[0]}
    q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return {"best": min(samples), "median": median, "q1": q1, "q3": q3}
